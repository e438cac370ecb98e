/* Frees of addresses that are no object: within one, behind one, on the stack, in static data, anywhere. */
#include "planted.h"

#include <sys/mman.h>

#define WITHIN(id) BUG(id, INTERIOR, "allocate_it free_it")
#define ELSEWHERE(id) BUG(id, FOREIGN, "free_it")

static void free_wrongly(void *address)
{
	OPAQUE(address);
	expect(address);
	free_it(address);
}

/* ---- Within an object ------------------------------------------------------------------------------------------- */

/* A byte behind the start. */
WITHIN(plus_1)
{
	free_wrongly(allocate_it(64) + 1);
}

/* 8 bytes behind the start: what stands behind a length. */
WITHIN(plus_8)
{
	free_wrongly(allocate_it(64) + 8);
}

/* 16 bytes behind the start, aligned as an object is. */
WITHIN(plus_16)
{
	free_wrongly(allocate_it(100) + 16);
}

/* The middle of an object of 1024 bytes. */
WITHIN(middle)
{
	free_wrongly(allocate_it(1024) + 512);
}

/* The last byte of an object of an odd size. */
WITHIN(last_byte)
{
	free_wrongly(allocate_it(33) + 32);
}

/* The second page of an object of 200,000 bytes. */
WITHIN(second_page_of_200k)
{
	free_wrongly(allocate_it(200000) + PAGE);
}

/* The middle of an object of 8 MiB. */
WITHIN(middle_of_8M)
{
	free_wrongly(allocate_it(8 * MIB) + 4 * MIB);
}

struct record {
	char name[24];
	int value;
};

/* An element of an array that was allocated as one. */
WITHIN(element_of_an_array)
{
	struct record *records = (struct record *)allocate_it(20 * sizeof(*records));

	free_wrongly(&records[3]);
}

/* A pointer that a loop has moved over its string. */
WITHIN(moved_pointer)
{
	char *string = (char *)allocate_it(16);

	strcpy(string, "   indented");
	while (*string == ' ')
		string++;
	free_wrongly(string);
}

/* 16 bytes behind the start of an object of aligned_alloc. */
BUG(plus_16_of_aligned, INTERIOR, "align_and_allocate_it free_it")
{
	free_wrongly(align_and_allocate_it(64, 256) + 16);
}

/* ---- Elsewhere -------------------------------------------------------------------------------------------------- */

/* The first byte behind an object: of none, or of what an allocator keeps there. */
BUG(one_past_the_end, FOREIGN, "free_it")
{
	unsigned char *object = allocate_it(256);

	expect_kind(INTERIOR, object + 256);
	free_wrongly(object + 256);
}

/* An array on the stack. */
ELSEWHERE(of_the_stack)
{
	char array[64] __attribute__((aligned(16))) = "on the stack";

	free_wrongly(array);
}

static void *free_of_its_stack(void *unused)
{
	char array[64] __attribute__((aligned(16))) = "on the stack";

	free_wrongly(array);
	return unused;
}

/* An array on the stack of a thread. */
ELSEWHERE(of_the_stack_of_a_thread)
{
	in_a_thread(free_of_its_stack, NULL);
}

static char static_array[64] __attribute__((aligned(16))) = "static data", zeroed_array[4096] __attribute__((aligned(4096)));
static __thread char thread_array[64] __attribute__((aligned(16))) = "a thread's own";

/* Static data. */
ELSEWHERE(of_static_data)
{
	free_wrongly(static_array);
}

/* Static data without a value, at the start of a page. */
ELSEWHERE(of_zeroed_data)
{
	free_wrongly(zeroed_array);
}

/* A thread's own data. */
ELSEWHERE(of_thread_data)
{
	free_wrongly(thread_array);
}

/* A constant string. */
ELSEWHERE(of_a_constant)
{
	static const char *volatile constant = "a constant string";

	free_wrongly((void *)(uintptr_t)constant);
}

/* A function. */
ELSEWHERE(of_a_function)
{
	free_wrongly((void *)(uintptr_t)free_wrongly);
}

/* A string of the environment. */
ELSEWHERE(of_the_environment)
{
	char *path = getenv("PATH");

	need(path != NULL, "no PATH");
	free_wrongly(path);
}

/* The C library's standard output. */
ELSEWHERE(of_another_library)
{
	free_wrongly(stdout);
}

/* A number that nobody has as an address. */
ELSEWHERE(wild)
{
	free_wrongly((void *)(uintptr_t)0x123456789ab0);
}

/* An address that processors don't have. */
ELSEWHERE(not_canonical)
{
	free_wrongly((void *)(uintptr_t)0xdead00000000be00);
}

/* A small number: an offset into a structure at NULL. */
ELSEWHERE(small_number)
{
	free_wrongly((void *)(uintptr_t)0x40);
}

/* (void *)-1, which mmap returns when it fails. */
ELSEWHERE(map_failed)
{
	free_wrongly(MAP_FAILED);
}

static char *map(size_t size)
{
	char *mapped = (char *)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(mapped != MAP_FAILED, "no memory");
	return mapped;
}

/* Memory that the program has mapped itself. */
ELSEWHERE(of_mapped_memory)
{
	free_wrongly(map(64 * KIB));
}

/* 16 bytes into memory that the program has mapped itself. */
ELSEWHERE(within_mapped_memory)
{
	free_wrongly(map(64 * KIB) + 16);
}

/* Memory that was mapped and is not any more. */
ELSEWHERE(of_unmapped_memory)
{
	char *mapped = map(64 * KIB);

	munmap(mapped, 64 * KIB);
	free_wrongly(mapped + 4096);
}

/* realloc of an array on the stack. */
BUG(realloc_of_the_stack, FOREIGN, "reallocate_it")
{
	char array[64] __attribute__((aligned(16))) = "on the stack", *start = array;

	OPAQUE(start);
	expect(start);
	OPAQUE(start);
	free_it(reallocate_it(start, 100));
}
