/*
 * What a policy sees, and what it is asked for: the policy contract (struct sy_policy), with the two sets of fast paths that a
 * policy may have beside it (struct sy_here, struct sy_quick), and its state in a slab's first page. What is asked of an
 * allocation, of a cache and of a tunable is public (slabyard.h). What pages are to a policy: page_interface.h. Its heap and its
 * caches begin with those of heap.h.
 *
 * Included by types.h, which has the nouns and the lock order.
 */
#ifndef SY_POLICY_H
#define SY_POLICY_H

#include "types.h"

struct sy__walk;
struct sy__slot_area;
struct sy__run_cache;

/* ---- The state of a slab ---------------------------------------------------------------------------------------- */

#define SY_SLAB_STATE_BYTES 40

/* Descriptor of one page: the page allocator's, who says what is in it (page_interface.h). In the first page of a slab or of a
 * large allocation, `state` is the policy's; the lowest bit of its first word stays clear, as a kernel keeps its own there. */
struct sy_page;

/* The policy's state in the head page of a slab, as TYPE *; SY_ASSERT_SLAB_STATE asserts that it fits, and
 * begins with the pointer FIRST. */
#define SY_SLAB_STATE(TYPE, page) ((TYPE *)(void *)(page)->state)
#define SY_ASSERT_SLAB_STATE(TYPE, FIRST)                                                                                \
	_Static_assert(sizeof(TYPE) <= SY_SLAB_STATE_BYTES, "per-slab state exceeds what a kernel's struct slab leaves"); \
	_Static_assert(offsetof(TYPE, FIRST) == 0 && __builtin_classify_type(((TYPE *)0)->FIRST) == SY__POINTER_CLASS,      \
	                  "the lowest bit of the first word is a kernel's, so a pointer stands there")
#define SY__POINTER_CLASS 5 /* of the compiler's */

/* ---- The contract ----------------------------------------------------------------------------------------------- */

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

#endif
