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
#define mb() smp_mb()
#define rmb() smp_rmb()
#define wmb() smp_wmb()
#define smp_mb__before_atomic() smp_mb()
#define smp_mb__after_atomic() smp_mb()
#define smp_load_acquire(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
#define smp_store_release(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
#define xchg(place, value) __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST)
#define xchg_relaxed(place, value) __atomic_exchange_n(place, value, __ATOMIC_RELAXED)
#define xchg_acquire(place, value) __atomic_exchange_n(place, value, __ATOMIC_ACQUIRE)
#define xchg_release(place, value) __atomic_exchange_n(place, value, __ATOMIC_RELEASE)
#define cmpxchg(place, old, value) __sync_val_compare_and_swap(place, old, value)
#define cmpxchg_relaxed(place, old, value) cmpxchg(place, old, value)
#define cmpxchg_acquire(place, old, value) cmpxchg(place, old, value)
#define cmpxchg_release(place, old, value) cmpxchg(place, old, value)
#define cmpxchg64(place, old, value) cmpxchg(place, old, value)

/* True: it was *old; else *old is what it is. */
#define try_cmpxchg(place, old, value) __atomic_compare_exchange_n(place, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define try_cmpxchg_relaxed(place, old, value) \
	__atomic_compare_exchange_n(place, old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define try_cmpxchg_acquire(place, old, value) \
	__atomic_compare_exchange_n(place, old, value, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)
#define try_cmpxchg_release(place, old, value) \
	__atomic_compare_exchange_n(place, old, value, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)
#define try_cmpxchg64(place, old, value) try_cmpxchg(place, old, value)

/* Those operations of a type of counter that return what was or is; in an order, which is also that of one that fails. */
#define SY__ATOMIC_ORDERED(prefix, type, number, form, order, failed) \
	static inline number prefix##_fetch_add##form(number by, type *at) { return __atomic_fetch_add(&at->counter, by, order); } \
	static inline number prefix##_fetch_sub##form(number by, type *at) { return __atomic_fetch_sub(&at->counter, by, order); } \
	static inline number prefix##_fetch_or##form(number by, type *at) { return __atomic_fetch_or(&at->counter, by, order); } \
	static inline number prefix##_fetch_and##form(number by, type *at) { return __atomic_fetch_and(&at->counter, by, order); } \
	static inline number prefix##_fetch_xor##form(number by, type *at) { return __atomic_fetch_xor(&at->counter, by, order); } \
	static inline number prefix##_fetch_andnot##form(number by, type *at) { return prefix##_fetch_and##form(~by, at); } \
	static inline number prefix##_fetch_inc##form(type *at) { return prefix##_fetch_add##form(1, at); } \
	static inline number prefix##_fetch_dec##form(type *at) { return prefix##_fetch_sub##form(1, at); } \
	static inline number prefix##_add_return##form(number by, type *at) { return __atomic_add_fetch(&at->counter, by, order); } \
	static inline number prefix##_sub_return##form(number by, type *at) { return __atomic_sub_fetch(&at->counter, by, order); } \
	static inline number prefix##_inc_return##form(type *at) { return prefix##_add_return##form(1, at); } \
	static inline number prefix##_dec_return##form(type *at) { return prefix##_sub_return##form(1, at); } \
	static inline number prefix##_xchg##form(type *at, number to) { return __atomic_exchange_n(&at->counter, to, order); } \
	static inline bool prefix##_try_cmpxchg##form(type *at, number *old, number to) \
	{ \
		return __atomic_compare_exchange_n(&at->counter, old, to, false, order, failed); \
	} \
	static inline number prefix##_cmpxchg##form(type *at, number old, number to) \
	{ \
		prefix##_try_cmpxchg##form(at, &old, to); \
		return old; \
	}

/* The operations of a type of counter: that return something are full barriers unless named otherwise, the others have no order. */
#define SY__ATOMIC(prefix, type, number) \
	SY__ATOMIC_ORDERED(prefix, type, number, , __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) \
	SY__ATOMIC_ORDERED(prefix, type, number, _relaxed, __ATOMIC_RELAXED, __ATOMIC_RELAXED) \
	SY__ATOMIC_ORDERED(prefix, type, number, _acquire, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE) \
	SY__ATOMIC_ORDERED(prefix, type, number, _release, __ATOMIC_RELEASE, __ATOMIC_RELAXED) \
	static inline number prefix##_read(const type *at) { return __atomic_load_n(&at->counter, __ATOMIC_RELAXED); } \
	static inline number prefix##_read_acquire(const type *at) { return __atomic_load_n(&at->counter, __ATOMIC_ACQUIRE); } \
	static inline void prefix##_set(type *at, number to) { __atomic_store_n(&at->counter, to, __ATOMIC_RELAXED); } \
	static inline void prefix##_set_release(type *at, number to) { __atomic_store_n(&at->counter, to, __ATOMIC_RELEASE); } \
	static inline void prefix##_xor(number by, type *at) { __atomic_fetch_xor(&at->counter, by, __ATOMIC_RELAXED); } \
	static inline void prefix##_andnot(number by, type *at) { __atomic_fetch_and(&at->counter, ~by, __ATOMIC_RELAXED); } \
	static inline void prefix##_add(number by, type *at) { __atomic_fetch_add(&at->counter, by, __ATOMIC_RELAXED); } \
	static inline void prefix##_sub(number by, type *at) { __atomic_fetch_sub(&at->counter, by, __ATOMIC_RELAXED); } \
	static inline void prefix##_or(number by, type *at) { __atomic_fetch_or(&at->counter, by, __ATOMIC_RELAXED); } \
	static inline void prefix##_and(number by, type *at) { __atomic_fetch_and(&at->counter, by, __ATOMIC_RELAXED); } \
	static inline void prefix##_inc(type *at) { prefix##_add(1, at); } \
	static inline void prefix##_dec(type *at) { prefix##_sub(1, at); } \
	static inline bool prefix##_sub_and_test(number by, type *at) { return prefix##_sub_return(by, at) == 0; } \
	static inline bool prefix##_inc_and_test(type *at) { return prefix##_inc_return(at) == 0; } \
	static inline bool prefix##_dec_and_test(type *at) { return prefix##_dec_return(at) == 0; } \
	static inline bool prefix##_add_negative(number by, type *at) { return prefix##_add_return(by, at) < 0; } \
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
	static inline bool prefix##_inc_unless_negative(type *at) \
	{ \
		number old = prefix##_read(at), sum; \
		do \
			(void)__builtin_add_overflow(old, 1, &sum); \
		while (old >= 0 && !prefix##_try_cmpxchg(at, &old, sum)); \
		return old >= 0; \
	} \
	static inline bool prefix##_dec_unless_positive(type *at) \
	{ \
		number old = prefix##_read(at), sum; \
		do \
			(void)__builtin_sub_overflow(old, 1, &sum); \
		while (old <= 0 && !prefix##_try_cmpxchg(at, &old, sum)); \
		return old <= 0; \
	} \
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
