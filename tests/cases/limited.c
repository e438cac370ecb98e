/* Limits its addresses. "no-files": without /proc, threads then find room for their stacks. "small": the megabytes of small objects that
 * come until NULL. "freed": half of large objects is freed, and a thread and small objects find room. "large": an object that may find no
 * room is asked for in the rest of a small limit. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIB ((size_t)1 << 20)

static void limit(int resource, size_t to)
{
	const struct rlimit both = { to, to };

	if (setrlimit(resource, &both))
		exit(77);
}

static void *work(void *unused)
{
	free(malloc(1000));
	return unused;
}

static unsigned run(unsigned count, size_t stack)
{
	pthread_attr_t how;
	pthread_t thread[8];
	unsigned ran = 0;

	pthread_attr_init(&how);
	pthread_attr_setstacksize(&how, stack);
	while (ran < count && !pthread_create(&thread[ran], &how, work, NULL))
		ran++;
	for (unsigned i = 0; i < ran; i++)
		pthread_join(thread[i], NULL);
	return ran;
}

/* Objects in a list, until NULL. */
static size_t fill(size_t size, void ***list)
{
	size_t count = 0;

	for (void **object; (object = malloc(size)) != NULL; count++) {
		*object = *list;
		*list = object;
	}
	return count;
}

int main(int count, char **words)
{
	void **list = NULL, **next;
	size_t got;

	if (count < 2 || !strcmp(words[1], "no-files")) {
		limit(RLIMIT_NOFILE, 0);
		limit(RLIMIT_AS, 1024 * MIB);
		puts(run(3, 8 * MIB) == 3 ? "ok" : "no room");
		return 0;
	}
	for (unsigned i = 0; i < 1000; i++)
		work(NULL);
	limit(RLIMIT_AS, (strcmp(words[1], "large") ? 128 : 8) * MIB);
	if (!strcmp(words[1], "small")) {
		got = fill(1000, &list);
		printf("%zu\n", got * 1000 / MIB);
		return 0;
	}
	got = fill(50000, &list);
	for (size_t i = 0; i < got / 2; i++) {
		next = *list;
		free(list);
		list = next;
	}
	if (!strcmp(words[1], "large"))
		free(malloc(2 * MIB));
	puts(malloc(1000) && run(1, MIB / 16) == 1 ? "ok" : "no room");
	return 0;
}
