/* A plugin is unloaded. Afterwards a thread that used it ends, and the program forks. Three times. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*use)(void);
static pthread_barrier_t barrier;

static void *run(void *unused)
{
	if (use())
		puts("no memory");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return unused;
}

int main(int count, char **words)
{
	pthread_barrier_init(&barrier, NULL, 2);
	for (int round = 0; round < 3; round++) {
		void *plugin = dlopen(words[count - 1], RTLD_NOW);
		pthread_t thread;

		if (!plugin)
			return 1;
		*(void **)&use = dlsym(plugin, "work");
		pthread_create(&thread, NULL, run, NULL);
		pthread_barrier_wait(&barrier);
		dlclose(plugin);
		if (dlopen(words[count - 1], RTLD_NOW | RTLD_NOLOAD))
			puts("still there");
		pthread_barrier_wait(&barrier);
		pthread_join(thread, NULL);
		if (!fork())
			_exit(0);
		wait(NULL);
	}
	puts("ok");
	return 0;
}
