/*
 * The second set of names under which glibc exports its malloc: __libc_malloc and so on.
 *
 * No interface describes them, but wrappers of malloc have always used them to get behind themselves. A program may get an
 * object by one of these names and free it by the usual one, or the other way round. Both must then be the same malloc, so each
 * name here calls its namesake. Other C libraries have no such names.
 */
#define _GNU_SOURCE
#include "parts.h"

#include <malloc.h>
#include <stdlib.h>

#ifdef __GLIBC__

#define NAMESAKE(name, result, parameters, call) \
	__attribute__((visibility("default"))) result name parameters; \
	result name parameters \
	{ \
		call; \
	}

NAMESAKE(__libc_malloc, void *, (size_t size), return sy__allocate(size))
NAMESAKE(__libc_free, void, (void *object), sy__release(object))
NAMESAKE(__libc_cfree, void, (void *object), sy__release(object))
NAMESAKE(__libc_calloc, void *, (size_t count, size_t size), return calloc(count, size))
NAMESAKE(__libc_realloc, void *, (void *object, size_t size), return realloc(object, size))
NAMESAKE(__libc_memalign, void *, (size_t align, size_t size), return memalign(align, size))
NAMESAKE(__libc_valloc, void *, (size_t size), return valloc(size))
NAMESAKE(__libc_pvalloc, void *, (size_t size), return pvalloc(size))
NAMESAKE(__posix_memalign, int, (void **result, size_t align, size_t size), return posix_memalign(result, align, size))

#endif
