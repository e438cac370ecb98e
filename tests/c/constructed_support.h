/*
 * A cache whose objects have a constructor and a destructor. The constructor fills an object with one byte, CONSTRUCTED,
 * and the destructor checks that it is still there: for policies that keep free objects as they were constructed.
 */
#ifndef CONSTRUCTED_SUPPORT_H
#define CONSTRUCTED_SUPPORT_H

#include "policy_support.h"

#define CONSTRUCTED 0x5c

static unsigned constructed, destructed;

static inline void check_constructed(const void *object, size_t size)
{
	for (size_t i = 0; i < size; i++)
		CHECK_EQUAL(((const unsigned char *)object)[i], CONSTRUCTED);
}

static inline void construct(void *object, size_t size)
{
	memset(object, CONSTRUCTED, size);
	constructed++;
}

static inline void destruct(void *object, size_t size)
{
	check_constructed(object, size);
	destructed++;
}

static inline struct sy_cache *constructed_cache(struct world *world, size_t size, unsigned flags)
{
	struct sy_cache_config config = { .name = "constructed", .size = size, .flags = flags, .constructor = construct,
		                          .destructor = destruct };

	constructed = destructed = 0;
	return there(sy_cache_create(world->heap, &config), "cache");
}

#endif
