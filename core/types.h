/*
 * Every noun of slabyard, once.
 *
 *   page, order       SY_PAGE_SIZE bytes; 2^order contiguous, naturally aligned pages.
 *   page allocator    hands out 2^order pages (struct sy_pages, private to core/pages/; policies see page_interface.h).
 *   policy            one allocation algorithm: a table of functions (struct sy_policy) and its tunables.
 *   heap              a policy at work on a page allocator (struct sy_heap). Several heaps may share one page allocator.
 *   cache             objects of one kind in a heap (struct sy_cache).
 *   slab, object      pages carved into objects; what the client holds.
 *   CPU slot          the owner of per-CPU state, 0 to sy_heap.slots - 1: a logical CPU in a replay, a thread in a
 *                     program, a CPU in a kernel. Whoever calls passes the slot that it runs on, or calls a function
 *                     without slots ("here"), which runs on the caller's own.
 *
 * Memory accounting is exact. Every page of the reserved range is ungrown, free, in a slab, in a large allocation, in
 * environment use or in metadata (enum sy_page_use); sy_pages_check() and sy_heap_check() verify the sums.
 *
 * Lock order. A lock may be taken only while holding locks that stand above it:
 *
 *   0. heaps of threads       the list of them (core/here.c); sy_heap.making: one creation or destruction of a cache at a time
 *   1. sy_heap.lock           the list of caches, creation, destruction and merging of caches
 *   2. a policy's own locks   for each policy in the opening comment of its file (slub: node list; slob: the one lock)
 *   3. sy_heap.deferred_lock  the deferred queue
 *      sy_heap.metadata.lock  the free lists of heap metadata
 *      sy_heap.slot_areas_lock    lines of slots (core/backend/slot_areas.c)
 *   4. per-CPU page list      one for each zone and slot (core/pages/)
 *      decay                  giving memory back after a while (core/backend/decay.c): one thread at a time
 *   5. zone                   free lists and counters of one zone (core/pages/)
 *   6. memory source          growth of the page allocator (core/pages/)
 *
 * Reclaim (page allocator calls heaps) holds none of levels 1 to 6; only the page allocator's list of heaps is locked, above
 * them.
 */
#ifndef SY_TYPES_H
#define SY_TYPES_H

#include "platform.h"

#ifndef SY_PAGE_SHIFT
#define SY_PAGE_SHIFT 12
#endif
#define SY_PAGE_SIZE ((size_t)1 << SY_PAGE_SHIFT)
#define SY_MAX_ORDER 10 /* largest block: 2^10 pages */
#define SY_ORDERS (SY_MAX_ORDER + 1)
#define SY_MAX_SLOTS 512
#define SY_THREAD_SLOTS (SY_MAX_SLOTS - 1u) /* of a heap of threads, which has a dummy too */
#ifndef SY_WARM_SLOTS
#define SY_WARM_SLOTS 9u /* from 0, that of nobody, on: in which a thread that ends may leave things for the next owner */
#endif
#define SY_MAX_NODES 16
#define SY_MAX_TUNABLES 16
#define SY_CACHE_LINE 64
#define SY_SLOT_STRIDE ((size_t)4096) /* bytes from one slot's state to the next one's, in heaps of threads; see core/backend/slot_areas.c */
#define SY_ANY_NODE (-1)
#define SY_NAME_BYTES 48

/* ---- Requests ------------------------------------------------------------------------------------------------- */

/* Flags of an allocation, after the GFP flags of Linux that matter to an allocator. */
enum sy_flags {
	SY_ZERO = 1u << 0,        /* the memory returned is all zero (__GFP_ZERO) */
	SY_RECLAIMABLE = 1u << 1, /* counted and grouped as reclaimable (__GFP_RECLAIMABLE) */
	SY_MOVABLE = 1u << 2,     /* environment pages only (__GFP_MOVABLE) */
	SY_HIGHATOMIC = 1u << 3,  /* may use the HighAtomic reserve (__GFP_HIGH and atomic) */
	SY_ACCOUNT = 1u << 4,     /* charged to a memory cgroup: its own kmalloc classes (__GFP_ACCOUNT) */
	SY_DMA = 1u << 5,         /* from zone DMA (__GFP_DMA) */
	SY_DMA32 = 1u << 6,       /* from zone DMA32 or below (__GFP_DMA32) */
	SY_THISNODE = 1u << 7,    /* the requested node or none (__GFP_THISNODE) */
	SY_NO_RECLAIM = 1u << 8,  /* fail rather than ask heaps to give memory back */
	/* Bonwick 1994, section 2.3: whether the caller can wait until memory is there. */
	SY_KM_SLEEP = 0,
	SY_KM_NOSLEEP = SY_NO_RECLAIM,
};

