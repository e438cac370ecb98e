/*
 * <linux/timekeeping.h> for kernel code that is compiled into a program: what clocks say now. Time that the machine slept is
 * not looked at.
 */
#ifndef SLABYARD_KERNEL_LINUX_TIMEKEEPING_H
#define SLABYARD_KERNEL_LINUX_TIMEKEEPING_H

#pragma GCC system_header

#include "time64.h"

static inline void ktime_get_ts64(struct timespec64 *time) { *time = ns_to_timespec64(ktime_get()); }
static inline void ktime_get_real_ts64(struct timespec64 *time) { *time = ns_to_timespec64(ktime_get_real()); }

#define ktime_get_raw() ktime_get()
#define ktime_get_raw_ns() ktime_get_ns()
#define ktime_get_boottime() ktime_get()
#define ktime_get_boottime_ns() ktime_get_ns()
#define ktime_get_boottime_seconds() ktime_get_seconds()
#define ktime_get_mono_fast_ns() ktime_get_ns()
#define ktime_get_coarse_ns() ktime_get_ns()
#define ktime_get_coarse_real_ts64(time) ktime_get_real_ts64(time)

#endif
