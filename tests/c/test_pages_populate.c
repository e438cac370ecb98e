/* Zones in a recorded state, and the pages older than a trace. */
#include "pages_support.h"

#include "../../core/backend/backend.h"

struct recorded {
	const char *name;
	uint64_t start, pages;
	blocks_t free_blocks;
	uint64_t pageblocks[SY_MIGRATE_TYPES];
};

/* A Linux 6.18 machine with 16 GiB after days of work; DMA32 ends in a hole below 4 GiB. */
static const struct recorded machine[3] = {
	{ "DMA", 0, 4096,
	  { [SY_UNMOVABLE] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0 }, [SY_MOVABLE_TYPE] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3 } },
	  { 1, 7, 0, 0 } },
	{ "DMA32", 4096, 1044480,
	  { [SY_MOVABLE_TYPE] = { 1, 1, 4, 2, 5, 4, 3, 3, 4, 2, 752 } },
	  { 0, 1528, 0, 0 } },
	{ "Normal", 1048576, 1703936,
	  { [SY_UNMOVABLE] = { 0, 441, 552, 454, 334, 222, 126, 35, 8, 0, 0 },
	    [SY_MOVABLE_TYPE] = { 0, 1, 0, 18, 416, 293, 239, 172, 135, 111, 1402 },
	    [SY_RECLAIMABLE_TYPE] = { 1191, 558, 396, 326, 281, 138, 50, 29, 24, 0, 0 } },
	  { 99, 3120, 109, 0 } },
};

static void expect_state(struct sy_pages *pages, const struct recorded *zones)
{
	struct sy_pages_counts counts;
	unsigned i, type, order;

	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_count(pages, &counts);
	for (i = 0; i < counts.zone_count; i++)
		for (type = 0; type < SY_MIGRATE_TYPES; type++) {
			CHECK_EQUAL(counts.zones[i].pageblocks[type], zones[i].pageblocks[type]);
			for (order = 0; order < SY_ORDERS; order++)
				CHECK_EQUAL(counts.zones[i].free_blocks[type][order], zones[i].free_blocks[type][order]);
		}
}

static void describe(struct sy_pages_config *config, const struct recorded *zones, unsigned count)
{
	one_zone(config, 1024, 2);
	config->zone_count = count;
	for (unsigned i = 0; i < count; i++)
		name_zone(&config->zones[i], zones[i].name, zones[i].start, zones[i].pages);
}

static struct sy_pages *populated(const struct recorded *zones, unsigned count, bool cpu_lists)
{
	struct sy_pages_config config;
	struct sy_pages *pages;
	unsigned i;

	describe(&config, zones, count);
	config.cpu_lists = cpu_lists;
	pages = sy_pages_create(&config);
	CHECK(pages);
	for (i = 0; i < count; i++)
		CHECK(sy_pages_populate(pages, i, zones[i].free_blocks, zones[i].pageblocks));
	return pages;
}

/* Where there is not so much address space. */
static void test_machine_is_too_large(void)
{
	struct sy_pages_config config;

	describe(&config, machine, 3);
	CHECK(sy_pages_create(&config) == NULL);
}

/* The free lists have exactly the recorded blocks; nothing can join; the pageblocks of each list are of its type. */
static void test_machine(void)
{
	struct sy_pages *pages = populated(machine, 3, true);
	const struct sy_page *page;
	unsigned type, order, elsewhere = 0;

	expect_state(pages, machine);
	for (type = 0; type < SY_MIGRATE_TYPES; type++)
		for (order = 0; order < SY_ORDERS; order++)
			for (page = pages->zones[2].free[order][type].first; page; page = page->free.next)
				elsewhere += sy__pageblock_type(pages, sy__number(pages, page)) != type;
	CHECK_EQUAL(elsewhere, 0);
	CHECK(!sy_pages_populate(pages, 2, machine[2].free_blocks, machine[2].pageblocks));
	expect_state(pages, machine);
	sy_pages_destroy(pages);
}

