/*
 * C23's frees that are told the size: free_sized and free_aligned_sized with a wrong size, or with a wrong alignment. C libraries
 * that don't have them yet are told apart by a line "absent".
 */
#include "planted.h"

extern void free_sized(void *object, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *object, size_t align, size_t size) __attribute__((weak));

static void need_them(void)
{
	if (free_sized && free_aligned_sized)
		return;
	puts("absent");
	exit(0);
}

static NO_INLINE void sized_free_it(void *object, size_t size)
{
	free_sized(object, size);
	NOT_LAST();
}

static NO_INLINE void aligned_free_it(void *object, size_t align, size_t size)
{
	free_aligned_sized(object, align, size);
	NOT_LAST();
}

#define SIZED(id) BUG(id, WRONG_SIZE, "allocate_it sized_free_it")

static void free_with(size_t allocated, size_t told)
{
	unsigned char *object;

	need_them();
	object = allocate_it(allocated);
	expect(object);
	sized_free_it(object, told);
}

/* An object of 48 bytes as one of 24. */
SIZED(half_of_48)
{
	free_with(48, 24);
}

/* An object of 100 bytes as one of 2000. */
SIZED(much_more_than_100)
{
	free_with(100, 2000);
}

/* A byte more than was asked for, which rounds up to the same. */
SIZED(one_more_than_57)
{
	free_with(57, 58);
}

/* The pointer's size, in place of what it points to. */
SIZED(size_of_a_pointer)
{
	free_with(640, sizeof(void *));
}

/* An object of 200,000 bytes as one of 100,000. */
SIZED(half_of_200k)
{
	free_with(200000, 100000);
}

/* An object that realloc has made, with the size that it had before. */
BUG(size_before_realloc, WRONG_SIZE, "reallocate_it sized_free_it")
{
	unsigned char *object;

	need_them();
	object = reallocate_it(allocate_it(30), 3000);
	expect(object);
	sized_free_it(object, 30);
}

/* An object of aligned_alloc with another size. */
BUG(aligned_with_another_size, WRONG_SIZE, "align_and_allocate_it aligned_free_it")
{
	unsigned char *object;

	need_them();
	object = align_and_allocate_it(64, 256);
	expect(object);
	aligned_free_it(object, 64, 128);
}

/* The right sizes, of malloc, calloc, realloc and aligned_alloc; NULL of any. */
SILENT(right_sizes)
{
	need_them();
	for (size_t size = 0; size < 10000; size += 1 + size / 3) {
		sized_free_it(allocate_it(size), size);
		sized_free_it(callocate_it(1, size), size);
		sized_free_it(reallocate_it(allocate_it(10), size + 1), size + 1);
		aligned_free_it(align_and_allocate_it(64, size / 64 * 64 + 64), 64, size / 64 * 64 + 64);
	}
	sized_free_it(allocate_it(8 * MIB), 8 * MIB);
	sized_free_it(NULL, 40);
}
