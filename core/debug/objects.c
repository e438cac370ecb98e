/*
 * A policy's functions for objects, with records and checks around those of the policy below. See debug.h.
 *
 * A free goes: find the record; verify that the address is an object's and the client may free it there; verify zones and constructed
 * state; from then on the object is no longer live, so that a second free finds it so; destruct and fill it; put it into the
 * quarantine; give back what the quarantine has too much of. Only from the quarantine on is it checked for writes: another thread may
 * have all objects checked while this one still fills it. An allocation goes the other way round.
 *
 * Where a report returns, as in a kernel or a test, the object that is damaged or freed wrongly stays as it is for ever.
 */
#include "layer.h"

#include "../backend/large.h"
#include "../backend/metadata.h"
#include "../this_slot.h"

#define FRONT SY__DEBUG_FRONT
#define BACK SY__DEBUG_BACK
#define LARGE_SHARE 4u /* objects of more than 1/LARGE_SHARE of the quarantine are given back at once */

static void note_caller(const struct sy__debug *debug, uint32_t checks, struct sy__debug_caller *caller)
{
	caller->time = sy__now();
	caller->thread = debug->hooks->thread();
	caller->depth = checks & SY_DEBUG_AUDIT ? debug->hooks->stack(caller->frames, SY__DEBUG_FRAMES) : 0;
}

/* ---- Records that are gone ---------------------------------------------------------------------------------------- */

/* Forgets the objects whose memory is used again. Their records stay in the list of those gone until their turn. */
static void forget_overlapped(struct sy__debug *debug, const struct sy__record *by)
{
	struct sy__record *record;

	while ((record = sy__record_below(debug, by->base + by->room - 1)) && record->base + record->room > by->base) {
		sy__record_remove(debug, record);
		record->room = 0;
	}
}

/* Adds a record to those gone; returns one that has been there for too long, or NULL. */
static struct sy__record *add_gone(struct sy__debug *debug, struct sy__record *record)
{
	struct sy__record *oldest = debug->gone;

	record->state = SY__RECORD_GONE;
	record->next = NULL;
	*debug->gone_end = record;
	debug->gone_end = &record->next;
	if (debug->gone_count < SY__DEBUG_GONE) {
		debug->gone_count++;
		return NULL;
	}
	debug->gone = oldest->next;
	if (oldest->room)
		sy__record_remove(debug, oldest);
	return oldest;
}

/* ---- Giving back to the policy below ------------------------------------------------------------------------------ */

static void give_below(struct sy_heap *heap, unsigned slot, const struct sy__record *record)
{
	const struct sy_policy *below = heap->debug->below;

	if (record->guarded)
		sy__guard_release(record);
	else if (record->adopted)
		heap->on_foreign_free(record->base, heap);
	else if (record->cache)
		below->cache_free(record->cache, slot, record->base);
	else
		below->kfree(heap, slot, record->base);
}

/* An object that is not live, and in no list. */
static void give_back(struct sy_heap *heap, unsigned slot, struct sy__record *record)
{
	struct sy__debug *debug = heap->debug;
	struct sy__record *expired, copy = *record;
	struct sy__finding finding;

	if (sy__is_written_after_free(&finding, record)) {
		debug->hooks->report(heap, &finding);
		return;
	}
	sy__lock(&debug->lock);
	expired = add_gone(debug, record);
	sy__unlock(&debug->lock);
	give_below(heap, slot, &copy);
	sy__metadata_give(heap, expired, sizeof(*expired));
}

/* Takes the oldest object out of the quarantine if it holds more than `most` bytes; of one cache, or of all (NULL). */
static struct sy__record *take_quarantined(struct sy__debug *debug, size_t most, const struct sy_cache *cache)
{
	struct sy__record **place = &debug->quarantine, *record = NULL;

