/*
 * The laboratory's interface to a heap: what only replays need beyond slabyard.h.
 *
 * It drives a heap as a machine would: it drains a CPU, runs periodic work and ends grace periods when the kernel did, asks for
 * memory as a page allocator under pressure does, and chooses the pages of each request. And it looks closely: at the heap's
 * counters after each step, at the caches in their order, at the node of an object. All types stay opaque.
 *
 * With inspect.h it is a library of its own, not installed and in no other one, so it may change with any commit. All of this header is
 * for heaps whose calls have slots, driven by one thread. Where nothing else is said a call is a few loads.
 */
#ifndef SY_LAB_REPLAY_H
#define SY_LAB_REPLAY_H

#include <slabyard/slabyard.h>

#include "library/spec.h"

/* ---- Looking -------------------------------------------------------------------------------------------------- */

/* The heap's own counters. They stay valid and go on counting. */
const struct sy_heap_counters *sy_lab_counters(const struct sy_heap *);

/* The next and the previous cache in order of creation, the heap's own caches included. NULL stands for both ends of the list. */
struct sy_cache *sy_lab_cache_after(struct sy_heap *, const struct sy_cache *);
struct sy_cache *sy_lab_cache_before(struct sy_heap *, const struct sy_cache *);

/* Where an object lies. */
struct sy_lab_place {
	const struct sy_page *head; /* of its block of pages */
	unsigned node, order;       /* order: of that block */
	bool large;           /* in pages of its own */
};
struct sy_lab_place sy_lab_place_of(const struct sy_heap *, const void *object);

/* The order of a block of environment pages. */
unsigned sy_lab_page_order(const struct sy_page *);

/* The memory node of a slot. */
unsigned sy_lab_slot_node(const struct sy_heap *, unsigned slot);

/* Bytes in slabs that are free for new objects. False: the policy can't tell. */
bool sy_lab_unused_bytes(struct sy_heap *, uint64_t *bytes);

/* The geometry of a slab for objects of `size` bytes, on `cpus` CPUs. False: no slab holds them. sy_lab_has_geometry: false where
 * slabs hold objects of any size. */
bool sy_lab_has_geometry(const struct sy_policy *);
bool sy_lab_geometry(const struct sy_policy *, const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *);

/* Whether a tunable of a heap like this, by its number in sy_policy_description, changes nothing whatever its value is. */
bool sy_lab_idle(const struct sy_heap_config *, unsigned tunable);

/* Why no heap can have these tunables, in one line for the user; NULL: it can. */
const char *sy_lab_refuses(const struct sy_heap_config *);

/* Has the policy log its searches, if a tunable turns that on. */
void sy_lab_log(struct sy_heap *, void (*log)(void *context, const char *event, const uint64_t *values, unsigned count), void *context);

/* Counts, from now on, how often this heap's policy takes a lock, of its lists, its sheaves and so on; NULL: no heap is watched any more.
 * Locks of the page allocator, of a heap's own metadata and of its list of caches are none of these. What it returns goes on counting. */
const uint64_t *sy_lab_count_locks(const struct sy_heap *);

/* ---- Driving -------------------------------------------------------------------------------------------------- */

/* Empties a slot's state, as if its CPU went offline. */
void sy_lab_drain(struct sy_heap *, unsigned slot);

/* The time at which the policy's periodic work is due, 0: never. sy_lab_tick runs it, due or not. */
uint64_t sy_lab_tick_due(const struct sy_heap *);
void sy_lab_tick(struct sy_heap *);

/* Grace periods as the workload's kernel had them: a wait ends when now() has reached what ends() told at its begin; neither decreases. */
struct sy_lab_graces {
	uint64_t (*ends)(void), (*now)(void);
};

/* Whether the heap follows the rules of the kernel that the workload comes from (struct sy_kernel). If so it waits like that from now on. */
bool sy_lab_as_recorded(struct sy_heap *, const struct sy_lab_graces *);

/* Ends the longest wait for a grace period, whatever the time is. False: nothing waits. */
bool sy_lab_end_grace(struct sy_heap *);

/* Asks the heap for memory, as a page allocator under pressure does. */
void sy_lab_ask(struct sy_heap *);

/* ---- Pages ---------------------------------------------------------------------------------------------------- */

/* Commits memory in advance, if it starts in the page allocator's reservation for pages or for their descriptors. If the system
 * refuses, the request that needs the memory will fail. */
void sy_lab_commit(struct sy_pages *, const void *start, size_t bytes);

/* Where a page allocator keeps its state, with that of its heaps: the table of its pages, and the rest. */
struct sy_lab_span {
	void *start;
	size_t bytes, each; /* each: of what stands for a page; 1 in the rest */
};
void sy_lab_spans(const struct sy_pages *, struct sy_lab_span *table, struct sy_lab_span *rest);

/* Sets a page's entry in the table back to its saved state, but not the page's memory, and not the note that the page was written. */
void sy_lab_rewind(struct sy_page *, const struct sy_page *saved);

/* Chooses the pages that heaps' requests get, by sy_lab_take_at or sy_lab_take_any. NULL: the request fails. */
struct sy_lab_placer {
	struct sy_page *(*take)(void *context, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use);
	void *context;
};

/* To be called before the first heap is made. Placer and context outlive the page allocator. */
void sy_lab_set_placer(struct sy_pages *, const struct sy_lab_placer *);

/* Takes the block that begins with this frame (NULL: it is not free), or any block. */
struct sy_page *sy_lab_take_at(struct sy_pages *, uint64_t frame, unsigned order, enum sy_page_use);
struct sy_page *sy_lab_take_any(struct sy_pages *, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use);

#endif
