/* <linux/bitops.h> for kernel code that is compiled into a program: bits of arrays of unsigned long. */
#ifndef SLABYARD_KERNEL_LINUX_BITOPS_H
#define SLABYARD_KERNEL_LINUX_BITOPS_H

#pragma GCC system_header

#include "types.h"

#define BIT(number) (1UL << (number))
#define BIT_ULL(number) (1ULL << (number))
#define BIT_MASK(number) (1UL << ((number) % (unsigned long)BITS_PER_LONG))
#define BIT_WORD(number) ((number) / (unsigned long)BITS_PER_LONG)
#define GENMASK(high, low) ((~0UL << (low)) & (~0UL >> (BITS_PER_LONG - 1 - (high))))
#define GENMASK_ULL(high, low) ((~0ULL << (low)) & (~0ULL >> (63 - (high))))
#define BITS_PER_TYPE(type) (sizeof(type) * BITS_PER_BYTE)

static inline void __set_bit(unsigned long bit, volatile unsigned long *words)
{
	words[BIT_WORD(bit)] |= BIT_MASK(bit);
}

static inline void __clear_bit(unsigned long bit, volatile unsigned long *words)
{
	words[BIT_WORD(bit)] &= ~BIT_MASK(bit);
}

static inline bool test_bit(unsigned long bit, const volatile unsigned long *words)
{
	return (words[BIT_WORD(bit)] & BIT_MASK(bit)) != 0;
}

static inline bool __test_and_set_bit(unsigned long bit, volatile unsigned long *words)
{
	bool was = test_bit(bit, words);

	__set_bit(bit, words);
	return was;
}

static inline bool __test_and_clear_bit(unsigned long bit, volatile unsigned long *words)
{
	bool was = test_bit(bit, words);

	__clear_bit(bit, words);
	return was;
}

static inline bool test_and_set_bit(unsigned long bit, volatile unsigned long *words)
{
	return (__atomic_fetch_or(&words[BIT_WORD(bit)], BIT_MASK(bit), __ATOMIC_SEQ_CST) & BIT_MASK(bit)) != 0;
}

static inline bool test_and_clear_bit(unsigned long bit, volatile unsigned long *words)
{
	return (__atomic_fetch_and(&words[BIT_WORD(bit)], ~BIT_MASK(bit), __ATOMIC_SEQ_CST) & BIT_MASK(bit)) != 0;
}

static inline void set_bit(unsigned long bit, volatile unsigned long *words)
{
	__atomic_fetch_or(&words[BIT_WORD(bit)], BIT_MASK(bit), __ATOMIC_RELAXED);
}

static inline void clear_bit(unsigned long bit, volatile unsigned long *words)
{
	__atomic_fetch_and(&words[BIT_WORD(bit)], ~BIT_MASK(bit), __ATOMIC_RELAXED);
}

/* Of the lowest bit set, from 0; of none, undefined. */
static inline unsigned long __ffs(unsigned long word)
{
	return (unsigned long)__builtin_ctzl(word);
}

/* Of the highest. */
static inline unsigned long __fls(unsigned long word)
{
	return (unsigned long)(BITS_PER_LONG - 1 - __builtin_clzl(word));
}

/* Of the highest, from 1; 0 of none. */
static inline int fls(unsigned word)
{
	return word ? 32 - __builtin_clz(word) : 0;
}

static inline int fls64(u64 word)
{
	return word ? 64 - __builtin_clzll(word) : 0;
}

static inline bool test_and_change_bit(unsigned long bit, volatile unsigned long *words)
{
	return (__atomic_fetch_xor(&words[BIT_WORD(bit)], BIT_MASK(bit), __ATOMIC_SEQ_CST) & BIT_MASK(bit)) != 0;
}

static inline void change_bit(unsigned long bit, volatile unsigned long *words)
{
	__atomic_fetch_xor(&words[BIT_WORD(bit)], BIT_MASK(bit), __ATOMIC_RELAXED);
}

static inline void __change_bit(unsigned long bit, volatile unsigned long *words)
{
	words[BIT_WORD(bit)] ^= BIT_MASK(bit);
}

static inline void clear_bit_unlock(unsigned long bit, volatile unsigned long *words)
{
	__atomic_fetch_and(&words[BIT_WORD(bit)], ~BIT_MASK(bit), __ATOMIC_RELEASE);
}

static inline void assign_bit(unsigned long bit, volatile unsigned long *words, bool value)
{
	if (value)
		set_bit(bit, words);
	else
		clear_bit(bit, words);
}

static inline void __assign_bit(unsigned long bit, volatile unsigned long *words, bool value)
{
	if (value)
		__set_bit(bit, words);
	else
		__clear_bit(bit, words);
}

static inline u32 rol32(u32 word, unsigned by) { return word << (by & 31) | word >> (-by & 31); }
static inline u32 ror32(u32 word, unsigned by) { return word >> (by & 31) | word << (-by & 31); }
static inline u64 rol64(u64 word, unsigned by) { return word << (by & 63) | word >> (-by & 63); }
static inline u64 ror64(u64 word, unsigned by) { return word >> (by & 63) | word << (-by & 63); }
static inline s32 sign_extend32(u32 value, int bit) { return (s32)(value << (31 - bit)) >> (31 - bit); }
static inline unsigned fls_long(unsigned long word) { return word ? (unsigned)__fls(word) + 1 : 0; }

#define test_and_set_bit_lock(bit, words) test_and_set_bit(bit, words)
#define BITS_TO_BYTES(bits) (((bits) + BITS_PER_BYTE - 1) / BITS_PER_BYTE)
#define ffz(word) __ffs(~(word))
#define hweight8(word) ((unsigned)__builtin_popcount((u8)(word)))
#define hweight16(word) ((unsigned)__builtin_popcount((u16)(word)))
#define hweight32(word) ((unsigned)__builtin_popcount((u32)(word)))
#define hweight64(word) ((unsigned long)__builtin_popcountll((u64)(word)))
#define hweight_long(word) ((unsigned long)__builtin_popcountl(word))

#endif
