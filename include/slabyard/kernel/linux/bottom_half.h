/*
 * <linux/bottom_half.h> for kernel code that is compiled into a program: there are none, but callbacks of call_rcu, which don't
 * run in between.
 */
#ifndef SLABYARD_KERNEL_LINUX_BOTTOM_HALF_H
#define SLABYARD_KERNEL_LINUX_BOTTOM_HALF_H

#pragma GCC system_header

#include "preempt.h"

#define local_bh_disable() preempt_disable()
#define local_bh_enable() preempt_enable()

#endif
