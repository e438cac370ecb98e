/*
 * Bonwick's slab allocator: magazines and their depot in front of the slabs (magazine=on).
 *
 * After Bonwick and Adams, "Magazines and Vmem: Extending the Slab Allocator to Many CPUs and Arbitrary Resources" (USENIX 2001).
 * A magazine is an array of pointers to free objects, its rounds. Each slot (the paper's CPU layer) has two: it allocates from and
 * frees to `loaded`, a stack; `previous` was loaded before, and is full or empty.
 *
 * An allocation that finds loaded empty exchanges the two if previous is full. Otherwise it trades the empty previous for a full
 * magazine of the cache's depot. If the depot has none, one object comes from the slabs. A free is the mirror image; if the depot
 * has no empty magazine a new one is made, and if there is no memory for that, the object goes to its slab. So a slot meets
 * the depot once in as many calls as a magazine has rounds, and objects move between slots by whole magazines. Objects stay
 * constructed in magazines, and need no link. Magazines come from caches that have no layer in front.
 *
 * The size of the objects decides how many rounds a magazine has (kinds, below; figures of illumos). If slots found the depot's
 * lock taken more than MOST_CONTENTION times within a working set's time, new magazines are larger from then on. Each magazine
 * knows its kind, so smaller ones stay until they are not needed.
 *
 * Working set. When memory is short, the depot gives back the full and the empty magazines that nobody needed for
 * working_set_seconds: as many as its minimum in that time. shrink also takes what slots have.
 *
 * Fast path: pop and push, without a lock or a function that is called. Instructions of hot calls (docs/cost.md): kmem_cache_alloc 20,
 * kmem_cache_free 14, kmalloc 43, kfree 52. Calls that leave the loaded magazine count as slow.
 *
 * Locks: the depot's is on one level with the cache's own; neither is taken under the other. Counting and checks: magazine_check.c.
 */
#include <slabyard/slabyard.h>

#include "../../this_slot.h"
#include "bonwick.h"

#define MOST_CONTENTION 3u
#define MOST_FAILURES 10u

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
	uint32_t at_most; /* caches of larger objects never move on to the next kind; 0: none does */
} kinds[SY__BONWICK_KINDS] = {
	{ 1, 3200, 65536 }, { 3, 256, 32768 }, { 7, 64, 16384 }, { 15, 0, 8192 }, { 31, 0, 4096 },
	{ 47, 0, 2048 },    { 63, 0, 1024 },   { 95, 0, 512 },   { 143, 0, 0 },
};

uint32_t sy__bonwick_rounds(unsigned kind)
{
	return kinds[kind].rounds;
}

uint32_t sy__bonwick_capacity(const struct sy__bonwick_magazine *magazine)
{
	return magazine ? kinds[magazine->kind].rounds : 0;
}

static struct sy_cache *cache_of(const struct sy__bonwick_cache *cache, unsigned kind)
{
	return sy__bonwick_heap(cache->cache.heap)->magazines[kind];
}

/* Loads a magazine, or none; what was loaded becomes previous. */
static void load(struct sy__bonwick_loaded *own, struct sy__bonwick_magazine *magazine)
{
	if (own->loaded)
		own->loaded->rounds = own->rounds;
	own->previous = own->loaded;
	own->loaded = magazine;
	own->rounds = magazine ? magazine->rounds : 0;
	own->capacity = sy__bonwick_capacity(magazine);
}

