/* <linux/rwsem.h> for kernel code that is compiled into a program: one who writes or many who read. */
#ifndef SLABYARD_KERNEL_LINUX_RWSEM_H
#define SLABYARD_KERNEL_LINUX_RWSEM_H

#pragma GCC system_header

#include "cleanup.h"
#include "wait.h"

/* Those who read, or -1: one who writes. */
struct rw_semaphore {
	int held;
	wait_queue_head_t wait;
};

#define __RWSEM_INITIALIZER(name) { 0, __WAIT_QUEUE_HEAD_INITIALIZER((name).wait) }
#define DECLARE_RWSEM(name) struct rw_semaphore name = __RWSEM_INITIALIZER(name)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

bool sy__rwsem_try(struct rw_semaphore *, bool write);
void sy__rwsem_take(struct rw_semaphore *, bool write);
void sy__rwsem_drop(struct rw_semaphore *, bool write);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void init_rwsem(struct rw_semaphore *lock)
{
	lock->held = 0;
	init_waitqueue_head(&lock->wait);
}

static inline void down_read(struct rw_semaphore *lock) { sy__rwsem_take(lock, false); }
static inline void down_write(struct rw_semaphore *lock) { sy__rwsem_take(lock, true); }
static inline void up_read(struct rw_semaphore *lock) { sy__rwsem_drop(lock, false); }
static inline void up_write(struct rw_semaphore *lock) { sy__rwsem_drop(lock, true); }
static inline int down_read_trylock(struct rw_semaphore *lock) { return sy__rwsem_try(lock, false); }
static inline int down_write_trylock(struct rw_semaphore *lock) { return sy__rwsem_try(lock, true); }
static inline int rwsem_is_locked(struct rw_semaphore *lock) { return READ_ONCE(lock->held) != 0; }

static inline void downgrade_write(struct rw_semaphore *lock)
{
	__atomic_store_n(&lock->held, 1, __ATOMIC_SEQ_CST);
	wake_up_all(&lock->wait);
}

static inline int __must_check down_read_killable(struct rw_semaphore *lock)
{
	down_read(lock);
	return 0;
}

static inline int __must_check down_write_killable(struct rw_semaphore *lock)
{
	down_write(lock);
	return 0;
}

#define down_read_interruptible(lock) down_read_killable(lock)
#define down_read_nested(lock, class) down_read(lock)
#define down_write_nested(lock, class) down_write(lock)
#define lockdep_assert_held_write(lock) ((void)(lock))
#define lockdep_assert_held_read(lock) ((void)(lock))

DEFINE_GUARD(rwsem_read, struct rw_semaphore *, down_read(_T), up_read(_T))
DEFINE_GUARD_COND(rwsem_read, _try, down_read_trylock(_T))
DEFINE_GUARD_COND(rwsem_read, _intr, down_read_interruptible(_T) == 0)
DEFINE_GUARD(rwsem_write, struct rw_semaphore *, down_write(_T), up_write(_T))
DEFINE_GUARD_COND(rwsem_write, _try, down_write_trylock(_T))

#endif
