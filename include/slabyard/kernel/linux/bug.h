/* <linux/bug.h> for kernel code that is compiled into a program: a BUG ends it, a WARN is told on standard error. */
#ifndef SLABYARD_KERNEL_LINUX_BUG_H
#define SLABYARD_KERNEL_LINUX_BUG_H

#pragma GCC system_header

#include "build_bug.h"
#include "compiler.h"
#include "printk.h"

#define BUG() (sy__printk("kernel BUG at %s:%d!\n", __FILE__, __LINE__), __builtin_abort())
#define BUG_ON(condition) \
	do { \
		if (unlikely(condition)) \
			BUG(); \
	} while (0)

#define WARN(condition, ...) \
	__extension__ ({ \
		int sy__warned = !!(condition); \
		if (unlikely(sy__warned)) { \
			sy__printk("WARNING: at %s:%d %s()\n", __FILE__, __LINE__, __func__); \
			sy__printk(__VA_ARGS__); \
		} \
		unlikely(sy__warned); \
	})
#define WARN_ON(condition) \
	__extension__ ({ \
		int sy__warned_on = !!(condition); \
		if (unlikely(sy__warned_on)) \
			sy__printk("WARNING: at %s:%d %s()\n", __FILE__, __LINE__, __func__); \
		unlikely(sy__warned_on); \
	})
#define WARN_ONCE(condition, ...) \
	__extension__ ({ \
		static bool sy__told; \
		int sy__warned_once = !!(condition); \
		if (unlikely(sy__warned_once) && !__atomic_exchange_n(&sy__told, 1, __ATOMIC_RELAXED)) \
			WARN(1, __VA_ARGS__); \
		unlikely(sy__warned_once); \
	})
#define WARN_ON_ONCE(condition) WARN_ONCE(condition, "%s\n", #condition)
#define WARN_TAINT(condition, taint, ...) WARN(condition, __VA_ARGS__)

#endif
