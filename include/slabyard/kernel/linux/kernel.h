/* <linux/kernel.h> for kernel code that is compiled into a program: what kernel code takes for granted. <sys/sysinfo.h> reads it too, in place of the system's. */
#ifndef SLABYARD_KERNEL_LINUX_KERNEL_H
#define SLABYARD_KERNEL_LINUX_KERNEL_H

#pragma GCC system_header

#include "../asm/byteorder.h"
#include "bitops.h"
#include "bug.h"
#include "container_of.h"
#include "err.h"
#include "export.h"
#include "init.h"
#include "kstrtox.h"
#include "log2.h"
#include "math.h"
#include "minmax.h"
#include "printk.h"
#include "typecheck.h"
#include "types.h"

#include <limits.h>
#include <linux/sysinfo.h>
#include <stdio.h>
#include <stdlib.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define upper_32_bits(number) ((u32)(((number) >> 16) >> 16))
#define lower_32_bits(number) ((u32)((number)&0xffffffff))
#ifndef __stringify
#define __stringify_1(...) #__VA_ARGS__
#define __stringify(...) __stringify_1(__VA_ARGS__)
#endif
#define PTR_IF(condition, pointer) ((condition) ? (pointer) : NULL)
#define might_sleep() ((void)0)
#define might_sleep_if(condition) ((void)(condition))
#define cond_resched() 0
#define panic(...) (sy__printk(__VA_ARGS__), abort())
#define dump_stack() ((void)0)
#define _RET_IP_ ((unsigned long)__builtin_return_address(0))
#define _THIS_IP_ _RET_IP_

/* 1 where the option is set as a kernel's configuration sets it, else 0. */
#define IS_ENABLED(option) SY__IS_SET(option)
#define IS_BUILTIN(option) SY__IS_SET(option)
#define SY__SET_TO_1 0,
#define SY__IS_SET(value) SY__IS_SET_TO(value)
#define SY__IS_SET_TO(value) SY__SECOND_OF(SY__SET_TO_##value 1, 0, 0)
#define SY__SECOND_OF(first, second, ...) second

/* Characters written, without the end, where they did not all fit. */
#define scnprintf(text, size, ...) \
	__extension__ ({ \
		int sy__wanted = snprintf(text, size, __VA_ARGS__), sy__room = (int)(size); \
		sy__wanted < sy__room ? sy__wanted : sy__room ? sy__room - 1 : 0; \
	})

#endif
