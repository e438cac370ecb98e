/* What the files of the SLAB policy share. The theory and the locks are in slab.c. */
#ifndef SY_SLAB_H
#define SY_SLAB_H

#include "../../kmalloc.h"
#include "../../backend/slot_areas.h"
#include "../../geometry.h"
#include "../../list.h"
#include "../../page_interface.h"
#include "../../visits.h"
#include "../contraction.h"

enum sy__slab_tunable {
	SLAB_LIMIT,
	SLAB_BATCHCOUNT,
	SLAB_SHARED,
	SLAB_ALIEN,
	SLAB_COLOUR,
	SLAB_MAX_ORDER,
	SLAB_MERGE,
	SLAB_CLASSES
};

#define SY__SLAB_MOST_LIMIT 1024 /* objects in a slot's array */
#define SY__SLAB_MOST_SHARED 64  /* batches in a node's shared array */
#define SY__SLAB_ALIEN_LIMIT 12  /* objects on their way to another node */

/* The number of an object in its slab. One byte suffices, as in Linux: 256 smallest objects take more than a page. */
#if SY_PAGE_SHIFT <= 12
typedef uint8_t sy__slab_index_t;
#define SY__SLAB_MOST_OBJECTS 255u
#define SY__SLAB_SMALLEST ((size_t)16) /* bytes from one object to the next at least */
#else
typedef uint16_t sy__slab_index_t;
#define SY__SLAB_MOST_OBJECTS 65535u
#define SY__SLAB_SMALLEST sizeof(void *)
#endif

/* A freelist of so few objects takes no more room than a pointer. */
#define SY__SLAB_FEW (sizeof(void *) / sizeof(sy__slab_index_t))

/* State of a slab, in the descriptor of its first page. Under its node's lock, except cache and start, which never change. */
struct sy__slab_slab {
	struct sy__slab_cache *cache;
	union {
		struct sy_list link; /* in one of its node's three lists */
		struct sy_deferred deferred; /* the slab has ended, and its pages wait for a grace period */
	};
	union { /* objects by number, free from [active] on: */
		sy__slab_index_t *freelist; /* NULL: the slab is full, so no free object can hold the freelist */
		sy__slab_index_t few[SY__SLAB_FEW]; /* in caches with place SY__SLAB_IN_STATE */
	};
	uint32_t start; /* bytes from the slab's start to its first object: its colour */
	uint16_t active; /* objects that have left the slab */
	uint16_t waiting; /* 1: the slab waits for a grace period */
};
SY_ASSERT_SLAB_STATE(struct sy__slab_slab, cache);

/* A stack of free objects: a slot's, a node's shared one, or one for objects that go to another node. */
struct sy__slab_array {
	uint32_t avail, limit; /* limit: below the cache's during a contraction (contraction.h) */
	int node; /* of all its objects */
	uint32_t touched; /* objects were taken since the reaper last came */
	void *objects[];
};

/* Objects freed on one node that belong to another. */
struct sy__slab_alien {
	sy__lock_t lock;
	struct sy__slab_array *array;
};

/* What a check has counted, to compare with a node's figures. */
struct sy__slab_seen {
	uint64_t slabs, full, partial, free, free_objects;
};

/* The slabs of a cache on one memory node. */
struct sy__slab_node {
	sy__lock_t lock;
	uint32_t free_touched; /* free slabs were looked for since the reaper last came */
	struct sy_list full, partial, free;
	uint64_t slabs, free_slabs; /* in all three lists; in the last */
	uint64_t free_objects; /* in slabs, not in arrays */
	uint64_t free_limit; /* free objects beyond which freeing ends free slabs */
	uint32_t colour_next; /* colour of the newest slab */
	uint64_t next_reap; /* time from which the reaper looks at shared array and free slabs */
	struct sy__slab_array *shared; /* NULL: none, or none yet */
	struct sy__slab_array *none; /* serves slots without an array: no object, no room */
	struct sy__slab_alien *aliens; /* by home node; this node's own is unused; NULL: none. Not under this lock */
	struct sy__contraction contraction; /* of slabs */
	struct sy__slab_seen seen; /* scratch of check */
};

