/* <linux/rcupdate.h> for kernel code that is compiled into a program: read sections, and callbacks after a grace period. See kmem(7) and
 * library/rcu.c. */
#ifndef SLABYARD_KERNEL_LINUX_RCUPDATE_H
#define SLABYARD_KERNEL_LINUX_RCUPDATE_H

#pragma GCC system_header

#include "cleanup.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Of threads, nested at will. */
void sy__rcu_read_lock(void);
void sy__rcu_read_unlock(void);
bool sy__rcu_reads(void);
void sy__rcu_barrier(void);
void sy__call_rcu(struct rcu_head *, rcu_callback_t);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void rcu_read_lock(void)
{
	sy__rcu_read_lock();
}

static inline void rcu_read_unlock(void)
{
	sy__rcu_read_unlock();
}

static inline int rcu_read_lock_held(void)
{
	return sy__rcu_reads();
}

/* Waits for a grace period: until all present read sections have ended. */
static inline void synchronize_rcu(void)
{
	sy__rcu_barrier();
}

/* Waits until all earlier callbacks of call_rcu and kfree_rcu have run. */
static inline void rcu_barrier(void)
{
	sy__rcu_barrier();
}

/* Has the function called after a grace period, in any thread that holds no spin lock and is not in a read section. */
static inline void call_rcu(struct rcu_head *head, rcu_callback_t function)
{
	sy__call_rcu(head, function);
}

/* Whether an initialised head has since been passed to call_rcu with this function. */
static inline void rcu_head_init(struct rcu_head *head)
{
	head->func = NULL;
}

static inline bool rcu_head_after_call_rcu(struct rcu_head *head, rcu_callback_t function)
{
	return READ_ONCE(head->func) == function;
}

/* A callback below this is no function, but an offset: kvfree of what begins that many bytes before the head. */
#define SY__RCU_OFFSETS 4096

/* kfree_rcu(pointer, member), where the member is a struct rcu_head; kfree_rcu(pointer) waits. For what kfree takes: a cache's
 * object too, but not under slob, bsd44, svr4 and sunos4. There use call_rcu with a function that calls kmem_cache_free. */
#define kfree_rcu(...) SY__RCU_CHOSEN(__VA_ARGS__, SY__KVFREE_RCU_2, SY__KVFREE_RCU_1, 0)(__VA_ARGS__)
#define kvfree_rcu(...) kfree_rcu(__VA_ARGS__)
#define kfree_rcu_mightsleep(pointer) SY__KVFREE_RCU_1(pointer)
#define kvfree_rcu_mightsleep(pointer) SY__KVFREE_RCU_1(pointer)
#define kvfree_rcu_barrier() rcu_barrier()
#define SY__RCU_CHOSEN(one, two, chosen, ...) chosen
#define SY__KVFREE_RCU_2(pointer, member) \
	do { \
		__typeof__(pointer) sy__old = (pointer); \
		(void)sizeof(char[offsetof(__typeof__(*(pointer)), member) < SY__RCU_OFFSETS ? 1 : -1]); \
		if (sy__old) \
			call_rcu(&sy__old->member, (rcu_callback_t)(uintptr_t)offsetof(__typeof__(*(pointer)), member)); \
	} while (0)
#define SY__KVFREE_RCU_1(pointer) \
	do { \
		const void *sy__old = (pointer); \
		if (sy__old) { \
			synchronize_rcu(); \
			kvfree(sy__old); \
		} \
	} while (0)

#define rcu_read_lock_bh() rcu_read_lock()
#define rcu_read_unlock_bh() rcu_read_unlock()
#define rcu_read_lock_sched() rcu_read_lock()
#define rcu_read_unlock_sched() rcu_read_unlock()
#define synchronize_rcu_expedited() synchronize_rcu()
#define synchronize_net() synchronize_rcu()
#define RCU_NONIDLE(call) call
#define init_rcu_head(head) ((void)(head))

#define RCU_INITIALIZER(pointer) (pointer)
#define RCU_INIT_POINTER(place, pointer) WRITE_ONCE(place, pointer)
#define rcu_assign_pointer(place, pointer) __atomic_store_n(&(place), (pointer), __ATOMIC_RELEASE)
#define rcu_dereference(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define rcu_dereference_raw(place) rcu_dereference(place)
#define rcu_dereference_bh(place) rcu_dereference(place)
#define rcu_dereference_check(place, condition) rcu_dereference(place)
#define rcu_dereference_protected(place, condition) ((place) + 0)
#define rcu_access_pointer(place) READ_ONCE(place)
#define rcu_pointer_handoff(pointer) (pointer)
#define rcu_replace_pointer(place, pointer, condition) \
	__extension__ ({ \
		__typeof__(place) sy__was = (place); \
		rcu_assign_pointer(place, pointer); \
		sy__was; \
	})

DEFINE_LOCK_GUARD_0(rcu, rcu_read_lock(), rcu_read_unlock())

#endif
