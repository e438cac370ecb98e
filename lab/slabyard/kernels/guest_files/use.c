/*
 * Uses memory, and frees some of it: use FOLDER SPARE BYTES EACH
 *
 * Writes files of so many bytes until no more than SPARE bytes are free, and then removes every EACH-th. In a tmpfs, what is free then
 * is in pieces of a file between the pages of others, as in a system that has been up for long.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static unsigned long long free_memory(void)
{
	struct sysinfo about;

	if (sysinfo(&about))
		fail("sysinfo");
	return (unsigned long long)about.freeram * about.mem_unit;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: use FOLDER SPARE BYTES EACH\n");
		return 2;
	}
	unsigned long long spare = strtoull(argv[2], NULL, 10);
	long bytes = atol(argv[3]), each = atol(argv[4]), files = 0;
	char *content = calloc(1, (size_t)bytes);
	char name[32];

	if (!content || each < 1 || chdir(argv[1]))
		fail(argv[1]);
	for (; free_memory() > spare; files++) {
		snprintf(name, sizeof(name), "%ld", files);
		int descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (descriptor < 0 || write(descriptor, content, (size_t)bytes) != bytes || close(descriptor))
			fail(name);
	}
	for (long file = 0; file < files; file += each) {
		snprintf(name, sizeof(name), "%ld", file);
		if (unlink(name))
			fail(name);
	}
	return 0;
}
