/*
 * Where memory runs out: requests fail with ENOMEM, nothing that lives is touched, and what is freed can be had again.
 *
 * The program starts itself anew under a limit on its address space, as ulimit -v sets it. Before that it sets one on
 * its data while it runs, so that memory which the heap has reserved already can't be made usable.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 60000

static struct {
	char *object;
	size_t size, filled;
} live[MOST];

/* Bytes of data that the program has mapped. */
static rlim_t data_bytes(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	CHECK_EQUAL(fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages), 1);
	fclose(file);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void set_limit(int resource, rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	CHECK_EQUAL(setrlimit((__rlimit_resource_t)resource, &limit), 0);
}

/* Objects until a request fails; how many. */
static unsigned exhaust(uint64_t *random, unsigned bits)
{
	unsigned count = 0;

	for (; count < MOST; count++) {
		size_t size = some_size(random, bits) + 1;

		errno = 0;
		live[count].object = check_random(random) % 3 ? malloc(size) : memalign(64, size);
		live[count].size = size;
		if (!live[count].object) {
			CHECK_EQUAL(errno, ENOMEM);
			break;
		}
		live[count].filled = size < 200 ? size : 200;
		fill(live[count].object, live[count].filled, count);
	}
	return count;
}

static void try_to_grow(unsigned count, uint64_t *random)
{
	for (unsigned i = 0; i < 100; i++) {
		unsigned chosen = (unsigned)(check_random(random) % count);
		size_t size = live[chosen].size;
		char *moved = realloc(live[chosen].object, size * 2);

		if (moved) {
			live[chosen].object = moved;
			live[chosen].size = size * 2;
		}
		CHECK(is_filled(live[chosen].object, live[chosen].filled, chosen));
	}
}

static void release(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		CHECK(is_filled(live[i].object, live[i].filled, i));
		free(live[i].object);
	}
}

static void run_out(unsigned bits)
{
	uint64_t random = 4101842887655102017u + bits;
	unsigned first = exhaust(&random, bits), second;

	CHECK(first > 0 && first < MOST);
	try_to_grow(first, &random);
	release(first);
	second = exhaust(&random, bits);
	CHECK(second > first / 4); /* policies that never give pages back have them in the wrong sizes */
	release(second);
}

/* A child, as limits stay. */
static void test_limit_while_running(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		set_limit(RLIMIT_DATA, data_bytes() + (64 << 20));
		run_out(17);
		set_limit(RLIMIT_DATA, data_bytes() + (100 << 20));
		run_out(24);
		_exit(check_failures ? 1 : 0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

static void test_limit_from_the_start(char *const *arguments)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		set_limit(RLIMIT_AS, 150 << 20);
		execv("/proc/self/exe", arguments);
		_exit(127);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

int main(int count, char **arguments)
{
	if (count > 1) {
		run_out(17);
		run_out(24);
		return check_result();
	}
	test_limit_while_running();
	test_limit_from_the_start((char *const[]){ arguments[0], (char *)(uintptr_t)"limited", NULL });
	return check_result();
}