	sy__lock(&debug->lock);
	while (cache && *place && (*place)->cache != cache)
		place = &(*place)->next;
	if (*place && debug->quarantined > most) {
		record = *place;
		*place = record->next;
		if (!*place)
			debug->quarantine_end = place;
		debug->quarantined -= record->room;
	}
	sy__unlock(&debug->lock);
	return record;
}

static void shorten_quarantine(struct sy_heap *heap, unsigned slot, size_t most, const struct sy_cache *cache)
{
	struct sy__record *record;

	while ((record = take_quarantined(heap->debug, most, cache)))
		give_back(heap, slot, record);
}

bool sy__debug_enter(struct sy_heap *heap, unsigned *slot)
{
	*slot = 0;
	return heap->concurrent && sy__call_enter(slot);
}

void sy__debug_leave(bool entered)
{
	if (entered)
		sy__call_leave();
}

void sy__debug_flush(struct sy_heap *heap, const struct sy_cache *cache)
{
	unsigned slot;
	bool entered;

	if (!heap->debug)
		return;
	entered = sy__debug_enter(heap, &slot);
	if (entered || !heap->concurrent)
		shorten_quarantine(heap, slot, 0, cache);
	sy__debug_leave(entered);
}

/* ---- Allocation --------------------------------------------------------------------------------------------------- */

static void prepare(const struct sy__record *record, unsigned flags)
{
	char *end = record->object + record->size;

	if (record->checks & SY_DEBUG_RED_ZONES) {
		sy__pattern_fill(sy__front(record), record->object, SY__DEBUG_ZONE);
		sy__pattern_fill(end, sy__back_end(record), SY__DEBUG_ZONE);
	}
	if (flags & SY_ZERO)
		sy__fill(record->object, 0, record->size);
	else if (record->checks & (SY_DEBUG_POISON | SY_DEBUG_STATE))
		sy__pattern_fill(record->object, end, SY__DEBUG_FRESH);
}

/* The object is the client's from now on. */
static void *hand_out(struct sy_heap *heap, struct sy__record *record, const struct sy__debug_caller *caller)
{
	struct sy__debug *debug = heap->debug;

	record->allocated = caller->time;
	record->allocator = caller->thread;
	sy__lock(&debug->lock);
	forget_overlapped(debug, record);
	sy__record_insert(debug, record);
	record->allocation_stack = sy__stack_number(debug, caller->frames, caller->depth);
	sy__transaction_add(debug, record, false);
	sy__unlock(&debug->lock);
	return record->object;
}

static void construct(const struct sy__own *own, const struct sy__record *record)
{
	if (!own->constructor)
		return;
	sy__construct(own->constructor, record->object, record->size);
	if (sy__state_bytes(record))
		sy__copy(sy__back_end(record), record->object, record->size);
}

static bool take_guarded(const struct sy__debug *debug, struct sy__record *record, size_t align, size_t size)
{
	if (!(record->checks & SY_DEBUG_PAGES) || size < debug->config.guard_least ||
	    !sy__guard_create(record, align, size, debug->config.guard_low))
		return false;
	record->checks = (uint16_t)((record->checks & ~(unsigned)SY_DEBUG_STATE) | SY_DEBUG_RED_ZONES); /* to the pages' edges */
	return true;
}

/* Memory of the policy below: an object of a cache or, with NULL, `bytes`. Where there is none, what is quarantined goes back first. */
static char *take_below(struct sy_heap *heap, unsigned slot, struct sy_cache *cache, size_t bytes, unsigned flags, int node)
{
	const struct sy_policy *below = heap->debug->below;
	char *base = NULL;

	for (unsigned tries = 0; !base && tries < 2; tries++) {
		if (tries)
			shorten_quarantine(heap, slot, 0, NULL);
		base = cache ? below->cache_alloc(cache, slot, flags, node) : below->kmalloc(heap, slot, bytes, flags, node);
	}
	return base;
}

