/*
 * The memory that the system has promised, in MiB, under overcommit_memory=2, where it promises no more than it has: at the
 * start, with 200 MiB live, after they are freed, and after malloc_trim. Then whether the system allows 16 threads, each with
 * a stack of 8 MiB, and a fork. For a machine on which nothing else runs.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OBJECTS 20000u
#define BYTES 10240u
#define THREADS 16u

static void *objects[OBJECTS];

static unsigned long promised(void)
{
	static char text[4096];
	FILE *file = fopen("/proc/meminfo", "r");
	char *at;

	setvbuf(file, NULL, _IONBF, 0);
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	at = strstr(text, "Committed_AS:");
	return at ? strtoul(at + 13, NULL, 10) / 1024 : 0;
}

static void *rest(void *none)
{
	void *object = malloc(1000);

	usleep(200000);
	free(object);
	return none;
}

int main(void)
{
	unsigned long start = promised(), live, freed;
	unsigned count = 0, begun = 0;
	pthread_t threads[THREADS];
	int status = -1;
	pid_t child;

	for (; count < OBJECTS && (objects[count] = malloc(BYTES)); count++)
		memset(objects[count], 1, BYTES);
	live = promised();
	for (unsigned i = 0; i < count; i++)
		free(objects[i]);
	freed = promised();
	malloc_trim(0);
	printf("objects %u, promised: start %lu, live %lu, freed %lu, trimmed %lu MiB; ", count, start, live, freed, promised());
	while (begun < THREADS && !pthread_create(&threads[begun], NULL, rest, NULL))
		begun++;
	for (unsigned i = 0; i < begun; i++)
		pthread_join(threads[i], NULL);
	fflush(stdout);
	child = fork();
	if (!child)
		_exit(malloc(100000) ? 0 : 1);
	if (child > 0)
		waitpid(child, &status, 0);
	printf("threads %u of %u, fork %s\n", begun, THREADS, status ? "failed" : "ran");
	return begun < THREADS || status || count < OBJECTS;
}
