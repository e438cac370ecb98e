/* <linux/hash.h> for kernel code that is compiled into a program: numbers spread by multiplication with the golden ratio. */
#ifndef SLABYARD_KERNEL_LINUX_HASH_H
#define SLABYARD_KERNEL_LINUX_HASH_H

#pragma GCC system_header

#include "types.h"

#define GOLDEN_RATIO_32 0x61c88647U
#define GOLDEN_RATIO_64 0x61c8864680b583ebULL
#if __SIZEOF_LONG__ == 4
#define GOLDEN_RATIO_PRIME GOLDEN_RATIO_32
#define hash_long(value, bits) hash_32(value, bits)
#else
#define GOLDEN_RATIO_PRIME GOLDEN_RATIO_64
#define hash_long(value, bits) hash_64(value, bits)
#endif

static inline u32 hash_32(u32 value, unsigned bits)
{
	return value * GOLDEN_RATIO_32 >> (32 - bits);
}

static inline u32 hash_64(u64 value, unsigned bits)
{
	return (u32)(value * GOLDEN_RATIO_64 >> (64 - bits));
}

static inline u32 hash_ptr(const void *pointer, unsigned bits)
{
	return hash_long((unsigned long)pointer, bits);
}

static inline u32 hash32_ptr(const void *pointer)
{
	return (u32)((u64)(unsigned long)pointer ^ (u64)(unsigned long)pointer >> 32);
}

#endif
