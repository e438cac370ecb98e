/*
 * Bonwick's slab allocator: magazines and their depot in front of the slabs (magazine=on).
 *
 * After Bonwick and Adams, "Magazines and Vmem: Extending the Slab Allocator to Many CPUs and Arbitrary Resources" (USENIX
 * 2001). A magazine is an array of pointers to free objects, its rounds. Each slot (the paper's CPU layer) has two:
 *
 *   loaded     where the slot allocates and frees: a stack;
 *   previous   the one that was loaded before, which is full or empty.
 *
 * An allocation that finds loaded empty exchanges the two if previous is full. Else it takes a full magazine from the cache's
 * depot, which gets the empty previous for it. Where the depot has none, one object comes from the slabs. A free is the mirror
 * image; where the depot has no empty magazine a new one is made, and where there is no memory for that, the object goes to its
 * slab. So a slot meets the depot once in as many calls as a magazine has rounds, and objects wander between slots by whole
 * magazines. Objects stay constructed in magazines, and need no link. Magazines come from caches that have none.
 *
 * How many rounds a magazine has depends on the size of the objects (kinds, below; figures of illumos). A depot whose lock slots
 * found taken more than MOST_CONTENTION times within a working set's time makes larger ones from then on. Each magazine knows
 * its kind, so smaller ones stay until they are not needed.
 *
 * Working set. When memory becomes short, the depot gives those of its full and of its empty magazines back that nobody needed
 * for working_set_seconds: as many as there were at least in that time. Who asks for all (shrink) gets what slots have as well.
 *
 * Fast path: pop and push; entries.h makes the calls of them. Instructions of a thread's own calls, by bench/count_instructions
 * (each with the jump from the library's entry): kmem_cache_alloc 20, kmem_cache_free 14; no lock, no function called. Counted as
 * slow: every call that leaves loaded.
 *
 * Locks: the depot's is on one level with the cache's own, and neither is taken under the other.
 */
#include <slabyard/slabyard.h>

#include "../../here.h"
#include "../../walk.h"
#include "bonwick.h"

#define MOST_CONTENTION 3u

typedef struct sy__bonwick_loaded entry_own;

/* ---- The fast path -------------------------------------------------------------------------------------------- */

static inline bool pop(const struct sy__bonwick_cache *cache, struct sy__bonwick_loaded *own, void **object)
{
	(void)cache;
	if (sy__unlikely(!own->rounds))
		return false;
	*object = own->loaded->objects[--own->rounds];
	own->allocations++;
	return true;
}

static inline bool push(const struct sy__bonwick_cache *cache, struct sy__bonwick_loaded *own, const struct sy_page *page, void *object)
{
	(void)cache;
	(void)page;
	if (sy__unlikely(own->rounds == own->capacity))
		return false;
	own->loaded->objects[own->rounds++] = object;
	return true;
}

#include "layer_entries.h"

/* ---- Magazines ------------------------------------------------------------------------------------------------ */

static const struct {
	uint32_t rounds;
	uint32_t above;   /* caches of objects of more bytes start with this kind */
	uint32_t at_most; /* beyond which objects never get more rounds; 0: nor any others */
} kinds[SY__BONWICK_KINDS] = {
	{ 1, 3200, 65536 }, { 3, 256, 32768 }, { 7, 64, 16384 }, { 15, 0, 8192 }, { 31, 0, 4096 },
	{ 47, 0, 2048 },    { 63, 0, 1024 },   { 95, 0, 512 },   { 143, 0, 0 },
};

size_t sy__bonwick_magazine_bytes(unsigned kind)
{
	return sizeof(struct sy__bonwick_magazine) + kinds[kind].rounds * sizeof(void *);
}

static struct sy_cache *cache_of(const struct sy__bonwick_cache *cache, unsigned kind)
{
	return sy__bonwick_heap(cache->cache.heap)->magazines[kind];
}

/* The slot loads a magazine, and what was loaded becomes previous. */
static void load(struct sy__bonwick_loaded *own, struct sy__bonwick_magazine *magazine, uint32_t rounds)
{
	own->previous = own->loaded;
	own->previous_rounds = own->rounds;
	own->loaded = magazine;
	own->rounds = rounds;
	own->capacity = magazine ? kinds[magazine->kind].rounds : 0;
}

/* Gives a magazine back, with what is in it. */
static void end_magazine(struct sy__bonwick_cache *cache, struct sy__bonwick_magazine *magazine, uint32_t rounds)
{
	sy__bonwick_put_many(cache, magazine->objects, rounds);
	sy_cache_free(cache_of(cache, magazine->kind), 0, magazine);
}

/* ---- The depot ------------------------------------------------------------------------------------------------ */

static void lock_depot(struct sy__bonwick_depot *depot)
{
	if (sy__likely(sy__lock_try(&depot->lock)))
		return;
	sy__lock(&depot->lock);
	depot->contention++;
}

static void stack(struct sy__bonwick_magazines *list, struct sy__bonwick_magazine *magazine)
{
	magazine->next = list->first;
	list->first = magazine;
	list->count++;
}

