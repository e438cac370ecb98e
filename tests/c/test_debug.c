/*
 * Debugging: what each check finds in a heap of caches, under every policy, and that a heap whose program is right stays silent.
 *
 * The hook that takes reports returns, as a kernel's would. So one program can look at many bugs, and at what the layer does
 * after each: an object that is freed wrongly stays as it was.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "check.h"

#include "core/debug/debug.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define COUNT 64u

static struct {
	unsigned count;
	struct sy__finding last;
} reports;

static void report(struct sy_heap *heap, const struct sy__finding *finding)
{
	(void)heap;
	reports.count++;
	reports.last = *finding;
}

static uint32_t all_checks(const char *text, const char *name)
{
	(void)text;
	return strncmp(name, "plain", 5) ? SY_DEBUG_ALL : 0;
}

static unsigned no_stack(uintptr_t *frames, unsigned most)
{
	frames[0] = 0x1234;
	return most > 0;
}

static uint64_t thread(void)
{
	return 7;
}

static uint32_t checks_of_caches(const char *text, const char *name)
{
	(void)text;
	return strncmp(name, "kmalloc-", 8) ? SY_DEBUG_FREES : 0;
}

static const struct sy__debug_hooks hooks = { no_stack, thread, report, all_checks, NULL };
static const struct sy__debug_hooks for_caches = { no_stack, thread, report, checks_of_caches, NULL };

static struct sy_pages *pages;

static struct sy_heap *open_with(const struct sy_policy *policy, uint32_t checks, const struct sy__debug_hooks *by)
{
	static const struct sy_pages_config wanted = { .zone_count = 1, .zones = { { .name = "Normal", .pages = 16384 } }, .slots = 2,
		                                       .pageblock_order = 9 };
	struct sy_heap_config config;
	struct sy_heap *heap;

	pages = sy_pages_create(&wanted);
	sy_heap_defaults(policy, &config);
	config.slots = 2;
	config.debug = (struct sy_debug_config){ .checks = checks, .quarantine = 65536, .ring = 1024, .stacks = 512, .hooks = by };
	heap = sy_heap_create(pages, &config);
	CHECK(heap);
	reports.count = 0;
	return heap;
}

static struct sy_heap *open_heap(const struct sy_policy *policy, uint32_t checks)
{
	return open_with(policy, checks, &hooks);
}

static void close_heap(struct sy_heap *heap)
{
	CHECK(!sy_heap_check(heap));
	CHECK(sy_heap_destroy(heap));
	CHECK(!sy_pages_check(pages));
	sy_pages_destroy(pages);
}

static void expect(enum sy_bug kind, const void *address)
{
	CHECK_EQUAL(reports.count, 1);
	CHECK_EQUAL(reports.last.kind, kind);
	CHECK(reports.last.address == address);
	reports.count = 0;
}

static void construct(void *object, size_t size)
{
	memset(object, 0x5a, size);
}

/* ---- Frees -------------------------------------------------------------------------------------------------------- */

static void frees(const struct sy_policy *policy)
{
	struct sy_heap *heap = open_heap(policy, SY_DEBUG_ALL);
	struct sy_cache *a = sy_cache_create(heap, &(struct sy_cache_config){ .name = "a", .size = 100 });
	struct sy_cache *b = sy_cache_create(heap, &(struct sy_cache_config){ .name = "b", .size = 100 });
	char *object = sy_cache_alloc(a, 0, 0, SY_ANY_NODE), *general = sy_kmalloc(heap, 0, 300, 0, SY_ANY_NODE);
	static char outside[64];

	sy_cache_free(b, 0, object);
	expect(SY_BUG_WRONG_CACHE, object);
	CHECK(reports.last.other == b && reports.last.record.cache == a);
	sy_kfree(heap, 0, object);
	expect(SY_BUG_WRONG_CACHE, object);
	sy_cache_free(a, 0, general);
	expect(SY_BUG_WRONG_CACHE, general);
	sy_cache_free(a, 0, object + 1);
	expect(SY_BUG_INTERIOR_FREE, object + 1);
	sy_kfree(heap, 1, general + 299);
	expect(SY_BUG_INTERIOR_FREE, general + 299);
	sy_kfree(heap, 1, outside);
	expect(SY_BUG_FOREIGN_FREE, outside);
	sy_cache_free(a, 1, object);
	sy_kfree(heap, 1, general);
	CHECK_EQUAL(reports.count, 0);
	sy_cache_free(a, 0, object);
	expect(SY_BUG_DOUBLE_FREE, object);
	CHECK_EQUAL(reports.last.record.freer, 7);
	sy_kfree(heap, 0, general);
	expect(SY_BUG_DOUBLE_FREE, general);
	sy_heap_trim(heap); /* nothing is in the quarantine any more */
	sy_cache_free(a, 0, object);
	expect(SY_BUG_DOUBLE_FREE, object);
	close_heap(heap);
}

