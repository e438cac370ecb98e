/*
 * Sorting as kernel code asks for it (linux/sort.h, linux/list_sort.h): an array in place, by a heap, as no memory may be asked
 * for and the worst case must be as good as the usual; a list by merging, which keeps the order of equal entries.
 */
#include <slabyard/kernel/linux/list_sort.h>
#include <slabyard/kernel/linux/sort.h>

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

struct array {
	char *elements;
	size_t size;
	cmp_r_func_t compare;
	swap_r_func_t swaps;
	const void *context;
};

static void swap_bytes(char *one, char *two, size_t size)
{
	while (size--) {
		char spare = *one;

		*one++ = *two;
		*two++ = spare;
	}
}

static void swap_elements(const struct array *array, size_t one, size_t two)
{
	char *a = array->elements + one * array->size, *b = array->elements + two * array->size;

	if (array->swaps)
		array->swaps(a, b, (int)array->size, array->context);
	else
		swap_bytes(a, b, array->size);
}

static bool is_less(const struct array *array, size_t one, size_t two)
{
	return array->compare(array->elements + one * array->size, array->elements + two * array->size, array->context) < 0;
}

/* An element sinks until none of its two children is larger. */
static void sink(const struct array *array, size_t at, size_t count)
{
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && is_less(array, child, child + 1))
			child++;
		if (!is_less(array, at, child))
			return;
		swap_elements(array, at, child);
	}
}

void sy__sort_r(void *elements, size_t count, size_t size, cmp_r_func_t compare, swap_r_func_t swaps, const void *context)
{
	const struct array array = { (char *)elements, size, compare, swaps, context };

	for (size_t i = count / 2; i--;)
		sink(&array, i, count);
	while (count > 1) {
		swap_elements(&array, 0, --count);
		sink(&array, 0, count);
	}
}

struct plain {
	cmp_func_t compare;
	swap_func_t swaps;
};

static int compare_plain(const void *one, const void *two, const void *plain)
{
	return ((const struct plain *)plain)->compare(one, two);
}

static void swap_plain(void *one, void *two, int size, const void *plain)
{
	((const struct plain *)plain)->swaps(one, two, size);
}

void sy__sort(void *elements, size_t count, size_t size, cmp_func_t compare, swap_func_t swaps)
{
	const struct plain plain = { compare, swaps };

	sy__sort_r(elements, count, size, compare_plain, swaps ? swap_plain : NULL, &plain);
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

#define RUNS 64

/* Both in order and linked through next to NULL; of equal ones those of the first come first. */
static struct list_head *merged(void *context, list_cmp_func_t compare, struct list_head *first, struct list_head *second)
{
	struct list_head *all, **end = &all;

	while (first && second) {
		struct list_head **less = compare(context, first, second) > 0 ? &second : &first;

		*end = *less;
		end = &(*end)->next;
		*less = *end;
	}
	*end = first ? first : second;
	return all;
}

/* runs[i] holds nothing or 2^i entries in order, all of them before those of lower numbers. */
void sy__list_sort(void *context, struct list_head *head, list_cmp_func_t compare)
{
	struct list_head *runs[RUNS] = { NULL }, *at = head->next, *all = NULL;
	unsigned i;

	head->prev->next = NULL;
	while (at && at != head) {
		struct list_head *next = at->next;

		at->next = NULL;
		for (i = 0; runs[i]; runs[i++] = NULL)
			at = merged(context, compare, runs[i], at);
		runs[i] = at;
		at = next;
	}
	for (i = 0; i < RUNS; i++)
		all = merged(context, compare, runs[i], all);
	INIT_LIST_HEAD(head);
	while (all) {
		struct list_head *next = all->next;

		list_add_tail(all, head);
		all = next;
	}
}
