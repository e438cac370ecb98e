/*
 * Runs of pages that were freed a moment ago, kept whole for the next request, in heaps of threads.
 *
 * Why. A large allocation is a row of blocks of pages (large.c). To give it back, each of its blocks is joined with its
 * buddies, and to take one again blocks are searched and halved, and the descriptors of all pages written: hundreds of
 * instructions for a buffer that most programs want again at once, in the same size or in one of a few. So each slot keeps the
 * last SY__RUN_CACHE_RUNS runs that were freed on it as they are: as large allocations of 0 bytes, which no other has, with all their
 * descriptors.
 *
 * Which serves. The smallest that suffices, if it has no more than an eighth too many pages. Who asks for a power of two of
 * pages may count on its alignment, so he gets such a run, which is always one block. Where a heap has several nodes nothing is
 * kept.
 *
 * How much. At most the largest block by each slot: the oldest go when a younger one comes. That is the memory that a heap
 * could have more of than it would without, and it hardly ever has:
 *
 *   - a run is not placed where memory would have to come for it before all that slots keep was given back and looked at (core/backend/best_fit.c);
 *   - who gets pages whose memory is not there, for whatever use, gives it back as well (sy__run_cache_before_growth), so that at most one
 *     request takes them while others lie here.
 *
 * In vain. A program whose sizes differ by more than that each time has no use for what is kept: it would get the memory that it
 * has just written to, which is in the processor's caches, only SY__RUN_CACHE_RUNS frees later, and what lies side by side would not be
 * joined. A slot in which SY__RUN_CACHE_IN_VAIN runs one after the other made room for younger ones before any served keeps no more;
 * after a while it tries again.
 *
 * Empty slabs that a policy's slots keep because they need them again and again (spares) go in the same way, before memory
 * comes that was not there: those of the slot that would take it.
 *
 * How long. The clock (here.c) ends all of it every RUN_CACHE_PERIOD, so that what is not used goes on to the free lists, and from
 * there back to the system in due time (core/backend/decay.c); so do shrink, trim, memory that becomes short, and a slot's end.
 * In the counters and walks of a heap kept pages are held, with no object in them.
 *
 * Who may do what. A slot's owner alone puts runs there, and keeps the account of what it has put where. Everybody may take a
 * run away, by an exchange of its word for 0, whoever owns the slot and whatever that is doing; the owner takes one in the same
 * way, and finds out from a 0 that somebody else did. So nobody needs a claim to give back what others keep. A word goes from 0
 * to a run by the owner's store only, and only where it has found a 0 itself, hence never over a run.
 *
 * Memory orders. The store of a word releases, and the exchange acquires: who gets a run sees all that was written to its
 * descriptors, and no use of its memory by who freed it comes later. run_cache_kept tells whether a look is worth it: relaxed. Who
 * puts a run there may find it set while his store is still on its way, and who clears it looks in vain; the run is then kept,
 * and nobody told so. The clock looks without asking, and finds that one a moment later.
 */
#include "run_cache.h"

#include "large.h"
#include "slot_areas.h"

bool sy__run_cache_create(struct sy_heap *heap)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)heap->pages;

	heap->run_cache_memory = base->memory;
	heap->run_cache_table = base->table;
	heap->run_cache_near = heap->nodes == 1 && base->page_count < UINT32_MAX;
	heap->run_cache = sy__slot_areas_take(heap, sizeof(struct sy__run_cache));
	return heap->run_cache != NULL;
}

/* ---- Giving back -------------------------------------------------------------------------------------------------- */

static uint64_t end_one(struct sy_heap *heap, unsigned slot, struct sy__run_cache *rows, unsigned place)
{
	uint32_t number = __atomic_load_n(&rows->first[place], __ATOMIC_RELAXED) ? sy__run_cache_take_out(rows, place) : 0;

	return number ? sy__large_end(heap, slot, sy__run_cache_numbered(heap, number)) : 0;
}

/* What others have taken is not there any more. */
static void forget_taken(struct sy__run_cache *own)
{
	for (unsigned place = 0; place < SY__RUN_CACHE_RUNS; place++)
		if (!__atomic_load_n(&own->first[place], __ATOMIC_RELAXED))
			sy__run_cache_forget(own, place);
}

