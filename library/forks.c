/*
 * Forks. A child has one thread: a lock that another one held stays held there for good, and what another one was about to do is
 * never done. So the forking thread takes the locks of all that kernel code has here, and the child finds them free.
 *
 * Order. Whoever has a lock of the list below may wait for a later one, never for an earlier one: shrinkers are called with
 * theirs and may use everything else; those whom the turn of RCU lets call functions as well, though what may sleep is not for
 * them; and what is left for RCU may come from anywhere. The heap's own locks come after all of these, as its handlers were
 * there first (core/platform/threads.c) and are therefore called last.
 *
 * A program that is linked statically has only those of the list that it uses.
 */
#include "forks.h"

#include <pthread.h>
#include <stddef.h>

void sy__shrinkers_fork(enum sy__fork) __attribute__((weak));
void sy__rcu_turn_fork(enum sy__fork) __attribute__((weak));
void sy__percpu_fork(enum sy__fork) __attribute__((weak));
void sy__works_fork(enum sy__fork) __attribute__((weak));
void sy__timers_fork(enum sy__fork) __attribute__((weak));
void sy__rcu_queue_fork(enum sy__fork) __attribute__((weak));

static void (*const in_order[])(enum sy__fork) = {
	sy__shrinkers_fork, sy__rcu_turn_fork, sy__percpu_fork, sy__works_fork, sy__timers_fork, sy__rcu_queue_fork,
};

#define COUNT (sizeof(in_order) / sizeof(in_order[0]))

static void before_fork(void)
{
	for (size_t i = 0; i < COUNT; i++)
		if (in_order[i])
			in_order[i](SY__FORK_BEFORE);
}

static void after_fork(enum sy__fork where)
{
	for (size_t i = COUNT; i--;)
		if (in_order[i])
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
