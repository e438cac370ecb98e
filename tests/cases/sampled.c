/*
 * Sampling: sampled objects have exactly the size that was asked for, which no other object of 1 or 13 bytes has.
 *
 *   sampled count N [SIZE]  allocates N objects and prints how many were sampled
 *   sampled wait            the same again and again, printing a line each, until standard input ends
 *   sampled reuse           has mappings where sampled objects were
 *   sampled BUG             makes that mistake with each object until one was sampled; prints the object's address
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 13

#define KEPT 5000u /* in many slabs, so that the heap has slow calls */

static char *kept[KEPT];

static size_t size = SIZE;

static bool is_sampled(char *object)
{
	return malloc_usable_size(object) == size;
}

/* Not a hot pair: objects live for a while. */
static unsigned long count(unsigned long objects)
{
	unsigned long sampled = 0;

	for (unsigned long i = 0; i < objects; i++) {
		char **place = &kept[(uint32_t)i * 2654435761u % KEPT];

		free(*place);
		*place = malloc(size);
		memset(*place, 1, size);
		sampled += is_sampled(*place);
	}
	return sampled;
}

static void wait_for_switch(void)
{
	char byte;

	do {
		printf("%lu\n", count(100000));
		fflush(stdout);
	} while (read(STDIN_FILENO, &byte, 1) == 1);
}

/* All objects are sampled. The addresses of the first ones have gone back when the mappings come. */
static void reuse(void)
{
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < 990; i++)
			kept[i] = malloc(100);
		for (unsigned i = 0; i < 990; i++)
			free(kept[i]);
	}
	for (unsigned i = 0; i < 40; i++) {
		kept[i] = malloc(((size_t)5 << 20) + i * 4096);
		memset(kept[i], 1, 100);
	}
	for (unsigned i = 0; i < 40; i++)
		free(kept[i]);
	puts("ok");
}

static void resize(char *object)
{
	object = realloc(object, 100);
	memset(object, 2, 100);
	object = realloc(object, 5);
	free(object);
}

static void mistake(const char *bug, char *object)
{
	volatile char *bytes = object;

	printf("%p\n", (void *)object);
	fflush(stdout);
	if (!strcmp(bug, "past"))
		bytes[SIZE] = 1;
	else if (!strcmp(bug, "far"))
		bytes[SIZE + 4096] = 1;
	else if (!strcmp(bug, "before"))
		bytes[-1] = 1;
	free(object + !strcmp(bug, "interior"));
	if (!strcmp(bug, "after"))
		bytes[2] = 1;
	else if (!strcmp(bug, "read"))
		(void)bytes[2];
	else if (!strcmp(bug, "double"))
		free(object);
}

int main(int argc, char **argv)
{
	if (argc >= 3) {
		size = argc > 3 ? strtoul(argv[3], NULL, 10) : size;
		printf("%lu\n", count(strtoul(argv[2], NULL, 10)));
		return 0;
	}
	if (!strcmp(argv[1], "wait")) {
		wait_for_switch();
		return 0;
	}
	if (!strcmp(argv[1], "reuse")) {
		reuse();
		return 0;
	}
	for (;;) {
		char *object = malloc(SIZE);

		if (!object || !is_sampled(object))
			free(object);
		else if (strcmp(argv[1], "resize"))
			mistake(argv[1], object);
		else
			resize(object);
		if (!strcmp(argv[1], "resize") && count(10000) > 10)
			break;
	}
	puts("ok");
}
