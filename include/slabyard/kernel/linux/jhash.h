/* <linux/jhash.h> for kernel code that is compiled into a program: hashes of memory and words, spread well, of no promised value. */
#ifndef SLABYARD_KERNEL_LINUX_JHASH_H
#define SLABYARD_KERNEL_LINUX_JHASH_H

#pragma GCC system_header

#include "types.h"

#include <string.h>

#define JHASH_INITVAL 0xdeadbeefU
#define jhash_size(bits) ((u32)1 << (bits))
#define jhash_mask(bits) (jhash_size(bits) - 1)

/* One more word. */
static inline u32 sy__jhash_mix(u32 hash, u32 word)
{
	hash = (hash ^ word) * 0x9e3779b1U;
	hash ^= hash >> 15;
	hash *= 0x85ebca77U;
	return hash ^ hash >> 13;
}

static inline u32 jhash2(const u32 *words, u32 count, u32 start)
{
	u32 hash = JHASH_INITVAL + (count << 2) + start;

	while (count--)
		hash = sy__jhash_mix(hash, *words++);
	return hash;
}

static inline u32 jhash(const void *memory, u32 bytes, u32 start)
{
	const char *at = (const char *)memory;
	u32 hash = JHASH_INITVAL + bytes + start, word = 0;

	for (; bytes >= sizeof(word); bytes -= (u32)sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = sy__jhash_mix(hash, word);
	}
	word = 0;
	memcpy(&word, at, bytes);
	return sy__jhash_mix(hash, word);
}

static inline u32 jhash_3words(u32 a, u32 b, u32 c, u32 start)
{
	const u32 words[] = { a, b, c };

	return jhash2(words, 3, start);
}

static inline u32 jhash_2words(u32 a, u32 b, u32 start)
{
	return jhash_3words(a, b, 0, start);
}

static inline u32 jhash_1word(u32 a, u32 start)
{
	return jhash_3words(a, 0, 0, start);
}

#endif
