/* <linux/completion.h> for kernel code that is compiled into a program: something that is waited for until it is done. */
#ifndef SLABYARD_KERNEL_LINUX_COMPLETION_H
#define SLABYARD_KERNEL_LINUX_COMPLETION_H

#pragma GCC system_header

#include "wait.h"

struct completion {
	unsigned done;
	wait_queue_head_t wait;
};

#define COMPLETION_INITIALIZER(name) { 0, __WAIT_QUEUE_HEAD_INITIALIZER((name).wait) }
#define DECLARE_COMPLETION(name) struct completion name = COMPLETION_INITIALIZER(name)
#define DECLARE_COMPLETION_ONSTACK(name) DECLARE_COMPLETION(name)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

long sy__wait_for_completion(struct completion *, long ticks);
bool sy__try_wait_for_completion(struct completion *);
void sy__complete(struct completion *, bool all);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void init_completion(struct completion *completion)
{
	completion->done = 0;
	init_waitqueue_head(&completion->wait);
}

static inline void reinit_completion(struct completion *completion)
{
	completion->done = 0;
}

/* One who waits, or the next who will, goes on; all do, from now on. */
static inline void complete(struct completion *completion) { sy__complete(completion, false); }
static inline void complete_all(struct completion *completion) { sy__complete(completion, true); }
static inline bool try_wait_for_completion(struct completion *completion) { return sy__try_wait_for_completion(completion); }
static inline bool completion_done(struct completion *completion) { return READ_ONCE(completion->done) != 0; }

static inline void wait_for_completion(struct completion *completion)
{
	sy__wait_for_completion(completion, MAX_SCHEDULE_TIMEOUT);
}

/* Ticks that are left; 0: it is not done. */
static inline unsigned long wait_for_completion_timeout(struct completion *completion, unsigned long ticks)
{
	return (unsigned long)sy__wait_for_completion(completion, (long)ticks);
}

/* No signal ends these. */
static inline int wait_for_completion_interruptible(struct completion *completion)
{
	wait_for_completion(completion);
	return 0;
}

#define wait_for_completion_killable(completion) wait_for_completion_interruptible(completion)
#define wait_for_completion_io(completion) wait_for_completion(completion)
#define wait_for_completion_interruptible_timeout(completion, ticks) ((long)wait_for_completion_timeout(completion, ticks))

#endif
