/*
 * The page allocator: its structures, and how they work together. Private to core/pages/ and to the layer above, which adds what
 * programs need beyond it (core/backend/). Policies see page_interface.h, programs slabyard.h. It behaves like Linux 6.1, whose figures
 * (/proc/buddyinfo, pagetypeinfo, zoneinfo) it explains.
 *
 * 1. Buddies. A zone is a range of pages. Free memory is kept as blocks of 2^order pages that start at multiples of their size.
 *    A request takes the smallest sufficient block and halves it, the upper halves going to the free lists, until the order is
 *    right. A freed block joins with its buddy (the block whose number differs in the bit of the order) while that is free and of
 *    the same order. Blocks at the start of a zone are handed out first, as in a kernel, which frees its boot memory in ascending
 *    order.
 * 2. Mobility. There is a free list for each order and migrate type, and each pageblock (512 pages on x86-64) has a type, so that
 *    unmovable pages do not spread over all of memory. A type that has run out takes from another: fallback.c.
 * 3. Per-CPU lists stand before the zones for small orders: cpulist.c. They are the fast path: one short lock, no search.
 * 4. Zones and nodes. A request walks the zones that may serve it, the nearest node's first and in each node the highest zone
 *    first. It takes from the first zone whose free pages stay above a watermark: alloc.c.
 * 5. Growth. In a zone that was never populated, maximal blocks from `next_ungrown` on are only a count. They are free and
 *    movable like others, but get descriptors and join a list only when the movable list of the largest order runs dry. Linux
 *    has them on that list in ascending order, so nobody can tell the difference. Descriptors are committed when a maximal block
 *    grows, its memory when a heap first gets a page of it; pages of the environment are never touched. Every table here reads
 *    zero where it was never written, and zero means pristine.
 * 6. Pretrace pages: a populated zone started in the state of a snapshot, with pages in use since before the trace began. They have no
 *    descriptors; a bitmap tells which of them have been freed since.
 * 7. Ages: where the layer above has free memory decay, each free block knows since when it is free, by `clock`, and blocks with memory
 *    are handed out before those without.
 *
 * Invariants, verified by sy_pages_check():
 *   - every page of a zone is in exactly one block, or pretrace, ungrown or unmanaged; the counters by use add up;
 *   - the first page of a grown maximal block, and every page after a block, heads a block or is a pretrace page;
 *   - a block and its buddy are never both free, unless their pageblocks' types must not mix (HighAtomic);
 *   - a free block is on the list of its order and migrate type, once; a block on a per-CPU list likewise;
 *   - what the layer above knows of the pages agrees with it (sy__pages_hooks.agrees, checks).
 *
 * Locks, in the order of types.h: sy_pages.heaps_lock (above everything: held while heaps are asked for memory), then per-CPU
 * list, zone, source; account_lock is taken alone. Fields marked [r] are written under their lock and read without one, by
 * relaxed atomic accesses: a request may act on a watermark of a moment ago, as in a kernel.
 */
#ifndef SY_PAGES_H
#define SY_PAGES_H

#include "../page_interface.h"
#include "../list.h"

#define SY__MAX_BLOCK ((uint64_t)1 << SY_MAX_ORDER) /* pages of a maximal block */
#define SY__CPU_TYPES 3 /* unmovable, movable and reclaimable have per-CPU lists */
#define SY__CPU_LISTS (SY__CPU_TYPES * SY_CPU_LIST_ORDERS)
#define SY__EVENTS 64 /* fallbacks that one request can cause: as many as one refill of a per-CPU list has blocks */

_Static_assert(SY_UNMOVABLE < SY__CPU_TYPES && SY_MOVABLE_TYPE < SY__CPU_TYPES && SY_RECLAIMABLE_TYPE < SY__CPU_TYPES,
               "the types with per-CPU lists come first");

/* sy_page.flags: a heap got the page's memory, and it was not discarded since. */
#define SY__PAGE_BACKED 1u

