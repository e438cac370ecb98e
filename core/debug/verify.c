/*
 * What is wrong with an object, or with a free. Each function fills in a finding and returns true, or finds nothing.
 */
#include "layer.h"

#include "../bug.h"

#define NEAR (4 * SY_PAGE_SIZE) /* bytes from an object to a foreign address that may come from it */

static uint32_t word_at(const char *address)
{
	uint32_t word;

	sy__copy(&word, (const void *)((uintptr_t)address & ~(uintptr_t)3), sizeof(word));
	return word;
}

bool sy__found(struct sy__finding *finding, enum sy_bug kind, const struct sy__record *record, const char *address)
{
	*finding = (struct sy__finding){ .kind = kind, .address = address, .known = record != NULL };
	if (record)
		finding->record = *record;
	return true;
}

static bool is_written(struct sy__finding *finding, enum sy_bug kind, const struct sy__record *record, const char *from,
                       const char *to, uint32_t word)
{
	const char *broken = sy__pattern_broken(from, to, word);

	if (!broken)
		return false;
	sy__found(finding, kind, record, broken);
	finding->expected = word;
	finding->found = word_at(broken);
	return true;
}

bool sy__zone_is_written(struct sy__finding *finding, const struct sy__record *record)
{
	if (!(record->checks & SY_DEBUG_RED_ZONES))
		return false;
	return is_written(finding, SY_BUG_WRITE_PAST_THE_END, record, record->object + record->size, sy__back_end(record),
	                  SY__DEBUG_ZONE) ||
	       is_written(finding, SY_BUG_WRITE_BEFORE_THE_START, record, sy__front(record), record->object, SY__DEBUG_ZONE);
}

bool sy__state_is_changed(struct sy__finding *finding, const struct sy__record *record)
{
	const char *state = sy__back_end(record);
	size_t at = 0;

	if (!sy__state_bytes(record) || sy__same(record->object, state, record->size))
		return false;
	/* Bytes that still have the fill pattern are those that the constructor did not set. */
	while (at < record->size &&
	       (record->object[at] == state[at] || sy__pattern_has(record->object + at, state[at], SY__DEBUG_FRESH)))
		at++;
	if (at == record->size)
		return false;
	sy__found(finding, SY_BUG_CHANGED_STATE, record, record->object + at);
	finding->expected = (unsigned char)state[at];
	finding->found = (unsigned char)record->object[at];
	return true;
}

/* A freed object, before it is given back. */
bool sy__is_written_after_free(struct sy__finding *finding, const struct sy__record *record)
{
	return !record->guarded && record->checks & SY_DEBUG_POISON &&
	       (is_written(finding, SY_BUG_WRITE_AFTER_FREE, record, record->object, record->object + record->size, SY__DEBUG_FREED) ||
	        sy__zone_is_written(finding, record));
}

static bool is_damaged(struct sy__finding *finding, const struct sy__record *record)
{
	if (record->state == SY__RECORD_LIVE)
		return sy__zone_is_written(finding, record);
	return record->state == SY__RECORD_QUARANTINED && sy__is_written_after_free(finding, record);
}

/* ---- Frees -------------------------------------------------------------------------------------------------------- */

struct sy__record *sy__record_of(const struct sy__debug *debug, const void *address)
{
	struct sy__record *record = sy__record_below(debug, address);

	return record && (const char *)address < record->base + record->room ? record : NULL;
}

/* Whether an object may be freed by this cache and interface. */
static bool is_freed_right(const struct sy__record *record, const struct sy_cache *cache, unsigned by, bool mixed)
{
	if (by == SY__BY_ANY || (record->cache == cache && record->interface == by))
		return true;
	if (!record->cache && !cache)
		return mixed;
	return record->cache && !cache && by == SY__BY_KMALLOC && record->cache->heap->kfree_frees_all;
}

/* An object that is gone and was at an address; NULL: none is remembered. Of those whose memory was used again, too. */
static const struct sy__record *former_at(const struct sy__debug *debug, const char *address)
{
	const struct sy__record *found = NULL;

	for (const struct sy__record *at = debug->gone; at; at = at->next)
		if (at->object == address)
			found = at;
	return found;
}

