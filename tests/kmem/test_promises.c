/*
 * Promises of the kernel's names that hold over time. Memory of a cache with SLAB_TYPESAFE_BY_RCU stays the cache's until its
 * readers have finished, and __GFP_NOFAIL waits. Run under every policy.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "core/types.h"

#include "check.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* From core/pages/pages.h, which is not for kernel code. */
void sy_pages_fail_after(struct sy_pages *, uint64_t requests);

#define OBJECTS 3000
#define SIZE 504
#define MARK 0x6d61726b

struct thing {
	unsigned mark;
	char rest[SIZE - sizeof(unsigned)];
};

/* Runs once for each object of a slab, so that a reader who finds a freed object finds this too. */
static void make(void *object)
{
	((struct thing *)object)->mark = MARK;
}

static struct thing *things[OBJECTS];

/* Every slab whose wait is over goes; pages that went serve any request. */
static void press(void)
{
	static void *others[OBJECTS];
	struct sy_heap *heap = sy_kmem_heap();

	for (unsigned i = 0; i < 100; i++)
		sy_heap_tick(heap);
	sy_heap_trim(heap);
	for (unsigned i = 0; i < OBJECTS; i++) {
		others[i] = kmalloc(SIZE, GFP_KERNEL);
		CHECK(others[i] != NULL);
		memset(others[i], 0xff, SIZE);
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		kfree(others[i]);
}

static unsigned marked(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < OBJECTS; i++)
		count += READ_ONCE(things[i]->mark) == MARK;
	return count;
}

static void *read_things(void *step)
{
	rcu_read_lock();
	pthread_barrier_wait(step); /* reading */
	pthread_barrier_wait(step); /* is freed, and the slabs that wait for nobody have gone */
	CHECK_EQUAL(marked(), OBJECTS);
	rcu_read_unlock();
	return NULL;
}

static void readers_keep_slabs(void)
{
	struct kmem_cache *cache = kmem_cache_create("typesafe", SIZE, 0, SLAB_TYPESAFE_BY_RCU, make);
	struct sy_heap *heap = sy_kmem_heap();
	pthread_barrier_t step;
	pthread_t reader;

	for (unsigned i = 0; i < OBJECTS; i++)
		CHECK((things[i] = kmem_cache_alloc(cache, GFP_KERNEL)) != NULL);
	CHECK_EQUAL(marked(), OBJECTS);
	CHECK(!pthread_barrier_init(&step, NULL, 2));
	CHECK(!pthread_create(&reader, NULL, read_things, &step));
	pthread_barrier_wait(&step);
	for (unsigned i = 0; i < OBJECTS; i++)
		kmem_cache_free(cache, things[i]);
	kmem_cache_shrink(cache);
	press();
	CHECK(heap->counters.deferred > 0);
	pthread_barrier_wait(&step);
	pthread_join(reader, NULL);
	press();
	press();
	CHECK_EQUAL(heap->counters.deferred, 0);
	pthread_barrier_destroy(&step);
	kmem_cache_destroy(cache);
}

/* Nobody may still look at an object when its cache has gone. */
static void *read_until(void *step)
{
	rcu_read_lock();
	pthread_barrier_wait(step);
	for (unsigned i = 0; i < 2000; i++)
		CHECK_EQUAL(READ_ONCE(things[0]->mark), MARK);
	rcu_read_unlock();
	return NULL;
}

static void destroying_waits_for_readers(void)
{
	struct kmem_cache *cache = kmem_cache_create("typesafe", SIZE, 0, SLAB_TYPESAFE_BY_RCU, make);
	pthread_barrier_t step;
	pthread_t reader;

	CHECK((things[0] = kmem_cache_alloc(cache, GFP_KERNEL)) != NULL);
	CHECK(!pthread_barrier_init(&step, NULL, 2));
	CHECK(!pthread_create(&reader, NULL, read_until, &step));
	pthread_barrier_wait(&step);
	kmem_cache_free(cache, things[0]);
	kmem_cache_destroy(cache);
	press();
	pthread_join(reader, NULL);
	pthread_barrier_destroy(&step);
}

