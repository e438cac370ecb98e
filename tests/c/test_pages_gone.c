/*
 * Memory that went back to the operating system: that it did, descriptors included; that what comes again reads zero, even
 * where the system kept the memory because the program has locked it; that taking it again is noticed; and where large pages
 * are asked for.
 *
 * Residency is the system's own account of it (mincore), which an emulator of another processor does not keep.
 */
#define _DEFAULT_SOURCE /* mincore, mlock, madvise */
#include "core/types.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "backend/decay.h"

#define MIB ((size_t)1 << 20)
#define COUNT 32u /* objects of a maximal block each */
#define SIZE (4 * MIB)
#define AN_OPERATION 1000000 /* nanoseconds */

static uint64_t now = 1000000000;

static uint64_t clock_of_test(void)
{
	return now;
}

static bool is_zero(const unsigned char *memory, size_t bytes)
{
	return !memory[0] && !memcmp(memory, memory + 1, bytes - 1);
}

static void take(struct sy_heap *heap, unsigned char **objects, unsigned flags)
{
	for (unsigned i = 0; i < COUNT; i++) {
		objects[i] = sy_malloc(heap, SIZE, flags);
		CHECK(objects[i] != NULL);
		CHECK(!(flags & SY_ZERO) || is_zero(objects[i], SIZE));
		memset(objects[i], 0xee, SIZE);
		now += AN_OPERATION;
	}
}

static void give(struct sy_heap *heap, unsigned char **objects)
{
	for (unsigned i = 0; i < COUNT; i++) {
		sy_mfree(heap, objects[i]);
		now += AN_OPERATION;
	}
}

/* Resident pages of the descriptors of those maximal blocks. */
static size_t resident(const struct sy_heap *heap, unsigned char **objects)
{
	unsigned char pages[SY__MAX_BLOCK * sizeof(struct sy_page) / SY_PAGE_SIZE];
	size_t sum = 0;

	for (unsigned i = 0; i < COUNT; i++) {
		CHECK(!mincore(sy__page_of(heap, objects[i]), SY__MAX_BLOCK * sizeof(struct sy_page), pages));
		for (size_t at = 0; at < sizeof(pages); at++)
			sum += pages[at] & 1;
	}
	return sum;
}

static bool has_residency(void)
{
	return !getenv("SLABYARD_EMULATED") && sysconf(_SC_PAGESIZE) == SY_PAGE_SIZE && sizeof(struct sy_page) == 64;
}

static void trimmed(void)
{
	struct sy_heap *heap = sy_heap_open("yard", &(struct sy_heap_options){ .keep = true }, NULL);
	unsigned char *objects[COUNT];

	for (unsigned round = 0; round < 3; round++) {
		take(heap, objects, round ? SY_ZERO : 0);
		give(heap, objects);
		CHECK(sy_heap_trim(heap) >= COUNT * SIZE);
		CHECK_EQUAL(sy_heap_trim(heap), 0);
		CHECK(!has_residency() || resident(heap, objects) <= COUNT);
		CHECK_FINE(sy_heap_check(heap));
	}
	sy_heap_close(heap);
}

/* Memory goes back by itself after a while, except the block that the program goes on with. Taking it again so soon counts
 * as refaults (core/backend/decay.c). */
static void decayed(void)
{
	struct sy_heap *heap = sy_heap_open("yard", NULL, NULL);
	const struct sy__decay *decay = &sy__backend_of(heap->pages)->decay;
	unsigned char *objects[COUNT];
	size_t refaulted;

	take(heap, objects, 0);
	give(heap, objects);
	for (unsigned passed = 0; passed < 1000; passed++) {
		void *object = sy_malloc(heap, 64 * SY_PAGE_SIZE, 0);

		now += AN_OPERATION;
		sy_mfree(heap, object);
	}
	CHECK(!has_residency() || resident(heap, objects) <= 2 * COUNT);
	CHECK_FINE(sy_heap_check(heap));
	refaulted = decay->refaulted;
	objects[0] = sy_malloc(heap, SIZE, 0);
	objects[1] = sy_malloc(heap, SIZE, 0);
	CHECK(decay->refaulted - refaulted >= SIZE / SY_PAGE_SIZE || decay->doublings); /* a step may have ended */
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

/* Locked memory does not go; nobody may see what was in it. */
static void locked(void)
{
	struct sy_heap *heap = sy_heap_open("yard", &(struct sy_heap_options){ .reserve = 4 * SIZE, .keep = true }, NULL);
	const size_t bytes = 4 * SY_PAGE_SIZE;
	unsigned char *object = sy_malloc(heap, bytes, 0);

	memset(object, 0xee, bytes);
	if (mlock(object, bytes))
		fprintf(stderr, "no memory can be locked here: how that is given back was not tested\n");
	sy_mfree(heap, object);
	sy_heap_trim(heap);
	for (unsigned i = 0; i < SIZE / bytes; i++) {
		unsigned char *again = sy_malloc(heap, bytes, SY_ZERO);

		CHECK(again && is_zero(again, bytes));
	}
	sy_heap_close(heap);
}

/* Whether the system is asked for large pages at that address. */
static bool wants_huge(const void *address)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	bool within = false, wants = false;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		uintptr_t from, to;

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
			within = from <= (uintptr_t)address && (uintptr_t)address < to;
		else if (within && !strncmp(line, "VmFlags:", 8))
			wants = strstr(line, " hg") != NULL;
	}
	if (maps)
		fclose(maps);
	return wants;
}

