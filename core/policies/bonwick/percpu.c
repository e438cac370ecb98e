/*
 * Bonwick's slab allocator: per-CPU lists in front of the slabs (percpu=N).
 *
 * After the per-CPU layer of McKenney and Slingwine, "Efficient Kernel Memory Allocation on Shared-Memory Multiprocessors"
 * (USENIX 1993), which Bonwick (1994, section 7.2) suggests on top of his slabs. Each slot has two lists of up to N free objects,
 * main and aux. It allocates from main and frees to main. When main runs out, a full aux takes its place; if aux is empty too, N
 * objects come from the slabs under one lock. When main is full it becomes aux, and the old aux goes back to the slabs. So
 * at least N calls lie between two that leave the slot, in either direction.
 *
 * The lists are linked through the last words of the objects. Constructed objects have an extra word for the link, large ones
 * too (geometry.c), so they stay constructed while they are on a list.
 *
 * The slot that threads without a slot share has no lists, as several threads may free on it at once.
 *
 * Fast path: pop and push; entries.h makes the calls of them. There is no lock, and kmalloc and kfree jump to the cache's own entry.
 * Instructions of hot calls (docs/cost.md): kmem_cache_alloc 20, kmem_cache_free 16, kmalloc 43, kfree 54. Counted as slow:
 * allocations that refilled the slot or grew the cache, and frees that gave a list back.
 *
 * Lists are drained when memory is short, when a cache shrinks, and when a slot ends.
 */
#include "../../this_slot.h"
#include "../../walk.h"
#include "bonwick.h"

typedef struct sy__bonwick_lists entry_own;

/* ---- The fast path -------------------------------------------------------------------------------------------- */

static inline bool pop(const struct sy__bonwick_cache *cache, struct sy__bonwick_lists *own, void **object)
{
	if (sy__unlikely(!own->main))
		return false;
	*object = own->main;
	own->main = *sy__bonwick_next(cache, *object);
	own->main_count--;
	own->allocations++;
	return true;
}

static inline bool push(const struct sy__bonwick_cache *cache, struct sy__bonwick_lists *own, const struct sy_page *page, void *object)
{
	(void)page;
	if (sy__unlikely(own->main_count >= cache->percpu))
		return false;
	*sy__bonwick_next(cache, object) = own->main;
	own->main = object;
	own->main_count++;
	return true;
}

#include "layer_entries.h"

/* ---- Off the fast path ---------------------------------------------------------------------------------------- */

static void *take(struct sy__bonwick_cache *cache, unsigned slot)
{
	struct sy__bonwick_lists *own = sy__bonwick_slot(cache, slot);
	void *object = NULL;

	sy__local_begin(slot);
	if (!own->main) {
		own->main = own->aux;
		own->main_count = own->aux_count;
		own->aux = NULL;
		own->aux_count = 0;
	}
	if (!own->main)
		own->main = sy__bonwick_take_list(cache, cache->percpu, &own->main_count);
	pop(cache, own, &object);
	sy__local_end(slot);
	return object;
}

static void put(struct sy__bonwick_cache *cache, unsigned slot, void *object)
{
	struct sy__bonwick_lists *own = sy__bonwick_slot(cache, slot);
	void *surplus;

	sy__local_begin(slot);
	surplus = own->aux;
	own->aux = own->main;
	own->aux_count = own->main_count;
	*sy__bonwick_next(cache, object) = NULL;
	own->main = object;
	own->main_count = 1;
	sy__local_end(slot);
	if (surplus)
		sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_frees);
	sy__bonwick_put_list(cache, surplus);
}

static void drain(struct sy__bonwick_cache *cache, unsigned slot)
{
	struct sy__bonwick_lists *own = sy__bonwick_slot(cache, slot);
	void *main, *aux;

	if (!own->main && !own->aux)
		return;
	sy__local_begin(slot);
	main = own->main;
	aux = own->aux;
	own->main = NULL;
	own->aux = NULL;
	own->main_count = 0;
	own->aux_count = 0;
	sy__local_end(slot);
	sy__bonwick_put_list(cache, main);
	sy__bonwick_put_list(cache, aux);
}

static void reap(struct sy__bonwick_cache *cache, uint32_t least_age)
{
	(void)least_age;
	sy__bonwick_drain_slots(cache);
}

/* Such a slot's main list has no object, and looks full. */
static void close_slot(void *slot)
{
	((struct sy__bonwick_lists *)slot)->main_count = UINT32_MAX;
}

/* ---- Counting, verifying, walking ----------------------------------------------------------------------------- */

static void counts(const struct sy__bonwick_cache *cache, unsigned slot, struct sy_cache_counts *counts)
{
	const struct sy__bonwick_lists *own = sy__bonwick_slot(cache, slot);

	counts->objects_cached += (uint64_t)own->main_count + own->aux_count;
	counts->allocations += own->allocations;
}

static const char *check_list(const struct sy__bonwick_cache *cache, char *objects, uint32_t count, char **last)
{
	uint32_t length = 0;

	*last = NULL;
	if (count > cache->percpu)
		return "bonwick: a slot's list is longer than allowed";
	for (char *at = objects; at; at = *sy__bonwick_next(cache, at)) {
		if (++length > count || !sy__bonwick_is_buffer(cache, at))
			return "bonwick: a slot's list is longer than counted, or holds what is no buffer of the cache";
		*last = at;
	}
	return length == count ? NULL : "bonwick: a slot's list is shorter than counted";
}

/* No object is on both lists: their last ones differ. */
static const char *check(const struct sy__bonwick_cache *cache, unsigned slot)
{
	const struct sy__bonwick_lists *own = sy__bonwick_slot(cache, slot);
	char *main_last, *aux_last;
	const char *wrong = check_list(cache, own->main, own->main_count, &main_last);

	if (!wrong)
		wrong = check_list(cache, own->aux, own->aux_count, &aux_last);
	if (!wrong && main_last && main_last == aux_last)
		wrong = "bonwick: a buffer is on both lists of a slot";
	return wrong;
}

static void walk(struct sy__walk *walk, const struct sy__bonwick_cache *cache, unsigned slot)
{
	const struct sy__bonwick_lists *own = sy__bonwick_slot(cache, slot);

	sy__walk_chain(walk, own->main, cache->linkage, own->main_count, SY_PART_SLOT, "main", slot);
	sy__walk_chain(walk, own->aux, cache->linkage, own->aux_count, SY_PART_SLOT, "aux", slot);
}

const struct sy__bonwick_layer sy__bonwick_percpu = {
	.slot_bytes = sizeof(struct sy__bonwick_lists),
	.linked = true,
	.alloc = entry_alloc,
	.free = entry_free,
	.alloc_this_slot = entry_alloc_this_slot,
	.free_this_slot = entry_free_this_slot,
	.close_slot = close_slot,
	.drain = drain,
	.reap = reap,
	.counts = counts,
	.check = check,
	.walk = walk,
};