/* Where a slab's freelist is. */
enum sy__slab_place {
	SY__SLAB_IN_STATE,  /* in the slab's state, instead of IN_OBJECT: of SY__SLAB_FEW objects at most */
	SY__SLAB_IN_OBJECT, /* in the free object that will be allocated last */
	SY__SLAB_ON_SLAB,   /* at the end of the slab, behind its objects */
	SY__SLAB_OFF_SLAB,  /* in an object of a size class */
};

struct sy__slab_cache {
	struct sy_cache cache;
	struct sy__slab_array **arrays; /* slot 0's array; NULL: it has none yet. Other slots' follow */
	size_t stride; /* bytes from one slot's to the next; in heaps of threads by core/backend/slot_areas.h, with the dummy's NULL in front */
	bool many_nodes; /* an object may be of another node than the slot that frees it */
	uint8_t order; /* of a slab */
	uint8_t place; /* enum sy__slab_place */
	uint32_t objects; /* in a slab */
	uint32_t inverse; /* 2^32 / size, rounded up */
	uint64_t divider; /* of the size, see sy__divider */
	uint32_t limit, batchcount, shared; /* of a slot's array; objects moved at once; batches in a shared array */
	uint32_t colours; /* a slab has a colour from 0 to colours - 1; 0 as 1 */
	uint32_t colour_step; /* bytes from one colour to the next */
	uint32_t page_flags; /* enum sy_flags for its pages */
	struct sy__slab_node *nodes; /* one for each memory node of the heap */
	size_t nodes_bytes; /* of the block of metadata that holds nodes, and behind them other state */
};

struct sy__slab_heap {
	struct sy_heap heap;
	struct sy__kmalloc kmalloc;
	uint32_t caches_made; /* spreads their times of reaping; creation is serialised */
	struct sy__visits visits; /* of the reaper; under sy_heap.lock, as what follows */
	uint8_t reap_node[SY_MAX_SLOTS]; /* by slot: the node to which it next sends alien objects home */
};

static inline struct sy__slab_cache *sy__slab_cache(struct sy_cache *cache)
{
	return (struct sy__slab_cache *)(void *)cache;
}

static inline struct sy__slab_heap *sy__slab_heap(struct sy_heap *heap)
{
	return (struct sy__slab_heap *)(void *)heap;
}

static inline struct sy__slab_slab *sy__slab_slab(struct sy_page *page)
{
	return SY_SLAB_STATE(struct sy__slab_slab, page);
}

static inline struct sy_page *sy__slab_page(struct sy__slab_slab *slab)
{
	return sy__entry(slab, struct sy_page, state);
}

static inline struct sy__slab_slab *sy__slab_linked(struct sy_list *link)
{
	return sy__entry(link, struct sy__slab_slab, link);
}

static inline char *sy__slab_first_object(const struct sy__slab_cache *cache, struct sy__slab_slab *slab)
{
	return (char *)sy__page_address(cache->cache.heap, sy__slab_page(slab)) + slab->start;
}

/* Whether an object of the cache starts at any address, in the slab of this first page. */
static inline bool sy__slab_has(const struct sy__slab_cache *cache, struct sy_page *head, const void *address)
{
	struct sy__slab_slab *slab = sy__slab_slab(head);
	size_t distance = (size_t)((const char *)address - (const char *)sy__page_address(cache->cache.heap, head)) - slab->start;

	return sy__page_is_slab(head) && slab->cache == cache &&
	       sy__starts_in_row(cache->divider, distance, (size_t)cache->objects * cache->cache.size);
}

