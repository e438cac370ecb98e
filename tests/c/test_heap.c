/*
 * Heaps and caches as every policy has them: creation and its refusals, alignment, sharing, what destroying gives
 * back, the deferred queue, metadata; and running out of memory at every single page request on the way.
 */
#include "check.h"

#include "core/types.h"

#include "core/deferred.h"
#include "core/backend/metadata.h"
#include "core/pages/pages.h"

#define ZONE_PAGES 16384u

static struct sy_pages *make_pages(unsigned slots, unsigned nodes)
{
	struct sy_pages_config config = { .zone_count = nodes, .slots = slots, .pageblock_order = 9, .cpu_lists = true };

	for (unsigned i = 0; i < nodes; i++)
		config.zones[i] =
			(struct sy_zone_config){ .name = "Normal", .node = i, .start_page = i * ZONE_PAGES, .pages = ZONE_PAGES };
	return sy_pages_create(&config);
}

/* Pages in use for anything. */
static uint64_t pages_used(struct sy_pages *pages)
{
	static struct sy_pages_counts counts;
	uint64_t used = 0;

	sy_pages_count(pages, &counts);
	for (unsigned i = 0; i < counts.zone_count; i++)
		for (unsigned use = SY_USE_SLAB; use < SY_USES; use++)
			used += counts.zones[i].used[use];
	return used;
}

static struct sy_heap *make_heap(struct sy_pages *pages, const struct sy_policy *policy)
{
	struct sy_heap_config config;

	sy_heap_defaults(policy, &config);
	return sy_heap_create(pages, &config);
}

static struct sy_cache *make_cache(struct sy_heap *heap, size_t size, size_t align, unsigned flags)
{
	struct sy_cache_config config = { .name = "test", .size = size, .align = align, .flags = flags | SY_CACHE_NO_MERGE };

	return sy_cache_create(heap, &config);
}

static void end(struct sy_pages *pages, struct sy_heap *heap)
{
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_heap_destroy(heap);
	CHECK_EQUAL(pages_used(pages), 0);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_destroy(pages);
}

/* ---- Policies and heaps --------------------------------------------------------------------------------------- */

static void test_policies_are_found_by_name(void)
{
	CHECK(sy_policy_find("yard") == sy_policies[0]);
	CHECK(sy_policy_find("slub") == sy_policies[1]);
	CHECK(sy_policy_find("slu") == NULL);
	CHECK(sy_policy_find("slubs") == NULL);
	CHECK(sy_policy_find("") == NULL);
	for (const struct sy_policy *const *at = sy_policies; *at; at++)
		for (unsigned i = 0; i < (*at)->tunable_count; i++) {
			const struct sy_tunable *tunable = &(*at)->tunables[i];

			CHECK(tunable->name && tunable->meaning);
			CHECK(tunable->default_value == SY_TUNABLE_AUTO ||
			      (tunable->default_value >= tunable->min && tunable->default_value <= tunable->max));
		}
}

static void test_impossible_heaps_are_refused(const struct sy_policy *policy)
{
	struct sy_pages *pages = make_pages(2, 1);
	struct sy_heap_config good, config;
	static const uint8_t nodes[2] = { 0, 1 };

	sy_heap_defaults(policy, &good);
	config = good;
	config.slots = SY_MAX_SLOTS + 1;
	CHECK(sy_heap_create(pages, &config) == NULL);
	config = good;
	config.nodes = SY_MAX_NODES + 1;
	CHECK(sy_heap_create(pages, &config) == NULL);
	config = good;
	config.slots = 2;
	config.slot_nodes = nodes; /* a second node, of one */
	CHECK(sy_heap_create(pages, &config) == NULL);
	config = good;
	config.policy = NULL;
	CHECK(sy_heap_create(pages, &config) == NULL);
	for (unsigned i = 0; i < policy->tunable_count; i++) {
		config = good;
		config.tunables[i] = policy->tunables[i].max + 1;
		CHECK(sy_heap_create(pages, &config) == NULL);
		config.tunables[i] = policy->tunables[i].min - 1;
		CHECK(sy_heap_create(pages, &config) == NULL);
	}
	CHECK_EQUAL(pages_used(pages), 0);
	sy_pages_destroy(pages);
}

