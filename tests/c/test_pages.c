/* The page allocator as its users see it: random programs, exhaustion and recovery, a terabyte, nodes, release. */
#include "pages_support.h"

#define HELD 4096

/* Allocates and frees at random; every page is accounted for all along, and all are free again at the end. */
static void random_program(const struct sy_pages_config *config, uint64_t seed, unsigned steps, unsigned max_order)
{
	static struct sy_page *held[HELD];
	static const unsigned flags[] = { 0, SY_MOVABLE, SY_RECLAIMABLE, SY_MOVABLE, SY_HIGHATOMIC, SY_DMA32, SY_DMA };
	struct sy_pages *pages = sy_pages_create(config);
	uint64_t random = seed;
	unsigned step, i, slot;

	CHECK(pages);
	for (i = 0; i < HELD; i++)
		held[i] = NULL;
	for (step = 0; step < steps; step++) {
		uint64_t r = random_next(&random);

		i = (unsigned)(r % HELD);
		slot = (unsigned)(r >> 16) % config->slots;
		if (held[i]) {
			sy_pages_free(pages, slot, held[i]);
			held[i] = NULL;
		} else {
			unsigned order = (unsigned)(r >> 32) % (max_order + 1);

			held[i] = sy_pages_alloc(pages, slot, order, flags[(r >> 48) % 7], SY_ANY_NODE);
			CHECK(!held[i] || sy_page_number(pages, held[i]) % ((uint64_t)1 << order) == 0);
		}
		if (step % (steps / 40) == 0)
			CHECK_TEXT(sy_pages_check(pages), NULL);
	}
	CHECK_TEXT(sy_pages_check(pages), NULL);
	for (i = 0; i < HELD; i++)
		if (held[i])
			sy_pages_free(pages, i % config->slots, held[i]);
	check_all_free(pages, config);
	sy_pages_destroy(pages);
}

static void test_random(void)
{
	struct sy_pages_config config;
	unsigned seed;

	for (seed = 1; seed <= 6; seed++) {
		pc_config(&config, 64 * MIB, 4);
		random_program(&config, seed, 40000, 3);
		random_program(&config, seed * 7, 20000, SY_MAX_ORDER);
		config.pageblock_order = 5;
		random_program(&config, seed * 11, 20000, 4);
		config.cpu_lists = false;
		config.pageblock_order = SY_MAX_ORDER;
		random_program(&config, seed * 13, 20000, 6);
	}
}

/* A zone that ends in the middle of everything, and is not managed as a whole. */
static void test_odd_sizes(void)
{
	struct sy_pages_config config;

	one_zone(&config, 5000, 3);
	random_program(&config, 3, 20000, 3);
	config.zones[0].managed = 4321;
	random_program(&config, 4, 20000, 5);
	one_zone(&config, 333, 1);
	random_program(&config, 5, 20000, 2);
}

static void test_exhaustion(void)
{
	struct sy_pages_config config;
	struct sy_pages_counts counts;
	struct sy_pages *pages;
	struct sy_page *first = NULL, *page;
	uint64_t taken = 0;
	unsigned order;

	for (order = 0; order <= SY_MAX_ORDER; order++) {
		one_zone(&config, 16384, 2);
		pages = sy_pages_create(&config);
		CHECK(pages);
		for (taken = 0; (page = sy_pages_alloc(pages, 0, order, 0, SY_ANY_NODE)); taken++) {
			page->bytes = (uint64_t)(uintptr_t)first; /* nobody's field: a list of what is held */
			first = page;
		}
		sy_pages_count(pages, &counts);
		CHECK(counts.failures == 1 && counts.requests == taken + 1);
		CHECK(counts.zones[0].used[SY_USE_ENVIRONMENT] == taken << order);
		CHECK(16384 - (taken << order) <= counts.zones[0].min + ((uint64_t)1 << order));
		CHECK_TEXT(sy_pages_check(pages), NULL);
		for (; first; first = page) {
			page = (struct sy_page *)(uintptr_t)first->bytes;
			sy_pages_free(pages, 1, first);
		}
		check_all_free(pages, &config);
		CHECK(sy_pages_alloc(pages, 0, SY_MAX_ORDER + 1, 0, SY_ANY_NODE) == NULL);
		sy_pages_destroy(pages);
	}
}

