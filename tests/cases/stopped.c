/* A thread is held in a signal's handler, maybe in the middle of malloc. The first one allocates and frees, or trims ("trim"). */
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OBJECTS 3000u
#define ROUNDS 400u

static sem_t held, go;

static void hold(int number)
{
	(void)number;
	sem_post(&held);
	while (sem_wait(&go))
		;
}

static void *work(void *unused)
{
	static char *objects[300];
	unsigned random = 5;

	for (;;) {
		unsigned i = (random = random * 1103515245u + 12345u) >> 16;

		free(objects[i % 300]);
		objects[i % 300] = malloc((random >> 4) % 6000);
	}
	return unused;
}

static void allocate(size_t more)
{
	static char *objects[OBJECTS];

	for (unsigned i = 0; i < OBJECTS; i++) {
		objects[i] = malloc(i * 3 + more);
		if (objects[i])
			objects[i][0] = 1;
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		free(objects[i]);
	free(malloc(3000000));
}

int main(int count, char **words)
{
	pthread_t thread;

	sem_init(&held, 0, 0);
	sem_init(&go, 0, 0);
	signal(SIGUSR1, hold);
	pthread_create(&thread, NULL, work, NULL);
	usleep(10000);
	for (unsigned round = 0; round < ROUNDS; round++) {
		pthread_kill(thread, SIGUSR1);
		while (sem_wait(&held))
			;
		if (count > 1 && !strcmp(words[1], "trim"))
			malloc_trim(0);
		else
			allocate(round + 1);
		sem_post(&go);
		usleep(300);
	}
	_exit(write(STDOUT_FILENO, "ok\n", 3) < 0);
}
