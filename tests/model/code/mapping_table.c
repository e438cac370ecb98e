/*
 * The table of the mapping cache (malloc/mapping_cache.c), at all interleavings of threads that give ranges, take them, and
 * end old ones.
 *
 * The model plays the kernel: a page is not mapped, or belongs to the program, which knows the thread that has it. No thread
 * may get a page that another has. Pages that go to the kernel must be no thread's. In the end every page is in one place, and
 * the counted sum is the sum of what is kept. There are three entries, as each is a step for a thread that looks for a range.
 */
#define _GNU_SOURCE /* mremap */
#include <sys/mman.h>

#include "core/platform/system_call.h"

#include "world.h"

#define PAGE ((size_t)64 << 10) /* as good as any: half of the least rest */
#define PAGES 32u

enum { UNMAPPED, KEPT, HELD };

static struct {
	uint8_t pages[PAGES];
	char memory[PAGES * PAGE];
} mapped;

static uint8_t *page_at(const char *start)
{
	return &mapped.pages[(size_t)(start - mapped.memory) / PAGE];
}

static void become(const char *start, size_t bytes, uint8_t from, uint8_t to, const char *wrong)
{
	for (size_t i = 0; i < bytes / PAGE; i++) {
		if (page_at(start)[i] != from)
			model_wrong(wrong);
		page_at(start)[i] = to;
	}
}

static bool unmap(void *start, size_t bytes)
{
	become(start, bytes, KEPT, UNMAPPED, "what somebody has is unmapped");
	return true;
}

/* Refuses, so that the range is given up: moves are single-threaded, and the pages' owner's. */
static void *refuse(void *start, size_t bytes, size_t wanted, int flags, const void *place)
{
	(void)start;
	(void)bytes;
	(void)wanted;
	(void)flags;
	(void)place;
	return NULL;
}

size_t sy__system_page_bytes(void)
{
	return 4096;
}

#define RANGES 3u
#define sy__system_unmap unmap
#define sy__system_remap refuse
#include "malloc/mapping_cache.c"
#undef sy__system_unmap
#undef sy__system_remap

/* ---- Threads -------------------------------------------------------------------------------------------------------- */

static void keep_range(unsigned first, unsigned pages)
{
	char *start = mapped.memory + first * PAGE;

	become(start, pages * PAGE, HELD, KEPT, "what nobody has is given");
	sy__mapping_cache_give(start, pages * PAGE, pages * PAGE, NULL);
}

static void take_range(unsigned pages)
{
	size_t bytes = pages * PAGE;
	char *start = sy__mapping_cache_take(&bytes, NULL);

	if (start)
		become(start, bytes, KEPT, HELD, "a range is taken that somebody has");
}

/* Two ranges are kept, of 4 and 6 pages; and others are held. */
static void set_up(void)
{
	model_share(&mapped, sizeof(mapped));
	model_share(entries, sizeof(entries));
	model_share(&table_bytes, sizeof(table_bytes));
	memset(mapped.pages, HELD, PAGES);
	keep_range(0, 4);
	keep_range(4, 6);
}

static void takes_some(void)
{
	take_range(2);
}

static void gives_and_takes(void)
{
	keep_range(10, 5);
	take_range(5);
}

static void takes_and_gives_back(void)
{
	size_t bytes = 4 * PAGE;
	char *start = sy__mapping_cache_take(&bytes, NULL);

	if (!start)
		return;
	become(start, bytes, KEPT, HELD, "a range is taken that somebody has");
	become(start, 2 * PAGE, HELD, KEPT, "a page is not there");
	sy__mapping_cache_give(start, 2 * PAGE, 2 * PAGE, NULL);
}

static void gives(void)
{
	keep_range(10, 5);
}

static void takes(void)
{
	take_range(5);
}

static void ends_all(void)
{
	sy__mapping_cache_end();
}

static void takes_behind(void)
{
	char *end = mapped.memory + 4 * PAGE;

	become(end, sy__mapping_cache_take_behind(end, 3 * PAGE), KEPT, HELD, "pages behind a range are taken that somebody has");
}

static void makes_up(void)
{
	sy__mapping_cache_offset_growth(3 * PAGE);
}

/* A child of a fork that came while a thread was about to keep a range, and had taken an entry or counted the range. */
static const char *forked(size_t sum)
{
	struct entry *entry = entries;

	while (entry < entries + RANGES && entry->start)
		entry++;
	if (entry < entries + RANGES)
		entry->start = BUSY;
	table_bytes += PAGE;
	sy__mapping_cache_forked();
	for (entry = entries; entry < entries + RANGES; entry++)
		if (entry->start == BUSY)
			return "an entry is nobody's after a fork";
	return sum == table_bytes ? NULL : "the sum is wrong after a fork";
}

static const char *verify(void)
{
	size_t sum = 0;

	for (unsigned i = 0; i < RANGES; i++) {
		if (entries[i].start == BUSY)
			return "an entry is somebody's for ever";
		if (!entries[i].start)
			continue;
		sum += entries[i].bytes;
		become(entries[i].start, entries[i].bytes, KEPT, UNMAPPED, "a page is in two ranges");
	}
	for (unsigned i = 0; i < PAGES; i++)
		if (mapped.pages[i] == KEPT)
			return "a range is lost";
	return sum == table_bytes ? forked(sum) : "the sum is wrong";
}

int main(int argc, char **argv)
{
	static const struct model models[] = {
		{ .name = "takes", .set_up = set_up, .threads = { takes_some, takes_and_gives_back }, .verify = verify },
		{ .name = "gives", .set_up = set_up, .threads = { gives_and_takes, takes_and_gives_back }, .verify = verify },
		{ .name = "ends", .set_up = set_up, .threads = { takes_and_gives_back, ends_all }, .verify = verify },
		{ .name = "behind", .set_up = set_up, .threads = { takes_behind, takes_and_gives_back }, .verify = verify },
		{ .name = "made_up", .set_up = set_up, .threads = { makes_up, takes_behind }, .verify = verify },
		{ .name = "three", .set_up = set_up, .threads = { gives, takes, ends_all }, .verify = verify },
		{ .name = NULL },
	};
	static const struct mutant mutants[] = {
		/* A thread that finds a range takes it, whatever is there by then. A range is put there without a release,
		 * or taken without an acquire. A */
		/* range that was taken counts as kept. A child of a fork leaves entries to threads that it does not have. */
		{ "table_not_owned", "gives", "", "own", NULL, SWAPS, 0, BY_STORE, 0 },
		{ "table_no_release", "gives", "a race", "keep", NULL, STORES, 0, NO_RELEASE, 0 },
		{ "table_no_acquire", "gives", "a race", "own", NULL, SWAPS, 0, NO_ACQUIRE, 0 },
		{ "table_counted_still", "three", "", "leave", NULL, ADDS, 0, NOT_DONE, 0 },
		{ "table_not_left", "takes", "an entry is somebody's for ever", "leave", NULL, STORES, 0, NOT_DONE, 0 },
		{ .name = NULL },
	};

	return model_try(models, mutants, argc, argv);
}
