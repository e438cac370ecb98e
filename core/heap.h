/*
 * What a heap is, and a cache in it, as the core sees them; to everybody else both are opaque.
 *
 * A policy's own heap and cache structures begin with these (sy_policy.heap_bytes, cache_bytes). heap.c makes them; which lock
 * protects a member stands beside it, and types.h has the order of locks.
 *
 * Included by types.h.
 */
#ifndef SY_HEAP_H
#define SY_HEAP_H

#include "policy.h"

struct sy_metadata {
	sy__lock_t lock;
	void *free_lists[8]; /* by power of two from 64 bytes; see core/backend/metadata.c */
	char *bump, *bump_end; /* of the page being cut into blocks, what was not yet handed out */
	struct sy_list pages;  /* every block of pages taken, linked through its state */
	size_t cut, idle;      /* of these, pages cut into blocks; and such of which no block is in use */
};

/* Grace periods of readers who are known, by number. Neither takes a lock of the heap's. */
struct sy_grace {
	uint64_t (*wanted)(void); /* that has passed when every reader of now has done; never less than before */
	uint64_t (*passed)(void); /* the last that has; lets the next one go on, as nobody else may */
};

/* What a heap registers with the layers below, which know nothing of it. */
struct sy__heap_hooks {
	/* Memory becomes short (reclaim_urgently: or a request fails): the heap gives back what it can; pages. */
	uint64_t (*reclaim)(struct sy_heap *);
	uint64_t (*reclaim_urgently)(struct sy_heap *);
	/* Of a heap of threads, with no lock held: what was found for a request of that slot costs new memory. True: the slot keeps
	 * something for later, which keep_less gives back, and another look may find that. `tries`: how often that was so for this
	 * request. */
	bool (*before_growth)(struct sy_heap *, unsigned slot, unsigned tries);
	void (*keep_less)(struct sy_heap *, unsigned slot);
	void (*end_spares)(struct sy_heap *, unsigned slot); /* gives back the empty slabs that the slot has said it keeps */
	bool (*reservation_changes)(struct sy_heap *, size_t pages); /* the range ends after so many; false: no room for more */
};

struct sy_heap {
	void *(*kmalloc_here)(size_t size, unsigned flags, struct sy_heap *); /* of policy->here, or generic: what sy_malloc, */
	void *(*malloc_here)(size_t size, struct sy_heap *);                  /* malloc, */
	void (*kfree_here)(void *object, struct sy_heap *);                   /* sy_mfree, */
	void (*free_here)(void *object, struct sy_heap *);                    /* and free jump to */
	const struct sy_policy *policy;
	struct sy_pages *pages;
	const struct sy__heap_hooks *hooks;
	unsigned slots;  /* CPU slots: 1 to SY_MAX_SLOTS */
	unsigned cpus;   /* present CPUs, for order calculation; a kernel's may have several slots each, threads have others */
	bool threads;    /* its slots are threads' (the platform's), reached by claims: see core/here.h */
	bool concurrent;      /* its slots are driven by several processors at once, threads' or a kernel's: whoever is on one touches
	                  * what another has only where the platform says so (sy__slot_mine) */
	unsigned tick_slot; /* whose visit tick_due announces, see visits.c; as tick_due */
	unsigned nodes;  /* memory nodes: 1 to SY_MAX_NODES */
	uint8_t slot_node[SY_MAX_SLOTS]; /* the memory node nearest to each slot */
	int64_t tunables[SY_MAX_TUNABLES];
	struct sy_sizing sizing;
	/* What calls without slots do beyond the heap, or NULL. */
	void *(*refused)(size_t size, unsigned flags, struct sy_heap *); /* with a request of kmalloc that failed: its result */
	void *(*cache_refused)(struct sy_cache *, unsigned flags);       /* the same with one for an object of a cache */
	void (*passes)(struct sy_heap *); /* now and then, from slow calls: time has passed; NULL: nobody wants to know */
	void (*comes)(struct sy_heap *, const void *pages, size_t bytes);  /* with a large allocation of new pages */
	void (*leaves)(struct sy_heap *, const void *pages, size_t bytes); /* with one that was freed, before its pages go on */
	void (*foreign)(void *object, struct sy_heap *); /* with an address outside of the heap, NULL too, that is to be freed */
	size_t mmap_threshold;  /* larger requests are for `refused` to serve, unless the slot keeps what serves them; 0: none. Anyone's */
	uint64_t grace_ns; /* length of an RCU grace period */
	const struct sy_grace *grace; /* who knows when readers have done; NULL: time does */
	sy__lock_t lock;   /* caches */
	struct sy_list caches; /* in order of creation, through sy_cache.link */
	sy__lock_t making; /* held while a cache of a heap of threads is made or destroyed */
	struct sy_list link;   /* in the page allocator's list of heaps to ask for memory */
	struct sy_list threads_link; /* in the list of heaps of threads, see here.c */
	sy__lock_t deferred_lock;
	struct sy_deferred *deferred_first, *deferred_last; /* in order of due time; under deferred_lock */
	struct sy_time tick_due; /* sy__now() at which policy->tick wants to run next; 0: never. Under sy_heap.lock, read by anyone */
	struct sy_time settle_due; /* of a heap of threads: when policy->settle or reap runs next; anyone's */
	struct sy_metadata metadata;
	sy__lock_t slot_areas_lock;
	struct sy__slot_area *slot_areas; /* of heaps of threads; see core/backend/slot_areas.c */
	struct sy__run_cache *run_cache;    /* of heaps of threads: slot 0's, see core/backend/run_cache.c; NULL in others */
	/* Address and descriptor of page 0; here as they are nearer so, and not at the start of a page, whose place in the
	 * processor's cache the first line of every large object has as well. */
	char *run_cache_memory;
	struct sy_page *run_cache_table;
	bool run_cache_near;           /* all pages are as near as any, and have numbers of 32 bits: they may be kept */
	bool run_cache_kept;           /* whether some may be kept; anyone's */
	struct sy_time run_cache_due;  /* when they go; anyone's */
	struct sy_heap_counters counters;
	void (*log)(void *context, const char *event, const uint64_t *values, unsigned count); /* for tunables that log; or NULL */
	void *log_context;
};

struct sy_cache {
	void *(*alloc_here)(struct sy_cache *, unsigned flags); /* what sy_alloc and sy_free jump to; from policy->here, or */
	void (*free_here)(struct sy_cache *, void *object);     /* generic; cache_init may choose others for this cache */
	const struct sy_policy *policy; /* = heap->policy, one load nearer to the fast path */
	struct sy_heap *heap;
	char name[SY_NAME_BYTES];
	uint32_t object_size; /* bytes that the client may use */
	uint32_t align;       /* bytes; a power of two; at least what the client asked for */
	uint32_t size;        /* bytes from one object to the next, set by the policy */
	uint32_t flags;       /* enum sy_cache_flags */
	void (*constructor)(void *object, size_t object_size);
	void (*destructor)(void *object, size_t object_size);
	const struct sy_page_supplier *supplier; /* NULL: the page allocator */
	bool ending;          /* nobody uses it any more, so all its slots are reachable */
	uint32_t users;       /* how many creations share this cache by merging; under sy_heap.lock */
	struct sy_list link;  /* in sy_heap.caches; under sy_heap.lock */
};

/* What sy_heap_tick does when something may be due. */
void sy__heap_tick(struct sy_heap *);

#endif
