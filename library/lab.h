/*
 * The laboratory's interface to a heap: what a replay needs beyond slabyard.h, and no program else.
 *
 * It drives a heap as a machine would: drains a CPU, lets periodic work and grace periods come when the kernel's came, asks for
 * memory as a page allocator does that runs short, says which pages each request gets. And it looks closely: the heap's counters
 * after each step, the caches in their order, on which node an object lies. Everything stays opaque: these are functions over
 * pointers that slabyard.h has.
 *
 * Not installed, and not in the shared library: it may change with any commit. All of it is for heaps whose calls have slots,
 * driven by one thread. Where nothing else is said a call is a few loads.
 */
#ifndef SY_LAB_H
#define SY_LAB_H

#include <slabyard/slabyard.h>

#include "spec.h"

/* ---- Looking -------------------------------------------------------------------------------------------------- */

/* The heap's own counters, which go on counting. */
const struct sy_heap_counters *sy_lab_counters(const struct sy_heap *);

/* Caches in order of creation, those that the heap made for itself too. NULL: before the first, or behind the last. */
struct sy_cache *sy_lab_cache_after(struct sy_heap *, const struct sy_cache *);
struct sy_cache *sy_lab_cache_before(struct sy_heap *, const struct sy_cache *);

/* Where an object lies. */
struct sy_lab_place {
	unsigned node, order; /* order: of its block of pages */
	bool large;           /* in pages of its own */
};
struct sy_lab_place sy_lab_place_of(const struct sy_heap *, const void *object);

/* The order of a block of environment pages. */
unsigned sy_lab_page_order(const struct sy_page *);

/* The memory node of a slot. */
unsigned sy_lab_slot_node(const struct sy_heap *, unsigned slot);

/* Bytes in slabs that are free for objects to come. False: the policy can't tell. */
bool sy_lab_unused_bytes(struct sy_heap *, uint64_t *bytes);

/* The slab that holds objects of a size. False: none does. sy_lab_has_geometry: false where slabs hold objects of any size. */
bool sy_lab_has_geometry(const struct sy_policy *);
bool sy_lab_geometry(const struct sy_policy *, const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *);

/* Where the policy tells of its searches, if a tunable has it do so. */
void sy_lab_log(struct sy_heap *, void (*log)(void *context, const char *event, const uint64_t *values, unsigned count), void *context);

/* ---- Driving -------------------------------------------------------------------------------------------------- */

/* Empties a slot's state, as if its CPU went offline. */
void sy_lab_drain(struct sy_heap *, unsigned slot);

/* When the policy's periodic work wants to run next, 0: never; and runs it, due or not. */
uint64_t sy_lab_tick_due(const struct sy_heap *);
void sy_lab_tick(struct sy_heap *);

/* Ends the longest wait for a grace period, whatever the time. False: nothing waits. */
bool sy_lab_end_grace(struct sy_heap *);

/* Asks the heap for memory, as a page allocator does that runs short. */
void sy_lab_ask(struct sy_heap *);

/* ---- Pages ---------------------------------------------------------------------------------------------------- */

/* Makes memory usable in advance that lies in what the page allocator has reserved for pages or for their descriptors, and where
 * its run of bytes begins there. Where the system refuses, whoever needs it later will find out. */
void sy_lab_commit(struct sy_pages *, const void *start, size_t bytes);

/* Who chooses the pages that requests of heaps get, by one of the two functions below; NULL: the request fails. */
struct sy_lab_placer {
	struct sy_page *(*take)(void *context, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use);
	void *context;
};

/* From now on. Before the first heap is made; both outlive the page allocator. */
void sy_lab_set_placer(struct sy_pages *, const struct sy_lab_placer *);

/* The block that begins with this frame (NULL: it is not free); any block. */
struct sy_page *sy_lab_take_at(struct sy_pages *, uint64_t frame, unsigned order, enum sy_page_use);
struct sy_page *sy_lab_take_any(struct sy_pages *, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use);

#endif
