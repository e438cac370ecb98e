/* <linux/srcu.h> for kernel code that is compiled into a program: readers who may sleep, which all may here. */
#ifndef SLABYARD_KERNEL_LINUX_SRCU_H
#define SLABYARD_KERNEL_LINUX_SRCU_H

#pragma GCC system_header

#include "rcupdate.h"

struct srcu_struct {
	char none;
};

#define DEFINE_SRCU(name) struct srcu_struct name
#define DEFINE_STATIC_SRCU(name) static DEFINE_SRCU(name)
#define cleanup_srcu_struct(srcu) ((void)(srcu))
#define srcu_dereference(place, srcu) rcu_dereference(place)
#define srcu_read_lock_held(srcu) rcu_read_lock_held()
#define call_srcu(srcu, head, function) ((void)(srcu), call_rcu(head, function))

static inline int init_srcu_struct(struct srcu_struct *srcu)
{
	srcu->none = 0;
	return 0;
}

static inline int srcu_read_lock(struct srcu_struct *srcu)
{
	(void)srcu;
	rcu_read_lock();
	return 0;
}

static inline void srcu_read_unlock(struct srcu_struct *srcu, int index)
{
	(void)srcu;
	(void)index;
	rcu_read_unlock();
}

static inline void synchronize_srcu(struct srcu_struct *srcu)
{
	(void)srcu;
	synchronize_rcu();
}

#define call_srcu(srcu, head, function) ((void)(srcu), call_rcu(head, function))
#define synchronize_srcu_expedited(srcu) synchronize_srcu(srcu)
#define srcu_barrier(srcu) ((void)(srcu), rcu_barrier())

DEFINE_LOCK_GUARD_1(srcu, struct srcu_struct, _T->idx = srcu_read_lock(_T->lock), srcu_read_unlock(_T->lock, _T->idx), int idx)

#endif