/* A forked child goes on with the slabs that wait, without the readers, which it does not have. */
static void *read_for_fork(void *step)
{
	rcu_read_lock();
	pthread_barrier_wait(step);
	pthread_barrier_wait(step);
	rcu_read_unlock();
	return NULL;
}

static void forks(void)
{
	struct kmem_cache *cache = kmem_cache_create("typesafe", SIZE, 0, SLAB_TYPESAFE_BY_RCU, make);
	pthread_barrier_t step;
	pthread_t reader;
	int status = -1;
	pid_t child;

	for (unsigned i = 0; i < OBJECTS; i++)
		CHECK((things[i] = kmem_cache_alloc(cache, GFP_KERNEL)) != NULL);
	CHECK(!pthread_barrier_init(&step, NULL, 2));
	CHECK(!pthread_create(&reader, NULL, read_for_fork, &step));
	pthread_barrier_wait(&step);
	for (unsigned i = 0; i < OBJECTS; i++)
		kmem_cache_free(cache, things[i]);
	kmem_cache_shrink(cache);
	press();
	child = fork();
	if (!child) {
		press();
		press();
		synchronize_rcu();
		_exit(sy_kmem_heap()->counters.deferred != 0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	pthread_barrier_wait(&step);
	pthread_join(reader, NULL);
	pthread_barrier_destroy(&step);
	kmem_cache_destroy(cache);
}

#define LARGE 70000
#define SMALL 100

static void no_fail(void)
{
	struct kmem_cache *cache = kmem_cache_create("large", LARGE, 0, SLAB_NO_MERGE, NULL);
	struct sy_heap *heap = sy_kmem_heap();
	void *object, *many[3] = { NULL, NULL, NULL };

	sy_pages_fail_after(heap->pages, 1);
	CHECK(kmalloc(LARGE, GFP_KERNEL) == NULL);
	sy_pages_fail_after(heap->pages, 1);
	CHECK(kmalloc(LARGE, GFP_ATOMIC | __GFP_NOFAIL) == NULL); /* a caller that may not wait can't be promised anything */
	sy_pages_fail_after(heap->pages, 1);
	object = kmalloc(LARGE, GFP_KERNEL | __GFP_NOFAIL);
	CHECK(object != NULL);
	kfree(object);
	sy_pages_fail_after(heap->pages, 1);
	object = kmem_cache_zalloc(cache, GFP_KERNEL | __GFP_NOFAIL);
	CHECK(object != NULL);
	sy_pages_fail_after(heap->pages, 2);
	CHECK_EQUAL(kmem_cache_alloc_bulk(cache, GFP_KERNEL | __GFP_NOFAIL, 3, many), 3);
	CHECK(many[0] && many[1] && many[2]);
	kmem_cache_free_bulk(cache, 3, many);
	kmem_cache_free(cache, object);
	sy_pages_fail_after(heap->pages, 1);
	object = kvmalloc(LARGE, GFP_KERNEL | __GFP_NOFAIL);
	CHECK(object != NULL);
	kvfree(object);
	for (unsigned i = 0; i < OBJECTS; i++) {
		sy_pages_fail_after(heap->pages, 1);
		CHECK((things[i] = kmalloc(SMALL, GFP_KERNEL | __GFP_NOFAIL)) != NULL);
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		kfree(things[i]);
	sy_pages_fail_after(heap->pages, 0);
	CHECK(kmalloc(SIZE_MAX, GFP_KERNEL | __GFP_NOFAIL) == NULL);
	CHECK(kvmalloc(SIZE_MAX, GFP_KERNEL | __GFP_NOFAIL) == NULL);
	CHECK(kmalloc_array(SIZE_MAX, 2, GFP_KERNEL | __GFP_NOFAIL) == NULL);
	kmem_cache_destroy(cache);
}

int main(void)
{
	readers_keep_slabs();
	destroying_waits_for_readers();
	forks();
	no_fail();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
