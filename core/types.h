/*
 * Every noun of slabyard, once.
 *
 *   page, order       SY_PAGE_SIZE bytes; 2^order contiguous, naturally aligned pages.
 *   page allocator    hands out 2^order pages (struct sy_pages, private to core/pages/; policies see page_interface.h).
 *   policy            one allocation algorithm: a table of functions (struct sy_policy), with tunables.
 *   heap              a policy at work on a page allocator (struct sy_heap). Several heaps may share one page allocator.
 *   cache             objects of one kind in a heap (struct sy_cache).
 *   slab, object      pages carved into objects; what the client holds.
 *   CPU slot          the owner of per-CPU state, 0 to sy_heap.slots - 1: a logical CPU in a replay, a thread in a
 *                     program, a CPU in a kernel. A caller passes the slot that it runs on, or calls a function without
 *                     slots, which runs on the calling thread's ("this slot").
 *   pretrace page     in use since before the trace began, by an owner that nobody recorded.
 *
 * Memory accounting is exact. Every page of the reserved range is ungrown, free, in a slab, in a large allocation, in metadata or
 * used by the environment of the heaps (enum sy_page_use); sy_pages_check() and sy_heap_check() verify the sums.
 *
 * Lock order. A lock may be taken only while holding locks that stand above it:
 *
 *   0. heaps of threads       the list of them (core/this_slot.c); sy_heap.making: creation and destruction of caches
 *   1. sy_heap.lock           the list of caches, creation, destruction and merging of caches
 *   2. a policy's own locks   for each policy in the opening comment of its file (slub: node list; slob: the one lock)
 *      sy__debug.lock         records of objects (core/debug/debug.h); not held with a policy's
 *   3. sy_heap.deferred_lock  the deferred queue
 *      sy_heap.metadata.lock  the free lists of heap metadata
 *      sy_heap.slot_areas_lock    per-slot areas (core/backend/slot_areas.c)
 *   4. per-CPU page list      one for each zone and slot (core/pages/)
 *      decay                  decay of free memory (core/backend/decay.c)
 *   5. zone                   free lists and counters of one zone (core/pages/)
 *   6. memory source          growth of the page allocator (core/pages/)
 *   7. remapping              under a filter of system calls (core/platform/source.c)
 *
 * When the page allocator asks heaps for memory it holds none of levels 1 to 7. Only its list of heaps is locked, above them.
 */
#ifndef SY_TYPES_H
#define SY_TYPES_H

#include <slabyard/slabyard.h>

#include "platform.h"

/* In heaps of threads, which have the dummy slot too: at most, where addresses or data are few, and where they are fewest. Each of these
 * limits leaves room for the state of so many slots. See sy__thread_slots. */
#define SY_FEW_ADDRESSES ((uint64_t)1 << 30) /* bytes */
#define SY_FEW_THREAD_SLOTS 255u
#define SY_FEWEST_ADDRESSES ((uint64_t)1 << 25)
#define SY_FEWEST_THREAD_SLOTS 16u
#ifndef SY_THREAD_SLOTS
#define SY_THREAD_SLOTS (sizeof(void *) > 4 ? 1023u : 511u)
#endif
#define SY_SHARED_SLOTS 32u /* of them, for threads beyond: slot 0 and the last ones; of the fewest only slot 0 */
#ifndef SY_WARM_SLOTS
#define SY_WARM_SLOTS 9u /* the first slots, in which a thread that ends may leave things for the next owner; slot 0 has none */
#endif
#define SY_SLOT_STRIDE ((size_t)4096) /* bytes from one slot's state to the next one's, in heaps of threads; see core/backend/slot_areas.c */

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

/* A time that is set under a lock and read without it. It takes two words on 32-bit machines, whose atomic operations are for single
 * words; a reader may then get one half of an old time and one of a new one. Relaxed: the time only tells when taking the lock is
 * worth it, and no other memory depends on it. */
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

/* ---- The rest ----------------------------------------------------------------------------------------------------- */

#include "policy.h" /* the policy contract */

#include "heap.h" /* heaps and caches */

#endif
