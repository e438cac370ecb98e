/*
 * Grace periods of heaps of threads, by the clock, under every policy. Memory freed to a cache whose objects outlive a grace
 * period stays until that is over, for ever if it never is. A trim gives it back as soon as it is over.
 */
#include "core/types.h"
#include <string.h>

#include "check.h"

#define OBJECTS 20000u
#define SIZE 1000u
#define GRACE UINT64_C(3000000000) /* nanoseconds */

static uint64_t time_now = 1000000;

static uint64_t clock_now(void)
{
	return time_now;
}

static uint64_t pages_in_use(struct sy_heap *heap)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return counts.zones[0].used[SY_USE_SLAB] + counts.zones[0].used[SY_USE_LARGE];
}

/* A heap with that grace period. All its objects are freed and wait. */
static struct sy_heap *open_waiting(const char *policy, uint64_t grace)
{
	const struct sy_heap_options options = { .reserve = (size_t)64 << 20, .grace_ns = grace };
	const struct sy_cache_config config = { .name = "waits", .size = SIZE, .flags = SY_CACHE_TYPESAFE_BY_RCU };
	static void *objects[OBJECTS];
	const char *error = "";
	struct sy_heap *heap = sy_heap_open(policy, &options, &error);
	struct sy_cache *cache = heap ? sy_cache_create(heap, &config) : NULL;

	CHECK_TEXT(error, "");
	CHECK(cache);
	if (!cache)
		abort();
	for (unsigned i = 0; i < OBJECTS; i++)
		CHECK((objects[i] = sy_alloc(cache, 0)) != NULL);
	for (unsigned i = 0; i < OBJECTS; i++)
		sy_free(cache, objects[i]);
	return heap;
}

/* Not what a policy never gives back. */
static bool is_gone(struct sy_heap *heap)
{
	return heap->never_reclaims || pages_in_use(heap) < OBJECTS * SIZE / SY_PAGE_SIZE / 10;
}

static bool is_there(struct sy_heap *heap)
{
	return pages_in_use(heap) >= OBJECTS * SIZE / SY_PAGE_SIZE;
}

static void trim_at_once(const char *policy)
{
	struct sy_heap *heap = open_waiting(policy, 0);

	time_now++;
	sy_heap_trim(heap);
	CHECK(is_gone(heap));
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

static void trim_in_time(const char *policy)
{
	struct sy_heap *heap = open_waiting(policy, GRACE);

	sy_heap_trim(heap);
	CHECK(is_there(heap));
	time_now += GRACE + 1;
	sy_heap_trim(heap);
	CHECK(is_gone(heap));
	CHECK_EQUAL(heap->counters.deferred, 0);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

static void wait_for_ever(const char *policy, uint64_t grace)
{
	struct sy_heap *heap = open_waiting(policy, grace);

	for (unsigned i = 0; i < 3; i++) {
		sy_heap_trim(heap);
		time_now += 1000 * GRACE;
		sy_heap_tick(heap);
	}
	CHECK(is_there(heap));
	CHECK(heap->counters.deferred > 0);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

static void under(const char *policy)
{
	trim_at_once(policy);
	trim_in_time(policy);
	wait_for_ever(policy, UINT64_MAX);
	wait_for_ever(policy, UINT64_MAX - 1);
}

int main(void)
{
	sy_platform_set_clock(clock_now);
	CHECK_POLICIES(under);
	return check_result();
}