unsigned sy__run_cache_make_room(struct sy_heap *heap, unsigned slot, uint32_t pages)
{
	struct sy__run_cache *own = sy__run_cache_of(heap, slot);
	unsigned place;

	if (!sy__run_cache_serve(own)) {
		sy__run_cache_end_slot(heap, slot);
		own->in_vain++;
		return SY__RUN_CACHE_RUNS;
	}
	forget_taken(own);
	while ((place = sy__run_cache_place(own, pages)) == SY__RUN_CACHE_RUNS) {
		if (end_one(heap, slot, own, own->oldest))
			own->in_vain++;
		sy__run_cache_forget(own, own->oldest);
		own->oldest = (uint16_t)((own->oldest + 1u) % SY__RUN_CACHE_RUNS);
	}
	return place;
}

void sy__run_cache_end_slot(struct sy_heap *heap, unsigned slot)
{
	struct sy__run_cache *own = sy__run_cache_of(heap, slot);

	for (unsigned place = 0; place < SY__RUN_CACHE_RUNS; place++) {
		end_one(heap, slot, own, place);
		sy__run_cache_forget(own, place);
	}
}

uint64_t sy__run_cache_end(struct sy_heap *heap)
{
	uint64_t pages = 0;

	__atomic_store_n(&heap->run_cache_kept, false, __ATOMIC_RELAXED);
	for (unsigned slot = 0; slot < sy__slots_high(); slot++)
		for (unsigned place = 0; place < SY__RUN_CACHE_RUNS; place++)
			pages += end_one(heap, slot, sy__run_cache_of(heap, slot), place);
	return pages;
}

void sy__spares_end(struct sy_heap *heap, unsigned slot)
{
	sy__run_cache_of(heap, slot)->spares = false;
	heap->hooks->end_spares(heap, slot);
}

bool sy__run_cache_before_growth(struct sy_heap *heap, unsigned slot, unsigned tries)
{
	if (!tries && sy__spares_any(heap, slot) && sy__spares_wanted(heap, (ptrdiff_t)(slot * SY_SLOT_STRIDE)))
		return true;
	if (tries)
		sy__spares_in_vain(heap, slot);
	if (sy__run_cache_any(heap))
		sy__run_cache_end(heap);
	return false;
}

/* ---- What is there ------------------------------------------------------------------------------------------------ */

/* Exact where nobody is at work; else a run may be seen to have gone that was not seen to have come, hence less than nothing. */
size_t sy__run_cache_live(const struct sy_heap *heap)
{
	size_t live = 0;

	for (unsigned slot = 0; slot < sy__slots_high(); slot++)
		live += __atomic_load_n(&sy__run_cache_of(heap, slot)->live, __ATOMIC_RELAXED);
	return live > SIZE_MAX / 2 ? 0 : live;
}

static bool is_kept(struct sy_heap *heap, uint32_t number, uint32_t pages)
{
	struct sy_page *page = sy__run_cache_numbered(heap, number);

	return sy__page_is_large(page) && sy__page_heap(page) == heap && !sy__page_bytes(page) &&
	       sy__large_usable(page) == (size_t)pages << SY_PAGE_SHIFT;
}

static const char *check_slot(struct sy_heap *heap, const struct sy__run_cache *rows)
{
	uint32_t sum = 0;

	for (unsigned place = 0; place < SY__RUN_CACHE_RUNS; place++) {
		uint32_t number = __atomic_load_n(&rows->first[place], __ATOMIC_RELAXED);

		sum += rows->pages[place];
		if (number && !is_kept(heap, number, rows->pages[place]))
			return "heap: a run that a slot keeps is none, or in use, or of another size";
	}
	return sum == rows->sum && sum <= SY__RUN_CACHE_MOST_PAGES ? NULL : "heap: a slot keeps more pages than it may, or others than it says";
}

const char *sy__run_cache_check(struct sy_heap *heap)
{
	const char *wrong = NULL;

	for (unsigned slot = 0; heap->run_cache && slot < sy__slots_high() && !wrong; slot++)
		if (sy__slot_mine(slot))
			wrong = check_slot(heap, sy__run_cache_of(heap, slot));
	return wrong;
}
