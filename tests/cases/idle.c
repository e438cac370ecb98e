/* 64 threads fill 4 MiB each with small objects and free all of it, twice, then wait. Prints the resident MiB while they
 * wait. */
#include "idle.h"

#include <pthread.h>
#include <stdio.h>

static pthread_barrier_t freed, told;

static void *work(void *seed)
{
	unsigned random = (unsigned)(size_t)seed + 1;
	char **objects = malloc(MOST * sizeof *objects);

	for (unsigned round = 0; round < 2; round++)
		for (unsigned count = fill(objects, &random); count; count--)
			free(objects[count - 1]);
	free(objects);
	pthread_barrier_wait(&freed);
	pthread_barrier_wait(&told);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&freed, NULL, THREADS + 1);
	pthread_barrier_init(&told, NULL, THREADS + 1);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	pthread_barrier_wait(&freed);
	printf("%ld\n", figure("VmRSS:") >> 10);
	pthread_barrier_wait(&told);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