static bool take_of_cache(struct sy_cache *cache, struct sy__record *record, unsigned slot, unsigned flags, int node)
{
	const struct sy__own *own = sy__own_of(cache);

	record->base = take_below(cache->heap, slot, cache, 0, flags & ~(unsigned)SY_ZERO, node);
	if (!record->base)
		return false;
	record->object = record->base + own->front;
	record->size = own->size;
	record->room = own->room;
	return true;
}

void *sy__debug_cache_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node)
{
	const struct sy__own *own = sy__own_of(cache);
	struct sy_heap *heap = cache->heap;
	struct sy__debug *debug = heap->debug;
	struct sy__record *record = sy__metadata_take(heap, sizeof(*record));
	struct sy__debug_caller caller;

	if (!record)
		return NULL;
	note_caller(debug, own->checks, &caller);
	record->cache = cache;
	record->checks = (uint16_t)own->checks;
	record->interface = SY__BY_CACHE;
	if (!take_guarded(debug, record, cache->align, own->size) && !take_of_cache(cache, record, slot, flags, node)) {
		sy__metadata_give(heap, record, sizeof(*record));
		return NULL;
	}
	if (flags & SY_ZERO)
		record->checks &= (uint16_t)~SY_DEBUG_STATE; /* zero in place of constructed, as the policies have it */
	prepare(record, flags);
	if (!(flags & SY_ZERO))
		construct(own, record);
	return hand_out(heap, record, &caller);
}

/* Bytes that an object of general allocation takes. */
static size_t general_bytes(size_t align, size_t size)
{
	return FRONT + align + size + BACK;
}

/* Where the object stands in memory of `room` bytes. */
static void place(struct sy__record *record, size_t room, size_t align, size_t size)
{
	record->room = room;
	record->size = size;
	record->object = record->base + (sy__align_up((uintptr_t)record->base + FRONT, align) - (uintptr_t)record->base);
}

/* A record with memory for an object, from the policy below or from guarded pages. NULL: no memory. */
static struct sy__record *take_general(struct sy_heap *heap, unsigned slot, size_t align, size_t size, unsigned flags, int node)
{
	struct sy__debug *debug = heap->debug;
	uint32_t checks = sy__debug_checks_of_size(debug, size);
	size_t wanted = general_bytes(align, size);
	struct sy__record *record = wanted > size ? sy__metadata_take(heap, sizeof(*record)) : NULL;

	if (!record)
		return NULL;
	record->checks = (uint16_t)(checks & ~(uint32_t)SY_DEBUG_STATE);
	record->interface = SY__BY_KMALLOC;
	/* What the heap refuses for its size has no pages of its own either. */
	if (!sy__large_refuses(heap, size) && take_guarded(debug, record, align, size))
		return record;
	record->base = take_below(heap, slot, NULL, wanted, flags, node);
	if (!record->base) {
		sy__metadata_give(heap, record, sizeof(*record));
		return NULL;
	}
	place(record, debug->below->usable_size(heap, record->base), align, size);
	return record;
}

static void *general(struct sy_heap *heap, unsigned slot, size_t align, size_t size, unsigned flags, int node)
{
	struct sy__record *record;
	struct sy__debug_caller caller;

	note_caller(heap->debug, heap->debug->config.checks, &caller);
	record = take_general(heap, slot, align, size, flags & ~(unsigned)SY_ZERO, node);
	if (!record)
		return NULL;
	prepare(record, flags);
	return hand_out(heap, record, &caller);
}

/* A power of two is aligned to itself, up to a page, as kmalloc promises. */
static size_t natural_align(const struct sy_heap *heap, size_t size)
{
	size_t least = heap->sizing.align > 8 ? heap->sizing.align : 8;

	if (size & (size - 1) || size < least)
		return least;
	return size < SY_PAGE_SIZE ? size : SY_PAGE_SIZE;
}

void *sy__debug_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	if (!sy__debug_checks_of_size(heap->debug, size))
		return heap->debug->below->kmalloc(heap, slot, size, flags, node);
	return general(heap, slot, natural_align(heap, size), size, flags, node);
}

