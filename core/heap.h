/*
 * The structures of a heap and of a cache. Only the core sees into them; to everybody else both are opaque.
 *
 * A policy's own heap and cache structures begin with these (sy_policy.heap_bytes, cache_bytes). heap.c creates them. The lock of
 * a member stands beside it; types.h has the lock order.
 *
 * Included by types.h.
 */
#ifndef SY_HEAP_H
#define SY_HEAP_H

#include "policy.h"

struct sy_metadata {
	sy__lock_t lock;
	void *free_lists[8]; /* by power of two from 64 bytes; see core/backend/metadata.c */
	char *bump, *bump_end; /* the rest of the page that is being cut into blocks */
	struct sy_list pages;  /* all pages taken, linked through their state */
	size_t cut, idle;      /* pages that were cut into blocks; those of them without a block in use */
};

/* Grace periods of registered readers, by number. Neither function takes a lock of the heap. */
struct sy_grace {
	uint64_t (*wanted)(void); /* number of the period that ends when all present readers have ended; never decreases */
	uint64_t (*passed)(void); /* number of the last period that ended; also drives the next one on */
};

/* What a heap registers with the layers below. */
struct sy__heap_hooks {
	/* Memory is short (urgent: a request would fail): the heap gives back what it can; returns how many pages. */
	uint64_t (*reclaim)(struct sy_heap *, bool urgent);
	/* In heaps of threads, with no lock held: a request of this slot is about to take pages without memory. True: the slot retains
	 * empty slabs; the caller has it release them, and looks again. `tries`: how often this request did so. */
	bool (*before_growth)(struct sy_heap *, unsigned slot, unsigned tries);
	void (*release_retained)(struct sy_heap *, unsigned slot);
	/* For the run caches: gives the pages of a run back that no client has; how many. */
	uint64_t (*release_run)(struct sy_heap *, unsigned slot, struct sy_page *head);
};

