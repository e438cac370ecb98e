/*
 * Addresses run out, as on 32-bit machines. Objects of a page or more are served as long as there are addresses, wherever the
 * heap ends. Then requests fail with ENOMEM, and freed addresses serve again. Where there are too many addresses to use up,
 * the test takes some.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <pthread.h>

#include "malloc/parts.h"

#define MIDDLE 30000u /* bytes: of the heap while it has room, and hardly touched */
#define MOST 60000u   /* 1.7 GiB */
#define LARGE ((size_t)4 << 20)
#define MOST_LARGE 1024u

static unsigned char *middle[MOST], *large[MOST_LARGE];

static void *come_and_go(void *none)
{
	free(malloc(100));
	return none;
}

static unsigned take(unsigned char **objects, unsigned most, size_t bytes)
{
	unsigned count = 0;

	for (; count < most && (objects[count] = malloc(bytes)); count++)
		objects[count][0] = (unsigned char)count;
	return count;
}

static void give(unsigned char **objects, unsigned count)
{
	while (count--) {
		CHECK_EQUAL(objects[count][0], count & 0xff);
		free(objects[count]);
	}
}

static void run_out(void)
{
	unsigned large_count, count = take(middle, MOST, MIDDLE);
	pthread_t thread;

	CHECK_EQUAL(count, MOST);
	errno = 0;
	large_count = take(large, MOST_LARGE, LARGE);
	if (!check_addressable((uint64_t)MOST_LARGE * LARGE)) {
		CHECK(large_count < MOST_LARGE);
		CHECK_EQUAL(errno, ENOMEM);
	}
	if (!pthread_create(&thread, NULL, come_and_go, NULL)) /* without room there is no stack for the thread */
		pthread_join(thread, NULL);
	CHECK_TEXT(sy_heap_check(sy__process_heap()), NULL);
	give(large, large_count);
	give(middle, count);
}

int main(void)
{
	run_out();
	run_out();
	CHECK_TEXT(sy_heap_check(sy__process_heap()), NULL);
	return check_result();
}
