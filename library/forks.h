/* Forks of programs that use the slab API. See forks.c. */
#ifndef SY_FORKS_H
#define SY_FORKS_H

enum sy__fork { SY__FORK_BEFORE, SY__FORK_PARENT, SY__FORK_CHILD };

/* Before the first use of a lock that a fork takes, with none of them held. */
void sy__prepare_forks(void);

/* Takes the module's locks, or releases them; in the child after it has repaired what they protect. */
void sy__shrinkers_fork(enum sy__fork);
void sy__rcu_turn_fork(enum sy__fork);
void sy__rcu_queue_fork(enum sy__fork);

#endif