/* ---- Writes ------------------------------------------------------------------------------------------------------- */

static void writes(const struct sy_policy *policy)
{
	struct sy_heap *heap = open_heap(policy, SY_DEBUG_ALL);

	for (size_t size = 1; size < 9000; size += size / 2 + 1) {
		struct sy_cache *cache = sy_cache_create(heap, &(struct sy_cache_config){ .name = "cache", .size = size });
		char *object = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE), *general = sy_kmalloc(heap, 0, size, SY_ZERO, SY_ANY_NODE);

		CHECK(general[size - 1] == 0);
		memset(object, 1, size);
		memset(general, 1, size);
		object[size] = 1;
		sy_cache_free(cache, 0, object);
		expect(SY_BUG_WRITE_PAST_THE_END, object + size);
		general[-1] = 1;
		sy_kfree(heap, 0, general);
		expect(SY_BUG_WRITE_BEFORE_THE_START, general - 1);
		object = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
		sy_cache_free(cache, 0, object);
		CHECK_EQUAL(reports.count, 0);
		object[size / 2] = 1;
		CHECK(sy_heap_check(heap));
		reports.count = 0;
		sy_heap_trim(heap);
		reports.count = 0;
	}
	sy_heap_destroy(heap);
	sy_pages_destroy(pages);
}

/* What was written without a later call is found when the heap ends. */
static void writes_before_the_end(const struct sy_policy *policy)
{
	for (unsigned freed = 0; freed < 2; freed++) {
		struct sy_heap *heap = open_heap(policy, SY_DEBUG_ALL);
		char *object = sy_kmalloc(heap, 0, 40, 0, SY_ANY_NODE);

		if (freed)
			sy_kfree(heap, 0, object);
		object[freed ? 8 : 40] = 1;
		CHECK(sy_heap_destroy(heap));
		expect(freed ? SY_BUG_WRITE_AFTER_FREE : SY_BUG_WRITE_PAST_THE_END, object + (freed ? 8 : 40));
		sy_pages_destroy(pages);
	}
}

/* ---- Constructed state -------------------------------------------------------------------------------------------- */

static void states(const struct sy_policy *policy)
{
	struct sy_heap *heap = open_heap(policy, SY_DEBUG_ALL);
	struct sy_cache *cache =
		sy_cache_create(heap, &(struct sy_cache_config){ .name = "state", .size = 200, .constructor = construct });
	unsigned char *object;

	for (unsigned i = 0; i < 1000; i++) {
		object = sy_cache_alloc(cache, i & 1, 0, SY_ANY_NODE);
		CHECK_EQUAL(object[0], 0x5a);
		CHECK_EQUAL(object[199], 0x5a);
		object[7] = 3;
		object[7] = 0x5a;
		sy_cache_free(cache, i & 1, object);
	}
	CHECK_EQUAL(reports.count, 0);
	object = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
	object[13] = 1;
	sy_cache_free(cache, 0, object);
	expect(SY_BUG_CHANGED_STATE, object + 13);
	object[13] = 0x5a;
	sy_cache_free(cache, 0, object);
	CHECK_EQUAL(reports.count, 0);
	close_heap(heap);
}