/* Where there is not so much address space, it is refused. */
static void test_terabyte(void)
{
	struct sy_pages_config config;
	struct sy_pages_counts counts;
	struct sy_pages *pages;
	struct sy_page *page[64];
	unsigned i;

	pc_config(&config, 1024 * 1024 * MIB, 8);
	if (check_addressable(1024 * 1024 * MIB) && check_emulated("a terabyte"))
		return;
	pages = sy_pages_create(&config);
	CHECK_EQUAL(pages != NULL, check_addressable(1024 * 1024 * MIB));
	if (!pages)
		return;
	for (i = 0; i < 64; i++)
		CHECK((page[i] = sy_pages_alloc(pages, i % 8, i % SY_ORDERS, i % 2 ? SY_MOVABLE : 0, SY_ANY_NODE)));
	sy_pages_count(pages, &counts);
	CHECK(counts.zones[2].ungrown > counts.zones[2].pages - 64 * 1024);
	CHECK(counts.zones[2].free_blocks[SY_MOVABLE_TYPE][SY_MAX_ORDER] > 250000);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	for (i = 0; i < 64; i++)
		sy_pages_free(pages, 7 - i % 8, page[i]);
	check_all_free(pages, &config);
	sy_pages_destroy(pages);
}

static void test_nodes(void)
{
	struct sy_pages_config config;
	struct sy_pages *pages;
	struct sy_page *page;
	unsigned on_other = 0;

	one_zone(&config, 8192, 4);
	config.zone_count = 2;
	config.zones[1] = config.zones[0];
	config.zones[1].node = 1;
	config.zones[1].start_page = 8192;
	pages = sy_pages_create(&config);
	CHECK(pages);
	page = sy_pages_alloc(pages, 0, 0, 0, SY_ANY_NODE);
	CHECK(page && page->node == 0);
	page = sy_pages_alloc(pages, 3, 0, 0, SY_ANY_NODE);
	CHECK(page && page->node == 1 && sy_page_number(pages, page) >= 8192);
	page = sy_pages_alloc(pages, 3, 5, 0, 0);
	CHECK(page && page->node == 0);
	while ((page = sy_pages_alloc(pages, 0, 4, SY_THISNODE, 0)))
		CHECK(page->node == 0);
	CHECK((page = sy_pages_alloc(pages, 0, 4, SY_THISNODE, 1)) && page->node == 1);
	while ((page = sy_pages_alloc(pages, 0, 4, 0, 0)))
		on_other += page->node == 1;
	CHECK(on_other > 400);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_destroy(pages);
}

/* DMA and DMA32 are kept for requests that need them. They serve other requests when Normal has run out. */
static void test_zones(void)
{
	struct sy_pages_config config;
	struct sy_pages *pages;
	struct sy_page *page;
	uint64_t by_zone[3] = { 0, 0, 0 };

	one_zone(&config, 32768, 1);
	config.zone_count = 3;
	config.zones[1] = config.zones[2] = config.zones[0];
	name_zone(&config.zones[0], "DMA", 0, 4096);
	name_zone(&config.zones[1], "DMA32", 4096, 32768);
	name_zone(&config.zones[2], "Normal", 65536, 32768);
	pages = sy_pages_create(&config);
	CHECK(pages);
	CHECK(pages->zones[0].reserve[SY__KIND_DMA32] == 32768 / 256);
	CHECK(pages->zones[0].reserve[SY__KIND_NORMAL] == 65536 / 256);
	CHECK(pages->zones[1].reserve[SY__KIND_NORMAL] == 32768 / 256 && pages->zones[1].reserve[SY__KIND_DMA32] == 0);
	CHECK(pages->zones[2].reserve[SY__KIND_MOVABLE] == 0);
	CHECK((page = sy_pages_alloc(pages, 0, 0, SY_DMA, SY_ANY_NODE)) && page->zone == 0);
	CHECK((page = sy_pages_alloc(pages, 0, 0, SY_DMA32, SY_ANY_NODE)) && page->zone == 1);
	CHECK((page = sy_pages_alloc(pages, 0, 0, 0, SY_ANY_NODE)) && page->zone == 2);
	CHECK(sy_page_number(pages, page) == 65536);
	while ((page = sy_pages_alloc(pages, 0, 2, SY_MOVABLE, SY_ANY_NODE)))
		by_zone[page->zone]++;
	CHECK(by_zone[2] > 8000 && by_zone[1] > 7900 && by_zone[0] < 1024);
	CHECK((page = sy_pages_alloc(pages, 0, 2, SY_DMA, SY_ANY_NODE)) && page->zone == 0);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_destroy(pages);
}

