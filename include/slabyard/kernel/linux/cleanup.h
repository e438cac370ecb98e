/* <linux/cleanup.h> for kernel code that is compiled into a program: variables that free or unlock at the end of their scope. */
#ifndef SLABYARD_KERNEL_LINUX_CLEANUP_H
#define SLABYARD_KERNEL_LINUX_CLEANUP_H

#pragma GCC system_header

#include "compiler.h"

#include <stddef.h>

#define __cleanup(function) __attribute__((__cleanup__(function)))

/* DEFINE_FREE(name, type, statement about _T); type variable __free(name) = ...; */
#define DEFINE_FREE(name, type, statement) \
	static inline __maybe_unused void __free_##name(void *sy__place) \
	{ \
		type _T = *(type *)sy__place; \
		statement; \
	}
#define __free(name) __cleanup(__free_##name)

/* The value; the variable is NULL from then on. */
#define no_free_ptr(pointer) \
	__extension__ ({ \
		__typeof__(pointer) sy__kept = (pointer); \
		(pointer) = NULL; \
		sy__kept; \
	})
#define return_ptr(pointer) return no_free_ptr(pointer)
#define retain_and_null_ptr(pointer) ((void)no_free_ptr(pointer))

/* DEFINE_CLASS(name, type, statement about _T at the end, initial value, arguments); CLASS(name, variable)(arguments); */
#define DEFINE_CLASS(name, type, end, start, ...) \
	typedef type class_##name##_t; \
	static inline __maybe_unused void class_##name##_destructor(type *sy__place) \
	{ \
		type _T = *sy__place; \
		end; \
	} \
	static inline __maybe_unused type class_##name##_constructor(__VA_ARGS__) \
	{ \
		type t = start; \
		return t; \
	}
#define CLASS(name, variable) class_##name##_t variable __cleanup(class_##name##_destructor) = class_##name##_constructor

/* DEFINE_GUARD(name, type, statement that takes _T, one that lets it go); guard(name)(&lock); */
#define DEFINE_GUARD(name, type, take, drop) \
	DEFINE_CLASS(name, type, if (_T) { drop; }, __extension__ ({ take; _T; }), type _T)

/* The same for what takes no argument, as rcu_read_lock. */
#define DEFINE_LOCK_GUARD_0(name, take, drop) DEFINE_CLASS(name, int, (void)_T; drop, __extension__ ({ take; 1; }), void)

#define SY__JOINED(a, b) a##b
#define SY__JOIN(a, b) SY__JOINED(a, b)
#define guard(name) CLASS(name, SY__JOIN(sy__guard_, __COUNTER__) __maybe_unused)

/* scoped_guard(name, &lock) statement */
#define scoped_guard(...) SY__SCOPED(__VA_ARGS__, , 0)
#define SY__SCOPED(name, argument, ...) \
	for (CLASS(name, sy__scope __maybe_unused)(argument), *sy__once = &sy__scope; sy__once; sy__once = NULL)

#endif
