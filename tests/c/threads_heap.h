/*
 * A small heap of threads, for tests that look at what lies where in it: how many slabs a cache has, how often the heap has
 * asked for pages. And threads that work by turns, so that figures are exact.
 */
#ifndef THREADS_HEAP_H
#define THREADS_HEAP_H

#include "core/this_slot.h"
#include "threads_support.h"

static inline struct sy_heap *open_small(const char *spec)
{
	const struct sy_heap_options options = { .reserve = SMALL_RESERVE };
	const char *error = "";
	struct sy_heap *heap = sy_heap_open(spec, &options, &error);

	CHECK_TEXT(error, "");
	return heap;
}

/* One that doesn't scavenge while the test goes on, however long that takes. */
static inline struct sy_heap *open_unscavenged(const char *spec)
{
	struct sy_heap *heap = open_small(spec);

	sy__time_set(&heap->scavenge_due, UINT64_MAX);
	return heap;
}

/* What happens each second. */
static inline void scavenge(struct sy_heap *heap)
{
	sy__scavenge_soon(heap);
	sy__heap_tick(heap);
}

static inline struct sy_cache *own_cache(struct sy_heap *heap, size_t size)
{
	const struct sy_cache_config config = { .name = "own", .size = size, .flags = SY_CACHE_NO_MERGE };
	struct sy_cache *cache = sy_cache_create(heap, &config);

	CHECK(cache != NULL);
	return cache;
}

static inline struct sy_cache_counts count(struct sy_heap *heap, struct sy_cache *cache)
{
	struct sy_cache_counts counts;

	CHECK_FINE(sy_heap_check(heap));
	sy_cache_count(cache, &counts);
	return counts;
}

static inline uint64_t page_requests(struct sy_heap *heap)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return counts.requests;
}

/* With memory. */
static inline uint64_t committed_pages(struct sy_heap *heap)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return counts.committed_pages;
}

/* ---- Slabs by the size of their objects ------------------------------------------------------------------------------ */

struct slabs_seen {
	size_t least, below; /* sizes that are looked for */
	unsigned slabs;
};

static inline bool see_slab_of_size(void *context, const struct sy_slab *slab)
{
	struct slabs_seen *seen = context;

	seen->slabs += slab->cache && slab->cache->object_size >= seen->least && slab->cache->object_size < seen->below;
	return true;
}

static inline bool see_no_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	return context && slab && part;
}

static inline unsigned slabs_of_size(struct sy_heap *heap, size_t least, size_t below)
{
	struct slabs_seen seen = { least, below, 0 };
	const struct sy_visitor visitor = { see_slab_of_size, see_no_part, &seen, NULL };

	CHECK_FINE(sy_heap_check(heap));
	CHECK(sy_heap_walk(heap, &visitor));
	return seen.slabs;
}

/* ---- Threads ----------------------------------------------------------------------------------------------------------- */

/* In a thread of its own, which has ended when this returns. */
static inline void run_thread(void *(*work)(void *), void *argument)
{
	pthread_t thread;

	CHECK_EQUAL(pthread_create(&thread, NULL, work, argument), 0);
	pthread_join(thread, NULL);
}

/* Another thread that does one thing after another. */
struct worker {
	pthread_t thread;
	void (*work)(void); /* NULL: it ends */
	atomic_uint turn;   /* odd: the worker's */
};

static inline void *worker_runs(void *argument)
{
	struct worker *worker = argument;

	for (;;) {
		while (worker->turn % 2 == 0)
			sched_yield();
		if (!worker->work)
			return NULL;
		worker->work();
		worker->turn++;
	}
}

static inline void worker_begin(struct worker *worker)
{
	worker->turn = 0;
	CHECK_EQUAL(pthread_create(&worker->thread, NULL, worker_runs, worker), 0);
}

/* Has the thread do something, and waits until it is done. */
static inline void worker_does(struct worker *worker, void (*work)(void))
{
	worker->work = work;
	worker->turn++;
	while (work && worker->turn % 2)
		sched_yield();
}

static inline void worker_end(struct worker *worker)
{
	worker_does(worker, NULL);
	pthread_join(worker->thread, NULL);
}

#endif
