/* The page interface: what heaps get and how it is counted, faults, reclaim, release of memory, many threads. */
#include <pthread.h>
#include <sys/resource.h>

#include "core/this_slot.h"
#include "pages_support.h"

/* A heap without a policy of its own, but for giving back what it keeps in one list. */
struct keeper {
	struct sy_heap heap;
	struct sy_cache cache;
	struct sy_page *kept[512];
	unsigned kept_count, shrinks;
	bool asks_meanwhile; /* a shrink that needs pages itself */
};

static uint64_t shrink(struct sy_cache *cache)
{
	struct keeper *keeper = (struct keeper *)(void *)cache->heap;
	uint64_t given = 0;

	keeper->shrinks++;
	if (keeper->asks_meanwhile)
		CHECK(!sy__pages_take(&keeper->heap, 0, SY_MAX_ORDER, 0, SY_ANY_NODE, SY_USE_SLAB));
	while (keeper->kept_count) {
		struct sy_page *page = keeper->kept[--keeper->kept_count];

		given += (uint64_t)1 << page->order;
		sy__pages_give(&keeper->heap, 0, page);
	}
	return given;
}

static uint64_t reclaim(struct sy_heap *heap, bool urgent)
{
	(void)urgent;
	return sy__heap_give(heap, shrink);
}

static const struct sy__heap_hooks hooks = { .reclaim = reclaim };
static const struct sy_policy keeping = { .name = "keeper", .shrink = shrink };

static struct sy_pages *keeper_on(struct keeper *keeper, uint64_t page_count, unsigned slots)
{
	struct sy_pages_config config;

	one_zone(&config, page_count, slots);
	memset(keeper, 0, sizeof(*keeper));
	keeper->heap.policy = &keeping;
	keeper->heap.hooks = &hooks;
	keeper->heap.pages = sy_pages_create(&config);
	CHECK(keeper->heap.pages);
	keeper->heap.slots = slots;
	keeper->cache.heap = &keeper->heap;
	sy__list_init(&keeper->heap.caches);
	sy__list_add_tail(&keeper->heap.caches, &keeper->cache.link);
	sy__pages_attach(keeper->heap.pages, &keeper->heap);
	return keeper->heap.pages;
}

static void test_descriptors(void)
{
	struct keeper keeper;
	struct sy_pages *pages = keeper_on(&keeper, 8192, 1);
	struct sy_heap *heap = &keeper.heap;
	struct sy_page *slab = sy__pages_take(heap, 0, 3, SY_RECLAIMABLE, SY_ANY_NODE, SY_USE_SLAB);
	struct sy_page *large = sy__pages_take(heap, 0, 5, 0, SY_ANY_NODE, SY_USE_LARGE);
	struct sy_page *metadata = sy__pages_take(heap, 0, 0, SY_ZERO, 0, SY_USE_METADATA);
	char *address = sy__page_address(heap, slab), *zeros = sy__page_address(heap, metadata);
	unsigned i;

	CHECK(slab && large && metadata);
	CHECK((uintptr_t)address % (8 * SY_PAGE_SIZE) == 0);
	CHECK((uintptr_t)sy__page_address(heap, sy__page(pages, 0)) % (SY_PAGE_SIZE << SY_MAX_ORDER) == 0);
	for (i = 0; i < 8; i++) {
		CHECK(sy__page_of(heap, address + i * SY_PAGE_SIZE + 17) == slab + i);
		CHECK(sy__head_of(heap, address + i * SY_PAGE_SIZE + 4095) == slab);
		CHECK(slab[i].heap == heap && slab[i].order == 3);
	}
	for (i = 0; i < SY_PAGE_SIZE; i++)
		CHECK(zeros[i] == 0);
	CHECK_EQUAL(slab->migrate, SY_RECLAIMABLE_TYPE);
	CHECK_EQUAL(large->use, SY_USE_LARGE);
	CHECK_EQUAL(heap->counters.slab_pages, 8);
	CHECK_EQUAL(heap->counters.large_pages, 32);
	CHECK_EQUAL(heap->counters.metadata_pages, 1);
	CHECK_EQUAL(heap->counters.page_requests, 3);
	memset(slab->state, 0xAA, sizeof(slab->state));
	memset(address, 0xAA, 8 * SY_PAGE_SIZE);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy__pages_give(heap, 0, slab);
	sy__pages_give(heap, 0, large);
	CHECK_EQUAL(heap->counters.slab_pages + heap->counters.large_pages, 0);
	CHECK_EQUAL(heap->counters.held_peak, 40);
	CHECK_EQUAL(heap->counters.slab_pages_peak, 8);
	CHECK(sy__pages_take(heap, 0, 3, SY_RECLAIMABLE | SY_ZERO, SY_ANY_NODE, SY_USE_SLAB) == slab); /* still warm */
	for (i = 0; i < sizeof(slab->state); i++)
		CHECK_EQUAL(slab->state[i], 0);
	for (i = 0; i < 8 * SY_PAGE_SIZE; i++)
		CHECK(address[i] == 0);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy__pages_detach(pages, heap);
	sy_pages_destroy(pages);
}

