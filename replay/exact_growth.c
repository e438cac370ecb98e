/*
 * Which cache the memory went to: of every cache of the heap, its pages before the first event and at the moment when
 * most was held.
 *
 * The level says what a machine had before the workload, growth says what the workload brought, and growth by cache
 * says why one allocator needs more than another. Before the first event and after the last the heap can be asked for the pages of a cache,
 * but not at the peak, which is known only when it is over. So every change of the heap's pages is noted in a journal, with its row, and
 * the journal is added up to the peak. There is a change where a slab comes or goes; most steps have none and pay a comparison.
 *
 * A change belongs to the cache of the step that made it: an allocation brings a slab of its own cache, a free lets one
 * of its own cache go. Where time passes, or the step had the heap give memory back, slabs of any cache go; then all
 * caches are counted, and each change is noted for its own. A slab of another cache that a step brings (SLAB keeps freelists of slabs in
 * other caches' slabs) counts for the step's cache until then.
 *
 * Caches that share slabs by merging are one row here, that of the cache which owns the slabs. Policies in which all
 * caches share their pages have no pages by cache at all, and no figures from here.
 */
#include "exact.h"

#include <stdlib.h>

#define FIRST_ROOM 1024u

struct page_change {
	uint32_t row;
	int32_t pages;
};

static struct sy_cache *cache_of(const struct exact *exact, uint32_t row)
{
	uint64_t caches = exact->driver->scratch->cache_count;

	if (row < caches)
		return exact->driver->caches[row];
	return row - caches < exact->class_count ? exact->classes[row - caches].cache : NULL;
}

/* The row of a cache's slabs: of the size class or the first cache that it was merged with, or its own. */
static uint32_t owner_of(const struct exact *exact, uint32_t number)
{
	const struct scratch *scratch = exact->driver->scratch;
	const struct sy_cache *cache = exact->driver->caches[number];
	uint64_t turn = 0;

	for (unsigned class = 0; class < exact->class_count; class++)
		if (exact->classes[class].cache == cache)
			return exact_class_row(exact, class);
	while (exact->driver->caches[scratch_cache_at(scratch, turn)] != cache)
		turn++;
	return (uint32_t)scratch_cache_at(scratch, turn);
}

static int64_t pages_of(const struct exact *exact, uint32_t row)
{
	struct sy_cache *cache = exact->growth.owners[row] == row ? cache_of(exact, row) : NULL;
	struct sy_cache_counts counts;

	if (!cache)
		return 0;
	sy_cache_count(cache, &counts);
	return (int64_t)counts.pages;
}

/* ---- The journal ---------------------------------------------------------------------------------------------- */

/* If an entry finds no room, the figures of the peak are unknown. */
static void note_change(struct growth *growth, uint32_t row, int64_t pages)
{
	if (growth->count == growth->room) {
		size_t room = growth->room ? 2 * growth->room : FIRST_ROOM;
		struct page_change *larger = realloc(growth->changes, room * sizeof *larger);

		if (!larger) {
			growth->incomplete = true;
			return;
		}
		growth->changes = larger;
		growth->room = room;
	}
	growth->changes[growth->count++] = (struct page_change){ row, (int32_t)pages };
	growth->now[row] += pages;
}

static void count_all(struct exact *exact)
{
	for (uint32_t row = 0; row < exact_kmalloc_row(exact); row++) {
		int64_t pages = pages_of(exact, row);

		if (pages != exact->growth.now[row])
			note_change(&exact->growth, row, pages - exact->growth.now[row]);
	}
}

/* Remembers what was seen of the heap. */
static void look(struct growth *growth, const struct sy_heap_counters *now)
{
	growth->slab_pages = now->slab_pages;
	growth->reclaimed_pages = now->reclaimed_pages;
}

void exact_growth_note(struct exact *exact)
{
	struct growth *growth = &exact->growth;
	const struct sy_heap_counters *now = exact->counters;
	int64_t change = (int64_t)(now->slab_pages - growth->slab_pages);
	bool reclaimed = now->reclaimed_pages != growth->reclaimed_pages;

	look(growth, now);
	if (exact->row == NO_ROW || reclaimed)
		count_all(exact);
	else
		note_change(growth, growth->owners[exact->row], change);
}

void exact_growth_peak(struct exact *exact)
{
	exact->growth.at_peak = exact->growth.count;
}

/* ---- Begin and end -------------------------------------------------------------------------------------------- */

bool exact_growth_begin(struct exact *exact)
{
	struct growth *growth = &exact->growth;
	uint32_t rows = exact_large_row(exact) + 1;

	growth->owners = calloc(rows, sizeof *growth->owners);
	growth->start = calloc(rows, sizeof *growth->start);
	growth->now = calloc(rows, sizeof *growth->now);
	growth->peak = calloc(rows, sizeof *growth->peak);
	if (!growth->owners || !growth->start || !growth->now || !growth->peak)
		return false;
	for (uint32_t row = 0; row < rows; row++)
		growth->owners[row] = exact->driver->heap && row < exact->driver->scratch->cache_count ? owner_of(exact, row) : row;
	if (!exact->driver->heap)
		return true;
	for (uint32_t row = 0; row < exact_kmalloc_row(exact); row++)
		growth->start[row] = growth->now[row] = pages_of(exact, row);
	look(growth, exact->counters);
	return true;
}

void exact_growth_end(struct exact *exact)
{
	struct growth *growth = &exact->growth;

	for (uint32_t row = 0; row < exact_kmalloc_row(exact); row++)
		growth->peak[row] = growth->start[row];
	for (size_t i = 0; i < growth->at_peak; i++)
		growth->peak[growth->changes[i].row] += growth->changes[i].pages;
}

void exact_growth_release(struct exact *exact)
{
	free(exact->growth.owners);
	free(exact->growth.start);
	free(exact->growth.now);
	free(exact->growth.peak);
	free(exact->growth.changes);
}
