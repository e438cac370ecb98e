/*
 * The policy contract: struct sy_policy, the two optional sets of fast paths beside it (struct sy_this_slot, struct sy_quick), and a
 * policy's state in the first page of a slab. Requests, cache options and tunables are public (slabyard.h). page_interface.h has
 * pages as policies see them. A policy's heap and cache structures begin with those of heap.h.
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

/* Descriptor of one page, defined by the page allocator (page_interface.h). In the first page of a slab or of a large allocation,
 * `state` is the policy's. The lowest bit of its first word must stay clear: a kernel uses it. */
struct sy_page;

/* The policy's state in the first page of a slab, as TYPE *. SY_ASSERT_SLAB_STATE asserts that it fits and begins with the pointer
 * FIRST. */
#define SY_SLAB_STATE(TYPE, page) ((TYPE *)(void *)(page)->state)
#define SY_ASSERT_SLAB_STATE(TYPE, FIRST)                                                                                \
	_Static_assert(sizeof(TYPE) <= SY_SLAB_STATE_BYTES, "per-slab state exceeds what a kernel's struct slab leaves"); \
	_Static_assert(offsetof(TYPE, FIRST) == 0 && __builtin_classify_type(((TYPE *)0)->FIRST) == SY__POINTER_CLASS,      \
	                  "the lowest bit of the first word is a kernel's, so a pointer stands there")
#define SY__POINTER_CLASS 5 /* what __builtin_classify_type returns for pointers */

/* ---- The contract ----------------------------------------------------------------------------------------------- */

/*
 * The functions without slots: like their namesakes in struct sy_policy, on the slot of the calling thread or CPU. Each begins and
 * ends the call itself (sy__call_begin and sy__call_end of platform.h). A fast path that misses jumps to the generic entry of the
 * same name (core/this_slot.h), which resolves the dummy slot and calls the policy's function with slots. As there, sizes may be 0 and
 * objects are never NULL.
 *
 * The dummy slot. In front of slot 0, a cache's per-slot state (core/backend/slot_areas.h) has one more, the dummy's. It is always
 * empty: no free list, no active slab, no room. A thread without a slot, or whose slot is stopped, runs on the dummy and so
 * misses; fast paths need no other check for these cases. Nobody writes to the dummy's state.
 */
struct sy_this_slot {
	void *(*cache_alloc)(struct sy_cache *, unsigned flags);
	void (*cache_free)(struct sy_cache *, void *object);
	/* The heap comes last: malloc adds it to its caller's arguments, and so need not move them to other registers. */
	void *(*kmalloc)(size_t size, unsigned flags, struct sy_heap *);
	void *(*malloc)(size_t size, struct sy_heap *); /* kmalloc without flags */
	void (*kfree)(void *object, struct sy_heap *);
	void (*free)(void *object, struct sy_heap *); /* kfree of any address, see sy_heap.on_foreign_free; NULL: the generic entry */
};

/*
 * Quick calls: the hot functions of struct sy_policy, as far as the slot alone can serve them. A call that the slot cannot serve
 * changes nothing and says so. They touch the slot's own state, the object, and at most one word that others exchange too; they
 * take no lock. So a kernel may call them with interrupts on, provided that no interrupt handler uses the same slot meanwhile. They
 * allocate for any node; kmalloc serves requests without type flags (SY_DMA and the like) only.
 *
 * They are leaf functions and save no register, for the sake of store forwarding. In a hot pair kfree follows a chain of loads from
 * the object to the slot, and stores the object where the next kmalloc loads it. The processor predicts that this store serves that
 * load, before it knows the store's address, but it looks back over few stores: 14 on AMD's Zen 4, where a pair takes 6 cycles
 * within that reach and 30 beyond. Pushed return addresses and saved registers, callers' too, are stores in between.
 */
struct sy_quick {
	void *(*cache_alloc)(struct sy_cache *, unsigned slot); /* NULL: the slot has no object, as the next */
	void *(*kmalloc)(struct sy_heap *, unsigned slot, size_t size, unsigned flags);
	bool (*cache_free)(struct sy_cache *, unsigned slot, void *object); /* false: it has no room, as the next */
	bool (*kfree)(struct sy_heap *, unsigned slot, struct sy_page *head, void *object); /* head: of the object's block of pages */
};

/* The choices of a tunable that is a switch. */
#define SY__OFF_ON ((const char *const[]){ "off", "on" })

/*
 * The policy contract. An allocator is a file that defines one of these, and one line in core/policies/table.c. Functions get the
 * caller's slot; those of the slow group may be called from any slot. NULL marks functions that a policy does not have. All but
 * check may run concurrently for different slots.
 */
struct sy_policy {
	const char *name, *summary, *paper;
	const struct sy_tunable *tunables;
	unsigned tunable_count;
	const struct sy_preset *presets;
	unsigned preset_count;
	size_t heap_bytes;  /* of the policy's heap structure, whose first member is struct sy_heap */
	size_t threads_bytes; /* further bytes behind it, in heaps of threads */
	size_t cache_bytes; /* of the policy's cache structure, whose first member is struct sy_cache */