/* The inner pages of a block tell its node too, as a free may ask the page that its object is in. They may have been
 * anything before. */
static void test_nodes(void)
{
	static const unsigned orders[] = { 3, 5, 0, 4 };
	struct sy_pages_config config;
	struct keeper keeper = { .heap.policy = &keeping, .heap.hooks = &hooks };
	struct sy_heap *heap = &keeper.heap;

	one_zone(&config, 8192, 2);
	config.zone_count = 2;
	config.zones[1] = config.zones[0];
	config.zones[1].node = 1;
	config.zones[1].start_page = 8192;
	heap->pages = sy_pages_create(&config);
	CHECK(heap->pages);
	heap->slots = 2;
	for (unsigned i = 0; i < 4; i++)
		for (int node = 0; node < 2; node++) {
			struct sy_page *head = sy__pages_take(heap, 0, orders[i], SY_THISNODE, node, SY_USE_SLAB);

			CHECK(head);
			for (unsigned page = 0; page < 1u << orders[i]; page++)
				CHECK_EQUAL(sy__page_node(head + page), node);
			sy__pages_give(heap, 0, head);
		}
	sy_pages_destroy(heap->pages);
}

/* The chosen request fails, and only that one; nothing is lost by it. */
static void test_faults(void)
{
	struct keeper keeper;
	struct sy_pages *pages = keeper_on(&keeper, 8192, 1);
	struct sy_pages_counts counts;
	struct sy_page *page[24];
	unsigned chosen, i;

	for (chosen = 1; chosen <= 24; chosen++) {
		sy_pages_fail_after(pages, chosen);
		for (i = 0; i < 24; i++) {
			page[i] = i % 2 ? sy_pages_alloc(pages, 0, i % 6, SY_MOVABLE, SY_ANY_NODE)
			                : sy__pages_take(&keeper.heap, 0, i % 6, 0, SY_ANY_NODE, SY_USE_SLAB);
			CHECK_EQUAL(page[i] == NULL, i + 1 == chosen);
		}
		for (i = 0; i < 24; i++)
			if (page[i] && i % 2)
				sy_pages_free(pages, 0, page[i]);
			else if (page[i])
				sy__pages_give(&keeper.heap, 0, page[i]);
		CHECK_TEXT(sy_pages_check(pages), NULL);
	}
	sy_pages_count(pages, &counts);
	CHECK_EQUAL(counts.requests, 24 * 24);
	CHECK_EQUAL(counts.failures, 24);
	CHECK_EQUAL(keeper.heap.counters.page_failures, 12);
	CHECK_EQUAL(keeper.heap.counters.page_requests, 24 * 12);
	CHECK_EQUAL(keeper.heap.counters.slab_pages, 0);
	sy__pages_detach(pages, &keeper.heap);
	sy_pages_destroy(pages);
}

static uint64_t reap_nothing(struct sy_cache *cache)
{
	(void)cache;
	return 0;
}

static uint64_t reclaim_urgently(struct sy_heap *heap, bool urgent)
{
	return sy__heap_give(heap, urgent ? shrink : reap_nothing);
}

static const struct sy__heap_hooks patient = { .reclaim = reclaim_urgently };

/* A policy that keeps free memory gives it up for a request that would fail. */
static void test_rescue(void)
{
	struct keeper keeper;
	struct sy_pages *pages = keeper_on(&keeper, 8192, 1);
	struct sy_pages_counts counts;

	keeper.heap.hooks = &patient;
	for (keeper.kept_count = 0; keeper.kept_count < 512; keeper.kept_count++)
		CHECK((keeper.kept[keeper.kept_count] = sy__pages_take(&keeper.heap, 0, 2, 0, SY_ANY_NODE, SY_USE_SLAB)));
	while (!keeper.shrinks)
		CHECK(sy_pages_alloc(pages, 0, 0, 0, SY_ANY_NODE));
	CHECK_EQUAL(keeper.kept_count, 0);
	CHECK(keeper.heap.counters.asked > 1);
	CHECK_EQUAL(keeper.heap.counters.asked_urgently, 1);
	CHECK_EQUAL(keeper.heap.counters.reclaimed_pages, 2048);
	CHECK_EQUAL(keeper.heap.counters.reclaimed_urgently, 2048);
	sy_pages_count(pages, &counts);
	CHECK_EQUAL(counts.rescued, 1);
	CHECK_EQUAL(counts.failures, 0);
	sy__pages_detach(pages, &keeper.heap);
	sy_pages_destroy(pages);
}

