/* <linux/instrumented.h> for kernel code that is compiled into a program: nobody is told of accesses; a sanitizer finds them itself. */
#ifndef SLABYARD_KERNEL_LINUX_INSTRUMENTED_H
#define SLABYARD_KERNEL_LINUX_INSTRUMENTED_H

#pragma GCC system_header

#include "types.h"

#define instrument_read(place, size) ((void)(place), (void)(size))
#define instrument_write(place, size) ((void)(place), (void)(size))
#define instrument_read_write(place, size) ((void)(place), (void)(size))
#define instrument_atomic_read(place, size) ((void)(place), (void)(size))
#define instrument_atomic_write(place, size) ((void)(place), (void)(size))
#define instrument_atomic_read_write(place, size) ((void)(place), (void)(size))
#define instrument_copy_to_user(to, from, count) ((void)(to), (void)(from), (void)(count))
#define instrument_copy_from_user_before(to, from, count) ((void)(to), (void)(from), (void)(count))
#define instrument_copy_from_user_after(to, from, count, left) ((void)(to), (void)(from), (void)(count), (void)(left))

#endif
