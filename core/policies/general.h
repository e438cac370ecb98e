/* What the allocators that know sizes but no kinds of objects share (bsd44, svr4, sunos4). See general.c. */
#ifndef SY_GENERAL_H
#define SY_GENERAL_H

#include "../deferred.h"
#include "../geometry.h"
#include "../here.h"
#include "../list.h"
#include "../page_interface.h"

/* A block to be found, in bytes as the policy rounds them. */
struct sy__general_want {
	uint32_t bytes; /* at most what the policy cuts out of its pages; 0: the object is pages of its own */
	uint32_t align; /* a power of two, at most a page */
};

struct sy__general_heap;

/* What a policy does. All but order are called with the heap's lock held; block_bytes, unused_bytes and check are for
 * those that have the function of general.c which calls it. */
struct sy__general_ops {
	/* Takes a block out of what the node has; NULL: it has none. */
	void *(*pop)(struct sy__general_heap *, unsigned node, const struct sy__general_want *);
	/* Takes a block back, and gives pages back that it leaves wholly free. */
	void (*push)(struct sy__general_heap *, unsigned slot, void *block, size_t bytes);
	/* Adds fresh pages to what their node has, and takes a block out of them. */
	void *(*add)(struct sy__general_heap *, struct sy_page *, const struct sy__general_want *);
	/* Which order of pages to ask for; at least what holds the request. */
	unsigned (*order)(const struct sy__general_heap *, const struct sy__general_want *);
	/* Joins what was kept apart for speed, as memory has run out; NULL: nothing is. */
	uint64_t (*coalesce)(struct sy__general_heap *, unsigned slot);
	/* Bytes of a block in use. */
	size_t (*block_bytes)(struct sy__general_heap *, const void *block);
	/* Bytes of all free blocks. */
	uint64_t (*unused_bytes)(struct sy__general_heap *);
	/* NULL, or which of the policy's invariants does not hold. */
	const char *(*check)(struct sy__general_heap *);
	size_t map_bytes; /* of bookkeeping for each page, taken with the page; 0: none */
};

struct sy__general_heap {
	struct sy_heap heap;
	const struct sy__general_ops *ops;
	sy__lock_t lock;
	uint32_t least; /* alignment of all that kmalloc gives: the policy's unit, or more if sy_sizing.align asks for it */
	uint64_t live; /* blocks that kmalloc gave */
};

struct sy__general_cache {
	struct sy_cache cache;
	struct sy__general_want want;
	uint64_t live;    /* objects that the client holds */
	uint64_t waiting; /* freed, but for a grace period to pass */
};

/* The state of a policy's pages begins with this. */
struct sy__general_page {
	uint32_t *map; /* ops->map_bytes for each page, zero at first; NULL: none */
};

static inline struct sy__general_heap *sy__general_of(struct sy_heap *heap)
{
	return (struct sy__general_heap *)(void *)heap;
}

/* The smallest power of two that holds so many bytes, at least `least`, which is one. */
static inline uint32_t sy__general_power(size_t bytes, uint32_t least)
{
	if (bytes <= least)
		return least;
	return (uint32_t)1 << sy__highest_bit((uint32_t)bytes - 1);
}

static inline struct sy__general_cache *sy__general_cache_of(struct sy_cache *cache)
{
	return (struct sy__general_cache *)(void *)cache;
}

static inline unsigned sy__general_node(const struct sy__general_heap *general, unsigned slot, int node)
{
	return node == SY_ANY_NODE ? general->heap.slot_node[slot] : (unsigned)node;
}

/* For heap_init; unit: bytes of the policy's smallest block. */
void sy__general_init(struct sy_heap *, const struct sy__general_ops *, uint32_t unit);

/* Bytes of a cache's object with all that goes with it; 0: beyond the largest block. Fills in cache->align. */
size_t sy__general_object_bytes(struct sy_cache *);

/* Brings pages and takes a block from them, or finds one elsewhere; NULL: no memory. Called with no lock held. */
void *sy__general_refill(struct sy__general_heap *, unsigned slot, const struct sy__general_want *, unsigned flags,
                         int node, uint64_t *live);

/* Objects that are pages. live is counted, unless it is NULL. */
void *sy__general_pages(struct sy__general_heap *, unsigned slot, size_t bytes, unsigned flags, int node, uint64_t *live);
void sy__general_pages_free(struct sy__general_heap *, unsigned slot, struct sy_page *, uint64_t *live);

/* Gives back pages that hold no object, with their map. With the lock held. */
void sy__general_give(struct sy__general_heap *, unsigned slot, struct sy_page *);

/* The policy's functions of these names. */
void sy__general_cache_fini(struct sy_cache *);
void sy__general_counts(struct sy_cache *, struct sy_cache_counts *);
void sy__general_grace_passed(struct sy_heap *, struct sy_deferred *);
size_t sy__general_usable_size(struct sy_heap *, const void *object);
uint64_t sy__general_unused_bytes(struct sy_heap *);
const char *sy__general_check(struct sy_heap *);

