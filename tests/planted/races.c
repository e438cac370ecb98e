/* Threads that free, resize or write the same object with no lock between them. Whoever comes first, it is the same bug. */
#include "planted.h"

#include <sched.h>

static pthread_barrier_t start;
static unsigned char *object;
static volatile bool freed;

static void *free_after_start(void *unused)
{
	pthread_barrier_wait(&start);
	free_it(object);
	return unused;
}

static void race(void *(*one)(void *), void *(*two)(void *))
{
	pthread_t threads[2];

	pthread_barrier_init(&start, NULL, 2);
	pthread_create(&threads[0], NULL, one, NULL);
	pthread_create(&threads[1], NULL, two, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

/* Two threads free the same small object. */
BUG(two_free_a_small_one, DOUBLE_FREE, "allocate_it free_it")
{
	object = allocate_it(48);
	expect(object);
	race(free_after_start, free_after_start);
}

/* Two threads free the same object of 200,000 bytes. */
BUG(two_free_a_large_one, DOUBLE_FREE, "allocate_it free_it")
{
	object = allocate_it(200000);
	expect(object);
	race(free_after_start, free_after_start);
}

/* Eight threads at once drop what each takes for the last reference. */
BUG(eight_free_one, DOUBLE_FREE, "allocate_it free_it")
{
	pthread_t threads[8];

	object = allocate_it(128);
	expect(object);
	pthread_barrier_init(&start, NULL, 8);
	for (unsigned i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, free_after_start, NULL);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

static void *free_and_say(void *unused)
{
	pthread_barrier_wait(&start);
	sched_yield();
	free_it(object);
	freed = true;
	return unused;
}

/* Writes until some time after the other thread has freed. */
static void *write_on(void *unused)
{
	pthread_barrier_wait(&start);
	for (unsigned more = 100; more > 0; more -= freed)
		damage_it(object, 8);
	press(64, 300);
	return unused;
}

/* One thread writes all the time, the other frees. */
BUG(one_writes_one_frees, AFTER_FREE, "allocate_it free_it")
{
	object = allocate_it(64);
	expect(object);
	race(write_on, free_and_say);
}

static void *grow_and_say(void *unused)
{
	pthread_barrier_wait(&start);
	OPAQUE(unused);
	free_it(reallocate_it(object, 100000));
	freed = true;
	return unused;
}

/* One thread writes all the time, the other has realloc move the object. */
BUG(one_writes_one_moves, AFTER_FREE, "allocate_it reallocate_it")
{
	unsigned char *beside;

	object = allocate_it(64);
	beside = allocate_it(64);
	expect(object);
	race(write_on, grow_and_say);
	free_it(beside);
}

static void *free_when_freed(void *unused)
{
	pthread_barrier_wait(&start);
	while (!freed)
		sched_yield();
	free_it(object);
	return unused;
}

/* One thread frees what another, which still lives, has just freed. */
BUG(one_after_the_other, DOUBLE_FREE, "allocate_it free_it")
{
	object = allocate_it(96);
	expect(object);
	race(free_and_say, free_when_freed);
}
