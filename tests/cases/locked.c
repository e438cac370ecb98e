/* Locked memory: mlockall with the flags of the first argument. The second argument, if any, is "trim", or a limit in MiB
 * for a user without privileges. Prints how many objects it got, and how many KiB more were locked for them. After a trim it
 * prints how many KiB came into memory with them, and how many left. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Prints without malloc, which may have no memory left. */
static long status(const char *name)
{
	static char text[8192];
	int file = open("/proc/self/status", O_RDONLY);
	ssize_t length = read(file, text, sizeof(text) - 1);

	text[length > 0 ? length : 0] = '\0';
	close(file);
	return atol(strstr(text, name) + strlen(name));
}

int main(int count, char **words)
{
	static char *objects[1000];
	static char line[100];
	unsigned got = 0;
	bool trims = count > 2 && !strcmp(words[2], "trim");
	long before, most;

	free(malloc(10));
	if (count > 2 && !trims) {
		struct rlimit limit = { (rlim_t)atoi(words[2]) << 20, (rlim_t)atoi(words[2]) << 20 };

		if (setrlimit(RLIMIT_MEMLOCK, &limit) || setuid(65534))
			return 77;
	}
	if (mlockall(atoi(words[1])))
		return 77;
	before = status(trims ? "VmRSS:" : "VmLck:");
	for (unsigned i = 0; i < 1000; i++) {
		objects[i] = malloc(20000);
		got += objects[i] != NULL;
		if (objects[i])
			memset(objects[i], 1, 20000);
	}
	if (trims) {
		most = status("VmRSS:");
		for (unsigned i = 0; i < 1000; i++)
			if (i % 100 != 99) /* the end stays in use */
				free(objects[i]);
		malloc_trim(0);
		snprintf(line, sizeof(line), "%ld %ld\n", most - before, most - status("VmRSS:"));
		return write(STDOUT_FILENO, line, strlen(line)) < 0;
	}
	return write(STDOUT_FILENO, line, (size_t)snprintf(line, sizeof(line), "%u %ld\n", got, status("VmLck:") - before)) < 0;
}
