/* <linux/printk.h> for kernel code that is compiled into a program: the kernel's log is standard error. */
#ifndef SLABYARD_KERNEL_LINUX_PRINTK_H
#define SLABYARD_KERNEL_LINUX_PRINTK_H

#pragma GCC system_header

#include <stdbool.h>

#define KERN_EMERG ""
#define KERN_ALERT ""
#define KERN_CRIT ""
#define KERN_ERR ""
#define KERN_WARNING ""
#define KERN_NOTICE ""
#define KERN_INFO ""
#define KERN_DEBUG ""
#define KERN_CONT ""
#define KERN_DEFAULT ""

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* As printf, but for the kernel's own conversions: %pK and its kind show a pointer and their letters. Characters written. */
int sy__printk(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#ifndef pr_fmt
#define pr_fmt(format) format
#endif

#define printk(...) sy__printk(__VA_ARGS__)
#define no_printk(...) ((int)sizeof(sy__printk(__VA_ARGS__)) * 0)
#define pr_emerg(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_alert(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_crit(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_err(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_warn(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_notice(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_info(format, ...) printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_cont(format, ...) printk(format, ##__VA_ARGS__)
#define pr_debug(format, ...) no_printk(pr_fmt(format), ##__VA_ARGS__)
#define pr_devel(format, ...) no_printk(pr_fmt(format), ##__VA_ARGS__)

/* Once for each place in the source. */
#define printk_once(...) \
	__extension__ ({ \
		static bool sy__printed; \
		bool sy__first = !__atomic_exchange_n(&sy__printed, 1, __ATOMIC_RELAXED); \
		if (sy__first) \
			printk(__VA_ARGS__); \
		sy__first; \
	})
#define pr_err_once(format, ...) printk_once(pr_fmt(format), ##__VA_ARGS__)
#define pr_warn_once(format, ...) printk_once(pr_fmt(format), ##__VA_ARGS__)
#define pr_info_once(format, ...) printk_once(pr_fmt(format), ##__VA_ARGS__)
#define pr_err_ratelimited pr_err
#define pr_warn_ratelimited pr_warn
#define pr_info_ratelimited pr_info

#endif
