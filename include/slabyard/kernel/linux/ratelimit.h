/*
 * <linux/ratelimit.h> for kernel code that is compiled into a program: some lines in each interval, and no more. Those left out
 * are counted, in missed.
 */
#ifndef SLABYARD_KERNEL_LINUX_RATELIMIT_H
#define SLABYARD_KERNEL_LINUX_RATELIMIT_H

#pragma GCC system_header

#include "jiffies.h"
#include "printk.h"
#include "spinlock.h"

#define DEFAULT_RATELIMIT_INTERVAL (5 * HZ)
#define DEFAULT_RATELIMIT_BURST 10

struct ratelimit_state {
	spinlock_t lock;
	int interval, burst, printed, missed;
	unsigned long begin; /* 0: not begun */
};

#define RATELIMIT_STATE_INIT(name, interval, burst) { __SPIN_LOCK_UNLOCKED((name).lock), interval, burst, 0, 0, 0 }
#define DEFINE_RATELIMIT_STATE(name, interval, burst) \
	struct ratelimit_state name = RATELIMIT_STATE_INIT(name, interval, burst)

static inline void ratelimit_state_init(struct ratelimit_state *state, int interval, int burst)
{
	*state = (struct ratelimit_state)RATELIMIT_STATE_INIT(*state, interval, burst);
}

static inline void ratelimit_default_init(struct ratelimit_state *state)
{
	ratelimit_state_init(state, DEFAULT_RATELIMIT_INTERVAL, DEFAULT_RATELIMIT_BURST);
}

/* 1: go ahead. An interval of 0 sets no limit. */
static inline int __ratelimit(struct ratelimit_state *state)
{
	unsigned long now = jiffies | 1;
	int granted = 1;

	if (!state->interval)
		return 1;
	spin_lock(&state->lock);
	if (!state->begin || time_after(now, state->begin + (unsigned long)state->interval)) {
		state->begin = now;
		state->printed = 0;
	}
	if (state->printed < state->burst) {
		state->printed++;
	} else {
		state->missed++;
		granted = 0;
	}
	spin_unlock(&state->lock);
	return granted;
}

#define WARN_ON_RATELIMIT(condition, state) WARN_ON((condition) && __ratelimit(state))

#endif
