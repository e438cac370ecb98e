/* Memory that is locked: mlockall with the flags of the first argument. The second, if any: a limit in MiB for a user without rights.
 * Prints objects got, and KiB locked more for them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Without memory from malloc, of which there may be none. */
static long locked(void)
{
	static char text[8192];
	int file = open("/proc/self/status", O_RDONLY);
	ssize_t length = read(file, text, sizeof(text) - 1);

	text[length > 0 ? length : 0] = '\0';
	close(file);
	return atol(strstr(text, "VmLck:") + 6);
}

int main(int count, char **words)
{
	static char *objects[1000];
	static char line[100];
	unsigned got = 0;
	long before;

	free(malloc(10));
	if (count > 2) {
		struct rlimit limit = { (rlim_t)atoi(words[2]) << 20, (rlim_t)atoi(words[2]) << 20 };

		if (setrlimit(RLIMIT_MEMLOCK, &limit) || setuid(65534))
			return 77;
	}
	if (mlockall(atoi(words[1])))
		return 77;
	before = locked();
	for (unsigned i = 0; i < 1000; i++) {
		objects[i] = malloc(20000);
		got += objects[i] != NULL;
		if (objects[i])
			objects[i][0] = 1;
	}
	return write(STDOUT_FILENO, line, (size_t)snprintf(line, sizeof(line), "%u %ld\n", got, locked() - before)) < 0;
}
