/* <linux/timer.h> for kernel code that is compiled into a program: functions that are called when their time has come, one after the other, in a thread of their own. */
#ifndef SLABYARD_KERNEL_LINUX_TIMER_H
#define SLABYARD_KERNEL_LINUX_TIMER_H

#pragma GCC system_header

#include "jiffies.h"
#include "rbtree.h"

#include <time.h> /* which has another timer_delete */

struct timer_list {
	struct rb_node sy__node;
	unsigned long expires;
	void (*function)(struct timer_list *);
	u32 flags;
	bool sy__pending;
};

#define TIMER_DEFERRABLE 0x00080000
#define TIMER_IRQSAFE 0x00200000
#define DEFINE_TIMER(name, run) struct timer_list name = { .function = (run) }
#define from_timer(variable, timer, member) container_of(timer, __typeof__(*variable), member)
#define timer_container_of(variable, timer, member) from_timer(variable, timer, member)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

int sy__timer_start(struct timer_list *, unsigned long expires, bool only_pending, bool sooner);
int sy__timer_stop(struct timer_list *, bool wait);
int sy__timer_try_stop(struct timer_list *);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void timer_setup(struct timer_list *timer, void (*run)(struct timer_list *), unsigned flags)
{
	timer->function = run;
	timer->flags = flags;
	timer->sy__pending = false;
}

#define timer_setup_on_stack(timer, run, flags) timer_setup(timer, run, flags)
#define destroy_timer_on_stack(timer) ((void)(timer))
#define timer_pending(timer) READ_ONCE((timer)->sy__pending)

/* 1: it was to come, at another time. */
static inline int mod_timer(struct timer_list *timer, unsigned long expires) { return sy__timer_start(timer, expires, false, false); }
static inline int mod_timer_pending(struct timer_list *timer, unsigned long expires) { return sy__timer_start(timer, expires, true, false); }
static inline int timer_reduce(struct timer_list *timer, unsigned long expires) { return sy__timer_start(timer, expires, false, true); }
static inline void add_timer(struct timer_list *timer) { mod_timer(timer, timer->expires); }

/* 1: it was to come. Of those whose name says sync, the function does not run any more. */
#define timer_delete(timer) sy__timer_stop(timer, false)
#define timer_delete_sync(timer) sy__timer_stop(timer, true)
/* -1: the function runs, and nothing was done. */
#define try_to_del_timer_sync(timer) sy__timer_try_stop(timer)
#define del_timer(timer) timer_delete(timer)
#define del_timer_sync(timer) timer_delete_sync(timer)
#define timer_shutdown(timer) timer_delete(timer)
#define timer_shutdown_sync(timer) timer_delete_sync(timer)

#endif
