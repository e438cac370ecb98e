/*
 * How malloc uses its cache of mappings (malloc/mapping_cache.c): what it looks at, which mapping it takes, and what goes back
 * instead.
 *
 * To ask the system which pages are in memory takes a microsecond for each MiB, so malloc asks only about what may have
 * changed. The test plays the system: it knows which pages of its world are in memory, and counts what it is asked about.
 * Moves of ranges and unmapping are only counted, as no range here is a mapping. The clock shows what the test says.
 */
#define _GNU_SOURCE /* mremap */
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "core/platform/system_call.h"

#include "core/types.h"

#include "check.h"
#include "core/platform.h"
#include "malloc/mapping_cache.h"

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)
#define WORLD (64 * MIB)

static char world[WORLD]; /* its addresses are used, and no byte of it */
static bool resident[WORLD / PAGE];
static uint64_t shown = 1000000000;
static unsigned moves; /* moves that the system still makes; then it refuses */
static size_t asked, unmapped; /* bytes: what the system was asked about, and what went back */

static bool system_has(const void *p, size_t bytes, size_t least)
{
	size_t first = (size_t)((const char *)p - world) / PAGE, found = 0;

	asked += bytes;
	for (size_t i = 0; i < bytes / PAGE; i++)
		found += resident[first + i] ? PAGE : 0;
	return found >= least;
}

static bool unmap(void *start, size_t bytes)
{
	(void)start;
	unmapped += bytes;
	return true;
}

static void *move(void *start, size_t bytes, size_t wanted, int flags, const void *place)
{
	(void)start;
	(void)bytes;
	(void)wanted;
	if (!moves)
		return NULL;
	moves--;
	return flags & MREMAP_FIXED ? (void *)(uintptr_t)place : world + WORLD / 2;
}

size_t sy__system_page_bytes(void)
{
	return PAGE;
}

#define sy__source_has system_has
#define sy__system_unmap unmap
#define sy__system_remap move
#include "malloc/mapping_cache.c"
#undef sy__source_has
#undef sy__system_unmap
#undef sy__system_remap

static uint64_t clock_of_test(void)
{
	return shown;
}

/* Somebody writes to pages from there on. */
static void touch(size_t from, size_t bytes)
{
	memset(resident + from / PAGE, true, bytes / PAGE);
}

/* Takes `wanted` bytes; the cache is to look at `looks` bytes for that. Returns how many bytes it gave. */
static size_t take(size_t wanted, size_t looks)
{
	struct mapping_parts parts;
	size_t bytes = wanted;
	char *start;

	asked = 0;
	start = sy__mapping_cache_take(&bytes, &parts);
	CHECK(start == world && parts.count == 0);
	CHECK_EQUAL(asked, looks);
	return bytes;
}

static void forget(void)
{
	sy__mapping_cache_end();
	memset(resident, 0, sizeof(resident));
}

/* Nobody can have written behind an object's end. */
static void sparse_ranges(void)
{
	sy__mapping_cache_give(world, 32 * MIB, 32 * MIB, NULL);
	CHECK_EQUAL(take(8 * MIB, 24 * MIB), 32 * MIB);
	touch(0, 8 * MIB);
	sy__mapping_cache_give(world, 32 * MIB, 8 * MIB, NULL);
	CHECK_EQUAL(take(8 * MIB, 0), 32 * MIB);
	sy__mapping_cache_give(world, 32 * MIB, 8 * MIB, NULL);
	CHECK_EQUAL(take(20 * MIB, 0), 32 * MIB);
	sy__mapping_cache_give(world, 32 * MIB, 20 * MIB, NULL);
	CHECK_EQUAL(take(9 * MIB, 11 * MIB), 32 * MIB);
	sy__mapping_cache_give(world, 32 * MIB, 9 * MIB, NULL);
	CHECK_EQUAL(take(9 * MIB, 0), 32 * MIB);
	forget();
}

/* Pages here and there stay where they are, up to a quarter of all; but behind an object never more than the object's own
 * size. */
static void half_sparse_ranges(void)
{
	for (size_t at = 0; at < 32 * MIB; at += 5 * PAGE)
		touch(at, PAGE);
	sy__mapping_cache_give(world, 32 * MIB, 32 * MIB, NULL);
	CHECK_EQUAL(take(8 * MIB, 24 * MIB), 32 * MIB);
	sy__mapping_cache_give(world, 32 * MIB, 32 * MIB, NULL);
	asked = unmapped = 0;
	sy__mapping_cache_offset_growth(MIB);
	CHECK_EQUAL(asked, 32 * MIB);
	CHECK_EQUAL(unmapped, 0);
	CHECK_EQUAL(take(5 * MIB, 27 * MIB), 5 * MIB);
	forget();
}