/* ---- A right program ---------------------------------------------------------------------------------------------- */

static void right(const struct sy_policy *policy, uint32_t checks)
{
	enum { OBJECTS = 400 };
	struct sy_heap *heap = open_heap(policy, checks);
	struct sy_cache *caches[3], *plain;
	struct { char *object; unsigned cache; size_t size; } held[OBJECTS] = { 0 };
	unsigned random = 1;

	for (unsigned i = 0; i < 3; i++)
		caches[i] = sy_cache_create(heap, &(struct sy_cache_config){ .name = "right", .size = 40 + 300 * i, .align = i ? 64 : 0,
			                                                     .constructor = i == 2 ? construct : NULL });
	plain = sy_cache_create(heap, &(struct sy_cache_config){ .name = "plain", .size = 40 });
	for (unsigned step = 0; step < 20000; step++) {
		unsigned at = (random = random * 1103515245u + 12345u) >> 8 & (OBJECTS - 1), slot = random >> 30 & 1;

		at %= OBJECTS;
		if (held[at].object) {
			for (size_t i = 0; held[at].cache < 2 && i < held[at].size; i++)
				CHECK(held[at].object[i] == (char)at);
			if (held[at].cache == 4)
				sy_kfree(heap, slot, held[at].object);
			else
				sy_cache_free(held[at].cache == 3 ? plain : caches[held[at].cache], slot, held[at].object);
			held[at].object = NULL;
			continue;
		}
		held[at].cache = (random >> 20) % 5;
		held[at].size = held[at].cache == 4 ? (random >> 12) % 9000 + 1 : held[at].cache == 3 ? 40 : 40 + 300 * held[at].cache;
		held[at].object = held[at].cache == 4 ? sy_kmalloc(heap, slot, held[at].size, 0, SY_ANY_NODE)
		                                      : sy_cache_alloc(held[at].cache == 3 ? plain : caches[held[at].cache], slot, 0, SY_ANY_NODE);
		CHECK(held[at].object);
		CHECK(held[at].cache != 1 || !((uintptr_t)held[at].object & 63));
		if (held[at].cache != 2)
			memset(held[at].object, (int)at, held[at].size);
	}
	CHECK_EQUAL(reports.count, 0);
	close_heap(heap);
}

/* A cache may have checks in a heap that has none. */
static void one_cache(const struct sy_policy *policy)
{
	struct sy_heap *heap = open_heap(policy, 0);
	struct sy_cache *checked =
		sy_cache_create(heap, &(struct sy_cache_config){ .name = "checked", .size = 50, .debug = SY_DEBUG_FREES | SY_DEBUG_RED_ZONES });
	struct sy_cache *plain = sy_cache_create(heap, &(struct sy_cache_config){ .name = "plain", .size = 50 });
	char *object = sy_cache_alloc(checked, 0, 0, SY_ANY_NODE), *other = sy_cache_alloc(plain, 0, 0, SY_ANY_NODE);
	uint64_t alive = 0;

	sy_cache_free(plain, 0, other);
	object[50] = 1;
	sy_cache_free(checked, 0, object);
	expect(SY_BUG_WRITE_PAST_THE_END, object + 50);
	CHECK(!heap->debug->ring);
	CHECK(sy_cache_create(heap, &(struct sy_cache_config){ .name = "audited", .size = 50, .debug = SY_DEBUG_AUDIT }));
	CHECK(heap->debug->ring); /* a page that the first cache did not want */
	CHECK(!sy_cache_destroy(checked, &alive));
	CHECK_EQUAL(alive, 1);
	CHECK(sy_cache_destroy(plain, NULL));
	CHECK(sy_heap_destroy(heap));
	sy_pages_destroy(pages);
}