/* Below the low watermark heaps are asked; what they give serves the request. */
static void test_reclaim(void)
{
	struct keeper keeper;
	struct sy_pages *pages = keeper_on(&keeper, 8192, 1);
	uint64_t taken = 0;

	for (keeper.kept_count = 0; keeper.kept_count < 512; keeper.kept_count++)
		CHECK((keeper.kept[keeper.kept_count] = sy__pages_take(&keeper.heap, 0, 2, 0, SY_ANY_NODE, SY_USE_SLAB)));
	keeper.asks_meanwhile = true;
	while (sy_pages_alloc(pages, 0, 3, SY_NO_RECLAIM, SY_ANY_NODE))
		taken += 8;
	CHECK_EQUAL(keeper.shrinks, 0);
	CHECK_EQUAL(keeper.kept_count, 512);
	while (sy_pages_alloc(pages, 0, 0, 0, SY_ANY_NODE))
		taken++;
	CHECK(keeper.shrinks > 1 && keeper.shrinks < 12); /* in vain, but not for every request */
	CHECK_EQUAL(keeper.kept_count, 0);
	CHECK_EQUAL(keeper.heap.counters.reclaimed_pages, 2048);
	CHECK_EQUAL(keeper.heap.counters.asked, keeper.shrinks);
	CHECK_EQUAL(keeper.heap.counters.asked_urgently, 1); /* before the request that failed */
	CHECK_EQUAL(keeper.heap.counters.reclaimed_urgently, 0);
	CHECK(taken + pages->zones[0].marks[SY__WMARK_MIN] + 16 >= 8192);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	keeper.asks_meanwhile = false;
	sy__pages_detach(pages, &keeper.heap);
	keeper.shrinks = 0;
	CHECK(!sy_pages_alloc(pages, 0, 3, 0, SY_ANY_NODE));
	CHECK_EQUAL(keeper.shrinks, 0);
	sy_pages_destroy(pages);
}

static uint64_t committed(struct sy_pages *pages)
{
	struct sy_pages_counts counts;

	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_count(pages, &counts);
	return counts.committed_pages;
}

static void test_release(void)
{
	struct keeper keeper;
	struct sy_pages *pages = keeper_on(&keeper, 8192, 1);
	struct sy_page *slab, *large, *environment;
	char *address;

	CHECK((environment = sy_pages_alloc(pages, 0, 4, 0, SY_ANY_NODE)));
	CHECK_EQUAL(committed(pages), 0);
	CHECK((slab = sy__pages_take(&keeper.heap, 0, 0, 0, SY_ANY_NODE, SY_USE_SLAB)));
	CHECK((large = sy__pages_take(&keeper.heap, 0, 8, 0, SY_ANY_NODE, SY_USE_LARGE)));
	CHECK_EQUAL(committed(pages), 257);
	address = sy__page_address(&keeper.heap, large);
	memset(address, 0xAA, 256 * SY_PAGE_SIZE);
	CHECK_EQUAL(sy_pages_release(pages, 0), 0);
	sy__pages_give(&keeper.heap, 0, large);
	CHECK_EQUAL(committed(pages), 257);
	CHECK_EQUAL(sy_pages_release(pages, SY_MAX_ORDER), 0);
	CHECK_EQUAL(sy_pages_release(pages, 8), 256);
	CHECK_EQUAL(sy_pages_release(pages, 0), 0);
	CHECK_EQUAL(committed(pages), 1);
	CHECK((large = sy__pages_take(&keeper.heap, 0, 8, 0, SY_ANY_NODE, SY_USE_LARGE)));
	CHECK(sy__page_address(&keeper.heap, large) == address);
	CHECK(address[0] == 0 && address[256 * SY_PAGE_SIZE - 1] == 0);
	CHECK_EQUAL(committed(pages), 257);
	sy__pages_give(&keeper.heap, 0, large);
	sy__pages_give(&keeper.heap, 0, slab);
	sy_pages_free(pages, 0, environment);
	sy_pages_drain(pages, 0);
	CHECK_EQUAL(sy_pages_release(pages, 0), 257);
	CHECK_EQUAL(committed(pages), 0);
	sy__pages_detach(pages, &keeper.heap);
	sy_pages_destroy(pages);
}