/* An emulator takes the advice, and does nothing. */
static bool system_has_huge(void)
{
	void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool has = has_residency() && !madvise(memory, SIZE, MADV_HUGEPAGE) && wants_huge(memory);

	munmap(memory, SIZE);
	return has;
}

static size_t resident_memory(void *start, size_t bytes)
{
	static unsigned char pages[SIZE / SY_PAGE_SIZE];
	size_t sum = 0;

	CHECK(bytes <= SIZE && !mincore(start, bytes, pages));
	for (size_t at = 0; at < bytes / SY_PAGE_SIZE; at++)
		sum += pages[at] & 1;
	return sum;
}

/* A heap that has much memory grows by huge pages. A trim leaves nothing of them, not even of pages that never held an
 * object. A block that gave something back gets no huge pages again until all of it has gone and it is as new. (The last
 * object is in a block that the heap looks at before it goes on with huge pages.) */
static void large_pages(void)
{
	const struct sy_heap_options options = { .keep = true, .sizing = { .exact_runs = true } };
	struct sy_heap *heap = sy_heap_open("yard", &options, NULL);
	unsigned char *objects[COUNT], *beside_tables, *block;

	take(heap, objects, 0);
	beside_tables = sy_malloc(heap, SIZE / 8 * 5, 0);
	block = sy_malloc(heap, SIZE / 8 * 5, 0);
	memset(block, 1, SIZE / 8 * 5);
	CHECK(!wants_huge(objects[0]) && wants_huge(objects[COUNT - 2]) && wants_huge(block));
	sy_mfree(heap, block);
	sy_heap_trim(heap);
	CHECK_EQUAL(resident_memory(block, SIZE), 0);
	CHECK(!wants_huge(block) && wants_huge(objects[COUNT - 2]));
	give(heap, objects);
	sy_mfree(heap, beside_tables);
	sy_heap_trim(heap);
	for (unsigned i = 0; i < COUNT; i++)
		CHECK(!wants_huge(objects[i]) && !resident_memory(objects[i], SIZE));
	take(heap, objects, SY_ZERO);
	CHECK(wants_huge(objects[COUNT - 1]));
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

/* A program that takes much and writes little: huge pages would be nearly all unused. */
static void sparse(void)
{
	struct sy_heap *heap = sy_heap_open("yard", &(struct sy_heap_options){ .keep = true }, NULL);
	unsigned char *objects[COUNT], *dense[COUNT], *later[4 * COUNT];
	unsigned huge = 0;

	for (unsigned i = 0; i < COUNT; i++) {
		objects[i] = sy_malloc(heap, SIZE, 0);
		objects[i][0] = 1;
		CHECK(!wants_huge(objects[i]));
	}
	take(heap, dense, 0);
	CHECK(wants_huge(dense[COUNT - 1]));
	for (unsigned i = 0; i < 4 * COUNT; i++) {
		later[i] = sy_malloc(heap, SIZE, 0);
		later[i][0] = 1;
		huge += wants_huge(later[i]);
	}
	CHECK(huge <= 2 * COUNT && !wants_huge(later[4 * COUNT - 1]));
	for (unsigned i = 0; i < COUNT; i++)
		sy_mfree(heap, objects[i]);
	give(heap, dense);
	for (unsigned i = 0; i < 4 * COUNT; i++)
		sy_mfree(heap, later[i]);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

/* A program that asks for huge pages has them everywhere and for good. */
static void asked_for(void)
{
	struct sy_heap *heap = sy_heap_open("yard", &(struct sy_heap_options){ .keep = true, .huge_pages = true }, NULL);
	unsigned char *objects[COUNT];

	take(heap, objects, 0);
	CHECK(wants_huge(objects[0]));
	give(heap, objects);
	sy_heap_trim(heap);
	CHECK(wants_huge(objects[0]) && wants_huge(objects[COUNT - 1]));
	sy_heap_close(heap);
}

int main(void)
{
	sy_platform_set_clock(clock_of_test);
	trimmed();
	decayed();
	locked();
	if (system_has_huge()) {
		large_pages();
		sparse();
		asked_for();
	} else {
		fprintf(stderr, "this system has no large pages that one could see: how they are used was not tested\n");
	}
	return check_result();
}
