/*
 * The run cache of slots (core/backend/run_cache.c): what it serves and what not, how much it keeps, when it keeps nothing,
 * and everybody who gives its runs back.
 */
#include "bug_support.h"
#include "core/backend/large.h"
#include "core/backend/run_cache.h"
#include "threads_support.h"

#define PAGE SY_PAGE_SIZE
#define MIB ((size_t)1 << 20)
#define ROUNDS 4000u
#define SHARED_CELLS 8u

/* Time passes as the test says. */
static uint64_t now = 1000000000;

static uint64_t clock_of_test(void)
{
	return now;
}

/* Slow calls that fail; one of them looks at the clock. */
static void tick(struct sy_heap *heap)
{
	for (unsigned i = 0; i < 100; i++)
		CHECK(!sy_malloc(heap, 5 * MIB, 0));
}

static struct sy_heap *open_for(const char *policy, size_t limit)
{
	const struct sy_sizing sizing = { .classes = SY_CLASSES_FINE, .align = 16, .exact_runs = true };
	const struct sy_heap_options options = { .reserve = SMALL_RESERVE, .limit = limit, .sizing = sizing };
	const char *error = "";
	struct sy_heap *heap = sy_heap_open(policy, &options, &error);

	CHECK_TEXT(error, "");
	tick(heap);
	return heap;
}

static size_t held(const struct sy_heap *heap)
{
	return (size_t)heap->counters.large_pages;
}

static size_t committed(struct sy_heap *heap)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return (size_t)counts.committed_pages;
}

static void *get(struct sy_heap *heap, size_t pages)
{
	unsigned char *object = heap->malloc_this_slot(pages * PAGE, heap);

	CHECK(object && sy_usable_size(heap, object) >= pages * PAGE);
	if (object)
		memset(object, 0xa5, pages * PAGE);
	return object;
}

static void keep(struct sy_heap *heap, size_t pages)
{
	sy_mfree(heap, get(heap, pages));
}

static bool count_used(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	(void)slab;
	*(size_t *)context += part->state == SY_PART_USED ? part->bytes : 0;
	return true;
}

static bool see_slab(void *context, const struct sy_slab *slab)
{
	(void)context;
	return slab->bytes != 0;
}

/* Bytes that a walk shows in use. */
static size_t used(struct sy_heap *heap)
{
	size_t bytes = 0;
	const struct sy_visitor visitor = { see_slab, count_used, &bytes, NULL };

	CHECK(sy_heap_walk(heap, &visitor));
	return bytes;
}

/* A freed run serves again, as a whole, for the same size and somewhat smaller ones. No walk shows an object in it
 * meanwhile. */
static void served_again(struct sy_heap *heap)
{
	char *object = get(heap, 300), *other, *beside = get(heap, 33);
	size_t before, live;

	sy_mfree(heap, object); /* there is memory now */
	sy_heap_shrink(heap);
	before = used(heap);
	live = sy__large_live(heap);
	object = get(heap, 45);
	CHECK_EQUAL(used(heap) - before, 45 * PAGE);
	CHECK_EQUAL(sy__large_live(heap) - live, 45 * PAGE);
	sy_mfree(heap, object);
	CHECK_EQUAL(held(heap), 33 + 45);
	CHECK_EQUAL(used(heap), before);
	CHECK_EQUAL(sy__large_live(heap), live);
	CHECK_FINE(sy_heap_check(heap));
	CHECK(get(heap, 40) == object);
	CHECK_EQUAL(held(heap), 33 + 45);
	CHECK_EQUAL(sy__large_live(heap) - live, 40 * PAGE);
	CHECK_FINE(sy_heap_check(heap));
	sy_mfree(heap, object);
	other = get(heap, 39); /* too small for it */
	CHECK(other != object && get(heap, 45) == object);
	sy_mfree(heap, other);
	sy_mfree(heap, object);
	sy_mfree(heap, beside);
	sy_heap_shrink(heap);
	CHECK_EQUAL(held(heap), 0);
}

