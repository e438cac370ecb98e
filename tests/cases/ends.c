/* Each of 30 children ends while its threads allocate and free: with SLABYARD_DEBUG nothing is found, as nothing is wrong. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 30
#define THREADS 6
#define LARGEST 3000

static void *work(void *seed)
{
	void *objects[64] = { NULL };

	for (unsigned i = (unsigned)(size_t)seed;; i = i * 1103515245u + 12345u) {
		void **object = &objects[(i >> 16) % 64];
		size_t size = (i >> 8) % LARGEST + 1;

		free(*object);
		*object = malloc(size);
		if (*object)
			memset(*object, (int)i, size);
	}
}

int main(void)
{
	pthread_t thread;
	int status;

	for (int child = 0; child < CHILDREN; child++) {
		if (fork() == 0) {
			for (size_t i = 0; i < THREADS; i++)
				if (pthread_create(&thread, NULL, work, (void *)(i * 7919)))
					_exit(1);
			usleep(20000);
			exit(0);
		}
		if (wait(&status) < 0 || status)
			return 1;
	}
	return write(STDOUT_FILENO, "ok\n", 3) != 3;
}
