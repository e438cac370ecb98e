/*
 * The platform for a Linux kernel. See core/platform.h for the contract.
 *
 * Slots. CPU C has two slots, C and C plus the number of CPUs; only the first where there are no quick calls (adapter.c). The port calls
 * the core with interrupts off from the beginning of a call to its end. Nothing else runs on that CPU meanwhile, so local sections
 * are empty. No call sleeps. Work on all slots at once runs while the other CPUs wait with their interrupts off
 * (sy__everybody_waits), or on each CPU in turn, as a task that touches its own slots alone.
 *
 * Locks are the kernel's spinlocks in their architecture's form, without preemption or lockdep. Interrupts are off when one is
 * taken, zeroed memory is a free lock, and on one processor there is none.
 *
 * Time is in jiffies, which run from the first allocation on, long before the kernel keeps time.
 *
 * 64-bit words use the machine's own compare-and-exchange, with acquire and release as core/policies/node.h needs it. So the
 * port is for 64-bit kernels only.
 *
 * Memory. Pages are the kernel's (descriptor.h, pages.c), and there is no address space to reserve. So the page map and the per-slot
 * areas of heaps of threads (core/backend/page_map.h, core/backend/slot_areas.h) do not exist, and a kernel's heap is no heap of
 * threads. The exact page accounting of core/pages/ does not apply: free pages, and those of others, are the kernel's affair. A
 * heap's own counters of its pages are right after sy__linux_pages_count.
 */
#ifndef SY_PLATFORM_LINUX_H
#define SY_PLATFORM_LINUX_H

#include <linux/compiler.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#undef kmalloc /* since 6.10 a macro; here a member of the core's structures */

#ifndef CONFIG_64BIT
#error "slabyard's port needs a 64-bit kernel"
#endif

typedef struct {
	arch_spinlock_t raw;
} sy__lock_t;

#define SY__LOCK_INIT { .raw = __ARCH_SPIN_LOCK_UNLOCKED }

static inline void sy__lock(sy__lock_t *lock)
{
	arch_spin_lock(&lock->raw);
}

static inline bool sy__lock_try(sy__lock_t *lock)
{
	return arch_spin_trylock(&lock->raw);
}

static inline void sy__unlock(sy__lock_t *lock)
{
	arch_spin_unlock(&lock->raw);
}

static inline void sy__local_begin(unsigned slot)
{
}

static inline void sy__local_end(unsigned slot)
{
}

static inline uint64_t sy__load64(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline bool sy__swap64(uint64_t *word, uint64_t *guess, uint64_t value)
{
	return __atomic_compare_exchange_n(word, guess, value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

#define SY__DUMMY_OFFSET ((ptrdiff_t)-4096)

/* All other CPUs wait for this one, with their interrupts off: what makes them wait orders everything. */
extern bool sy__everybody_waits;

static inline bool sy__slot_mine(unsigned slot)
{
	unsigned cpu = raw_smp_processor_id();

	return slot == cpu || slot == cpu + nr_cpu_ids || READ_ONCE(sy__everybody_waits);
}

static inline bool sy__slot_unowned(unsigned slot)
{
	return false;
}

static inline ptrdiff_t sy__call_slot_offset(void)
{
	return (ptrdiff_t)raw_smp_processor_id() * 4096;
}

static inline ptrdiff_t sy__call_begin(void)
{
	return sy__call_slot_offset();
}

static inline bool sy__call_begin_with(const void *object)
{
	return false;
}

static inline const void *sy__call_noted(const void *from)
{
	return NULL;
}

static inline void *sy__call_from(void)
{
	return NULL;
}

static inline void sy__call_note(const void *object, void *from)
{
}

static inline void sy__call_end(void)
{
}

static inline bool sy__call_enter(unsigned *slot)
{
	*slot = raw_smp_processor_id();
	return true;
}

static inline void sy__call_leave(void)
{
}

static inline unsigned sy__calls(void)
{
	return 1;
}

static inline unsigned sy__calls_more(void)
{
	return 1;
}

static inline bool sy__watch(bool on)
{
	return false;
}

static inline bool sy__stop_enter(unsigned *slot)
{
	return sy__call_enter(slot);
}

static inline bool sy__stop_enter_soon(unsigned *slot)
{
	return sy__call_enter(slot);
}

static inline void sy__stop_leave(void)
{
}

/* A kernel's constructor takes the object alone; kernels that check the type of what is called (CFI) insist on it. */
#define sy__construct(constructor, object, bytes) (((void (*)(void *))(void *)(constructor))(object), (void)(bytes))

/* Others' slots are reached by the adapter, before the call. */
static inline void sy__signals_learn(void)
{
}

static inline void sy__fast_calls_lock(void)
{
}

static inline bool sy__stop_try(void)
{
	return false;
}

static inline void sy__stop_end(void)
{
}

static inline void sy__on_slot_end(void (*function)(unsigned slot))
{
}

static inline unsigned sy__thread_slots(void)
{
	return 1;
}

static inline bool sy__thread_slots_reduce(unsigned most)
{
	(void)most;
	return false;
}

static inline unsigned sy__slots_high(void)
{
	return 2 * nr_cpu_ids;
}

static inline uint64_t sy__random(void)
{
	return get_random_u64();
}

static inline const void *sy__caller(void)
{
	return (const void *)(uintptr_t)(raw_smp_processor_id() + 1);
}

static inline unsigned sy__cpus(void)
{
	return nr_cpu_ids;
}

static inline uint64_t sy__now(void)
{
	return jiffies64_to_nsecs(get_jiffies_64());
}

static inline void *sy__source_reserve(size_t bytes)
{
	return NULL;
}

static inline int sy__source_commit(void *p, size_t bytes)
{
	return -1;
}

static inline void sy__source_discard(void *p, size_t bytes)
{
}

static inline void sy__source_withdraw(void *p, size_t bytes)
{
}

static inline void sy__source_prefer_huge(void *p, size_t bytes)
{
}

static inline void sy__source_prefer_small(void *p, size_t bytes)
{
}

static inline bool sy__source_has(const void *p, size_t bytes, size_t least)
{
	return true;
}

static inline bool sy__source_allows(size_t bytes)
{
	return true;
}

static inline void sy__source_release(void *p, size_t bytes)
{
}

static inline bool sy__source_reserve_at(void *p, size_t bytes)
{
	return false;
}

static inline void sy__copy(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

static inline void sy__fill(void *to, int byte, size_t bytes)
{
	memset(to, byte, bytes);
}

static inline bool sy__same(const void *a, const void *b, size_t bytes)
{
	return memcmp(a, b, bytes) == 0;
}

#endif
