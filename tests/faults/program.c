/*
 * A program that goes on without memory:  program [threads | forks | maps | locks]
 *
 * It allocates, resizes and frees in all ways, verifies what it holds, and accepts NULL, or that a thread or child cannot be
 * made. syscalls.py makes one system call of it fail, each in turn. Whatever failed, it prints "ok"; or it says what is wrong,
 * and its status is 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OBJECTS 200u
#define THREADS 3u
#define EDGE 64u /* bytes that are filled at either end */

struct object {
	unsigned char *at;
	size_t size;
};

static unsigned refused;

static void wrong(const char *what)
{
	static const char end[] = "\n";

	if (write(STDERR_FILENO, what, strlen(what)) < 0 || write(STDERR_FILENO, end, 1) < 0)
		_exit(2);
	_exit(1);
}

static void fill(const struct object *object)
{
	size_t edge = object->size < EDGE ? object->size : EDGE;

	memset(object->at, (int)(object->size & 0xff), edge);
	memset(object->at + object->size - edge, (int)(object->size & 0xff), edge);
}

static void verify(const struct object *object)
{
	size_t edge = object->size < EDGE ? object->size : EDGE;

	for (size_t i = 0; i < edge; i++)
		if (object->at[i] != (object->size & 0xff) || object->at[object->size - 1 - i] != (object->size & 0xff))
			wrong("an object has other contents");
}

static void *get(size_t size, unsigned way)
{
	void *object = NULL;

	errno = 0;
	if (way == 0)
		object = calloc(1, size);
	else if (way == 1 && posix_memalign(&object, 4096, size))
		object = NULL;
	else if (way > 1)
		object = malloc(size);
	if (!object && way != 1 && errno != ENOMEM)
		wrong("errno is not ENOMEM");
	refused += !object;
	return object;
}

static size_t size_of(unsigned number, unsigned largest)
{
	return 1 + (number * 7919u) % (largest >> number % 12);
}

static void resize(struct object *object, size_t size)
{
	struct object old = *object;
	unsigned char *changed;

	verify(object);
	changed = realloc(object->at, size);
	if (!changed)
		return;
	for (size_t i = 0; i < EDGE && i < old.size && i < size; i++)
		if (changed[i] != (old.size & 0xff))
			wrong("realloc lost contents");
	*object = (struct object){ changed, size };
	fill(object);
}

static void work(unsigned largest)
{
	struct object objects[OBJECTS] = { { NULL, 0 } };

	for (unsigned i = 0; i < 3 * OBJECTS; i++) {
		struct object *object = &objects[(i * 31) % OBJECTS];

		if (object->at && i % 3 == 0) {
			resize(object, size_of(i, 2 * largest));
			continue;
		}
		if (object->at)
			verify(object);
		free(object->at);
		object->size = size_of(i, largest);
		object->at = get(object->size, i % 8);
		if (object->at)
			fill(object);
	}
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (objects[i].at)
			verify(&objects[i]);
		free(objects[i].at);
	}
	malloc_trim(0);
}

static void *run(void *largest)
{
	work((unsigned)(uintptr_t)largest);
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];
	int made[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		made[i] = pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)60000);
	work(60000);
	for (unsigned i = 0; i < THREADS; i++)
		if (!made[i])
			pthread_join(thread[i], NULL);
}

static void forks(void)
{
	work(20000);
	for (unsigned i = 0; i < 3; i++) {
		int status = 0;
		pid_t child = fork();

		if (!child) {
			work(20000);
			_exit(0);
		}
		if (child > 0 && waitpid(child, &status, 0) == child && status)
			wrong("a child has failed");
	}
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	if (!strcmp(kind, "threads"))
		threads();
	else if (!strcmp(kind, "forks"))
		forks();
	else if (!strcmp(kind, "locks") && mlockall(MCL_CURRENT | MCL_FUTURE) && errno != ENOMEM && errno != EPERM && errno != EAGAIN)
		wrong("mlockall fails otherwise");
	work(!strcmp(kind, "maps") ? 8u << 20 : 60000);
	puts("ok");
	return 0;
}
