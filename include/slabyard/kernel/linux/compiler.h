/* <linux/compiler.h> for kernel code that is compiled into a program: what it says to the compiler. */
#ifndef SLABYARD_KERNEL_LINUX_COMPILER_H
#define SLABYARD_KERNEL_LINUX_COMPILER_H

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#define barrier() __asm__ volatile("" : : : "memory")
#define unreachable() __builtin_unreachable()

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define SY__RACES_LOOKED_FOR
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(SY__RACES_LOOKED_FOR) /* it takes a volatile access for a plain one */
#define READ_ONCE(place) \
	__extension__ ({ \
		__typeof__(__extension__ ({ place; })) sy__read; \
		__atomic_load(&(place), &sy__read, __ATOMIC_RELAXED); \
		sy__read; \
	})
#define WRITE_ONCE(place, value) \
	__extension__ ({ \
		__typeof__(__extension__ ({ place; })) sy__written = (value); \
		__atomic_store(&(place), &sy__written, __ATOMIC_RELAXED); \
	})
#else
#define READ_ONCE(place) (*(const volatile __typeof__(place) *)&(place))
#define WRITE_ONCE(place, value) ((void)(*(volatile __typeof__(place) *)&(place) = (value)))
#endif
#define data_race(expression) (expression)
#define OPTIMIZER_HIDE_VAR(variable) __asm__("" : "+r"(variable))
#define __same_type(a, b) __builtin_types_compatible_p(__typeof__(a), __typeof__(b))
#ifndef __must_be_array /* 0, or it does not compile */
#define __must_be_array(array) ((int)sizeof(char[1 - 2 * __same_type(array, &(array)[0])]) - 1)
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif
#define noinline __attribute__((__noinline__))
#define __maybe_unused __attribute__((__unused__))
#define __always_unused __attribute__((__unused__))
#define __must_check __attribute__((__warn_unused_result__))
#define __malloc __attribute__((__malloc__))
#define __packed __attribute__((__packed__))
#define __aligned(bytes) __attribute__((__aligned__(bytes)))
#define __printf(format, first) __attribute__((__format__(__printf__, format, first)))
#define __noreturn __attribute__((__noreturn__))
#define __weak __attribute__((__weak__))
#define __cold __attribute__((__cold__))
#define __pure __attribute__((__pure__))
#ifndef __attribute_const__
#define __attribute_const__ __attribute__((__const__))
#endif
#define fallthrough __attribute__((__fallthrough__))

/* Annotations for sparse, the kernel's checker. */
#define __user
#define __kernel
#define __iomem
#define __rcu
#define __percpu
#define __force
#define __must_hold(lock)
#define __acquire(lock) ((void)0)
#define __release(lock) ((void)0)
#define __cond_lock(lock, condition) (condition)
#define __acquires(lock)
#define __releases(lock)
#define __nocast
#ifndef __counted_by
#define __counted_by(member)
#endif

#endif
