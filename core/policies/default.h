/*
 * The fast path of the default policy (the first one of table.c), which malloc inlines.
 */
#ifndef SY_DEFAULT_H
#define SY_DEFAULT_H

#include "yard/fast.h"

/* Whether a heap's entries are the default policy's, so that the functions below may serve it. */
static inline bool sy__default_allocates(void *(*malloc)(size_t size, struct sy_heap *))
{
	return malloc == sy__yard_this_slot.malloc;
}

static inline bool sy__default_frees(void (*free)(void *object, struct sy_heap *))
{
	return free == sy__yard_this_slot.free;
}

/* Allocates 1 to SY__KMALLOC_SMALL bytes. */
static inline void *sy__default_malloc_small(size_t size, struct sy_heap *heap)
{
	return sy__yard_malloc_small(size, heap);
}

/* Allocates any other number of bytes: (size, heap). */
#define sy__default_malloc_other sy__yard_malloc_other

/* Frees any address. Most frees do without the heap, which is read by those that need it. */
static inline void sy__default_free(void *object, struct sy_heap *const *heap)
{
	sy__yard_free_this_slot(object, heap);
}

/* Bytes that may be written, of an object in a slab; 0: the address is in no slab. */
static inline size_t sy__default_room(const void *object, struct sy_heap *heap)
{
	return sy__yard_room_this_slot(object, heap);
}

#endif
