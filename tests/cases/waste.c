/* Many objects of one size, all written: resident bytes for each byte that was asked for. Usage: waste SIZE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIVE ((size_t)100 << 20)

static long resident(void)
{
	char line[200];
	long bytes = 0;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "VmRSS:", 6))
			bytes = atol(line + 6) << 10;
	if (status)
		fclose(status);
	return bytes;
}

int main(int count, char **words)
{
	size_t size = count > 1 ? (size_t)atol(words[1]) : 8, objects = LIVE / size;
	long before = resident();

	for (size_t i = 0; i < objects; i++) {
		void *object = malloc(size);

		if (!object)
			return 1;
		memset(object, 1, size);
	}
	printf("%.3f\n", (double)(resident() - before) / ((double)objects * (double)size));
	return 0;
}
