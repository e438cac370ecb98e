/* Per-CPU lists: sizes by Linux 6.1's rules, refilling, freeing in growing batches, draining. */
#include "pages_support.h"

static uint64_t waiting(struct sy_pages *pages)
{
	struct sy_pages_counts counts;

	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_count(pages, &counts);
	return counts.zones[0].used[SY_USE_CPU_LIST];
}

/* Of memory that there is address space for. */
static void expect_sizes(uint64_t bytes, unsigned slots, unsigned batch, unsigned high)
{
	struct sy_pages_config config;
	struct sy_pages *pages;

	one_zone(&config, bytes / SY_PAGE_SIZE, slots);
	pages = sy_pages_create(&config);
	CHECK_EQUAL(pages != NULL, check_addressable(bytes));
	if (!pages)
		return;
	CHECK_EQUAL(pages->zones[0].batch, batch);
	CHECK_EQUAL(pages->zones[0].cpu_high, high);
	sy_pages_destroy(pages);
}

static void test_sizes(void)
{
	expect_sizes(512 * MIB, 1, 31, 905);  /* low watermark 724 + 181 */
	expect_sizes(384 * MIB, 1, 31, 783);  /* 24 pages, half as many more, rounded down, less one */
	expect_sizes(512 * MIB, 4, 31, 226);
	expect_sizes(512 * MIB, 16, 31, 124); /* four batches */
	expect_sizes(1024 * MIB, 64, 63, 252);
	expect_sizes(64 * 1024 * MIB, 64, 63, 390); /* 32768 KiB: 8192 pages, and 16777 more, over 64 CPUs */
	expect_sizes(4 * MIB, 1, 1, 80);      /* 256 KiB: 64 + 16 pages */
}

static struct sy_pages *small_lists(unsigned batch, unsigned high, unsigned slots)
{
	struct sy_pages_config config;
	struct sy_pages *pages;

	one_zone(&config, 8192, slots);
	config.cpu_list_batch = batch;
	config.cpu_list_high = high;
	pages = sy_pages_create(&config);
	CHECK(pages);
	return pages;
}

static void test_batches(void)
{
	struct sy_pages *pages = small_lists(4, 16, 1);
	struct sy_page *page[40], *hot;
	unsigned i;

	for (i = 0; i < 40; i++) {
		CHECK((page[i] = sy_pages_alloc(pages, 0, 0, 0, SY_ANY_NODE)));
		CHECK_EQUAL(sy_page_number(pages, page[i]), i); /* ascending through refills */
		CHECK_EQUAL(waiting(pages), 3 - i % 4);
	}
	for (i = 0; i < 15; i++)
		sy_pages_free(pages, 0, page[i]);
	CHECK_EQUAL(waiting(pages), 15);
	sy_pages_free(pages, 0, page[i++]); /* 16: a batch of 4 returns */
	CHECK_EQUAL(waiting(pages), 12);
	for (; i < 20; i++)
		sy_pages_free(pages, 0, page[i]); /* again 16: twice a batch */
	CHECK_EQUAL(waiting(pages), 8);
	for (; i < 28; i++)
		sy_pages_free(pages, 0, page[i]); /* four batches, but no more than leaves one */
	CHECK_EQUAL(waiting(pages), 4);
	hot = sy_pages_alloc(pages, 0, 0, 0, SY_ANY_NODE);
	CHECK(hot == page[27]); /* the hottest page first */
	CHECK_EQUAL(waiting(pages), 3);
	page[27] = sy_pages_alloc(pages, 0, 0, 0, SY_ANY_NODE); /* each allocation halves the next batch to return */
	for (i = 27; i < 40; i++)
		sy_pages_free(pages, 0, page[i]);
	CHECK_EQUAL(waiting(pages), 15);
	sy_pages_free(pages, 0, hot);
	CHECK_EQUAL(waiting(pages), 12);
	sy_pages_destroy(pages);
}

/* Blocks of higher orders come at least two at a time; freed while many are being freed, everything returns at once. */
static void test_orders(void)
{
	struct sy_pages *pages = small_lists(8, 64, 1);
	struct sy_page *page, *small[128];
	unsigned i;

	CHECK((page = sy_pages_alloc(pages, 0, 3, 0, SY_ANY_NODE)));
	CHECK_EQUAL(waiting(pages), 8);
	sy_pages_free(pages, 0, page);
	CHECK_EQUAL(waiting(pages), 16);
	CHECK((page = sy_pages_alloc(pages, 0, 1, SY_RECLAIMABLE, SY_ANY_NODE)));
	CHECK_EQUAL(waiting(pages), 16 + 6);
	for (i = 0; i < 128; i++)
		CHECK((small[i] = sy_pages_alloc(pages, 0, 0, SY_MOVABLE, SY_ANY_NODE)));
	for (i = 0; i < 128; i++)
		sy_pages_free(pages, 0, small[i]);
	CHECK(waiting(pages) > 0 && waiting(pages) < 64);
	sy_pages_free(pages, 0, page);
	CHECK_EQUAL(waiting(pages), 0);
	sy_pages_destroy(pages);
}

static void test_drain(void)
{
	struct sy_pages *pages = small_lists(0, 0, 2);
	struct sy_page *page;

	CHECK((page = sy_pages_alloc(pages, 0, 0, 0, SY_ANY_NODE)));
	sy_pages_free(pages, 1, page);
	CHECK(waiting(pages) > 0);
	sy_pages_drain(pages, 0);
	CHECK_EQUAL(waiting(pages), 1);
	sy_pages_drain(pages, 1);
	CHECK_EQUAL(waiting(pages), 0);
	sy_pages_destroy(pages);
}

/* A request that would fail gathers what waits on other slots' lists. */
static void test_gathering(void)
{
	struct sy_pages *pages = small_lists(63, 8000, 2);
	static struct sy_page *page[8192];
	unsigned count = 0, i;

	while (count < 8192 && (page[count] = sy_pages_alloc(pages, 0, 0, 0, SY_ANY_NODE)))
		count++;
	for (i = 0; i < count; i++)
		sy_pages_free(pages, 0, page[i]);
	CHECK(waiting(pages) > 6000);
	CHECK(sy_pages_alloc(pages, 1, SY_MAX_ORDER, 0, SY_ANY_NODE));
	CHECK_EQUAL(waiting(pages), 0);
	sy_pages_destroy(pages);
}

int main(void)
{
	test_sizes();
	test_batches();
	test_orders();
	test_drain();
	test_gathering();
	return check_result();
}
