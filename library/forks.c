/*
 * Forks of programs that use the slab API.
 *
 * A child has one thread. A lock that another thread held at the fork would stay held for ever, and what that thread was about to
 * do would never be done. So the forking thread takes all locks of the slab API before the fork, and the child finds them free.
 *
 * Order. A thread that holds a lock of the list below may wait for a later one, never for an earlier one. Shrinkers run with their
 * lock held and may use everything else. RCU callbacks run with rcu.advance_lock held and may queue more. The heap's own locks
 * come last: its handlers were registered first (core/platform/fork.c), and pthread_atfork runs the handlers before a fork in
 * reverse order. These handlers are registered by the first call of the slab API. A fork beside that very call does not take
 * the locks.
 */
#include "forks.h"

#include <pthread.h>
#include <stddef.h>

static void (*const in_order[])(enum sy__fork) = { sy__shrinkers_fork, sy__rcu_advance_fork, sy__rcu_queue_fork };

#define COUNT (sizeof(in_order) / sizeof(in_order[0]))

static void before_fork(void)
{
	for (size_t i = 0; i < COUNT; i++)
		in_order[i](SY__FORK_BEFORE);
}

static void after_fork(enum sy__fork where)
{
	for (size_t i = COUNT; i--;)
		in_order[i](where);
}

static void in_parent(void)
{
	after_fork(SY__FORK_PARENT);
}

static void in_child(void)
{
	after_fork(SY__FORK_CHILD);
}

static void prepare(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

void sy__prepare_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, prepare);
}