/* Trace-like traffic on a populated machine: requests, frees, and frees of older pages. */
static void test_traffic(void)
{
	struct sy_pages *pages = populated(machine, 3, true);
	static struct sy_page *held[2048];
	struct sy_pages_counts counts;
	uint64_t random = 77, older = 0, held_pages = 0, before = sy__backend_zone_of(&pages->zones[2])->pretrace;
	unsigned step;

	for (step = 0; step < 60000; step++) {
		uint64_t r = random_next(&random);
		unsigned i = (unsigned)(r % 2048), order = (unsigned)(r >> 20) % 4, flags = r >> 40 & (SY_MOVABLE | SY_RECLAIMABLE);

		if (r >> 60 == 0) {
			uint64_t near = machine[2].start + (r >> 24) % machine[2].pages;

			CHECK(sy_pages_free_pretrace(pages, i % 2, order, near));
			older += (uint64_t)1 << order;
		} else if (held[i]) {
			held_pages -= (uint64_t)1 << held[i]->order;
			sy_pages_free(pages, i % 2, held[i]);
			held[i] = NULL;
		} else if ((held[i] = sy_pages_alloc(pages, i % 2, order, flags, SY_ANY_NODE))) {
			held_pages += (uint64_t)1 << order;
		}
		if (step % 10000 == 0)
			CHECK_TEXT(sy_pages_check(pages), NULL);
	}
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_count(pages, &counts);
	CHECK_EQUAL(before - sy__backend_zone_of(&pages->zones[2])->pretrace, older);
	CHECK_EQUAL(counts.zones[2].used[SY_USE_ENVIRONMENT], held_pages);
	sy_pages_destroy(pages);
}

/* The nearest aligned run, by looking at every one. */
static uint64_t nearest_run(struct sy_pages *pages, unsigned order, uint64_t near, uint64_t end)
{
	uint64_t best = UINT64_MAX, at, size = (uint64_t)1 << order, i;

	for (at = 0; at + size <= end; at += size) {
		uint64_t far = at < near ? near - at : at - near;

		for (i = 0; i < size && !sy__pretrace_gone(pages, at + i); i++)
			;
		if (i == size && far < best)
			best = far;
	}
	return best;
}

/* A small zone, freed to the last older page. Each time the nearest run goes; where none is left, two halves go in its
 * place, each the nearest. */
static void test_older(void)
{
	static const struct recorded small = { "Normal", 0, 8192,
		{ [SY_UNMOVABLE] = { 9, 8, 7, 6, 5, 4, 3, 2, 1 }, [SY_MOVABLE_TYPE] = { 3, 3, 3, 3, 3, 3, 3, 3, 3, 1 } },
		{ 6, 10, 0, 0 } };
	struct sy_pages *pages = populated(&small, 1, false);
	struct sy_pages_counts counts;
	uint64_t random = 5, left = sy__backend_zone_of(&pages->zones[0])->pretrace;

	expect_state(pages, &small);
	while (left) {
		uint64_t r = random_next(&random), near = r >> 61 ? 3500 + r % 1000 : r % 9000, nearest, i;
		unsigned order = (unsigned)(r >> 20) % SY_ORDERS, taken = 0;
		uint64_t clamped = near < 8192 ? near : 8191;
		static uint64_t before[8192 / 64];

		nearest = nearest_run(pages, order, clamped, 8192);
		memcpy(before, pages->page_bits, sizeof(before));
		CHECK_EQUAL(sy_pages_free_pretrace(pages, 0, order, near), left >= (uint64_t)1 << order);
		for (i = 0; i < 8192; i++)
			if (sy__pretrace_gone(pages, i) && !(before[i / 64] >> i % 64 & 1)) {
				if (!taken++ && nearest != UINT64_MAX)
					CHECK_EQUAL(i < clamped ? clamped - i : i - clamped, nearest);
			}
		CHECK_EQUAL(taken, left >= (uint64_t)1 << order ? 1u << order : 0);
		left -= taken;
		CHECK_TEXT(sy_pages_check(pages), NULL);
	}
	CHECK(!sy_pages_free_pretrace(pages, 0, 0, 0));
	sy_pages_count(pages, &counts);
	CHECK_EQUAL(counts.zones[0].used[SY_USE_FREE], 8192);
	CHECK_EQUAL(counts.zones[0].used[SY_USE_PRETRACE], 0);
	sy_pages_destroy(pages);
}

