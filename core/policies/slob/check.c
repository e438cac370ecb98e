/*
 * SLOB: its invariants, and what its pages have free.
 *
 * Pages are found by a walk over the page allocator, not by the lists, as full pages are on none. Then the lists must hold
 * exactly those with free units, each on one list, linked both ways; no page may be wholly free, as such pages go back at
 * once; the free blocks of each page must be in order, apart, and add up to its free units (blocks.h); the sizes that
 * are counted for each list must be those of its pages' free blocks (sizes.h); and no page may have a block of a size,
 * or room for a request, of which its descriptor says that it has none. Under best fit segments must divide each list, and promise
 * no less than their pages have (segments.h).
 *
 * The page allocator walks without locks of its own; sy__slob_heap.lock keeps everybody out of the blocks meanwhile.
 */
#include "slob.h"

#define LINE_UNITS ((uint32_t)(SY_CACHE_LINE / SY__SLOB_UNIT))

struct survey {
	struct sy__slob_heap *slob;
	uint64_t partial_pages;
	uint64_t blocks[SY__SLOB_LISTS], units[SY__SLOB_LISTS]; /* free ones of the pages of each list */
	const char *wrong;
};

/* The largest object of that alignment that a free block has room for. */
static uint32_t room(uint32_t block, uint32_t units, uint32_t align)
{
	uint32_t skipped = sy__slob_start(block, &(struct sy__slob_want){ .align = align }) - block;

	return units > skipped ? units - skipped : 0;
}

/* The same for requests that kmalloc aligns to their size, with the header; 0: none. */
static uint32_t room_for_power(uint32_t block, uint32_t units)
{
	struct sy__slob_want want = { .offset = SY__SLOB_WORD_UNITS };
	uint32_t most = 0;

	for (want.align = 2 * SY__SLOB_WORD_UNITS; want.align < SY__SLOB_PAGE_UNITS; want.align *= 2) {
		want.units = want.align + want.offset;
		if (sy__slob_fits(block, units, &want))
			most = want.units;
	}
	return most;
}

/* The same for requests that kmalloc aligns as the heap wants. */
static uint32_t room_for_kmalloc(uint32_t align, uint32_t block, uint32_t units)
{
	struct sy__slob_want want = { .align = align, .offset = SY__SLOB_WORD_UNITS };
	uint32_t skipped = sy__slob_start(block, &want) - block;

	if (align <= SY__SLOB_WORD_UNITS)
		return room_for_power(block, units);
	return units > skipped ? units - skipped : 0;
}

static bool bounded(const struct sy__slob_page *state, uint32_t align, uint32_t block, uint32_t units)
{
	return state->most[SY__SLOB_WORD] >= room(block, units, SY__SLOB_WORD_UNITS) &&
	       state->most[SY__SLOB_LINE] >= room(block, units, LINE_UNITS) &&
	       state->most[SY__SLOB_POWER] >= room_for_kmalloc(align, block, units);
}

/* Whether the block contradicts what the page noted of a request. */
static bool overlooked(const struct sy__slob_page *state, uint32_t align, uint32_t block, uint32_t units)
{
	enum sy__slob_kind kind = (enum sy__slob_kind)(state->known_want >> 14);
	struct sy__slob_want want = { .units = state->known_want & ((1u << 14) - 1), .align = SY__SLOB_WORD_UNITS };

	if (kind == SY__SLOB_LINE)
		want.align = LINE_UNITS;
	if (kind == SY__SLOB_POWER)
		want = (struct sy__slob_want){ want.units, align > SY__SLOB_WORD_UNITS ? align : want.units - SY__SLOB_WORD_UNITS,
			                       SY__SLOB_WORD_UNITS };
	return units < state->known_least && sy__slob_fits(block, units, &want);
}

static void survey_blocks(struct survey *survey, struct sy_page *page)
{
	const struct sy__slob_page *state = sy__slob_page_state(page);
	uint32_t align = survey->slob->heap.sizing.align / (uint32_t)SY__SLOB_UNIT; /* of kmalloc at least */
	uint32_t units, next;

	for (uint32_t block = state->first; block != SY__SLOB_PAGE_UNITS; block = next) {
		sy__slob_read(sy__slob_page_units(survey->slob, page), block, &units, &next);
		survey->blocks[state->list]++;
		survey->units[state->list] += units;
		if (!survey->slob->sizes[state->list].counts[units])
			survey->wrong = "slob: a free block's size is not counted";
		if (!(state->may_have & sy__slob_size_bit(units)))
			survey->wrong = "slob: a page does not know of a free block's size";
		if (!bounded(state, align, block, units))
			survey->wrong = "slob: a page has room for more than it states";
		if (overlooked(state, align, block, units))
			survey->wrong = "slob: a page has a tighter block than it noted";
	}
}

/* One slab page, wherever it is. */
static bool survey_page(void *context, struct sy_page *page)
{
	struct survey *survey = context;
	const struct sy__slob_page *state = sy__slob_page_state(page);

	if (!sy__page_is_slab(page))
		return true;
	if (sy__page_order(page) != 0)
		survey->wrong = "slob: a slab has more than one page";
	else if (state->free_units >= SY__SLOB_PAGE_UNITS)
		survey->wrong = "slob: a wholly free page was kept";
	else
		survey->wrong = sy__slob_check_blocks(sy__slob_page_units(survey->slob, page), state->first, state->free_units);
	if (!survey->wrong)
		survey_blocks(survey, page);
	survey->partial_pages += state->free_units > 0;
	return !survey->wrong;
}

