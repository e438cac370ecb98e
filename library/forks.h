/* Forks of programs that use the slab API. See forks.c. */
#ifndef SY_FORKS_H
#define SY_FORKS_H

enum sy__fork { SY__FORK_BEFORE, SY__FORK_PARENT, SY__FORK_CHILD };

/* Registers the handlers. To be called before the first use of a lock that a fork takes, with none of them held. */
void sy__prepare_forks(void);

/* Takes a module's locks before a fork, or releases them after it; in the child it first repairs what they protect. */
void sy__shrinkers_fork(enum sy__fork);
void sy__rcu_advance_fork(enum sy__fork);
void sy__rcu_queue_fork(enum sy__fork);

#endif
