/*
 * <linux/mempool.h> for kernel code that is compiled into a program: a reserve of elements, so that an allocation that may wait
 * always succeeds. See mempool_create(3).
 *
 * Thread safety: any thread may call mempool_alloc and mempool_free at any time, beside one mempool_resize too. Nothing else may
 * run beside the other functions on the same pool.
 */
#ifndef SLABYARD_KERNEL_LINUX_MEMPOOL_H
#define SLABYARD_KERNEL_LINUX_MEMPOOL_H

#include <slabyard/kmem.h>

#include "spinlock.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef void *(mempool_alloc_t)(gfp_t, void *pool_data);
typedef void(mempool_free_t)(void *element, void *pool_data);

/* Zeroed memory is a pool that was never made: mempool_exit does nothing with it. */
typedef struct mempool_s {
	spinlock_t lock;
	int min_nr, curr_nr; /* elements that the reserve should have, and has */
	void **elements;
	void *pool_data;
	mempool_alloc_t *alloc;
	mempool_free_t *free;
} mempool_t;

/* A pool with a reserve of min_nr elements of alloc(flags, pool_data). NULL, or -ENOMEM: no memory for them. */
mempool_t *mempool_create(int min_nr, mempool_alloc_t *, mempool_free_t *, void *pool_data);
int mempool_init(mempool_t *, int min_nr, mempool_alloc_t *, mempool_free_t *, void *pool_data);

/* Frees the reserve. All elements must have been freed. NULL does nothing. */
void mempool_destroy(mempool_t *);
void mempool_exit(mempool_t *);

/* Changes the size of the reserve, at least 1. -ENOMEM: there was no memory for all of it. -EINVAL: less than 1. */
int mempool_resize(mempool_t *, int new_min_nr);

/* An element: a new one, or one of the reserve, or, if the flags allow to wait, the next one that is freed. NULL: none of these. */
void *mempool_alloc(mempool_t *, gfp_t);

/* Puts an element into the reserve if it is not full, else frees it. NULL does nothing. */
void mempool_free(void *element, mempool_t *);

/* Pools of a cache's objects, and of kmalloc's. */
void *mempool_alloc_slab(gfp_t, void *cache);
void mempool_free_slab(void *element, void *cache);
void *mempool_kmalloc(gfp_t, void *size);
void mempool_kfree(void *element, void *size);

static inline bool mempool_initialized(const mempool_t *pool)
{
	return pool->elements != NULL;
}

static inline mempool_t *mempool_create_node(int min_nr, mempool_alloc_t *alloc, mempool_free_t *free, void *pool_data,
                                             gfp_t flags, int node)
{
	(void)flags;
	(void)node;
	return mempool_create(min_nr, alloc, free, pool_data);
}

static inline mempool_t *mempool_create_slab_pool(int min_nr, struct kmem_cache *cache)
{
	return mempool_create(min_nr, mempool_alloc_slab, mempool_free_slab, cache);
}

static inline int mempool_init_slab_pool(mempool_t *pool, int min_nr, struct kmem_cache *cache)
{
	return mempool_init(pool, min_nr, mempool_alloc_slab, mempool_free_slab, cache);
}

static inline mempool_t *mempool_create_kmalloc_pool(int min_nr, size_t size)
{
	return mempool_create(min_nr, mempool_kmalloc, mempool_kfree, (void *)(uintptr_t)size);
}

static inline int mempool_init_kmalloc_pool(mempool_t *pool, int min_nr, size_t size)
{
	return mempool_init(pool, min_nr, mempool_kmalloc, mempool_kfree, (void *)(uintptr_t)size);
}

/* Descriptors of 2^order pages. */
static inline void *mempool_alloc_pages(gfp_t flags, void *order)
{
	return alloc_pages(flags, (unsigned)(uintptr_t)order);
}

static inline void mempool_free_pages(void *page, void *order)
{
	__free_pages((struct page *)page, (unsigned)(uintptr_t)order);
}

static inline mempool_t *mempool_create_page_pool(int min_nr, int order)
{
	return mempool_create(min_nr, mempool_alloc_pages, mempool_free_pages, (void *)(uintptr_t)order);
}

static inline int mempool_init_page_pool(mempool_t *pool, int min_nr, int order)
{
	return mempool_init(pool, min_nr, mempool_alloc_pages, mempool_free_pages, (void *)(uintptr_t)order);
}

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
