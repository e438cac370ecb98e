/* <linux/seqlock.h> for kernel code that is compiled into a program: readers who look again when somebody has written meanwhile. */
#ifndef SLABYARD_KERNEL_LINUX_SEQLOCK_H
#define SLABYARD_KERNEL_LINUX_SEQLOCK_H

#pragma GCC system_header

#include "atomic.h"
#include "spinlock.h"

#include <sched.h>

typedef struct seqcount {
	unsigned sequence;
} seqcount_t;

typedef struct {
	seqcount_t seqcount;
	spinlock_t lock;
} seqlock_t;

#define SEQCNT_ZERO(name) { 0 }
#define __SEQLOCK_UNLOCKED(name) { SEQCNT_ZERO(name), __SPIN_LOCK_UNLOCKED((name).lock) }
#define DEFINE_SEQLOCK(name) seqlock_t name = __SEQLOCK_UNLOCKED(name)

static inline void seqcount_init(seqcount_t *count)
{
	count->sequence = 0;
}

/* Even while nobody writes. */
static inline unsigned read_seqcount_begin(const seqcount_t *count)
{
	unsigned sequence;

	while ((sequence = __atomic_load_n(&count->sequence, __ATOMIC_ACQUIRE)) & 1)
		sched_yield();
	return sequence;
}

static inline int read_seqcount_retry(const seqcount_t *count, unsigned began)
{
	smp_rmb();
	return READ_ONCE(count->sequence) != began;
}

static inline void write_seqcount_begin(seqcount_t *count)
{
	__atomic_store_n(&count->sequence, count->sequence + 1, __ATOMIC_RELAXED);
	smp_wmb();
}

static inline void write_seqcount_end(seqcount_t *count)
{
	__atomic_store_n(&count->sequence, count->sequence + 1, __ATOMIC_RELEASE);
}

static inline void seqlock_init(seqlock_t *lock)
{
	seqcount_init(&lock->seqcount);
	spin_lock_init(&lock->lock);
}

static inline unsigned read_seqbegin(const seqlock_t *lock) { return read_seqcount_begin(&lock->seqcount); }
static inline int read_seqretry(const seqlock_t *lock, unsigned began) { return read_seqcount_retry(&lock->seqcount, began); }

static inline void write_seqlock(seqlock_t *lock)
{
	spin_lock(&lock->lock);
	write_seqcount_begin(&lock->seqcount);
}

static inline void write_sequnlock(seqlock_t *lock)
{
	write_seqcount_end(&lock->seqcount);
	spin_unlock(&lock->lock);
}

#define write_seqlock_irq(lock) (local_irq_disable(), write_seqlock(lock))
#define write_sequnlock_irq(lock) (write_sequnlock(lock), local_irq_enable())
#define write_seqlock_bh(lock) (local_bh_disable(), write_seqlock(lock))
#define write_sequnlock_bh(lock) (write_sequnlock(lock), local_bh_enable())
#define write_seqlock_irqsave(lock, flags) (local_irq_save(flags), write_seqlock(lock))
#define write_sequnlock_irqrestore(lock, flags) (write_sequnlock(lock), local_irq_restore(flags))

#endif
