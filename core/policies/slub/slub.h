/* What the files of the SLUB policy share. The theory and the locks are in slub.c. */
#ifndef SY_SLUB_H
#define SY_SLUB_H

#include "../../kmalloc.h"
#include "../../list.h"
#include "../../page_interface.h"
#include "word.h"

enum sy__slub_tunable {
	SLUB_MIN_ORDER,
	SLUB_MAX_ORDER,
	SLUB_MIN_OBJECTS,
	SLUB_CPU_PARTIAL,
	SLUB_MIN_PARTIAL,
	SLUB_MERGE,
	SLUB_CLASSES
};

/* State of a slab, in the descriptor of its first page. */
struct sy__slub_slab {
	struct sy__slub_cache *cache;
	union {
		struct sy_list link;  /* in sy__slub_node.partial; under the node's lock */
		struct sy_page *next; /* in sy__slub_slot.partial; the slot's own */
		struct sy_deferred deferred; /* no object is left, and a grace period has yet to pass */
	};
	_Alignas(8) uint64_t word; /* free objects, how many are in use, whether a slot owns the slab; see word.h */
};
SY_ASSERT_SLAB_STATE(struct sy__slub_slab, cache);

/* What one CPU slot has of a cache; on a cache line of its own, touched by the slot alone. All zero: nothing yet. */
struct sy__slub_slot {
	_Alignas(SY_CACHE_LINE) void *freelist; /* objects of the active slab, to be handed out next */
	char *start;             /* of the active slab */
	uint32_t bytes;          /* of the active slab: what lies within is freed here; 0: there is none */
	int16_t node;            /* of the active slab */
	bool pushes;             /* a thread frees here by fast calls; never of the dummy */
	struct sy_page *slab;    /* the active slab, or NULL */
	struct sy_page *partial; /* frozen slabs with free objects, newest first */
	uint32_t partial_slabs;  /* in partial */
};
_Static_assert(sizeof(struct sy__slub_slot) == SY_CACHE_LINE, "slots are found by their distance in bytes");

/* Free objects of one slab, linked. */
struct sy__slub_chain {
	void *first, *last; /* NULL: there are none */
	uint32_t count;
};

/* What a check counts, to be compared with what a node counts. */
struct sy__slub_seen {
	uint64_t slabs, objects, pages, partial, frozen;
};

/* The slabs of a cache on one memory node. */
struct sy__slub_node {
	sy__lock_t lock;
	struct sy_list partial; /* slabs that no slot owns, with free and (mostly) used objects */
	size_t partial_slabs;   /* in partial; written under the lock, read by anyone */
	uint64_t slabs, objects, pages; /* all slabs, full and frozen ones too; room in them; their pages */
	struct sy__slub_seen seen; /* scratch of check */
};

struct sy__slub_cache {
	struct sy_cache cache;
	struct sy__slub_slot *slots; /* slot 0's; the others' follow, */
	size_t stride;         /* so many bytes apart; see make_slots in geometry.c */
	uint32_t offset;       /* bytes from an object's start to its free pointer */
	uint32_t slot_limit;   /* slabs on a slot's partial list at most; 0: slots have none */
	uint32_t min_partial;  /* slabs that a node's list keeps even though they are empty */
	uint32_t page_flags;   /* enum sy_flags for its pages */
	uint8_t order, least_order; /* of a slab; when there is no memory for that */
	const char *memory;    /* of the page allocator: address and descriptor of page 0; here as they are nearer so */
	struct sy_page *table;
	struct sy__slub_node *nodes; /* one for each memory node of the heap; where the block of metadata starts that holds */
	size_t state_bytes;          /* them, and the slots unless they are threads' */
};

struct sy__slub_heap {
	struct sy_heap heap;
	struct sy__kmalloc kmalloc;
};

_Static_assert(sizeof(struct sy__slub_heap) <= 4096, "a heap is one page: replays count it");

static inline struct sy__slub_heap *sy__slub_heap(struct sy_heap *heap)
{
	return (struct sy__slub_heap *)(void *)heap;
}

static inline struct sy__slub_cache *sy__slub_cache(struct sy_cache *cache)
{
	return (struct sy__slub_cache *)(void *)cache;
}

static inline struct sy__slub_slab *sy__slub_slab(struct sy_page *page)
{
	return SY_SLAB_STATE(struct sy__slub_slab, page);
}

static inline struct sy_page *sy__slub_page(struct sy__slub_slab *slab)
{
	return sy__entry(slab, struct sy_page, state);
}

static inline struct sy_page *sy__slub_linked(struct sy_list *link)
{
	return sy__slub_page(sy__entry(link, struct sy__slub_slab, link));
}

