/*
 * <asm/byteorder.h> for kernel code that is compiled into a program: numbers in either byte order. The system's headers read it too,
 * in place of the system's.
 */
#ifndef SLABYARD_KERNEL_ASM_BYTEORDER_H
#define SLABYARD_KERNEL_ASM_BYTEORDER_H

#pragma GCC system_header

#include "../linux/types.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <linux/byteorder/little_endian.h>
#else
#include <linux/byteorder/big_endian.h>
#endif

#define swab16(number) __builtin_bswap16(number)
#define swab32(number) __builtin_bswap32(number)
#define swab64(number) __builtin_bswap64(number)

#define cpu_to_le16(number) __cpu_to_le16(number)
#define le16_to_cpu(number) __le16_to_cpu(number)
#define cpu_to_le16p(place) __cpu_to_le16p(place)
#define le16_to_cpup(place) __le16_to_cpup(place)
#define cpu_to_le16s(place) __cpu_to_le16s(place)
#define le16_to_cpus(place) __le16_to_cpus(place)
#define cpu_to_le32(number) __cpu_to_le32(number)
#define le32_to_cpu(number) __le32_to_cpu(number)
#define cpu_to_le32p(place) __cpu_to_le32p(place)
#define le32_to_cpup(place) __le32_to_cpup(place)
#define cpu_to_le32s(place) __cpu_to_le32s(place)
#define le32_to_cpus(place) __le32_to_cpus(place)
#define cpu_to_le64(number) __cpu_to_le64(number)
#define le64_to_cpu(number) __le64_to_cpu(number)
#define cpu_to_le64p(place) __cpu_to_le64p(place)
#define le64_to_cpup(place) __le64_to_cpup(place)
#define cpu_to_le64s(place) __cpu_to_le64s(place)
#define le64_to_cpus(place) __le64_to_cpus(place)
#define cpu_to_be16(number) __cpu_to_be16(number)
#define be16_to_cpu(number) __be16_to_cpu(number)
#define cpu_to_be16p(place) __cpu_to_be16p(place)
#define be16_to_cpup(place) __be16_to_cpup(place)
#define cpu_to_be16s(place) __cpu_to_be16s(place)
#define be16_to_cpus(place) __be16_to_cpus(place)
#define cpu_to_be32(number) __cpu_to_be32(number)
#define be32_to_cpu(number) __be32_to_cpu(number)
#define cpu_to_be32p(place) __cpu_to_be32p(place)
#define be32_to_cpup(place) __be32_to_cpup(place)
#define cpu_to_be32s(place) __cpu_to_be32s(place)
#define be32_to_cpus(place) __be32_to_cpus(place)
#define cpu_to_be64(number) __cpu_to_be64(number)
#define be64_to_cpu(number) __be64_to_cpu(number)
#define cpu_to_be64p(place) __cpu_to_be64p(place)
#define be64_to_cpup(place) __be64_to_cpup(place)
#define cpu_to_be64s(place) __cpu_to_be64s(place)
#define be64_to_cpus(place) __be64_to_cpus(place)

#define SY__ADD_CPU(name, bits) \
	static inline void name##bits##_add_cpu(__##name##bits *place, u##bits number) \
	{ \
		*place = cpu_to_##name##bits((u##bits)(name##bits##_to_cpu(*place) + number)); \
	}
SY__ADD_CPU(le, 16)
SY__ADD_CPU(le, 32)
SY__ADD_CPU(le, 64)
SY__ADD_CPU(be, 16)
SY__ADD_CPU(be, 32)
SY__ADD_CPU(be, 64)

#endif
