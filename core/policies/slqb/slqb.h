/* What the files of the SLQB policy share. The theory and the locks are in slqb.c. */
#ifndef SY_SLQB_H
#define SY_SLQB_H

#include "../../kmalloc.h"
#include "../../backend/slot_areas.h"
#include "../../geometry.h"
#include "../../list.h"
#include "../../page_interface.h"
#include "../../visits.h"
#include "../contraction.h"

enum sy__slqb_tunable { SLQB_HIWATER, SLQB_FLUSHBATCH, SLQB_FREEBATCH, SLQB_REMOTE_FREE_CHECK, SLQB_RLIST, SLQB_COLOUR, SLQB_CLASSES };

#define SY__SLQB_MOST 65535 /* value of a threshold: objects */

/* State of a slab, in the descriptor of its first page. Only its owner touches it. */
struct sy__slqb_slab {
	struct sy__slqb_list *list; /* the owner, for life */
	union {
		struct sy_list link; /* in the list's partial slabs */
		struct sy_deferred deferred; /* no object is left, and a grace period has yet to pass */
	};
	void *freelist; /* free objects that are on no other list */
	uint32_t start; /* bytes from the slab's start to its first object: its colour */
	uint16_t out; /* objects that are not on freelist */
	uint16_t waiting; /* 1: for a grace period */
};
SY_ASSERT_SLAB_STATE(struct sy__slqb_slab, list);

/* Objects linked through their free pointers. */
struct sy__slqb_chain {
	void *first, *last; /* valid if count > 0 */
	uint32_t count;
};

/* An owner of slabs: a CPU slot; or a memory node, for requests from other nodes. */
struct sy__slqb_list {
	void *freelist; /* a stack of objects of any slab on the node */
	uint32_t count; /* objects on freelist */
	uint32_t hiwater; /* beyond which objects go back to their slabs; below the cache's during a contraction (contraction.h) */
	int node; /* of its slabs */
	uint32_t remote_free_check; /* 1: remote_free has enough objects; written under remote_lock. A relaxed hint to take that
	                             * lock, which orders all else */
	struct sy_list partial; /* slabs with objects on their freelist and others out */
	uint64_t partial_slabs, slabs; /* in partial; owned, full ones too */
	struct sy__contraction contraction; /* of slabs */
	struct sy__slqb_cache *cache; /* NULL: the slot never used the cache, and all else is zero too */
	_Alignas(SY_CACHE_LINE) sy__lock_t remote_lock; /* protects what follows, which others write */
	struct sy__slqb_chain remote_free; /* objects of these slabs, freed elsewhere */
	struct { uint64_t slabs, partial; } seen; /* scratch of check */
};

/* What one CPU slot has of a cache. */
struct sy__slqb_slot {
	struct sy__slqb_list list;
	struct sy__slqb_chain rlist; /* objects on their way to the owner of their slabs */
	struct sy__slqb_list *rlist_to; /* that owner, unless they are of several (rlist_mixed) */
	uint32_t colour_next; /* colour of the next slab, in bytes */
	uint32_t fast_frees; /* in a heap of threads: frees counted towards the next slow one */
};

/* What one memory node has of a cache. */
struct sy__slqb_node {
	struct sy__slqb_list list; /* under the lock, except remote_free */
	sy__lock_t lock;
};

struct sy__slqb_cache {
	struct sy_cache cache;
	struct sy__slqb_slot *slots; /* slot 0's; other slots' follow */
	size_t stride; /* bytes from one slot's to the next; in heaps of threads by core/backend/slot_areas.h, with the dummy's in front */
	uint32_t offset; /* bytes from an object's start to its free pointer */
	uint8_t order; /* of a slab */
	uint16_t objects; /* in a slab */
	uint64_t divider; /* of the size, see sy__divider */
	const char *memory; /* of the page allocator, when the cache was made; */
	size_t memory_bytes;
	bool rlist_mixed; /* an rlist may hold objects of several owners */
	uint32_t hiwater, flushbatch, freebatch, remote_free_check; /* thresholds: objects */
	uint32_t colour_step, colour_range; /* bytes; 0, 0: no colours */
	uint32_t page_flags; /* enum sy_flags for its pages */
	struct sy__slqb_node *nodes; /* one for each memory node of the heap */
	void *state; /* the block of metadata that holds nodes, and in front of them the slots, unless they are threads' */
	size_t state_bytes;
};

struct sy__slqb_heap {
	struct sy_heap heap;
	struct sy__kmalloc kmalloc;
	struct sy__visits visits; /* of trimming; under sy_heap.lock */
};

void sy__slqb_start(struct sy__slqb_cache *, struct sy__slqb_list *, unsigned node); /* geometry.c */

static inline struct sy__slqb_cache *sy__slqb_cache(struct sy_cache *cache)
{
	return (struct sy__slqb_cache *)(void *)cache;
}

