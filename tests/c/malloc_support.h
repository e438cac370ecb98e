/* Programs that run on malloc of this library, linked into them. ctest runs each under every policy. */
#ifndef MALLOC_SUPPORT_H
#define MALLOC_SUPPORT_H

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>

#include "check.h"

/* An object full of its own pattern, which follows from a number. */
static inline void fill(void *object, size_t bytes, uint64_t number)
{
	unsigned char *at = object;

	for (size_t i = 0; i < bytes; i++)
		at[i] = (unsigned char)(number * 31 + i * 7 + (i >> 8));
}

static inline bool is_filled(const void *object, size_t bytes, uint64_t number)
{
	const unsigned char *at = object;

	for (size_t i = 0; i < bytes; i++)
		if (at[i] != (unsigned char)(number * 31 + i * 7 + (i >> 8)))
			return false;
	return true;
}

static inline bool is_zero(const void *object, size_t bytes)
{
	const unsigned char *at = object;

	for (size_t i = 0; i < bytes; i++)
		if (at[i])
			return false;
	return true;
}

/* Alignment that malloc promises: 16, or 8 where an object has no room for more. */
static inline size_t promised(size_t size)
{
	return size > 8 ? 16 : 8;
}

static inline bool is_aligned(const void *object, size_t align)
{
	return !((uintptr_t)object & (align - 1));
}

/* Sizes of all kinds, most of them small: below 2^bits. */
static inline size_t some_size(uint64_t *random, unsigned bits)
{
	return (size_t)(check_random(random) >> (64 - 1 - check_random(random) % bits));
}

#endif
