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

/* With the lock that keeps other writers away, which nobody looks at. */
typedef seqcount_t seqcount_spinlock_t;
typedef seqcount_t seqcount_raw_spinlock_t;
typedef seqcount_t seqcount_rwlock_t;
typedef seqcount_t seqcount_mutex_t;

typedef struct {
	seqcount_t seqcount;
	spinlock_t lock;
} seqlock_t;

#define SEQCNT_ZERO(name) { 0 }
#define SEQCNT_SPINLOCK_ZERO(name, lock) SEQCNT_ZERO(name)
#define SEQCNT_RAW_SPINLOCK_ZERO(name, lock) SEQCNT_ZERO(name)
#define SEQCNT_RWLOCK_ZERO(name, lock) SEQCNT_ZERO(name)
#define SEQCNT_MUTEX_ZERO(name, lock) SEQCNT_ZERO(name)
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

#define seqcount_spinlock_init(count, lock) ((void)(lock), seqcount_init(count))
#define seqcount_raw_spinlock_init(count, lock) seqcount_spinlock_init(count, lock)
#define seqcount_rwlock_init(count, lock) seqcount_spinlock_init(count, lock)
#define seqcount_mutex_init(count, lock) seqcount_spinlock_init(count, lock)
#define raw_read_seqcount_begin(count) read_seqcount_begin(count)
#define __read_seqcount_begin(count) read_seqcount_begin(count)
#define __read_seqcount_retry(count, began) read_seqcount_retry(count, began)
#define raw_write_seqcount_begin(count) write_seqcount_begin(count)
#define raw_write_seqcount_end(count) write_seqcount_end(count)

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

/* Who reads once, and keeps writers away. */
static inline void read_seqlock_excl(seqlock_t *lock) { spin_lock(&lock->lock); }
static inline void read_sequnlock_excl(seqlock_t *lock) { spin_unlock(&lock->lock); }

#define write_seqlock_irq(lock) (local_irq_disable(), write_seqlock(lock))
#define write_sequnlock_irq(lock) (write_sequnlock(lock), local_irq_enable())
#define write_seqlock_bh(lock) (local_bh_disable(), write_seqlock(lock))
#define write_sequnlock_bh(lock) (write_sequnlock(lock), local_bh_enable())
#define write_seqlock_irqsave(lock, flags) (local_irq_save(flags), write_seqlock(lock))
#define write_sequnlock_irqrestore(lock, flags) (write_sequnlock(lock), local_irq_restore(flags))

#endif
