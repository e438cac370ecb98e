/*
 * Size classes of general allocation: what each request takes, in both sets of classes and all policies that have them.
 *
 * Every size is asked for once, from small to large, and must get the smallest class that holds it. The test states the sizes
 * of the classes in another way than core/kmalloc.c: by the bounds that docs and comments give.
 */
#include "core/kmalloc.h"
#include <stdio.h>
#include <string.h>

#include "check.h"

#define LARGEST_FINE 32768u
#define LARGEST_LINUX 8192u

static const char *const policies[] = { "slab", "slub", "slqb" };

/* Bytes of its object that a request may use; 0: there was no object. */
static size_t taken(struct sy_heap *heap, size_t size)
{
	void *object = sy_malloc(heap, size, 0);
	size_t bytes = object ? sy_usable_size(heap, object) : 0;

	CHECK(object);
	sy_mfree(heap, object);
	return bytes;
}

/* The classes that requests of every size take, ascending; their count. */
static unsigned classes_of(struct sy_heap *heap, size_t largest, size_t *classes, unsigned most)
{
	unsigned count = 0;

	for (size_t size = 1; size <= largest; size++) {
		size_t bytes = taken(heap, size);

		if (count && size <= classes[count - 1]) {
			CHECK_EQUAL(bytes, classes[count - 1]);
			continue;
		}
		CHECK(bytes >= size && count < most);
		if (bytes < size || count == most)
			return count;
		classes[count++] = bytes;
	}
	return count;
}

static struct sy_heap *open_heap(const char *policy, enum sy_classes classes)
{
	const struct sy_heap_options options = { .sizing = { .classes = classes, .align = classes == SY_CLASSES_FINE ? 16 : 0 } };
	const char *error = "";
	struct sy_heap *heap = sy_heap_open(policy, &options, &error);

	CHECK_TEXT(error, "");
	return heap;
}

/* Bytes unused of a block that is cut into objects of that size. */
static size_t left_over(size_t block, size_t size)
{
	return block % size;
}

/* A page, or two, with a header are what many programs ask for. */
static void check_headers(struct sy_heap *heap)
{
	CHECK_EQUAL(taken(heap, 4096 + 272), 4096 + 272);
	CHECK(taken(heap, 4096 + 16) * 15 <= 65536);
	CHECK(taken(heap, 8192 + 16) * 15 <= 131072);
}

/* Up to a page, a request for a multiple of a power of two gets a class that is one, as an aligned allocation counts on. */
static void check_multiples(struct sy_heap *heap)
{
	for (size_t power = 16; power <= 4096; power *= 2)
		for (size_t size = power; size <= 4096; size += power)
			CHECK(taken(heap, size) % power == 0);
}

/* An object of more than 256 bytes leaves at most one such part unused. */
static size_t parts_unused_one(size_t size)
{
	if (size <= 1024)
		return 9;
	return size <= 16384 ? 13 : 8;
}

static void test_fine(const char *policy)
{
	struct sy_heap *heap = open_heap(policy, SY_CLASSES_FINE);
	size_t classes[SY__KMALLOC_MOST_CLASSES], last = 0;
	unsigned count;

	if (!heap)
		return;
	count = classes_of(heap, LARGEST_FINE, classes, SY__KMALLOC_MOST_CLASSES);
	CHECK_EQUAL(classes[count - 1], LARGEST_FINE);
	CHECK(count <= SY__KMALLOC_MOST_CLASSES);
	for (unsigned i = 0; i < count; last = classes[i++]) {
		size_t unused = classes[i] - last - 1; /* at most */

		CHECK(classes[i] % 16 == 0 || classes[i] == 8);
		CHECK(classes[i] <= 256 ? unused < (i ? 16 : 32) : unused * parts_unused_one(classes[i]) <= classes[i]);
		if (classes[i] > 4096 && classes[i] <= 8192)
			CHECK(left_over(131072, classes[i]) <= 131072 / 64);
		if (classes[i] > 8192)
			CHECK(left_over(262144, classes[i]) <= 262144 / 32 && classes[i] % 256 == 0);
	}
	check_headers(heap);
	check_multiples(heap);
	sy_heap_close(heap);
}

/* Powers of two, with 96 and 192 between them where the policy has them so. */
static void test_linux(const char *policy)
{
	struct sy_heap *heap = open_heap(policy, SY_CLASSES_LINUX);
	size_t classes[80];
	unsigned count;

	if (!heap)
		return;
	count = classes_of(heap, LARGEST_LINUX, classes, 80);
	CHECK_EQUAL(classes[count - 1], LARGEST_LINUX);
	for (unsigned i = 0; i < count; i++)
		CHECK(!(classes[i] & (classes[i] - 1)) || classes[i] == 96 || classes[i] == 192);
	CHECK(taken(heap, LARGEST_LINUX + 1) > LARGEST_LINUX);
	CHECK(taken(heap, LARGEST_FINE) >= LARGEST_FINE);
	sy_heap_close(heap);
}

int main(void)
{
	for (unsigned i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		test_fine(policies[i]);
		test_linux(policies[i]);
	}
	return check_result();
}
