/*
 * <linux/irqflags.h> for kernel code that is compiled into a program: there are no interrupts, but callbacks of call_rcu don't run
 * in a thread that keeps them off.
 */
#ifndef SLABYARD_KERNEL_LINUX_IRQFLAGS_H
#define SLABYARD_KERNEL_LINUX_IRQFLAGS_H

#pragma GCC system_header

#include "cleanup.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Not nested, as a processor's: whether they were off, and off or on from here on. */
unsigned long sy__irqs_off(void);
void sy__irqs_set(unsigned long off);
unsigned long sy__irqs_are_off(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define local_irq_save(flags) ((void)((flags) = sy__irqs_off()))
#define local_irq_restore(flags) sy__irqs_set(flags)
#define local_irq_disable() ((void)sy__irqs_off())
#define local_irq_enable() sy__irqs_set(0)
#define local_save_flags(flags) ((void)((flags) = sy__irqs_are_off()))
#define irqs_disabled() (sy__irqs_are_off() != 0)
#define irqs_disabled_flags(flags) ((flags) != 0)

DEFINE_LOCK_GUARD_0(irq, local_irq_disable(), local_irq_enable())
DEFINE_LOCK_GUARD_0(irqsave, local_irq_save(_T->flags), local_irq_restore(_T->flags), unsigned long flags)

#endif
