/*
 * Per-slot areas: the per-slot state of caches, in heaps of threads, slot by slot.
 *
 * A cache of a heap of threads has some cache lines of state for each of hundreds of slots, of which a program uses a few.
 * If each cache had an array of them, a thread would touch a page for every size class, for the sake of one line. So state is
 * laid out the other way round. An area has one page per slot, and a cache has the same lines of every page:
 *
 * 	            cache a   cache b   cache c
 * 	dummy     | line    | line    | line line | …  to SY_SLOT_STRIDE bytes
 * 	slot 0    | line    | line    | line line | …
 * 	slot 1    | …
 *
 * A thread then touches one page for the first SY__MOST_LINES lines of all caches, and finds them by one TLB entry. What
 * sy__call_begin returns is the distance of a slot's page from that of slot 0.
 *
 * Areas are address space from the memory source, beside the heap's pages. A page of an area takes memory when its slot first
 * writes to it. Zero must mean that a slot has nothing yet, so creating a cache touches no slot's page. Giving lines back clears
 * them, for every slot that ever had an owner, as the next cache must find zeros.
 *
 * Lock (level 3 of types.h): sy_heap.slot_areas_lock, for the list of areas and their taken lines.
 */
#include "slot_areas.h"

#include "metadata.h"

struct sy__slot_area {
	struct sy__slot_area *next;
	char *pages;   /* of all slots; the dummy's first */
	size_t bytes;  /* of all pages; fewer where there are fewer slots */
	uint64_t taken; /* a bit for each line */
};

_Static_assert(SY__MOST_LINES == 64, "a word has a bit for each line");

static unsigned lines_of(size_t bytes)
{
	return (unsigned)((bytes + SY_CACHE_LINE - 1) / SY_CACHE_LINE);
}

static uint64_t mask(unsigned first, unsigned count)
{
	return (count < SY__MOST_LINES ? (UINT64_C(1) << count) - 1 : UINT64_MAX) << first;
}

/* Takes `count` adjacent lines of an area, and returns the dummy's; NULL: no room. From the end of pages: many objects start at
 * the beginning of a page, where they would compete for the same cache sets. With the lock held. */
static char *take_of(struct sy__slot_area *area, unsigned count)
{
	for (unsigned first = SY__MOST_LINES - count + 1; first-- > 0;) {
		if (area->taken & mask(first, count))
			continue;
		area->taken |= mask(first, count);
		return area->pages + first * SY_CACHE_LINE;
	}
	return NULL;
}

static char *take_of_all(struct sy_heap *heap, unsigned count)
{
	char *lines = NULL;

	sy__lock(&heap->slot_areas_lock);
	for (struct sy__slot_area *area = heap->slot_areas; area && !lines; area = area->next)
		lines = take_of(area, count);
	sy__unlock(&heap->slot_areas_lock);
	return lines;
}

/* NULL: no memory. */
static char *reserve(size_t bytes)
{
	char *pages = sy__source_reserve(bytes);

	if (pages && sy__source_commit(pages, bytes) != 0) {
		sy__source_release(pages, bytes);
		return NULL;
	}
	return pages;
}

static size_t area_bytes(void)
{
	return (sy__thread_slots() + 1) * SY_SLOT_STRIDE; /* with the dummy's */
}

static bool add_area(struct sy_heap *heap)
{
	struct sy__slot_area *area = sy__metadata_take(heap, sizeof(*area));
	char *pages = NULL;
	size_t bytes;

	do
		bytes = area_bytes();
	while (area && !(pages = reserve(bytes)) && (sy__thread_slots_reduce(sy__thread_slots() - 1) || area_bytes() < bytes));
	if (!pages) {
		sy__metadata_give(heap, area, sizeof(*area));
		return false;
	}
	sy__source_prefer_small(pages, bytes);
	*area = (struct sy__slot_area){ .pages = pages, .bytes = bytes };
	sy__lock(&heap->slot_areas_lock);
	area->next = heap->slot_areas;
	heap->slot_areas = area;
	sy__unlock(&heap->slot_areas_lock);
	return true;
}

void *sy__slot_areas_take(struct sy_heap *heap, size_t bytes)
{
	unsigned count = lines_of(bytes);
	char *lines = take_of_all(heap, count);

	while (!lines && add_area(heap))
		lines = take_of_all(heap, count);
	return lines ? lines + SY_SLOT_STRIDE : NULL;
}

/* The ends of areas that nobody has touched, as no thread has had a slot there. */
void sy__slot_areas_reduce(struct sy_heap *heap)
{
	size_t bytes = area_bytes();

	sy__lock(&heap->slot_areas_lock);
	for (struct sy__slot_area *area = heap->slot_areas; area; area = area->next) {
		if (area->bytes <= bytes)
			continue;
		sy__source_release(area->pages + bytes, area->bytes - bytes);
		area->bytes = bytes;
	}
	sy__unlock(&heap->slot_areas_lock);
}

/* ---- Giving back -------------------------------------------------------------------------------------------------- */

/* Writes only if the line is not zero: a page that was only read takes no memory. */
static void clear(char *line)
{
	static const char zero[SY_CACHE_LINE];

	if (!sy__same(line, zero, SY_CACHE_LINE))
		sy__fill(line, 0, SY_CACHE_LINE);
}

void sy__slot_areas_give(struct sy_heap *heap, void *of_slot_0, size_t bytes)
{
	char *lines = (char *)of_slot_0 - SY_SLOT_STRIDE;
	unsigned count = lines_of(bytes), pages = sy__slots_high() + 1;

	if (!of_slot_0)
		return;
	for (unsigned page = 0; page < pages; page++)
		for (unsigned line = 0; line < count; line++)
			clear(lines + (size_t)page * SY_SLOT_STRIDE + (size_t)line * SY_CACHE_LINE);
	sy__lock(&heap->slot_areas_lock);
	for (struct sy__slot_area *area = heap->slot_areas; area; area = area->next) {
		size_t at = (size_t)((uintptr_t)lines - (uintptr_t)area->pages);

		if (at < SY_SLOT_STRIDE)
			area->taken &= ~mask((unsigned)(at / SY_CACHE_LINE), count);
	}
	sy__unlock(&heap->slot_areas_lock);
}

bool sy__slot_areas_next(const struct sy_heap *heap, const struct sy__slot_area **area, const char **pages)
{
	*area = *area ? (*area)->next : heap->slot_areas;
	*pages = *area ? (*area)->pages : NULL;
	return *area;
}

void sy__slot_areas_fini(struct sy_heap *heap)
{
	while (heap->slot_areas) {
		struct sy__slot_area *area = heap->slot_areas;

		heap->slot_areas = area->next;
		sy__source_release(area->pages, area->bytes);
		sy__metadata_give(heap, area, sizeof(*area));
	}
}
