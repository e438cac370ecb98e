/* Fallback between migrate types and the HighAtomic reserve: cases worked by hand from Linux 6.1's rules. */
#include "pages_support.h"

struct log {
	unsigned count;
	struct sy_fallback_event last;
};

static void record(void *context, const struct sy_fallback_event *event)
{
	struct log *log = context;

	log->count++;
	log->last = *event;
}

/* No watermarks to speak of, no per-CPU lists: what a request gets is decided by the free lists alone. */
static struct sy_pages *bare_zone(uint64_t page_count, struct log *log)
{
	struct sy_pages_config config;
	struct sy_pages *pages;

	one_zone(&config, page_count, 1);
	config.cpu_lists = false;
	config.zones[0].min = config.zones[0].low = config.zones[0].high = 1;
	pages = sy_pages_create(&config);
	CHECK(pages);
	log->count = 0;
	sy_pages_on_fallback(pages, record, log);
	return pages;
}

static uint64_t take(struct sy_pages *pages, unsigned order, unsigned flags)
{
	struct sy_page *page = sy_pages_alloc(pages, 0, order, flags, SY_ANY_NODE);

	CHECK_TEXT(sy_pages_check(pages), NULL);
	return page ? sy_page_number(pages, page) : UINT64_MAX;
}

static void give(struct sy_pages *pages, uint64_t first, uint64_t count)
{
	for (; count--; first++)
		sy_pages_free(pages, 0, sy__page(pages, first));
	CHECK_TEXT(sy_pages_check(pages), NULL);
}

static void expect(struct log *log, unsigned count, uint64_t page, unsigned order, unsigned type, unsigned donor,
                   bool changed)
{
	CHECK_EQUAL(log->count, count);
	CHECK_EQUAL(log->last.page, page);
	CHECK_EQUAL(log->last.fallback_order, order);
	CHECK_EQUAL(log->last.alloc_migrate, type);
	CHECK_EQUAL(log->last.fallback_migrate, donor);
	CHECK_EQUAL(log->last.change_ownership, changed);
}

static void expect_pageblocks(struct sy_pages *pages, uint64_t unmovable, uint64_t movable, uint64_t reclaimable,
                              uint64_t reserved)
{
	struct sy_pages_counts counts;

	sy_pages_count(pages, &counts);
	CHECK_EQUAL(counts.zones[0].pageblocks[SY_UNMOVABLE], unmovable);
	CHECK_EQUAL(counts.zones[0].pageblocks[SY_MOVABLE_TYPE], movable);
	CHECK_EQUAL(counts.zones[0].pageblocks[SY_RECLAIMABLE_TYPE], reclaimable);
	CHECK_EQUAL(counts.zones[0].pageblocks[SY_HIGHATOMIC_TYPE], reserved);
}

/* Four maximal blocks of two pageblocks each: blocks change owner as a whole, and by the half of a pageblock. */
static void test_large_blocks(void)
{
	struct log log;
	struct sy_pages *pages = bare_zone(4096, &log);

	CHECK_EQUAL(take(pages, 0, 0), 0);
	expect(&log, 1, 0, 10, SY_UNMOVABLE, SY_MOVABLE_TYPE, true);
	expect_pageblocks(pages, 2, 6, 0, 0);
	CHECK_EQUAL(take(pages, 0, 0), 1);
	CHECK_EQUAL(log.count, 1);

	CHECK_EQUAL(take(pages, 0, SY_RECLAIMABLE), 1024);
	expect(&log, 2, 1024, 10, SY_RECLAIMABLE_TYPE, SY_MOVABLE_TYPE, true);
	expect_pageblocks(pages, 2, 4, 2, 0);

	CHECK_EQUAL(take(pages, 10, SY_MOVABLE), 2048);
	CHECK_EQUAL(take(pages, 10, SY_MOVABLE), 3072);
	CHECK_EQUAL(log.count, 2);

	/* Both other types have a block of order 9; reclaimable is asked first. */
	CHECK_EQUAL(take(pages, 0, SY_MOVABLE), 1536);
	expect(&log, 3, 1536, 9, SY_MOVABLE_TYPE, SY_RECLAIMABLE_TYPE, true);
	CHECK_EQUAL(take(pages, 9, SY_MOVABLE), 512);
	expect(&log, 4, 512, 9, SY_MOVABLE_TYPE, SY_UNMOVABLE, true);
	expect_pageblocks(pages, 1, 6, 1, 0);

	/* Its own block of order 8 comes first. Then a pageblock that is nearly all free changes owner, with its pages in
	 * use. */
	CHECK_EQUAL(take(pages, 8, SY_MOVABLE), 1536 + 256);
	CHECK_EQUAL(log.count, 4);
	CHECK_EQUAL(take(pages, 8, SY_MOVABLE), 1024 + 256);
	expect(&log, 5, 1024 + 256, 8, SY_MOVABLE_TYPE, SY_RECLAIMABLE_TYPE, true);
	expect_pageblocks(pages, 1, 7, 0, 0);
	sy_pages_destroy(pages);
}

