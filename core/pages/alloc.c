/*
 * Serving requests: which zone, how deep below its watermarks, and what to do when there is nothing. Linux 6.1.
 *
 * sy__block_take is the entry; take_above does nearly all requests. It walks the zones that the request may use, and takes
 * from the first that would keep more free pages than a watermark and the pages kept back from requests which a higher
 * zone could have served (lowmem reserve), and that has a block large enough.
 *
 * A request goes through these stages until one gives it a block:
 *   1. Above the low watermarks. On a machine with both a Normal and a DMA32 zone, other types' blocks smaller than a pageblock
 *      are left alone while another zone of the node has memory; then once more without this rule (ALLOC_NOFRAGMENT).
 *   2. Heaps are asked to give back what they can (unless SY_NO_RECLAIM), and if they gave anything: above the low watermarks.
 *   3. Above the min watermarks. SY_HIGHATOMIC requests may go to 3/8 of them and use the HighAtomic reserve.
 *   4. Everything is gathered: the heaps urgently asked, all per-CPU lists emptied, the reserve given up, the larger blocks
 *      that may have formed tried.
 * Then it fails. Linux would wait for reclaim and compaction of other people's pages in stages 2 and 4; those belong to
 * the environment here, whose frees are in the trace.
 *
 * A freed block goes to the per-CPU list of the slot that frees it, or straight to its zone if it is of a larger order.
 */
#include "pages.h"

#define PART_ORDER 3u /* smaller blocks that go straight to a zone are parts of runs, of which the layer above is not told */

_Static_assert(SY_HIGHATOMIC_TYPE == SY__CPU_TYPES, "the reserve is the type after those that everybody uses");

static inline bool has_cpu_list(const struct sy__zone *zone, unsigned order)
{
	return order < SY_CPU_LIST_ORDERS && zone->cpu;
}

static bool has_block(const struct sy__zone *zone, const struct sy__request *request)
{
	unsigned order, type;
	unsigned types = request->harder ? SY_MIGRATE_TYPES : SY__CPU_TYPES;

	if (sy__likely(sy__read(&zone->ungrown_blocks)))
		return true;
	for (order = request->order; order < SY_ORDERS; order++)
		for (type = 0; type < types; type++)
			if (sy__read(&zone->free[order][type].count))
				return true;
	return false;
}

/* Whether the zone stays above a mark when it serves the request. */
static bool stays_above(const struct sy__zone *zone, const struct sy__request *request, size_t mark)
{
	size_t free = sy__read(&zone->free_pages);
	size_t unusable = ((size_t)1 << request->order) - 1;

	if (request->harder) {
		mark -= mark / 2;
		mark -= mark / 4;
	} else {
		unusable += sy__read(&zone->highatomic_pages);
	}
	if (free <= unusable || free - unusable <= mark + zone->reserve[request->kind])
		return false;
	return sy__likely(request->order == 0) || has_block(zone, request);
}

/* Straight from the zone: large orders, and whatever the per-CPU lists could not be filled with. */
static struct sy_page *take_from_zone(struct sy__zone *zone, const struct sy__request *request)
{
	struct sy_page *page = NULL;

	sy__lock(&zone->lock);
	if (request->harder && request->order)
		page = sy__zone_smallest(zone, request->order, SY_HIGHATOMIC_TYPE);
	if (!page)
		page = sy__zone_take(zone, request);
	if (page) {
		sy__set_use(page, request->use);
		zone->served++;
		zone->used[SY_USE_FREE] -= (int64_t)1 << request->order;
		zone->used[request->use] += (int64_t)1 << request->order;
	}
	sy__unlock(&zone->lock);
	return page;
}

static inline void hand_out(const struct sy__zone *zone, const struct sy__request *request, struct sy_page *page)
{
	sy__set_migrate(page, request->migrate);
	page->zone = zone->index;
	page->node = zone->node;
	page->to_head = 0;
	page->heap = NULL;
	page->bytes = 0;
}

