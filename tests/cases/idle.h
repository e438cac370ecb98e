/* What programs share whose threads free much and then go idle: the amounts, and a look at the process. Nothing here but
 * fill() allocates. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 64
#define LIVE ((size_t)4 << 20)
#define MOST 20000

/* A figure of /proc/self/status; -1: there is none of that name. */
static long figure(const char *name)
{
	char text[4096];
	const char *at;
	int file = open("/proc/self/status", O_RDONLY);
	ssize_t length = read(file, text, sizeof(text) - 1);

	close(file);
	text[length > 0 ? length : 0] = '\0';
	at = strstr(text, name);
	return at ? atol(at + strlen(name)) : -1;
}

/* Fills LIVE bytes with small objects; returns how many. */
static unsigned fill(char **objects, unsigned *random)
{
	unsigned count = 0;

	for (size_t live = 0; objects && live < LIVE && count < MOST; count++) {
		size_t size = 16 + (*random = *random * 1103515245 + 12345) % 64 * 8 * (count % 4 ? 1 : 4);

		if (!(objects[count] = malloc(size)))
			exit(1);
		memset(objects[count], 1, size);
		live += size;
	}
	return count;
}