static void test_slots_are_spread_over_nodes(const struct sy_policy *policy)
{
	struct sy_pages *pages = make_pages(4, 2);
	struct sy_heap_config config;
	struct sy_heap *heap;

	sy_heap_defaults(policy, &config);
	config.slots = 4;
	config.nodes = 2;
	heap = sy_heap_create(pages, &config);
	CHECK_EQUAL(heap->slot_node[0], 0);
	CHECK_EQUAL(heap->slot_node[1], 0);
	CHECK_EQUAL(heap->slot_node[2], 1);
	CHECK_EQUAL(heap->slot_node[3], 1);
	end(pages, heap);
}

/* Memory falls back to nodes that the heap's creator did not name: the heap must know them all the same. */
static void test_a_heap_has_at_least_the_nodes_of_its_pages(const struct sy_policy *policy)
{
	struct sy_pages *pages = make_pages(1, 3);
	struct sy_heap *heap = make_heap(pages, policy);
	struct sy_cache *cache = make_cache(heap, 4096, 0, 0);
	uint64_t objects = 0;

	CHECK_EQUAL(heap->nodes, 3);
	while (sy_cache_alloc(cache, 0, 0, SY_ANY_NODE))
		objects++;
	CHECK(objects > 2 * ZONE_PAGES);
	end(pages, heap);
}

static void test_several_heaps_share_pages(void)
{
	struct sy_pages *pages = make_pages(1, 1);
	struct sy_heap *a = make_heap(pages, sy_policies[0]), *b = make_heap(pages, sy_policies[1]);
	void *from_a = sy_kmalloc(a, 0, 100, 0, SY_ANY_NODE), *from_b = sy_kmalloc(b, 0, 100, 0, SY_ANY_NODE);

	CHECK(from_a && from_b);
	CHECK_TEXT(sy_heap_check(a), NULL);
	CHECK_TEXT(sy_heap_check(b), NULL);
	sy_heap_destroy(a);
	memset(from_b, 1, 100);
	sy_kfree(b, 0, from_b);
	end(pages, b);
}

static void test_destroying_takes_everything_along(const struct sy_policy *policy)
{
	struct sy_pages *pages = make_pages(1, 1);
	struct sy_heap *heap = make_heap(pages, policy);
	struct sy_cache *cache = make_cache(heap, 700, 0, 0), *waiting = make_cache(heap, 300, 0, SY_CACHE_TYPESAFE_BY_RCU);
	void *objects[100];

	heap->grace_ns = UINT64_MAX / 2;
	for (unsigned i = 0; i < 100; i++) {
		CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) != NULL);
		CHECK(sy_kmalloc(heap, 0, i * 200, 0, SY_ANY_NODE) != NULL);
		objects[i] = sy_cache_alloc(waiting, 0, 0, SY_ANY_NODE);
	}
	for (unsigned i = 0; i < 100; i++)
		sy_cache_free(waiting, 0, objects[i]);
	sy_heap_shrink(heap);
	CHECK(heap->counters.deferred > 0);
	end(pages, heap);
}

/* ---- Caches --------------------------------------------------------------------------------------------------- */

/* As far as this platform knows, another thread has its slots, until it is destroyed. */
static void test_a_heap_of_slots_apart_ends(const struct sy_policy *policy)
{
	struct sy_pages *pages = make_pages(4, 1);
	struct sy_heap_config config;
	struct sy_heap *heap;
	void *object;

	sy_heap_defaults(policy, &config);
	config.slots = 4;
	config.concurrent = true;
	heap = sy_heap_create(pages, &config);
	CHECK(heap);
	if (!heap)
		return;
	object = sy_kmalloc(heap, 1, 100, 0, SY_ANY_NODE);
	CHECK(object);
	sy_kfree(heap, 2, object);
	sy_heap_shrink(heap);
	end(pages, heap);
}

static void test_impossible_caches_are_refused(const struct sy_policy *policy)
{
	struct sy_pages *pages = make_pages(1, 1);
	struct sy_heap *heap = make_heap(pages, policy);
	uint64_t metadata = heap->counters.metadata_pages;

	CHECK(make_cache(heap, 0, 0, 0) == NULL);
	CHECK(make_cache(heap, ((size_t)4 << 20) + 1, 0, 0) == NULL);
	CHECK(make_cache(heap, SIZE_MAX, 0, 0) == NULL);
	CHECK(make_cache(heap, 64, 24, 0) == NULL);
	CHECK(make_cache(heap, 64, 8192, 0) == NULL);
	CHECK_EQUAL(heap->counters.metadata_pages, metadata);
	end(pages, heap);
}

/* Half a cache line while two objects fit in it; never less than was asked for. At least a word: some policies' blocks are
 * of 8 bytes even where words have 4. */
