/*
 * malloc where programs take large objects and touch little of them, later touch all of them, and then free them.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OBJECTS 400u
#define LEAST ((size_t)300 << 10)
#define SPAN ((size_t)3500 << 10)
#define WRITTEN ((size_t)160 << 20)
#define MIB ((size_t)1 << 20)
#define PATIENCE 10 /* seconds */

static unsigned char *objects[OBJECTS];
static size_t sizes[OBJECTS];
static uint64_t random_state = 11;

static size_t resident_bytes(void)
{
	unsigned long all = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	CHECK(file && fscanf(file, "%lu %lu", &all, &resident) == 2);
	if (file)
		fclose(file);
	return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void put_ends(unsigned i)
{
	objects[i][0] = (unsigned char)i;
	objects[i][sizes[i] - 1] = (unsigned char)~i;
}

static bool has_ends(unsigned i)
{
	return objects[i][0] == (unsigned char)i && objects[i][sizes[i] - 1] == (unsigned char)~i;
}

static void take(unsigned i)
{
	sizes[i] = LEAST + (size_t)(check_random(&random_state) % SPAN);
	objects[i] = malloc(sizes[i]);
	CHECK(objects[i] && is_aligned(objects[i], 16) && malloc_usable_size(objects[i]) >= sizes[i]);
	put_ends(i);
}

static void give(unsigned i)
{
	CHECK(has_ends(i));
	free(objects[i]);
	objects[i] = NULL;
}

static void exchange(unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++) {
		unsigned i = (unsigned)(check_random(&random_state) % OBJECTS);

		give(i);
		take(i);
	}
}

/* Such objects take little more memory than what is touched. Here are 400 objects with two touched pages each, of 2 MiB on
 * average. Descriptors of all pages would take 12 MiB. */
static void sparse_objects(void)
{
	size_t before = resident_bytes(), after;

	for (unsigned i = 0; i < OBJECTS; i++)
		take(i);
	after = resident_bytes();
	CHECK(after < before + ((size_t)14 << 20));
	for (unsigned i = 0; i < OBJECTS; i++)
		give(i);
	malloc_trim(0);
	for (unsigned i = 0; i < OBJECTS; i++)
		take(i);
	exchange(20000);
	after = resident_bytes();
	CHECK(after < before + ((size_t)24 << 20));
}

/* Whatever is done to one, it is an object like any other. */
static void odd_requests(void)
{
	unsigned char *object;

	for (unsigned round = 0; round < 300; round++) {
		size_t size = LEAST + (size_t)(check_random(&random_state) % SPAN);

		object = calloc(1, size);
		CHECK(object && is_zero(object, size));
		fill(object, 5000, round);
		object = realloc(object, size / 2);
		CHECK(object && is_filled(object, 5000, round));
		object = realloc(object, size + size / 3);
		CHECK(object && is_filled(object, 5000, round));
		memset(object + size, 1, size / 3);
		free(object);
		object = aligned_alloc(16384, size & ~(size_t)16383);
		CHECK(object && is_aligned(object, 16384));
		object[(size & ~(size_t)16383) - 1] = 1;
		free(object);
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		CHECK(has_ends(i));
}

/* When objects are touched, the heap serves them again as before. The untouched ones leave nothing in the way. */
static void touched_objects(void)
{
	size_t blocks;

	for (unsigned i = 0; i < OBJECTS; i++)
		give(i);
	for (unsigned round = 0; round < 300; round++) {
		unsigned i = round % 10;

		free(objects[i]);
		take(i);
		memset(objects[i], 1, sizes[i]);
	}
	for (unsigned i = 0; i < 10; i++) {
		free(objects[i]);
		objects[i] = NULL;
	}
	blocks = mallinfo2().hblks;
	for (unsigned i = 0; i < 10; i++)
		take(i);
	CHECK_EQUAL(mallinfo2().hblks, blocks);
	CHECK(resident_bytes() < (size_t)150 << 20);
	for (unsigned i = 0; i < 10; i++)
		give(i);
}

/* All of them written to. */
static int written_objects(size_t size)
{
	size_t before = resident_bytes(), after;

	for (size_t bytes = 0; bytes < WRITTEN; bytes += size) {
		void *object = malloc(size);

		CHECK(object != NULL);
		if (object)
			memset(object, 1, size);
	}
	after = resident_bytes();
	CHECK(after < before + WRITTEN / 4 * 5);
	return check_failures != 0;
}

/* In a heap that has done nothing else. */
static void in_child(int (*work)(size_t size), size_t size)
{
	int status = 1;
	pid_t child = fork();

	if (child == 0)
		_exit(work(size));
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

/* Of each object a little more than half of a power of two is touched. The rest is not backed, not even by huge pages of the
 * system. */
static void little_more_than_half(void)
{
	static const size_t halves[] = { 33000, 70000, 300000, 2200000 };

	for (unsigned i = 0; i < sizeof(halves) / sizeof(halves[0]); i++)
		in_child(written_objects, halves[i]);
}

static void take_and_give(unsigned count, size_t bytes)
{
	unsigned char *taken[20];

	for (unsigned i = 0; i < count; i++) {
		taken[i] = malloc(bytes);
		CHECK(taken[i] != NULL);
		if (taken[i])
			memset(taken[i], 1, bytes);
	}
	for (unsigned i = 0; i < count; i++)
		free(taken[i]);
}

/* A program that does nothing more, and one that makes only fast calls. */
static int used_once(size_t size)
{
	size_t before = resident_bytes();
	time_t end = time(NULL) + PATIENCE;

	take_and_give(5, 10 * size);
	CHECK(resident_bytes() < before + 2 * MIB);
	take_and_give(20, size);
	while (resident_bytes() >= before + 16 * MIB && time(NULL) < end)
		for (unsigned i = 0; i < 1000; i++)
			free(malloc(64));
	CHECK(resident_bytes() < before + 16 * MIB);
	return check_failures != 0;
}

int main(void)
{
	in_child(used_once, 2 * MIB);
	little_more_than_half();
	sparse_objects();
	odd_requests();
	touched_objects();
	return check_result();
}
