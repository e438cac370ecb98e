/*
 * <linux/percpu_counter.h> for kernel code that is compiled into a program: counters that many write and few read. Here they
 * are one number, which is exact at any time, so a read and a sum are the same, and a batch is not looked at.
 */
#ifndef SLABYARD_KERNEL_LINUX_PERCPU_COUNTER_H
#define SLABYARD_KERNEL_LINUX_PERCPU_COUNTER_H

#pragma GCC system_header

#include "percpu.h"
#include "types.h"

struct percpu_counter {
	s64 count;
};

static inline int percpu_counter_init(struct percpu_counter *counter, s64 amount, gfp_t flags)
{
	(void)flags;
	counter->count = amount;
	return 0;
}

static inline void percpu_counter_destroy(struct percpu_counter *counter)
{
	(void)counter;
}

static inline bool percpu_counter_initialized(const struct percpu_counter *counter)
{
	return counter != NULL;
}

static inline void percpu_counter_set(struct percpu_counter *counter, s64 amount)
{
	__atomic_store_n(&counter->count, amount, __ATOMIC_RELAXED);
}

static inline void percpu_counter_add(struct percpu_counter *counter, s64 amount)
{
	__atomic_fetch_add(&counter->count, amount, __ATOMIC_RELAXED);
}

static inline s64 percpu_counter_read(const struct percpu_counter *counter)
{
	return __atomic_load_n(&counter->count, __ATOMIC_RELAXED);
}

static inline s64 percpu_counter_read_positive(const struct percpu_counter *counter)
{
	s64 count = percpu_counter_read(counter);

	return count < 0 ? 0 : count;
}

static inline int percpu_counter_compare(const struct percpu_counter *counter, s64 with)
{
	s64 count = percpu_counter_read(counter);

	return count < with ? -1 : count > with;
}

/* Adds what does not carry the sum beyond the limit, up or, with a negative amount, down; false: nothing was added. */
static inline bool percpu_counter_limited_add(struct percpu_counter *counter, s64 limit, s64 amount)
{
	s64 count = percpu_counter_read(counter);

	do {
		if (amount > 0 ? count > limit - amount : amount < 0 && count < limit - amount)
			return false;
	} while (!__atomic_compare_exchange_n(&counter->count, &count, count + amount, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

#define percpu_counter_add_batch(counter, amount, batch) ((void)(batch), percpu_counter_add(counter, amount))
#define percpu_counter_add_local(counter, amount) percpu_counter_add(counter, amount)
#define percpu_counter_sub(counter, amount) percpu_counter_add(counter, -(s64)(amount))
#define percpu_counter_sub_local(counter, amount) percpu_counter_sub(counter, amount)
#define percpu_counter_inc(counter) percpu_counter_add(counter, 1)
#define percpu_counter_dec(counter) percpu_counter_add(counter, -1)
#define percpu_counter_sum(counter) percpu_counter_read(counter)
#define percpu_counter_sum_positive(counter) percpu_counter_read_positive(counter)
#define percpu_counter_sync(counter) ((void)(counter))

#endif