static inline struct sy_page *take(struct sy__zone *zone, const struct sy__request *request)
{
	struct sy_page *page = NULL;

	if (sy__likely(has_cpu_list(zone, request->order)))
		page = sy__cpu_take(zone, request);
	if (sy__unlikely(!page))
		page = take_from_zone(zone, request);
	if (sy__unlikely(!page))
		return NULL;
	hand_out(zone, request, page);
	if (sy__unlikely(request->harder && request->order))
		sy__highatomic_reserve(zone, page);
	return page;
}

/* The first zone of the request's walk that stays above its mark serves it. */
static inline struct sy_page *take_above(struct sy_pages *pages, const struct sy__request *request, enum sy__watermark mark)
{
	const uint8_t *walk = pages->walk[request->node];
	unsigned i;

	for (i = 0; i < pages->zone_count; i++) {
		struct sy__zone *zone = &pages->zones[walk[i]];
		struct sy_page *page;

		if (zone->kind > request->kind)
			continue;
		if (zone->node != request->node && (request->flags & SY_THISNODE || request->min_fallback))
			break;
		if (!stays_above(zone, request, zone->marks[mark]))
			continue;
		page = take(zone, request);
		if (sy__likely(page))
			return page;
	}
	return NULL;
}

static void count_rescue(struct sy_pages *pages)
{
	sy__lock(&pages->account_lock);
	pages->rescued++;
	sy__unlock(&pages->account_lock);
}

/* Stage 4. */
static struct sy_page *take_last(struct sy_pages *pages, struct sy__request *request)
{
	uint64_t given = request->flags & SY_NO_RECLAIM ? 0 : sy__reclaim_urgent(pages);
	struct sy_page *page;
	unsigned i, slot;

	for (slot = 0; slot < pages->slots; slot++)
		sy_pages_drain(pages, slot);
	for (i = 0; i < pages->zone_count; i++)
		while (sy__highatomic_unreserve(&pages->zones[i], request->migrate))
			;
	if (pages->ages)
		pages->hooks->await(pages);
	page = take_above(pages, request, SY__WMARK_MIN);
	if (page && given)
		count_rescue(pages);
	return page;
}

static SY__COLD struct sy_page *take_slowly(struct sy_pages *pages, struct sy__request *request)
{
	struct sy_page *page = NULL;

	if (request->min_fallback) {
		request->min_fallback = 0;
		page = take_above(pages, request, SY__WMARK_LOW);
	}
	if (!page && !(request->flags & SY_NO_RECLAIM) && sy__reclaim(pages))
		page = take_above(pages, request, SY__WMARK_LOW);
	if (page)
		return page;
	request->harder = request->flags & SY_HIGHATOMIC;
	page = take_above(pages, request, SY__WMARK_MIN);
	if (!page)
		page = take_last(pages, request);
	return page;
}

static SY__COLD void report_fallbacks(struct sy_pages *pages, const struct sy__events *events)
{
	unsigned i;

	if (pages->on_fallback)
		for (i = 0; i < events->count; i++)
			pages->on_fallback(pages->fallback_context, &events->list[i]);
}

static SY__COLD struct sy_page *fail(struct sy_pages *pages)
{
	sy__lock(&pages->account_lock);
	pages->failures++;
	sy__unlock(&pages->account_lock);
	return NULL;
}

/* Whether this request is the one that sy_pages_fail_after chose. Relaxed: concurrent requests count in any order. */
static SY__COLD bool injected_failure(struct sy_pages *pages)
{
	size_t left = sy__read(&pages->fail_after);

	while (left && !__atomic_compare_exchange_n(&pages->fail_after, &left, left - 1, true, __ATOMIC_RELAXED,
	                                            __ATOMIC_RELAXED))
		;
	return left == 1;
}

static unsigned request_kind(const struct sy_pages *pages, unsigned flags)
{
	unsigned kind = SY__KIND_NORMAL;

	if (flags & SY_DMA)
		kind = SY__KIND_DMA;
	else if (flags & SY_DMA32)
		kind = SY__KIND_DMA32;
	else if (flags & SY_MOVABLE)
		kind = SY__KIND_MOVABLE;
	return kind > pages->lowest_kind ? kind : pages->lowest_kind;
}