/* Gives a magazine back, and its rounds to the slabs. */
static void end_magazine(struct sy__bonwick_cache *cache, struct sy__bonwick_magazine *magazine)
{
	if (!magazine)
		return;
	sy__bonwick_put_many(cache, magazine->objects, magazine->rounds);
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

/* Puts a full or an empty magazine on its list. */
static void stack(struct sy__bonwick_depot *depot, struct sy__bonwick_magazine *magazine)
{
	struct sy__bonwick_magazines *list = magazine->rounds ? &depot->full : &depot->empty;

	magazine->next = list->first;
	list->first = magazine;
	list->count++;
}

/* NULL: the list is empty. */
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

/* Loads a full magazine, or an empty one: previous, or one of the depot's for previous. False: the depot has none. */
static bool exchange(struct sy__bonwick_cache *cache, struct sy__bonwick_loaded *own, bool full)
{
	struct sy__bonwick_depot *depot = &cache->depot;
	struct sy__bonwick_magazine *magazine = own->previous;

	if (!magazine || (magazine->rounds > 0) != full) {
		lock_depot(depot);
		magazine = unstack(full ? &depot->full : &depot->empty);
		if (magazine && own->previous)
			stack(depot, own->previous);
		sy__unlock(&depot->lock);
	}
	if (magazine)
		load(own, magazine);
	return magazine != NULL;
}

/* When there was no memory for a magazine, the next 1, 3, 7, … frees do not ask again. A refused request costs much more than a free to the
 * slabs, and memory may be short for long, as slabs keep what they get. Relaxed: of threads that ask at once, some ask too often. */
static bool skips_making(struct sy__bonwick_depot *depot)
{
	uint16_t left = __atomic_load_n(&depot->skip, __ATOMIC_RELAXED);

	if (left)
		__atomic_store_n(&depot->skip, (uint16_t)(left - 1), __ATOMIC_RELAXED);
	return left;
}

static void note_making(struct sy__bonwick_depot *depot, bool made)
{
	unsigned failures = made ? 0 : __atomic_load_n(&depot->failures, __ATOMIC_RELAXED) + 1u;

	failures = failures < MOST_FAILURES ? failures : MOST_FAILURES;
	__atomic_store_n(&depot->failures, (uint8_t)failures, __ATOMIC_RELAXED);
	__atomic_store_n(&depot->skip, (uint16_t)((1u << failures) - 1), __ATOMIC_RELAXED);
}

/* Puts a new magazine into the depot; false: no memory. Called outside local sections. */
static bool make_magazine(struct sy__bonwick_cache *cache, unsigned slot)
{
	unsigned kind = __atomic_load_n(&cache->depot.kind, __ATOMIC_RELAXED);
	struct sy__bonwick_magazine *magazine;

	if (skips_making(&cache->depot))
		return false;
	magazine = sy_cache_alloc(cache_of(cache, kind), slot, SY_NO_RECLAIM, SY_ANY_NODE);
	note_making(&cache->depot, magazine);
	if (!magazine)
		return false;
	magazine->kind = kind;
	magazine->rounds = 0;
	lock_depot(&cache->depot);
	stack(&cache->depot, magazine);
	sy__unlock(&cache->depot.lock);
	return true;
}

/* ---- Off the fast path ---------------------------------------------------------------------------------------- */

static void *take(struct sy__bonwick_cache *cache, unsigned slot)
{
	struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);
	void *object = NULL;

	sy__local_begin(slot);
	if (own->rounds || exchange(cache, own, true))
		pop(cache, own, &object);
	sy__local_end(slot);
	return object ? object : sy__bonwick_take_shared(cache, slot);
}

static bool put_once(struct sy__bonwick_cache *cache, unsigned slot, void *object)
{
	struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);
	bool done;

	sy__local_begin(slot);
	done = (own->rounds < own->capacity || exchange(cache, own, false)) && push(cache, own, NULL, object);
	sy__local_end(slot);
	return done;
}

static void put(struct sy__bonwick_cache *cache, unsigned slot, void *object)
{
	sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_frees);
	if (!put_once(cache, slot, object) && (!make_magazine(cache, slot) || !put_once(cache, slot, object)))
		sy__bonwick_put_shared(cache, object);
}

/* ---- Giving back ---------------------------------------------------------------------------------------------- */

static void drain(struct sy__bonwick_cache *cache, unsigned slot)
{
	struct sy__bonwick_loaded *own = sy__bonwick_slot(cache, slot);
	struct sy__bonwick_magazine *loaded, *previous;

	if (!own->loaded)
		return;
	sy__local_begin(slot);
	previous = own->previous;
	load(own, NULL);
	loaded = own->previous;
	load(own, NULL);
	sy__local_end(slot);
	end_magazine(cache, loaded);
	end_magazine(cache, previous);
}

/* Gives up to `most` magazines of a list back. */
static void end_some(struct sy__bonwick_cache *cache, struct sy__bonwick_magazines *list, uint64_t most)
{
	struct sy__bonwick_magazine *magazine;

	do {
		if (!most--)
			return;
		lock_depot(&cache->depot);
		magazine = unstack(list);
		sy__unlock(&cache->depot.lock);
		end_magazine(cache, magazine);
	} while (magazine);
}

/* Starts a list's next working set; how many magazines the last one did not need. */
static uint64_t next_working_set(struct sy__bonwick_magazines *list)
{
	uint64_t unneeded = list->least;

	list->least = list->count - unneeded;
	return unneeded;
}

/* A working set's time has passed: gives back what it did not need. */
static void end_working_set(struct sy__bonwick_cache *cache)
{
	struct sy__bonwick_depot *depot = &cache->depot;
	uint64_t full, empty;

	sy__lock(&depot->lock);
	full = next_working_set(&depot->full);
	empty = next_working_set(&depot->empty);
	if (depot->contention > MOST_CONTENTION && cache->cache.size < kinds[depot->kind].at_most)
		__atomic_store_n(&depot->kind, (uint8_t)(depot->kind + 1), __ATOMIC_RELAXED);
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
	cache->depot = (struct sy__bonwick_depot){ .lock = SY__LOCK_INIT, .kind = (uint8_t)kind, .since = sy__bonwick_time() };
}

const struct sy__bonwick_layer sy__bonwick_magazine_layer = {
	.slot_bytes = sizeof(struct sy__bonwick_loaded),
	.alloc = entry_alloc,
	.free = entry_free,
	.alloc_this_slot = entry_alloc_this_slot,
	.free_this_slot = entry_free_this_slot,
	.init = init,
	.drain = drain,
	.reap = reap,
	.counts = sy__bonwick_magazine_counts,
	.shared_counts = sy__bonwick_depot_counts,
	.check = sy__bonwick_magazine_check,
	.check_shared = sy__bonwick_depot_check,
	.walk = sy__bonwick_magazine_walk,
	.walk_shared = sy__bonwick_depot_walk,
};
