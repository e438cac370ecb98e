/* <linux/delay.h> for kernel code that is compiled into a program: who waits sleeps. */
#ifndef SLABYARD_KERNEL_LINUX_DELAY_H
#define SLABYARD_KERNEL_LINUX_DELAY_H

#pragma GCC system_header

#include "jiffies.h"

static inline void msleep(unsigned milliseconds)
{
	sy__sleep((u64)milliseconds * NSEC_PER_MSEC);
}

/* No signal ends the wait. */
static inline unsigned long msleep_interruptible(unsigned milliseconds)
{
	msleep(milliseconds);
	return 0;
}

static inline void usleep_range(unsigned long least, unsigned long most)
{
	(void)most;
	sy__sleep((u64)least * NSEC_PER_USEC);
}

#define ssleep(seconds) msleep((seconds) * 1000U)
#define fsleep(microseconds) usleep_range(microseconds, microseconds)
#define ndelay(nanoseconds) sy__sleep(nanoseconds)
#define udelay(microseconds) usleep_range(microseconds, microseconds)
#define mdelay(milliseconds) msleep(milliseconds)

#endif