/* Where no object starts: inside of one, or in what others have left, where one may have been. */
static void find_misplaced(struct sy__finding *finding, const struct sy__debug *debug, const struct sy__record *around, const char *address)
{
	const struct sy__record *former = around->state == SY__RECORD_GONE ? former_at(debug, address) : NULL;

	sy__found(finding, former ? SY_BUG_DOUBLE_FREE : SY_BUG_INTERIOR_FREE, former ? former : around, address);
}

struct sy__record *sy__record_to_free(struct sy__finding *finding, const struct sy__debug *debug, const char *object,
                                      const struct sy_cache *cache, unsigned by)
{
	struct sy__record *record = sy__record_of(debug, object);

	if (!record) {
		record = sy__record_below(debug, object);
		sy__found(finding, SY_BUG_FOREIGN_FREE, record && (uintptr_t)object - (uintptr_t)record->object < NEAR ? record : NULL, object);
	} else if (record->object != object) {
		find_misplaced(finding, debug, record, object);
	} else if (record->state != SY__RECORD_LIVE) {
		sy__found(finding, SY_BUG_DOUBLE_FREE, record, object);
	} else if (!is_freed_right(record, cache, by, debug->config.mixed)) {
		sy__found(finding, SY_BUG_WRONG_CACHE, record, object);
		finding->other = cache;
		finding->interface = (uint8_t)by;
	} else {
		return record;
	}
	return NULL;
}

/* ---- Everything at once --------------------------------------------------------------------------------------------- */

static bool find_damage(const struct sy__debug *debug, struct sy__finding *finding)
{
	struct sy__record_walk walk = { .depth = 0 };
	const struct sy__record *record;

	while ((record = sy__record_next(debug, &walk)))
		if (is_damaged(finding, record))
			return true;
	return false;
}

bool sy__debug_find_damage(struct sy_heap *heap, struct sy__finding *finding)
{
	struct sy__debug *debug = heap->debug;
	bool damaged;

	if (!debug || !sy__lock_try(&debug->lock))
		return false;
	damaged = find_damage(debug, finding);
	sy__unlock(&debug->lock);
	return damaged;
}

/* A touch of pages that cannot be touched, or are the program's no more. */
static bool is_fault_of(struct sy__finding *finding, const struct sy__record *record, const char *address, bool read)
{
	if (record->state != SY__RECORD_LIVE)
		return sy__found(finding, read ? SY_BUG_READ_AFTER_FREE : SY_BUG_WRITE_AFTER_FREE, record, address);
	if (sy__zone_is_written(finding, record)) /* on the way there */
		return true;
	if (address < record->object)
		return sy__found(finding, read ? SY_BUG_READ_BEFORE_THE_START : SY_BUG_WRITE_BEFORE_THE_START, record, address);
	return sy__found(finding, read ? SY_BUG_READ_PAST_THE_END : SY_BUG_WRITE_PAST_THE_END, record, address);
}

bool sy__debug_find_fault(struct sy_heap *heap, const void *address, bool read, struct sy__finding *finding)
{
	struct sy__debug *debug = heap->debug;
	const struct sy__record *record;
	bool known;

	if (!sy__lock_try(&debug->lock))
		return false;
	record = sy__record_below(debug, address);
	known = record && (record->guarded || record->adopted) && (const char *)address < record->base + record->room &&
	        is_fault_of(finding, record, address, read);
	sy__unlock(&debug->lock);
	return known;
}

const char *sy__debug_verify(struct sy_heap *heap)
{
	struct sy__debug *debug = heap->debug;
	struct sy__finding finding;
	const char *wrong = NULL;
	bool damaged, entered;
	unsigned slot;

	if (!debug)
		return NULL;
	entered = sy__debug_enter(heap, &slot);
	sy__lock(&debug->lock);
	damaged = find_damage(debug, &finding);
	if (!damaged)
		wrong = sy__record_check(debug);
	sy__unlock(&debug->lock);
	sy__debug_leave(entered);
	if (damaged)
		debug->hooks->report(heap, &finding);
	return damaged ? sy_bug_name(finding.kind) : wrong;
}
