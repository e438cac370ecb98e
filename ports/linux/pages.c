/*
 * The page interface (core/page_interface.h) on the kernel's page allocator.
 *
 * The core calls with interrupts off, so nothing here sleeps. A request is first made as one that may not wait. That succeeds as
 * long as there is memory above the low watermark. If it fails and the caller of the slab interface may sleep, the call notes the
 * block that it lacked and fails. The port then allocates that block with interrupts on and the caller's own flags, puts it into a
 * stash, and calls again; this file looks into the stash first. So the core never sleeps in the middle of its work, and no
 * interrupt sees a slot between two of its steps. (Linux's own allocators enable interrupts while they wait for pages, and then
 * check everything again.)
 *
 * Requests with SY_NO_RECLAIM have an alternative (SLUB: a smaller slab) and never wait.
 *
 * Shrinking and the end of a cache may give many pages back. They only link the pages: freeing takes most of the time, and happens
 * when interrupts are on again. Linux's SLUB does the same when it shrinks.
 *
 * Counters. The kernel's NR_SLAB_… items count the bytes that we hold, reclaimable or not. For the heap's own counters each CPU
 * counts the pages that it took less those that it gave. sy__linux_pages_count adds them up. Requests and peaks are not counted.
 * Direct reclaim is told how many pages we gave back.
 */
#include "port.h"

#include <linux/gfp.h>
#include <linux/memblock.h>
#include <linux/mmzone.h>
#include <linux/pfn.h>
#include <linux/vmstat.h>

struct sy_pages {
	struct sy_pages_base base; /* first, as page_interface.h says */
};

struct sy_pages sy__linux_pages;
DEFINE_PER_CPU(struct sy__call, sy__call);
static DEFINE_PER_CPU(long, held[SY_USES]); /* pages by enum sy_page_use, taken less given */

/* The caller's flags that say how hard to try and whether to warn. The others are about the object, not about our pages. */
#define EFFORT (__GFP_RECLAIM | __GFP_HIGH | __GFP_IO | __GFP_FS | __GFP_NOWARN | __GFP_RETRY_MAYFAIL | __GFP_NOFAIL | \
                __GFP_NORETRY | __GFP_MEMALLOC | __GFP_NOMEMALLOC | __GFP_ATOMIC | __GFP_NOLOCKDEP)

/* The direct map's address of frame 0, from where the map begins: arm64's memory begins at 1 GiB, and __va of less wraps around. */
void sy__linux_pages_init(void)
{
	char *memory = (char *)__va(PFN_PHYS(min_low_pfn)) - PFN_PHYS(min_low_pfn);

	sy__linux_pages.base = (struct sy_pages_base){ .memory = memory, .page_count = max_pfn };
}

unsigned sy__pages_nodes(const struct sy_pages *pages)
{
	return nr_node_ids;
}

/* ---- Taking ----------------------------------------------------------------------------------------------------- */

static gfp_t kind_of_pages(unsigned flags, unsigned order)
{
	gfp_t gfp = order ? __GFP_COMP : 0;

	if (likely(!flags))
		return gfp;
	if (flags & SY_RECLAIMABLE)
		gfp |= __GFP_RECLAIMABLE;
	if (flags & SY_DMA)
		gfp |= __GFP_DMA;
	if (flags & SY_DMA32)
		gfp |= __GFP_DMA32;
	if (flags & SY_ZERO)
		gfp |= __GFP_ZERO;
	if (flags & SY_THISNODE)
		gfp |= __GFP_THISNODE;
	return gfp;
}

static struct page *from_stash(struct sy__stash *stash, unsigned order, gfp_t gfp)
{
	for (unsigned i = 0; stash && i < stash->count; i++) {
		struct page *page = stash->blocks[i].page;

		if (stash->blocks[i].order != order || stash->blocks[i].gfp != gfp)
			continue;
		stash->blocks[i] = stash->blocks[--stash->count];
		return page;
	}
	return NULL;
}

/* Replaces a node that has no memory or is gone by any node. False: the caller insists on the node. */
static bool node_serves(int *node, unsigned flags)
{
	if (*node == SY_ANY_NODE || ((unsigned)*node < nr_node_ids && node_online(*node)))
		return true;
	*node = SY_ANY_NODE;
	return !(flags & SY_THISNODE);
}

