/* <linux/unaligned.h> for kernel code that is compiled into a program: numbers at any address, of either byte order. */
#ifndef SLABYARD_KERNEL_LINUX_UNALIGNED_H
#define SLABYARD_KERNEL_LINUX_UNALIGNED_H

#pragma GCC system_header

#include "types.h"

#include <string.h>

#define get_unaligned(pointer) \
	__extension__ ({ \
		__typeof__(__extension__ ({ *(pointer); })) sy__value; \
		memcpy(&sy__value, (pointer), sizeof(sy__value)); \
		sy__value; \
	})
#define put_unaligned(value, pointer) \
	do { \
		__typeof__(*(pointer)) sy__value = (value); \
		memcpy((pointer), &sy__value, sizeof(sy__value)); \
	} while (0)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SY__LE(bits, value) (value)
#define SY__BE(bits, value) __builtin_bswap##bits(value)
#else
#define SY__LE(bits, value) __builtin_bswap##bits(value)
#define SY__BE(bits, value) (value)
#endif
#define SY__UNALIGNED(bits) \
	static inline u##bits get_unaligned_le##bits(const void *from) \
	{ \
		u##bits value; \
		memcpy(&value, from, sizeof(value)); \
		return SY__LE(bits, value); \
	} \
	static inline u##bits get_unaligned_be##bits(const void *from) \
	{ \
		u##bits value; \
		memcpy(&value, from, sizeof(value)); \
		return SY__BE(bits, value); \
	} \
	static inline void put_unaligned_le##bits(u##bits value, void *to) \
	{ \
		value = SY__LE(bits, value); \
		memcpy(to, &value, sizeof(value)); \
	} \
	static inline void put_unaligned_be##bits(u##bits value, void *to) \
	{ \
		value = SY__BE(bits, value); \
		memcpy(to, &value, sizeof(value)); \
	}
SY__UNALIGNED(16)
SY__UNALIGNED(32)
SY__UNALIGNED(64)

#endif
