/*
 * What threads freed before they went idle goes back without a call. Prints "ok", or what is wrong.
 *
 *   background MIB           64 threads fill 4 MiB each with small objects, free them, and wait: until less than MIB are resident
 *   background MIB child     the same in a forked child, after the parent has done it
 *   background end           the first thread ends before the others: the process ends with the last of these
 *   background plugin FILE   a plugin with a malloc of its own, which is this program, too, has no thread beside the first
 *   background shut-in       no thread beside the first is left when the program has given up privileges
 *
 * It looks without allocating, each tenth of a second, for a minute at most.
 */
#include "idle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LOOKS 600

static pthread_barrier_t filled, freed, told;

static void wait_a_moment(void)
{
	usleep(100000);
}

static void fill_and_free(unsigned random, bool together)
{
	char **objects = malloc(MOST * sizeof *objects);
	unsigned count = fill(objects, &random);

	if (together)
		pthread_barrier_wait(&filled);
	while (count)
		free(objects[--count]);
	free(objects);
}

static void *work(void *seed)
{
	fill_and_free((unsigned)(size_t)seed + 1, true);
	pthread_barrier_wait(&freed);
	pthread_barrier_wait(&told);
	return NULL;
}

static int idle(long most)
{
	pthread_t threads[THREADS];
	long resident = 0;

	pthread_barrier_init(&filled, NULL, THREADS);
	pthread_barrier_init(&freed, NULL, THREADS + 1);
	pthread_barrier_init(&told, NULL, THREADS + 1);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	pthread_barrier_wait(&freed);
	for (unsigned i = 0; i < LOOKS && (!i || resident >= most); i++) {
		resident = figure("VmRSS:") >> 10;
		wait_a_moment();
	}
	pthread_barrier_wait(&told);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (resident >= most)
		printf("%ld MiB stay\n", resident);
	return resident >= most;
}

static int in_child(long most)
{
	int status = 1;
	pid_t child = fork();

	if (!child)
		_exit(idle(most));
	waitpid(child, &status, 0);
	return status;
}

/* What the plugin does. Returns whether the process has one thread then. */
int use_plugin(void)
{
	for (unsigned round = 0; round < 20; round++)
		fill_and_free(round, false);
	return figure("Threads:") == 1;
}

static int in_plugin(const char *file)
{
	void *plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	int (*use)(void) = plugin ? (int (*)(void))dlsym(plugin, "use_plugin") : NULL;

	return !use || !use();
}

static void *last(void *unused)
{
	for (unsigned i = 0; i < 20; i++)
		wait_a_moment();
	printf("ok\n");
	fflush(stdout);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc == 3 && !strcmp(argv[1], "plugin"))
		return in_plugin(argv[2]) ? 1 : !printf("ok\n");
	if (argc == 3)
		return idle(atol(argv[1])) || in_child(atol(argv[1])) ? 1 : !printf("ok\n");
	if (!strcmp(argv[1], "end")) {
		fill_and_free(1, false);
		if (figure("Threads:") == 1 || pthread_create(&thread, NULL, last, NULL))
			return 1;
		pthread_exit(NULL);
	}
	if (!strcmp(argv[1], "shut-in")) {
		fill_and_free(1, false);
		if (figure("Threads:") == 1 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			return 1;
		for (unsigned round = 0; round < 10; round++)
			fill_and_free(round, false);
		return figure("Threads:") == 1 ? !printf("ok\n") : 1;
	}
	return idle(atol(argv[1])) ? 1 : !printf("ok\n");
}
