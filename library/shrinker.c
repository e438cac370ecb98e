/*
 * Shrinkers (linux/shrinker.h): callbacks of caches that can give objects up when memory is short.
 *
 * An allocation that may wait and that the heap refuses runs all shrinkers, and is then tried again (kmem.c). Each shrinker is
 * asked how many objects it could give up, and then for all of them, in batches. The kernel asks for a share that grows with its
 * need. Here the heap has already refused, so the need is the greatest.
 *
 * One thread runs shrinkers at a time. Another thread that finds no memory meanwhile does not wait: its request fails, or goes on
 * waiting by __GFP_NOFAIL. A shrinker whose own allocation is refused does not run the shrinkers again.
 *
 * The lock protects the list and is held while shrinkers run. So when unregister_shrinker returns, nobody runs the shrinker. A
 * fork takes the lock, unless a shrinker forks.
 */
#include <slabyard/kernel/linux/list.h>
#include <slabyard/kernel/linux/shrinker.h>

#include "forks.h"

#include <pthread.h>

#define BATCH 128

static LIST_HEAD(shrinkers);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool shrinking;

/* A shrinker that forks holds the lock already. */
void sy__shrinkers_fork(enum sy__fork where)
{
	if (shrinking)
		return;
	if (where == SY__FORK_BEFORE)
		pthread_mutex_lock(&lock);
	else
		pthread_mutex_unlock(&lock);
}

void sy__shrinker_add(struct shrinker *shrinker)
{
	sy__prepare_forks();
	pthread_mutex_lock(&lock);
	if (!(shrinker->flags & SHRINKER_REGISTERED))
		list_add_tail(&shrinker->list, &shrinkers);
	shrinker->flags |= SHRINKER_REGISTERED;
	pthread_mutex_unlock(&lock);
}

void sy__shrinker_remove(struct shrinker *shrinker)
{
	pthread_mutex_lock(&lock);
	if (shrinker->flags & SHRINKER_REGISTERED)
		list_del(&shrinker->list);
	shrinker->flags &= ~SHRINKER_REGISTERED;
	pthread_mutex_unlock(&lock);
}

struct shrinker *sy__shrinker_new(unsigned flags)
{
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);

	if (shrinker) {
		shrinker->flags = flags & ~SHRINKER_REGISTERED;
		shrinker->seeks = DEFAULT_SEEKS;
	}
	return shrinker;
}

void sy__shrinker_free(struct shrinker *shrinker)
{
	if (!shrinker)
		return;
	sy__shrinker_remove(shrinker);
	kfree(shrinker);
}

static unsigned long shrink_one(struct shrinker *shrinker, gfp_t flags)
{
	struct shrink_control control = { .gfp_mask = flags };
	unsigned long there = shrinker->count_objects(shrinker, &control), freed = 0;
	unsigned long batch = shrinker->batch ? (unsigned long)shrinker->batch : BATCH;

	if (there == SHRINK_EMPTY || there == SHRINK_STOP)
		return 0;
	for (unsigned long scanned = 0; scanned < there; scanned += batch) {
		unsigned long now;

		control.nr_to_scan = control.nr_scanned = batch < there - scanned ? batch : there - scanned;
		now = shrinker->scan_objects(shrinker, &control);
		if (now == SHRINK_STOP)
			break;
		freed += now;
	}
	return freed;
}

/* Returns the number of objects that were given up; 0 too while another thread runs the shrinkers. */
unsigned long sy__shrink(gfp_t flags)
{
	struct shrinker *shrinker;
	unsigned long freed = 0;

	if (shrinking || pthread_mutex_trylock(&lock))
		return 0;
	shrinking = true;
	list_for_each_entry(shrinker, &shrinkers, list)
		freed += shrink_one(shrinker, flags);
	shrinking = false;
	pthread_mutex_unlock(&lock);
	return freed;
}
