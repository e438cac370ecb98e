/*
 * Threads that end and leave their objects to others. A server hands all its objects on to a thread that it creates, and ends
 * (Larson and Krishnan 1998). Rounds of threads exchange objects, and end together. Memory stays near what is in use, however
 * many generations there were, and what ended threads had free serves living ones.
 */
#include "threads_heap.h"

#define SERVED 2000u
#define MOST_BYTES 1000u
#define LANES 2u
#define THREADS 4u
#define ROUNDS 30u
#define STEPS 4000u
#define MOST_TIMES 4u /* of the memory that is in use */

static struct sy_heap *heap;

/* ---- A server ---------------------------------------------------------------------------------------------------------- */

struct lane {
	unsigned char *served[SERVED];
	unsigned generation, generations;
	uint64_t random;
	atomic_bool over;
};

static struct lane lanes[LANES];

static void *serves(void *);

static void begin(struct lane *lane)
{
	pthread_t thread;
	int failed = pthread_create(&thread, NULL, serves, lane);

	CHECK_EQUAL(failed, 0);
	if (failed)
		lane->over = true;
	else
		pthread_detach(thread);
}

static void replace(struct lane *lane, unsigned at)
{
	if (lane->served[at])
		CHECK_EQUAL(*lane->served[at], at % 256);
	sy_mfree(heap, lane->served[at]);
	lane->served[at] = sy_malloc(heap, 8 + (size_t)(check_random(&lane->random) % MOST_BYTES), 0);
	*lane->served[at] = (unsigned char)(at % 256);
}

/* Creates the next one, and ends. */
static void *serves(void *argument)
{
	struct lane *lane = argument;

	for (unsigned i = 0; i < 5 * SERVED; i++)
		replace(lane, (unsigned)(check_random(&lane->random) % SERVED));
	if (++lane->generation == lane->generations)
		lane->over = true;
	else
		begin(lane);
	return NULL;
}

static void end_lanes(void)
{
	for (unsigned i = 0; i < LANES; i++)
		for (unsigned at = 0; at < SERVED; at++)
			sy_mfree(heap, lanes[i].served[at]);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_shrink(heap);
	CHECK_EQUAL(heap->counters.slab_pages, 0);
	sy_heap_close(heap);
}

static void serve(const char *policy, unsigned generations)
{
	const uint64_t live = LANES * SERVED * MOST_BYTES / 2 / SY_PAGE_SIZE;

	heap = open_small(policy);
	memset(lanes, 0, sizeof(lanes));
	for (unsigned i = 0; i < LANES; i++) {
		lanes[i].random = i + 1;
		lanes[i].generations = generations;
		begin(&lanes[i]);
	}
	for (unsigned i = 0; i < LANES; i++)
		while (!lanes[i].over)
			sched_yield();
	CHECK_FINE(sy_heap_check(heap));
	CHECK(heap->counters.slab_pages <= MOST_TIMES * live);
	end_lanes();
}

/* ---- Rounds ------------------------------------------------------------------------------------------------------------- */

static void *_Atomic cells[SERVED];

static void *exchanges(void *seed)
{
	uint64_t random = *(const uint64_t *)seed;

	for (unsigned i = 0; i < STEPS; i++) {
		size_t bytes = 8 + (size_t)(check_random(&random) % MOST_BYTES);
		void *object = sy_malloc(heap, bytes, 0);

		memset(object, 1, bytes);
		sy_mfree(heap, atomic_exchange(&cells[check_random(&random) % SERVED], object));
	}
	return NULL;
}

static void a_round(unsigned round)
{
	pthread_t threads[THREADS];
	uint64_t seeds[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		seeds[i] = 1 + i + round * THREADS;
		CHECK_EQUAL(pthread_create(&threads[i], NULL, exchanges, &seeds[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void rounds(const char *policy)
{
	const uint64_t live = SERVED * MOST_BYTES / 2 / SY_PAGE_SIZE;

	heap = open_unscavenged(policy);
	for (unsigned i = 0; i < ROUNDS; i++) {
		a_round(i);
		CHECK(heap->counters.slab_pages <= MOST_TIMES * live);
	}
	CHECK_FINE(sy_heap_check(heap));
	for (unsigned i = 0; i < SERVED; i++)
		sy_mfree(heap, atomic_exchange(&cells[i], NULL));
	sy_heap_shrink(heap);
	CHECK_FINE(sy_heap_check(heap));
	CHECK_EQUAL(heap->counters.slab_pages, 0);
	sy_heap_close(heap);
}

/* ---- What they leave ------------------------------------------------------------------------------------------------------ */

#define SIZE 256
#define TAKEN 512u
#define STEP 4u /* each such object stays */

static struct sy_cache *cache;
static void *objects[TAKEN];

static void *leaves_some(void *nothing)
{
	for (unsigned i = 0; i < TAKEN; i++)
		objects[i] = sy_alloc(cache, 0);
	for (unsigned i = 0; i < TAKEN; i++)
		if (i % STEP)
			sy_free(cache, objects[i]);
	return nothing;
}

static void *takes_them(void *nothing)
{
	for (unsigned i = 0; i < TAKEN; i++)
		if (i % STEP)
			objects[i] = sy_alloc(cache, 0);
	return nothing;
}

static void *frees_all(void *nothing)
{
	for (unsigned i = 0; i < TAKEN; i++)
		sy_free(cache, objects[i]);
	return nothing;
}

/* One thread's free objects serve the main thread, or the next. The thread that frees the last object of an ended thread's
 * slab ends the slab. */
static void they_serve(const char *policy, bool main_takes)
{
	uint64_t slabs;

	heap = open_unscavenged(policy);
	cache = own_cache(heap, SIZE);
	run_thread(leaves_some, NULL);
	CHECK_EQUAL(count(heap, cache).objects_in_use, TAKEN / STEP);
	slabs = count(heap, cache).slabs;
	if (main_takes)
		takes_them(NULL);
	else
		run_thread(takes_them, NULL);
	CHECK_EQUAL(count(heap, cache).objects_in_use, TAKEN);
	CHECK(count(heap, cache).slabs <= slabs + 1);
	run_thread(frees_all, NULL);
	CHECK_EQUAL(count(heap, cache).objects_in_use, 0);
	sy_heap_shrink(heap);
	CHECK_EQUAL(count(heap, cache).slabs, 0);
	sy_heap_close(heap);
}

static void try(const char *policy)
{
	serve(policy, check_times(40));
	rounds(policy);
	if (strcmp(policy, "slqb")) /* whose slabs stay with the slot, for the next thread */
		they_serve(policy, true);
	they_serve(policy, false);
}

int main(void)
{
	static const char *const policies[] = { "yard", "slub", "slab", "slqb", "bonwick", "yard:max_order=0" };

	for (unsigned i = 0; i < sizeof(policies) / sizeof(*policies); i++)
		check_under(policies[i], try);
	return check_result();
}
