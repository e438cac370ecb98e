/* Writes before the start of an object: by how much, of what size, and how the object came to be. Each object is then freed. */
#include "planted.h"

static void underflow(unsigned char *object, size_t size, size_t count)
{
	memset(object, 'o', size);
	expect(object - count);
	damage_it(object - count, count);
	free_it(object);
}

#define UNDERFLOW(id) BUG(id, BEFORE_START, "allocate_it")

/* 1 byte before an object of 24. */
UNDERFLOW(by_1_of_24)
{
	underflow(allocate_it(24), 24, 1);
}

/* 1 byte before an object of 13, an odd size. */
UNDERFLOW(by_1_of_13)
{
	underflow(allocate_it(13), 13, 1);
}

/* An array's element -1, of 8 bytes. */
UNDERFLOW(by_8_of_64)
{
	underflow(allocate_it(64), 64, 8);
}

/* 16 bytes before an object of 128. */
UNDERFLOW(by_16_of_128)
{
	underflow(allocate_it(128), 128, 16);
}

/* 1 byte before an object of a page. */
UNDERFLOW(by_1_of_a_page)
{
	underflow(allocate_it(PAGE), PAGE, 1);
}

/* 8 bytes before an object of 200,000. */
UNDERFLOW(by_8_of_200k)
{
	underflow(allocate_it(200000), 200000, 8);
}

/* 16 bytes before an object of 8 MiB. */
UNDERFLOW(by_16_of_8M)
{
	underflow(allocate_it(8 * MIB), 8 * MIB, 16);
}

/* A page before an object of two pages. */
UNDERFLOW(by_a_page_of_two_pages)
{
	unsigned char *object = allocate_it(2 * PAGE);

	expect_within(object - PAGE, PAGE); /* what is not the allocator's may be anybody's */
	damage_it(object - PAGE, PAGE);
	free_it(object);
}

/* The element before the first of an array of calloc. */
BUG(by_one_element_of_calloc, BEFORE_START, "callocate_it")
{
	underflow(callocate_it(20, 8), 160, 8);
}

/* 1 byte before an object of aligned_alloc. */
BUG(by_1_of_aligned_64, BEFORE_START, "align_and_allocate_it")
{
	underflow(align_and_allocate_it(64, 128), 128, 1);
}

/* 8 bytes before an object that realloc made larger. */
BUG(by_8_of_grown, BEFORE_START, "reallocate_it")
{
	underflow(reallocate_it(allocate_it(16), 400), 400, 8);
}

/* A loop removes the blanks at the end of a string that has nothing else. */
UNDERFLOW(blanks_only)
{
	char *line = (char *)allocate_it(4), *end = line + 4;

	memset(line, ' ', 4);
	expect(line - 1);
	while (end[-1] == ' ' && end > line)
		*--end = '\0';
	*(volatile char *)--end = 'A';
	free_it(line);
}