/* ---- Frees -------------------------------------------------------------------------------------------------------- */

/* The record of an object that the client may free, and that is not live from now on. NULL: it was reported. */
static struct sy__record *end_life(struct sy_heap *heap, const struct sy_cache *cache, char *object,
                                   enum sy__debug_interface interface, const struct sy__debug_caller *caller)
{
	struct sy__debug *debug = heap->debug;
	struct sy__record *record;
	struct sy__finding finding;
	bool wrong;

	sy__lock(&debug->lock);
	record = sy__record_to_free(&finding, debug, object, cache, interface);
	wrong = !record || sy__zone_is_written(&finding, record) || sy__state_is_changed(&finding, record);
	if (!wrong) {
		record->state = SY__RECORD_ENDING;
		record->freed = caller->time;
		record->freer = caller->thread;
		record->free_stack = sy__stack_number(debug, caller->frames, caller->depth);
		sy__transaction_add(debug, record, true);
	}
	sy__unlock(&debug->lock);
	if (!wrong)
		return record;
	debug->hooks->report(heap, &finding);
	return NULL;
}

/* Destructs and fills an object that nobody has. True: it goes into the quarantine. */
static bool wear_down(const struct sy__debug *debug, const struct sy__record *record)
{
	const struct sy__own *own = record->cache ? sy__own_of(record->cache) : NULL;

	if (own && own->destructor)
		own->destructor(record->object, record->size);
	if (record->guarded) {
		sy__guard_close(record);
		return true;
	}
	if (!(record->checks & SY_DEBUG_POISON) || record->room > debug->config.quarantine / LARGE_SHARE)
		return false;
	sy__pattern_fill(record->object, record->object + record->size, SY__DEBUG_FREED);
	return true;
}

static void quarantine(struct sy__debug *debug, struct sy__record *record)
{
	sy__lock(&debug->lock);
	record->state = SY__RECORD_QUARANTINED;
	record->next = NULL;
	*debug->quarantine_end = record;
	debug->quarantine_end = &record->next;
	debug->quarantined += record->room;
	sy__unlock(&debug->lock);
}

static void release(struct sy_heap *heap, unsigned slot, struct sy_cache *cache, void *object, uint32_t checks,
                    enum sy__debug_interface interface)
{
	struct sy__debug *debug = heap->debug;
	struct sy__record *record;
	struct sy__debug_caller caller;

	note_caller(debug, checks, &caller);
	record = end_life(heap, cache, object, interface, &caller);
	if (!record)
		return;
	if (wear_down(debug, record)) {
		quarantine(debug, record);
	} else {
		record->checks &= (uint16_t)~SY_DEBUG_POISON; /* it was not filled */
		give_back(heap, slot, record);
	}
	shorten_quarantine(heap, slot, debug->config.quarantine, NULL);
}

void sy__debug_cache_free(struct sy_cache *cache, unsigned slot, void *object)
{
	release(cache->heap, slot, cache, object, sy__own_of(cache)->checks, SY__BY_CACHE);
}

bool sy__debug_knows(struct sy_heap *heap, const void *object)
{
	struct sy__debug *debug = heap->debug;
	const struct sy__record *record;
	unsigned slot;
	bool entered = sy__debug_enter(heap, &slot), known;

	sy__lock(&debug->lock);
	record = sy__record_of(debug, object);
	known = record && record->state != SY__RECORD_GONE;
	sy__unlock(&debug->lock);
	sy__debug_leave(entered);
	return known;
}

void sy__debug_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	struct sy__debug *debug = heap->debug;

	if (debug->knows_all || sy__debug_knows(heap, object))
		release(heap, slot, NULL, object, debug->config.checks, SY__BY_KMALLOC);
	else
		debug->below->kfree(heap, slot, object);
}

/* ---- Sizes -------------------------------------------------------------------------------------------------------- */

