/* Writes past the end of an object: by how much, of what size, and how the object came to be. Each object is then freed. */
#include "planted.h"

/* Bytes written from the end of an object on. */
static void overflow(unsigned char *object, size_t size, size_t count)
{
	memset(object, 'o', size);
	expect(object + size);
	damage_it(object + size, count);
	free_it(object);
}

#define OVERFLOW(id) BUG(id, PAST_END, "allocate_it")

/* 1 byte past a small object of 24 bytes. */
OVERFLOW(by_1_of_24)
{
	overflow(allocate_it(24), 24, 1);
}

/* 1 byte past an object of 13 bytes, an odd size. */
OVERFLOW(by_1_of_13)
{
	overflow(allocate_it(13), 13, 1);
}

/* 1 byte past an object of a single byte. */
OVERFLOW(by_1_of_1)
{
	overflow(allocate_it(1), 1, 1);
}

/* 1 byte into an object of no bytes. */
OVERFLOW(by_1_of_0)
{
	overflow(allocate_it(0), 0, 1);
}

/* 2 bytes past an object of 40. */
OVERFLOW(by_2_of_40)
{
	overflow(allocate_it(40), 40, 2);
}

/* 7 bytes past an object of 57: within what any allocator rounds up. */
OVERFLOW(by_7_of_57)
{
	overflow(allocate_it(57), 57, 7);
}

/* A pointer past an array of 8 pointers, which fills a size class. */
OVERFLOW(by_8_of_64)
{
	overflow(allocate_it(64), 64, 8);
}

/* 16 bytes past an object of 128. */
OVERFLOW(by_16_of_128)
{
	overflow(allocate_it(128), 128, 16);
}

/* 64 bytes, a cache line, past an object of 1000. */
OVERFLOW(by_64_of_1000)
{
	overflow(allocate_it(1000), 1000, 64);
}

/* 100 bytes past an object of 500. */
OVERFLOW(by_100_of_500)
{
	overflow(allocate_it(500), 500, 100);
}

/* A page past a small object of 256 bytes. */
OVERFLOW(by_a_page_of_256)
{
	overflow(allocate_it(256), 256, PAGE);
}

/* 1 byte past an object of exactly a page. */
OVERFLOW(by_1_of_a_page)
{
	overflow(allocate_it(PAGE), PAGE, 1);
}

/* 8 bytes past an object of two pages. */
OVERFLOW(by_8_of_two_pages)
{
	overflow(allocate_it(2 * PAGE), 2 * PAGE, 8);
}

/* 1 byte past an object of 200,000 bytes. */
OVERFLOW(by_1_of_200k)
{
	overflow(allocate_it(200000), 200000, 1);
}

/* A page past an object of 200,000 bytes. */
OVERFLOW(by_a_page_of_200k)
{
	overflow(allocate_it(200000), 200000, PAGE);
}

/* 1 byte past an object of 8 MiB. */
OVERFLOW(by_1_of_8M)
{
	overflow(allocate_it(8 * MIB), 8 * MIB, 1);
}

/* 100 bytes past an object a byte short of 8 MiB. */
OVERFLOW(by_100_of_8M)
{
	overflow(allocate_it(8 * MIB - 1), 8 * MIB - 1, 100);
}

/* memset with the size of another structure, 8 bytes larger than the object. */
BUG(by_memset, PAST_END, "allocate_it")
{
	unsigned char *object = allocate_it(48);

	expect(object + 48);
	memset(object, 'A', 56);
	OPAQUE(object);
	free_it(object);
}

/* ---- By how the object came to be ----------------------------------------------------------------------------- */

static NO_INLINE unsigned char *posix_allocate_it(size_t align, size_t size)
{
	void *object = NULL;

	need(posix_memalign(&object, align, size) == 0, "no memory");
	OPAQUE(object);
	return (unsigned char *)object;
}

