/*
 * Heaps under a limit to the process's data (RLIMIT_DATA). Where the system refuses a maximal block, the page allocator grows by
 * parts of one; they join, go back, and come again, and once the limit has risen the rest of the block follows. Under a limit to addresses
 * a heap opens with part of a block, whose rest it can get later.
 */
#include "runs_support.h"

#include <sys/resource.h>
#include <unistd.h>

#include "../../core/page_interface.h"
#include "../../core/pages/pages.h"
#include "../../core/this_slot.h"

#define KIB ((size_t)1 << 10)
#define MOST 4000u
#define STEPS 20000u

static void *objects[MOST];

/* Bytes of addresses (field 0) or data (field 5) that the process has. */
static rlim_t now(unsigned field)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	CHECK(file != NULL);
	for (unsigned i = 0; i <= field; i++)
		CHECK_EQUAL(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void limit(int resource, rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	CHECK_EQUAL(setrlimit(resource, &limit), 0);
}

static unsigned fill(struct sy_heap *heap, size_t bytes)
{
	unsigned count = 0;

	for (; count < MOST && (objects[count] = sy_malloc(heap, bytes, 0)); count++)
		memset(objects[count], (int)(count + 1) & 255, bytes);
	return count;
}

static void empty(struct sy_heap *heap, unsigned count)
{
	while (count)
		sy_mfree(heap, objects[--count]);
}

static bool is_partial(const struct sy_heap *heap)
{
	return heap->pages->zones->next_ungrown & (SY__MAX_BLOCK - 1);
}

/* room: bytes of data that the limit leaves; bytes: of each object. */
static void grows_by_parts(const struct sy_policy *policy, size_t bytes, size_t room)
{
	const struct sy_heap_options keep = { .keep = true };
	struct sy_heap *heap = sy_heap_open(policy->name, &keep, NULL);
	void *first = sy_malloc(heap, 100, 0);
	struct sy__zone *zone = heap->pages->zones;
	unsigned count, again;

	CHECK(first != NULL);
	CHECK(sy__slots_stop(heap));
	CHECK(sy__reservation_withdraw(heap) && is_partial(heap));
	sy__slots_resume(heap);
	CHECK(is_sound(heap));
	limit(RLIMIT_DATA, now(5) + room);
	count = fill(heap, bytes);
	CHECK(count * bytes > room / 2 && count < MOST && is_partial(heap));
	CHECK(is_sound(heap));
	empty(heap, count);
	sy_heap_shrink(heap);
	CHECK(is_sound(heap));
	again = fill(heap, bytes);
	CHECK(again > count / 2);
	limit(RLIMIT_DATA, RLIM_INFINITY);
	objects[again] = NULL;
	for (unsigned i = 0; i < 3; i++)
		CHECK(sy_malloc(heap, 2 << 20, 0) != NULL);
	CHECK(zone->next_ungrown >= 2 * SY__MAX_BLOCK && is_sound(heap));
	for (unsigned i = 0; i < again; i++)
		CHECK(((unsigned char *)objects[i])[bytes - 1] == (unsigned char)(i + 1));
	empty(heap, again);
	sy_heap_trim(heap);
	CHECK(sy__slots_stop(heap));
	sy__reservation_withdraw(heap);
	sy__slots_resume(heap);
	CHECK(is_sound(heap));
	CHECK(fill(heap, bytes) == MOST && is_sound(heap));
	sy_heap_close(heap);
}

/* Sizes and frees at random, while the limit rises and falls. */
static void survives_changes(const struct sy_policy *policy)
{
	struct sy_heap *heap = sy_heap_open(policy->name, NULL, NULL);
	uint64_t random = 1;
	unsigned got = 0;

	memset(objects, 0, sizeof(objects));
	limit(RLIMIT_DATA, now(5) + 512 * KIB);
	for (unsigned i = 0; i < STEPS; i++) {
		unsigned at;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
		at = (unsigned)(random >> 40) % 500;
		sy_mfree(heap, objects[at]);
		objects[at] = sy_malloc(heap, (size_t)(random >> 33) % (i % 64 ? 3000 : 400000) + 1, SY_ZERO);
		got += objects[at] != NULL;
		if (objects[at])
			CHECK_EQUAL(*(char *)objects[at], 0);
		if (objects[at])
			memset(objects[at], 1, sy_usable_size(heap, objects[at]));
		if (i % 2000 == 1999) {
			CHECK(is_sound(heap));
			limit(RLIMIT_DATA, now(5) + (random >> 50) * 100);
			CHECK(sy__slots_stop(heap));
			sy__reservation_withdraw(heap);
			sy__slots_resume(heap);
			CHECK(is_sound(heap));
		}
	}
	CHECK(got > STEPS / 20); /* how many are refused depends on what the policy gives back in between */
	limit(RLIMIT_DATA, RLIM_INFINITY);
	sy_heap_close(heap);
}

/* Less than a maximal block of addresses; more of it once there are more. */
static void opens_with_few_addresses(const struct sy_policy *policy)
{
	struct sy_heap *heap;
	unsigned few, more;

	limit(RLIMIT_AS, now(0) + 3000 * KIB);
	heap = sy_heap_open(policy->name, NULL, NULL);
	CHECK(heap != NULL);
	if (heap) {
		CHECK(heap->pages->memory_bytes < SY__MAX_BLOCK << SY_PAGE_SHIFT);
		few = fill(heap, 1000);
		CHECK(few > 100 && few < 3000 && is_sound(heap));
		CHECK(!sy__holds(heap, heap->pages->base.memory + heap->pages->memory_bytes));
		limit(RLIMIT_AS, RLIM_INFINITY);
		CHECK(sy__slots_stop(heap));
		if (sy__reservation_resize(heap, SIZE_MAX)) { /* nobody has the addresses behind */
			sy__slots_resume(heap);
			empty(heap, few);
			more = fill(heap, 1000);
			CHECK(more > few && is_sound(heap));
		} else {
			sy__slots_resume(heap);
		}
	}
	limit(RLIMIT_AS, RLIM_INFINITY);
	sy_heap_close(heap);
}

static uint64_t take(struct sy_pages *pages, unsigned flags)
{
	struct sy_page *page = sy_pages_alloc(pages, 0, 0, flags, SY_ANY_NODE);

	return page ? sy_page_number(pages, page) : UINT64_MAX;
}

/* Parts of a pageblock that a type has taken over are of that type, and a type that the zone can grow by takes from no other one. */
static void grows_by_types(void)
{
	const struct sy_pages_config config = {
		.zone_count = 1,
		.zones = { { .name = "Normal", .pages = 4 * SY__MAX_BLOCK, .min = 1, .low = 1, .high = 1 } },
		.slots = 1,
		.pageblock_order = 9,
		.commit_growth = true,
	};
	struct sy_pages *pages = sy_pages_create(&config);
	uint64_t pageblock = sy__pageblock_pages(pages);
	struct sy__zone *zone = pages->zones;

	limit(RLIMIT_DATA, now(5) + 3000 * KIB);
	for (uint64_t i = 0; i < pageblock; i++)
		CHECK(take(pages, 0) < pageblock);
	CHECK_EQUAL(zone->fallbacks, 1);
	CHECK_EQUAL(zone->next_ungrown, pageblock);
	CHECK_EQUAL(zone->pageblocks[SY_UNMOVABLE], 1);
	sy_pages_free(pages, 0, sy__page(pages, 7));
	CHECK_EQUAL(take(pages, SY_MOVABLE), pageblock);
	CHECK_EQUAL(zone->fallbacks, 1);
	CHECK_EQUAL(take(pages, 0), 7);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	limit(RLIMIT_DATA, RLIM_INFINITY);
	sy_pages_destroy(pages);
}

int main(void)
{
	if (check_emulated("limits to memory"))
		return check_result();
	grows_by_types();
	for (const struct sy_policy *const *policy = sy_policies; *policy; policy++) {
		grows_by_parts(*policy, 1000, 700 * KIB);
		grows_by_parts(*policy, 60000, 3000 * KIB);
		survives_changes(*policy);
		opens_with_few_addresses(*policy);
	}
	return check_result();
}
