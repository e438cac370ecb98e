/* Objects that a fuzzer holds: each is filled with what follows from its number, and is verified before it is freed. */
#ifndef FUZZ_OBJECTS_H
#define FUZZ_OBJECTS_H

#include "fuzz.h"

#define MOST_OBJECTS 256u
#define FILLED 512u /* bytes at the start and at the end: all of a large object would take its time */

struct held {
	unsigned char *object;
	size_t size;
	unsigned number;
	void *from; /* its cache; NULL: none */
};

static struct held held[MOST_OBJECTS];
static unsigned held_count;

static inline void held_fill(const struct held *one)
{
	size_t edge = one->size < FILLED ? one->size : FILLED;

	memset(one->object, (int)one->number, edge);
	memset(one->object + one->size - edge, (int)one->number, edge);
}

/* The first `size` bytes. */
static inline void held_verify(const struct held *one, size_t size)
{
	for (size_t i = 0; i < size && i < FILLED; i++)
		FUZZ_CHECK(one->object[i] == (unsigned char)one->number);
	for (size_t i = one->size > FILLED ? one->size - FILLED : 0; i < one->size && i < size; i++)
		FUZZ_CHECK(one->object[i] == (unsigned char)one->number);
}

static inline bool held_full(void)
{
	return held_count == MOST_OBJECTS;
}

/* Takes an object that was just allocated; NULL: there was no memory, which is right at any time. */
static inline void held_add(void *object, size_t size, unsigned number, void *from)
{
	if (!object)
		return;
	FUZZ_CHECK(!held_full());
	held[held_count] = (struct held){ object, size, number, from };
	held_fill(&held[held_count++]);
}

/* Gives up an object for its free. */
static inline struct held held_take(unsigned index)
{
	struct held one = held[index];

	held_verify(&one, one.size);
	held[index] = held[--held_count];
	return one;
}

static inline void must_be_zero(const unsigned char *object, size_t size)
{
	for (size_t i = 0; object && i < size; i++)
		FUZZ_CHECK(!object[i]);
}

#endif
