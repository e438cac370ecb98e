/*
 * <linux/preempt.h> for kernel code that is compiled into a program, whose threads are interrupted at any time:
 * callbacks of call_rcu don't run in a thread that does not want to be (library/rcu.c).
 */
#ifndef SLABYARD_KERNEL_LINUX_PREEMPT_H
#define SLABYARD_KERNEL_LINUX_PREEMPT_H

#pragma GCC system_header

#include "cleanup.h"
#include "irqflags.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Nested at will. The count is of spin locks too. */
void sy__preempt_disable(void);
void sy__preempt_enable(void);
unsigned sy__preempt_count(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define preempt_disable() sy__preempt_disable()
#define preempt_enable() sy__preempt_enable()
#define preempt_enable_no_resched() preempt_enable()
#define preempt_disable_notrace() preempt_disable()
#define preempt_enable_notrace() preempt_enable()
#define preempt_count() ((int)sy__preempt_count())
#define preemptible() (preempt_count() == 0 && !irqs_disabled())
#define in_atomic() (preempt_count() != 0)
#define in_interrupt() 0
#define in_task() 1
#define in_irq() 0
#define in_hardirq() 0
#define in_softirq() 0
#define in_serving_softirq() 0
#define in_nmi() 0

DEFINE_LOCK_GUARD_0(preempt, preempt_disable(), preempt_enable())
DEFINE_LOCK_GUARD_0(preempt_notrace, preempt_disable(), preempt_enable())

#endif
