/* <linux/kstrtox.h> for kernel code that is compiled into a program: numbers from text, all of which must be one. */
#ifndef SLABYARD_KERNEL_LINUX_KSTRTOX_H
#define SLABYARD_KERNEL_LINUX_KSTRTOX_H

#pragma GCC system_header

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* 0; -EINVAL: no number, or something behind it but one line end; -ERANGE: it does not fit. */
int sy__kstrtoull(const char *text, unsigned base, unsigned long long most, unsigned long long *number);
int sy__kstrtoll(const char *text, unsigned base, long long least, long long most, long long *number);
int sy__kstrtobool(const char *text, bool *so);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define SY__KSTRTO_UNSIGNED(name, type) \
	static inline int __attribute__((__warn_unused_result__)) name(const char *text, unsigned base, type *number) \
	{ \
		unsigned long long sy__is; \
		int sy__error = sy__kstrtoull(text, base, (type)~(type)0, &sy__is); \
		if (!sy__error) \
			*number = (type)sy__is; \
		return sy__error; \
	}
#define SY__KSTRTO_SIGNED(name, type) \
	static inline int __attribute__((__warn_unused_result__)) name(const char *text, unsigned base, type *number) \
	{ \
		const long long sy__most = (long long)(~0ULL >> 1 >> (64 - sizeof(type) * 8)); \
		long long sy__is; \
		int sy__error = sy__kstrtoll(text, base, -sy__most - 1, sy__most, &sy__is); \
		if (!sy__error) \
			*number = (type)sy__is; \
		return sy__error; \
	}
SY__KSTRTO_UNSIGNED(kstrtoull, unsigned long long)
SY__KSTRTO_UNSIGNED(kstrtoul, unsigned long)
SY__KSTRTO_UNSIGNED(kstrtouint, unsigned)
SY__KSTRTO_UNSIGNED(kstrtou64, u64)
SY__KSTRTO_UNSIGNED(kstrtou32, u32)
SY__KSTRTO_UNSIGNED(kstrtou16, u16)
SY__KSTRTO_UNSIGNED(kstrtou8, u8)
SY__KSTRTO_SIGNED(kstrtoll, long long)
SY__KSTRTO_SIGNED(kstrtol, long)
SY__KSTRTO_SIGNED(kstrtoint, int)
SY__KSTRTO_SIGNED(kstrtos64, s64)
SY__KSTRTO_SIGNED(kstrtos32, s32)
SY__KSTRTO_SIGNED(kstrtos16, s16)
SY__KSTRTO_SIGNED(kstrtos8, s8)

/* y, Y, t, T, 1, on; n, N, f, F, 0, off. */
static inline int __attribute__((__warn_unused_result__)) kstrtobool(const char *text, bool *so)
{
	return sy__kstrtobool(text, so);
}

#define strtobool(text, so) kstrtobool(text, so)

#include <stdlib.h>

#define simple_strtoul(text, end, base) strtoul(text, end, base)
#define simple_strtol(text, end, base) strtol(text, end, base)
#define simple_strtoull(text, end, base) strtoull(text, end, base)
#define simple_strtoll(text, end, base) strtoll(text, end, base)

#endif
