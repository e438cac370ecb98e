/* <linux/once.h> for kernel code that is compiled into a program: what is done once for each place in the source. */
#ifndef SLABYARD_KERNEL_LINUX_ONCE_H
#define SLABYARD_KERNEL_LINUX_ONCE_H

#pragma GCC system_header

#include "random.h"
#include "spinlock.h"

/* Others may go on before the first has done. The value of the second is that of its condition. */
#define DO_ONCE_LITE(call, ...) DO_ONCE_LITE_IF(true, call, ##__VA_ARGS__)
#define DO_ONCE_LITE_IF(condition, call, ...) \
	__extension__ ({ \
		static bool sy__done; \
		bool sy__asked = !!(condition); \
		if (sy__asked && !__atomic_exchange_n(&sy__done, 1, __ATOMIC_RELAXED)) \
			call(__VA_ARGS__); \
		sy__asked; \
	})

/* Nobody goes on before it is done. */
#define DO_ONCE(call, ...) \
	__extension__ ({ \
		static DEFINE_SPINLOCK(sy__once); \
		static bool sy__done; \
		bool sy__first = false; \
		if (!__atomic_load_n(&sy__done, __ATOMIC_ACQUIRE)) { \
			spin_lock(&sy__once); \
			sy__first = !sy__done; \
			if (sy__first) { \
				call(__VA_ARGS__); \
				__atomic_store_n(&sy__done, 1, __ATOMIC_RELEASE); \
			} \
			spin_unlock(&sy__once); \
		} \
		sy__first; \
	})

#define get_random_once(into, count) DO_ONCE(get_random_bytes, into, count)
#define get_random_sleepable_once(into, count) get_random_once(into, count)

#endif
