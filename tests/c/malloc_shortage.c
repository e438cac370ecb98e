/*
 * Where memory runs out: requests fail with ENOMEM, nothing that lives is touched, and what is freed can be had again.
 *
 * First the program sets limits while it runs. Under one on its data, memory that the heap has already reserved can't be made
 * usable, so what the heap has must serve everything. One on its address space counts for what the heap uses. Then the program
 * starts itself anew under a limit, as ulimit -v and ulimit -d set it, down to those under which no heap opens.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "malloc/parts.h"

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

/* Allocates until a request fails; returns how many objects there are. */
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

/* Shrinking an object needs no memory. */
static void try_to_shrink(unsigned count, uint64_t *random)
{
	for (unsigned i = 0; i < 200; i++) {
		unsigned chosen = (unsigned)(check_random(random) % count);
		size_t size = live[chosen].size / (size_t)(2 + check_random(random) % 8) + 1;
		char *moved = realloc(live[chosen].object, size);

		CHECK(moved != NULL);
		if (!moved)
			continue;
		live[chosen].object = moved;
		live[chosen].size = size;
		live[chosen].filled = live[chosen].filled < size ? live[chosen].filled : size;
		CHECK(is_filled(moved, live[chosen].filled, chosen));
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
	try_to_shrink(first, &random);
	try_to_grow(first, &random);
	release(first);
	second = exhaust(&random, bits);
	CHECK(second > first / 4); /* policies that never give pages back have them in the wrong sizes */
	release(second);
}

struct link {
	struct link *next;
};

/* Allocates as many small objects as there can be, and frees them all. Returns how many bytes they had. */
static size_t peak(void)
{
	struct link *all = NULL, *one;
	size_t bytes = 0;

	for (; (one = malloc(200)); bytes += 200) {
		one->next = all;
		all = one;
	}
	while ((one = all)) {
		all = one->next;
		free(one);
	}
	return bytes;
}

static void *come_and_go(void *object)
{
	free(malloc(100));
	return object;
}

/* The memory of small objects serves large ones; after a trim it serves what the program maps itself; then small objects
 * again. bsd44 keeps all that it had. */
static void play_data_peak(void)
{
	const char *spec = getenv("SLABYARD");
	size_t least = 120 << 20;
	pthread_t thread;
	char *large;
	void *own;

	if (spec && !strcmp(spec, "bsd44"))
		return;
	set_limit(RLIMIT_DATA, data_bytes() + (200 << 20));
	for (unsigned round = 0; round < 2; round++) {
		CHECK(peak() > least);
		large = malloc(least);
		CHECK(large != NULL);
		if (large)
			fill(large, least, round);
		CHECK_TEXT(sy_heap_check(sy__process_heap()), NULL);
		free(large);
	}
	CHECK(peak() > least);
	malloc_trim(0);
	CHECK_TEXT(sy_heap_check(sy__process_heap()), NULL);
	own = mmap(NULL, least, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(own != MAP_FAILED);
	CHECK_EQUAL(pthread_create(&thread, NULL, come_and_go, NULL), 0);
	pthread_join(thread, NULL);
	CHECK_EQUAL(munmap(own, least), 0);
	CHECK(peak() > least);
	CHECK_TEXT(sy_heap_check(sy__process_heap()), NULL);
}

static void play_limited_data(void)
{
	set_limit(RLIMIT_DATA, data_bytes() + (64 << 20));
	run_out(17);
	set_limit(RLIMIT_DATA, data_bytes() + (100 << 20));
	run_out(24);
}

/* The heap has reserved more, but the limit counts only what it uses. */
static void play_limited_addresses(void)
{
	set_limit(RLIMIT_AS, 64 << 20);
	run_out(17);
}

/* A child, as limits stay. */
static void test_limit_while_running(void (*play_limited)(void))
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		play_limited();
		_exit(check_failures ? 1 : 0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

/* Starts this program anew in another part. Passes on what it writes to standard error, and counts the lines. Returns its status. */
static int start(int resource, rlim_t bytes, const char *part, unsigned *lines)
{
	char *const arguments[] = { (char *)(uintptr_t)"malloc_shortage", (char *)(uintptr_t)part, NULL };
	int status = 0, ends[2];
	pid_t child;
	char read_one;

	CHECK_EQUAL(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		set_limit(resource, bytes);
		execv("/proc/self/exe", arguments);
		_exit(127);
	}
	close(ends[1]);
	for (*lines = 0; read(ends[0], &read_one, 1) == 1; *lines += read_one == '\n')
		(void)!write(STDERR_FILENO, &read_one, 1);
	close(ends[0]);
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	return status;
}

static void start_limited(int resource, rlim_t bytes, const char *part)
{
	unsigned lines;

	CHECK_EQUAL(start(resource, bytes, part, &lines), 0);
	CHECK_EQUAL(lines, 0);
}

static void test_limit_from_the_start(void)
{
	start_limited(RLIMIT_AS, 150 << 20, "much");
	start_limited(RLIMIT_AS, 60 << 20, "little");
	for (rlim_t limit = 8; limit <= 12; limit++) /* where half of it is too much for the heap */
		start_limited(RLIMIT_AS, limit << 20, "little");
	start_limited(RLIMIT_DATA, 4 << 20, "little");
}

/* From the least limit on under which the system can start the program, without a heap, which a line tells, to one that suffices for
 * each policy's. */
static void test_least_limit(int resource, rlim_t suffices)
{
	const rlim_t step = 128 << 10;
	rlim_t limit = 1 << 20, most;
	unsigned lines;

	while (start(resource, limit, "one", &lines) && limit < 100 << 20)
		limit += step;
	CHECK_EQUAL(lines, 1);
	for (most = limit + suffices; limit < most; limit += step) {
		CHECK_EQUAL(start(resource, limit, "one", &lines), 0);
		CHECK(lines <= 1);
	}
	CHECK_EQUAL(lines, 0);
}

/* Without a heap every request fails, the second like the first. */
static void get_one(void)
{
	char *object;

	errno = 0;
	object = malloc(100);
	if (object) {
		fill(object, 100, 1);
		CHECK(is_filled(object, 100, 1));
		free(object);
		return;
	}
	CHECK_EQUAL(errno, ENOMEM);
	errno = 0;
	CHECK(!malloc(100) && errno == ENOMEM);
}

static int play(const char *part)
{
	if (!strcmp(part, "one")) {
		get_one();
		return check_failures ? 1 : 0;
	}
	run_out(17);
	if (!strcmp(part, "much"))
		run_out(24);
	return check_result();
}

int main(int count, char **arguments)
{
	if (count > 1)
		return play(arguments[1]);
	test_limit_while_running(play_limited_data);
	test_limit_while_running(play_limited_addresses);
	test_limit_while_running(play_data_peak);
	test_limit_from_the_start();
	test_least_limit(RLIMIT_DATA, 1536 << 10);
	test_least_limit(RLIMIT_AS, 3 << 20);
	return check_result();
}
