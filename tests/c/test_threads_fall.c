/*
 * A peak of small objects is freed in random order, except one in each hundred that were allocated together. Then the program
 * makes nothing but hot pairs, which never become slow calls by themselves. What it keeps is little all the same: queues of
 * free objects, each of which would keep a slab, and pages that were freed last.
 */
#include "threads_support.h"

#include <pthread.h>

#define MIB ((size_t)1 << 20)
#define PEAK (160 * MIB)
#define LEFT (16 * MIB) /* survivors, the objects of a queue with a slab each, and what is not worth a fast decay */
#define MOST (PEAK / 64)
static unsigned an_operation = 20; /* nanoseconds */
static uint64_t now = 1000000000; /* moved by one thread at a time, as the test has only one at work */

static uint64_t clock_of_test(void)
{
	return now;
}

static struct sy_heap *heap;
static void *objects[MOST];
static unsigned count;
static pthread_barrier_t turn;

static size_t backed_bytes(void)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return (size_t)counts.committed_pages << SY_PAGE_SHIFT;
}

/* All but one in a hundred, in the middle, in an order drawn at random. */
static void choose(uint64_t *random)
{
	unsigned kept = count / 100, middle = count / 2;

	memmove(objects + middle, objects + middle + kept, (count - middle - kept) * sizeof(*objects));
	count -= kept;
	for (unsigned i = count; i > 1; i--) {
		unsigned other = (unsigned)(check_random(random) % i);
		void *object = objects[i - 1];

		objects[i - 1] = objects[other];
		objects[other] = object;
	}
}

static void free_objects(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++, now += an_operation)
		sy_mfree(heap, objects[i]);
}

/* Frees its share, and lives on without a call. */
static void *free_first(void *share)
{
	free_objects(0, *(unsigned *)share);
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&turn);
	return NULL;
}

static void free_all(unsigned by_other)
{
	pthread_t other;

	if (by_other) {
		CHECK(pthread_create(&other, NULL, free_first, &by_other) == 0);
		pthread_barrier_wait(&turn);
	}
	free_objects(by_other, count);
	for (unsigned i = 0; i < 1000000; i++, now += an_operation)
		sy_mfree(heap, sy_malloc(heap, 64, 0));
	if (!by_other)
		return;
	CHECK(backed_bytes() <= LEFT);
	pthread_barrier_wait(&turn);
	pthread_join(other, NULL);
}

static void fall(const char *spec, size_t (*size)(uint64_t *), bool shared)
{
	uint64_t random = 20261;
	size_t bytes = 0;

	heap = sy_heap_open(spec, NULL, NULL);
	CHECK(heap != NULL);
	for (count = 0; count < MOST && bytes < PEAK; count++) {
		size_t wanted = size(&random);

		objects[count] = sy_malloc(heap, wanted, 0);
		CHECK(objects[count] != NULL);
		bytes += wanted;
	}
	choose(&random);
	free_all(shared ? count / 2 : 0);
	if (backed_bytes() > LEFT)
		printf("%s keeps %zu KiB\n", spec, backed_bytes() >> 10);
	CHECK(backed_bytes() <= LEFT);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

static size_t of_one(uint64_t *random)
{
	(void)random;
	return 64;
}

static size_t of_many(uint64_t *random)
{
	return (size_t)(16 + check_random(random) % 30 * 8);
}

/* On a slow machine, only what two threads free: objects of all sizes. */
static void fall_alone(const char *spec, size_t (*size)(uint64_t *))
{
	if (!check_slow())
		fall(spec, size, false);
}

int main(void)
{
	static const char *const specs[] = { "yard", "slub", "slab", "slqb", "slob" };

	sy_platform_set_clock(clock_of_test);
	pthread_barrier_init(&turn, NULL, 2);
	for (unsigned i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		fall_alone(specs[i], of_one);
		fall_alone(specs[i], of_many);
		fall(specs[i], of_many, true);
	}
	an_operation = 1500; /* svr4 joins what it left lazily each second */
	fall_alone("svr4", of_one);
	fall("svr4", of_many, true);
	return check_result();
}