/* Once a guarded object has left the quarantine its addresses serve others, also when the heap ends. */
static void guarded(const struct sy_policy *policy)
{
	struct sy_heap *heap = open_heap(policy, SY_DEBUG_FREES | SY_DEBUG_PAGES);
	struct sy_cache *cache = sy_cache_create(heap, &(struct sy_cache_config){ .name = "guarded", .size = 50 });
	char *object = sy_kmalloc(heap, 0, 4096, 0, SY_ANY_NODE), *of_cache = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE), *others;
	uint64_t alive = 0;

	CHECK(!sy_cache_destroy(cache, &alive));
	CHECK_EQUAL(alive, 1);
	sy_cache_free(cache, 0, of_cache);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK(!sy_kmalloc(heap, 0, ((size_t)SY_PAGE_SIZE << SY_MAX_ORDER) + 1, SY_ZERO, SY_ANY_NODE)); /* as without pages of its own */
	sy_kfree(heap, 0, object);
	sy_heap_trim(heap);
	others = mmap(object, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(others != MAP_FAILED);
	close_heap(heap);
	others[0] = 1;
	CHECK_EQUAL(reports.count, 0);
	munmap(others, 4096);
}

/* The memory of a cache with checks serves objects without checks: that something was freed there before says nothing about
 * them. */
static void used_again(const struct sy_policy *policy)
{
	struct sy_heap *heap = open_with(policy, SY_DEBUG_FREES, &for_caches);
	struct sy_cache *cache = sy_cache_create(heap, &(struct sy_cache_config){ .name = "checked", .size = 1000 });
	void *objects[COUNT];

	for (unsigned i = 0; i < COUNT; i++)
		CHECK(objects[i] = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE));
	for (unsigned i = 0; i < COUNT; i++)
		sy_cache_free(cache, 0, objects[i]);
	sy_cache_shrink(cache);
	for (unsigned i = 0; i < COUNT; i++)
		CHECK(objects[i] = sy_kmalloc(heap, 0, 2000, 0, SY_ANY_NODE));
	for (unsigned i = 0; i < COUNT; i++) {
		CHECK(sy_usable_size(heap, objects[i]) >= 2000);
		sy_kfree(heap, 0, objects[i]);
	}
	CHECK_EQUAL(reports.count, 0);
	CHECK(sy_cache_destroy(cache, NULL));
	close_heap(heap);
}

/* What was freed is known as that, although its memory has been others' since, which are freed, too. */
static void freed_among_freed(const struct sy_policy *policy)
{
	struct sy_heap *heap = open_heap(policy, SY_DEBUG_FREES);
	char *objects[COUNT], *others[COUNT];

	for (unsigned i = 0; i < COUNT; i++)
		CHECK(objects[i] = sy_kmalloc(heap, 0, 64, 0, SY_ANY_NODE));
	for (unsigned i = 0; i < COUNT; i++)
		sy_kfree(heap, 0, objects[i]);
	sy_heap_trim(heap);
	for (unsigned i = 0; i < COUNT; i++)
		CHECK(others[i] = sy_kmalloc(heap, 0, 2000, 0, SY_ANY_NODE));
	for (unsigned i = 0; i < COUNT; i++)
		sy_kfree(heap, 0, others[i]);
	for (unsigned i = 0; i < COUNT; i++) {
		sy_kfree(heap, 0, objects[i]);
		expect(SY_BUG_DOUBLE_FREE, objects[i]);
	}
	close_heap(heap);
}

int main(void)
{
	for (const struct sy_policy *const *policy = sy_policies; *policy; policy++) {
		frees(*policy);
		writes(*policy);
		writes_before_the_end(*policy);
		states(*policy);
		right(*policy, SY_DEBUG_ALL);
		right(*policy, SY_DEBUG_FREES);
		right(*policy, SY_DEBUG_ALL | SY_DEBUG_PAGES);
		one_cache(*policy);
		guarded(*policy);
		used_again(*policy);
		freed_among_freed(*policy);
	}
	return 0;
}