/* NULL: there is none. */
static struct sy__bonwick_magazine *unstack(struct sy__bonwick_magazines *list)
{
	struct sy__bonwick_magazine *magazine = list->first;

	if (!magazine)
		return NULL;
	list->first = magazine->next;
	if (--list->count < list->least)
		list->least = list->count;
	return magazine;
}

/* Loads a full magazine, or an empty one, for the slot's previous, which is the contrary. False: the depot has none. */
static bool exchange(struct sy__bonwick_cache *cache, struct sy__bonwick_loaded *own, bool full)
{
	struct sy__bonwick_depot *depot = &cache->depot;
	struct sy__bonwick_magazine *magazine;

	if (own->previous && (own->previous_rounds > 0) == full) {
		load(own, own->previous, own->previous_rounds);
		return true;
	}
	lock_depot(depot);
	magazine = unstack(full ? &depot->full : &depot->empty);
	if (magazine && own->previous)
		stack(full ? &depot->empty : &depot->full, own->previous);
	sy__unlock(&depot->lock);
	if (magazine)
		load(own, magazine, full ? kinds[magazine->kind].rounds : 0);
	return magazine != NULL;
}

/* Puts a new magazine into the depot, of those that are empty; false: no memory. Called outside local sections. */
static bool make_magazine(struct sy__bonwick_cache *cache, unsigned slot)
{
	unsigned kind = __atomic_load_n(&cache->depot.kind, __ATOMIC_RELAXED);
	struct sy__bonwick_magazine *magazine = sy_cache_alloc(cache_of(cache, kind), slot, SY_NO_RECLAIM, SY_ANY_NODE);

	if (!magazine)
		return false;
	magazine->kind = kind;
	lock_depot(&cache->depot);
	stack(&cache->depot.empty, magazine);
	sy__unlock(&cache->depot.lock);
	return true;
}

/* ---- Off the fast path ---------------------------------------------------------------------------------------- */

static void *take(struct sy__bonwick_cache *cache, unsigned slot)
{
	struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);
	void *object = NULL;

	if (sy__bonwick_is_shared(cache, slot))
		return sy__bonwick_take_shared(cache, slot);
	sy__local_begin(slot);
	if (own->rounds || exchange(cache, own, true))
		pop(cache, own, &object);
	sy__local_end(slot);
	return object ? object : sy__bonwick_take_shared(cache, slot);
}

static SY__COLD void *alloc_slow(struct sy__bonwick_cache *cache, unsigned slot, unsigned flags, int node)
{
	return sy__bonwick_alloc_slow(cache, slot, flags, node, take);
}

static bool put(struct sy__bonwick_cache *cache, unsigned slot, void *object)
{
	struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);
	bool done;

	sy__local_begin(slot);
	done = (own->rounds < own->capacity || exchange(cache, own, false)) && push(cache, own, NULL, object);
	sy__local_end(slot);
	return done;
}

static SY__COLD void free_slow(struct sy__bonwick_cache *cache, unsigned slot, void *object)
{
	if (sy__bonwick_is_shared(cache, slot)) {
		sy__bonwick_put_shared(cache, object);
		return;
	}
	sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_frees);
	if (!put(cache, slot, object) && (!make_magazine(cache, slot) || !put(cache, slot, object)))
		sy__bonwick_put_shared(cache, object);
}

/* ---- Giving back ---------------------------------------------------------------------------------------------- */

static void drain(struct sy__bonwick_cache *cache, unsigned slot)
{
	struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot), had = *own;

	if (!own->loaded)
		return;
	sy__local_begin(slot);
	had = *own;
	load(own, NULL, 0);
	load(own, NULL, 0);
	sy__local_end(slot);
	end_magazine(cache, had.loaded, had.rounds);
	if (had.previous)
		end_magazine(cache, had.previous, had.previous_rounds);
}

/* Gives so many magazines of a list back, or all there are. */
static void end_some(struct sy__bonwick_cache *cache, struct sy__bonwick_magazines *list, uint64_t most)
{
	while (most--) {
		struct sy__bonwick_magazine *magazine;

		lock_depot(&cache->depot);
		magazine = unstack(list);
		sy__unlock(&cache->depot.lock);
		if (!magazine)
			return;
		end_magazine(cache, magazine, list == &cache->depot.full ? kinds[magazine->kind].rounds : 0);
	}
}

/* A working set's time has passed: what it leaves is given back, and the next begins. */
static void end_working_set(struct sy__bonwick_cache *cache)
{
	struct sy__bonwick_depot *depot = &cache->depot;
	uint64_t full, empty;

	sy__lock(&depot->lock);
	full = depot->full.least;
	empty = depot->empty.least;
	depot->full.least = depot->full.count - full;
	depot->empty.least = depot->empty.count - empty;
	if (depot->contention > MOST_CONTENTION && cache->cache.size < kinds[depot->kind].at_most)
		__atomic_store_n(&depot->kind, depot->kind + 1, __ATOMIC_RELAXED);
	depot->contention = 0;
	depot->since = sy__bonwick_time();
	sy__unlock(&depot->lock);
	end_some(cache, &depot->full, full);
	end_some(cache, &depot->empty, empty);
}

