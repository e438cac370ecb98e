/*
 * The operators new and delete of C++, on malloc.
 *
 * Libraries of C++ have operators of their own, which call malloc and free; these save the call in between. They are C
 * functions under the names that compilers give the operators, as the library must not need a C++ runtime in programs that have
 * none. What they need of one is referred to weakly: the handler that a program installs for the case that there is no
 * memory, and the function that throws std::bad_alloc. Where the program has opened the runtime itself, the library for
 * LD_PRELOAD asks for them when they are needed (preload/runtime.c). The unwinder passes through this file (-fexceptions).
 *
 * The forms of new that don't throw are left to the runtime: its own call the throwing ones, here, and catch what comes. So do
 * its forms for size and alignment of delete that are not here, if a later standard should add any.
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

/* Gives the program a chance to free memory; does not return if it has none to take. */
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

static SY__COLD void *insist(size_t align, size_t size)
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

	return sy__likely(object) ? object : insist(1, size);
}

static inline void *new_aligned(size_t size, size_t align)
{
	void *object = sy__allocate_aligned(align, size);

	return sy__likely(object) ? object : insist(align, size);
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

EXPORT void cxx_delete(void *object) __asm__("_ZdlPv");
EXPORT void cxx_delete_array(void *object) __asm__("_ZdaPv");
EXPORT void cxx_delete_sized(void *object, size_t size) __asm__("_ZdlPv" SIZE_CODE);
EXPORT void cxx_delete_array_sized(void *object, size_t size) __asm__("_ZdaPv" SIZE_CODE);
EXPORT void cxx_delete_aligned(void *object, size_t align) __asm__("_ZdlPv" ALIGN_CODE);
EXPORT void cxx_delete_array_aligned(void *object, size_t align) __asm__("_ZdaPv" ALIGN_CODE);
EXPORT void cxx_delete_sized_aligned(void *object, size_t size, size_t align) __asm__("_ZdlPv" SIZE_CODE ALIGN_CODE);
EXPORT void cxx_delete_array_sized_aligned(void *object, size_t size, size_t align) __asm__("_ZdaPv" SIZE_CODE ALIGN_CODE);
EXPORT void cxx_delete_nothrow(void *object, const void *tag) __asm__("_ZdlPv" NOTHROW_CODE);
EXPORT void cxx_delete_array_nothrow(void *object, const void *tag) __asm__("_ZdaPv" NOTHROW_CODE);
EXPORT void cxx_delete_aligned_nothrow(void *object, size_t align, const void *tag) __asm__("_ZdlPv" ALIGN_CODE NOTHROW_CODE);
EXPORT void cxx_delete_array_aligned_nothrow(void *object, size_t align, const void *tag) __asm__("_ZdaPv" ALIGN_CODE NOTHROW_CODE);

void cxx_delete(void *object)
{
	sy__release(object);
}

void cxx_delete_array(void *object)
{
	sy__release(object);
}

void cxx_delete_sized(void *object, size_t size)
{
	(void)size;
	sy__release(object);
}

void cxx_delete_array_sized(void *object, size_t size)
{
	(void)size;
	sy__release(object);
}

void cxx_delete_aligned(void *object, size_t align)
{
	(void)align;
	sy__release(object);
}

void cxx_delete_array_aligned(void *object, size_t align)
{
	(void)align;
	sy__release(object);
}

void cxx_delete_sized_aligned(void *object, size_t size, size_t align)
{
	(void)size;
	(void)align;
	sy__release(object);
}

void cxx_delete_array_sized_aligned(void *object, size_t size, size_t align)
{
	(void)size;
	(void)align;
	sy__release(object);
}

void cxx_delete_nothrow(void *object, const void *tag)
{
	(void)tag;
	sy__release(object);
}

void cxx_delete_array_nothrow(void *object, const void *tag)
{
	(void)tag;
	sy__release(object);
}

void cxx_delete_aligned_nothrow(void *object, size_t align, const void *tag)
{
	(void)align;
	(void)tag;
	sy__release(object);
}

void cxx_delete_array_aligned_nothrow(void *object, size_t align, const void *tag)
{
	(void)align;
	(void)tag;
	sy__release(object);
}
