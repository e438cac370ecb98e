/* What the allocators without object caches share (bsd44, svr4, sunos4). See general.c. */
#ifndef SY_GENERAL_H
#define SY_GENERAL_H

#include "../deferred.h"
#include "../geometry.h"
#include "../list.h"
#include "../page_interface.h"

/* A request for a block, in bytes as the policy rounds them. */
struct sy__general_want {
	uint32_t bytes; /* at most the largest block that the policy cuts; 0: the object is pages of its own */
	uint32_t align; /* a power of two, at most a page */
};

struct sy__general_heap;

/* What a policy does. All but order are called with the heap's lock held. */
struct sy__general_ops {
	/* Takes a block from what the node has; NULL: it has none. */
	void *(*pop)(struct sy__general_heap *, unsigned node, const struct sy__general_want *);
	/* Takes a block back, and gives pages back that become wholly free. */
	void (*push)(struct sy__general_heap *, unsigned slot, void *block, size_t bytes);
	/* Adds new pages to what their node has, and takes a block from them. */
	void *(*add)(struct sy__general_heap *, struct sy_page *, const struct sy__general_want *);
	/* The order of pages to ask for; it holds the request. */
	unsigned (*order)(const struct sy__general_heap *, const struct sy__general_want *);
	/* Memory has run out: coalesces what was left apart for speed, and returns the pages given back; or NULL. */
	uint64_t (*coalesce)(struct sy__general_heap *, unsigned slot);
	/* Bytes of a block in use; NULL: the policy has a usable_size of its own. */
	size_t (*block_bytes)(struct sy__general_heap *, const void *block);
	/* Bytes of all free blocks. */
	uint64_t (*unused_bytes)(struct sy__general_heap *);
	/* NULL, or which invariant of the policy does not hold. */
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
	uint64_t waiting; /* freed objects that wait for a grace period */
};

/* The state of a policy's pages begins with this. */
struct sy__general_page {
	uint32_t *map; /* ops->map_bytes for each page, zero at first; NULL: none */
};

static inline struct sy__general_heap *sy__general_of(struct sy_heap *heap)
{
	return (struct sy__general_heap *)(void *)heap;
}

/* Rounds up to a power of two, at least to `least`, which is one itself. */
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
	return node == SY_ANY_NODE ? sy__slot_node(&general->heap, slot) : (unsigned)node;
}

/* Called by a policy's heap_init. unit: bytes of its smallest block. */
void sy__general_init(struct sy_heap *, const struct sy__general_ops *, uint32_t unit);

/* Bytes of a cache's object with its footer; 0: beyond the largest block. Sets cache->align. */
size_t sy__general_object_bytes(struct sy_cache *);

/* Takes a block from new pages or from another node, and counts it in *live; NULL: no memory. Called with no lock held. */
void *sy__general_refill(struct sy__general_heap *, unsigned slot, const struct sy__general_want *, unsigned flags,
                         int node, uint64_t *live);

/* Objects that are pages. Counted in *live, unless that is NULL. */
void *sy__general_pages(struct sy__general_heap *, unsigned slot, size_t bytes, unsigned flags, int node, uint64_t *live);
void sy__general_pages_free(struct sy__general_heap *, unsigned slot, struct sy_page *, const void *object, uint64_t *live);

/* Gives pages without an object back, with their map. With the lock held. */
void sy__general_give(struct sy__general_heap *, unsigned slot, struct sy_page *);

/* Functions of struct sy_policy. */
void sy__general_cache_fini(struct sy_cache *);
void sy__general_counts(struct sy_cache *, struct sy_cache_counts *);
void sy__general_grace_passed(struct sy_heap *, struct sy_deferred *);
size_t sy__general_usable_size(struct sy_heap *, const void *object);
uint64_t sy__general_unused_bytes(struct sy_heap *);
const char *sy__general_check(struct sy_heap *);

/* Frees an object of an RCU-typesafe cache when its grace period has passed. */
void sy__general_defer(struct sy_cache *, void *object);

/* Blocks in use by clients or waiting for a grace period. A check must find as many in pages. */
uint64_t sy__general_in_use(const struct sy__general_heap *);

#endif
