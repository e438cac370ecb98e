/*
 * What malloc looks at of the mappings that it keeps (malloc/kept.c).
 *
 * To ask the system which pages are in memory takes a microsecond a MiB, so it is asked of what may have changed only. The system is
 * played here: it knows which pages of the world are in memory, and counts what it is asked about. Moves are refused and what
 * is unmapped is only counted, as no range here is a mapping; the clock stands still, so nothing becomes too old.
 */
#define _GNU_SOURCE /* mremap */
#include <stdbool.h>
#include <sys/mman.h>

#include "check.h"
#include "core/platform.h"
#include "malloc/kept.h"

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)
#define WORLD (64 * MIB)

static char world[WORLD]; /* its addresses are used, and no byte of it */
static bool resident[WORLD / PAGE];
static size_t asked, unmapped; /* bytes: what the system was asked about, and what went back */

static bool system_has(const void *p, size_t bytes, size_t least)
{
	size_t first = (size_t)((const char *)p - world) / PAGE, found = 0;

	asked += bytes;
	for (size_t i = 0; i < bytes / PAGE; i++)
		found += resident[first + i] ? PAGE : 0;
	return found >= least;
}

static int unmap(void *start, size_t bytes)
{
	(void)start;
	unmapped += bytes;
	return 0;
}

static void *refuse(void *start, size_t bytes, size_t wanted, int flags, ...)
{
	(void)start;
	(void)bytes;
	(void)wanted;
	(void)flags;
	return MAP_FAILED;
}

size_t sy__system_page_bytes(void)
{
	return PAGE;
}

#define sy__source_has system_has
#define munmap unmap
#define mremap refuse
#include "malloc/kept.c"
#undef sy__source_has
#undef munmap
#undef mremap

static uint64_t clock_of_test(void)
{
	return 0;
}

/* Somebody writes to pages from there on. */
static void touch(size_t from, size_t bytes)
{
	memset(resident + from / PAGE, true, bytes / PAGE);
}

/* As many bytes as are handed out; so many are to be looked at for that. */
static size_t take(size_t wanted, size_t looks)
{
	struct kept_joints joints;
	size_t bytes = wanted;
	char *start;

	asked = 0;
	start = sy__kept_take(&bytes, &joints);
	CHECK(start == world && joints.count == 0);
	CHECK_EQUAL(asked, looks);
	return bytes;
}

static void forget(void)
{
	sy__kept_end();
	memset(resident, 0, sizeof(resident));
}

/* Nobody can have written behind an object's end. */
static void sparse_ranges(void)
{
	sy__kept_give(world, 32 * MIB, 32 * MIB);
	CHECK_EQUAL(take(8 * MIB, 24 * MIB), 32 * MIB);
	touch(0, 8 * MIB);
	sy__kept_give(world, 32 * MIB, 8 * MIB);
	CHECK_EQUAL(take(8 * MIB, 0), 32 * MIB);
	sy__kept_give(world, 32 * MIB, 8 * MIB);
	CHECK_EQUAL(take(20 * MIB, 0), 32 * MIB);
	sy__kept_give(world, 32 * MIB, 20 * MIB);
	CHECK_EQUAL(take(9 * MIB, 11 * MIB), 32 * MIB);
	sy__kept_give(world, 32 * MIB, 9 * MIB);
	CHECK_EQUAL(take(9 * MIB, 0), 32 * MIB);
	forget();
}

/* Pages here and there, up to a quarter, are left where they are; but not more behind an object than it is large itself. */
static void half_sparse_ranges(void)
{
	for (size_t at = 0; at < 32 * MIB; at += 5 * PAGE)
		touch(at, PAGE);
	sy__kept_give(world, 32 * MIB, 32 * MIB);
	CHECK_EQUAL(take(8 * MIB, 24 * MIB), 32 * MIB);
	sy__kept_give(world, 32 * MIB, 32 * MIB);
	asked = unmapped = 0;
	sy__kept_make_up(MIB);
	CHECK_EQUAL(asked, 32 * MIB);
	CHECK_EQUAL(unmapped, 0);
	CHECK_EQUAL(take(5 * MIB, 27 * MIB), 5 * MIB);
	forget();
}

/* What was written is seen, and the rest is kept with what is known of it. */
static void written_ranges(void)
{
	sy__kept_give(world, 32 * MIB, 32 * MIB);
	CHECK_EQUAL(take(20 * MIB, 12 * MIB), 32 * MIB);
	touch(0, 20 * MIB);
	sy__kept_give(world, 32 * MIB, 20 * MIB);
	CHECK_EQUAL(take(12 * MIB, 8 * MIB), 12 * MIB);
	asked = unmapped = 0;
	sy__kept_make_up(MIB); /* of 20 MiB 8 are there, all in front */
	CHECK_EQUAL(asked, 8 * MIB);
	CHECK_EQUAL(unmapped, MIB);
	forget();
}

/* A part that is given back takes nothing from what is known of the rest. */
static void parts(void)
{
	unmapped = 0;
	sy__kept_give(world, 32 * MIB, 12 * MIB);
	touch(0, 12 * MIB);
	sy__kept_make_up(28 * MIB);
	CHECK_EQUAL(unmapped, 28 * MIB);
	CHECK_EQUAL(take(2 * MIB, 2 * MIB), 2 * MIB);
	forget();
}

int main(void)
{
	sy_platform_set_clock(clock_of_test);
	sparse_ranges();
	half_sparse_ranges();
	written_ranges();
	parts();
	return check_result();
}
