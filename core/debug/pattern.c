/*
 * Patterns in memory that nobody may write: freed objects, fresh ones, and zones around objects.
 *
 * A pattern is a word of four bytes that people recognise in a debugger (Bonwick 1994, section 6.3). Its bytes stand by address, so that
 * any part of a pattern can be verified to the byte.
 */
#include "debug.h"

static unsigned char byte_at(const char *at, uint32_t word)
{
	return ((const unsigned char *)&word)[(uintptr_t)at & 3];
}

bool sy__pattern_has(const char *at, char byte, uint32_t word)
{
	return (unsigned char)byte == byte_at(at, word);
}

static bool aligned(const char *at)
{
	return !((uintptr_t)at & 3);
}

void sy__pattern_fill(char *from, const char *to, uint32_t word)
{
	for (; from < to && !aligned(from); from++)
		*from = (char)byte_at(from, word);
	for (; from + sizeof(word) <= to; from += sizeof(word))
		*(uint32_t *)(void *)from = word;
	for (; from < to; from++)
		*from = (char)byte_at(from, word);
}

const char *sy__pattern_broken(const char *from, const char *to, uint32_t word)
{
	for (; from < to && !aligned(from); from++)
		if (!sy__pattern_has(from, *from, word))
			return from;
	while (from + sizeof(word) <= to && *(const uint32_t *)(const void *)from == word)
		from += sizeof(word);
	for (; from < to; from++)
		if (!sy__pattern_has(from, *from, word))
			return from;
	return NULL;
}
