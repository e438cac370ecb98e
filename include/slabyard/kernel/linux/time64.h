/* <linux/time64.h> for kernel code that is compiled into a program: times in seconds and nanoseconds. */
#ifndef SLABYARD_KERNEL_LINUX_TIME64_H
#define SLABYARD_KERNEL_LINUX_TIME64_H

#pragma GCC system_header

#include "ktime.h"

typedef s64 time64_t;
typedef u64 timeu64_t;

struct timespec64 {
	time64_t tv_sec;
	long tv_nsec;
};

static inline ktime_t timespec64_to_ktime(struct timespec64 time) { return ktime_set(time.tv_sec, (unsigned long)time.tv_nsec); }
static inline s64 timespec64_to_ns(const struct timespec64 *time) { return time->tv_sec * NSEC_PER_SEC + time->tv_nsec; }

/* With 0 to 999,999,999 nanoseconds, before 1970 too. */
static inline struct timespec64 ns_to_timespec64(s64 nanoseconds)
{
	s64 seconds = nanoseconds / NSEC_PER_SEC - (nanoseconds % NSEC_PER_SEC < 0);
	struct timespec64 time = { seconds, (long)(nanoseconds - seconds * NSEC_PER_SEC) };

	return time;
}

static inline struct timespec64 timespec64_add(struct timespec64 a, struct timespec64 b)
{
	return ns_to_timespec64(timespec64_to_ns(&a) + timespec64_to_ns(&b));
}

static inline struct timespec64 timespec64_sub(struct timespec64 a, struct timespec64 b)
{
	return ns_to_timespec64(timespec64_to_ns(&a) - timespec64_to_ns(&b));
}

static inline int timespec64_compare(const struct timespec64 *a, const struct timespec64 *b)
{
	return ktime_compare(timespec64_to_ns(a), timespec64_to_ns(b));
}

static inline int timespec64_equal(const struct timespec64 *a, const struct timespec64 *b)
{
	return !timespec64_compare(a, b);
}

#define ktime_to_timespec64(time) ns_to_timespec64(time)

#endif
