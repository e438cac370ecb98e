/* A limit to data, in MiB, that a program sets itself before its first allocation. In each of two rounds it prints how many
 * objects it gets. The second argument is their size in bytes, the third how many it takes at most. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int count, char **words)
{
	static char *objects[10000];
	static char line[100];
	struct rlimit limit = { count > 3 ? (rlim_t)atoi(words[1]) << 20 : 0, RLIM_INFINITY };
	unsigned got[2] = { 0, 0 }, most = count > 3 ? (unsigned)atoi(words[3]) : 0;

	if (setrlimit(RLIMIT_DATA, &limit))
		return 77;
	for (unsigned round = 0; round < 2; round++) {
		while (got[round] < most && (objects[got[round]] = malloc((size_t)atoi(words[2]))))
			got[round]++;
		for (unsigned i = 0; i < got[round]; i++)
			free(objects[i]);
	}
	return write(STDOUT_FILENO, line, (size_t)snprintf(line, sizeof(line), "%u %u\n", got[0], got[1])) < 0;
}