/* The page's memory was discarded, and no heap got it since. */
#define SY__PAGE_DISCARDED 2u

/* Whether a maximal block has memory, and all of its descriptors. */
enum sy__committed {
	SY__UNCOMMITTED,
	SY__COMMITTED,
	SY__BARE,   /* memory and descriptors have gone back to the source, and no heap got a page of it since */
	SY__REUSED, /* as BARE, but heaps got some pages since: a page without a mark was discarded */
	/* flags beside COMMITTED and REUSED: */
	SY__HUGE = 4,       /* the source was asked for huge pages, so pages that no heap ever had may have memory */
	SY__HUGE_ENDED = 8, /* and was asked for small pages since */
};

/* The state without flags. */
static inline unsigned sy__committed_state(unsigned committed)
{
	return committed & 3u;
}

/* Kinds of zones and requests. A zone serves requests of its own kind and of higher ones. A zone's name tells its kind. */
enum sy__kind { SY__KIND_DMA, SY__KIND_DMA32, SY__KIND_NORMAL, SY__KIND_HIGHMEM, SY__KIND_MOVABLE, SY__KINDS };

enum sy__watermark { SY__WMARK_MIN, SY__WMARK_LOW, SY__WMARK_HIGH, SY__WMARKS };

/* A list of blocks through sy_page.free, first and last NULL when empty. */
struct sy__blocks {
	struct sy_page *first, *last;
	size_t count; /* [r] */
};

/* Free blocks of one zone that one CPU slot keeps; on cache lines of their own, as other slots seldom touch them. */
struct sy__cpu_list {
	_Alignas(SY_CACHE_LINE) sy__lock_t lock;
	uint8_t free_factor;     /* doublings of the batch to free, while the slot only frees */
	uint32_t pages;          /* on all lists */
	uint64_t served;         /* requests */
	int64_t used[SY_USES];   /* this slot's changes to the zone's pages by use */
	struct sy__blocks lists[SY__CPU_LISTS]; /* order * SY__CPU_TYPES + type */
};

/* Room for the state of the layer above, in a page allocator and in each zone; zero at first. */
#define SY__ABOVE_BYTES 256
#define SY__ABOVE_ZONE_BYTES 24

struct sy__zone {
	_Alignas(SY_CACHE_LINE) sy__lock_t lock; /* protects everything but the fields that creation fixes */

	/* fixed at creation (present, at population) */
	struct sy_pages *pages;
	struct sy__cpu_list *cpu; /* by slot; NULL: no per-CPU lists */
	uint64_t start, span;     /* frame number of the first page; pages */
	uint64_t managed;         /* pages that may ever be handed out */
	uint64_t present;         /* from the start: pages that exist */
	size_t marks[SY__WMARKS];  /* watermarks in pages */
	size_t reserve[SY__KINDS]; /* lowmem reserve: pages kept from requests of a higher kind, by that kind */
	unsigned batch, cpu_high; /* pages moved at once, and at most, on a per-CPU list */
	uint8_t index, node, kind;
	bool populated;
	char name[SY_ZONE_NAME_BYTES];

	/* free memory */
	size_t free_pages;        /* [r] on the free lists, and ungrown */
	struct sy__blocks free[SY_ORDERS][SY_MIGRATE_TYPES];
	size_t ungrown_blocks;    /* [r] maximal blocks that have not grown, or only in part */
	uint64_t next_ungrown;    /* frame number of the first page that has not; within the first of these blocks */
	bool told;                /* page_bits are the layer above's, which is told of every change of free pages */
	uint64_t pageblocks[SY_MIGRATE_TYPES];
	size_t highatomic_pages;  /* [r] in pageblocks of the HighAtomic reserve */

	_Alignas(8) unsigned char above[SY__ABOVE_ZONE_BYTES]; /* the layer above's */

	/* counters; those of the per-CPU lists add to them */
	int64_t used[SY_USES];
	uint64_t served, fallbacks, fallbacks_changing;
};

#define SY__TOLD_ORDER 5u /* of the smallest block whose free the layer above is told */

