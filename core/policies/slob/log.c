/*
 * SLOB's log of searches.
 *
 * log_every=N logs every Nth allocation by sy_heap.log as three events, the listing in the report of Kyritsis et al.:
 *
 *   slob_request     the bytes asked for, header included
 *   slob_candidates  the bytes of the blocks that Linux's search looks at, in its order, at most LOG_CANDIDATES of them
 *   slob_chosen      the bytes of the block that it took; 0: a new page
 *
 * The search is listed under the lock, before it changes anything, and told without the lock.
 */
#include "slob.h"

#define LOG_CANDIDATES 60

struct listing {
	uint64_t candidates[LOG_CANDIDATES];
	unsigned count;
	uint64_t chosen;
};

/* Lists the blocks of one page that Linux's walk looks at; true: the search ends here. */
static bool list_page(struct sy__slob_heap *slob, struct sy_page *page, const struct sy__slob_request *request,
                      struct listing *listing)
{
	uint32_t block = sy__slob_page_state(page)->first, units, next;

	for (; block != SY__SLOB_PAGE_UNITS; block = next) {
		uint64_t bytes;

		sy__slob_read(sy__slob_page_units(slob, page), block, &units, &next);
		bytes = units * SY__SLOB_UNIT;
		if (listing->count < LOG_CANDIDATES)
			listing->candidates[listing->count++] = bytes;
		if (!sy__slob_fits(block, units, &request->want))
			continue;
		if (!listing->chosen || bytes < listing->chosen)
			listing->chosen = bytes;
		if (slob->fit != SY__SLOB_BEST || units == request->want.units)
			return true;
	}
	return false;
}

/* Lists what Linux's walk for this request looks at, before it changes anything. */
static SY__COLD void list_search(struct sy__slob_heap *slob, const struct sy__slob_request *request, int node,
                                 struct listing *listing)
{
	struct sy_list *list = &slob->partial[request->list];

	listing->count = 0;
	listing->chosen = 0;
	for (struct sy_list *link = list->next; link != list; link = link->next) {
		struct sy_page *page = sy__slob_page_of_link(link);

		if (sy__slob_page_state(page)->free_units >= request->want.units && sy__slob_on_node(page, node) &&
		    list_page(slob, page, request, listing))
			return;
	}
}

static SY__COLD void log_search(struct sy__slob_heap *slob, const struct sy__slob_request *request, int node)
{
	struct sy_heap *heap = &slob->heap;
	struct listing listing;
	uint64_t bytes = request->bytes;

	sy__lock(&slob->lock);
	list_search(slob, request, node, &listing);
	sy__unlock(&slob->lock);
	heap->log(heap->log_context, "slob_request", &bytes, 1);
	heap->log(heap->log_context, "slob_candidates", listing.candidates, listing.count);
	heap->log(heap->log_context, "slob_chosen", &listing.chosen, 1);
}

SY__COLD void sy__slob_log(struct sy__slob_heap *slob, const struct sy__slob_request *request, int node)
{
	bool now;

	sy__lock(&slob->lock);
	now = --slob->until_log == 0;
	if (now)
		slob->until_log = slob->log_every;
	sy__unlock(&slob->lock);
	if (now && slob->heap.log)
		log_search(slob, request, node);
}
