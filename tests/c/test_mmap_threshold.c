/*
 * Mappings that have hardly any memory: which of them the cache keeps by size and what they serve (malloc/mapping_cache.c),
 * and when large objects of a heap become mappings (malloc/mmap_threshold.c).
 *
 * The system is played here: it knows which pages of the world are in memory, and counts what it is asked about, and what
 * goes back. The clock shows what the test says.
 */
#define _GNU_SOURCE /* madvise */
#include <stdbool.h>
#include <sys/mman.h>

#include "core/platform/system_call.h"

#include "check.h"
#include "core/platform.h"
#include "malloc/mapping_cache.h"
#include "malloc/mmap_threshold.h"

#define PAGE ((size_t)4096)
#define WORLD 4000u /* pages */

static _Alignas(4096) char world[WORLD * PAGE]; /* of each range the first bytes are used */
static bool resident[WORLD];
static size_t asked, unmapped, emptied; /* times; pages */
static uint64_t shown = 1000000000;

static size_t page_at(const void *p)
{
	return (size_t)((const char *)p - world) / PAGE;
}

static bool system_has(const void *p, size_t bytes, size_t least)
{
	size_t found = 0;

	asked++;
	for (size_t i = 0; i < bytes / PAGE; i++)
		found += resident[page_at(p) + i] ? PAGE : 0;
	return found >= least;
}

static bool unmap(void *start, size_t bytes)
{
	(void)start;
	unmapped += bytes / PAGE;
	return true;
}

static bool empty(void *start, size_t bytes, int advice)
{
	CHECK_EQUAL(advice, MADV_DONTNEED);
	memset(resident + page_at(start), false, bytes / PAGE);
	emptied++;
	return true;
}

size_t sy__system_page_bytes(void)
{
	return PAGE;
}

#define sy__source_has system_has
#define sy__system_unmap unmap
#define sy__system_advise empty
#include "malloc/mapping_cache.c"
#include "malloc/mmap_threshold.c"
#undef sy__source_has
#undef sy__system_unmap
#undef sy__system_advise

static uint64_t clock_of_test(void)
{
	return shown;
}

static char *at(size_t page)
{
	return world + page * PAGE;
}

static void touch(size_t from, size_t pages, size_t step)
{
	memset(resident, false, sizeof(resident));
	for (size_t i = 0; i < pages; i += step)
		resident[from + i] = true;
}

static void keep_range(size_t from, size_t pages)
{
	CHECK(sy__mapping_cache_give_bin(at(from), pages * PAGE));
}

/* The first page of the range that serves a request of `pages`; the range is to have `has` pages. WORLD: none serves. */
static size_t take_range(size_t pages, size_t has)
{
	struct mapping_parts parts;
	size_t bytes = pages * PAGE;
	char *start = sy__mapping_cache_take(&bytes, &parts);

	if (!start)
		return WORLD;
	CHECK_EQUAL(bytes, has * PAGE);
	return page_at(start);
}

/* The nearest size serves, up to an eighth larger, and no other. */
static void sizes(void)
{
	CHECK(!sy__mapping_cache_has_bin(63 * PAGE) && sy__mapping_cache_has_bin(64 * PAGE));
	CHECK(sy__mapping_cache_has_bin(1040 * PAGE) && !sy__mapping_cache_has_bin(1041 * PAGE));
	keep_range(0, 100);
	keep_range(200, 108);
	keep_range(400, 100);
	CHECK_EQUAL(take_range(101, 108), 200);
	CHECK_EQUAL(take_range(101, 0), WORLD);
	CHECK_EQUAL(take_range(80, 0), WORLD);
	CHECK_EQUAL(take_range(90, 100), 0);
	CHECK_EQUAL(take_range(1040, 0), WORLD); /* nor is there a bin behind the last */
	CHECK_EQUAL(take_range(100, 100), 400);
	CHECK_EQUAL(take_range(100, 0), WORLD);
}

/* If there are more of one size than a bin has words, the others go to the bins below, with their size, down to a sixteenth
 * less. */
static void full_bins(void)
{
	unsigned kept = 0, taken = 0;

	while (kept < 100 && sy__mapping_cache_give_bin(at(40 * kept), 64 * PAGE)) /* as if they did not overlap: only their first pages are used */
		kept++;
	CHECK_EQUAL(kept, WAYS);
	while (take_range(64, 64) < WORLD)
		taken++;
	CHECK_EQUAL(taken, kept);
	for (kept = 0; kept < 100 && sy__mapping_cache_give_bin(at(30 * kept), 128 * PAGE);)
		kept++;
	CHECK_EQUAL(kept, WAYS * 9);
	for (taken = 0; take_range(120, 128) < WORLD;)
		taken++;
	CHECK_EQUAL(taken, kept);
	CHECK_EQUAL(bins_bytes, 0);
}