/* Without a node the caller's memory policy chooses one. */
static __always_inline struct page *take_from(int node, gfp_t gfp, unsigned order)
{
	return node == NUMA_NO_NODE ? alloc_pages(gfp, order) : alloc_pages_node(node, gfp, order);
}

static struct page *take(struct sy__call *call, unsigned order, unsigned flags, int node)
{
	gfp_t kind = kind_of_pages(flags, order), effort = call->gfp & gfp_allowed_mask & EFFORT;
	bool may_wait = gfpflags_allow_blocking(effort) && !(flags & SY_NO_RECLAIM);
	struct page *page;

	if (!node_serves(&node, flags))
		return NULL;
	page = from_stash(call->stash, order, kind | effort);
	if (page)
		return page;
	if (flags & SY_NO_RECLAIM)
		effort |= __GFP_NOWARN | __GFP_NORETRY;
	page = take_from(node, kind | (effort & ~(__GFP_DIRECT_RECLAIM | __GFP_NOFAIL)) | (may_wait ? __GFP_NOWARN : 0), order);
	if (!page && may_wait) {
		call->lacks = true;
		call->lacks_gfp = kind | effort;
		call->lacks_order = order;
		call->lacks_node = node;
	}
	return page;
}

bool sy__stash_fill(struct sy__stash *stash, const struct sy__call *lacking)
{
	struct page *page;

	if (stash->count == SY__STASH_BLOCKS)
		return false;
	page = take_from(lacking->lacks_node, lacking->lacks_gfp, lacking->lacks_order);
	if (!page)
		return false;
	stash->blocks[stash->count].page = page;
	stash->blocks[stash->count].order = lacking->lacks_order;
	stash->blocks[stash->count++].gfp = lacking->lacks_gfp;
	return true;
}

void sy__stash_empty(struct sy__stash *stash)
{
	while (stash->count) {
		stash->count--;
		__free_pages(stash->blocks[stash->count].page, stash->blocks[stash->count].order);
	}
}

/* ---- Accounting ------------------------------------------------------------------------------------------------- */

static sy__mark_t mark_for(enum sy_page_use use, unsigned flags)
{
	if (use == SY_USE_METADATA)
		return SY__MARK_OURS | SY__MARK_NO_OBJECTS | SY__MARK_OTHER;
	if (use == SY_USE_LARGE)
		return SY__MARK_OURS | SY__MARK_NO_OBJECTS;
	return SY__MARK_OURS | (flags & SY_RECLAIMABLE ? SY__MARK_OTHER : 0);
}

/* Needs no protection from interrupts of its own: they are off in every call. */
static __always_inline void tell_kernel(struct sy_page *page, bool reclaimable, long pages)
{
	__mod_node_page_state(page_pgdat(sy__linux_page(page)), reclaimable ? NR_SLAB_RECLAIMABLE_B : NR_SLAB_UNRECLAIMABLE_B,
	                      pages * (long)PAGE_SIZE);
}

static uint64_t held_by_all(enum sy_page_use use)
{
	uint64_t pages = 0;
	unsigned cpu;

	for_each_possible_cpu(cpu)
		pages += per_cpu(held, cpu)[use];
	return pages;
}

void sy__linux_pages_count(void)
{
	struct sy_heap_counters *counters = &sy__linux_heap->counters;

	counters->slab_pages = held_by_all(SY_USE_SLAB);
	counters->large_pages = held_by_all(SY_USE_LARGE);
	counters->metadata_pages = held_by_all(SY_USE_METADATA);
	counters->slab_pages_peak = counters->slab_pages;
	counters->held_peak = counters->slab_pages + counters->large_pages;
}

/* ---- The interface ---------------------------------------------------------------------------------------------- */

struct sy_page *sy__pages_take(struct sy_heap *heap, unsigned slot, unsigned order, unsigned flags, int node,
                               enum sy_page_use use)
{
	struct page *block = take(this_cpu_ptr(&sy__call), order, flags, node);
	struct sy_page *page = sy__page_of_linux(block);

	if (unlikely(sy__log_is_on) && use != SY_USE_METADATA)
		sy__log_write(SY__LOG_PAGES, block ? page_address(block) : NULL, order, 0, block ? page_to_nid(block) : node);
	if (!block)
		return NULL;
	page->flags |= SY__PAGE_NOT_MOVABLE;
	sy__page_set_mark(page, mark_for(use, flags));
	page->first = page->second = page->mapping = page->fourth = page->fifth = 0;
	tell_kernel(page, use == SY_USE_SLAB && flags & SY_RECLAIMABLE, 1L << order);
	__this_cpu_add(held[use], 1L << order);
	return page;
}