static inline struct sy__slub_slot *sy__slub_slot(const struct sy__slub_cache *cache, unsigned slot)
{
	return (struct sy__slub_slot *)(void *)((char *)cache->slots + slot * cache->stride);
}

/* As sy__head_of, of one of the cache's objects. */
static inline struct sy_page *sy__slub_head(const struct sy__slub_cache *cache, const void *object)
{
	return sy__page_head(sy__page_near(cache->memory, cache->table, object));
}

/* The free pointer of a free object: where the next free object is. */
static inline void **sy__slub_next(const struct sy__slub_cache *cache, void *object)
{
	return (void **)(void *)((char *)object + cache->offset);
}

/* What is known of a slab at this moment; others may work on it. The first of the free objects that are not on a slot's
 * freelist; the objects in use, among them those on a slot's freelist; room; whether a slot owns it. */
static inline uint64_t sy__slub_look(const struct sy_page *page)
{
	return sy__load64(&SY_SLAB_STATE(const struct sy__slub_slab, page)->word);
}

static inline void *sy__slub_freelist(const struct sy_heap *heap, const struct sy_page *page)
{
	return sy__slub_word_first(sy__slub_look(page), sy__page_address(heap, page));
}

static inline uint32_t sy__slub_in_use(const struct sy_page *page)
{
	return sy__slub_word_in_use(sy__slub_look(page));
}

static inline uint32_t sy__slub_objects(const struct sy_page *page)
{
	return sy__slub_word_objects(sy__slub_look(page));
}

static inline bool sy__slub_frozen(const struct sy_page *page)
{
	return sy__slub_word_frozen(sy__slub_look(page));
}

/* One slab more or fewer is on the node's list. With its lock held. */
static inline void sy__slub_count_partial(struct sy__slub_node *node, int change)
{
	__atomic_store_n(&node->partial_slabs, node->partial_slabs + (size_t)change, __ATOMIC_RELAXED);
}

/* Whether a slab without an object in use stays with its node. With the node's lock held. */
static inline bool sy__slub_node_keeps(const struct sy__slub_cache *cache, const struct sy__slub_node *node)
{
	return node->partial_slabs < cache->min_partial;
}

/* From now on the slot has no active slab. */
static inline void sy__slub_forget(struct sy__slub_slot *own)
{
	own->slab = NULL;
	own->start = NULL;
	own->bytes = 0;
	own->freelist = NULL;
}

/* From now on it has this one, of which no object is on its freelist yet. */
static inline void sy__slub_activate(const struct sy__slub_cache *cache, struct sy__slub_slot *own, struct sy_page *page)
{
	own->slab = page;
	own->start = sy__page_address(cache->cache.heap, page);
	own->bytes = (uint32_t)(SY_PAGE_SIZE << sy__page_order(page));
	own->node = (int16_t)sy__page_node(page);
	own->freelist = NULL;
}

/* Whether an object is in the slot's active slab. */
static inline bool sy__slub_is_active(const struct sy__slub_slot *own, const void *object)
{
	return (uintptr_t)object - (uintptr_t)own->start < own->bytes;
}

/* Puts a frozen slab on the slot's partial list. In its local section. */
static inline void sy__slub_hold(struct sy__slub_slot *own, struct sy_page *page)
{
	sy__slub_slab(page)->next = own->partial;
	own->partial = page;
	own->partial_slabs++;
}

/* slabs.c. Functions that return pages say how many went back to the page allocator. */
struct sy_page *sy__slub_new_slab(struct sy__slub_cache *, unsigned slot, unsigned flags, int node);
uint64_t sy__slub_deactivate(struct sy__slub_cache *, unsigned slot, struct sy__slub_slot *);
void sy__slub_keep(struct sy__slub_cache *, unsigned slot, struct sy_page *);
void sy__slub_count_out(struct sy__slub_node *, struct sy_page *);
uint64_t sy__slub_discard(struct sy__slub_cache *, unsigned slot, struct sy_page *);
void sy__slub_grace_passed(struct sy_heap *, struct sy_deferred *);
void sy__slub_drain(struct sy_heap *, unsigned slot);
uint64_t sy__slub_shrink(struct sy_cache *);
void sy__slub_cache_fini(struct sy_cache *);

/* geometry.c */
bool sy__slub_cache_init(struct sy_cache *);
void sy__slub_end_slots(struct sy__slub_cache *);
bool sy__slub_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *);
struct sy_cache *sy__slub_merge(struct sy_heap *, const struct sy_cache *wanted);

/* check.c */
void sy__slub_counts(struct sy_cache *, struct sy_cache_counts *);
const char *sy__slub_check(struct sy_heap *);

/* walk.c */
void sy__slub_walk(struct sy__walk *, struct sy_page *);

#endif