/* Counts the pages of a list, which lets no more than `most` be on it. */
static const char *check_list(struct sy__slob_heap *slob, struct sy_list *list, uint64_t *pages, uint64_t most)
{
	for (struct sy_list *link = list->next; link != list; link = link->next) {
		struct sy_page *page = sy__slob_page_of_link(link);

		if (link->next->prev != link)
			return "slob: a list of pages is not linked both ways";
		if (!sy__page_is_slab(page) || sy__page_heap(page) != &slob->heap)
			return "slob: a page on a list is no slab of this heap";
		if (!sy__slob_page_state(page)->free_units)
			return "slob: a full page is on a list";
		if (++*pages > most)
			return "slob: a page is on two lists";
	}
	return NULL;
}

/* The counted sizes add up to the blocks that there are, in number and in units. */
static const char *check_sizes(const struct survey *survey)
{
	for (unsigned i = 0; i < SY__SLOB_LISTS; i++) {
		const struct sy__slob_sizes *sizes = &survey->slob->sizes[i];
		uint64_t blocks = 0, sum = 0;

		for (uint32_t units = 1; units <= SY__SLOB_PAGE_UNITS; units++) {
			blocks += sizes->counts[units];
			sum += (uint64_t)sizes->counts[units] * units;
			if ((sizes->counts[units] > 0) != (sizes->present[units / 64] >> units % 64 & 1))
				return "slob: a size is present though no block has it, or the reverse";
		}
		if (blocks != survey->blocks[i] || sum != survey->units[i])
			return "slob: the counted sizes are not those of the free blocks";
	}
	return NULL;
}

/* Whether a block contradicts what a segment knows of requests. */
static bool segment_overlooked(const struct sy__slob_segment *segment, uint32_t block, uint32_t units)
{
	for (unsigned i = 0; i < SY__SLOB_KNOWN; i++) {
		uint32_t key = segment->known_want[i];
		struct sy__slob_want want = { key & 0xffff, 1u << (key >> 16 & 31), key >> 31 ? SY__SLOB_WORD_UNITS : 0 };

		if (key && units < segment->known_least[i] && sy__slob_fits(block, units, &want))
			return true;
	}
	return false;
}

static const char *check_page_of_segment(const struct sy__slob_heap *slob, const struct sy__slob_segment *segment, struct sy_page *page)
{
	const struct sy__slob_page *state = sy__slob_page_state(page);
	uint32_t units, next;

	if (&slob->segments.all[state->segment] != segment)
		return "slob: a page is in another segment than it states";
	for (uint32_t block = state->first; block != SY__SLOB_PAGE_UNITS; block = next) {
		sy__slob_read(sy__slob_page_units(slob, page), block, &units, &next);
		if (!(segment->may_have & sy__slob_size_bit(units)))
			return "slob: a segment does not know of a free block's size";
		if (segment_overlooked(segment, block, units))
			return "slob: a segment has a tighter block than it noted";
	}
	return NULL;
}

static const char *check_segments(const struct sy__slob_heap *slob, unsigned list)
{
	const struct sy__slob_segment *all = slob->segments.all;
	const struct sy_list *end = &slob->partial[list];
	struct sy_list *link = end->next;

	for (uint32_t i = slob->segments.front[list]; i; i = all[i].next) {
		if (all[i].pages && all[i].first != link)
			return "slob: a segment does not begin where the one before it ends";
		for (uint32_t left = all[i].pages; left; left--, link = link->next) {
			const char *wrong = link == end ? "slob: a segment has more pages than its list"
			                                : check_page_of_segment(slob, &all[i], sy__slob_page_of_link(link));

			if (wrong)
				return wrong;
		}
	}
	return slob->fit != SY__SLOB_BEST || link == end ? NULL : "slob: a page is in no segment";
}

static const char *check_lists(struct sy__slob_heap *slob)
{
	struct survey survey = { .slob = slob };
	uint64_t pages = 0;

	sy__pages_walk(&slob->heap, survey_page, &survey);
	for (unsigned i = 0; i < SY__SLOB_LISTS && !survey.wrong; i++)
		survey.wrong = check_list(slob, &slob->partial[i], &pages, survey.partial_pages);
	if (!survey.wrong && pages != survey.partial_pages)
		return "slob: a page with free units is on no list";
	for (unsigned i = 0; i < SY__SLOB_LISTS && !survey.wrong; i++)
		survey.wrong = check_segments(slob, i);
	return survey.wrong ? survey.wrong : check_sizes(&survey);
}

const char *sy__slob_check(struct sy_heap *heap)
{
	struct sy__slob_heap *slob = sy__slob_of(heap);
	const char *error;

	sy__lock(&slob->lock);
	error = check_lists(slob);
	sy__unlock(&slob->lock);
	return error;
}

/* Headers and footers count as used, as in Kyritsis et al. */
uint64_t sy__slob_unused_bytes(struct sy_heap *heap)
{
	struct sy__slob_heap *slob = sy__slob_of(heap);
	uint64_t units = 0;

	sy__lock(&slob->lock);
	for (unsigned i = 0; i < SY__SLOB_LISTS; i++)
		for (struct sy_list *link = slob->partial[i].next; link != &slob->partial[i]; link = link->next)
			units += sy__slob_page_state(sy__slob_page_of_link(link))->free_units;
	sy__unlock(&slob->lock);
	return units * SY__SLOB_UNIT;
}
