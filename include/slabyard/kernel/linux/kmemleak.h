/* <linux/kmemleak.h> for kernel code that is compiled into a program: nothing looks for leaks; a sanitizer does. */
#ifndef SLABYARD_KERNEL_LINUX_KMEMLEAK_H
#define SLABYARD_KERNEL_LINUX_KMEMLEAK_H

#pragma GCC system_header

#include "types.h"

#define kmemleak_alloc(pointer, size, least, flags) ((void)(pointer))
#define kmemleak_free(pointer) ((void)(pointer))
#define kmemleak_not_leak(pointer) ((void)(pointer))
#define kmemleak_ignore(pointer) ((void)(pointer))
#define kmemleak_erase(place) ((void)(place))
#define kmemleak_update_trace(pointer) ((void)(pointer))
#define kmemleak_no_scan(pointer) ((void)(pointer))

#endif