/* The nearest run may lie two maximal blocks away on one side, when the other side's next one has only a far run. */
static void test_nearest_of_two_sides(void)
{
	static const struct recorded full = { "Normal", 0, 8192, { { 0 } }, { 0, 16, 0, 0 } };
	struct sy_pages *pages = populated(&full, 1, false);

	CHECK(sy_pages_free_pretrace(pages, 0, 10, 4096));
	CHECK(sy_pages_free_pretrace(pages, 0, 10, 3072));
	CHECK(sy_pages_free_pretrace(pages, 0, 9, 5120));
	CHECK(sy_pages_free_pretrace(pages, 0, 8, 5632));
	CHECK(sy_pages_free_pretrace(pages, 0, 0, 4096));
	CHECK(sy__pretrace_gone(pages, 5887) && !sy__pretrace_gone(pages, 5888));
	CHECK(sy__pretrace_gone(pages, 3071) && !sy__pretrace_gone(pages, 3070));
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_destroy(pages);
}

/* No page beyond the end of the zone, or in a hole, is ever freed. */
static void test_older_at_the_end(void)
{
	static const struct recorded cut = { "Normal", 0, 1000, { { 0 } }, { 1, 1, 0, 0 } };
	static const struct recorded hole = { "Normal", 0, 4096, { { 3 } }, { 0, 3, 0, 0 } };
	const struct recorded *zones[2] = { &cut, &hole };
	static const uint64_t older[2] = { 1000, 1533 };
	unsigned i;

	for (i = 0; i < 2; i++) {
		struct sy_pages *pages = populated(zones[i], 1, false);
		uint64_t freed = 0;

		while (freed <= older[i] && sy_pages_free_pretrace(pages, 0, 0, 5000))
			freed++;
		CHECK_EQUAL(freed, older[i]);
		CHECK_TEXT(sy_pages_check(pages), NULL);
		sy_pages_destroy(pages);
	}
}

static void test_older_elsewhere(void)
{
	struct sy_pages *pages = populated(machine, 3, false);
	uint64_t left = sy__backend_zone_of(&pages->zones[0])->pretrace;

	CHECK_EQUAL(left, 256);
	for (; left; left--)
		CHECK(sy_pages_free_pretrace(pages, 0, 0, 0));
	left = sy__backend_zone_of(&pages->zones[1])->pretrace;
	CHECK(sy_pages_free_pretrace(pages, 0, 0, 0)); /* the next zone has some */
	CHECK_EQUAL(sy__backend_zone_of(&pages->zones[1])->pretrace, left - 1);
	CHECK(!sy_pages_free_pretrace(pages, 0, SY_MAX_ORDER + 1, 0));
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_destroy(pages);
}

static void expect_fit_with(const struct sy_pages_config *config, const blocks_t free_blocks,
                            const uint64_t pageblocks[SY_MIGRATE_TYPES], bool fits)
{
	struct sy_pages_counts before, after;
	struct sy_pages *pages = sy_pages_create(config);

	CHECK(pages);
	sy_pages_count(pages, &before);
	CHECK_EQUAL(sy_pages_populate(pages, 0, free_blocks, pageblocks), fits);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_count(pages, &after);
	if (!fits)
		CHECK(memcmp(&before, &after, sizeof(before)) == 0);
	else
		CHECK(memcmp(after.zones[0].free_blocks, free_blocks, sizeof(blocks_t)) == 0);
	sy_pages_destroy(pages);
}

static void expect_fit(uint64_t page_count, const blocks_t free_blocks, const uint64_t pageblocks[SY_MIGRATE_TYPES], bool fits)
{
	struct sy_pages_config config;

	one_zone(&config, page_count, 1);
	expect_fit_with(&config, free_blocks, pageblocks, fits);
}