static unsigned request_migrate(unsigned flags)
{
	if (flags & SY_RECLAIMABLE)
		return SY_RECLAIMABLE_TYPE;
	return flags & SY_MOVABLE ? SY_MOVABLE_TYPE : SY_UNMOVABLE;
}

/* Slots are spread evenly over the nodes, in order. */
static unsigned request_node(const struct sy_pages *pages, unsigned slot, int node)
{
	if (node >= 0 && (unsigned)node < pages->nodes)
		return (unsigned)node;
	return pages->nodes == 1 ? 0 : slot % pages->slots * pages->nodes / pages->slots;
}

struct sy_page *sy__block_take(struct sy_pages *pages, unsigned slot, unsigned order, unsigned flags, int node,
                               enum sy_page_use use)
{
	struct sy__events events;
	struct sy__request request;
	struct sy_page *page;

	if (sy__unlikely(sy__read(&pages->fail_after)) && injected_failure(pages))
		return fail(pages);
	if (sy__unlikely(order > SY_MAX_ORDER))
		return fail(pages);
	events.count = 0;
	request.slot = slot;
	request.order = order;
	request.flags = flags;
	request.migrate = (uint8_t)request_migrate(flags);
	request.use = (uint8_t)use;
	request.kind = (uint8_t)request_kind(pages, flags);
	request.node = request_node(pages, slot, node);
	request.harder = false;
	request.events = &events;
	request.min_fallback = pages->nofragment[request.node][request.kind];
	page = take_above(pages, &request, SY__WMARK_LOW);
	if (sy__unlikely(!page))
		page = take_slowly(pages, &request);
	if (sy__unlikely(events.count))
		report_fallbacks(pages, &events);
	return sy__likely(page) ? page : fail(pages);
}

static void give_to_zone(struct sy__zone *zone, struct sy_page *page, unsigned order, unsigned from_use)
{
	struct sy_pages *pages = zone->pages;

	sy__lock(&zone->lock);
	zone->used[from_use] -= (int64_t)1 << order;
	zone->used[SY_USE_FREE] += (int64_t)1 << order;
	sy__zone_free(zone, page, order, sy__pageblock_type(pages, sy__number(pages, page)));
	if (order >= SY__TOLD_ORDER && pages->hooks)
		pages->hooks->freed(zone, sy__number(pages, page));
	sy__unlock(&zone->lock);
}

static inline void tell_given(struct sy_pages *pages)
{
	if (pages->ages)
		pages->hooks->given(pages);
}

void sy__block_give(struct sy_pages *pages, unsigned slot, struct sy_page *page, unsigned order, unsigned from_use)
{
	struct sy__zone *zone = &pages->zones[page->zone];

	if (sy__likely(has_cpu_list(zone, order))) {
		if (sy__likely(!sy__cpu_give(zone, slot, page, order, from_use)))
			return;
	} else {
		give_to_zone(zone, page, order, from_use);
	}
	tell_given(pages);
}

void sy__block_give_to_zone(struct sy_pages *pages, struct sy_page *page, unsigned order, unsigned from_use)
{
	give_to_zone(&pages->zones[page->zone], page, order, from_use);
	if (order >= PART_ORDER)
		tell_given(pages);
}

struct sy_page *sy_pages_alloc(struct sy_pages *pages, unsigned slot, unsigned order, unsigned flags, int node)
{
	return sy__block_take(pages, slot, order, flags, node, SY_USE_ENVIRONMENT);
}

void sy_pages_free(struct sy_pages *pages, unsigned slot, struct sy_page *page)
{
	sy__block_give(pages, slot, page, page->order, SY_USE_ENVIRONMENT);
}

void sy_pages_drain(struct sy_pages *pages, unsigned slot)
{
	unsigned i;

	for (i = 0; i < pages->zone_count; i++)
		if (pages->zones[i].cpu)
			sy__cpu_drain(&pages->zones[i], slot);
}

void sy_pages_fail_after(struct sy_pages *pages, uint64_t requests)
{
	__atomic_store_n(&pages->fail_after, requests > SIZE_MAX ? SIZE_MAX : (size_t)requests, __ATOMIC_RELAXED);
}
