/*
 * <linux/bitfield.h> for kernel code that is compiled into a program: numbers in some bits of a word, which a constant mask of
 * adjoining ones names.
 */
#ifndef SLABYARD_KERNEL_LINUX_BITFIELD_H
#define SLABYARD_KERNEL_LINUX_BITFIELD_H

#pragma GCC system_header

#include "bits.h"
#include "types.h"

#define __bf_shf(mask) (__builtin_ffsll((long long)(mask)) - 1)
#define FIELD_MAX(mask) ((__typeof__(mask))((mask) >> __bf_shf(mask)))
#define FIELD_FIT(mask, value) (!(((__typeof__(mask))(value) << __bf_shf(mask)) & ~(mask)))
#define FIELD_PREP(mask, value) ((__typeof__(mask))(((__typeof__(mask))(value) << __bf_shf(mask)) & (mask)))
#define FIELD_PREP_CONST(mask, value) FIELD_PREP(mask, value)
#define FIELD_GET(mask, word) ((__typeof__(mask))(((word) & (mask)) >> __bf_shf(mask)))
#define FIELD_MODIFY(mask, place, value) ((void)(*(place) = (*(place) & ~(mask)) | FIELD_PREP(mask, value)))

/* u32_get_bits(word, mask) and its kind; the mask need not be constant. */
#define SY__BITS_OF(type) \
	static inline type type##_encode_bits(type value, type mask) { return (type)(value * (type)(mask & -mask)) & mask; } \
	static inline type type##_get_bits(type word, type mask) { return (type)((word & mask) / (type)(mask & -mask)); } \
	static inline type type##_replace_bits(type word, type value, type mask) \
	{ \
		return (type)((word & (type)~mask) | type##_encode_bits(value, mask)); \
	} \
	static inline void type##p_replace_bits(type *place, type value, type mask) { *place = type##_replace_bits(*place, value, mask); }
SY__BITS_OF(u8)
SY__BITS_OF(u16)
SY__BITS_OF(u32)
SY__BITS_OF(u64)

#endif