/* The operating system refuses: first memory for objects, then descriptors. Both are a NULL, and pass. */
static void test_no_memory(void)
{
	struct keeper keeper;
	struct sy_pages *pages = keeper_on(&keeper, 8192, 1);
	struct sy_page *environment = sy_pages_alloc(pages, 0, 6, SY_MOVABLE, SY_ANY_NODE), *page;
	struct rlimit before, none;
	static const blocks_t nothing;
	static const uint64_t movable[SY_MIGRATE_TYPES] = { 0, 16, 0, 0 };
	bool taken, grown, populated;

	CHECK(environment);
	CHECK(getrlimit(RLIMIT_DATA, &before) == 0);
	none = before;
	none.rlim_cur = SY_PAGE_SIZE; /* Linux takes 0 for no limit */
	CHECK(setrlimit(RLIMIT_DATA, &none) == 0);
	taken = sy__pages_take(&keeper.heap, 0, 0, 0, SY_ANY_NODE, SY_USE_SLAB);
	grown = sy_pages_alloc(pages, 0, SY_MAX_ORDER, SY_MOVABLE, SY_ANY_NODE);
	CHECK(setrlimit(RLIMIT_DATA, &before) == 0);
	CHECK(!taken && !grown);
	CHECK_EQUAL(keeper.heap.counters.page_failures, 1);
	CHECK_EQUAL(keeper.heap.counters.slab_pages, 0);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	CHECK((page = sy_pages_alloc(pages, 0, SY_MAX_ORDER, SY_MOVABLE, SY_ANY_NODE)));
	sy_pages_free(pages, 0, page);
	CHECK((page = sy__pages_take(&keeper.heap, 0, 0, 0, SY_ANY_NODE, SY_USE_SLAB)));
	memset(sy__page_address(&keeper.heap, page), 1, SY_PAGE_SIZE);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy__pages_detach(pages, &keeper.heap);
	sy_pages_destroy(pages);

	pages = keeper_on(&keeper, 8192, 1);
	CHECK(setrlimit(RLIMIT_DATA, &none) == 0);
	populated = sy_pages_populate(pages, 0, nothing, movable);
	CHECK(setrlimit(RLIMIT_DATA, &before) == 0);
	CHECK(!populated);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	CHECK(sy_pages_populate(pages, 0, nothing, movable));
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy__pages_detach(pages, &keeper.heap);
	sy_pages_destroy(pages);
}

#define THREADS 4

struct worker {
	struct keeper *keeper;
	unsigned slot;
	struct sy_page **shared; /* 64 places, where threads leave blocks for each other */
};

/* Puts the blocks it takes into shared places, and frees the blocks it finds there; another thread may have taken them. */
static void *work(void *argument)
{
	struct worker *worker = argument;
	struct sy_heap *heap = &worker->keeper->heap;
	uint64_t random = worker->slot + 1;
	unsigned step, slot = worker->slot;

	for (step = 0; step < 30000; step++) {
		uint64_t r = random_next(&random);
		enum sy_page_use use = r >> 20 & 1 ? SY_USE_SLAB : SY_USE_LARGE;
		struct sy_page *page = sy__pages_take(heap, slot, (unsigned)(r >> 8) % 5, r & SY_RECLAIMABLE, SY_ANY_NODE, use);

		if (page)
			*(unsigned *)sy__page_address(heap, page) = step;
		page = __atomic_exchange_n(&worker->shared[r >> 32 & 63], page, __ATOMIC_ACQ_REL);
		if (page)
			sy__pages_give(heap, slot, page);
		if (step % 5000 == 0)
			sy_pages_drain(heap->pages, (slot + 1) % THREADS);
	}
	return NULL;
}

static void test_threads(void)
{
	static struct sy_page *shared[64];
	struct keeper keeper;
	struct sy_pages *pages = keeper_on(&keeper, 4096, THREADS);
	struct sy_pages_config config;
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	unsigned i;

	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ &keeper, i, shared };
		CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	for (i = 0; i < 64; i++)
		if (shared[i])
			sy__pages_give(&keeper.heap, 0, shared[i]);
	CHECK_EQUAL(keeper.heap.counters.slab_pages + keeper.heap.counters.large_pages, 0);
	CHECK_EQUAL(keeper.heap.counters.page_requests, THREADS * 30000);
	one_zone(&config, 4096, THREADS);
	check_all_free(pages, &config);
	sy__pages_detach(pages, &keeper.heap);
	sy_pages_destroy(pages);
}

int main(void)
{
	test_descriptors();
	test_nodes();
	test_faults();
	test_rescue();
	test_reclaim();
	test_release();
	if (!check_emulated("an operating system that refuses memory"))
		test_no_memory();
	test_threads();
	return check_result();
}
