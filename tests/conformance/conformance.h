/*
 * Conformance: what every policy must do, whatever it is.
 *
 * A program is an array of operations on one simulated machine: page allocator, one or two heaps, caches, objects. The
 * interpreter (run.c) carries it out beside a model (model.c) that knows what a client knows, and stops at the first
 * thing that a client could complain about, or at the first invariant of the library that does not hold.
 *
 * Every program means something. An operation names its cache, object or slot by a number modulo how many there are, and does
 * nothing where there are none. So a program stays a program when operations are taken out of it or made smaller. That is how
 * Hypothesis (test_conformance.py) finds the shortest one that fails. soak.c makes long ones.
 *
 * The promises that are checked:
 *
 *   objects      lie in pages of their heap, in one block of pages, don't overlap, are aligned as asked (kmalloc: to 8 bytes,
 *                to their size if that is a power of two up to a page), and have at least the bytes asked for
 *   contents     stay as the client wrote them; are zero where asked; are in constructed state when handed out
 *   constructors run before, destructors after, and equally often. The next client, or the destructor, finds an object in the
 *                constructed state in which the client before it freed it
 *   RCU          a freed object's page stays a page of its heap's objects for a grace period
 *   nodes        SY_THISNODE is obeyed
 *   NULL         only if the page allocator refused a page, or the size is beyond the largest block; and then nothing changed.
 *                If any single page request of a program fails, all else holds, and no page is lost
 *   destroying   a cache is refused while it has objects, with their true number
 *   counts       objects in use are those that the client holds; slabs are partial, full or empty
 *   giving back  after all is freed, time has passed and the heap has shrunk, no slab is left, unless the policy never
 *                reclaims, but those that hold what the heap itself uses; after the heap is destroyed, with objects in it or without,
 *                every page is free
 *   heaps        are destroyed and made again, over and over, beside others that notice nothing
 *   invariants   sy_heap_check and sy_pages_check find nothing
 *   determinism  the same program places every object at the same offsets from the start of memory (result.hash)
 */
#ifndef SY_CONFORMANCE_H
#define SY_CONFORMANCE_H

#include "core/types.h"

/* Kinds of operation; a, b as said, slot and heap always. */
enum op_kind {
	OP_CREATE,       /* a: object bytes; b: alignment | cache flags << 16 | OP_CONSTRUCTED */
	OP_DESTROY,      /* a: cache */
	OP_ALLOC,        /* a: cache; b: how many, 1 to OP_BULK; flags, node */
	OP_KMALLOC,      /* a: bytes; b: how many; flags, node */
	OP_FREE,         /* a: object; b: how many, one after the other in the order of allocation */
	OP_SHRINK,       /* the whole heap */
	OP_SHRINK_CACHE, /* a: cache */
	OP_TICK,         /* a: nanoseconds that pass */
	OP_DRAIN,        /* the slot's state, as when its CPU goes offline; b odd: its pages too */
	OP_FAIL,         /* the page request after the next `a` fails, unless an earlier order to fail still waits */
	OP_PAGES,        /* the environment takes 2^(a mod orders) pages */
	OP_PAGES_FREE,   /* a: block of pages of the environment */
	OP_RELEASE,      /* free blocks of at least order a go back to the source */
	OP_HEAP,         /* destroys the heap with all that is in it, and makes a new one in its place */
	OP_KINDS
};

#define OP_BULK 256
#define OP_CONSTRUCTED (1u << 31)

struct op {
	uint8_t kind, slot, heap;
	int8_t node;
	uint32_t flags; /* enum sy_flags */
	uint32_t a, b;
};

struct conformance_config {
	uint32_t slots, nodes, heaps;
	uint32_t pages_per_node;
	uint32_t grace_ns;
	uint32_t check_every; /* operations from one check of all invariants to the next */
	uint32_t fail_first;  /* this page request fails, counted from the first that a heap makes; 0: none */
	uint8_t cpu_lists;    /* the page allocator has per-CPU lists */
	uint8_t leave_objects;/* destroy the heaps with the objects in them */
	uint8_t reserved[2];
	int64_t tunables[SY_MAX_TUNABLES];
};

struct conformance_result {
	uint64_t operations;  /* carried out */
	uint64_t allocations, frees, refused; /* of objects; refused: NULL */
	uint64_t hash;        /* of all offsets handed out */
	uint64_t page_requests; /* of heaps and of the environment */
	uint64_t injected;    /* page requests that were made to fail */
	uint64_t peak_pages;  /* most that one heap held at a time */
	uint64_t checks;      /* of all invariants and promises */
	uint64_t failed_at;   /* operation; its number in the program, or the program's length: at the end */
	char message[256];    /* what is wrong; empty: nothing */
};

/* Runs a program; true: all promises were kept. */
bool sy_conformance_run(const struct sy_policy *, const struct conformance_config *, const struct op *ops, uint64_t count,
                        struct conformance_result *);

/* As sy_conformance_run, but a crash or an endless loop is a failure too. */
bool sy_conformance_run_guarded(const struct sy_policy *, const struct conformance_config *, const struct op *ops,
                                uint64_t count, struct conformance_result *);

/* Default configuration for a policy: one slot, node and heap, 1024 pages, default tunables. */
void sy_conformance_defaults(const struct sy_policy *, struct conformance_config *);

/* A tunable of a policy, for callers that can't read C structures; false: there are no more. */
bool sy_conformance_tunable(const struct sy_policy *, unsigned index, const char **name, int64_t *default_value,
                            int64_t *min, int64_t *max);

#endif
