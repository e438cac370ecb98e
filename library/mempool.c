/*
 * Elements kept aside (linux/mempool.h).
 *
 * A pool holds min_nr elements that it got when there was memory. It goes to them only when the allocator refuses, and whoever
 * gives elements back fills it up first. So as long as every holder of an element gives it back without needing another one of
 * the same pool, somebody who waits gets one in the end: that is the promise, and why an allocation that may wait never fails.
 *
 * Waiting. In a kernel the one who waits sleeps until an element is given back, and looks again every five seconds, as the
 * allocator may have memory by then. Here it looks again after a millisecond: memory is this short only when something is badly
 * wrong, and a pool without a condition variable can lie in zeroed memory, as the kernel's can.
 *
 * Locks. A pool's lock protects its elements, where they are, and how many are and should be kept. Nothing is called with it
 * held, so the functions of the pool's owner may take any lock.
 */
#include <slabyard/kernel/linux/mempool.h>

#include <errno.h>
#include <string.h>
#include <time.h>

/* One of those kept aside, or NULL. */
static void *take_kept(mempool_t *pool)
{
	void *element = NULL;

	spin_lock(&pool->lock);
	if (pool->curr_nr > 0)
		element = pool->elements[--pool->curr_nr];
	spin_unlock(&pool->lock);
	return element;
}

/* False: enough are kept. */
static bool keep(mempool_t *pool, void *element)
{
	bool kept = false;

	spin_lock(&pool->lock);
	if (pool->curr_nr < pool->min_nr) {
		pool->elements[pool->curr_nr++] = element;
		kept = true;
	}
	spin_unlock(&pool->lock);
	return kept;
}

static bool is_short(mempool_t *pool)
{
	bool few;

	spin_lock(&pool->lock);
	few = pool->curr_nr < pool->min_nr;
	spin_unlock(&pool->lock);
	return few;
}

/* Keeps as many as there should be. */
static int fill(mempool_t *pool)
{
	while (is_short(pool)) {
		void *element = pool->alloc(GFP_KERNEL, pool->pool_data);

		if (!element)
			return -ENOMEM;
		mempool_free(element, pool);
	}
	return 0;
}

int mempool_init(mempool_t *pool, int min_nr, mempool_alloc_t *alloc, mempool_free_t *free, void *pool_data)
{
	int error;

	*pool = (mempool_t){ .min_nr = min_nr, .pool_data = pool_data, .alloc = alloc, .free = free };
	pool->elements = min_nr < 0 ? NULL : kmalloc_array((size_t)min_nr, sizeof(void *), GFP_KERNEL);
	if (!pool->elements)
		return -ENOMEM;
	error = fill(pool);
	if (error)
		mempool_exit(pool);
	return error;
}

void mempool_exit(mempool_t *pool)
{
	void *element;

	while ((element = take_kept(pool)))
		pool->free(element, pool->pool_data);
	kfree(pool->elements);
	pool->elements = NULL;
}

mempool_t *mempool_create(int min_nr, mempool_alloc_t *alloc, mempool_free_t *free, void *pool_data)
{
	mempool_t *pool = kmalloc(sizeof(*pool), GFP_KERNEL);

	if (pool && mempool_init(pool, min_nr, alloc, free, pool_data)) {
		kfree(pool);
		return NULL;
	}
	return pool;
}

void mempool_destroy(mempool_t *pool)
{
	if (!pool)
		return;
	mempool_exit(pool);
	kfree(pool);
}

/* Of those kept aside one that is too many, or NULL. */
static void *take_surplus(mempool_t *pool)
{
	void *element = NULL;

	spin_lock(&pool->lock);
	if (pool->curr_nr > pool->min_nr)
		element = pool->elements[--pool->curr_nr];
	spin_unlock(&pool->lock);
	return element;
}

/* Has the pool keep its elements there; where it had them. */
static void **move(mempool_t *pool, void **elements, int min_nr)
{
	void **before;

	spin_lock(&pool->lock);
	before = pool->elements;
	memcpy(elements, before, (size_t)pool->curr_nr * sizeof(void *));
	pool->elements = elements;
	pool->min_nr = min_nr;
	spin_unlock(&pool->lock);
	return before;
}

static int enlarge(mempool_t *pool, int min_nr)
{
	void **elements = kmalloc_array((size_t)min_nr, sizeof(void *), GFP_KERNEL);

	if (!elements)
		return -ENOMEM;
	kfree(move(pool, elements, min_nr));
	return fill(pool);
}

static void reduce(mempool_t *pool, int min_nr)
{
	void *element;

	spin_lock(&pool->lock);
	pool->min_nr = min_nr;
	spin_unlock(&pool->lock);
	while ((element = take_surplus(pool)))
		pool->free(element, pool->pool_data);
}

/* Nobody else changes min_nr. */
int mempool_resize(mempool_t *pool, int new_min_nr)
{
	if (new_min_nr < 1)
		return -EINVAL;
	if (new_min_nr > pool->min_nr)
		return enlarge(pool, new_min_nr);
	reduce(pool, new_min_nr);
	return fill(pool);
}

void *mempool_alloc(mempool_t *pool, gfp_t flags)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	void *element;

	for (;;) {
		element = pool->alloc(flags, pool->pool_data);
		if (!element)
			element = take_kept(pool);
		if (element || !gfpflags_allow_blocking(flags))
			return element;
		nanosleep(&moment, NULL);
	}
}

void mempool_free(void *element, mempool_t *pool)
{
	if (element && !keep(pool, element))
		pool->free(element, pool->pool_data);
}

void *mempool_alloc_slab(gfp_t flags, void *cache)
{
	return kmem_cache_alloc(cache, flags);
}

void mempool_free_slab(void *element, void *cache)
{
	kmem_cache_free(cache, element);
}

void *mempool_kmalloc(gfp_t flags, void *size)
{
	return kmalloc((size_t)(uintptr_t)size, flags);
}

void mempool_kfree(void *element, void *size)
{
	(void)size;
	kfree(element);
}
