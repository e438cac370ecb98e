/* <linux/kasan.h> for kernel code that is compiled into a program: as in a kernel without CONFIG_KASAN; a sanitizer watches objects. */
#ifndef SLABYARD_KERNEL_LINUX_KASAN_H
#define SLABYARD_KERNEL_LINUX_KASAN_H

#pragma GCC system_header

#include "types.h"

#define kasan_enabled() false
#define kasan_poison_memory(place, size) ((void)(place), (void)(size))
#define kasan_unpoison_memory(place, size) ((void)(place), (void)(size))
#define kasan_check_read(place, size) ((void)(place), (void)(size), true)
#define kasan_check_write(place, size) ((void)(place), (void)(size), true)
#define kasan_reset_tag(pointer) (pointer)
#define kasan_disable_current() ((void)0)
#define kasan_enable_current() ((void)0)

#endif