/* Flags of a cache, after Linux's SLAB_ flags. */
enum sy_cache_flags {
	SY_CACHE_HWCACHE_ALIGN = 1u << 0,   /* align objects to cache lines (SLAB_HWCACHE_ALIGN) */
	SY_CACHE_TYPESAFE_BY_RCU = 1u << 1, /* a slab's memory outlives a grace period (SLAB_TYPESAFE_BY_RCU) */
	SY_CACHE_RECLAIMABLE = 1u << 2,     /* its pages are of migrate type reclaimable (SLAB_RECLAIM_ACCOUNT) */
	SY_CACHE_ACCOUNT = 1u << 3,         /* SLAB_ACCOUNT */
	SY_CACHE_DMA = 1u << 4,             /* SLAB_CACHE_DMA */
	SY_CACHE_DMA32 = 1u << 5,           /* SLAB_CACHE_DMA32 */
	SY_CACHE_NO_MERGE = 1u << 6,        /* never shared with another cache */
	SY_CACHE_KMALLOC = 1u << 7,         /* a size class, made by the heap itself */
};

/* ---- Pages ---------------------------------------------------------------------------------------------------- */

enum sy_migrate { SY_UNMOVABLE, SY_MOVABLE_TYPE, SY_RECLAIMABLE_TYPE, SY_HIGHATOMIC_TYPE, SY_MIGRATE_TYPES };

/* What a page is used for. A descriptor that was never written reads SY_USE_OLDER: ungrown, or in use by the
 * environment since before the trace began; the zone's counters tell the two apart. */
enum sy_page_use {
	SY_USE_OLDER,
	SY_USE_FREE,        /* on a free list of its zone */
	SY_USE_CPU_LIST,    /* free, on a per-CPU list */
	SY_USE_SLAB,        /* in a slab of a heap */
	SY_USE_LARGE,       /* in an allocation that went straight to pages */
	SY_USE_ENVIRONMENT, /* held by somebody outside the heaps */
	SY_USE_METADATA,    /* holds heaps, caches and other bookkeeping */
	SY_USES
};

#define SY_SLAB_STATE_BYTES 40

/* Descriptor of one page: the page allocator's, who says what is in it (page_interface.h). In the first page of a slab or of a
 * large allocation, `state` is the policy's; the lowest bit of its first word stays clear, as a kernel keeps its own there. */
struct sy_page;

/* The policy's state in the head page of a slab, as TYPE *; SY_ASSERT_SLAB_STATE asserts that it fits, and
 * begins with the pointer FIRST. */
#define SY_SLAB_STATE(TYPE, page) ((TYPE *)(void *)(page)->state)
#define SY_ASSERT_SLAB_STATE(TYPE, FIRST)                                                                                \
	sy__static_assert(sizeof(TYPE) <= SY_SLAB_STATE_BYTES, "per-slab state exceeds what a kernel's struct slab leaves"); \
	sy__static_assert(offsetof(TYPE, FIRST) == 0 && __builtin_classify_type(((TYPE *)0)->FIRST) == SY__POINTER_CLASS,      \
	                  "the lowest bit of the first word is a kernel's, so a pointer stands there")
#define SY__POINTER_CLASS 5 /* of the compiler's */

/* ---- Lists ---------------------------------------------------------------------------------------------------- */

/* Circular doubly linked list with a sentinel; helpers in core/list.h. */
struct sy_list {
	struct sy_list *next, *prev;
};

/* Memory that waits for an RCU grace period: 16 bytes on 64-bit, as a kernel's rcu_head. See core/deferred.c. */
struct sy_deferred {
	struct sy_deferred *next;
	uint64_t due; /* when the grace period has passed: sy__now(), or its number by sy_heap.grace */
};

/* ---- Policies ------------------------------------------------------------------------------------------------- */

