/*
 * Bonwick's slab allocator: counting, verifying and walking magazines (magazine.c).
 *
 * A slot's loaded magazine may have any number of rounds, which the slot has; every other magazine is full or empty, and says so
 * itself. Each round must be a buffer of the cache. check.c then compares the rounds of all magazines with the buffers that left
 * the slabs. In a walk, places count from the round that is allocated next.
 */
#include "../../walk.h"
#include "bonwick.h"

static uint32_t rounds(const struct sy__bonwick_magazine *magazine)
{
	return magazine ? magazine->rounds : 0;
}

void sy__bonwick_magazine_counts(const struct sy__bonwick_cache *cache, unsigned slot, struct sy_cache_counts *counts)
{
	const struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);

	counts->objects_cached += (uint64_t)own->rounds + rounds(own->previous);
	counts->allocations += own->allocations;
}

void sy__bonwick_depot_counts(struct sy__bonwick_cache *cache, struct sy_cache_counts *counts)
{
	sy__lock(&cache->depot.lock);
	for (const struct sy__bonwick_magazine *at = cache->depot.full.first; at; at = at->next)
		counts->objects_cached += at->rounds;
	sy__unlock(&cache->depot.lock);
}

/* Checks a magazine, or none, that must have `count` rounds. */
static const char *check_rounds(const struct sy__bonwick_cache *cache, const struct sy__bonwick_magazine *magazine, uint32_t count)
{
	if (magazine ? magazine->kind >= SY__BONWICK_KINDS || count > sy__bonwick_capacity(magazine) : count)
		return "bonwick: a magazine has more rounds than room";
	for (uint32_t i = 0; i < count; i++)
		if (!sy__bonwick_is_buffer(cache, magazine->objects[i]))
			return "bonwick: a magazine holds what is no buffer of the cache";
	return NULL;
}

const char *sy__bonwick_magazine_check(const struct sy__bonwick_cache *cache, unsigned slot)
{
	const struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);
	uint32_t previous = rounds(own->previous);
	const char *wrong = check_rounds(cache, own->loaded, own->rounds);

	if (!wrong && own->capacity != sy__bonwick_capacity(own->loaded))
		wrong = "bonwick: a slot takes its magazine for larger or smaller than it is";
	if (!wrong)
		wrong = check_rounds(cache, own->previous, previous);
	if (!wrong && previous && previous != sy__bonwick_capacity(own->previous))
		wrong = "bonwick: a slot's previous magazine is neither full nor empty";
	return wrong;
}

static const char *check_list(const struct sy__bonwick_cache *cache, const struct sy__bonwick_magazines *list, bool full)
{
	const char *wrong = NULL;
	uint64_t count = 0;

	for (const struct sy__bonwick_magazine *at = list->first; at && !wrong; at = at->next)
		if (count++ == list->count || at->rounds != (full ? sy__bonwick_capacity(at) : 0))
			wrong = "bonwick: a list of the depot runs in a circle, or has a magazine that is neither full nor empty";
		else
			wrong = check_rounds(cache, at, at->rounds);
	if (!wrong && (count != list->count || list->least > count))
		wrong = "bonwick: the depot has not as many magazines as counted";
	return wrong;
}

const char *sy__bonwick_depot_check(const struct sy__bonwick_cache *cache)
{
	const char *wrong = check_list(cache, &cache->depot.full, true);

	return wrong ? wrong : check_list(cache, &cache->depot.empty, false);
}

static uint64_t mark(struct sy__walk *walk, const struct sy__bonwick_magazine *magazine, uint32_t count, enum sy_part_state state,
                     const char *list, unsigned owner, uint64_t place)
{
	while (count--)
		sy__walk_mark(walk, magazine->objects[count], state, list, owner, place++);
	return place;
}

void sy__bonwick_magazine_walk(struct sy__walk *walk, const struct sy__bonwick_cache *cache, unsigned slot)
{
	const struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);

	mark(walk, own->loaded, own->rounds, SY_PART_SLOT, "loaded", slot, 0);
	mark(walk, own->previous, rounds(own->previous), SY_PART_SLOT, "previous", slot, 0);
}

void sy__bonwick_depot_walk(struct sy__walk *walk, const struct sy__bonwick_cache *cache)
{
	uint64_t place = 0;

	for (const struct sy__bonwick_magazine *at = cache->depot.full.first; at; at = at->next)
		place = mark(walk, at, at->rounds, SY_PART_NODE, "depot", 0, place);
}
