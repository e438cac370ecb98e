/* The malloc family of libslabyard-malloc, under the policy that SLABYARD names: each call and every order of them. */
#define _GNU_SOURCE /* mallinfo2 */
#include "fuzz.h"
#include "objects.h"

#include <malloc.h>

#define ALIGNMENT 16u /* of objects of more than 8 bytes; smaller ones have 8 */
#define MOST_OPS 1500

struct sy_heap *sy__process_heap(void); /* malloc/parts.h, whose members have the names that this file redefines */

static size_t take_size(struct bytes *bytes)
{
	size_t size = take_scaled(bytes);

	return size >> 26 == 63 ? SIZE_MAX - (size & 0xfff) : size % (24 << 20);
}

static size_t take_align(struct bytes *bytes)
{
	unsigned bits = take8(bytes);

	return bits & 64 ? bits : (size_t)1 << bits % 24;
}

static void get_aligned(struct bytes *bytes, unsigned way, unsigned number)
{
	size_t align = take_align(bytes), size = take_size(bytes);
	void *object = NULL;

	if (way == 0)
		object = aligned_alloc(align, size);
	else if (way == 1)
		object = memalign(align, size);
	else if (posix_memalign(&object, align, size))
		object = NULL;
	FUZZ_CHECK(align & (align - 1) || !((uintptr_t)object & (align - 1)));
	held_add(object, size, number, NULL);
}

static void get(struct bytes *bytes, unsigned what)
{
	size_t size, count;
	void *object;

	if (held_full())
		return;
	if (what % 8 < 3) {
		get_aligned(bytes, what % 8, what);
		return;
	}
	size = take_size(bytes);
	if (what % 8 < 5) {
		count = take8(bytes);
		object = calloc(count, size);
		if (object)
			must_be_zero(object, count * size < FILLED ? count * size : FILLED);
		size *= count;
	} else {
		object = malloc(size);
	}
	FUZZ_CHECK(!((uintptr_t)object & ((size > 8 ? ALIGNMENT : 8) - 1)));
	FUZZ_CHECK(!object || malloc_usable_size(object) >= size);
	held_add(object, size, what, NULL);
}

static void resize(struct bytes *bytes, unsigned index)
{
	struct held *one = &held[index];
	size_t size = take_size(bytes), kept;
	unsigned char *changed;

	size += !size;
	kept = size < one->size ? size : one->size;
	held_verify(one, one->size);
	changed = realloc(one->object, size);
	if (!changed)
		return;
	one->object = changed;
	for (size_t i = 0; i < kept && i < FILLED; i++)
		FUZZ_CHECK(changed[i] == (unsigned char)one->number);
	one->size = size;
	held_fill(one);
}

static void run_op(struct bytes *bytes)
{
	unsigned what = take8(bytes);

	switch (what % 32) {
	case 0:
		malloc_trim(take16(bytes));
		break;
	case 1:
		FUZZ_CHECK(mallinfo2().uordblks > 0 || !held_count);
		break;
	case 2:
		mallopt((int)take8(bytes) - 16, (int)take_scaled(bytes));
		break;
	case 3:
		free(NULL);
		free(realloc(NULL, take16(bytes)));
		break;
	case 4:
	case 5:
	case 6:
		if (held_count)
			resize(bytes, take8(bytes) % held_count);
		break;
	default:
		if (what % 2)
			get(bytes, what >> 5);
		else if (held_count)
			free(held_take(take8(bytes) % held_count).object);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	bool check = take8(&bytes) % 4 == 0; /* it looks at every slot, which takes its time */

	for (unsigned i = 0; i < MOST_OPS && bytes.left; i++)
		run_op(&bytes);
	while (held_count)
		free(held_take(held_count - 1).object);
	if (check)
		fuzz_fine(sy_heap_check(sy__process_heap()));
	return 0;
}
