/*
 * Files, by the kernel's own calls.
 *
 * A thread may be cancelled in the C library's open, read and write. In malloc or setrlimit it would then end with the heap's
 * locks, and all others would wait for them for ever. These functions leave errno alone; below 0 they have failed.
 */
#ifndef SLABYARD_MALLOC_SYSTEM_H
#define SLABYARD_MALLOC_SYSTEM_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/types.h>

#include "core/platform/system_call.h"

static inline int sy__file_open(const char *name, int flags)
{
	return (int)sy__system(SYS_openat, AT_FDCWD, sy__system_word(name), flags | O_CLOEXEC, 0666);
}

static inline ssize_t sy__file_write(int file, const void *from, size_t bytes)
{
	return sy__system(SYS_write, file, sy__system_word(from), (long)bytes, 0);
}

static inline void sy__file_close(int file)
{
	sy__system(SYS_close, file, 0, 0, 0);
}

#endif