/* A movable request takes the smallest block when no block has half a pageblock's order. Others take the largest. */
static void test_small_blocks(void)
{
	struct log log;
	struct sy_pages *pages = bare_zone(1024, &log);
	unsigned i;

	for (i = 0; i < 1023; i++)
		CHECK_EQUAL(take(pages, 0, 0), i);
	give(pages, 3, 1);
	give(pages, 8, 2);
	give(pages, 16, 4);
	give(pages, 32, 8);
	CHECK_EQUAL(log.count, 1);
	CHECK_EQUAL(take(pages, 0, SY_MOVABLE), 3);
	expect(&log, 2, 3, 0, SY_MOVABLE_TYPE, SY_UNMOVABLE, false);
	CHECK_EQUAL(take(pages, 1, SY_MOVABLE), 8);
	expect(&log, 3, 8, 1, SY_MOVABLE_TYPE, SY_UNMOVABLE, false);

	/* All free pages of the pageblock, 12 of 512, change lists; the pageblock keeps its type. The smaller block serves. */
	CHECK_EQUAL(take(pages, 0, SY_RECLAIMABLE), 16);
	expect(&log, 4, 32, 3, SY_RECLAIMABLE_TYPE, SY_UNMOVABLE, false);
	expect_pageblocks(pages, 2, 0, 0, 0);
	CHECK_EQUAL(take(pages, 3, SY_RECLAIMABLE), 32);
	CHECK_EQUAL(log.count, 4);
	sy_pages_destroy(pages);
}

/* Movable pages in use do not suit an unmovable owner: free pages alone must be half of the pageblock. */
static void test_half_of_a_pageblock(void)
{
	struct log log;
	struct sy_pages *pages = bare_zone(1024, &log);
	unsigned i;

	for (i = 0; i < 1023; i++)
		CHECK_EQUAL(take(pages, 0, SY_MOVABLE), i);
	give(pages, 0, 112);
	CHECK_EQUAL(log.count, 0);
	CHECK_EQUAL(take(pages, 0, 0), 96);
	expect(&log, 1, 0, 6, SY_UNMOVABLE, SY_MOVABLE_TYPE, false);
	expect_pageblocks(pages, 0, 2, 0, 0);
	give(pages, 512, 300);
	CHECK_EQUAL(take(pages, 8, 0), 512);
	expect(&log, 2, 512, 8, SY_UNMOVABLE, SY_MOVABLE_TYPE, true);
	expect_pageblocks(pages, 1, 1, 0, 0);
	sy_pages_destroy(pages);
}

/* Unmovable pages in use suit a reclaimable owner if the pageblock was movable: 100 free and 200 of them are enough. */
static void test_suitable_pages(void)
{
	struct log log;
	struct sy_pages *pages = bare_zone(1024, &log);
	unsigned i;

	for (i = 0; i < 1023; i++)
		CHECK_EQUAL(take(pages, 0, SY_MOVABLE), i);
	give(pages, 0, 200);
	for (i = 0; i < 200; i++)
		CHECK(take(pages, 0, 0) < 200);
	give(pages, 256, 100);
	CHECK_EQUAL(take(pages, 0, SY_RECLAIMABLE), 352);
	expect(&log, log.count, 256, 6, SY_RECLAIMABLE_TYPE, SY_MOVABLE_TYPE, true);
	expect_pageblocks(pages, 0, 1, 1, 0);
	sy_pages_destroy(pages);
}

