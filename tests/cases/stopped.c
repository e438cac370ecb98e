/* A thread is held in a signal's handler, maybe in the middle of malloc. Meanwhile the first thread allocates and frees,
 * trims ("trim"), or forks ("fork"). */
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OBJECTS 3000u
#define ROUNDS 400u
#define SLOW_ROUNDS 30u /* each may wait some hundredths of a second for the thread */

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

static void do_what(const char *what, unsigned round)
{
	pid_t child;

	if (!strcmp(what, "trim")) {
		malloc_trim(0);
	} else if (!strcmp(what, "fork")) {
		child = fork();
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
	} else {
		allocate(round + 1);
	}
}

int main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "malloc";
	const unsigned rounds = strcmp(what, "malloc") ? SLOW_ROUNDS : ROUNDS;
	pthread_t thread;

	sem_init(&held, 0, 0);
	sem_init(&go, 0, 0);
	signal(SIGUSR1, hold);
	pthread_create(&thread, NULL, work, NULL);
	usleep(10000);
	for (unsigned round = 0; round < rounds; round++) {
		pthread_kill(thread, SIGUSR1);
		while (sem_wait(&held))
			;
		do_what(what, round);
		sem_post(&go);
		usleep(300);
	}
	_exit(write(STDOUT_FILENO, "ok\n", 3) < 0);
}
