/* 64 threads fill 4 MiB with small objects and free all of it, twice, then wait: resident MiB while they do. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 64
#define LIVE ((size_t)4 << 20)
#define MOST 20000

static pthread_barrier_t freed, told;

static void *work(void *seed)
{
	unsigned random = (unsigned)(size_t)seed + 1;
	char **objects = malloc(MOST * sizeof *objects);

	for (unsigned round = 0; objects && round < 2; round++) {
		unsigned count = 0;

		for (size_t live = 0; live < LIVE && count < MOST; count++) {
			size_t size = 16 + (random = random * 1103515245 + 12345) % 64 * 8 * (count % 4 ? 1 : 4);

			if (!(objects[count] = malloc(size)))
				exit(1);
			memset(objects[count], 1, size);
			live += size;
		}
		while (count)
			free(objects[--count]);
	}
	free(objects);
	pthread_barrier_wait(&freed);
	pthread_barrier_wait(&told);
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	char line[200];
	FILE *status;

	pthread_barrier_init(&freed, NULL, THREADS + 1);
	pthread_barrier_init(&told, NULL, THREADS + 1);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	pthread_barrier_wait(&freed);
	status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "VmRSS:", 6))
			printf("%ld\n", atol(line + 6) >> 10);
	if (status)
		fclose(status);
	pthread_barrier_wait(&told);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
