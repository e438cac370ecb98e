/*
 * Waiting for memory (SY_KM_SLEEP; Bonwick 1994, section 2.3).
 *
 * A request of a heap that sy_heap_open opened asks here what to answer when there is no memory (sy_heap.on_failure), outside of any
 * call and without a lock. One that may wait looks again and again until it is served, at most for as long as the heap's options
 * allow.
 *
 * No wake-up can be missed, as there is none. A free is a few instructions on the thread's own memory, and wakes no one; a wake-up would
 * make every free dearer for the few waiters. So a waiter polls: at first after a tenth of a millisecond, then after twice as long each
 * time, up to LONGEST. Each look is a whole request: it has all threads' empty slabs given back, as any request does before it is refused.
 *
 * Deadlocks. If there is no other thread no free can come, so a process with one thread is refused at once, where the C library tells
 * (sys/single_threaded.h). So is a request for more than the heap can ever have. Threads that all wait for each other are not told apart
 * from threads that free later; the time ends their wait.
 */
#include "wait.h"

#include "core/visits.h"

#include <errno.h>
#include <time.h>
#if defined(__has_include) && defined(__GLIBC__)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define IS_ALONE __libc_single_threaded
#endif
#endif
#ifndef IS_ALONE
#define IS_ALONE false
#endif

#define SHORTEST 100000u /* nanoseconds between two looks */
#define LONGEST 10000000u
#define USUAL (60 * SY__SECOND)

struct wait {
	struct sy_heap *heap;
	uint64_t until, pause; /* nanoseconds */
};

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SY__SECOND + (uint64_t)time.tv_nsec;
}

static void begin(struct wait *wait, struct sy_heap *heap)
{
	uint64_t start = now(), most = heap->wait_ns ? heap->wait_ns : USUAL;

	*wait = (struct wait){ heap, most < UINT64_MAX - start ? start + most : UINT64_MAX, SHORTEST };
	__atomic_fetch_add(&heap->counters.waiting, (size_t)1, __ATOMIC_RELAXED);
}

static void end(const struct wait *wait)
{
	__atomic_fetch_sub(&wait->heap->counters.waiting, (size_t)1, __ATOMIC_RELAXED);
}

/* Until the next look. False: it has been long enough. */
static bool pause_a_moment(struct wait *wait)
{
	const struct timespec moment = { .tv_nsec = (long)wait->pause };
	int before = errno;

	if (now() >= wait->until)
		return false;
	nanosleep(&moment, NULL);
	errno = before;
	wait->pause = wait->pause < LONGEST / 2 ? 2 * wait->pause : LONGEST;
	return true;
}

void *sy__wait_kmalloc(size_t size, unsigned flags, struct sy_heap *heap)
{
	void *object = NULL;
	struct wait wait;

	if (!(flags & SY_KM_SLEEP) || IS_ALONE || size > SY_PAGE_SIZE << SY_MAX_ORDER || (heap->sizing.most && size > heap->sizing.most))
		return NULL;
	begin(&wait, heap);
	while (!object && pause_a_moment(&wait))
		object = heap->kmalloc_this_slot(size, flags & ~(unsigned)SY_KM_SLEEP, heap);
	end(&wait);
	return object;
}

void *sy__wait_cache_alloc(struct sy_cache *cache, unsigned flags)
{
	void *object = NULL;
	struct wait wait;

	if (!(flags & SY_KM_SLEEP) || IS_ALONE)
		return NULL;
	begin(&wait, cache->heap);
	while (!object && pause_a_moment(&wait))
		object = cache->alloc_this_slot(cache, flags & ~(unsigned)SY_KM_SLEEP);
	end(&wait);
	return object;
}