/* One tunable of a policy. Values are integers; a tunable with choices takes the index of its name. */
struct sy_tunable {
	const char *name;
	int64_t default_value; /* SY_TUNABLE_AUTO where the policy computes it */
	int64_t min, max;      /* inclusive */
	const char *const *choices; /* NULL, or max + 1 names */
	const char *meaning;   /* one line, with the unit */
};
#define SY_TUNABLE_AUTO INT64_MIN

struct sy_cache_counts {
	uint64_t slabs, partial_slabs, full_slabs, empty_slabs; /* partial, full and empty add up to slabs */
	uint64_t pages;           /* in slabs */
	uint64_t objects;         /* room in all slabs */
	uint64_t objects_in_use;  /* held by the client */
	uint64_t objects_cached;  /* free, kept in per-CPU state */
	uint64_t allocations;     /* since creation; 0: the policy keeps no count */
	uint64_t idle_slabs;      /* of the empty ones, those that the policy keeps apart: /proc/slabinfo counts the rest as active */
	uint64_t objects_shared;  /* of those cached, in the arrays that the CPUs of a node share (<sharedavail>) */
	/* Fixed at creation; 0: the policy has no such thing. A slab may be smaller where memory is short. */
	uint32_t slab_objects, slab_pages; /* of a slab; 0: caches share their pages */
	uint32_t limit, batchcount, shared; /* of per-CPU queues, in the sense of slabinfo's tunables */
};

struct sy_geometry {
	uint32_t size;    /* bytes from one object to the next */
	uint32_t objects; /* in one slab */
	uint32_t order;   /* pages of a slab: 2^order */
	uint32_t wasted;  /* bytes of a slab that no object uses */
};

struct sy_heap;
struct sy_cache;
struct sy_pages;
struct sy__walk;
struct sy__slot_area;
struct sy__run_cache;

/*
 * The functions without slots: as their namesakes in struct sy_policy, on the slot of the thread (or CPU) that calls. Each
 * begins and ends the call itself (sy__call_begin and sy__call_end of platform.h). A fast path that misses jumps to the
 * generic entry of the same name (core/here.h), which does all the rest: it resolves the dummy slot, and goes through the
 * policy's function with slots. Sizes are not zero-checked and objects never NULL, as for those.
 *
 * The dummy slot. What a cache has of each slot (core/backend/slot_areas.h) is there once more in front of slot 0, and nothing is ever found
 * in that: no free list, no active slab, no room. A thread without a slot of its own, or whose slot somebody claims, runs on
 * it, hence misses; so a fast path needs no check for either. Nothing is ever written to the dummy's.
 */
struct sy_here {
	void *(*cache_alloc)(struct sy_cache *, unsigned flags);
	void (*cache_free)(struct sy_cache *, void *object);
	/* The heap last: programs have one whose name is not among the caller's arguments, and so needs to move none of them. */
	void *(*kmalloc)(size_t size, unsigned flags, struct sy_heap *);
	void *(*malloc)(size_t size, struct sy_heap *); /* kmalloc without flags */
	void (*kfree)(void *object, struct sy_heap *);
	void (*free)(void *object, struct sy_heap *); /* kfree of any address: see sy_heap.foreign. NULL: the generic entry */
};

/*
 * The hot functions of struct sy_policy, where the slot itself has what is asked for, or room for what is given back; else they
 * say so and have done nothing. They touch the slot's own state, the object, and at most one word that others exchange too;
 * they take no lock. So a kernel may make them with interrupts on, if only whoever interrupts one keeps off that slot. An
 * allocation is for any node, and of general allocation for memory of no type (SY_DMA and the like).
 *
 * They are leaves that save no register. In a hot pair kfree finds its way from the object to the slot by a chain of loads, and
 * stores the object where the next kmalloc loads it. Processors guess that such a load will be served by that store long before
 * the store's address is known, but look back at few stores only: 14 on AMD's Zen 4, where a pair takes 6 cycles within these
 * and 30 beyond. Return addresses and saved registers between the two are stores as well, the callers' among them, which are
 * not ours to count.
 */