static void test_alignment(const struct sy_policy *policy)
{
	static const unsigned expected[][3] = {
		{ 100, 0, 64 }, { 64, 0, 64 }, { 33, 0, 64 }, { 32, 0, 32 }, { 20, 0, 32 }, { 16, 0, 16 }, { 8, 0, 8 },
		{ 1, 0, 1 },    { 8, 128, 128 }, { 100, 16, 64 },
	};
	struct sy_pages *pages = make_pages(1, 1);
	struct sy_heap *heap = make_heap(pages, policy);
	unsigned least = make_cache(heap, 1, 0, 0)->align;

	CHECK(least == sizeof(void *) || least == 8);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct sy_cache *cache = make_cache(heap, expected[i][0], expected[i][1], SY_CACHE_HWCACHE_ALIGN);

		CHECK_EQUAL(cache->align, expected[i][2] > least ? expected[i][2] : least);
	}
	CHECK_EQUAL(make_cache(heap, 100, 0, 0)->align, least);
	CHECK_EQUAL(make_cache(heap, 100, 2, 0)->align, least);
	end(pages, heap);
}

static void test_objects_have_their_alignment_everywhere(const struct sy_policy *policy)
{
	struct sy_pages *pages = make_pages(1, 1);
	struct sy_heap *heap = make_heap(pages, policy);
	char *memory = ((struct sy_pages_base *)(void *)pages)->memory;

	for (size_t align = 8; align <= 4096; align *= 2) {
		for (size_t size = 1; size < 9000; size = size * 3 + 1) {
			struct sy_cache *cache = make_cache(heap, size, align, 0);

			for (unsigned i = 0; i < 20; i++) {
				char *object = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);

				CHECK_EQUAL((size_t)(object - memory) % align, 0);
				memset(object, 0xff, size);
			}
		}
	}
	end(pages, heap);
}

static void test_a_cache_with_objects_in_use_stays(const struct sy_policy *policy)
{
	struct sy_pages *pages = make_pages(1, 1);
	struct sy_heap *heap = make_heap(pages, policy);
	struct sy_cache *cache = make_cache(heap, 96, 0, 0);
	void *a = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE), *b = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
	uint64_t alive = 0;

	CHECK(!sy_cache_destroy(cache, &alive));
	CHECK_EQUAL(alive, 2);
	sy_cache_free(cache, 0, a);
	CHECK(!sy_cache_destroy(cache, &alive));
	CHECK_EQUAL(alive, 1);
	CHECK(!sy_cache_destroy(cache, NULL));
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_cache_free(cache, 0, b);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK(!heap->counters.slab_pages || heap->never_reclaims);
	end(pages, heap);
}

/* Of every size and alignment. */
static void test_kfree_frees_objects_of_caches(const struct sy_policy *policy)
{
	static const size_t sizes[] = { 1, 8, 24, 96, 248, 1000, 2048, 4000, 4090, 4096, 9000 };
	struct sy_pages *pages = make_pages(1, 1);
	struct sy_heap *heap = make_heap(pages, policy);

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t align = 8; align <= 256; align *= 4) {
			struct sy_cache *cache = make_cache(heap, sizes[i], align, SY_CACHE_KFREE);
			char *objects[4];

			for (unsigned k = 0; k < 4; k++) {
				objects[k] = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
				CHECK(objects[k] && (uintptr_t)objects[k] % align == 0);
				memset(objects[k], 0xff, sizes[i]);
			}
			CHECK(sy_usable_size(heap, objects[0]) >= sizes[i]);
			sy_kfree(heap, 0, objects[1]);
			sy_kfree(heap, 0, objects[3]);
			CHECK_TEXT(sy_heap_check(heap), NULL);
			sy_cache_free(cache, 0, objects[0]);
			sy_cache_free(cache, 0, objects[2]);
		}
	end(pages, heap);
}

static void test_long_names_are_cut(const struct sy_policy *policy)
{
	struct sy_pages *pages = make_pages(1, 1);
	struct sy_heap *heap = make_heap(pages, policy);
	struct sy_cache_config config = { .name = "0123456789012345678901234567890123456789012345678901234567890", .size = 40,
	                                  .flags = SY_CACHE_NO_MERGE };

	CHECK_TEXT(sy_cache_create(heap, &config)->name, "01234567890123456789012345678901234567890123456");
	config.name = NULL;
	CHECK_TEXT(sy_cache_create(heap, &config)->name, "");
	end(pages, heap);
}