/* A slab's freelist; NULL: it has none, as it is full. */
static inline sy__slab_index_t *sy__slab_numbers(const struct sy__slab_cache *cache, struct sy__slab_slab *slab)
{
	return cache->place == SY__SLAB_IN_STATE ? slab->few : slab->freelist;
}

/* The pointer to a slot's array. */
static inline struct sy__slab_array **sy__slab_entry(const struct sy__slab_cache *cache, unsigned slot)
{
	return (struct sy__slab_array **)(void *)((char *)cache->arrays + slot * cache->stride);
}

/* Whether the heap was made for threads. Unlike sy_heap.threads, this stays true while the heap is destroyed. */
static inline bool sy__slab_for_threads(const struct sy__slab_cache *cache)
{
	return cache->stride == SY_SLOT_STRIDE;
}

/* A slot's array, or its node's empty stand-in. */
static inline struct sy__slab_array *sy__slab_own(const struct sy__slab_cache *cache, unsigned slot)
{
	struct sy__slab_array *own = *sy__slab_entry(cache, slot);

	return sy__likely(own) ? own : cache->nodes[sy__slot_node(cache->cache.heap, slot)].none;
}

/* slabs.c. Between slabs and arrays; with the node's lock held. */
struct sy__slab_slab *sy__slab_first(struct sy__slab_node *);
uint32_t sy__slab_take(struct sy__slab_cache *, struct sy__slab_node *, struct sy__slab_slab *, void **to,
                       uint32_t most);
void sy__slab_put(struct sy__slab_cache *, struct sy__slab_node *, void *const *objects, uint32_t count,
                  struct sy_list *surplus);
void sy__slab_drop(struct sy__slab_array *, uint32_t count);
uint32_t sy__slab_transfer(struct sy__slab_array *to, struct sy__slab_array *from, uint32_t most);
void sy__slab_drain_alien(struct sy__slab_cache *, struct sy__slab_array *, struct sy_list *surplus);

/* slabs.c. Life and death of slabs; without locks. Functions that return pages say how many went back. */
struct sy__slab_slab *sy__slab_new(struct sy__slab_cache *, unsigned slot, unsigned flags, int node);
uint32_t sy__slab_take_new(struct sy__slab_cache *, struct sy__slab_node *, struct sy__slab_slab *, void **to, uint32_t most);
void sy__slab_count_in(struct sy__slab_node *, struct sy__slab_cache *, struct sy__slab_slab *);
uint64_t sy__slab_destroy(struct sy__slab_cache *, unsigned slot, struct sy_list *surplus);
uint64_t sy__slab_end_free(struct sy__slab_cache *, struct sy__slab_node *, unsigned slot, uint64_t most);
void sy__slab_grace_passed(struct sy_heap *, struct sy_deferred *);

/* reap.c */
void sy__slab_drain(struct sy_heap *, unsigned slot);
bool sy__slab_empty(struct sy__slab_cache *, struct sy__slab_array *own, struct sy_list *surplus);
uint64_t sy__slab_scavenge(struct sy_cache *);
uint64_t sy__slab_shrink(struct sy_cache *);
void sy__slab_cache_fini(struct sy_cache *);
void sy__slab_start_reaping(struct sy_heap *);
void sy__slab_tick(struct sy_heap *);
uint64_t sy__slab_first_reap(struct sy__slab_heap *);

/* geometry.c */
bool sy__slab_cache_init(struct sy_cache *);
void sy__slab_equip(struct sy__slab_cache *, unsigned slot);
void sy__slab_unequip(struct sy__slab_cache *, unsigned slot);
void sy__slab_give_state(struct sy__slab_cache *);
bool sy__slab_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *);
struct sy_cache *sy__slab_merge(struct sy_heap *, const struct sy_cache *wanted);

/* check.c */
void sy__slab_counts(struct sy_cache *, struct sy_cache_counts *);
const char *sy__slab_check(struct sy_heap *);

/* walk.c */
void sy__slab_walk(struct sy__walk *, struct sy_page *);

#endif
