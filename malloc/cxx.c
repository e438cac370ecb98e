/*
 * The operators new and delete of C++, on malloc.
 *
 * C++ runtimes have operators of their own, which call malloc and free. The operators here save that call, and tell the checks of
 * debugging which interface an object is from.
 *
 * They are C functions under the operators' mangled names, because the library must not need a C++ runtime in programs that
 * have none. They use two things of a runtime, by weak references: the new-handler that a program may install, and the function
 * that throws std::bad_alloc. A program may open its C++ runtime by dlopen; the library for LD_PRELOAD then looks both up when
 * they are needed (preload/runtime.c). Exceptions unwind through this file, hence -fexceptions.
 *
 * The non-throwing forms of new are left to the runtime. They call the throwing forms, which are here, and catch the exception.
 */
#define _GNU_SOURCE /* syscall */
#include "debugging.h"
#include "parts.h"
#include "system.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/policies/default.h"

#define EXPORT __attribute__((visibility("default")))

#if SIZE_MAX == ULONG_MAX && !defined(__arm__) && !defined(__i386__)
#define SIZE_CODE "m" /* unsigned long */
#else
#define SIZE_CODE "j" /* unsigned int */
#endif
#define ALIGN_CODE "St11align_val_t"
#define NOTHROW_CODE "RKSt9nothrow_t"

#define GET_NEW_HANDLER "_ZSt15get_new_handlerv"
#define THROW_BAD_ALLOC "_ZSt17__throw_bad_allocv"

typedef void (*handler)(void);

extern handler get_new_handler(void) __asm__(GET_NEW_HANDLER) __attribute__((weak));
extern void throw_bad_alloc(void) __asm__(THROW_BAD_ALLOC) __attribute__((weak)); /* does not return */

/* ---- new ---------------------------------------------------------------------------------------------------------- */

static void *of_runtime(const char *name)
{
	return sy__runtime_symbol ? sy__runtime_symbol(name) : NULL;
}

/* Calls the new-handler, which may free memory. Without one it throws std::bad_alloc, or aborts where nothing can throw. */
static void call_handler(void)
{
	static const char message[] = "slabyard: operator new: no memory, and no C++ runtime that could throw std::bad_alloc\n";
	handler (*get)(void) = get_new_handler, called;
	void (*throw)(void) = throw_bad_alloc;

	if (!get)
		*(void **)&get = of_runtime(GET_NEW_HANDLER); /* as POSIX has functions from dlsym */
	called = get ? get() : NULL;
	if (called) {
		called();
		return;
	}
	if (!throw)
		*(void **)&throw = of_runtime(THROW_BAD_ALLOC);
	if (throw)
		throw();
	sy__file_write(STDERR_FILENO, message, sizeof(message) - 1);
	abort();
}

static SY__COLD void *retry_by_handler(size_t align, size_t size)
{
	void *object;

	do {
		call_handler();
		object = sy__allocate_aligned(align, size);
	} while (!object);
	return object;
}

static void *new_aligned(size_t size, size_t align, unsigned by)
{
	void *object = sy__allocate_aligned(align, size);

	if (sy__unlikely(!object))
		object = retry_by_handler(align, size);
	if (sy__unlikely(!sy__service.fast))
		sy__debugging_tag(object, by);
	return object;
}

/* All that the fast path does not serve. */
static SY__OUT_OF_LINE void *new_other(size_t size, unsigned by)
{
	return new_aligned(size, 1, by);
}

/* Contains the fast path of malloc, as fast.c explains. */
static inline void *new_object(size_t size, unsigned by)
{
	void *object = NULL;

	if (sy__likely(size - 1 < sy__service.small))
		object = sy__default_malloc_small(size, sy__service.heap);
	return sy__likely(object) ? object : new_other(size, by);
}