/* New writes are seen. The rest keeps what is known of it. */
static void written_ranges(void)
{
	sy__mapping_cache_give(world, 32 * MIB, 32 * MIB, NULL);
	CHECK_EQUAL(take(20 * MIB, 12 * MIB), 32 * MIB);
	touch(0, 20 * MIB);
	sy__mapping_cache_give(world, 32 * MIB, 20 * MIB, NULL);
	CHECK_EQUAL(take(12 * MIB, 8 * MIB), 12 * MIB);
	asked = unmapped = 0;
	sy__mapping_cache_offset_growth(MIB); /* 8 of 20 MiB are there, all in front */
	CHECK_EQUAL(asked, 8 * MIB);
	CHECK_EQUAL(unmapped, MIB);
	forget();
}

/* When a part is given back, what is known of the rest stays known. */
static void parts(void)
{
	unmapped = 0;
	sy__mapping_cache_give(world, 32 * MIB, 12 * MIB, NULL);
	touch(0, 12 * MIB);
	sy__mapping_cache_offset_growth(28 * MIB);
	CHECK_EQUAL(unmapped, 28 * MIB);
	CHECK_EQUAL(take(2 * MIB, 2 * MIB), 2 * MIB);
	forget();
}

/* That many ranges of a MiB, with all pages in memory. */
static void give_written(unsigned count)
{
	touch(0, count * MIB);
	for (unsigned i = 0; i < count; i++)
		sy__mapping_cache_give(world + i * MIB, MIB, MIB, NULL);
	unmapped = 0;
}

/* A request takes the smallest range that suffices, and what is too much of it stays in the cache. What is going to grow
 * takes the largest. */
static void choices(void)
{
	struct mapping_parts parts;
	size_t bytes = 3 * MIB;

	touch(0, WORLD);
	sy__mapping_cache_give(world, 8 * MIB, 8 * MIB, NULL);
	sy__mapping_cache_give(world + 10 * MIB, 4 * MIB, 4 * MIB, NULL);
	sy__mapping_cache_give(world + 20 * MIB, 6 * MIB, 6 * MIB, NULL);
	CHECK(sy__mapping_cache_take(&bytes, &parts) == world + 10 * MIB);
	CHECK_EQUAL(bytes, 3 * MIB);
	bytes = 5 * MIB;
	CHECK(sy__mapping_cache_take(&bytes, &parts) == world + 20 * MIB);
	bytes = MIB;
	CHECK(sy__mapping_cache_take(&bytes, NULL) == world);
	CHECK_EQUAL(table_bytes, 9 * MIB); /* 7 behind it, and twice 1 */
	forget();
}

/* What grows by fresh pages, alone or joined to as many as it may be: the same number of other pages goes back. */
static void fresh_pages(void)
{
	struct mapping_parts parts;
	size_t bytes = MIB + MIB / 2;

	give_written(3);
	moves = 1;
	CHECK(sy__mapping_cache_take(&bytes, NULL) == world + WORLD / 2);
	CHECK_EQUAL(unmapped, MIB / 2);
	forget();
	give_written(MAPPING_JOINED + 3);
	moves = MAPPING_JOINED + 1;
	bytes = (MAPPING_JOINED + 2) * MIB;
	CHECK(sy__mapping_cache_take(&bytes, &parts) == world + WORLD / 2);
	CHECK_EQUAL(parts.count, MAPPING_JOINED);
	CHECK_EQUAL(bytes, (MAPPING_JOINED + 2) * MIB);
	CHECK_EQUAL(unmapped, MIB);
	CHECK_EQUAL(table_bytes, MIB);
	forget();
}

/* If the system refuses to move ranges, all that was to be joined goes back, except the target of the first refused move. */
static void refusals(void)
{
	struct mapping_parts parts;
	size_t bytes = 3 * MIB;

	for (moves = 0; moves < 3;) {
		unsigned made = moves;

		give_written(3);
		bytes = 3 * MIB;
		CHECK(sy__mapping_cache_take(&bytes, &parts) == NULL);
		CHECK_EQUAL(table_bytes, 0);
		/* the one that was to grow and two others; or, when it has grown, what is there of three, and those that
		 * were not moved */
		CHECK_EQUAL(unmapped, made == 0 ? 3 * MIB : made == 1 ? 4 * MIB : 3 * MIB);
		forget();
		moves = made + 1;
	}
	moves = 0;
	unmapped = 0;
	sy__mapping_cache_give(world, MIB, MIB, NULL);
	bytes = 3 * MIB;
	CHECK(sy__mapping_cache_take(&bytes, NULL) == NULL); /* it would grow alone */
	CHECK_EQUAL(table_bytes, 0);
	CHECK_EQUAL(unmapped, MIB);
	forget();
}

