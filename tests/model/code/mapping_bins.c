/*
 * The bins of the mapping cache (malloc/mapping_cache.c), at all interleavings of threads that give ranges, take them, and end
 * old ones.
 *
 * The model plays the kernel, as mapping_table.c does: a page has an owner, or is kept, or is not mapped. Pages that go to the
 * kernel are written over, so that the model notices a thread that still looks at them. There are few bins and words, as each
 * is a step.
 */
#define _GNU_SOURCE /* madvise */
#include <sys/mman.h>

#include "core/platform/system_call.h"

#include "world.h"

#define PAGE ((size_t)4096)
#define PAGES 60u

enum { UNMAPPED, KEPT, HELD };

static struct {
	uint8_t pages[PAGES];
	_Alignas(16) char memory[PAGES * PAGE];
} mapped;

static void become(const char *start, size_t bytes, uint8_t from, uint8_t to, const char *wrong)
{
	uint8_t *pages = &mapped.pages[(size_t)(start - mapped.memory) / PAGE];

	for (size_t i = 0; i < bytes / PAGE; i++) {
		if (pages[i] != from)
			model_wrong(wrong);
		pages[i] = to;
	}
}

static bool unmap(void *start, size_t bytes)
{
	become(start, bytes, KEPT, UNMAPPED, "what somebody has is unmapped");
	memset(start, 0xff, 2 * sizeof(size_t));
	return true;
}

static bool empty(void *start, size_t bytes, int advice)
{
	(void)start;
	(void)bytes;
	(void)advice;
	return true;
}

size_t sy__system_page_bytes(void)
{
	return PAGE;
}

#define MAPPING_BIN_LEAST 8u
#define MAPPING_BINS 10u
#define WAYS 1u
#define sy__system_unmap unmap
#define sy__system_advise empty
#include "malloc/mapping_cache.c"
#undef sy__system_unmap
#undef sy__system_advise

/* ---- Threads -------------------------------------------------------------------------------------------------------- */

static void keep_range(unsigned first, unsigned pages)
{
	char *start = mapped.memory + first * PAGE;

	become(start, pages * PAGE, HELD, KEPT, "what nobody has is given");
	if (!sy__mapping_cache_give_bin(start, pages * PAGE))
		become(start, pages * PAGE, KEPT, HELD, "what was not kept is somebody's");
}

static bool take_range(unsigned pages)
{
	struct mapping_parts parts;
	size_t bytes = pages * PAGE;
	char *start = sy__mapping_cache_take(&bytes, &parts);

	if (!start)
		return false;
	if (bytes < pages * PAGE)
		model_wrong("a range is smaller than was asked for");
	become(start, bytes, KEPT, HELD, "a range is taken that somebody has");
	memset(start, 0xee, 2 * sizeof(size_t));
	return true;
}

/* Two ranges of 8 and 9 pages are kept, and others held. */
static void set_up(void)
{
	model_share(&mapped, sizeof(mapped));
	model_share(bins, sizeof(bins));
	model_share(&bins_bytes, sizeof(bins_bytes));
	memset(mapped.pages, HELD, PAGES);
	keep_range(0, 8);
	keep_range(10, 9);
}

static void takes(void)
{
	take_range(8);
}

static void takes_two(void)
{
	take_range(8);
	take_range(8);
}

static void gives(void)
{
	keep_range(20, 8);
}

static void gives_and_takes(void)
{
	keep_range(30, 9);
	take_range(9);
}

static void ends_all(void)
{
	sy__mapping_cache_end();
}

/* The ranges that are here are not old. */
static void comes_by(void)
{
	end_bins(sy__milliseconds(), SIZE_MAX);
}

static const char *verify(void)
{
	size_t sum = 0;

	for (unsigned bin = 0; bin < MAPPING_BINS; bin++)
		for (unsigned way = 0; way < WAYS; way++) {
			struct binned *range = bins[bin][way];

			if (!range)
				continue;
			sum += range->bytes;
			become((const char *)range, range->bytes, KEPT, UNMAPPED, "a page is in two ranges");
		}
	for (unsigned i = 0; i < PAGES; i++)
		if (mapped.pages[i] == KEPT)
			return "a range is lost";
	return sum == bins_bytes ? NULL : "the sum is wrong";
}

int main(int argc, char **argv)
{
	static const struct model models[] = {
		{ .name = "takes", .set_up = set_up, .threads = { takes_two, takes, gives }, .verify = verify },
		{ .name = "gives", .set_up = set_up, .threads = { gives_and_takes, gives }, .verify = verify },
		{ .name = "ends", .set_up = set_up, .threads = { gives_and_takes, ends_all }, .verify = verify },
		{ .name = "ages", .set_up = set_up, .threads = { gives, comes_by, takes }, .verify = verify },
		{ .name = NULL },
	};
	static const struct mutant mutants[] = {
		/* A range is taken by a load and a store, is put there without a release, or taken without an acquire. A
		 * range that is put back */
		/* meets another in its place. A range that was taken counts as kept. */
		{ "bins_taken_by_store", "takes", "", "take_from", NULL, SWAPS, 0, BY_STORE, 0 },
		{ "bins_no_release", "takes", "a race", "put_at", NULL, SWAPS, 0, NO_RELEASE, 0 },
		{ "bins_no_acquire", "takes", "a race", "take_from", NULL, SWAPS, 0, NO_ACQUIRE, 0 },
		{ "bins_put_by_store", "ages", "", "put_at", NULL, SWAPS, 0, BY_STORE, 0 },
		{ "bins_counted_still", "takes", "the sum is wrong", "take_from_bins", "take_from_bins", ADDS, 0, NOT_DONE, 0 },
		{ .name = NULL },
	};

	return model_try(models, mutants, argc, argv);
}
