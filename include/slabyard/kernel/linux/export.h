/* <linux/export.h> for kernel code that is compiled into a program, where what is not static is known anyway. */
#ifndef SLABYARD_KERNEL_LINUX_EXPORT_H
#define SLABYARD_KERNEL_LINUX_EXPORT_H

#pragma GCC system_header

#define EXPORT_SYMBOL(name) extern int sy__exported
#define EXPORT_SYMBOL_GPL(name) extern int sy__exported
#define EXPORT_SYMBOL_NS(name, space) extern int sy__exported
#define EXPORT_SYMBOL_NS_GPL(name, space) extern int sy__exported

struct module;
#define THIS_MODULE ((struct module *)0)

#endif