size_t sy__debug_usable_size(struct sy_heap *heap, const void *object)
{
	struct sy__debug *debug = heap->debug;
	const struct sy__record *record;
	struct sy__finding finding;
	size_t size;

	if (!debug->knows_all && !sy__debug_knows(heap, object))
		return debug->below->usable_size(heap, object);
	sy__lock(&debug->lock);
	record = sy__record_to_free(&finding, debug, object, NULL, SY__BY_ANY);
	size = record ? record->size : 0;
	sy__unlock(&debug->lock);
	if (!record)
		debug->hooks->report(heap, &finding);
	return size;
}

/* ---- For malloc --------------------------------------------------------------------------------------------------- */

void *sy__debug_aligned(struct sy_heap *heap, size_t align, size_t size, unsigned flags)
{
	unsigned slot;
	void *object;

	if (!sy__call_enter(&slot))
		return NULL;
	object = general(heap, slot, align, size, flags, SY_ANY_NODE);
	sy__this_slot_leave(heap);
	return object;
}

size_t sy__debug_adopted_bytes(size_t align, size_t size)
{
	return general_bytes(align, size);
}

/* An object of such memory, or, with NULL, in guarded pages. */
static void *outside_of_heap(struct sy_heap *heap, void *memory, size_t bytes, size_t align, size_t size, unsigned flags)
{
	struct sy__record *record = NULL;
	struct sy__debug_caller caller;
	unsigned slot;

	if (!sy__call_enter(&slot))
		return NULL;
	note_caller(heap->debug, heap->debug->config.checks, &caller);
	record = sy__metadata_take(heap, sizeof(*record));
	if (record) {
		record->checks = (uint16_t)(sy__debug_checks_of_size(heap->debug, size) & ~(uint32_t)SY_DEBUG_STATE);
		record->interface = SY__BY_KMALLOC;
		record->adopted = memory != NULL;
	}
	if (record && memory) {
		record->base = memory;
		place(record, bytes, align, size);
	} else if (record && !take_guarded(heap->debug, record, align, size)) {
		sy__metadata_give(heap, record, sizeof(*record));
		record = NULL;
	}
	if (record) {
		prepare(record, flags);
		hand_out(heap, record, &caller);
	}
	sy__this_slot_leave(heap);
	return record ? record->object : NULL;
}

void *sy__debug_adopt(struct sy_heap *heap, void *memory, size_t bytes, size_t align, size_t size, unsigned flags)
{
	return outside_of_heap(heap, memory, bytes, align, size, flags);
}

void *sy__debug_guarded(struct sy_heap *heap, size_t align, size_t size, unsigned flags)
{
	return outside_of_heap(heap, NULL, 0, align, size, flags);
}

void sy__debug_tag(struct sy_heap *heap, void *object, unsigned by)
{
	struct sy__debug *debug = heap->debug;
	struct sy__record *record;
	unsigned slot;
	bool entered = sy__debug_enter(heap, &slot);

	sy__lock(&debug->lock);
	record = sy__record_of(debug, object);
	if (record)
		record->interface = (uint8_t)by;
	sy__unlock(&debug->lock);
	sy__debug_leave(entered);
}

bool sy__debug_expect(struct sy_heap *heap, const void *object, size_t size, unsigned by)
{
	struct sy__debug *debug = heap->debug;
	struct sy__record *record;
	struct sy__finding finding;
	unsigned slot;
	bool entered = sy__debug_enter(heap, &slot), wrong;

	sy__lock(&debug->lock);
	record = sy__record_to_free(&finding, debug, object, NULL, by);
	wrong = !record;
	if (record && size && size != record->size) {
		wrong = sy__found(&finding, SY_BUG_WRONG_SIZE, record, object);
		finding.size = size;
	}
	if (!wrong)
		record->interface = SY__BY_KMALLOC;
	sy__unlock(&debug->lock);
	sy__debug_leave(entered);
	if (wrong)
		debug->hooks->report(heap, &finding);
	return !wrong;
}