/* Of several runs the one that fits best, in any order. */
static void best_of_several(struct sy_heap *heap)
{
	static const size_t pages[] = { 60, 55, 58, 33, 90 };
	char *objects[5];

	for (unsigned i = 0; i < 5; i++)
		objects[i] = get(heap, pages[i]);
	for (unsigned i = 0; i < 5; i++)
		sy_mfree(heap, objects[i]);
	CHECK(get(heap, 53) == objects[1]);
	CHECK(get(heap, 53) == objects[2]);
	CHECK(get(heap, 33) == objects[3]);
	CHECK(get(heap, 83) == objects[4]);
	CHECK(get(heap, 60) == objects[0]);
	CHECK_FINE(sy_heap_check(heap));
	for (unsigned i = 0; i < 5; i++)
		sy_mfree(heap, objects[i]);
	sy_heap_shrink(heap);
}

/* A power of two of pages is aligned to its size, whatever is kept. */
static void powers_are_aligned(struct sy_heap *heap)
{
	for (size_t pages = 65; pages <= 72; pages++)
		keep(heap, pages);
	for (unsigned i = 0; i < 3; i++) {
		char *object = get(heap, 64);

		CHECK(((uintptr_t)object & (64 * PAGE - 1)) == 0);
		sy_mfree(heap, object);
	}
	sy_heap_shrink(heap);
}

static void zeroed(struct sy_heap *heap)
{
	unsigned char *object = get(heap, 100), *again;

	sy_mfree(heap, object);
	again = sy_malloc(heap, 100 * PAGE - 7, SY_ZERO);
	CHECK(again == object && filled(again, sy_usable_size(heap, again), 0));
	sy_mfree(heap, again);
	sy_heap_shrink(heap);
}

/* At most seven runs, and 4 MiB; the oldest go. */
static void bounded(struct sy_heap *heap)
{
	char *objects[12];

	for (unsigned i = 0; i < 12; i++)
		objects[i] = get(heap, 20 + 5 * i);
	for (unsigned i = 0; i < 12; i++)
		sy_mfree(heap, objects[i]);
	CHECK(held(heap) > 300 && held(heap) <= 45 + 50 + 55 + 60 + 66 + 70 + 76); /* the gaps of taken runs are not the last place */
	CHECK(get(heap, 75) == objects[11]);
	sy_mfree(heap, objects[11]);
	CHECK_FINE(sy_heap_check(heap));
	for (unsigned i = 0; i < 3; i++)
		objects[i] = get(heap, 400 + 60 * i);
	for (unsigned i = 0; i < 3; i++)
		sy_mfree(heap, objects[i]);
	CHECK(held(heap) <= 1024);
	keep(heap, 1024);
	CHECK_EQUAL(held(heap), 1024);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_shrink(heap);
	CHECK_EQUAL(held(heap), 0);
}

static void freed_twice(struct sy_heap *heap)
{
	char *object = get(heap, 70);

	count_double_frees(heap);
	sy_mfree(heap, object);
	sy_mfree(heap, object);
	CHECK_EQUAL(double_frees, 1);
	CHECK_FINE(sy_heap_check(heap));
	CHECK(get(heap, 70) == object && get(heap, 70) != object);
	CHECK_EQUAL(sy__large_live(heap), 140 * PAGE);
}

static void *keep_one(void *heap)
{
	keep(heap, 78);
	CHECK_EQUAL(held(heap), 78);
	return NULL;
}