EXPORT void *cxx_new(size_t size) __asm__("_Znw" SIZE_CODE);
EXPORT void *cxx_new_array(size_t size) __asm__("_Zna" SIZE_CODE);
EXPORT void *cxx_new_aligned(size_t size, size_t align) __asm__("_Znw" SIZE_CODE ALIGN_CODE);
EXPORT void *cxx_new_array_aligned(size_t size, size_t align) __asm__("_Zna" SIZE_CODE ALIGN_CODE);

void *cxx_new(size_t size)
{
	return new_object(size, SY__BY_NEW);
}

void *cxx_new_array(size_t size)
{
	return new_object(size, SY__BY_NEW_ARRAY);
}

void *cxx_new_aligned(size_t size, size_t align)
{
	return new_aligned(size, align, SY__BY_ALIGNED(SY__BY_NEW, align));
}

void *cxx_new_array_aligned(size_t size, size_t align)
{
	return new_aligned(size, align, SY__BY_ALIGNED(SY__BY_NEW_ARRAY, align));
}

/* ---- delete ------------------------------------------------------------------------------------------------------- */

static SY__OUT_OF_LINE void delete_other(void *object, size_t size, unsigned by)
{
	if (sy__debugging_expects(object, size, by))
		sy__release(object);
}

/* Contains the fast path of free, too. Callers may also pass std::nothrow, which does not matter: in every calling convention that the
 * library is for, a function may be called with more arguments than it has. */
static inline void delete_object(void *object, size_t size, unsigned by)
{
	if (sy__likely(sy__service.frees))
		sy__default_free(object, &sy__service.heap);
	else
		delete_other(object, size, by);
}

#define DELETE_BY(name, symbol, arguments, size, by) \
	EXPORT void name arguments __asm__(symbol); \
	void name arguments \
	{ \
		delete_object(object, size, by); \
	}
#define DELETE(name, symbol, interface) DELETE_BY(name, symbol, (void *object), 0, interface)
#define DELETE_SIZED(name, symbol, interface) DELETE_BY(name, symbol, (void *object, size_t size), size, interface)
#define DELETE_ALIGNED(name, symbol, interface) \
	DELETE_BY(name, symbol, (void *object, size_t align), 0, SY__BY_ALIGNED(interface, align))
#define DELETE_SIZED_ALIGNED(name, symbol, interface) \
	DELETE_BY(name, symbol, (void *object, size_t size, size_t align), size, SY__BY_ALIGNED(interface, align))

DELETE(cxx_delete, "_ZdlPv", SY__BY_NEW)
DELETE(cxx_delete_array, "_ZdaPv", SY__BY_NEW_ARRAY)
DELETE_SIZED(cxx_delete_sized, "_ZdlPv" SIZE_CODE, SY__BY_NEW)
DELETE_SIZED(cxx_delete_array_sized, "_ZdaPv" SIZE_CODE, SY__BY_NEW_ARRAY)
DELETE_ALIGNED(cxx_delete_aligned, "_ZdlPv" ALIGN_CODE, SY__BY_NEW)
DELETE_ALIGNED(cxx_delete_array_aligned, "_ZdaPv" ALIGN_CODE, SY__BY_NEW_ARRAY)
DELETE_SIZED_ALIGNED(cxx_delete_sized_aligned, "_ZdlPv" SIZE_CODE ALIGN_CODE, SY__BY_NEW)
DELETE_SIZED_ALIGNED(cxx_delete_array_sized_aligned, "_ZdaPv" SIZE_CODE ALIGN_CODE, SY__BY_NEW_ARRAY)
DELETE(cxx_delete_nothrow, "_ZdlPv" NOTHROW_CODE, SY__BY_NEW)
DELETE(cxx_delete_array_nothrow, "_ZdaPv" NOTHROW_CODE, SY__BY_NEW_ARRAY)
DELETE_ALIGNED(cxx_delete_aligned_nothrow, "_ZdlPv" ALIGN_CODE NOTHROW_CODE, SY__BY_NEW)
DELETE_ALIGNED(cxx_delete_array_aligned_nothrow, "_ZdaPv" ALIGN_CODE NOTHROW_CODE, SY__BY_NEW_ARRAY)