/* ---- Bookkeeping ---------------------------------------------------------------------------------------------- */

static void test_metadata_blocks(void)
{
	static const size_t sizes[] = { 1, 64, 65, 200, 500, 1000, 2048, 2049, 5000, 70000 };
	struct sy_pages *pages = make_pages(1, 1);
	struct sy_heap *heap = make_heap(pages, sy_policies[0]);
	uint64_t before;
	char *blocks[200];

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 200; i++) {
			size_t size = sizes[i % 10];

			blocks[i] = sy__metadata_take(heap, size);
			for (size_t byte = 0; byte < size; byte++)
				CHECK_EQUAL(blocks[i][byte], 0);
			CHECK_EQUAL((uintptr_t)blocks[i] % SY_CACHE_LINE, 0);
			memset(blocks[i], (int)i, size);
		}
		for (unsigned i = 0; i < 200; i++)
			for (size_t byte = 0; byte < sizes[i % 10]; byte++)
				CHECK_EQUAL(blocks[i][byte], (char)i);
		before = heap->counters.metadata_pages;
		CHECK_TEXT(sy_heap_check(heap), NULL);
		for (unsigned i = 0; i < 200; i++)
			sy__metadata_give(heap, blocks[i], sizes[i % 10]);
		/* 20 blocks each of 2049, 5000 and 70000 bytes had pages of their own: orders 0, 1 and 5. */
		CHECK_EQUAL(before - heap->counters.metadata_pages, 20 + 40 + 640);
		CHECK_TEXT(sy_heap_check(heap), NULL);
	}
	CHECK(sy__metadata_take(heap, ((size_t)4 << 20) + 1) == NULL);
	sy__metadata_give(heap, NULL, 64);
	end(pages, heap);
}

#define BLOCKS 16384u /* of a sixteenth of a page */

/* Takes all blocks, and gives back all but one in `each`. */
static void fill_metadata(struct sy_heap *heap, char **blocks, unsigned each)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i] = sy__metadata_take(heap, SY_PAGE_SIZE / 16);
		CHECK(blocks[i] != NULL);
		memset(blocks[i], (int)(i % 251) + 1, SY_PAGE_SIZE / 16);
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		if (i % each)
			sy__metadata_give(heap, blocks[i], SY_PAGE_SIZE / 16);
}

static void empty_metadata(struct sy_heap *heap, char **blocks, unsigned each)
{
	for (unsigned i = 0; i < BLOCKS; i += each) {
		for (unsigned byte = 0; byte < SY_PAGE_SIZE / 16; byte++)
			CHECK_EQUAL(blocks[i][byte], (char)((i % 251) + 1));
		sy__metadata_give(heap, blocks[i], SY_PAGE_SIZE / 16);
	}
}

/* A driven heap keeps its pages until a trim; pages with a block in use stay. */
static void test_metadata_trimmed(void)
{
	static char *blocks[BLOCKS];
	struct sy_pages *pages = make_pages(1, 1);
	struct sy_heap *heap = make_heap(pages, sy_policies[0]);
	uint64_t before = heap->counters.metadata_pages, peak;

	fill_metadata(heap, blocks, 64);
	peak = heap->counters.metadata_pages;
	CHECK(peak >= before + BLOCKS / 16 - 1);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_heap_trim(heap);
	CHECK(heap->counters.metadata_pages - before <= BLOCKS / 64);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	empty_metadata(heap, blocks, 64);
	sy_heap_trim(heap);
	CHECK(heap->counters.metadata_pages <= before);
	/* The page that blocks were cut from went too. */
	CHECK((blocks[0] = sy__metadata_take(heap, 64)) != NULL);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	end(pages, heap);
}

/* In a heap of threads idle pages go by themselves, except a few and half of all. */
static void test_metadata_of_threads(void)
{
	static char *blocks[BLOCKS];
	struct sy_heap *heap = sy_heap_open("svr4", NULL, NULL);
	uint64_t before = heap->counters.metadata_pages;

	fill_metadata(heap, blocks, 512);
	CHECK(heap->counters.metadata_pages - before <= 2 * (BLOCKS / 512 + 64));
	CHECK_TEXT(sy_heap_check(heap), NULL);
	empty_metadata(heap, blocks, 512);
	CHECK(heap->counters.metadata_pages - before <= 64 + 1);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_heap_close(heap);
}

static uint64_t now;
static unsigned passed;
static struct sy_deferred entries[5];