/* What the layer above adds to a page allocator. */
struct sy__pages_hooks {
	/* With the lock of the zone held. */
	void (*free_changed)(struct sy__zone *, uint64_t number, unsigned order, bool is_free); /* of a block, if zone->told */
	void (*freed)(struct sy__zone *, uint64_t number); /* a block of SY__TOLD_ORDER or more, before or after it joined others */
	/* By how many pages from this one on a zone may grow. They have descriptors, and end with or within their maximal block, with room for
	 * a block of order `least`. 0: there is no memory. */
	uint64_t (*may_grow)(struct sy_pages *, uint64_t number, unsigned least);
	void (*grown)(struct sy__zone *);
	/* For checks. NULL, or what is wrong: with a block, if zone->told; with a zone that has this number of pretrace pages. */
	const char *(*agrees)(const struct sy__zone *, uint64_t number, unsigned order, bool is_free);
	const char *(*checks)(const struct sy__zone *, uint64_t pretrace);
	/* With source_lock held: a maximal block gets memory. SY__HUGE, or 0 for small pages. */
	uint8_t (*prefer_huge)(struct sy_pages *, uint64_t start);
	/* With account_lock held: a heap took pages, of which this number had been discarded. If pages->ages, as the next two. */
	void (*taken)(struct sy_pages *, unsigned discarded);
	/* With no lock held. */
	void (*given)(struct sy_pages *); /* pages were freed */
	void (*await)(struct sy_pages *); /* returns when the blocks that the layer above took off their lists are on them again */
	struct sy_page *(*take_run)(struct sy_heap *, unsigned slot, uint64_t count, unsigned flags, enum sy_page_use); /* or NULL */
};

struct sy_pages {
	struct sy_pages_base base; /* first, as page_interface.h says */

	/* fixed at creation */
	const struct sy__pages_hooks *hooks; /* NULL: there is no layer above */
	/* Serves page requests of heaps: sy__block_take, or a function of the layer above. */
	struct sy_page *(*take)(struct sy_pages *, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use);
	bool ages; /* free blocks have ages */
	unsigned zone_count, slots, nodes, pageblock_order;
	uint8_t lowest_kind; /* of any zone: what requests for DMA get where there is no such zone */
	uint8_t walk[SY_MAX_NODES][SY_MAX_ZONES]; /* zonelists: zones in the order in which a request of this node tries them */
	uint8_t nofragment[SY_MAX_NODES][SY__KINDS]; /* first min_fallback of such a request, see alloc.c */
	uint64_t block_count; /* maximal blocks in the range */

	/* tables over the whole range; zero where nothing happened */
	uint8_t *pageblock_types; /* [r] migrate type ^ SY_MOVABLE_TYPE, so that zero is movable; zone lock */
	uint8_t *committed;       /* [r] by maximal block, downwards: enum sy__committed; source_lock */
	uint64_t *page_bits;      /* by page: in populated zones, no pretrace page; else the layer above's; zone lock */
	uint8_t *above_of_block;  /* by maximal block: the layer above's; zone lock */

	void (*on_fallback)(void *context, const struct sy_fallback_event *);
	void *fallback_context;
	size_t fail_after; /* [r] requests until one fails; 0: never */

	sy__lock_t source_lock;
	size_t committed_pages; /* by atomic additions, as the holder of source_lock may wait for the system */
	size_t described;       /* [r] source_lock: maximal blocks with all of their descriptors */

	sy__lock_t account_lock;  /* failures; every heap's counters of pages */
	uint64_t failures, rescued;

	sy__lock_t heaps_lock;    /* heaps, reclaim_wait, reclaim_skip */
	struct sy_list heaps;     /* through sy_heap.link */
	const void *reclaimer;    /* [r] sy__caller() of the thread that asks heaps now, or NULL */
	unsigned reclaim_wait, reclaim_skip; /* see sy__reclaim */

