/* Objects freed twice: at once, much later, by two owners, in two threads. */
#include "planted.h"

#define TWICE(id) BUG(id, DOUBLE_FREE, "allocate_it free_it")

/* The second free, by another function than the first. */
static NO_INLINE void free_again(void *object)
{
	expect(object);
	free(object);
	NOT_LAST();
}

/* Twice in a row. */
TWICE(at_once)
{
	unsigned char *object = allocate_it(24);

	free_it(object);
	free_again(object);
}

/* Twice in a row, an object of 1000 bytes. */
TWICE(at_once_of_1000)
{
	unsigned char *object = allocate_it(1000);

	free_it(object);
	free_again(object);
}

/* Another object of the size is freed between. */
TWICE(with_another_between)
{
	unsigned char *object = allocate_it(64), *other = allocate_it(64);

	free_it(object);
	free_it(other);
	free_again(object);
}

/* 20 others of the size are freed between. */
TWICE(with_20_others_between)
{
	unsigned char *object = allocate_it(40), *others[20];

	for (unsigned i = 0; i < 20; i++)
		others[i] = allocate_it(40);
	free_it(object);
	for (unsigned i = 0; i < 20; i++)
		free_it(others[i]);
	free_again(object);
}

/* Thousands of objects of many sizes are allocated and freed between. */
TWICE(thousands_of_calls_later)
{
	unsigned char *object = allocate_it(112);

	free_it(object);
	for (size_t size = 8; size < 3000; size += 104)
		press(size, 200);
	free_again(object);
}

/* Hundreds of its own size are allocated and freed between. */
TWICE(after_400_of_its_size)
{
	unsigned char *object = allocate_it(112);

	free_it(object);
	press(112, 400);
	free_again(object);
}

static void *free_in_thread(void *object)
{
	free_it(object);
	return NULL;
}

static void *free_again_in_thread(void *object)
{
	free_again(object);
	return NULL;
}

/* The second time by another thread. */
TWICE(by_another_thread)
{
	unsigned char *object = allocate_it(56);

	free_it(object);
	in_a_thread(free_again_in_thread, object);
}

/* The first time by a thread that has ended since. */
TWICE(first_by_a_thread_that_ended)
{
	unsigned char *object = allocate_it(56);

	in_a_thread(free_in_thread, object);
	free_again(object);
}

/* The old pointer, after realloc has moved the object. */
BUG(the_old_one_of_realloc, DOUBLE_FREE, "allocate_it reallocate_it")
{
	unsigned char *object = allocate_it(48), *beside = allocate_it(48), *moved = reallocate_it(object, 60000);

	OPAQUE(object);
	need(moved != object, "realloc did not move the object");
	free_again(object);
	free_it(beside);
	free_it(moved);
}

/* An object that realloc has made. */
BUG(one_of_realloc, DOUBLE_FREE, "reallocate_it free_it")
{
	unsigned char *object = reallocate_it(allocate_it(20), 350);

	free_it(object);
	free_again(object);
}

/* realloc of an object that was freed. */
TWICE(realloc_of_a_freed_one)
{
	unsigned char *object = allocate_it(200);

	free_it(object);
	expect(object);
	object = reallocate_it(object, 400);
	free_it(object);
}

static NO_INLINE void free_by_realloc(void *object)
{
	void *nothing = realloc(object, 0);

	OPAQUE(nothing);
}

/* realloc to no bytes has freed it already. */
BUG(after_realloc_to_nothing, DOUBLE_FREE, "allocate_it free_by_realloc")
{
	unsigned char *object = allocate_it(72);

	free_by_realloc(object);
	OPAQUE(object);
	free_again(object);
}

/* An object of 200,000 bytes. */
TWICE(of_200k)
{
	unsigned char *object = allocate_it(200000);

	free_it(object);
	free_again(object);
}

/* An object of 8 MiB, which glibc has unmapped. */
TWICE(of_8M)
{
	unsigned char *object = allocate_it(8 * MIB);

	free_it(object);
	free_again(object);
}

/* An object of calloc. */
BUG(of_calloc, DOUBLE_FREE, "callocate_it free_it")
{
	unsigned char *object = callocate_it(7, 16);

	free_it(object);
	free_again(object);
}

/* An object of aligned_alloc. */
BUG(of_aligned_alloc, DOUBLE_FREE, "align_and_allocate_it free_it")
{
	unsigned char *object = align_and_allocate_it(256, 512);

	free_it(object);
	free_again(object);
}

struct node {
	struct node *next;
	int value;
};

static struct node *list_of(unsigned count)
{
	struct node *head = NULL;

	while (count-- > 0) {
		struct node *node = (struct node *)allocate_it(sizeof(*node));

		node->next = head;
		node->value = (int)count;
		head = node;
	}
	return head;
}

/* Two owners have lists that share their end; each frees all of its own. */
TWICE(the_shared_end_of_two_lists)
{
	struct node *shared = list_of(3), *one = list_of(2), *two = list_of(2), *owned[5], *next;
	unsigned count = 0;

	one->next->next = two->next->next = shared;
	for (struct node *node = two; node; node = node->next)
		owned[count++] = node; /* the second owner has an array of them */
	for (struct node *node = one; node; node = next) {
		next = node->next;
		free_it(node);
	}
	free_it(owned[0]);
	free_it(owned[1]);
	free_again(owned[2]);
}

struct parser {
	char *line;
};

/* A function frees on failure what its caller's cleaning up frees again. */
TWICE(on_the_way_out_of_a_failure)
{
	struct parser parser = {(char *)allocate_it(80)};
	bool failed = true;

	OPAQUE(failed);
	if (failed)
		free_it(parser.line); /* and parser.line stays */
	OPAQUE(parser.line);
	free_again(parser.line);
}

static void *kept;

static void free_kept(void)
{
	free_again(kept);
}

/* By a function of atexit, after the program had freed it itself. */
TWICE(at_exit)
{
	kept = allocate_it(32);
	atexit(free_kept);
	free_it(kept);
}