static void test_watermarks(void)
{
	struct sy_pages_config config;
	struct sy_pages_counts counts;
	struct sy_pages *pages;

	one_zone(&config, 131072, 1); /* 512 MiB: sqrt(524288 * 16) = 2896 KiB = 724 pages */
	pages = sy_pages_create(&config);
	CHECK(pages);
	sy_pages_count(pages, &counts);
	CHECK(counts.zones[0].min == 724 && counts.zones[0].low == 724 + 181 && counts.zones[0].high == 724 + 362);
	sy_pages_destroy(pages);
	one_zone(&config, 100, 1); /* never less than 128 KiB in all */
	pages = sy_pages_create(&config);
	CHECK(pages);
	sy_pages_count(pages, &counts);
	CHECK(counts.zones[0].min == 32);
	sy_pages_destroy(pages);
	config.zones[0].min = 10;
	config.zones[0].low = 20;
	config.zones[0].high = 30;
	pages = sy_pages_create(&config);
	CHECK(pages);
	sy_pages_count(pages, &counts);
	CHECK(counts.zones[0].min == 10 && counts.zones[0].low == 20 && counts.zones[0].high == 30);
	sy_pages_destroy(pages);
}

static void refuse(const struct sy_pages_config *config)
{
	CHECK(sy_pages_config_error(config));
	CHECK(!sy_pages_create(config));
}

static void test_configurations(void)
{
	struct sy_pages_config good, bad;

	pc_config(&good, 64 * MIB, 1);
	CHECK_TEXT(sy_pages_config_error(&good), NULL);
	bad = good, bad.zone_count = 0, refuse(&bad);
	bad = good, bad.zone_count = SY_MAX_ZONES + 1, refuse(&bad);
	bad = good, bad.slots = 0, refuse(&bad);
	bad = good, bad.slots = SY_MAX_SLOTS + 1, refuse(&bad);
	bad = good, bad.pageblock_order = 0, refuse(&bad);
	bad = good, bad.pageblock_order = SY_MAX_ORDER + 1, refuse(&bad);
	bad = good, bad.zones[1].start_page -= 1024, refuse(&bad);
	bad = good, bad.zones[1].start_page += 1, refuse(&bad);
	bad = good, bad.zones[0].pages = 0, refuse(&bad);
	bad = good, bad.zones[0].managed = bad.zones[0].pages + 1, refuse(&bad);
	bad = good, bad.zones[0].node = SY_MAX_NODES, refuse(&bad);
	bad = good, bad.zones[0].name[0] = 0, refuse(&bad);
	bad = good, bad.zones[0].min = 10, bad.zones[0].low = 5, refuse(&bad);
	bad = good, bad.zones[1].pages = UINT64_MAX / 4 - 1, refuse(&bad);
}

int main(void)
{
	test_configurations();
	test_watermarks();
	test_exhaustion();
	test_odd_sizes();
	test_random();
	test_terabyte();
	test_nodes();
	test_zones();
	return check_result();
}
