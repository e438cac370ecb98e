/*
 * A reserve of elements (linux/mempool.h).
 *
 * A pool holds min_nr elements that it got when there was memory. It hands them out only when the allocator refuses, and every
 * freed element refills the reserve first. So if every holder of an element can free it without allocating another one of the
 * same pool, a thread that waits gets one in the end. That is the promise, and why an allocation that may wait never fails.
 *
 * Waiting. In a kernel the waiter sleeps until an element is freed, and tries again every five seconds, because the allocator
 * may have memory by then. Here it tries again every millisecond. Memory is this short only when something is badly wrong; and
 * without a condition variable a pool can lie in zeroed memory, as the kernel's can.
 *
 * Locks. A pool's lock protects the reserve: its elements, their array, curr_nr and min_nr. Nothing is called with the lock held,
 * so the owner's functions may take any lock.
 */
#include <slabyard/kernel/linux/mempool.h>

#include <errno.h>
#include <string.h>
#include <time.h>

/* An element of the reserve, if it has more than `least`; or NULL. */
static void *take_above(mempool_t *pool, int least)
{
	void *element = NULL;

	spin_lock(&pool->lock);
	if (pool->curr_nr > least)
		element = pool->elements[--pool->curr_nr];
	spin_unlock(&pool->lock);
	return element;
}

static void free_above(mempool_t *pool, int least)
{
	void *element;

	while ((element = take_above(pool, least)))
		pool->free(element, pool->pool_data);
}

/* Adds an element to the reserve. False: the reserve is full. */
static bool refill(mempool_t *pool, void *element)
{
	bool taken = false;

	spin_lock(&pool->lock);
	if (pool->curr_nr < pool->min_nr) {
		pool->elements[pool->curr_nr++] = element;
		taken = true;
	}
	spin_unlock(&pool->lock);
	return taken;
}

static bool is_short(mempool_t *pool)
{
	bool few;

	spin_lock(&pool->lock);
	few = pool->curr_nr < pool->min_nr;
	spin_unlock(&pool->lock);
	return few;
}

/* Fills the reserve. */
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
	free_above(pool, 0);
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

/* Moves the reserve to a larger array; returns the old one. */
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
	spin_lock(&pool->lock);
	pool->min_nr = min_nr;
	spin_unlock(&pool->lock);
	free_above(pool, min_nr);
}

/* min_nr is read without the lock: there is one mempool_resize at a time. */
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
			element = take_above(pool, 0);
		if (element || !gfpflags_allow_blocking(flags))
			return element;
		nanosleep(&moment, NULL);
	}
}

void mempool_free(void *element, mempool_t *pool)
{
	if (element && !refill(pool, element))
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
