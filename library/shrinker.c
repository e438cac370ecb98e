/*
 * Caches of kernel code that give something up when there is no memory (linux/shrinker.h): every one is asked for all that it
 * says it has, in portions as it wants them. By one thread at a time, as they are asked where memory is short; one that
 * allocates itself is not asked again below.
 */
#include <slabyard/kernel/linux/minmax.h>
#include <slabyard/kernel/linux/mutex.h>
#include <slabyard/kernel/linux/shrinker.h>

#include "forks.h"

#define BATCH 128

static LIST_HEAD(shrinkers);
static DEFINE_MUTEX(lock);
static __thread bool shrinking;

/* One that forks itself has the lock already. */
void sy__shrinkers_fork(enum sy__fork where)
{
	if (shrinking)
		return;
	if (where == SY__FORK_BEFORE)
		mutex_lock(&lock);
	else
		mutex_unlock(&lock);
}

void sy__shrinker_add(struct shrinker *shrinker)
{
	sy__prepare_forks();
	mutex_lock(&lock);
	if (!(shrinker->flags & SHRINKER_REGISTERED))
		list_add_tail(&shrinker->list, &shrinkers);
	shrinker->flags |= SHRINKER_REGISTERED;
	mutex_unlock(&lock);
}

void sy__shrinker_remove(struct shrinker *shrinker)
{
	mutex_lock(&lock);
	if (shrinker->flags & SHRINKER_REGISTERED)
		list_del(&shrinker->list);
	shrinker->flags &= ~SHRINKER_REGISTERED;
	mutex_unlock(&lock);
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

		control.nr_to_scan = control.nr_scanned = min(batch, there - scanned);
		now = shrinker->scan_objects(shrinker, &control);
		if (now == SHRINK_STOP)
			break;
		freed += now;
	}
	return freed;
}

/* Objects that were given up; 0 too when somebody else is at it. */
unsigned long sy__shrink(gfp_t flags)
{
	struct shrinker *shrinker;
	unsigned long freed = 0;

	if (shrinking || !mutex_trylock(&lock))
		return 0;
	shrinking = true;
	list_for_each_entry(shrinker, &shrinkers, list)
		freed += shrink_one(shrinker, flags);
	shrinking = false;
	mutex_unlock(&lock);
	return freed;
}
