/*
 * The names by which glibc's own parts, and some programs, call malloc.
 *
 * glibc exports its malloc under a second set of names, which no interface describes but which wrappers of malloc have always
 * used to get behind themselves. Who calls one of these and then free(), or the other way round, must not meet two mallocs; so
 * they lead here as well.
 */
#define _GNU_SOURCE
#include "parts.h"

#include <malloc.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void *__libc_malloc(size_t size);
EXPORT void __libc_free(void *object);
EXPORT void __libc_cfree(void *object);
EXPORT void *__libc_calloc(size_t count, size_t size);
EXPORT void *__libc_realloc(void *object, size_t size);
EXPORT void *__libc_memalign(size_t align, size_t size);
EXPORT void *__libc_valloc(size_t size);
EXPORT void *__libc_pvalloc(size_t size);
EXPORT int __posix_memalign(void **result, size_t align, size_t size);

void *__libc_malloc(size_t size)
{
	return sy__allocate(size);
}

void __libc_free(void *object)
{
	sy__release(object);
}

void __libc_cfree(void *object)
{
	sy__release(object);
}

void *__libc_calloc(size_t count, size_t size)
{
	return calloc(count, size);
}

void *__libc_realloc(void *object, size_t size)
{
	return realloc(object, size);
}

void *__libc_memalign(size_t align, size_t size)
{
	return memalign(align, size);
}

void *__libc_valloc(size_t size)
{
	return valloc(size);
}

void *__libc_pvalloc(size_t size)
{
	return pvalloc(size);
}

int __posix_memalign(void **result, size_t align, size_t size)
{
	return posix_memalign(result, align, size);
}
