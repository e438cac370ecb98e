/* Takes the same number of bytes again and again in objects of other sizes, from 100 bytes to 10 MB, never more at once.
 * Prints the peak of memory in MiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIVE ((size_t)60 << 20)
#define ROUNDS 3

static void all_of(size_t size)
{
	void **last = NULL, **object;

	for (size_t count = LIVE / size; count; count--) {
		object = malloc(size);
		if (!object)
			exit(1);
		memset(object, 1, size);
		*object = last;
		last = object;
	}
	while ((object = last)) {
		last = *object;
		free(object);
	}
}

int main(void)
{
	char line[200];
	FILE *status;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t size = 100; size <= 10000000; size *= 10)
			all_of(size);
	status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "VmHWM:", 6))
			printf("%ld\n", atol(line + 6) >> 10);
	return 0;
}
