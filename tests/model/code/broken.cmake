# What is broken in the code, one thing each time, and what the search must say of it ("." any verdict but a sound one). NAME PROGRAM
# MODEL VERDICT SOURCE FROM TO: see slabyard_broken.

# The word is exchanged without a release, and without an acquire.
slabyard_broken(no_release owned "hand over" "a race.*in execution" core/policies/yard/owned.c [[
#include "yard.h"
]] [[
#include "yard.h"
#define sy__swap64(word, guess, value) \
	__atomic_compare_exchange_n(word, guess, value, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)
]])
slabyard_broken(no_acquire owned "hand over" "a race.*in execution" core/policies/yard/owned.c [[
#include "yard.h"
]] [[
#include "yard.h"
#define sy__swap64(word, guess, value) \
	__atomic_compare_exchange_n(word, guess, value, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
]])

# A full slab that is given up keeps its mark.
slabyard_broken(mark_stays owned "two slabs" "a race.*in execution" core/policies/yard/owned.c [[
	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	sy__yard_set_filler(slab, own);]] [[
	sy__yard_set_filler(slab, own);]])

# What an ended thread has left is taken over without a claim; and bears that thread's mark.
slabyard_broken(inherited_unclaimed owned "inherited" "in execution" core/policies/yard/remote.c [[
	if (!sy__slot_claim(from))
		return false;
]] [[
	if (!sy__slot_claim(from))
		return false;
	sy__slot_release(from);
]])
slabyard_broken(inherited_with_mark owned "inherited" "in execution" core/policies/yard/remote.c [[
	sy__yard_set_owner(slab, sy__yard_mark(cache, own));
	sy__yard_set_filler]] [[
	sy__yard_set_filler]])

# A row that could not be given by one exchange leads on to what others freed.
slabyard_broken(row_leads_on owned "row" "in execution" core/policies/yard/remote.c [[
			*sy__yard_next(cache, row.objects.last) = strays; /* which an exchange that failed has changed */
]] [[
]])

# It is given up by a store, not by an exchange; likewise what others gave back is taken.
slabyard_broken(left_by_store owned "hand over" "a slab is left.*in execution" core/policies/yard/owned.c [[
if (sy__likely(sy__swap64(&slab->word, old, *old & ~SY__YARD_FROZEN))) {]] [[
__atomic_store_n(&slab->word, *old & ~SY__YARD_FROZEN, __ATOMIC_RELEASE);
	{]])
slabyard_broken(taken_by_store owned "hand over" "a race.*in execution" core/policies/yard/owned.c [[
			if (!sy__swap64(&slab->word, &old, sy__yard_word_take(old)))
				continue;]] [[
			__atomic_store_n(&slab->word, sy__yard_word_take(old), __ATOMIC_RELEASE);]])

# A slot takes a slab that it has filled back by a store.
slabyard_broken(adopted_by_store owned "two slabs" "in execution" core/policies/yard/here.c [[
!sy__swap64(&slab->word, &word, word | SY__YARD_FROZEN))) {]] [[
(__atomic_store_n(&slab->word, word | SY__YARD_FROZEN, __ATOMIC_RELEASE), false))) {]])

# An object of another slot's slab is pushed by a store.
slabyard_broken(pushed_by_store owned "pushes" "in execution" core/policies/yard/here.c [[
	return sy__swap64(&slab->word, &word, sy__yard_word_push(word, object, 1));]] [[
	__atomic_store_n(&slab->word, sy__yard_word_push(word, object, 1), __ATOMIC_RELEASE);
	return true;]])

# A slab leaves the slot's list, and the next one still links to it.
slabyard_broken(next_unlinked owned "three slabs" "list is broken.*in execution" core/policies/yard/owned.c [[
	if (next)
		sy__yard_slab(next)->held.prev = held->prev;
	else
]] [[
	if (!next)
]])

# A slab counts as empty with another object in use.
slabyard_broken(emptied_early owned "two slabs" "in execution" core/policies/yard/owned.c [[
if (sy__unlikely(sy__yard_in_use_now(sy__yard_slab(page)) == count))]] [[
if (sy__unlikely(sy__yard_in_use_now(sy__yard_slab(page)) <= count + 1))]])

# A push is tried again with the old link; likewise what a slot gives up.
slabyard_broken(stale_link owned "pushes" "in execution" core/policies/yard/owned.c [[
	for (;;) {
		if (sy__yard_word_stays(old, count)) {
			*sy__yard_next(cache, last) = sy__yard_word_first(old, last);]] [[
	*sy__yard_next(cache, last) = sy__yard_word_first(old, last);
	for (;;) {
		if (sy__yard_word_stays(old, count)) {]])
slabyard_broken(stale_join owned "end, one left" "in execution" core/policies/yard/slabs.c [[
	do {
		new = old & ~SY__YARD_FROZEN;
		if (chain.first) {
			join(cache, &chain, old);]] [[
	if (chain.first)
		join(cache, &chain, old);
	do {
		new = old & ~SY__YARD_FROZEN;
		if (chain.first) {]])

# What others gave back to such a slab is taken by a store.
slabyard_broken(in_front_by_store owned "end" "in execution" core/policies/yard/slabs.c [[
	while (!sy__swap64(&slab->word, &old, sy__yard_word_take(old)))
		;
	others =]] [[
	__atomic_store_n(&slab->word, sy__yard_word_take(old), __ATOMIC_RELEASE);
	others =]])

# A slot's end leaves the mark, or forgets what the slab holds.
slabyard_broken(drain_keeps_mark owned "claim" "a crash.*in execution" core/policies/yard/slabs.c [[
	bool others_first = is_longer(&chain, old);

	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	slab->emptied_pages]] [[
	bool others_first = is_longer(&chain, old);

	slab->emptied_pages]])
slabyard_broken(drain_forgets owned "end" "in execution" core/policies/yard/slabs.c [[
return (struct sy__yard_chain){ slab->held.freelist, NULL, slab->held_objects };]] [[
(void)slab;
	return (struct sy__yard_chain){ NULL, NULL, 0 };]])

# A slab becomes nobody's before its node's lock is taken; and its place is changed after that was given back.
slabyard_broken(listed_late owned "end" "in execution" core/policies/yard/slabs.c [[
	sy__lock(&node->lock);
	released = release(cache, page, objects);]] [[
	released = release(cache, page, objects);
	sy__lock(&node->lock);]])
slabyard_broken(settled_unlocked owned "node" "a race.*in execution" core/policies/yard/yard.c [[
	discard = settle(cache, node, page, old, new);
	sy__unlock(&node->lock);
]] [[
	sy__unlock(&node->lock);
	discard = settle(cache, node, page, old, new);
]])

# A row of strays goes home as one; or without a look at what its slab's list became meanwhile; and a slot's end keeps them.
slabyard_broken(row_as_one owned "strays" "in execution" core/policies/yard/remote.c [[
		row.objects.count++;]] [[
]])
slabyard_broken(row_cut_late owned "strays" "in execution" core/policies/yard/remote.c [[
		row.objects.last = at;
]] [[
]])
slabyard_broken(strays_stay owned "strays, end" "in execution" core/policies/yard/slabs.c [[
	pages = sy__yard_give_strays(cache, slot);
	return pages + sy__yard_end_strays(cache, slot);]] [[
	pages = 0;
	return pages + slot - slot;]])

# A trim puts a list back in front of what was free before.
slabyard_broken(trim_stale owned "trim" "in execution" core/policies/yard/trim.c [[
	do
		*sy__yard_next(cache, kept.last) = sy__yard_word_first(old, kept.last);
	while (]] [[
	*sy__yard_next(cache, kept.last) = sy__yard_word_first(old, kept.last);
	while (]])

# Of a kernel: a quick push is tried again with the old link, or made into any slab; and a full slab is given up by a store.
slabyard_broken(quick_stale port "slub, two CPUs" "in execution" core/policies/slub/slub.c [[
	do {
		if (sy__unlikely(!sy__slub_word_stays(old, 1)))
			return false;
		*sy__slub_next(cache, object) = sy__slub_word_first(old, object);
	} while]] [[
	*sy__slub_next(cache, object) = sy__slub_word_first(old, object);
	do {
		if (sy__unlikely(!sy__slub_word_stays(old, 1)))
			return false;
	} while]])
slabyard_broken(quick_anywhere port "slub, two CPUs" "in execution" core/policies/slub/slub.c [[
		if (sy__unlikely(!sy__slub_word_stays(old, 1)))
			return false;
]] [[
]])
slabyard_broken(rest_by_store port "slub, two CPUs" "in execution" core/policies/slub/slub.c [[
	} while (!sy__swap64(&slab->word, &old, new));
	return sy__slub_word_first(old, own->start);]] [[
		__atomic_store_n(&slab->word, new, __ATOMIC_RELEASE);
	} while (false);
	return sy__slub_word_first(old, own->start);]])

# What SLQB sends is not under the lock of whom it is for.
slabyard_broken(sent_unlocked queues "slqb" "a race.*in execution" core/policies/slqb_slabs.c [[
	sy__lock(&to->remote_lock);
	before]] [[
	before]])

# A kept run is put there without a release; its owner takes it by a load and a store. The same of others, without an acquire.
slabyard_broken(rows_no_release rows "ends" "a race.*in execution" core/large.c [[
#include "rows.h"
]] [[
#define __atomic_store_n(word, value, order) __atomic_store_n(word, value, __ATOMIC_RELAXED)
#include "rows.h"
]])
slabyard_broken(rows_taken_by_store rows "ends" "in execution" core/large.c [[
#include "rows.h"
]] [[
static inline uint32_t by_store(uint32_t *word)
{
	uint32_t old = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	__atomic_store_n(word, 0u, __ATOMIC_RELAXED);
	return old;
}
#define __atomic_exchange_n(word, value, order) by_store(word)
#include "rows.h"
#undef __atomic_exchange_n
]])
slabyard_broken(rows_no_acquire rows "ends" "a race.*in execution" core/rows.c [[
? sy__rows_take_out(rows, place) : 0;]] [[
? __atomic_exchange_n(&rows->first[place], 0u, __ATOMIC_RELAXED) : 0;]])
slabyard_broken(rows_ended_by_store rows "ends twice" "in execution" core/rows.c [[
	uint32_t number = __atomic_load_n(&rows->first[place], __ATOMIC_RELAXED) ? sy__rows_take_out(rows, place) : 0;
]] [[
	uint32_t number = __atomic_load_n(&rows->first[place], __ATOMIC_ACQUIRE);

	if (number)
		__atomic_store_n(&rows->first[place], 0u, __ATOMIC_RELAXED);
]])

# Who takes one away leaves its number. A slot's end forgets its runs; so does who makes room for another.
slabyard_broken(rows_left rows "ends" "in execution" core/rows.c [[
? sy__rows_take_out(rows, place) : 0;]] [[
? __atomic_load_n(&rows->first[place], __ATOMIC_ACQUIRE) : 0;]])
slabyard_broken(rows_forgotten rows "slot ends" "in execution" core/rows.c [[
		end_one(heap, slot, own, place);
		sy__rows_forget(own, place);]] [[
		__atomic_store_n(&own->first[place], 0u, __ATOMIC_RELAXED);
		sy__rows_forget(own, place);]])
slabyard_broken(rows_room_lost rows "room" "in execution" core/rows.c [[
		if (end_one(heap, slot, own, own->oldest))
			own->in_vain++;
]] [[
]])

# That nothing is kept is said after the look, not before. What lives is counted by a plain sum; and a run is kept twice.
slabyard_broken(rows_said_late rows "ends twice" "nobody would look.*in execution" core/rows.c [[
	uint64_t pages = 0;

	__atomic_store_n(&heap->rows_kept, false, __ATOMIC_RELAXED);
	for (unsigned slot = 0; slot < sy__slots_high(); slot++)
		for (unsigned place = 0; place < SY__ROWS; place++)
			pages += end_one(heap, slot, sy__rows_of(heap, slot), place);
]] [[
	uint64_t pages = 0;

	for (unsigned slot = 0; slot < sy__slots_high(); slot++)
		for (unsigned place = 0; place < SY__ROWS; place++)
			pages += end_one(heap, slot, sy__rows_of(heap, slot), place);
	__atomic_store_n(&heap->rows_kept, false, __ATOMIC_RELAXED);
]])
slabyard_broken(rows_plain_sum rows "counts" "a race.*in execution" core/large.c [[
	__atomic_store_n(&own->live, own->live + bytes, __ATOMIC_RELAXED);
]] [[
	own->live += bytes;
]])
slabyard_broken(rows_kept_twice rows "given twice" "in execution" core/large.c [[
	if (sy__unlikely(is_kept(head)))
		return true;
]] [[
]])

# A grace period turns the index once; a reader has done without a release; a slab waits for a grace period that has begun. What else could
# be broken, the search can't see: it gives every look the word's last value, and three who wait for each other are too much for it.
slabyard_broken(rcu_turned_once rcu "two periods" "in execution" library/rcu.c [[
	if (rcu.half == 1 && have_read()) {
		turn_index();
		rcu.half = 2;
]] [[
	if (rcu.half == 1 && have_read()) {
		rcu.half = 2;
]])
slabyard_broken(rcu_done_relaxed rcu "replaced" "a race.*in execution" library/rcu.c [[
	__atomic_fetch_sub(&rcu.readers[reads_as], 1, __ATOMIC_SEQ_CST);
	pass();
]] [[
	__atomic_fetch_sub(&rcu.readers[reads_as], 1, __ATOMIC_RELAXED);
	pass();
]])
slabyard_broken(rcu_begun_already rcu "slab" "in execution" library/rcu.c [[
	return count(&rcu.begun, 0) + 1;
]] [[
	return count(&rcu.begun, 0);
]])

# A range that hardly is in memory is taken by a load and a store, is put there without a release, or taken without an acquire. One that is
# put back meets another in its place. What was taken counts as kept.
slabyard_broken(thin_taken_by_store thin "takes" "in execution" malloc/thin.c [[
	return __atomic_load_n(word, __ATOMIC_RELAXED) ? __atomic_exchange_n(word, NULL, __ATOMIC_ACQUIRE) : NULL;
]] [[
	struct range *range = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	__atomic_store_n(word, NULL, __ATOMIC_RELAXED);
	return range;
]])
slabyard_broken(thin_no_release thin "takes" "a race.*in execution" malloc/thin.c [[
range, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);]] [[
range, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);]])
slabyard_broken(thin_no_acquire thin "takes" "a race.*in execution" malloc/thin.c [[
__atomic_exchange_n(word, NULL, __ATOMIC_ACQUIRE)]] [[
__atomic_exchange_n(word, NULL, __ATOMIC_RELAXED)]])
slabyard_broken(thin_put_by_store thin "ages" "in execution" malloc/thin.c [[
	       __atomic_compare_exchange_n(word, &none, range, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
]] [[
	       (__atomic_store_n(word, range, __ATOMIC_RELEASE), !none);
]])
slabyard_broken(thin_counted_still thin "takes" "the sum is wrong.*in execution" malloc/thin.c [[
	__atomic_fetch_sub(&all_bytes, range->bytes, __ATOMIC_RELAXED);
	return (char *)range;]] [[
	return (char *)range;]])

# Of other mappings that are kept: who finds a range takes it without owning its entry; a range is put there without a release, or taken without
# an acquire; what was taken is measured when the entry is somebody else's; and a child of a fork leaves entries to threads that it has not got.
slabyard_broken(kept_not_owned kept "gives" "in execution" malloc/kept.c [[
	if (!entry || !own(entry, start))
]] [[
	if (!entry || !__atomic_exchange_n(&entry->start, BUSY, __ATOMIC_ACQUIRE))
]])
slabyard_broken(kept_no_release kept "gives" "a race.*in execution" malloc/kept.c [[
		__atomic_store_n(&entry->start, range->start, __ATOMIC_RELEASE);]] [[
		__atomic_store_n(&entry->start, range->start, __ATOMIC_RELAXED);]])
slabyard_broken(kept_no_acquire kept "gives" "a race.*in execution" malloc/kept.c [[
BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);]] [[
BUSY, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);]])
slabyard_broken(kept_left_early kept "three" "in execution" malloc/kept.c [[
	size_t bytes = __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED);

	__atomic_fetch_sub(&all_bytes, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->start, NULL, __ATOMIC_RELEASE);
]] [[
	size_t bytes;

	__atomic_store_n(&entry->start, NULL, __ATOMIC_RELEASE);
	bytes = __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&all_bytes, bytes, __ATOMIC_RELAXED);
]])
slabyard_broken(kept_fork_busy kept "takes" "an entry is nobody's after a fork.*in execution" malloc/kept.c [[
		if (start_of(entry) == BUSY)
			__atomic_store_n(&entry->start, NULL, __ATOMIC_RELAXED);
		else if]] [[
		if]])