static void reap(struct sy__bonwick_cache *cache, uint32_t least_age)
{
	if (!least_age) {
		sy__bonwick_drain_slots(cache);
		end_some(cache, &cache->depot.full, UINT64_MAX);
		end_some(cache, &cache->depot.empty, UINT64_MAX);
	} else if (sy__bonwick_time() - cache->depot.since >= least_age) {
		end_working_set(cache);
	}
}

static void init(struct sy__bonwick_cache *cache)
{
	unsigned kind = 0;

	while (cache->cache.size <= kinds[kind].above)
		kind++;
	cache->depot = (struct sy__bonwick_depot){ .lock = SY__LOCK_INIT, .kind = kind, .since = sy__bonwick_time() };
}

/* ---- Counting, verifying, walking ----------------------------------------------------------------------------- */

static void counts(const struct sy__bonwick_cache *cache, unsigned slot, struct sy_cache_counts *counts)
{
	const struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);

	counts->objects_cached += (uint64_t)own->rounds + own->previous_rounds;
	counts->allocations += own->allocations;
}

static void depot_counts(struct sy__bonwick_cache *cache, struct sy_cache_counts *counts)
{
	sy__lock(&cache->depot.lock);
	for (const struct sy__bonwick_magazine *at = cache->depot.full.first; at; at = at->next)
		counts->objects_cached += kinds[at->kind].rounds;
	sy__unlock(&cache->depot.lock);
}

static const char *check_rounds(const struct sy__bonwick_cache *cache, const struct sy__bonwick_magazine *magazine, uint32_t rounds)
{
	if (magazine ? magazine->kind >= SY__BONWICK_KINDS || rounds > kinds[magazine->kind].rounds : rounds)
		return "bonwick: a magazine has more rounds than room";
	for (uint32_t i = 0; i < rounds; i++)
		if (!sy__bonwick_is_buffer(cache, magazine->objects[i]))
			return "bonwick: a magazine holds what is no buffer of the cache";
	return NULL;
}

static const char *check(const struct sy__bonwick_cache *cache, unsigned slot)
{
	const struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);
	const char *wrong = check_rounds(cache, own->loaded, own->rounds);

	if (!wrong && own->capacity != (own->loaded ? kinds[own->loaded->kind].rounds : 0))
		wrong = "bonwick: a slot takes its magazine for larger or smaller than it is";
	if (!wrong)
		wrong = check_rounds(cache, own->previous, own->previous_rounds);
	if (!wrong && own->previous && own->previous_rounds && own->previous_rounds != kinds[own->previous->kind].rounds)
		wrong = "bonwick: a slot's previous magazine is neither full nor empty";
	return wrong;
}

static const char *check_depot(const struct sy__bonwick_cache *cache)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct sy__bonwick_magazines *list = i ? &cache->depot.empty : &cache->depot.full;
		uint64_t count = 0;

		for (const struct sy__bonwick_magazine *at = list->first; at; at = at->next) {
			const char *wrong = count++ < list->count ? check_rounds(cache, at, i ? 0 : kinds[at->kind].rounds)
			                                          : "bonwick: a list of the depot runs in a circle";

			if (wrong)
				return wrong;
		}
		if (count != list->count || list->least > count)
			return "bonwick: the depot has not as many magazines as counted";
	}
	return NULL;
}

static void mark(struct sy__walk *walk, const struct sy__bonwick_magazine *magazine, uint32_t rounds, enum sy_part_state state,
                 const char *list, unsigned owner, uint64_t *place)
{
	while (rounds--)
		sy__walk_mark(walk, magazine->objects[rounds], state, list, owner, (*place)++);
}

static void walk(struct sy__walk *walk, const struct sy__bonwick_cache *cache, unsigned slot)
{
	const struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);
	uint64_t loaded = 0, previous = 0;

	mark(walk, own->loaded, own->rounds, SY_PART_SLOT, "loaded", slot, &loaded);
	mark(walk, own->previous, own->previous_rounds, SY_PART_SLOT, "previous", slot, &previous);
}

static void walk_depot(struct sy__walk *walk, const struct sy__bonwick_cache *cache)
{
	uint64_t place = 0;

	for (const struct sy__bonwick_magazine *at = cache->depot.full.first; at; at = at->next)
		mark(walk, at, kinds[at->kind].rounds, SY_PART_NODE, "depot", 0, &place);
}

const struct sy__bonwick_layer sy__bonwick_magazine_layer = {
	.slot_bytes = sizeof(struct sy__bonwick_loaded),
	.alloc = entry_alloc,
	.free = entry_free,
	.alloc_here = entry_alloc_here,
	.free_here = entry_free_here,
	.init = init,
	.drain = drain,
	.reap = reap,
	.counts = counts,
	.shared_counts = depot_counts,
	.check = check,
	.check_shared = check_depot,
	.walk = walk,
	.walk_shared = walk_depot,
};