static inline struct sy__slqb_heap *sy__slqb_heap(struct sy_heap *heap)
{
	return (struct sy__slqb_heap *)(void *)heap;
}

static inline struct sy__slqb_slab *sy__slqb_slab(struct sy_page *page)
{
	return SY_SLAB_STATE(struct sy__slqb_slab, page);
}

/* Whether an object of the cache starts at any address, in the slab of this first page. */
static inline bool sy__slqb_has(const struct sy__slqb_cache *cache, struct sy_page *head, const void *address)
{
	struct sy__slqb_slab *slab = sy__slqb_slab(head);
	size_t distance = (size_t)((const char *)address - (const char *)sy__page_address(cache->cache.heap, head)) - slab->start;

	return sy__page_is_slab(head) && slab->list->cache == cache &&
	       sy__starts_in_row(cache->divider, distance, (size_t)cache->objects * cache->cache.size);
}

static inline struct sy_page *sy__slqb_page(struct sy__slqb_slab *slab)
{
	return sy__entry(slab, struct sy_page, state);
}

static inline struct sy__slqb_slab *sy__slqb_linked(struct sy_list *link)
{
	return sy__entry(link, struct sy__slqb_slab, link);
}

/* A slot's state, which may never have been used. */
static inline struct sy__slqb_slot *sy__slqb_look(const struct sy__slqb_cache *cache, unsigned slot)
{
	return (struct sy__slqb_slot *)(void *)((char *)cache->slots + slot * cache->stride);
}

static inline bool sy__slqb_started(const struct sy__slqb_slot *own)
{
	return own->list.cache != NULL;
}

/* The state of the slot of a call, started if necessary. */
static inline struct sy__slqb_slot *sy__slqb_slot(struct sy__slqb_cache *cache, unsigned slot)
{
	struct sy__slqb_slot *own = sy__slqb_look(cache, slot);

	if (sy__unlikely(!sy__slqb_started(own)))
		sy__slqb_start(cache, &own->list, sy__slot_node(cache->cache.heap, slot));
	return own;
}

/* The free pointer of a free object: where the next free object is. */
static inline void **sy__slqb_next(const struct sy__slqb_cache *cache, void *object)
{
	return (void **)(void *)((char *)object + cache->offset);
}

/* Whether a freelist leads to an object, and not to its end, or where a program has had it lead by writing into a free object. */
static inline bool sy__slqb_leads_on(const struct sy__slqb_cache *cache, const void *object)
{
	return (uintptr_t)object - (uintptr_t)cache->memory < cache->memory_bytes;
}

/* slabs.c: the first object of a list, or what follows one of its objects, is none, or the list has another length than counted. Nothing
 * is on it from now on. */
SY__COLD void sy__slqb_lose(struct sy__slqb_cache *, struct sy__slqb_list *, const void *object);

/* slabs.c. Called by a list's owner. Slabs whose last object returns go to `ended`. */
void *sy__slqb_take(struct sy__slqb_cache *, struct sy__slqb_list *);
void *sy__slqb_take_slab(struct sy__slqb_cache *, struct sy__slqb_list *);
void sy__slqb_adopt(struct sy__slqb_list *, struct sy__slqb_slab *);
void sy__slqb_claim(struct sy__slqb_cache *, struct sy__slqb_list *);
void sy__slqb_flush(struct sy__slqb_cache *, struct sy__slqb_slot *own, struct sy__slqb_list *, uint32_t count,
                    struct sy_list *ended);
void sy__slqb_flush_full(struct sy__slqb_cache *, struct sy__slqb_slot *, struct sy_list *ended);
void sy__slqb_send_away(struct sy__slqb_cache *, struct sy__slqb_slot *own, struct sy__slqb_list *to, void *object);

/* slabs.c. Life of slabs, and work on all lists; called without locks. Functions that return pages say how many went back. */
struct sy__slqb_slab *sy__slqb_new_slab(struct sy__slqb_cache *, unsigned slot, unsigned flags, int node);
uint64_t sy__slqb_end(struct sy__slqb_cache *, unsigned slot, struct sy_list *ended);
void sy__slqb_grace_passed(struct sy_heap *, struct sy_deferred *);
void sy__slqb_drain(struct sy_heap *, unsigned slot);
uint64_t sy__slqb_shrink(struct sy_cache *);
uint64_t sy__slqb_scavenge(struct sy_cache *);
void sy__slqb_tick(struct sy_heap *);
void sy__slqb_cache_fini(struct sy_cache *);

/* geometry.c */
bool sy__slqb_cache_init(struct sy_cache *);
bool sy__slqb_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *);

/* check.c */
void sy__slqb_counts(struct sy_cache *, struct sy_cache_counts *);
const char *sy__slqb_check(struct sy_heap *);

/* walk.c */
void sy__slqb_walk(struct sy__walk *, struct sy_page *);

#endif
