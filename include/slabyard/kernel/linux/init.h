/* <linux/init.h> for kernel code that is compiled into a program, which calls a module's start and end itself. */
#ifndef SLABYARD_KERNEL_LINUX_INIT_H
#define SLABYARD_KERNEL_LINUX_INIT_H

#pragma GCC system_header

#include "compiler.h"

#include <stdlib.h> /* which names a member __init */

#define __init
#define __exit
#define __initdata
#define __initconst
#define __exitdata
#define __ro_after_init
#define __read_mostly
#define __ref
#define __refdata

typedef int (*initcall_t)(void);
typedef void (*exitcall_t)(void);

/* As in a loadable module: main finds them as init_module and cleanup_module, which of several modules are those of the first
 * that is linked. The others' are called by their own names. A semicolon may follow or not. */
#ifdef __cplusplus
#define module_init(function) static const initcall_t sy__module_init __maybe_unused = function; __extension__
#define module_exit(function) static const exitcall_t sy__module_exit __maybe_unused = function; __extension__
#else
int init_module(void);
void cleanup_module(void);
#define module_init(function) int init_module(void) __attribute__((__weak__, __alias__(#function))); __extension__
#define module_exit(function) void cleanup_module(void) __attribute__((__weak__, __alias__(#function))); __extension__
#endif
#define early_initcall(function) static const initcall_t sy__initcall_##function __maybe_unused = function; __extension__
#define core_initcall(function) early_initcall(function)
#define postcore_initcall(function) early_initcall(function)
#define arch_initcall(function) early_initcall(function)
#define subsys_initcall(function) early_initcall(function)
#define fs_initcall(function) early_initcall(function)
#define device_initcall(function) early_initcall(function)
#define late_initcall(function) early_initcall(function)

#endif
