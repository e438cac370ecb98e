/* <linux/module.h> for kernel code that is compiled into a program: nothing loads it. */
#ifndef SLABYARD_KERNEL_LINUX_MODULE_H
#define SLABYARD_KERNEL_LINUX_MODULE_H

#pragma GCC system_header

#include "kernel.h"
#include "list.h"
#include "mutex.h"
#include "rculist.h"
#include "rwsem.h"
#include "shrinker.h"
#include "slab.h"
#include "spinlock.h"
#include "string.h"

#ifndef KBUILD_MODNAME
#define KBUILD_MODNAME "module"
#endif

#define MODULE_INFO(tag, text) extern int sy__exported
#define MODULE_LICENSE(text) extern int sy__exported
#define MODULE_AUTHOR(text) extern int sy__exported
#define MODULE_DESCRIPTION(text) extern int sy__exported
#define MODULE_VERSION(text) extern int sy__exported
#define MODULE_ALIAS(text) extern int sy__exported
#define MODULE_SOFTDEP(text) extern int sy__exported
#define MODULE_FIRMWARE(text) extern int sy__exported
#define MODULE_IMPORT_NS(text) extern int sy__exported
#define MODULE_DEVICE_TABLE(type, name) extern int sy__exported
#define MODULE_PARM_DESC(name, text) extern int sy__exported
#define module_param(name, type, mode) extern int sy__exported
#define module_param_named(name, value, type, mode) extern int sy__exported
#define module_param_string(name, text, length, mode) extern int sy__exported
#define module_param_array(name, type, count, mode) extern int sy__exported

#define try_module_get(module) ((void)(module), true)
#define module_put(module) ((void)(module))
#define __module_get(module) ((void)(module))

#endif
