/* Writes to objects after they were freed: at once, after others were allocated and freed, by a pointer that others kept. */
#include "planted.h"

#define USE(id) BUG(id, AFTER_FREE, "allocate_it free_it")
#define AFTER 300 /* objects allocated and freed after the damage, so that memory is used again */

/* Frees, writes some bytes from an offset on, and has the size allocated again. */
static void use(unsigned char *object, size_t size, size_t offset, size_t count)
{
	memset(object, 'o', size);
	free_it(object);
	expect(object + offset);
	damage_it(object + offset, count);
	press(size, AFTER);
}

/* The first byte of a small object, at once. */
USE(first_byte_of_24)
{
	use(allocate_it(24), 24, 0, 1);
}

/* A field in the middle of an object of 100 bytes, at once. */
USE(field_of_100)
{
	use(allocate_it(100), 100, 40, 8);
}

/* The last byte of an object of an odd size. */
USE(last_byte_of_77)
{
	use(allocate_it(77), 77, 76, 1);
}

/* All of an object that fills a size class. */
USE(all_of_64)
{
	use(allocate_it(64), 64, 0, 64);
}

/* A byte of an object of a page. */
USE(byte_of_a_page)
{
	use(allocate_it(PAGE), PAGE, 2000, 1);
}

/* Bytes of an object of 200,000. */
USE(bytes_of_200k)
{
	unsigned char *object = allocate_it(200000);

	free_it(object);
	expect(object + 100000);
	damage_it(object + 100000, 16);
	press(200000, 8);
}

/* A byte of an object of 8 MiB. */
USE(byte_of_8M)
{
	unsigned char *object = allocate_it(8 * MIB);

	free_it(object);
	expect(object + 5 * MIB);
	damage_it(object + 5 * MIB, 1);
	press(8 * MIB, 2);
}

/* The program ends at once after it; nothing is allocated any more. */
USE(just_before_the_end)
{
	unsigned char *object = allocate_it(96);

	free_it(object);
	expect(object + 32);
	damage_it(object + 32, 4);
}

/* 400 objects of the size are allocated and freed before the write. */
USE(after_400_others)
{
	unsigned char *object = allocate_it(72);

	free_it(object);
	press(72, 400);
	expect(object + 16);
	damage_it(object + 16, 8);
	press(72, 400);
}

/* Objects of other sizes are allocated and freed before the write. */
USE(after_other_sizes)
{
	unsigned char *object = allocate_it(48);

	free_it(object);
	for (size_t size = 8; size < 2000; size += 40)
		press(size, 10);
	expect(object + 24);
	damage_it(object + 24, 8);
	press(48, AFTER);
}

/* By the old pointer, after realloc has moved the object. */
BUG(after_realloc_moved_it, AFTER_FREE, "allocate_it reallocate_it")
{
	unsigned char *object = allocate_it(56), *beside = allocate_it(56);
	unsigned char *moved = reallocate_it(object, 50000);

	OPAQUE(object);
	need(moved != object, "realloc did not move the object");
	expect(object + 8);
	damage_it(object + 8, 8);
	press(56, AFTER);
	free_it(beside);
	free_it(moved);
}

static void *write_in_thread(void *bytes)
{
	damage_it((unsigned char *)bytes, 8);
	return NULL;
}

static void *free_in_thread(void *object)
{
	free_it(object);
	return NULL;
}

/* Another thread writes to what this one has freed. */
USE(by_another_thread)
{
	unsigned char *object = allocate_it(80);

	free_it(object);
	expect(object + 8);
	in_a_thread(write_in_thread, object + 8);
	press(80, AFTER);
}

/* This thread writes to what another one has freed. */
USE(freed_by_another_thread)
{
	unsigned char *object = allocate_it(80);

	in_a_thread(free_in_thread, object);
	expect(object + 8);
	damage_it(object + 8, 8);
	press(80, AFTER);
	in_a_thread(free_in_thread, allocate_it(80));
}

struct node {
	struct node *next, *previous;
	int value;
};

/* A node of a list is freed and not unlinked: the next insertion writes its link. */
USE(list_node_not_unlinked)
{
	struct node *first = (struct node *)allocate_it(sizeof(*first)), *added = (struct node *)allocate_it(sizeof(*added));

	memset(first, 0, sizeof(*first));
	free_it(first);
	added->next = first;
	expect(&first->previous);
	*(struct node *volatile *)&first->previous = added;
	free_it(added);
	press(sizeof(struct node), AFTER);
}

/* A count of references goes down once too often, after the object was freed at 0. */
USE(one_reference_too_few)
{
	struct node *shared = (struct node *)allocate_it(sizeof(*shared));

	shared->value = 1;
	if (--shared->value == 0)
		free_it(shared);
	OPAQUE(shared);
	expect(&shared->value);
	--*(volatile int *)&shared->value;
	press(sizeof(struct node), AFTER);
}

/* A single bit of a freed object of calloc. */
BUG(bit_of_calloc, AFTER_FREE, "callocate_it free_it")
{
	unsigned char *object = callocate_it(5, 32);

	free_it(object);
	expect(object + 99);
	*(volatile unsigned char *)(object + 99) ^= 4;
	press(160, AFTER);
}

/* A freed object of aligned_alloc. */
BUG(field_of_aligned, AFTER_FREE, "align_and_allocate_it free_it")
{
	use(align_and_allocate_it(128, 256), 256, 128, 8);
}
