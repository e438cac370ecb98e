#include "here.h"

#include "page_interface.h"

#include <slabyard/slabyard.h>

void *sy__here_cache_alloc(struct sy_cache *cache, unsigned flags)
{
	unsigned slot;
	void *object;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return NULL;
	object = cache->policy->cache_alloc(cache, slot, flags, SY_ANY_NODE);
	sy__call_leave();
	return object;
}

void sy__here_cache_free(struct sy_cache *cache, void *object)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	cache->policy->cache_free(cache, slot, object);
	sy__call_leave();
}

void *sy__here_kmalloc(size_t size, unsigned flags, struct sy_heap *heap)
{
	unsigned slot;
	void *object;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return NULL;
	object = heap->policy->kmalloc(heap, slot, size, flags, SY_ANY_NODE);
	sy__call_leave();
	return sy__unlikely(!object && heap->refused) ? heap->refused(size, flags, heap) : object;
}

void *sy__here_malloc(size_t size, struct sy_heap *heap)
{
	return sy__here_kmalloc(size, 0, heap);
}

void sy__here_kfree(void *object, struct sy_heap *heap)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	heap->policy->kfree(heap, slot, object);
	sy__call_leave();
}

void sy__here_free(void *object, struct sy_heap *heap)
{
	if (sy__likely(sy__holds(heap, object)))
		heap->kfree_here(object, heap);
	else if (heap->foreign)
		heap->foreign(object, heap);
}

static const struct sy_here generic = {
	.cache_alloc = sy__here_cache_alloc,
	.cache_free = sy__here_cache_free,
	.kmalloc = sy__here_kmalloc,
	.malloc = sy__here_malloc,
	.kfree = sy__here_kfree,
};

/* Heaps whose slots the caller drives: slot 0, by a caller who is alone. */

static void *cache_alloc_first(struct sy_cache *cache, unsigned flags)
{
	return cache->policy->cache_alloc(cache, 0, flags, SY_ANY_NODE);
}

static void cache_free_first(struct sy_cache *cache, void *object)
{
	cache->policy->cache_free(cache, 0, object);
}

static void *kmalloc_first(size_t size, unsigned flags, struct sy_heap *heap)
{
	return heap->policy->kmalloc(heap, 0, size, flags, SY_ANY_NODE);
}

static void *malloc_first(size_t size, struct sy_heap *heap)
{
	return heap->policy->kmalloc(heap, 0, size, 0, SY_ANY_NODE);
}

static void kfree_first(void *object, struct sy_heap *heap)
{
	heap->policy->kfree(heap, 0, object);
}

static const struct sy_here first = {
	.cache_alloc = cache_alloc_first,
	.cache_free = cache_free_first,
	.kmalloc = kmalloc_first,
	.malloc = malloc_first,
	.kfree = kfree_first,
};

static const struct sy_here *entries(const struct sy_heap *heap)
{
	if (!heap->threads)
		return &first;
	return heap->policy->here ? heap->policy->here : &generic;
}

void sy__here_heap(struct sy_heap *heap)
{
	heap->kmalloc_here = entries(heap)->kmalloc;
	heap->malloc_here = entries(heap)->malloc;
	heap->kfree_here = entries(heap)->kfree;
	heap->free_here = entries(heap)->free ? entries(heap)->free : sy__here_free;
}

void sy__here_cache(struct sy_cache *cache)
{
	cache->alloc_here = entries(cache->heap)->cache_alloc;
	cache->free_here = entries(cache->heap)->cache_free;
}

void *sy_alloc(struct sy_cache *cache, unsigned flags)
{
	return cache->alloc_here(cache, flags);
}

void sy_free(struct sy_cache *cache, void *object)
{
	if (sy__likely(object))
		cache->free_here(cache, object);
}

void *sy_malloc(struct sy_heap *heap, size_t size, unsigned flags)
{
	return heap->kmalloc_here(size, flags, heap);
}

void sy_mfree(struct sy_heap *heap, void *object)
{
	if (sy__likely(object))
		heap->kfree_here(object, heap);
}
