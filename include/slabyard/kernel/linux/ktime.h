/* <linux/ktime.h> for kernel code that is compiled into a program: nanoseconds of the monotonic clock. */
#ifndef SLABYARD_KERNEL_LINUX_KTIME_H
#define SLABYARD_KERNEL_LINUX_KTIME_H

#pragma GCC system_header

#include "types.h"

typedef s64 ktime_t;

#define MSEC_PER_SEC 1000L
#define USEC_PER_MSEC 1000L
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define USEC_PER_SEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define KTIME_MAX S64_MAX

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

ktime_t sy__ktime(bool real);
void sy__sleep(u64 nanoseconds);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline ktime_t ktime_get(void) { return sy__ktime(false); }
static inline u64 ktime_get_ns(void) { return (u64)ktime_get(); }
static inline ktime_t ktime_get_real(void) { return sy__ktime(true); }
static inline u64 ktime_get_real_ns(void) { return (u64)ktime_get_real(); }
static inline s64 ktime_get_seconds(void) { return ktime_get() / NSEC_PER_SEC; }
static inline s64 ktime_get_real_seconds(void) { return ktime_get_real() / NSEC_PER_SEC; }
static inline ktime_t ktime_set(s64 seconds, unsigned long nanoseconds) { return seconds * NSEC_PER_SEC + (s64)nanoseconds; }
static inline ktime_t ns_to_ktime(u64 nanoseconds) { return (ktime_t)nanoseconds; }
static inline ktime_t ms_to_ktime(u64 milliseconds) { return (ktime_t)milliseconds * NSEC_PER_MSEC; }
static inline ktime_t us_to_ktime(u64 microseconds) { return (ktime_t)microseconds * NSEC_PER_USEC; }
static inline ktime_t ktime_add(ktime_t a, ktime_t b) { return a + b; }
static inline ktime_t ktime_sub(ktime_t a, ktime_t b) { return a - b; }
static inline ktime_t ktime_add_ns(ktime_t a, u64 nanoseconds) { return a + (ktime_t)nanoseconds; }
static inline ktime_t ktime_add_us(ktime_t a, u64 microseconds) { return a + us_to_ktime(microseconds); }
static inline ktime_t ktime_add_ms(ktime_t a, u64 milliseconds) { return a + ms_to_ktime(milliseconds); }
static inline s64 ktime_to_ns(ktime_t a) { return a; }
static inline s64 ktime_to_us(ktime_t a) { return a / NSEC_PER_USEC; }
static inline s64 ktime_to_ms(ktime_t a) { return a / NSEC_PER_MSEC; }
static inline s64 ktime_us_delta(ktime_t late, ktime_t early) { return ktime_to_us(late - early); }
static inline s64 ktime_ms_delta(ktime_t late, ktime_t early) { return ktime_to_ms(late - early); }
static inline int ktime_compare(ktime_t a, ktime_t b) { return a < b ? -1 : a > b; }
static inline bool ktime_before(ktime_t a, ktime_t b) { return a < b; }
static inline bool ktime_after(ktime_t a, ktime_t b) { return a > b; }

#endif