/* The other way round, movable pages in an unmovable pageblock suit a movable owner: 100 free and 160 of them are enough. */
static void test_suitable_movable_pages(void)
{
	struct log log;
	struct sy_pages *pages = bare_zone(1024, &log);
	unsigned i;

	for (i = 0; i < 1023; i++)
		CHECK_EQUAL(take(pages, 0, 0), i);
	for (i = 0; i < 160; i++) {
		give(pages, i, 1);
		CHECK_EQUAL(take(pages, 0, SY_MOVABLE), i);
	}
	expect_pageblocks(pages, 2, 0, 0, 0);
	give(pages, 256, 100);
	CHECK_EQUAL(take(pages, 0, SY_MOVABLE), 352);
	expect(&log, log.count, 256, 6, SY_MOVABLE_TYPE, SY_UNMOVABLE, true);
	expect_pageblocks(pages, 1, 1, 0, 0);
	sy_pages_destroy(pages);
}

/* A freed page is the next to be used, unless its neighbourhood is about to become whole. */
static void test_order_of_use(void)
{
	struct log log;
	struct sy_pages *pages = bare_zone(1024, &log);
	unsigned i;

	for (i = 0; i < 1023; i++)
		CHECK_EQUAL(take(pages, 0, SY_MOVABLE), i);
	give(pages, 200, 1);
	give(pages, 100, 1);
	give(pages, 2, 2);
	give(pages, 0, 1); /* pages 2 and 3 are free: if page 1 were too, all four would join */
	CHECK_EQUAL(take(pages, 0, SY_MOVABLE), 100);
	CHECK_EQUAL(take(pages, 0, SY_MOVABLE), 200);
	CHECK_EQUAL(take(pages, 0, SY_MOVABLE), 1023);
	CHECK_EQUAL(take(pages, 0, SY_MOVABLE), 0);
	CHECK_EQUAL(take(pages, 0, SY_MOVABLE), 2);
	sy_pages_destroy(pages);
}

/* With DMA32 below it, Normal does not give small blocks to other types while DMA32 has memory; but does before
 * the other node is asked. */
static void test_restraint(void)
{
	struct sy_pages_config config;
	struct sy_pages_counts counts;
	struct sy_pages *pages;
	struct sy_page *page;
	unsigned i;

	one_zone(&config, 8192, 1);
	config.zone_count = 3;
	config.cpu_lists = false;
	name_zone(&config.zones[0], "DMA32", 0, 8192);
	config.zones[1] = config.zones[0];
	name_zone(&config.zones[1], "Normal", 8192, 8192);
	config.zones[2] = config.zones[1];
	config.zones[2].start_page = 16384;
	config.zones[2].node = 1;
	for (i = 0; i < 3; i++)
		config.zones[i].min = config.zones[i].low = config.zones[i].high = 1;
	pages = sy_pages_create(&config);
	CHECK(pages);
	for (i = 0; i < 31; i++)
		CHECK((page = sy_pages_alloc(pages, 0, 8, SY_MOVABLE, SY_ANY_NODE)) && page->zone == 1);
	/* 256 movable pages of Normal are free, less than a pageblock */
	CHECK((page = sy_pages_alloc(pages, 0, 4, 0, SY_ANY_NODE)) && page->zone == 0);
	sy_pages_count(pages, &counts);
	CHECK_EQUAL(counts.zones[1].pageblocks[SY_UNMOVABLE], 0);
	while ((page = sy_pages_alloc(pages, 0, 4, 0, SY_ANY_NODE)) && page->zone == 0)
		;
	CHECK(page && page->zone == 1);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_destroy(pages);
}

