/* <linux/jiffies.h> for kernel code that is compiled into a program: ticks of a millisecond of the monotonic clock. */
#ifndef SLABYARD_KERNEL_LINUX_JIFFIES_H
#define SLABYARD_KERNEL_LINUX_JIFFIES_H

#pragma GCC system_header

#include "cache.h"
#include "kernel.h"
#include "ktime.h"
#include "math64.h"

#define HZ 1000
#define TICK_NSEC (NSEC_PER_SEC / HZ)
#define jiffies ((unsigned long)sy__jiffies())
#define jiffies_64 sy__jiffies()
#define get_jiffies_64() sy__jiffies()
#define MAX_JIFFY_OFFSET ((LONG_MAX >> 1) - 1)
#define INITIAL_JIFFIES 0UL

static inline u64 sy__jiffies(void)
{
	return (u64)ktime_get() / TICK_NSEC;
}

#define time_after(a, b) ((long)((unsigned long)(b) - (unsigned long)(a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((unsigned long)(a) - (unsigned long)(b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_in_range(a, b, c) (time_after_eq(a, b) && time_before_eq(a, c))
#define time_after64(a, b) ((s64)((u64)(b) - (u64)(a)) < 0)
#define time_before64(a, b) time_after64(b, a)
#define time_is_before_jiffies(a) time_after(jiffies, a)
#define time_is_after_jiffies(a) time_before(jiffies, a)

static inline unsigned long msecs_to_jiffies(unsigned milliseconds) { return milliseconds; }
static inline unsigned long usecs_to_jiffies(unsigned microseconds) { return (microseconds + 999UL) / 1000; }
static inline unsigned long nsecs_to_jiffies(u64 nanoseconds) { return (unsigned long)(nanoseconds / TICK_NSEC); }
static inline unsigned jiffies_to_msecs(unsigned long ticks) { return (unsigned)ticks; }
static inline unsigned jiffies_to_usecs(unsigned long ticks) { return (unsigned)ticks * 1000; }
static inline unsigned jiffies_delta_to_msecs(long ticks) { return ticks < 0 ? 0 : (unsigned)ticks; }
static inline unsigned long secs_to_jiffies(unsigned seconds) { return (unsigned long)seconds * HZ; }
static inline u64 jiffies_to_nsecs(unsigned long ticks) { return (u64)ticks * TICK_NSEC; }
static inline unsigned long round_jiffies(unsigned long ticks) { return ticks; }
static inline unsigned long round_jiffies_relative(unsigned long ticks) { return ticks; }

#endif