/* 1 byte past what calloc gave. */
BUG(by_1_of_calloc, PAST_END, "callocate_it")
{
	overflow(callocate_it(3, 9), 27, 1);
}

/* The element behind the last of an array of calloc. */
BUG(by_one_element_of_calloc, PAST_END, "callocate_it")
{
	overflow(callocate_it(10, 12), 120, 12);
}

/* 1 byte past an object that realloc made larger. */
BUG(by_1_of_grown, PAST_END, "reallocate_it")
{
	overflow(reallocate_it(allocate_it(20), 300), 300, 1);
}

/* An object that realloc made smaller, used as large as it was. */
BUG(by_old_size_of_shrunk, PAST_END, "reallocate_it")
{
	overflow(reallocate_it(allocate_it(100), 60), 60, 40);
}

/* 1 byte past an object that realloc made larger twice, from 10 bytes to 300,000. */
BUG(by_1_of_grown_large, PAST_END, "reallocate_it")
{
	overflow(reallocate_it(reallocate_it(allocate_it(10), 5000), 300000), 300000, 1);
}

/* 1 byte past an object of aligned_alloc with 64 bytes of alignment. */
BUG(by_1_of_aligned_64, PAST_END, "align_and_allocate_it")
{
	overflow(align_and_allocate_it(64, 192), 192, 1);
}

/* 8 bytes past a page of posix_memalign that begins at a page. */
BUG(by_8_of_page_aligned, PAST_END, "posix_allocate_it")
{
	overflow(posix_allocate_it(PAGE, PAGE), PAGE, 8);
}

/* 1 byte past an odd number of bytes of posix_memalign, with 256 bytes of alignment. */
BUG(by_1_of_aligned_256, PAST_END, "posix_allocate_it")
{
	overflow(posix_allocate_it(256, 777), 777, 1);
}

/* ---- Strings -------------------------------------------------------------------------------------------------- */

static const char *volatile text = "twenty-four characters..";

/* malloc(strlen(s)) and strcpy: the end of the string is a byte too far. */
OVERFLOW(strcpy_off_by_one)
{
	size_t length = strlen(text);
	char *copy = (char *)allocate_it(length);

	expect(copy + length);
	strcpy(copy, text);
	OPAQUE(copy);
	free_it(copy);
}

static NO_INLINE char *duplicate_it(const char *string)
{
	char *copy = strdup(string);

	OPAQUE(copy);
	return copy;
}

/* strcat onto what strdup gave. */
BUG(strcat_to_strdup, PAST_END, "duplicate_it")
{
	char *copy = duplicate_it(text);

	expect(copy + strlen(text) + 1);
	strcat(copy, "!");
	OPAQUE(copy);
	free_it(copy);
}

/* A buffer for a number that has a digit more than its author thought. */
OVERFLOW(sprintf_of_a_long_number)
{
	volatile int number = -1234567;
	char *buffer = (char *)allocate_it(8);

	expect(buffer + 8);
	sprintf(buffer, "%d", number);
	OPAQUE(buffer);
	free_it(buffer);
}

/* 1 byte, before the program aborts by itself. */
OVERFLOW(before_an_abort)
{
	unsigned char *object = allocate_it(40);

	memset(object, 'o', 40);
	expect(object + 40);
	damage_it(object + 40, 1);
	abort();
}

/* 1 byte, before a quick exit. */
OVERFLOW(before_a_quick_exit)
{
	unsigned char *object = allocate_it(40);

	memset(object, 'o', 40);
	expect(object + 40);
	damage_it(object + 40, 1);
	quick_exit(0);
}

/* 1 byte past 64 MiB, beyond the largest block of a heap. */
OVERFLOW(by_1_of_64_mib)
{
	unsigned char *object = allocate_it((size_t)64 << 20);

	expect(object + ((size_t)64 << 20));
	damage_it(object + ((size_t)64 << 20), 1);
	free_it(object);
}