/* Frees an object of an RCU-typesafe cache when its grace period has passed. */
void sy__general_defer(struct sy_cache *, void *object);

/* Blocks that clients hold or that wait for a grace period: what a check finds in pages must be as many. */
uint64_t sy__general_in_use(const struct sy__general_heap *);

/* ---- The fast paths, inline with the policy's own pop and push ---------------------------------------------- */

static inline void *sy__general_take(struct sy__general_heap *general, unsigned slot, const struct sy__general_want *want,
                                     unsigned flags, int node, uint64_t *live,
                                     void *(*pop)(struct sy__general_heap *, unsigned, const struct sy__general_want *))
{
	void *block;

	sy__lock(&general->lock);
	block = pop(general, sy__general_node(general, slot, node), want);
	*live += block != NULL;
	sy__unlock(&general->lock);
	if (sy__unlikely(!block))
		block = sy__general_refill(general, slot, want, flags, node, live);
	if (sy__unlikely(flags & SY_ZERO) && block)
		sy__fill(block, 0, want->bytes);
	return block;
}

static inline void sy__general_put(struct sy__general_heap *general, unsigned slot, void *block, size_t bytes,
                                   uint64_t *live,
                                   void (*push)(struct sy__general_heap *, unsigned, void *, size_t))
{
	sy__lock(&general->lock);
	--*live;
	push(general, slot, block, bytes);
	sy__unlock(&general->lock);
}

/* The same two on the caller's own slot, where neither takes pages nor gives any. NULL, false: a slow call must follow. */
static inline void *sy__general_take_here(struct sy__general_heap *general, const struct sy__general_want *want, unsigned flags, uint64_t *live,
                                          void *(*pop)(struct sy__general_heap *, unsigned, const struct sy__general_want *))
{
	ptrdiff_t here = sy__here_lock(&general->lock);
	void *block;

	if (sy__unlikely(here == SY__DUMMY_HERE))
		return NULL;
	block = pop(general, general->heap.slot_node[sy__here_slot(here)], want);
	if (sy__unlikely(!block)) {
		sy__unlock(&general->lock);
		return NULL;
	}
	++*live;
	sy__here_unlock(&general->lock);
	if (sy__unlikely(flags & SY_ZERO))
		sy__fill(block, 0, want->bytes);
	return block;
}

static inline bool sy__general_put_here(struct sy__general_heap *general, void *block, size_t bytes, uint64_t *live,
                                        void (*push)(struct sy__general_heap *, unsigned, void *, size_t))
{
	ptrdiff_t here = sy__here_lock(&general->lock);

	if (sy__unlikely(here == SY__DUMMY_HERE))
		return false;
	--*live;
	push(general, sy__here_slot(here), block, bytes);
	sy__here_unlock(&general->lock);
	return true;
}

/* page: the first of those that hold the object. */
static inline void sy__general_kfree(struct sy_heap *heap, unsigned slot, struct sy_page *page, void *object,
                                     void (*push)(struct sy__general_heap *, unsigned, void *, size_t))
{
	struct sy__general_heap *general = sy__general_of(heap);

	if (sy__unlikely(sy__page_is_large(page)))
		sy__general_pages_free(general, slot, page, NULL);
	else
		sy__general_put(general, slot, object, 0, &general->live, push);
}

static inline void *sy__general_cache_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node,
                                            void *(*pop)(struct sy__general_heap *, unsigned,
                                                         const struct sy__general_want *))
{
	struct sy__general_cache *own = sy__general_cache_of(cache);
	struct sy__general_heap *general = sy__general_of(cache->heap);
	void *object;

	if (sy__likely(own->want.bytes))
		object = sy__general_take(general, slot, &own->want, flags, node, &own->live, pop);
	else
		object = sy__general_pages(general, slot, cache->size, flags, node, &own->live);
	if (cache->constructor && object)
		sy__construct(cache->constructor, object, cache->object_size);
	return object;
}

static inline void sy__general_cache_free(struct sy_cache *cache, unsigned slot, void *object,
                                          void (*push)(struct sy__general_heap *, unsigned, void *, size_t))
{
	struct sy__general_cache *own = sy__general_cache_of(cache);
	struct sy__general_heap *general = sy__general_of(cache->heap);

	if (sy__unlikely(cache->flags & SY_CACHE_TYPESAFE_BY_RCU)) {
		sy__general_defer(cache, object);
		return;
	}
	if (cache->destructor)
		cache->destructor(object, cache->object_size);
	if (sy__likely(own->want.bytes))
		sy__general_put(general, slot, object, own->want.bytes, &own->live, push);
	else
		sy__general_pages_free(general, slot, sy__page_of(&general->heap, object), &own->live);
}

#endif
