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

static inline ssize_t sy__file_read(int file, void *into, size_t bytes)
{
	return sy__system(SYS_read, file, sy__system_word(into), (long)bytes, 0);
}

static inline ssize_t sy__file_write(int file, const void *from, size_t bytes)
{
	return sy__system(SYS_write, file, sy__system_word(from), (long)bytes, 0);
}

static inline void sy__file_close(int file)
{
	sy__system(SYS_close, file, 0, 0, 0);
}

/* Reads the beginning of a text file and ends it with a zero. False: it is empty or cannot be read. */
static inline bool sy__file_text(const char *name, char *text, size_t bytes)
{
	int file = sy__file_open(name, O_RDONLY);
	ssize_t length = file < 0 ? -1 : sy__file_read(file, text, bytes - 1);

	if (file >= 0)
		sy__file_close(file);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

#endif
