/* <linux/interrupt.h> for kernel code that is compiled into a program: there are none. */
#ifndef SLABYARD_KERNEL_LINUX_INTERRUPT_H
#define SLABYARD_KERNEL_LINUX_INTERRUPT_H

#pragma GCC system_header

#include "bottom_half.h"
#include "irqflags.h"
#include "preempt.h"
#include "spinlock.h"

typedef int irqreturn_t;

#define IRQ_NONE 0
#define IRQ_HANDLED 1

#endif
