/* What the files of the slab interface share: the calls (adapter.c), the life of caches (caches.c), what Linux 6.12 wants besides
 * (since.c). */
#ifndef SY_LINUX_ADAPTER_H
#define SY_LINUX_ADAPTER_H

#include "port.h"

#include <linux/slab.h>

#include "../../slab.h"

/* A cache: the kernel's structure, ours behind it. */
struct kmem {
	struct kmem_cache common; /* first: the kernel's pointer is to this */
	struct sy_cache *cache;
	/* The functions that calls use, and their first argument: the policy's with the cache, two loads nearer than by the cache; or
	 * those that log, with this structure in place of the cache. The types are the same, because kernels may check them (CFI). */
	void *(*alloc)(struct sy_cache *target, unsigned slot, unsigned flags, int node);
	void (*free)(struct sy_cache *target, unsigned slot, void *object);
	/* NULL: the policy has no quick calls, or there is a log, which cannot have them. */
	void *(*quick_alloc)(struct sy_cache *target, unsigned slot);
	bool (*quick_free)(struct sy_cache *target, unsigned slot, void *object);
	struct sy_cache *target;
};

static inline struct kmem *kmem_of(struct kmem_cache *s)
{
	return container_of(s, struct kmem, common);
}

/* adapter.c */
void sy__general_start(struct sy_heap *);
void sy__aim_calls(struct kmem *);                                       /* at its cache, which is there */
struct sy_cache *sy__create_cache(const struct sy_cache_config *);       /* may sleep */

/* caches.c: makes the cache of a structure whose name, sizes, alignment, flags and constructor are set. 0, or -ENOMEM. */
int sy__cache_begin(struct kmem_cache *);

/* since.c: pages from the page allocator, without the policy. */
void *sy__linux_large_alloc(size_t size, gfp_t, int node, unsigned long caller);
void sy__linux_large_free(struct page *head);

/* The cache of a set (kmem_buckets_create) that serves a size; NULL: there is no set, or it has none so large. */
static inline struct kmem_cache *sy__bucket(kmem_buckets *buckets, size_t size)
{
#ifdef CONFIG_SLAB_BUCKETS
	if (!ZERO_OR_NULL_PTR(buckets) && size - 1 < KMALLOC_MAX_CACHE_SIZE)
		return (*buckets)[order_base_2(max_t(size_t, size, KMALLOC_MIN_SIZE))];
#endif
	return NULL;
}

#endif