/* A thread's end, time, and a trim each give runs back. */
static void given_back(struct sy_heap *heap)
{
	pthread_t thread;

	CHECK_EQUAL(pthread_create(&thread, NULL, keep_one, heap), 0);
	pthread_join(thread, NULL);
	CHECK_EQUAL(held(heap), 0);
	keep(heap, 98);
	CHECK(sy_heap_trim(heap) >= 98 * PAGE);
	CHECK_EQUAL(held(heap), 0);
	keep(heap, 88);
	CHECK_EQUAL(held(heap), 88);
	now += 200000000;
	for (unsigned i = 0; i < 200; i++)
		keep(heap, 608);
	CHECK_EQUAL(held(heap), 608);
	now += 200000000;
	tick(heap);
	CHECK_EQUAL(held(heap), 0);
}

/* A program that takes more sizes in turn than a slot keeps has no use for the cache. After a while it keeps none; from time
 * to time it tries some again. Once one serves, it keeps all. */
static void evictions(const char *policy)
{
	static const size_t sizes[] = { 40, 49, 59, 71, 85, 102, 122, 147, 177, 213 };
	struct sy_heap *heap = open_for(policy, 0);
	unsigned kept = 0;

	for (unsigned i = 0; i < 3; i++)
		keep(heap, 900);
	sy_heap_shrink(heap);
	for (unsigned i = 0; i <= SY__RUN_CACHE_EVICTIONS + SY__RUN_CACHE_RUNS; i++) {
		keep(heap, sizes[i % 10]);
		CHECK(held(heap) > 0 || i == SY__RUN_CACHE_EVICTIONS + SY__RUN_CACHE_RUNS);
	}
	for (unsigned i = 0; i < 256; i++) {
		keep(heap, sizes[i % 10]);
		kept += held(heap) > 0;
	}
	CHECK(kept >= SY__RUN_CACHE_EVICTIONS && kept < 128);
	for (unsigned i = 0; i < 256; i++)
		keep(heap, 90);
	CHECK(held(heap) >= 90);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

/* The heap does not grow while a slot keeps runs: neither for runs nor for slabs. */
static void before_growth(const char *policy)
{
	struct sy_heap *heap = open_for(policy, 0);
	char *objects[20];
	size_t before;

	for (unsigned i = 0; i < 20; i++)
		objects[i] = get(heap, 49);
	before = committed(heap);
	for (unsigned i = 0; i < 7; i++)
		sy_mfree(heap, objects[i]);
	objects[0] = get(heap, 150);
	CHECK_EQUAL(committed(heap), before);
	sy_mfree(heap, objects[0]);
	CHECK(held(heap) > 13 * 49);
	for (unsigned i = 0; i < 4000 && held(heap) > 13 * 49; i++)
		CHECK(sy_malloc(heap, 4000, 0) != NULL);
	CHECK_EQUAL(held(heap), 13 * 49);
	CHECK(committed(heap) <= before + 64);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

/* A request does not fail while a slot keeps runs. */
static void before_failure(const char *policy)
{
	struct sy_heap *heap = open_for(policy, 16 * MIB);
	void *objects[600], *last;
	unsigned count = 0;

	while (count < 600 && (objects[count] = sy_malloc(heap, 33 * PAGE, 0)))
		count++;
	CHECK(count > 70 && count < 600);
	for (unsigned i = 0; i < 6; i++)
		sy_mfree(heap, objects[--count]);
	CHECK_EQUAL(held(heap), (count + 6) * 33);
	last = sy_malloc(heap, 16 * PAGE, 0);
	CHECK(last != NULL);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

static struct {
	const void *pages;
	size_t bytes;
	unsigned times;
} left;

static void leaves(struct sy_heap *heap, const void *pages, size_t bytes)
{
	(void)heap;
	left.pages = pages;
	left.bytes = bytes;
	left.times++;
}

/* A registered server of larger runs learns of each run that comes from the free lists and goes back there. It is asked for
 * runs unless the slot keeps one. */
static void served_elsewhere(struct sy_heap *heap)
{
	char *object = get(heap, 300);

	left.times = 0;
	heap->on_large_free = leaves;
	sy_mfree(heap, object);
	CHECK_EQUAL(left.times, 0);
	heap->mmap_threshold = 64 * PAGE;
	CHECK(sy_malloc(heap, 65 * PAGE, 0) == NULL && sy_malloc(heap, 65 * PAGE, SY_ZERO) == NULL);
	CHECK(get(heap, 300) == object);
	CHECK(sy_malloc(heap, 300 * PAGE, 0) == NULL);
	keep(heap, 64);
	sy_mfree(heap, object);
	sy_heap_shrink(heap);
	CHECK_EQUAL(left.times, 2);
	CHECK(left.pages == object || left.bytes == 64 * PAGE);
	CHECK_EQUAL(held(heap), 0);
	heap->mmap_threshold = 0;
	heap->on_large_alloc = heap->on_large_free;
	heap->on_large_free = NULL;
	left.times = 0;
	object = get(heap, 300);
	sy_mfree(heap, object);
	CHECK(get(heap, 300) == object);
	CHECK_EQUAL(left.times, 1);
	CHECK(left.pages == object && left.bytes >= 300 * PAGE);
	heap->on_large_alloc = NULL;
	sy_mfree(heap, object);
	sy_heap_shrink(heap);
	CHECK_FINE(sy_heap_check(heap));
}

/* ---- Threads ------------------------------------------------------------------------------------------------------ */

static struct {
	struct sy_heap *heap;
	_Atomic(unsigned char *) cells[SHARED_CELLS];
	atomic_uint wrong;
} shared;

static void look_and_free(unsigned char *object)
{
	if (object && (object[0] != object[33 * PAGE - 1] || object[0] != object[PAGE]))
		shared.wrong++;
	sy_mfree(shared.heap, object);
}

/* Runs that other threads got, small objects by which the heap grows, and now and then a shrink. */
static void *mix(void *argument)
{
	uint64_t random = (uintptr_t)argument;

	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned char *object;

		random = random * 6364136223846793005u + 1442695040888963407u;
		object = sy_malloc(shared.heap, (33 + (size_t)(random >> 40) % 30) * PAGE, 0);
		if (object)
			object[0] = object[PAGE] = object[33 * PAGE - 1] = (unsigned char)(random >> 33);
		look_and_free(atomic_exchange(&shared.cells[(random >> 50) % SHARED_CELLS], object));
		if (round % 16 == 0 && !sy_malloc(shared.heap, 3000, 0))
			shared.wrong++;
		if (round % 1000 == 999)
			sy_heap_shrink(shared.heap);
	}
	return NULL;
}

static void by_threads(const char *policy)
{
	pthread_t threads[3];

	shared.heap = open_for(policy, 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, mix, (void *)(uintptr_t)(i + 1)), 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK_FINE(sy_heap_check(shared.heap));
	for (unsigned i = 0; i < SHARED_CELLS; i++)
		look_and_free(atomic_exchange(&shared.cells[i], NULL));
	CHECK_EQUAL(shared.wrong, 0);
	CHECK_FINE(sy_heap_check(shared.heap));
	sy_heap_shrink(shared.heap);
	CHECK_EQUAL(held(shared.heap), 0);
	CHECK_EQUAL(sy__large_live(shared.heap), 0);
	sy_heap_close(shared.heap);
}

int main(void)
{
	static const char *const policies[] = { "yard", "slub", "slab", "slqb", "bonwick" };

	sy_platform_set_clock(clock_of_test);
	for (unsigned i = 0; i < 4; i++) {
		struct sy_heap *heap = open_for(policies[i], 0);

		served_again(heap);
		best_of_several(heap);
		powers_are_aligned(heap);
		zeroed(heap);
		bounded(heap);
		served_elsewhere(heap);
		given_back(heap);
		freed_twice(heap);
		CHECK_FINE(sy_pages_check(heap->pages));
		sy_heap_close(heap);
		evictions(policies[i]);
		before_growth(policies[i]);
		before_failure(policies[i]);
		by_threads(policies[i]);
	}
	return check_result();
}