struct sy_quick {
	void *(*cache_alloc)(struct sy_cache *, unsigned slot); /* NULL: the slot has no object, as the next */
	void *(*kmalloc)(struct sy_heap *, unsigned slot, size_t size, unsigned flags);
	bool (*cache_free)(struct sy_cache *, unsigned slot, void *object); /* false: it has no room, as the next */
	bool (*kfree)(struct sy_heap *, unsigned slot, struct sy_page *head, void *object); /* head: of the object's block of pages */
};

/*
 * The policy contract. Adding an allocator is one file that defines one of these, and one line in core/policies/table.c.
 * Functions get the caller's slot; those of the slow group may be called from any slot. NULL marks what a policy
 * does not have. All but check may be called concurrently for different slots.
 */
struct sy_policy {
	const char *name, *summary, *paper;
	const struct sy_tunable *tunables;
	unsigned tunable_count;
	size_t heap_bytes;  /* of the policy's heap structure, whose first member is struct sy_heap */
	size_t threads_bytes; /* more behind it, in heaps of threads */
	size_t cache_bytes; /* of the policy's cache structure, whose first member is struct sy_cache */

	/* Hot. Sizes in bytes; node is SY_ANY_NODE or a memory node; NULL when there is no memory. */
	void *(*cache_alloc)(struct sy_cache *, unsigned slot, unsigned flags, int node);
	void (*cache_free)(struct sy_cache *, unsigned slot, void *object);
	void *(*kmalloc)(struct sy_heap *, unsigned slot, size_t size, unsigned flags, int node);
	void (*kfree)(struct sy_heap *, unsigned slot, void *object);

	/* Slow. */
	bool (*heap_init)(struct sy_heap *);           /* fills the zeroed structure; false: no memory, nothing kept */
	void (*heap_fini)(struct sy_heap *);           /* all caches are gone; gives every page back */
	struct sy_cache *(*cache_merge)(struct sy_heap *, const struct sy_cache *wanted); /* an existing cache to share, or NULL */
	bool (*cache_init)(struct sy_cache *);         /* fills the rest of a cache; false: no memory or impossible */
	void (*cache_fini)(struct sy_cache *);         /* gives back every page but those with objects in use, which only
	                                                * sy_heap_destroy leaves, and sweeps up itself */
	size_t (*usable_size)(struct sy_heap *, const void *object); /* of a kmalloc: bytes that may be written */
	uint64_t (*shrink)(struct sy_cache *);         /* gives back every slab it can; returns pages given back */
	uint64_t (*reap)(struct sy_cache *);           /* memory becomes short: as shrink, but may keep what was used a moment ago;
	                                                * NULL: shrink. Before a request fails it is shrink in any case */
	uint64_t (*settle)(struct sy_cache *);         /* in heaps of threads, now and then, and soon after sy__settle_soon: gives up
	                                                * what slots keep for a use that is over. NULL: reap, if there is that */
	void (*end_spares)(struct sy_heap *, unsigned slot); /* in heaps of threads, in a slow call of that slot with no lock of
	                                                      * the heap's held, where that said so (sy__spares_kept): gives what
	                                                      * it keeps of empty slabs; or NULL */
	uint64_t (*trim)(struct sy_cache *);           /* after shrink: gives back the memory of pages inside slabs in which nothing
	                                                * is used, and keeps the pages; how many. NULL: there are none */
	void (*drain)(struct sy_heap *, unsigned slot);/* empties this slot's state, as for a CPU that goes offline */
	bool (*reservation_changes)(struct sy_heap *, size_t pages); /* the range of pages ends after so many: before it reaches further, or has
	                                                * come to an end; false: no room for what is kept of each. NULL: nothing is */
	void (*grace_passed)(struct sy_heap *, struct sy_deferred *); /* an entry of the deferred queue is due */
	void (*tick)(struct sy_heap *);                /* sy_heap.tick_due has come: does what is due and sets the next time */
	void (*counts)(struct sy_cache *, struct sy_cache_counts *);
	bool (*geometry)(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *); /* size: final object size */
	const char *(*check)(struct sy_heap *);        /* NULL, or which invariant does not hold */
	uint64_t (*unused_bytes)(struct sy_heap *);    /* of slabs: free for objects to come; NULL: what objects leave */
	const struct sy_here *here; /* fast paths without slots, for heaps of threads; NULL: the generic entries */
	const struct sy_quick *quick; /* fast paths that may be interrupted; NULL: there are none */
	bool serves_classes;  /* kmalloc is from the size classes of core/kmalloc.h */
	void (*walk)(struct sy__walk *, struct sy_page *); /* tells what is in a slab of this first page; see walk.h */
	void (*walk_begin)(struct sy_heap *);  /* before and after all slabs of a walk; NULL: nothing is to be done */
	void (*walk_end)(struct sy_heap *);
	void (*walk_supplied)(struct sy__walk *, struct sy_cache *); /* likewise of each slab of a cache with a supplier; NULL:
	                                                              * the policy takes none */
	bool takes_suppliers; /* a cache may get its pages from somebody else than the page allocator */
	bool shares_all;      /* all caches, and general allocation, share what is free: shrink, reap and settle give that of the
	                       * whole heap, and look at no more of a cache than its heap and policy */
	bool never_reclaims;  /* slab pages stay until the heap is destroyed, whatever is freed */
};