/* A joined range serves that size again, as often as it is wanted, without a call to the system. */
static void joined_ranges(void)
{
	const struct mapping_parts parts = { 2, { 2 * MIB, MIB } };
	struct mapping_parts again;
	size_t bytes;

	moves = 0;
	sy__mapping_cache_give(world, 6 * MIB, 6 * MIB, &parts);
	for (unsigned i = 0; i < 3; i++) {
		bytes = 6 * MIB - i * MIB / 4;
		asked = unmapped = 0;
		CHECK(sy__mapping_cache_take(&bytes, &again) == world);
		CHECK_EQUAL(bytes, 6 * MIB);
		CHECK(again.count == 2 && again.bytes[0] == 2 * MIB && again.bytes[1] == MIB);
		CHECK_EQUAL(table_bytes, 0);
		CHECK_EQUAL(asked + unmapped, 0);
		sy__mapping_cache_give(world, bytes, bytes, &again);
	}
	forget();
}

/* For another size, for what grows, and to be joined anew, it falls into parts. What is known of the first part stays known. */
static void joined_ranges_part(void)
{
	const struct mapping_parts parts = { 1, { 2 * MIB } };
	struct mapping_parts again;
	size_t bytes = MIB;

	sy__mapping_cache_give(world, 6 * MIB, MIB, &parts);
	CHECK_EQUAL(take(3 * MIB, 0), 4 * MIB);
	CHECK_EQUAL(table_bytes, 2 * MIB);
	forget();
	touch(0, WORLD);
	sy__mapping_cache_give(world, 6 * MIB, 6 * MIB, &parts);
	CHECK_EQUAL(sy__mapping_cache_take_behind(world, MIB), 0);
	CHECK_EQUAL(table_bytes, 6 * MIB);
	CHECK(sy__mapping_cache_take(&bytes, NULL) == world);
	CHECK_EQUAL(table_bytes, 5 * MIB);
	forget();
	touch(0, WORLD);
	sy__mapping_cache_give(world, 3 * MIB, 3 * MIB, &parts);
	sy__mapping_cache_give(world + 8 * MIB, 3 * MIB, 3 * MIB, &parts);
	moves = 3;
	bytes = 5 * MIB;
	CHECK(sy__mapping_cache_take(&bytes, &again) == world + WORLD / 2);
	CHECK_EQUAL(again.count, 2);
	CHECK_EQUAL(table_bytes, MIB);
	forget();
	touch(0, WORLD);
	unmapped = 0;
	sy__mapping_cache_give(world, 3 * MIB, 3 * MIB, &parts);
	sy__mapping_cache_offset_growth(MIB / 2);
	CHECK_EQUAL(unmapped, 3 * MIB);
	CHECK_EQUAL(table_bytes, 0);
	forget();
}

/* No range that is too large, and no more than a limit of bytes in all. */
static void limits(void)
{
	unmapped = 0;
	sy__mapping_cache_give(world, MAPPING_CACHE_MOST + PAGE, PAGE, NULL);
	CHECK_EQUAL(unmapped, MAPPING_CACHE_MOST + PAGE);
	sy__mapping_cache_give(world, MAPPING_CACHE_MOST, PAGE, NULL);
	sy__mapping_cache_give(world, MAPPING_CACHE_MOST, PAGE, NULL); /* as if it were another range */
	unmapped = 0;
	sy__mapping_cache_give(world, PAGE, PAGE, NULL);
	CHECK_EQUAL(unmapped, PAGE);
	CHECK_EQUAL(table_bytes, MOST_BYTES);
	forget();
}

/* A range that is not used goes back after a while, when somebody looks, or gives. */
static void time_passes(void)
{
	unmapped = 0;
	sy__mapping_cache_give(world, MIB, PAGE, NULL);
	shown += 150000000;
	sy__mapping_cache_give(world + 2 * MIB, 2 * MIB, PAGE, NULL);
	CHECK_EQUAL(unmapped, 0);
	shown += 100000000;
	sy__mapping_cache_age();
	CHECK_EQUAL(unmapped, MIB);
	shown += 200000000;
	sy__mapping_cache_give(world, MIB, PAGE, NULL);
	CHECK_EQUAL(unmapped, 3 * MIB);
	CHECK_EQUAL(table_bytes, MIB);
	forget();
}

int main(void)
{
	sy_platform_set_clock(clock_of_test);
	choices();
	fresh_pages();
	refusals();
	joined_ranges();
	joined_ranges_part();
	limits();
	time_passes();
	sparse_ranges();
	half_sparse_ranges();
	written_ranges();
	parts();
	return check_result();
}