struct sy_heap {
	/* Where sy_malloc, malloc, sy_mfree and free jump to: functions of policy->this_slot, or the generic entries. */
	void *(*kmalloc_this_slot)(size_t size, unsigned flags, struct sy_heap *);
	void *(*malloc_this_slot)(size_t size, struct sy_heap *);
	void (*kfree_this_slot)(void *object, struct sy_heap *);
	void (*free_this_slot)(void *object, struct sy_heap *);
	const struct sy_policy *policy;
	struct sy_pages *pages;
	const struct sy__heap_hooks *hooks;
	struct sy__debug *debug; /* core/debug/debug.h; NULL: neither the heap nor one of its caches has checks */
	const struct sy__debug_hooks *debug_hooks; /* for caches with checks */
	unsigned slots;  /* CPU slots: 1 to SY_MAX_SLOTS; of threads as many as there may be */
	unsigned cpus;   /* present CPUs, for the orders of slabs; need not be the number of slots */
	bool threads;    /* each slot belongs to a thread; others stop it to reach it, see core/this_slot.h */
	bool concurrent; /* several CPUs use slots at once, in a heap of threads or in a kernel: a caller may touch another slot's
	                  * state only if sy__slot_mine says so */
	unsigned tick_slot; /* the slot that is visited at tick_due, see visits.c; same lock */
	unsigned nodes;  /* memory nodes: 1 to SY_MAX_NODES */
	uint8_t slot_node[SY_MAX_SLOTS]; /* the memory node nearest to each slot, see sy__slot_node */
	int64_t tunables[SY_MAX_TUNABLES];
	struct sy_sizing sizing;
	/* Hooks of the program, or NULL. */
	void *(*on_failure)(size_t size, unsigned flags, struct sy_heap *); /* a kmalloc without slot failed; returns its result */
	void *(*on_cache_failure)(struct sy_cache *, unsigned flags);       /* likewise an allocation from a cache */
	void (*on_slow_call)(struct sy_heap *); /* in slow calls that look at the clock */
	void (*after_slow_call)(struct sy_heap *); /* after such a call, if it was an allocation; no call is open. Unsynchronised, as the next */
	void (*wake_background)(struct sy_heap *);    /* in calls that leave work for sy__heap_background_work */
	void (*on_large_alloc)(struct sy_heap *, const void *pages, size_t bytes); /* a large allocation took new pages */
	void (*on_large_free)(struct sy_heap *, const void *pages, size_t bytes);  /* it ends, and its pages are about to go */
	void (*on_foreign_free)(void *object, struct sy_heap *); /* free of NULL, or of an address outside of the heap */
	void (*on_bug)(struct sy_heap *, enum sy_bug, const void *address); /* see bug.h */
	size_t mmap_threshold; /* larger requests fail, for on_failure to serve, unless a cached run serves them; 0: none. Unsynchronised */
	uint64_t grace_ns; /* length of an RCU grace period */
	uint64_t wait_ns;  /* most that a request with SY_KM_SLEEP waits; for on_failure */
	bool kfree_frees_all; /* kfree takes objects of caches, too, as Linux's does */
	bool never_reclaims; /* as the policy's, or by the heap's tunables */
	bool as_recorded; /* the policy follows the rules of that kernel: a replay begins with its slabs as they lay */
	struct sy_kernel kernel; /* that the workload comes from */
	const struct sy_grace *grace; /* grace periods of registered readers; NULL: grace_ns decides */
	sy__lock_t lock;   /* caches */
	struct sy_list caches; /* in order of creation, through sy_cache.link */
	sy__lock_t making; /* serialises creation and destruction of caches in heaps of threads */
	struct sy_list link;   /* in the page allocator's list of heaps to ask for memory */
	struct sy_list threads_link; /* in the list of heaps of threads, see this_slot.c */
	sy__lock_t deferred_lock;
	struct sy_deferred *deferred_first, *deferred_last; /* in order of due time; under deferred_lock */
	struct sy_time tick_due; /* sy__now() of the next policy->tick; 0: never. Under sy_heap.lock, read without it */
	struct sy_time scavenge_due; /* in heaps of threads: time of the next policy->scavenge or reap; unsynchronised */
	size_t scavenged_pages; /* pages with memory after the last one; unsynchronised */
	struct sy_metadata metadata;
	sy__lock_t slot_areas_lock;
	struct sy__slot_area *slot_areas; /* of heaps of threads; see core/backend/slot_areas.c */
	struct sy__run_cache *run_cache; /* slot 0's, in heaps of threads, see core/backend/run_cache.c; else NULL */
	/* Copies of the address and the descriptor of page 0. Here they cost one load less. They stand away from the start of a page,
	 * as every large object's first line competes for that cache set. */
	char *run_cache_memory;
	struct sy_page *run_cache_table;
	bool run_cache_enabled;        /* there is one node, and page numbers have 32 bits */
	bool run_cache_filled;         /* a hint that some slot caches runs; unsynchronised */
	struct sy_time run_cache_due;  /* time of the next flush; unsynchronised */
	struct sy_heap_counters counters;
	void (*log)(void *context, const char *event, const uint64_t *values, unsigned count); /* for tunables that log; or NULL */
	void *log_context;
};

/* The memory node nearest to a slot. Heaps of threads have more slots than replays have CPUs. */
static inline uint8_t sy__slot_node(const struct sy_heap *heap, unsigned slot)
{
	return heap->slot_node[slot % SY_MAX_SLOTS];
}

struct sy_cache {
	/* Where sy_alloc and sy_free jump to: functions of policy->this_slot, or the generic entries, or what cache_init chooses. */
	void *(*alloc_this_slot)(struct sy_cache *, unsigned flags);
	void (*free_this_slot)(struct sy_cache *, void *object);
	const struct sy_policy *policy; /* = heap->policy; saves the fast path a load */
	struct sy_heap *heap;
	char name[SY_NAME_BYTES];
	uint32_t object_size; /* bytes that the client may use */
	uint32_t align;       /* bytes; a power of two; at least what the client asked for */
	uint32_t size;        /* bytes from one object to the next, set by the policy */
	uint32_t flags;       /* enum sy_cache_flags */
	void (*constructor)(void *object, size_t object_size);
	void (*destructor)(void *object, size_t object_size);
	const struct sy_page_supplier *supplier; /* NULL: the page allocator */
	bool ending;          /* its last user destroys it, so all its slots are reachable */
	uint16_t sheaf_capacity; /* as sy_cache_config has it */
	uint32_t users;       /* creations that share this cache by merging; under sy_heap.lock */
	struct sy_list link;  /* in sy_heap.caches; under sy_heap.lock */
};

/* Why the policy refuses a heap, in one line for the user; NULL: it does not. sy_heap_create refuses it likewise. */
const char *sy__heap_refuses(const struct sy_heap_config *);

/* What sy_heap_tick does when something may be due. */
void sy__heap_tick(struct sy_heap *);

#endif