struct sy_page *sy__pages_take_run(struct sy_heap *heap, unsigned slot, unsigned order, unsigned count, unsigned flags, int node,
                                   enum sy_page_use use)
{
	BUG_ON(count != 1u << order); /* only heaps with sy_sizing.exact_runs ask for other runs, and a kernel's has not */
	return sy__pages_take(heap, slot, order, flags, node, use);
}

void sy__pages_give(struct sy_heap *heap, unsigned slot, struct sy_page *page)
{
	enum sy_page_use use = sy__page_use(page);
	unsigned order = sy__page_order(page);
	struct sy__call *call = this_cpu_ptr(&sy__call);

	BUG_ON(use == SY_USE_ENVIRONMENT);
	tell_kernel(page, use == SY_USE_SLAB && sy__page_mark(page) & SY__MARK_OTHER, -(1L << order));
	__this_cpu_sub(held[use], 1L << order);
	page->flags &= ~SY__PAGE_NOT_MOVABLE;
	sy__page_set_mark(page, SY__MARK_NONE);
	page->mapping = 0;
	sy__tell_reclaimed(1ul << order);
	if (unlikely(call->keeps)) {
		page->first = (unsigned long)call->kept;
		call->kept = sy__linux_page(page);
		return;
	}
	__free_pages(sy__linux_page(page), order);
}

void sy__keep_begin(void)
{
	__this_cpu_write(sy__call.keeps, true);
}

struct page *sy__keep_end(void)
{
	struct sy__call *call = this_cpu_ptr(&sy__call);
	struct page *kept = call->kept;

	call->keeps = false;
	call->kept = NULL;
	return kept;
}

void sy__let_go(struct page *kept)
{
	while (kept) {
		struct page *page = kept;

		kept = (struct page *)sy__page_of_linux(page)->first;
		__free_pages(page, compound_order(page));
		cond_resched();
	}
}

/* There is one heap, and boot.c's shrinker serves it. */
void sy__pages_attach(struct sy_pages *pages, struct sy_heap *heap)
{
}

void sy__pages_detach(struct sy_pages *pages, struct sy_heap *heap)
{
}

/* Free pages are the kernel's. */
bool sy__pages_decay(struct sy_pages *pages)
{
	return false;
}

void sy__pages_decay_idle(struct sy_pages *pages)
{
}

size_t sy__pages_backed(const struct sy_pages *pages)
{
	return 0;
}

bool sy__page_empty(struct sy_heap *heap, struct sy_page *page)
{
	return false;
}

void sy__page_refill(struct sy_heap *heap, struct sy_page *page)
{
}

void sy_pages_drain(struct sy_pages *pages, unsigned slot)
{
}

uint64_t sy_pages_release(struct sy_pages *pages, unsigned min_order)
{
	return 0;
}

/* The frames of different nodes may be interleaved. */
static bool walk_node(struct pglist_data *node, bool (*visit)(void *context, struct sy_page *head), void *context)
{
	unsigned long step, end = pgdat_end_pfn(node);

	for (unsigned long pfn = node->node_start_pfn; pfn < end; pfn += step) {
		struct page *page = pfn_valid(pfn) ? pfn_to_page(pfn) : NULL;

		step = 1;
		if (!page || page_to_nid(page) != node->node_id || PageTail(page) || !sy__page_is_ours(sy__page_of_linux(page)))
			continue;
		step = 1ul << compound_order(page);
		if (!visit(context, sy__page_of_linux(page)))
			return false;
	}
	return true;
}

struct sy_page *sy__pages_find(const struct sy_heap *heap, const void *address)
{
	struct sy_page *page = sy__holds(heap, address) ? sy__head_of(heap, address) : NULL;

	return page && sy__page_is_ours(page) ? page : NULL;
}

/* Nobody knows, but most have been. */
bool sy__pages_were_used(const struct sy_heap *heap, const void *address)
{
	return sy__holds(heap, address);
}

void sy__pages_walk(struct sy_heap *heap, bool (*visit)(void *context, struct sy_page *head), void *context)
{
	struct pglist_data *node;

	for_each_online_pgdat(node)
		if (!walk_node(node, visit, context))
			return;
}