	/* Hot. Sizes in bytes; node is SY_ANY_NODE or a memory node; NULL when there is no memory. */
	void *(*cache_alloc)(struct sy_cache *, unsigned slot, unsigned flags, int node);
	void (*cache_free)(struct sy_cache *, unsigned slot, void *object);
	void *(*kmalloc)(struct sy_heap *, unsigned slot, size_t size, unsigned flags, int node);
	void (*kfree)(struct sy_heap *, unsigned slot, void *object);

	/* Slow. */
	const char *(*refuses)(const struct sy_heap_config *); /* why tunables and the kind of heap do not go together, in one line for the user;
	                                                  * or NULL */
	bool (*idle)(const struct sy_heap_config *, unsigned tunable); /* this tunable, whatever its value, changes nothing beside the others;
	                                                  * NULL: each changes something */
	bool (*heap_init)(struct sy_heap *);           /* fills the zeroed structure; false: no memory, nothing kept */
	void (*heap_fini)(struct sy_heap *);           /* all caches are gone; gives every page back */
	struct sy_cache *(*cache_merge)(struct sy_heap *, const struct sy_cache *wanted); /* an existing cache to share, or NULL */
	bool (*cache_init)(struct sy_cache *);         /* fills the rest of a cache; false: no memory or impossible */
	void (*cache_fini)(struct sy_cache *);         /* gives back every page without objects in use; sy_heap_destroy itself
	                                                * gives back the others */
	size_t (*usable_size)(struct sy_heap *, const void *object); /* of a kmalloc: bytes that may be written */
	uint64_t (*shrink)(struct sy_cache *);         /* gives back every slab it can; returns pages given back */
	uint64_t (*reap)(struct sy_cache *);           /* memory is short: as shrink, but may keep a working set; NULL: shrink. Before
	                                                * a request fails, shrink is called in any case */
	uint64_t (*scavenge)(struct sy_cache *);       /* in heaps of threads, each second and soon after sy__scavenge_soon: gives up
	                                                * what slots retain without need. NULL: reap, if there is one */
	void (*release_retained)(struct sy_heap *, unsigned slot); /* in heaps of threads, in a slow call of a slot that called
	                                                      * sy__retained_note, with no lock of the heap held: gives the empty
	                                                      * slabs back that the slot retains; or NULL */
	uint64_t (*trim)(struct sy_cache *);           /* after shrink: gives back the memory, but not the addresses, of pages inside
	                                                * slabs without an object in use; how many */
	void (*drain)(struct sy_heap *, unsigned slot);/* empties this slot's state, as for a CPU that goes offline */
	bool (*large_taken)(struct sy_heap *, struct sy_page *); /* a large allocation took new pages, from this one on; false: no memory
	                                                * to keep track of them */
	bool (*reservation_changes)(struct sy_heap *, size_t pages); /* new length of the range of pages, told before the range extends
	                                                * or after it got shorter; false: no memory to describe them */
	void (*grace_passed)(struct sy_heap *, struct sy_deferred *); /* an entry of the deferred queue is due */
	void (*tick)(struct sy_heap *);                /* sy_heap.tick_due has passed: does what is due, sets the next time */
	void (*counts)(struct sy_cache *, struct sy_cache_counts *);
	bool (*geometry)(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *); /* size: final object size */
	const char *(*check)(struct sy_heap *);        /* NULL, or which invariant does not hold */
	uint64_t (*unused_bytes)(struct sy_heap *);    /* free bytes in slabs; NULL: slab bytes minus objects in use */
	const struct sy_this_slot *this_slot; /* fast paths without slots, for heaps of threads; NULL: the generic entries */
	const struct sy_policy *hardened; /* serves a heap that asks for it; NULL: nobody can, or this one is it */
	unsigned harden;      /* the tunable by which a heap asks for it; 0: none, as the first one never is */
	const struct sy_quick *quick; /* fast paths that may be interrupted; NULL: there are none */
	bool serves_classes;  /* kmalloc uses the size classes of core/kmalloc.h */
	void (*walk)(struct sy__walk *, struct sy_page *); /* shows what is in the slab of this first page; see walk.h */
	void (*walk_begin)(struct sy_heap *);  /* before and after all slabs of a walk */
	void (*walk_end)(struct sy_heap *);
	void (*walk_supplied)(struct sy__walk *, struct sy_cache *); /* shows all slabs of a cache with a page supplier */
	bool takes_suppliers; /* caches may have page suppliers */
	bool shares_all;      /* all caches share free memory: shrink, reap and scavenge work on the whole heap, and use only the heap
	                       * and policy of their cache */
	bool never_reclaims;  /* slab pages stay until the heap is destroyed */
};

#endif