	struct sy_time clock;     /* for the age of free blocks; the layer above advances it; 0: they have none */
	_Alignas(8) unsigned char above[SY__ABOVE_BYTES]; /* that layer's state */
	size_t held_pages;        /* [r] by heaps; account_lock */
	size_t emptied_pages;     /* [r] of these, without memory behind them; account_lock */

	/* how to give everything back */
	bool in_buffer; /* it is a caller's */
	void *memory_reserved, *table_reserved;
	size_t memory_bytes, table_bytes, self_bytes;

	struct sy__zone zones[SY_MAX_ZONES]; /* only zone_count of them are there */
};

struct sy__events {
	unsigned count;
	struct sy_fallback_event list[SY__EVENTS];
};

/* One request on its way through the zones. */
struct sy__request {
	unsigned slot, order, flags; /* enum sy_flags */
	uint8_t migrate, use, kind;
	unsigned node;
	bool harder;         /* may use the HighAtomic reserve, and goes deeper below the watermarks */
	unsigned min_fallback; /* no block below this order is taken from another type */
	struct sy__events *events;
};

/* ---- Small helpers -------------------------------------------------------------------------------------------- */

/* Counters written under a lock and read by anyone. Relaxed: they tell whether something is worth trying, and the attempt takes the
 * lock. */