/* No more is kept than MOST_BINNED, whatever the sizes. */
static void full(void)
{
	size_t pages = 1040, kept = 0, bytes;

	while (sy__mapping_cache_give_bin(at(kept), pages * PAGE)) /* as above */
		pages -= ++kept % WAYS == 0;
	bytes = bins_bytes;
	CHECK(bytes <= MOST_BINNED && bytes > MOST_BINNED - pages * PAGE);
	CHECK(!sy__mapping_cache_give_bin(at(kept), pages * PAGE));
	CHECK_EQUAL(bins_bytes, bytes);
	CHECK_EQUAL(sy__mapping_cache_end(), bytes);
	CHECK_EQUAL(bins_bytes, 0);
}

/* A range that is not used goes back after a while; all go back when that is asked for. */
static void time_passes(void)
{
	unmapped = 0;
	keep_range(0, 100);
	shown += 150000000;
	keep_range(200, 70);
	sy__mapping_cache_age();
	CHECK_EQUAL(unmapped, 0);
	shown += 110000000;
	sy__mapping_cache_age();
	CHECK_EQUAL(unmapped, 100);
	CHECK_EQUAL(bins_aged, shown / 1000000); /* when all have been looked at */
	CHECK_EQUAL(take_range(70, 70), 200);
	keep_range(200, 70);
	CHECK_EQUAL(sy__mapping_cache_end(), 70 * PAGE);
	CHECK_EQUAL(unmapped, 170);
	keep_range(200, 70);
	shown += 300000000;
	keep_range(0, 100); /* who comes by looks */
	CHECK_EQUAL(unmapped, 240);
	CHECK_EQUAL(take_range(100, 100), 0);
	CHECK_EQUAL(bins_bytes, 0);
}

/* Goes on until the heap has looked at that many objects. */
static void learn_from(struct sy_heap *heap, unsigned objects)
{
	for (unsigned i = 0; i < objects; i++) {
		asked = 0;
		while (!asked)
			sy__mmap_threshold_learn(heap, world, 512 * PAGE);
	}
}

static void watch_some(struct sy_heap *heap, unsigned objects)
{
	for (unsigned i = 0; i < objects; i++) {
		asked = 0;
		while (!asked)
			sy__mmap_threshold_watch(heap, world, 512 * PAGE);
	}
}

/* Pages that a program leaves here and there are given back now and then. */
static void leftovers(void)
{
	struct sy_heap heap = { .mmap_threshold = 0 };

	emptied = 0;
	for (unsigned i = 0; i < 4 * EMPTIED; i++) {
		resident[3 + i] = true;
		CHECK(sy__mmap_threshold_is_untouched(&heap, world, 512 * PAGE));
		keep_range(0, 512);
		CHECK_EQUAL(take_range(512, 512), 0);
	}
	CHECK_EQUAL(emptied, 4);
}

/* Large objects become mappings once hardly a page of them is touched, many times in a row. When objects are touched they
 * are the heap's again, and the next change takes twice as many. */
static void elsewhere(void)
{
	struct sy_heap heap = { .mmap_threshold = 0 };

	touched = 0;
	touch(0, 512, 512);
	sy__mmap_threshold_learn(&heap, world, 60 * PAGE); /* too small to count */
	learn_from(&heap, LEAST_KNOWN - 1);
	CHECK_EQUAL(heap.mmap_threshold, 0);
	touch(0, 512, 1);
	learn_from(&heap, 1);
	touch(0, 512, 100);
	learn_from(&heap, LEAST_KNOWN);
	CHECK_EQUAL(heap.mmap_threshold, 0);
	learn_from(&heap, 1);
	CHECK_EQUAL(heap.mmap_threshold, 64 * PAGE);
	CHECK(!sy__mmap_threshold_was_mistaken(&heap));
	asked = 0;
	for (unsigned i = 0; i < 4 * LOOKED_AT; i++)
		CHECK(sy__mmap_threshold_is_untouched(&heap, world, 512 * PAGE));
	CHECK_EQUAL(asked, 8); /* two windows of one in four */
	touch(0, 512, 2);
	for (unsigned i = 0; i < 2 * LOOKED_AT && heap.mmap_threshold; i++)
		sy__mmap_threshold_is_untouched(&heap, world, 512 * PAGE);
	CHECK_EQUAL(heap.mmap_threshold, 0);
	CHECK(sy__mmap_threshold_was_mistaken(&heap));
	CHECK(!sy__mmap_threshold_is_untouched(&heap, world, 512 * PAGE));
	touch(0, 512, 512);
	learn_from(&heap, 2 * LEAST_KNOWN + 1); /* and for the last two, which were touched */
	CHECK_EQUAL(heap.mmap_threshold, 0);
	learn_from(&heap, 1);
	CHECK_EQUAL(heap.mmap_threshold, 64 * PAGE);
	CHECK(!sy__mmap_threshold_was_mistaken(&heap));
	learn_from(&heap, 100);
	CHECK(sy__mmap_threshold_end(&heap) && !sy__mmap_threshold_end(&heap));
	learn_from(&heap, 2 * LEAST_KNOWN - 1); /* as many more as it takes now */
	CHECK_EQUAL(heap.mmap_threshold, 0);
	learn_from(&heap, 1);
	CHECK_EQUAL(heap.mmap_threshold, 64 * PAGE);
}

