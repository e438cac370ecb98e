/*
 * The fast path of the default policy (the first of table.c), which malloc contains without a call between.
 */
#ifndef SY_DEFAULT_H
#define SY_DEFAULT_H

#include "yard/fast.h"

/* Whether these are the default policy's entries: then the functions below serve a heap that has them. */
static inline bool sy__default_serves(void *(*malloc)(size_t size, struct sy_heap *), void (*free)(void *object, struct sy_heap *))
{
	return malloc == sy__yard_here.malloc && free == sy__yard_here.free;
}

/* Of 1 to SY__KMALLOC_SMALL bytes. */
static inline void *sy__default_malloc_small(size_t size, struct sy_heap *heap)
{
	return sy__yard_malloc_small(size, heap);
}

/* Of any other number. */
static inline void *sy__default_malloc_other(size_t size, struct sy_heap *heap)
{
	return sy__yard_malloc_other(size, heap);
}

/* Of any address. */
static inline void sy__default_free(void *object, struct sy_heap *heap)
{
	sy__yard_free_here(object, heap);
}

/* Of any address: bytes that may be written of an object in a slab; 0: it is in none. */
static inline size_t sy__default_room(const void *object, struct sy_heap *heap)
{
	return sy__yard_room_here(object, heap);
}

#endif