/* Pages of the reserve return to it, and its pageblock does not join its free neighbour before it is given up. */
static void test_reserve_apart(void)
{
	struct sy_pages_config config;
	struct sy_pages_counts counts;
	struct sy_pages *pages;
	struct sy_page *page;

	one_zone(&config, 4096, 1);
	config.cpu_lists = false;
	config.zones[0].min = 1;
	config.zones[0].low = config.zones[0].high = 4096;
	pages = sy_pages_create(&config);
	CHECK(pages);
	CHECK((page = sy_pages_alloc(pages, 0, 5, SY_HIGHATOMIC, SY_ANY_NODE)));
	sy_pages_free(pages, 0, page);
	CHECK((page = sy_pages_alloc(pages, 0, 1, SY_HIGHATOMIC, SY_ANY_NODE)));
	sy_pages_free(pages, 0, page);
	sy_pages_drain(pages, 0);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_count(pages, &counts);
	CHECK_EQUAL(counts.zones[0].pageblocks[SY_HIGHATOMIC_TYPE], 1);
	CHECK_EQUAL(counts.zones[0].free_blocks[SY_HIGHATOMIC_TYPE][9], 1);
	CHECK_EQUAL(counts.zones[0].free_blocks[SY_UNMOVABLE][9], 1);
	check_all_free(pages, &config);
	sy_pages_destroy(pages);
}

/* Under pressure an atomic request of order 2 reserves its pageblock, up to 1% and one; the reserve is given up last. */
static void test_reserve(void)
{
	struct sy_pages_config config;
	struct sy_pages_counts counts;
	struct sy_pages *pages;
	struct sy_page *page;
	unsigned i;

	one_zone(&config, 65536, 1);
	config.cpu_lists = false;
	config.zones[0].min = 1000;
	config.zones[0].low = config.zones[0].high = 65536;
	pages = sy_pages_create(&config);
	CHECK(pages);
	CHECK((page = sy_pages_alloc(pages, 0, 0, SY_HIGHATOMIC, SY_ANY_NODE)) != NULL);
	expect_pageblocks(pages, 2, 126, 0, 0);
	CHECK((page = sy_pages_alloc(pages, 0, 2, SY_HIGHATOMIC, SY_ANY_NODE)) && sy_page_number(pages, page) == 4);
	expect_pageblocks(pages, 1, 126, 0, 1);
	for (i = 0; i < 126; i++)
		CHECK((page = sy_pages_alloc(pages, 0, 2, SY_HIGHATOMIC, SY_ANY_NODE)) && sy_page_number(pages, page) < 512);
	expect_pageblocks(pages, 1, 126, 0, 1);
	for (i = 0; i < 512; i++)
		CHECK(sy_pages_alloc(pages, 0, 2, SY_HIGHATOMIC, SY_ANY_NODE));
	sy_pages_count(pages, &counts);
	CHECK_EQUAL(counts.zones[0].pageblocks[SY_HIGHATOMIC_TYPE], 3); /* 655 + 512 pages allow a third one to begin */
	while (sy_pages_alloc(pages, 0, 0, 0, SY_ANY_NODE))
		;
	CHECK_TEXT(sy_pages_check(pages), NULL);
	/* Two reserved pageblocks are wholly in use. As in Linux 6.1, they are kept from other types all the same. */
	expect_pageblocks(pages, 124, 2, 0, 2); /* the last two were never grown */
	CHECK_EQUAL(pages->zones[0].free_pages, 1000 + 1024);
	for (i = 0; sy_pages_alloc(pages, 0, 0, SY_HIGHATOMIC, SY_ANY_NODE); i++)
		;
	CHECK_EQUAL(pages->zones[0].free_pages, 375);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_destroy(pages);
}

int main(void)
{
	test_large_blocks();
	test_small_blocks();
	test_half_of_a_pageblock();
	test_suitable_pages();
	test_suitable_movable_pages();
	test_order_of_use();
	test_restraint();
	test_reserve();
	test_reserve_apart();
	return check_result();
}