static uint64_t test_clock(void)
{
	return now;
}

static void count_passed(struct sy_heap *heap, struct sy_deferred *entry)
{
	(void)heap;
	CHECK(entry == &entries[passed]);
	passed++;
}

static bool is_even(const struct sy_deferred *entry, const void *context)
{
	(void)context;
	return (entry - entries) % 2 == 0;
}

static void test_deferred_queue(void)
{
	struct sy_policy policy = *sy_policies[1]; /* SLOB's check does not know entries that are no objects */
	struct sy_heap heap = { .policy = &policy, .grace_ns = 100 };
	struct sy_deferred *taken;

	policy.grace_passed = count_passed;
	sy_platform_set_clock(test_clock);
	passed = 0;
	for (now = 0; now < 50; now += 10)
		sy__defer(&heap, &entries[now / 10]);
	CHECK_TEXT(sy__deferred_check(&heap), NULL);
	now = 99;
	sy_heap_tick(&heap);
	CHECK_EQUAL(passed, 0);
	now = 110;
	sy_heap_tick(&heap);
	CHECK_EQUAL(passed, 2);
	CHECK_EQUAL(heap.counters.deferred, 3);
	CHECK_TEXT(sy__deferred_check(&heap), NULL);
	taken = sy__deferred_extract(&heap, is_even, NULL);
	CHECK(taken == &entries[2] && taken->next == &entries[4] && !taken->next->next);
	CHECK_EQUAL(heap.counters.deferred, 1);
	CHECK_TEXT(sy__deferred_check(&heap), NULL);
	sy__defer(&heap, &entries[4]);
	passed = 3;
	now = 1000;
	sy_heap_tick(&heap);
	CHECK_EQUAL(passed, 5);
	CHECK(heap.deferred_first == NULL && heap.deferred_last == NULL);
	CHECK_TEXT(sy__deferred_check(&heap), NULL);
	sy_platform_set_clock(NULL);
}

/* ---- Running out of memory ------------------------------------------------------------------------------------ */

/* A little of everything; a refused request is left out. */
static void use_heap(struct sy_heap *heap)
{
	struct sy_cache *cache = make_cache(heap, 500, 0, 0);
	void *objects[40];

	for (unsigned i = 0; i < 40; i++)
		objects[i] = i % 2 ? sy_kmalloc(heap, 0, i * 300, 0, SY_ANY_NODE) :
		             cache ? sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) : NULL;
	CHECK_TEXT(sy_heap_check(heap), NULL);
	for (unsigned i = 0; i < 40; i++) {
		if (objects[i] && i % 2)
			sy_kfree(heap, 0, objects[i]);
		else if (objects[i])
			sy_cache_free(cache, 0, objects[i]);
	}
	if (cache)
		CHECK(sy_cache_destroy(cache, NULL));
}

static void test_every_page_request_may_fail(const struct sy_policy *policy)
{
	uint64_t request = 1, requests;

	do {
		struct sy_pages *pages = make_pages(1, 1);
		struct sy_heap *heap;

		sy_pages_fail_after(pages, request);
		heap = make_heap(pages, policy);
		requests = 0;
		if (heap) {
			use_heap(heap);
			requests = heap->counters.page_requests;
			end(pages, heap);
		} else {
			CHECK_EQUAL(pages_used(pages), 0);
			CHECK_TEXT(sy_pages_check(pages), NULL);
			sy_pages_destroy(pages);
		}
		request++;
	} while (request < 1000 && (!requests || request <= requests + 1));
	CHECK(request > 10);
}

int main(void)
{
	test_policies_are_found_by_name();
	test_several_heaps_share_pages();
	test_metadata_blocks();
	test_metadata_trimmed();
	test_metadata_of_threads();
	test_deferred_queue();
	for (const struct sy_policy *const *at = sy_policies; *at; at++) {
		test_impossible_heaps_are_refused(*at);
		test_slots_are_spread_over_nodes(*at);
		test_a_heap_has_at_least_the_nodes_of_its_pages(*at);
		test_destroying_takes_everything_along(*at);
		test_a_heap_of_slots_apart_ends(*at);
		test_impossible_caches_are_refused(*at);
		test_alignment(*at);
		test_objects_have_their_alignment_everywhere(*at);
		test_a_cache_with_objects_in_use_stays(*at);
		test_kfree_frees_objects_of_caches(*at);
		test_long_names_are_cut(*at);
		test_every_page_request_may_fail(*at);
	}
	return check_result();
}
