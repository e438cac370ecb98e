/*
 * Objects that no pointer leads to when the program ends. Of those that lead to each other a report may name one or all; each
 * that it names is expected.
 */
#include "planted.h"

#define LOST(id) BUG(id, LEAK, "allocate_it")

static void *volatile kept;

/* The last pointer is overwritten. */
LOST(pointer_overwritten)
{
	kept = allocate_it(40);
	expect_leak(kept, 40);
	kept = NULL;
}

/* A function returns without freeing its buffer. */
LOST(forgotten_on_return)
{
	unsigned char *buffer = allocate_it(1000);

	memset(buffer, 'l', 1000);
	expect_leak(buffer, 1000);
}

/* A second allocation is assigned over the first. */
LOST(assigned_over)
{
	kept = allocate_it(72);
	expect_leak(kept, 72);
	kept = allocate_it(88);
}

/* A large object of 300,000 bytes. */
LOST(large)
{
	unsigned char *buffer = allocate_it(300000);

	expect_leak(buffer, 300000);
}

/* An object of an odd size, whose pointer was lost when what held it was freed. */
LOST(held_by_a_freed_one)
{
	void **holder = (void **)allocate_it(sizeof(*holder) * 4), *held = allocate_it(51);

	holder[2] = held;
	expect_leak(held, 51);
	free_it(holder);
}

struct node {
	struct node *next;
	long payload[4];
};

static NO_INLINE struct node *list_of(unsigned count)
{
	struct node *head = NULL;

	while (count-- > 0) {
		struct node *node = (struct node *)allocate_it(sizeof(*node));

		memset(node, 0, sizeof(*node));
		node->next = head;
		head = node;
	}
	return head;
}

/* Two objects that point to each other, and nothing to them. */
LOST(cycle)
{
	struct node *head = list_of(2);

	head->next->next = head;
	expect_leak(head, sizeof(*head));
	expect_leak(head->next, sizeof(*head));
}

/* A list whose head is lost. */
LOST(head_of_a_list)
{
	struct node *head = list_of(5);

	kept = head;
	for (struct node *node = head; node; node = node->next)
		expect_leak(node, sizeof(*node));
	kept = NULL;
}

/* A list is emptied, and its first element, which was taken off, is forgotten. */
LOST(taken_off_a_list)
{
	struct node *head = list_of(3), *taken = head;

	head = head->next;
	taken->next = NULL;
	expect_leak(taken, sizeof(*taken));
	kept = head;
}

static NO_INLINE void lose_600(void)
{
	unsigned char *buffer = allocate_it(600);

	expect_leak(buffer, 600);
	OPAQUE(buffer);
}

static void *allocate_and_end(void *unused)
{
	call_and_scrub(lose_600);
	return unused;
}

/* Only the stack of a thread had it, which has ended. */
LOST(of_a_thread_that_ended)
{
	in_a_thread(allocate_and_end, NULL);
}

static __thread void *volatile of_thread;

static void *keep_and_end(void *unused)
{
	of_thread = allocate_it(120);
	expect_leak(of_thread, 120);
	return unused;
}

/* Only a variable of a thread had it, which has ended. */
LOST(of_a_variable_of_a_thread_that_ended)
{
	in_a_thread(keep_and_end, NULL);
}

/* An object that realloc has made. */
BUG(of_realloc, LEAK, "reallocate_it")
{
	unsigned char *buffer = reallocate_it(allocate_it(10), 230);

	expect_leak(buffer, 230);
}

/* An object of calloc. */
BUG(of_calloc, LEAK, "callocate_it")
{
	unsigned char *buffer = callocate_it(11, 12);

	expect_leak(buffer, 132);
}

/* An object of aligned_alloc. */
BUG(of_aligned_alloc, LEAK, "align_and_allocate_it")
{
	unsigned char *buffer = align_and_allocate_it(128, 384);

	expect_leak(buffer, 384);
}

/* Ten strings of a table whose pointers are set to NULL. */
LOST(strings_of_a_table)
{
	static char *table[10];

	for (unsigned i = 0; i < 10; i++) {
		table[i] = (char *)allocate_it(20 + i);
		expect_leak(table[i], 20 + i);
	}
	for (unsigned i = 0; i < 10; i++)
		table[i] = NULL;
}

static NO_INLINE void lose_333(void)
{
	unsigned char *buffer = allocate_it(333);

	expect_leak(buffer, 333);
	OPAQUE(buffer);
}

static void end_early(void)
{
	call_and_scrub(lose_333);
}

/* One that is lost while the program calls exit, not before. */
LOST(in_a_function_of_atexit)
{
	atexit(end_early);
}