/*
 * Where a cache's slabs get their memory instead of the page allocator: device memory, memory that survives power cuts, …
 * (Bonwick 1994, section 7.1). Called with no lock held; neither may call into the heap. Bytes are a power of two of pages.
 */
struct sy_page_supplier {
	void *(*get_pages)(void *context, size_t bytes, unsigned flags); /* aligned to a page; enum sy_flags; NULL: there is none */
	void (*free_pages)(void *context, void *memory, size_t bytes);
	void *context;
};

/* ---- Heaps and caches ----------------------------------------------------------------------------------------- */

/* The size classes of kmalloc, see core/kmalloc.c. Policies with sizes of their own take no notice. */
enum sy_classes { SY_CLASSES_LINUX, SY_CLASSES_FINE };

/* How kmalloc rounds requests. All zero: as Linux does. */
struct sy_sizing {
	enum sy_classes classes;
	uint32_t align;  /* of every object at least: a power of two up to a page; 0: 8 */
	bool exact_runs; /* large allocations take the pages that they need, not the whole block if that has more than 64 KiB */
	size_t most;     /* larger requests are refused; 0: what the largest block holds. Of calls with slots only those that go straight
	                  * to pages are */
};

/* Counters that the core keeps on slow paths only; read by anyone, written under the owner's rules. */
struct sy_heap_counters {
	uint64_t slab_pages, large_pages, metadata_pages; /* held now */
	uint64_t held_peak;      /* most slab_pages + large_pages at any time */
	uint64_t slab_pages_peak;
	uint64_t taken_pages;    /* for slabs and large allocations, ever */
	uint64_t page_requests;  /* asked of the page allocator */
	uint64_t page_failures;  /* of these, refused */
	uint64_t asked, asked_urgently; /* times the page allocator asked for memory; of these, lest a request fail */
	uint64_t reclaimed_pages, reclaimed_urgently; /* given back when it asked; of these, when it asked lest a request fail */
	/* Words, as any slot adds to them by an atomic operation, which small machines have for words only. */
	size_t slow_allocs;      /* allocations that left the fast path; not counted in heaps of threads (sy__count_slow) */
	size_t slow_frees;       /* frees that left the fast path; the same */
	size_t large_live_bytes; /* bytes asked for in large allocations that live now; in heaps of threads slots count them
	                          * (sy__large_live) */
	uint64_t deferred;       /* objects or slabs that wait for a grace period */
};

/* A time that is set under a lock and read without: in one word or two, as small machines have atomic operations for words
 * only. Where it is two, whoever reads it while it is being set may get one half from before and one from after. Relaxed: it
 * tells when it is worth the while to take the lock, and no memory depends on it. */
struct sy_time {
	size_t words[sizeof(uint64_t) / sizeof(size_t)]; /* the high one first */
};

static inline uint64_t sy__time(const struct sy_time *time)
{
	uint64_t value = 0;
	unsigned i;

	for (i = 0; i < sizeof(time->words) / sizeof(size_t); i++)
		value = value << 32 | __atomic_load_n(&time->words[i], __ATOMIC_RELAXED);
	return value;
}

static inline void sy__time_set(struct sy_time *time, uint64_t value)
{
	unsigned i;

	for (i = sizeof(time->words) / sizeof(size_t); i--; value >>= 32)
		__atomic_store_n(&time->words[i], (size_t)value, __ATOMIC_RELAXED);
}

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

#endif