/* However often the change was wrong, it may happen again. */
static void mistaken(void)
{
	struct sy_heap heap = { .mmap_threshold = 0 };

	mistakes = 70;
	touched = 0;
	touch(0, 512, 512);
	learn_from(&heap, (LEAST_KNOWN << MOST_DOUBLINGS) - 1);
	CHECK_EQUAL(heap.mmap_threshold, 0);
	learn_from(&heap, 1);
	CHECK_EQUAL(heap.mmap_threshold, 64 * PAGE);
}

/* An object that stays untouched while many others are taken counts by its pages. */
static void alive(void)
{
	struct sy_heap heap = { .mmap_threshold = 0 };
	unsigned enough = LEAST_SEEN / 512;

	touched = 0;
	mistakes = 0;
	asked = 0;
	touch(0, 512, 1);
	for (unsigned i = 0; i < LATER; i++)
		sy__mmap_threshold_watch(&heap, world, 512 * PAGE);
	CHECK_EQUAL(asked, 0); /* it may be touched later */
	touch(0, 512, 512);
	watch_some(&heap, enough - 1);
	touch(0, 512, 1);
	learn_from(&heap, 1);
	touch(0, 512, 512);
	watch_some(&heap, enough - 1);
	CHECK_EQUAL(heap.mmap_threshold, 0);
	watch_some(&heap, 1);
	CHECK_EQUAL(heap.mmap_threshold, 64 * PAGE);
	for (unsigned i = 0; i < 1000; i++)
		sy__mmap_threshold_watch(&heap, world, 60 * PAGE); /* too small to count */
	touch(0, 512, 1);
	watch_some(&heap, MOST_TOUCHED + 1);
	CHECK_EQUAL(heap.mmap_threshold, 0);
}

/* Where objects are touched the heap seldom looks at them, and at no more of them than it takes to see that. */
static void looks(void)
{
	struct sy_heap heap = { .mmap_threshold = 0 };

	touch(0, 512, 1);
	learn_from(&heap, 1);
	asked = 0;
	for (unsigned i = 0; i < 10 * SELDOM; i++)
		sy__mmap_threshold_learn(&heap, world, 512 * PAGE);
	CHECK_EQUAL(asked, 10);
}

/* Touched pages that lie together are found, wherever they are. A few of them still count as untouched. */
static void clusters(void)
{
	struct sy_heap heap = { .mmap_threshold = 0 };

	touched = 0;
	touch(100, 60, 1);
	for (unsigned i = 0; i < 100; i++)
		CHECK(sy__mmap_threshold_is_untouched(&heap, world, 512 * PAGE));
	touched = 0;
	touch(100, 64, 1);
	resident[0] = true; /* whose page does not count */
	for (unsigned i = 0; i < 100; i++)
		CHECK(sy__mmap_threshold_is_untouched(&heap, world, 513 * PAGE));
	touched = 0;
	touch(256, 256, 1); /* all in one half */
	for (unsigned i = 0; i < 100; i++)
		CHECK(!sy__mmap_threshold_is_untouched(&heap, world, 512 * PAGE));
	touched = 0;
	touch(0, 512, 4);
	CHECK(!sy__mmap_threshold_is_untouched(&heap, world, 512 * PAGE));
	CHECK(sy__mmap_threshold_is_untouched(&heap, world, PAGE) && !sy__mmap_threshold_is_untouched(&heap, world, 30 * PAGE));
}

int main(void)
{
	sy_platform_set_clock(clock_of_test);
	sizes();
	full_bins();
	full();
	time_passes();
	leftovers();
	elsewhere();
	mistaken();
	alive();
	looks();
	clusters();
	return check_result();
}
