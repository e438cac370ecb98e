/*
 * Threads that all work at once, more of them than a malloc has places for. Prints how many milliseconds they took once all
 * were there. The arguments are how many threads there are, and how many objects each allocates and frees. Every object is
 * written to, and looked at again.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIVE 64u
#define STACK ((size_t)64 << 10)
#define LARGEST 1000u

static pthread_barrier_t begin, end;
static unsigned objects;

static void give(unsigned char *object, size_t size, unsigned char mark)
{
	if (object && (object[0] != mark || object[size - 1] != mark))
		abort();
	free(object);
}

static void *work(void *seed)
{
	unsigned char *live[LIVE] = { NULL }, mark = *(unsigned char *)seed;
	size_t sizes[LIVE] = { 0 };
	unsigned random = mark * 2654435761u + 1;

	pthread_barrier_wait(&begin);
	for (unsigned i = 0; i < objects; i++) {
		unsigned at;

		random = random * 1103515245u + 12345u;
		at = random >> 16 & (LIVE - 1);
		give(live[at], sizes[at], mark);
		sizes[at] = 1 + (random >> 4) % LARGEST;
		live[at] = malloc(sizes[at]);
		if (!live[at])
			abort();
		memset(live[at], mark, sizes[at]);
	}
	for (unsigned at = 0; at < LIVE; at++)
		give(live[at], sizes[at], mark);
	pthread_barrier_wait(&end);
	return NULL;
}

static double milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int count, char **words)
{
	static unsigned char marks[256];
	unsigned threads = count > 1 ? (unsigned)atoi(words[1]) : 1000;
	pthread_t *all = calloc(threads, sizeof(*all));
	pthread_attr_t small;
	double began;

	objects = count > 2 ? (unsigned)atoi(words[2]) : 20000;
	pthread_barrier_init(&begin, NULL, threads + 1);
	pthread_barrier_init(&end, NULL, threads + 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	for (unsigned i = 0; i < 256; i++)
		marks[i] = (unsigned char)i;
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&all[i], &small, work, &marks[i % 256]))
			return 77; /* the system does not allow that many threads */
	pthread_barrier_wait(&begin);
	began = milliseconds();
	pthread_barrier_wait(&end);
	printf("%.0f\n", milliseconds() - began);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	free(all);
	return 0;
}