static void test_fits(void)
{
	static const uint64_t two[SY_MIGRATE_TYPES] = { 0, 2, 0, 0 }, mixed[SY_MIGRATE_TYPES] = { 1, 0, 1, 0 };
	static const uint64_t three[SY_MIGRATE_TYPES] = { 1, 1, 1, 0 }, reserve[SY_MIGRATE_TYPES] = { 0, 1, 0, 1 };
	static const blocks_t nothing, all = { [SY_MOVABLE_TYPE] = { [SY_MAX_ORDER] = 1 } };
	static const blocks_t tight = { [SY_MOVABLE_TYPE] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } };
	static const blocks_t two_nines = { [SY_MOVABLE_TYPE] = { [9] = 2 } };
	static const blocks_t triple = { { [SY_MAX_ORDER] = 1 }, { [SY_MAX_ORDER] = 2 } };
	static const uint64_t odd[SY_MIGRATE_TYPES] = { 1, 4, 1, 0 };
	static const blocks_t many = { { [0] = 513 } }, half = { { [0] = 512 } };
	static const blocks_t overflow = { { [3] = UINT64_MAX / 4 } }, atomic = { [SY_HIGHATOMIC_TYPE] = { 0, 3, 1 } };

	expect_fit(1024, nothing, two, true);
	expect_fit(1024, all, two, true);
	expect_fit(1024, tight, two, true); /* 1023 pages of 1024 */
	expect_fit(1024, tight, mixed, true); /* on lists of another type than their pageblocks */
	expect_fit(1024, half, two, true);
	expect_fit(1024, all, mixed, true);   /* one block over pageblocks of two types */
	expect_fit(3072, triple, odd, true);
	expect_fit(1024, atomic, reserve, true);
	expect_fit(1000, nothing, two, true); /* the second pageblock is cut off */
	expect_fit(3333, tight, two, true);   /* most is a hole */
	expect_fit(1024, two_nines, two, false); /* they would join */
	expect_fit(1024, many, two, false);
	expect_fit(1024, overflow, two, false);
	expect_fit(1024, nothing, three, false);
	expect_fit(1000, nothing, three, false);
	expect_fit(1000, all, two, false);
	expect_fit(1024, nothing, nothing[0], false);
}

/* An allocator can start in any state that another one gets into by itself. */
static void test_reached_states(void)
{
	static struct sy_page *held[3000];
	static const unsigned flags[] = { 0, SY_MOVABLE, SY_RECLAIMABLE, SY_MOVABLE };
	struct sy_pages_config config;
	struct sy_pages_counts counts;
	const struct sy_zone_counts *reached = &counts.zones[0];
	uint64_t random = 42;
	unsigned step, round, i;

	for (round = 0; round < 12; round++) {
		struct sy_pages *pages;

		one_zone(&config, 9 * 1024 + round % 3 * 512, 1);
		config.cpu_lists = false;
		config.pageblock_order = round % 4 ? 9 : 7;
		pages = sy_pages_create(&config);
		CHECK(pages);
		memset(held, 0, sizeof(held));
		for (step = 0; step < 20000; step++) {
			uint64_t r = random_next(&random);

			i = (unsigned)(r % (500 + round * 200));
			if (held[i])
				sy_pages_free(pages, 0, held[i]);
			held[i] = held[i] ? NULL : sy_pages_alloc(pages, 0, (unsigned)(r >> 20) % (2 + round % 7),
			                                          flags[r >> 40 & 3], SY_ANY_NODE);
			if (step % 4000 == 999) {
				sy_pages_count(pages, &counts);
				expect_fit_with(&config, reached->free_blocks, reached->pageblocks, true);
			}
		}
		sy_pages_destroy(pages);
	}
}

int main(void)
{
	if (check_addressable((machine[2].start + machine[2].pages) * SY_PAGE_SIZE)) {
		test_machine();
		test_traffic();
		test_older_elsewhere();
	} else {
		test_machine_is_too_large();
	}
	test_older();
	test_nearest_of_two_sides();
	test_older_at_the_end();
	test_fits();
	test_reached_states();
	return check_result();
}
