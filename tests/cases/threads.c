/* Threads that allocate, free and trim; the first argument is their number. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTS 300u

static void *work(void *unused)
{
	char *objects[OBJECTS];

	for (unsigned round = 0; round < 30; round++) {
		for (unsigned i = 0; i < OBJECTS; i++) {
			size_t size = (i * 997 + round * 131) % 9000 * (i % 50 == 0 ? 900 : 1) + 1;

			objects[i] = malloc(size);
			memset(objects[i], (int)i, size);
		}
		for (unsigned i = 0; i < OBJECTS; i++)
			free(objects[i]);
#ifdef __GLIBC__
		if (round % 10 == 0)
			malloc_trim(0);
#endif
	}
	return unused;
}

int main(int count, char **words)
{
	unsigned threads = count > 1 ? (unsigned)atoi(words[1]) : 4;
	pthread_t *all = calloc(threads, sizeof(*all));

	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&all[i], NULL, work, NULL))
			return 1;
	for (unsigned i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	puts("ok");
	return 0;
}