static inline size_t sy__read(const size_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static inline void sy__add(size_t *counter, size_t amount)
{
	__atomic_store_n(counter, *counter + amount, __ATOMIC_RELAXED);
}

static inline void sy__subtract(size_t *counter, size_t amount)
{
	__atomic_store_n(counter, *counter - amount, __ATOMIC_RELAXED);
}

/* More pages have memory, or fewer. */
static inline void sy__count_backed(struct sy_pages *pages, size_t count)
{
	__atomic_fetch_add(&pages->committed_pages, count, __ATOMIC_RELAXED);
}

static inline void sy__count_discarded(struct sy_pages *pages, size_t count)
{
	__atomic_fetch_sub(&pages->committed_pages, count, __ATOMIC_RELAXED);
}

/* The owner of a block writes its use and type without the zone's lock, while walks over the pageblock may read them. Relaxed: such a
 * walk counts uses, and touches free pages only, whose use the lock orders. */
static inline unsigned sy__use(const struct sy_page *page)
{
	return __atomic_load_n(&page->use, __ATOMIC_RELAXED);
}

static inline void sy__set_use(struct sy_page *page, unsigned use)
{
	__atomic_store_n(&page->use, (uint8_t)use, __ATOMIC_RELAXED);
}

static inline unsigned sy__migrate(const struct sy_page *page)
{
	return __atomic_load_n(&page->migrate, __ATOMIC_RELAXED);
}

static inline void sy__set_migrate(struct sy_page *page, unsigned migrate)
{
	__atomic_store_n(&page->migrate, (uint8_t)migrate, __ATOMIC_RELAXED);
}

static inline uint64_t sy__number(const struct sy_pages *pages, const struct sy_page *page)
{
	return (uint64_t)(page - pages->base.table);
}

static inline struct sy_page *sy__page(const struct sy_pages *pages, uint64_t number)
{
	return pages->base.table + (size_t)number;
}

/* Pages from the first one on that there are addresses for. */
static inline uint64_t sy__addressed(const struct sy_pages *pages)
{
	uint64_t count;

	if (pages->in_buffer)
		return pages->base.page_count;
	count = (uint64_t)((const char *)pages->memory_reserved + pages->memory_bytes - pages->base.memory) >> SY_PAGE_SHIFT;
	return count < pages->base.page_count ? count : pages->base.page_count;
}

/* State of the maximal block of a page: enum sy__committed. */
static inline uint8_t *sy__committed(const struct sy_pages *pages, uint64_t number)
{
	return pages->committed - (size_t)(number >> SY_MAX_ORDER);
}

static inline uint64_t sy__pageblock_pages(const struct sy_pages *pages)
{
	return (uint64_t)1 << pages->pageblock_order;
}

/* Written with the zone's lock held. Relaxed without it: it then chooses the free list for a freed page, and any list will do. */
static inline unsigned sy__pageblock_type(const struct sy_pages *pages, uint64_t number)
{
	return __atomic_load_n(&pages->pageblock_types[number >> pages->pageblock_order], __ATOMIC_RELAXED) ^ SY_MOVABLE_TYPE;
}

static inline bool sy__pretrace_gone(const struct sy_pages *pages, uint64_t number)
{
	return (pages->page_bits[number / 64] >> (number % 64)) & 1;
}

static inline void sy__blocks_add_first(struct sy__blocks *list, struct sy_page *page)
{
	page->free.prev = NULL;
	page->free.next = list->first;
	if (list->first)
		list->first->free.prev = page;
	else
		list->last = page;
	list->first = page;
	sy__add(&list->count, 1);
}

static inline void sy__blocks_add_last(struct sy__blocks *list, struct sy_page *page)
{
	page->free.next = NULL;
	page->free.prev = list->last;
	if (list->last)
		list->last->free.next = page;
	else
		list->first = page;
	list->last = page;
	sy__add(&list->count, 1);
}

static inline void sy__blocks_remove(struct sy__blocks *list, struct sy_page *page)
{
	if (page->free.prev)
		page->free.prev->free.next = page->free.next;
	else
		list->first = page->free.next;
	if (page->free.next)
		page->free.next->free.prev = page->free.prev;
	else
		list->last = page->free.prev;
	sy__subtract(&list->count, 1);
}

/* ---- What is free ---------------------------------------------------------------------------------------------------- */

/* A block becomes free; a block ceases to be free. */
static inline void sy__zone_gains(struct sy__zone *zone, const struct sy_page *page, unsigned order)
{
	sy__add(&zone->free_pages, (size_t)1 << order);
	if (sy__unlikely(zone->told))
		zone->pages->hooks->free_changed(zone, sy__number(zone->pages, page), order, true);
}

static inline void sy__zone_loses(struct sy__zone *zone, const struct sy_page *page, unsigned order)
{
	sy__subtract(&zone->free_pages, (size_t)1 << order);
	if (sy__unlikely(zone->told))
		zone->pages->hooks->free_changed(zone, sy__number(zone->pages, page), order, false);
}

/* Pages that count as free, but are on no list yet. */
static inline uint64_t sy__zone_ungrown(const struct sy__zone *zone)
{
	return ((uint64_t)zone->ungrown_blocks << SY_MAX_ORDER) - (zone->next_ungrown & (SY__MAX_BLOCK - 1));
}

/* ---- zone.c: buddies; all with the zone's lock held ------------------------------------------------------------ */

void sy__zone_add_first(struct sy__zone *, struct sy_page *, unsigned order, unsigned migrate);
void sy__zone_add_last(struct sy__zone *, struct sy_page *, unsigned order, unsigned migrate);
void sy__zone_move_last(struct sy__zone *, struct sy_page *, unsigned migrate);
uint8_t sy__prefer_huge(struct sy_pages *, uint64_t start); /* calls the hook, with source_lock held; 0: there is none */
bool sy__commit_memory(struct sy_pages *, uint64_t number); /* of the maximal block of a page; with or without locks held */
bool sy__zone_describe(struct sy_pages *, uint64_t number, uint64_t count); /* these pages get descriptors; false: no memory */
bool sy__commit_part(struct sy_pages *, uint64_t number, uint64_t count); /* the next pages of a maximal block that grows by parts */
bool sy__zone_grow(struct sy__zone *, unsigned least); /* for a block of that order; false: nothing left to grow, or no memory */
/* A free block; grows the zone if that gives one. A zone that grows by a part gets smaller ones, of order `least` at least. */
bool sy__zone_has(struct sy__zone *, unsigned order, unsigned migrate, unsigned least);
struct sy_page *sy__zone_smallest(struct sy__zone *, unsigned order, unsigned migrate); /* or NULL */
void sy__zone_free(struct sy__zone *, struct sy_page *, unsigned order, unsigned migrate);
void sy__zone_free_aged(struct sy__zone *, struct sy_page *, unsigned order, unsigned migrate, uint64_t since); /* free since then */
void sy__zone_start(struct sy__zone *); /* pristine: all managed pages free and movable */
void sy__zone_clear(struct sy__zone *); /* before any request: no page free, no descriptor written */

/* ---- run.c: runs of pages, which are blocks side by side ------------------------------------------------------------ */

/* Order of the first block of a run of that length. */
unsigned sy__run_order(uint64_t number, uint64_t pages);

/* Makes a run of taken pages. The other makes two runs of a taken block: its first `count` pages, and the rest, which goes back. */
void sy__run_cut(const struct sy_pages *, struct sy_page *first, uint64_t count);
void sy__run_cut_block(const struct sy_pages *, struct sy_page *first, uint64_t count, unsigned order);

/* ---- fallback.c; zone's lock held, but for the reserve -------------------------------------------------------- */

struct sy_page *sy__zone_take(struct sy__zone *, const struct sy__request *); /* or NULL */
void sy__set_pageblock_type(struct sy__zone *, uint64_t number, unsigned migrate);
void sy__highatomic_reserve(struct sy__zone *, const struct sy_page *); /* takes the lock */
bool sy__highatomic_unreserve(struct sy__zone *, unsigned migrate);     /* takes the lock; false: nothing given up */

/* ---- count.c --------------------------------------------------------------------------------------------------------- */

uint64_t sy__block_discard(struct sy_pages *, struct sy_page *, unsigned order); /* of a free block that is on no list; how many pages */
void sy__descriptors_discard(struct sy_pages *, struct sy_page *); /* of a maximal block, free and discarded; zone's lock held */

/* Pages that memory backs and no heap holds. */
static inline size_t sy__free_and_backed(const struct sy_pages *pages)
{
	size_t committed = sy__read(&pages->committed_pages) + sy__read(&pages->emptied_pages);
	size_t held = sy__read(&pages->held_pages);

	return committed > held ? committed - held : 0;
}

/* ---- cpulist.c -------------------------------------------------------------------------------------------------- */

struct sy_page *sy__cpu_take(struct sy__zone *, const struct sy__request *); /* or NULL */
bool sy__cpu_give(struct sy__zone *, unsigned slot, struct sy_page *, unsigned order, unsigned from_use); /* to the zone? */
void sy__cpu_drain(struct sy__zone *, unsigned slot);
void sy__cpu_size(struct sy__zone *, unsigned local_slots, const struct sy_pages_config *);

/* ---- alloc.c ------------------------------------------------------------------------------------------------------ */

/* Takes a block for any use. Its head has use, order, migrate, zone, node and heap (NULL) set; or NULL. node < 0: node of
 * the slot. */
struct sy_page *sy__block_take(struct sy_pages *, unsigned slot, unsigned order, unsigned flags, int node,
                               enum sy_page_use use);
void sy__block_give(struct sy_pages *, unsigned slot, struct sy_page *, unsigned order, unsigned from_use);
void sy__block_give_to_zone(struct sy_pages *, struct sy_page *, unsigned order, unsigned from_use); /* past the per-CPU lists */

/* For tests: the request that comes as number `requests` from now fails, once; 0: none does. */
void sy_pages_fail_after(struct sy_pages *, uint64_t requests);

/* ---- create.c ---------------------------------------------------------------------------------------------------- */

/* sy_pages_create, with hooks or without (NULL). */
struct sy_pages *sy__pages_create(const struct sy_pages_config *, const struct sy__pages_hooks *);

/* ---- reclaim.c ---------------------------------------------------------------------------------------------------- */

/* Ask every heap to give memory back; how many pages they gave. Called with no lock held. The urgent one never skips its turn. */
uint64_t sy__reclaim(struct sy_pages *);
uint64_t sy__reclaim_urgent(struct sy_pages *);

#endif
