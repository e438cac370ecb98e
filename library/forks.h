/* Forks of programs with kernel code: which locks one takes before, and how its child goes on. See forks.c. */
#ifndef SY_FORKS_H
#define SY_FORKS_H

enum sy__fork { SY__FORK_BEFORE, SY__FORK_PARENT, SY__FORK_CHILD };

/* Before the first use of a lock that a fork takes, outside of all of them. */
void sy__prepare_forks(void);

/* What has locks: takes them, or gives them up, in the child in a state that it can go on with. */
void sy__shrinkers_fork(enum sy__fork);
void sy__rcu_turn_fork(enum sy__fork);
void sy__percpu_fork(enum sy__fork);
void sy__works_fork(enum sy__fork);
void sy__timers_fork(enum sy__fork);
void sy__rcu_queue_fork(enum sy__fork);

#endif
