/*
 * The operators new and delete of C++, on malloc.
 *
 * C++ runtimes have operators of their own, which call malloc and free. The operators here save that call.
 *
 * They are C functions under the operators' mangled names, because the library must not need a C++ runtime in programs that
 * have none. They use two things of a runtime, by weak references: the new-handler that a program may install, and the function
 * that throws std::bad_alloc. A program may open its C++ runtime by dlopen; the library for LD_PRELOAD then looks both up when
 * they are needed (preload/runtime.c). Exceptions unwind through this file, hence -fexceptions.
 *
 * The non-throwing forms of new are left to the runtime. They call the throwing forms, which are here, and catch the exception.
 */
#define _GNU_SOURCE /* syscall */
#include "parts.h"
#include "system.h"

#include <stdlib.h>
#include <unistd.h>

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

static inline void *new_object(size_t size)
{
	void *object = sy__allocate(size);

	return sy__likely(object) ? object : retry_by_handler(1, size);
}

static inline void *new_aligned(size_t size, size_t align)
{
	void *object = sy__allocate_aligned(align, size);

	return sy__likely(object) ? object : retry_by_handler(align, size);
}

EXPORT void *cxx_new(size_t size) __asm__("_Znw" SIZE_CODE);
EXPORT void *cxx_new_array(size_t size) __asm__("_Zna" SIZE_CODE);
EXPORT void *cxx_new_aligned(size_t size, size_t align) __asm__("_Znw" SIZE_CODE ALIGN_CODE);
EXPORT void *cxx_new_array_aligned(size_t size, size_t align) __asm__("_Zna" SIZE_CODE ALIGN_CODE);

void *cxx_new(size_t size)
{
	return new_object(size);
}

void *cxx_new_array(size_t size)
{
	return new_object(size);
}

void *cxx_new_aligned(size_t size, size_t align)
{
	return new_aligned(size, align);
}

void *cxx_new_array_aligned(size_t size, size_t align)
{
	return new_aligned(size, align);
}

/* ---- delete ------------------------------------------------------------------------------------------------------- */

/* Callers also pass a size, an alignment or std::nothrow. None of them matters here, and in every calling convention that the
 * library is for, a function of one argument may be called with more. */
#define DELETE(name, symbol) \
	EXPORT void name(void *object) __asm__(symbol); \
	void name(void *object) \
	{ \
		sy__release(object); \
	}

DELETE(cxx_delete, "_ZdlPv")
DELETE(cxx_delete_array, "_ZdaPv")
DELETE(cxx_delete_sized, "_ZdlPv" SIZE_CODE)
DELETE(cxx_delete_array_sized, "_ZdaPv" SIZE_CODE)
DELETE(cxx_delete_aligned, "_ZdlPv" ALIGN_CODE)
DELETE(cxx_delete_array_aligned, "_ZdaPv" ALIGN_CODE)
DELETE(cxx_delete_sized_aligned, "_ZdlPv" SIZE_CODE ALIGN_CODE)
DELETE(cxx_delete_array_sized_aligned, "_ZdaPv" SIZE_CODE ALIGN_CODE)
DELETE(cxx_delete_nothrow, "_ZdlPv" NOTHROW_CODE)
DELETE(cxx_delete_array_nothrow, "_ZdaPv" NOTHROW_CODE)
DELETE(cxx_delete_aligned_nothrow, "_ZdlPv" ALIGN_CODE NOTHROW_CODE)
DELETE(cxx_delete_array_aligned_nothrow, "_ZdaPv" ALIGN_CODE NOTHROW_CODE)
