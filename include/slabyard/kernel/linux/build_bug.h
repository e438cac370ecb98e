/* <linux/build_bug.h> for kernel code that is compiled into a program: what must hold when it is compiled. */
#ifndef SLABYARD_KERNEL_LINUX_BUILD_BUG_H
#define SLABYARD_KERNEL_LINUX_BUILD_BUG_H

/* An array of no element, where the condition holds; else it does not compile. */
#define BUILD_BUG_ON_ZERO(condition) ((int)(sizeof(char[1 - 2 * !!(condition)]) - 1))
#define BUILD_BUG_ON(condition) ((void)sizeof(char[1 - 2 * !!(condition)]))
#define BUILD_BUG_ON_MSG(condition, message) BUILD_BUG_ON(condition)
#define BUILD_BUG_ON_NOT_POWER_OF_2(number) BUILD_BUG_ON((number) == 0 || ((number) & ((number) - 1)) != 0)

#ifdef __cplusplus
#define SY__ASSERTED(condition, message, ...) static_assert(condition, message)
#else
#ifndef static_assert
#define static_assert(...) SY__ASSERTED(__VA_ARGS__, "", 0)
#endif
#define SY__ASSERTED(condition, message, ...) _Static_assert(condition, message)
#endif

#endif
