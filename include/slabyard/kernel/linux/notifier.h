/*
 * <linux/notifier.h> for kernel code that is compiled into a program: functions that are called when something happens, those
 * of high priority first. The atomic chains are walked by readers of RCU, the blocking ones under their lock, the raw ones as
 * their caller sees to it.
 */
#ifndef SLABYARD_KERNEL_LINUX_NOTIFIER_H
#define SLABYARD_KERNEL_LINUX_NOTIFIER_H

#pragma GCC system_header

#include "err.h"
#include "rcupdate.h"
#include "rwsem.h"
#include "spinlock.h"

#define NOTIFY_DONE 0
#define NOTIFY_OK 1
#define NOTIFY_STOP_MASK 0x8000
#define NOTIFY_BAD (NOTIFY_STOP_MASK | 2)
#define NOTIFY_STOP (NOTIFY_OK | NOTIFY_STOP_MASK)

struct notifier_block;
typedef int (*notifier_fn_t)(struct notifier_block *, unsigned long action, void *data);

struct notifier_block {
	notifier_fn_t notifier_call;
	struct notifier_block *next;
	int priority;
};

struct raw_notifier_head {
	struct notifier_block *head;
};

struct atomic_notifier_head {
	spinlock_t lock;
	struct notifier_block *head;
};

struct blocking_notifier_head {
	struct rw_semaphore rwsem;
	struct notifier_block *head;
};

#define RAW_NOTIFIER_INIT(name) { NULL }
#define ATOMIC_NOTIFIER_INIT(name) { __SPIN_LOCK_UNLOCKED((name).lock), NULL }
#define BLOCKING_NOTIFIER_INIT(name) { __RWSEM_INITIALIZER((name).rwsem), NULL }
#define RAW_NOTIFIER_HEAD(name) struct raw_notifier_head name = RAW_NOTIFIER_INIT(name)
#define ATOMIC_NOTIFIER_HEAD(name) struct atomic_notifier_head name = ATOMIC_NOTIFIER_INIT(name)
#define BLOCKING_NOTIFIER_HEAD(name) struct blocking_notifier_head name = BLOCKING_NOTIFIER_INIT(name)
#define RAW_INIT_NOTIFIER_HEAD(chain) ((void)((chain)->head = NULL))
#define ATOMIC_INIT_NOTIFIER_HEAD(chain) (spin_lock_init(&(chain)->lock), (void)((chain)->head = NULL))
#define BLOCKING_INIT_NOTIFIER_HEAD(chain) (init_rwsem(&(chain)->rwsem), (void)((chain)->head = NULL))

/* Behind those of its priority. -EEXIST: it is there already. */
static inline int sy__notifier_add(struct notifier_block **place, struct notifier_block *block)
{
	struct notifier_block *at;

	for (at = *place; at; at = at->next)
		if (at == block)
			return -EEXIST;
	while (*place && (*place)->priority >= block->priority)
		place = &(*place)->next;
	block->next = *place;
	rcu_assign_pointer(*place, block);
	return 0;
}

static inline int sy__notifier_remove(struct notifier_block **place, struct notifier_block *block)
{
	for (; *place; place = &(*place)->next) {
		if (*place != block)
			continue;
		rcu_assign_pointer(*place, block->next);
		return 0;
	}
	return -ENOENT;
}

/* What the last that was called said. */
static inline int raw_notifier_call_chain(struct raw_notifier_head *chain, unsigned long action, void *data)
{
	struct notifier_block *at = rcu_dereference(chain->head), *next;
	int said = NOTIFY_DONE;

	for (; at && !(said & NOTIFY_STOP_MASK); at = next) {
		next = rcu_dereference(at->next);
		said = at->notifier_call(at, action, data);
	}
	return said;
}

static inline int raw_notifier_chain_register(struct raw_notifier_head *chain, struct notifier_block *block)
{
	return sy__notifier_add(&chain->head, block);
}

static inline int raw_notifier_chain_unregister(struct raw_notifier_head *chain, struct notifier_block *block)
{
	return sy__notifier_remove(&chain->head, block);
}

static inline int atomic_notifier_chain_register(struct atomic_notifier_head *chain, struct notifier_block *block)
{
	int result;

	spin_lock(&chain->lock);
	result = sy__notifier_add(&chain->head, block);
	spin_unlock(&chain->lock);
	return result;
}

/* When this has returned, nobody is in it. */
static inline int atomic_notifier_chain_unregister(struct atomic_notifier_head *chain, struct notifier_block *block)
{
	int result;

	spin_lock(&chain->lock);
	result = sy__notifier_remove(&chain->head, block);
	spin_unlock(&chain->lock);
	synchronize_rcu();
	return result;
}

static inline int atomic_notifier_call_chain(struct atomic_notifier_head *chain, unsigned long action, void *data)
{
	struct raw_notifier_head now;
	int said;

	rcu_read_lock();
	now.head = rcu_dereference(chain->head);
	said = raw_notifier_call_chain(&now, action, data);
	rcu_read_unlock();
	return said;
}

static inline int blocking_notifier_chain_register(struct blocking_notifier_head *chain, struct notifier_block *block)
{
	int result;

	down_write(&chain->rwsem);
	result = sy__notifier_add(&chain->head, block);
	up_write(&chain->rwsem);
	return result;
}

static inline int blocking_notifier_chain_unregister(struct blocking_notifier_head *chain, struct notifier_block *block)
{
	int result;

	down_write(&chain->rwsem);
	result = sy__notifier_remove(&chain->head, block);
	up_write(&chain->rwsem);
	return result;
}

static inline int blocking_notifier_call_chain(struct blocking_notifier_head *chain, unsigned long action, void *data)
{
	struct raw_notifier_head now;
	int said;

	down_read(&chain->rwsem);
	now.head = chain->head;
	said = raw_notifier_call_chain(&now, action, data);
	up_read(&chain->rwsem);
	return said;
}

static inline int notifier_from_errno(int error)
{
	return error ? NOTIFY_STOP_MASK | (NOTIFY_OK - error) : NOTIFY_OK;
}

static inline int notifier_to_errno(int said)
{
	said &= ~NOTIFY_STOP_MASK;
	return said > NOTIFY_OK ? NOTIFY_OK - said : 0;
}

#endif
