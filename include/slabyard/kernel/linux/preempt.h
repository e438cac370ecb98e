/* <linux/preempt.h> for kernel code that is compiled into a program: threads are interrupted at any time. */
#ifndef SLABYARD_KERNEL_LINUX_PREEMPT_H
#define SLABYARD_KERNEL_LINUX_PREEMPT_H

#pragma GCC system_header

#include "types.h"

#define preempt_disable() __asm__ volatile("" : : : "memory")
#define preempt_enable() __asm__ volatile("" : : : "memory")
#define preempt_count() 0
#define preemptible() 1
#ifndef in_interrupt
#define in_interrupt() 0
#define in_atomic() 0
#endif
#define in_task() 1
#define in_irq() 0
#define in_softirq() 0
#define in_nmi() 0

#endif
