/* <linux/cleanup.h> for kernel code that is compiled into a program: variables that free or unlock when they go out of scope. */
#ifndef SLABYARD_KERNEL_LINUX_CLEANUP_H
#define SLABYARD_KERNEL_LINUX_CLEANUP_H

#pragma GCC system_header

#include "compiler.h"

#include <stddef.h>
#include <stdint.h>

#define __cleanup(function) __attribute__((__cleanup__(function)))

/* DEFINE_FREE(name, type, statement about _T); type variable __free(name) = ...; */
#define DEFINE_FREE(name, type, statement) \
	static inline __maybe_unused void __free_##name(void *sy__place) \
	{ \
		type _T = *(type *)sy__place; \
		statement; \
	}
#define __free(name) __cleanup(__free_##name)

/* The value, and the variable is NULL from then on. */
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

/* Of a guard whose lock may not be had: NULL then, else not. */
#define SY__GUARD_LOCK(name, lock) \
	static inline __maybe_unused void *class_##name##_lock_ptr(class_##name##_t *_T) \
	{ \
		return (void *)(uintptr_t)(lock); \
	}

/* DEFINE_GUARD(name, type, statement that takes _T, one that lets it go); guard(name)(&lock); */
#define DEFINE_GUARD(name, type, take, drop) \
	DEFINE_CLASS(name, type, if (_T) { drop; }, __extension__ ({ take; _T; }), type _T) \
	SY__GUARD_LOCK(name, *_T)
#define SY__JOINED(a, b) a##b
#define SY__JOIN(a, b) SY__JOINED(a, b)
#define guard(name) CLASS(name, SY__JOIN(sy__guard_, __COUNTER__) __maybe_unused)

/* scoped_guard(name, &lock) statement; where the lock could not be had there is none, and of scoped_cond_guard(name, failed, &lock)
 * the statement failed in its place. */
#define scoped_guard(...) SY__SCOPED(__VA_ARGS__, , 0)
#define SY__SCOPED(name, argument, ...) \
	for (CLASS(name, sy__scope __maybe_unused)(argument), *sy__once = (class_##name##_t *)1; \
	     sy__once && class_##name##_lock_ptr(&sy__scope); sy__once = (class_##name##_t *)0)
#define scoped_cond_guard(name, failed, ...) \
	for (CLASS(name, sy__scope __maybe_unused)(__VA_ARGS__), *sy__once = (class_##name##_t *)1; sy__once; \
	     sy__once = (class_##name##_t *)0) \
		if (!class_##name##_lock_ptr(&sy__scope)) { \
			failed; \
		} else

/* DEFINE_GUARD_COND(name, _try, whether _T was taken), or with what tells it of _RET: another way to take it. */
#define DEFINE_GUARD_COND(name, ...) SY__GUARD_FORM(__VA_ARGS__, SY__GUARD_COND_RET, SY__GUARD_COND, 0)(name, __VA_ARGS__)
#define SY__GUARD_FORM(form, take, taken, chosen, ...) chosen
#define SY__GUARD_COND(name, form, taken) \
	typedef class_##name##_t class_##name##form##_t; \
	static inline __maybe_unused void class_##name##form##_destructor(class_##name##_t *place) { class_##name##_destructor(place); } \
	static inline __maybe_unused class_##name##_t class_##name##form##_constructor(class_##name##_t _T) \
	{ \
		return _T && (taken) ? _T : NULL; \
	} \
	SY__GUARD_LOCK(name##form, *_T)
#define SY__GUARD_COND_RET(name, form, take, taken) \
	SY__GUARD_COND(name, form, __extension__ ({ __typeof__(take) _RET = (take); taken; }))

/* Where more is to be kept than the lock: in take and drop _T is a pointer to a lock and these members. */
#define DEFINE_LOCK_GUARD_1(name, type, take, drop, ...) \
	SY__LOCK_GUARD(name, type, type *sy__lock, sy__lock, take, drop, __VA_ARGS__)
#define DEFINE_LOCK_GUARD_1_COND(name, form, taken) \
	typedef class_##name##_t class_##name##form##_t; \
	static inline __maybe_unused void class_##name##form##_destructor(class_##name##_t *place) { class_##name##_destructor(place); } \
	static inline __maybe_unused class_##name##_t class_##name##form##_constructor(__typeof__(((class_##name##_t *)0)->lock) sy__lock) \
	{ \
		class_##name##_t sy__kept = { .lock = sy__lock }, *_T = &sy__kept; \
		if (!(taken)) \
			_T->lock = NULL; \
		return sy__kept; \
	} \
	SY__GUARD_LOCK(name##form, _T->lock)

/* The same for what takes no argument, as rcu_read_lock. */
#define DEFINE_LOCK_GUARD_0(name, take, drop, ...) SY__LOCK_GUARD(name, void, void, (void *)1, take, drop, __VA_ARGS__)
#define SY__LOCK_GUARD(name, type, argument, is, take, drop, ...) \
	typedef struct { \
		type *lock; \
		__VA_ARGS__; \
	} class_##name##_t; \
	static inline __maybe_unused void class_##name##_destructor(class_##name##_t *_T) \
	{ \
		if (_T->lock) { \
			drop; \
		} \
	} \
	static inline __maybe_unused class_##name##_t class_##name##_constructor(argument) \
	{ \
		class_##name##_t sy__kept = { .lock = is }, *_T = &sy__kept; \
		take; \
		(void)_T; \
		return sy__kept; \
	} \
	SY__GUARD_LOCK(name, _T->lock)

#endif
