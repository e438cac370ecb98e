/* <linux/atomic.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_ATOMIC_H
#define SLABYARD_KERNEL_LINUX_ATOMIC_H

#pragma GCC system_header

#include "types.h"

#define ATOMIC_INIT(number) { (number) }
#define ATOMIC64_INIT(number) { (number) }

#define smp_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define smp_mb__before_atomic() smp_mb()
#define smp_mb__after_atomic() smp_mb()
#define smp_load_acquire(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define smp_store_release(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
#define xchg(place, value) __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST)
#define cmpxchg(place, old, value) __sync_val_compare_and_swap(place, old, value)

/* The operations of a type of counter: that return something are full barriers, the others have no order. */
#define SY__ATOMIC(prefix, type, number) \
	static inline number prefix##_read(const type *at) { return __atomic_load_n(&at->counter, __ATOMIC_RELAXED); } \
	static inline void prefix##_set(type *at, number to) { __atomic_store_n(&at->counter, to, __ATOMIC_RELAXED); } \
	static inline void prefix##_add(number by, type *at) { __atomic_fetch_add(&at->counter, by, __ATOMIC_RELAXED); } \
	static inline void prefix##_sub(number by, type *at) { __atomic_fetch_sub(&at->counter, by, __ATOMIC_RELAXED); } \
	static inline void prefix##_or(number by, type *at) { __atomic_fetch_or(&at->counter, by, __ATOMIC_RELAXED); } \
	static inline void prefix##_and(number by, type *at) { __atomic_fetch_and(&at->counter, by, __ATOMIC_RELAXED); } \
	static inline void prefix##_inc(type *at) { prefix##_add(1, at); } \
	static inline void prefix##_dec(type *at) { prefix##_sub(1, at); } \
	static inline number prefix##_fetch_add(number by, type *at) { return __atomic_fetch_add(&at->counter, by, __ATOMIC_SEQ_CST); } \
	static inline number prefix##_fetch_sub(number by, type *at) { return __atomic_fetch_sub(&at->counter, by, __ATOMIC_SEQ_CST); } \
	static inline number prefix##_fetch_inc(type *at) { return prefix##_fetch_add(1, at); } \
	static inline number prefix##_fetch_dec(type *at) { return prefix##_fetch_sub(1, at); } \
	static inline number prefix##_add_return(number by, type *at) { return __atomic_add_fetch(&at->counter, by, __ATOMIC_SEQ_CST); } \
	static inline number prefix##_sub_return(number by, type *at) { return __atomic_sub_fetch(&at->counter, by, __ATOMIC_SEQ_CST); } \
	static inline number prefix##_inc_return(type *at) { return prefix##_add_return(1, at); } \
	static inline number prefix##_dec_return(type *at) { return prefix##_sub_return(1, at); } \
	static inline bool prefix##_sub_and_test(number by, type *at) { return prefix##_sub_return(by, at) == 0; } \
	static inline bool prefix##_inc_and_test(type *at) { return prefix##_inc_return(at) == 0; } \
	static inline bool prefix##_dec_and_test(type *at) { return prefix##_dec_return(at) == 0; } \
	static inline bool prefix##_add_negative(number by, type *at) { return prefix##_add_return(by, at) < 0; } \
	static inline number prefix##_xchg(type *at, number to) { return __atomic_exchange_n(&at->counter, to, __ATOMIC_SEQ_CST); } \
	static inline number prefix##_cmpxchg(type *at, number old, number to) \
	{ \
		__atomic_compare_exchange_n(&at->counter, &old, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		return old; \
	} \
	static inline number prefix##_fetch_add_unless(type *at, number by, number unless) \
	{ \
		number old = prefix##_read(at), sum; /* which goes round at the end */ \
		do \
			(void)__builtin_add_overflow(old, by, &sum); \
		while (old != unless && \
		       !__atomic_compare_exchange_n(&at->counter, &old, sum, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
		return old; \
	} \
	static inline bool prefix##_add_unless(type *at, number by, number unless) \
	{ \
		return prefix##_fetch_add_unless(at, by, unless) != unless; \
	} \
	static inline bool prefix##_inc_not_zero(type *at) { return prefix##_add_unless(at, 1, 0); } \
	static inline number prefix##_dec_if_positive(type *at) \
	{ \
		number old = prefix##_read(at); \
		while (old > 0 && \
		       !__atomic_compare_exchange_n(&at->counter, &old, old - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) \
			; \
		return old - 1; \
	}

SY__ATOMIC(atomic, atomic_t, int)
SY__ATOMIC(atomic64, atomic64_t, s64)

/* As wide as a long. */
typedef struct {
	long counter;
} atomic_long_t;

#define ATOMIC_LONG_INIT(number) { (number) }

SY__ATOMIC(atomic_long, atomic_long_t, long)

#endif
