/*
 * A program that only allocates, frees and trims has nothing of what libslabyard-malloc.so keeps apart (cmake/apart.ld.in):
 * neither the code that seldom runs, nor the messages and tables that nobody reads. A system brings 64 KiB of such a segment
 * into memory for one byte of it.
 *
 * As the system tells in /proc/self/smaps, of the library that is preloaded. Of its segments the second with code and the third
 * with constants (the first has the headers) are apart. Who reads that without buffers from malloc finds what the program
 * itself did.
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libslabyard-malloc.so"
#define SKIPPED 77
#define OBJECTS 3000

static char maps[1 << 18];

static int allocate(void)
{
	static char *objects[OBJECTS];

	for (size_t i = 0; i < OBJECTS; i++) {
		objects[i] = i % 3 ? malloc(i + 1) : calloc(1, i * 40 + 1);
		if (i % 5 == 0)
			objects[i] = realloc(objects[i], i * 2 + 50);
		if (!objects[i])
			return 0;
		objects[i][0] = 1;
	}
	for (size_t i = 0; i < OBJECTS; i++)
		free(objects[i]);
	malloc_trim(0);
	return 1;
}

/* Into `maps`, whole; false: the system doesn't tell. */
static int read_maps(void)
{
	int file = open("/proc/self/smaps", O_RDONLY);
	size_t length = 0;
	ssize_t got = 0;

	while (file >= 0 && length < sizeof(maps) - 1 && (got = read(file, maps + length, sizeof(maps) - 1 - length)) > 0)
		length += (size_t)got;
	if (file >= 0)
		close(file);
	return length > 0 && got == 0;
}

/* KiB of the library's segment with such rights, by number from 1; -1: there is none. Segments are listed in order of address. */
static long resident(const char *rights, unsigned number)
{
	unsigned seen = 0;

	for (const char *line = maps, *next; line && *line; line = next) {
		const char *end = strchr(line, '\n'), *name = strstr(line, LIBRARY), *size;

		next = end ? end + 1 : NULL;
		if (!end || !name || name > end || strncmp(strchr(line, ' ') + 1, rights, 4) != 0 || ++seen < number)
			continue;
		size = strstr(end, "\nRss:");
		return size ? strtol(size + strlen("\nRss:"), NULL, 10) : -1;
	}
	return -1;
}

int main(void)
{
	long code, constants;

	if (!allocate())
		return 1;
	if (!read_maps() || resident("r-xp", 1) < 0) {
		puts("skipped: the system doesn't tell what of the library is in memory");
		return SKIPPED;
	}
	code = resident("r-xp", 2);
	constants = resident("r--p", 3);
	if (code || constants) {
		printf("of code that seldom runs there are %ld KiB in memory, of constants %ld, and there should be none\n", code, constants);
		return 1;
	}
	return 0;
}
