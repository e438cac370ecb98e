/* Every function of the malloc interface: results, alignment, contents, errors. */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#define OBJECTS 2000

void free_sized(void *object, size_t size);
void free_aligned_sized(void *object, size_t align, size_t size);
void cfree(void *object);
void *__libc_malloc(size_t size);
void __libc_free(void *object);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *object, size_t size);
void *__libc_memalign(size_t align, size_t size);
void *__libc_pvalloc(size_t size);

/* Sizes that no machine has, and the errno that goes with them. */
#define CHECK_REFUSED(call)             \
	do {                                \
		errno = 0;                      \
		CHECK((call) == NULL);          \
		CHECK_EQUAL(errno, ENOMEM);     \
	} while (0)

static volatile size_t no_size = 0; /* compilers know too much about sizes that are constants */

/* ---- Before and after main ---------------------------------------------------------------------------------------- */

static char *early;

__attribute__((constructor(101))) static void before_main(void)
{
	early = malloc(100);
	fill(early, 100, 1);
}

__attribute__((destructor(101))) static void after_exit(void)
{
	char *late = realloc(malloc(10), 5000);

	if (!late || !is_filled(early, 100, 1))
		_exit(EXIT_FAILURE);
	free(late);
	free(early);
}

/* ---- Sizes -------------------------------------------------------------------------------------------------------- */

static void test_sizes(void)
{
	for (size_t size = 0; size < 70000; size += 1 + size / 37) {
		char *object = malloc(size), *other = malloc(size);

		CHECK(object && other && object != other);
		CHECK(is_aligned(object, promised(size)) && is_aligned(other, promised(size)));
		CHECK(malloc_usable_size(object) >= size);
		fill(object, malloc_usable_size(object), size);
		fill(other, malloc_usable_size(other), size + 1);
		CHECK(is_filled(object, malloc_usable_size(object), size));
		free(object);
		CHECK(is_filled(other, malloc_usable_size(other), size + 1));
		free(other);
	}
}

static void test_large_sizes(void)
{
	for (unsigned shift = 16; shift < 29; shift++)
		for (int beyond = -1; beyond <= 1; beyond++) {
			size_t size = ((size_t)1 << shift) + (size_t)beyond;
			char *object = malloc(size);

			CHECK(object && is_aligned(object, 16) && malloc_usable_size(object) >= size);
			object[0] = 'a';
			object[size / 2] = 'b';
			object[size - 1] = 'c';
			CHECK(object[0] == 'a' && object[size / 2] == 'b' && object[size - 1] == 'c');
			free(object);
		}
}

static void test_impossible_sizes(void)
{
	const unsigned half = CHAR_BIT * sizeof(size_t) / 2;
	size_t huge = no_size - 1;

	CHECK_REFUSED(malloc(huge));
	CHECK_REFUSED(malloc(huge / 2 + 1));
	CHECK_REFUSED(malloc((size_t)PTRDIFF_MAX - 100));
	CHECK_REFUSED(calloc(huge, 1));
	CHECK_REFUSED(calloc(huge / 2, 3));
	CHECK_REFUSED(calloc((huge >> half) + 1, (huge >> half) + 1));
	CHECK_REFUSED(realloc(NULL, huge));
	CHECK_REFUSED(reallocarray(NULL, huge / 4, 5));
	CHECK_REFUSED(aligned_alloc(64, huge - 63));
	CHECK_REFUSED(memalign((size_t)1 << 20, huge));
	CHECK_REFUSED(aligned_alloc(huge / 2 + 1, huge / 2));
	CHECK_REFUSED(valloc(huge));
	CHECK_REFUSED(pvalloc(huge - 5));
}

static void test_zero(void)
{
	void *first = malloc(no_size), *second = calloc(no_size, 8), *third = aligned_alloc(64, no_size);

	CHECK(first && second && third && first != second && second != third && first != third);
	CHECK(realloc(first, no_size) == NULL);
	free(second);
	free(third);
	free(NULL);
	CHECK_EQUAL(malloc_usable_size(NULL), 0);
}

static void test_calloc(void)
{
	for (unsigned round = 0; round < 3; round++)
		for (size_t size = 1; size < 3000000; size = size * 3 / 2 + 1) {
			char *object = calloc(size, 1);

			CHECK(object && is_zero(object, size));
			memset(object, 0xa5, malloc_usable_size(object)); /* what the next round may find */
			free(object);
		}
}

/* ---- Resizing ----------------------------------------------------------------------------------------------------- */

static void test_growth_and_shrinking(void)
{
	char *object = NULL;
	size_t size = 0;

	while (size < 40000000) {
		size_t larger = size + size / 3 + 1;

		object = realloc(object, larger);
		CHECK(object && is_aligned(object, promised(larger)) && is_filled(object, size < 5000 ? size : 5000, 7));
		fill(object, larger < 5000 ? larger : 5000, 7);
		object[larger - 1] = object[larger - 1];
		size = larger;
	}
	for (; size > 1; size /= 3) {
		object = realloc(object, size);
		CHECK(object && is_filled(object, size < 5000 ? size : 5000, 7));
	}
	free(object);
}

static void test_steps(void)
{
	char *object = malloc(1);

	for (size_t size = 1; size < 300000; size += 997) {
		object = realloc(object, size + 997);
		CHECK(object && is_filled(object, size > 1 ? size : 0, 3));
		fill(object, size + 997, 3);
	}
	free(object);
}

static void test_refused_growth(void)
{
	const unsigned less = CHAR_BIT * sizeof(size_t) / 2 - 4;
	char *volatile small = malloc(100), *volatile large = malloc(5000000);

	fill(small, 100, 1);
	fill(large, 1000, 2);
	CHECK_REFUSED(realloc(small, no_size - 1));
	CHECK_REFUSED(realloc(large, no_size - 1));
	CHECK_REFUSED(realloc(small, (no_size - 1) / 9 * 8 + 10)); /* an eighth more would be nothing */
	CHECK_REFUSED(reallocarray(large, (no_size - 1) >> less, (no_size - 1) >> less)); /* more than there are addresses */
	CHECK(is_filled(small, 100, 1) && is_filled(large, 1000, 2));
	free(small);
	free(large);
}

/* ---- Alignment ---------------------------------------------------------------------------------------------------- */

static void test_alignments(void)
{
	static const size_t sizes[] = { 0, 1, 16, 24, 100, 200, 1000, 4096, 4200, 5000, 6400, 8200, 40000, 300000, 2000000 };

	for (size_t align = 1; align <= (size_t)1 << 24; align *= 2)
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			char *objects[3] = { aligned_alloc(align, sizes[i]), memalign(align, sizes[i]), NULL };

			CHECK_EQUAL(posix_memalign((void **)&objects[2], align < 8 ? 8 : align, sizes[i]), 0);
			for (unsigned j = 0; j < 3; j++) {
				CHECK(objects[j] && is_aligned(objects[j], align > promised(sizes[i]) ? align : promised(sizes[i])));
				CHECK(malloc_usable_size(objects[j]) >= sizes[i]);
				fill(objects[j], sizes[i], j);
			}
			for (unsigned j = 0; j < 3; j++)
				CHECK(is_filled(objects[j], sizes[i], j));
			free(objects[0]);
			objects[1] = realloc(objects[1], sizes[i] * 2 + 1);
			CHECK(objects[1] && is_filled(objects[1], sizes[i], 1));
			free(objects[1]);
			free(objects[2]);
		}
}

static volatile size_t no_power = 48; /* of two; not known to compilers, who warn of it */

static void test_wrong_alignments(void)
{
	void *object = &object;
	char *rounded = memalign(no_power, 100);

	errno = 0;
	CHECK(aligned_alloc(no_size, 8) == NULL);
	CHECK_EQUAL(errno, EINVAL);
	errno = 0;
	CHECK(aligned_alloc(no_power, 96) == NULL);
	CHECK_EQUAL(errno, EINVAL);
	errno = 0;
	CHECK(memalign(no_size - 1, 8) == NULL);
	CHECK_EQUAL(errno, EINVAL);
	errno = 0;
	CHECK_EQUAL(posix_memalign(&object, sizeof(void *) / 2, 8), EINVAL);
	CHECK_EQUAL(posix_memalign(&object, 24, 8), EINVAL);
	CHECK_EQUAL(posix_memalign(&object, no_size, 8), EINVAL);
	CHECK_EQUAL(posix_memalign(&object, 64, no_size - 64), ENOMEM);
	CHECK_EQUAL(errno, 0);
	CHECK(object == &object);
	CHECK(rounded && is_aligned(rounded, 64));
	free(rounded);
}

static void test_pages(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *one = valloc(10), *two = pvalloc(page + 1);

	CHECK(one && is_aligned(one, page) && two && is_aligned(two, page));
	CHECK(malloc_usable_size(two) >= 2 * page);
	memset(two, 1, 2 * page);
	free(one);
	free(two);
}

/* ---- Many objects at once ----------------------------------------------------------------------------------------- */

struct live {
	char *object;
	size_t size;
};

/* One step of a random program: a free slot gets an object, a taken one is resized or freed. */
static void step(struct live *live, uint64_t number, uint64_t *random)
{
	size_t size = some_size(random, check_random(random) % 50 ? 12 : 21);

	if (live->object) {
		CHECK(is_filled(live->object, live->size, number));
		if (check_random(random) % 4) {
			free(live->object);
			live->object = NULL;
			return;
		}
		live->object = realloc(live->object, size ? size : 1);
		CHECK(live->object && is_filled(live->object, size < live->size ? size : live->size, number));
	} else if (check_random(random) % 8 == 0) {
		live->object = memalign((size_t)1 << check_random(random) % 13, size);
	} else {
		live->object = check_random(random) % 4 ? malloc(size) : calloc(1, size);
	}
	CHECK(live->object != NULL);
	live->size = size;
	fill(live->object, size, number);
}

static void test_random(void)
{
	static struct live live[OBJECTS];
	uint64_t random = 88172645463325252u;

	for (unsigned i = 0; i < 30000; i++) {
		uint64_t number = check_random(&random) % OBJECTS;

		step(&live[number], number, &random);
		if (i % 10000 == 0)
			malloc_trim(0);
	}
	for (uint64_t number = 0; number < OBJECTS; number++) {
		CHECK(!live[number].object || is_filled(live[number].object, live[number].size, number));
		free(live[number].object);
	}
}

/* ---- The rest ----------------------------------------------------------------------------------------------------- */

static void test_free_keeps_errno(void)
{
	errno = 12345;
	free(malloc(10));
	free(malloc(100000));
	free(malloc(10000000));
	CHECK_EQUAL(errno, 12345);
}

static void test_sized_frees(void)
{
	free_sized(malloc(100), 100);
	free_sized(NULL, 0);
	free_aligned_sized(aligned_alloc(64, 128), 64, 128);
	cfree(malloc(10));
}

static void test_internal_names(void)
{
	char *object = __libc_malloc(100);

	fill(object, 100, 1);
	object = realloc(object, 5000);
	CHECK(is_filled(object, 100, 1));
	object = __libc_realloc(object, 9000000);
	CHECK(is_filled(object, 100, 1));
	free(object);
	__libc_free(malloc(10));
	object = __libc_calloc(10, 1000);
	CHECK(is_zero(object, 10000));
	free(object);
	object = __libc_memalign(512, 100);
	CHECK(is_aligned(object, 512));
	free(object);
	object = __libc_pvalloc(1);
	CHECK(malloc_usable_size(object) >= 4096);
	free(object);
}

static void test_figures(void)
{
	struct mallinfo2 before = mallinfo2(), after;
	char *large = malloc(10000000), *small = malloc(500);
	static char text[1 << 16];
	FILE *stream;

	after = mallinfo2();
	CHECK_EQUAL(after.hblks, before.hblks + 1);
	CHECK(after.hblkhd >= before.hblkhd + 10000000);
	CHECK(after.uordblks < before.uordblks + 10000000 && after.uordblks >= before.uordblks + 500);
	CHECK_EQUAL(after.arena, after.uordblks + after.fordblks);
	CHECK((unsigned)mallinfo().hblks == after.hblks);
	free(large);
	free(small);
	CHECK_EQUAL(mallinfo2().hblks, before.hblks);

	stream = fmemopen(text, sizeof(text), "w");
	CHECK_EQUAL(malloc_info(0, stream), 0);
	fclose(stream);
	CHECK(strstr(text, "<malloc version=") == text && strstr(text, "</malloc>"));
	errno = 0;
	CHECK(malloc_info(1, stdout) == -1 && errno == EINVAL);
	CHECK_EQUAL(mallopt(M_MMAP_THRESHOLD, 1 << 20), 1);
	CHECK_EQUAL(mallopt(M_PERTURB, 0), 1);
	CHECK_EQUAL(mallopt(12345, 0), 1);
	CHECK_EQUAL(mallopt(M_MXFAST, 64), 1);
	CHECK_EQUAL(mallopt(M_MXFAST, -1), 0);
	CHECK_EQUAL(mallopt(M_MXFAST, 1 << 20), 0);
	malloc_stats();
}

static void test_trim(void)
{
	static char *objects[4000];

	for (unsigned i = 0; i < 4000; i++)
		objects[i] = memset(malloc(1000), 1, 1000);
	for (unsigned i = 0; i < 4000; i++)
		free(objects[i]);
	malloc_trim(0);
	CHECK_EQUAL(malloc_trim(0), 0);
}

/* Ended mappings are kept only if the program wanted another mapping a moment ago. After this call it has wanted one,
 * however long it was busy before, and none is kept yet. */
static void want_mappings(void)
{
	for (unsigned i = 0; i < 2; i++)
		free(memset(malloc(9000000), 1, 1));
	malloc_trim(0);
}

/* Mappings that ended serve those to come: cut, grown, and never where zeroes are promised. */
static void test_kept(void)
{
	char *large, *small, *grown, *zeroed;
	uintptr_t start;

	want_mappings();
	large = memset(malloc(9000000), 7, 9000000);
	start = (uintptr_t)large;
	free(large);
	small = malloc(5000000);
	CHECK_EQUAL((uintptr_t)small, start);
	CHECK(malloc_usable_size(small) >= 5000000 && malloc_usable_size(small) < 5200000);
	fill(small, 5000000, 1);
	grown = malloc(8000000);
	fill(grown, 8000000, 2);
	CHECK(is_filled(small, 5000000, 1) && is_filled(grown, 8000000, 2));
	free(small);
	zeroed = calloc(1, 5000000);
	for (size_t i = 0; i < 5000000; i++)
		if (zeroed[i]) {
			CHECK(false && "calloc gives zeroes");
			break;
		}
	free(zeroed);
	grown = realloc(grown, 20000000);
	CHECK(grown && is_filled(grown, 8000000, 2));
	want_mappings();
	free(grown);
	CHECK_EQUAL(malloc_trim(0), 1);
	CHECK_EQUAL(malloc_trim(0), 0);
}

static void free_some_mappings(size_t bytes)
{
	char *objects[4];

	for (unsigned i = 0; i < 4; i++)
		objects[i] = memset(malloc(bytes), 'a', bytes);
	for (unsigned i = 0; i < 4; i++)
		free(objects[i]);
}

/* Several ended mappings become one for a larger request, with their pages. It may change its size, and end, as any other. */
static void test_joined(void)
{
	const size_t bytes = 5000000, most = 4 * bytes - 500000;

	for (unsigned round = 0; round < 3; round++) {
		char *joined, *resized;
		size_t old = 0;

		want_mappings();
		free_some_mappings(bytes);
		joined = malloc(most);
		for (size_t i = 0; i < most; i++)
			old += joined[i] == 'a';
		CHECK(old > most - 100000);
		memset(joined, 'b', malloc_usable_size(joined));
		fill(joined, 5000, round);
		resized = realloc(joined, round == 1 ? bytes : 2 * most);
		CHECK(resized && is_filled(resized, 5000, round) && resized[bytes - 1] == 'b');
		CHECK(round == 1 || resized[most - 1] == 'b');
		free(resized);
	}
	want_mappings();
	free_some_mappings(bytes);
	free(malloc(most));
	CHECK_EQUAL(malloc_trim(0), 1);
	CHECK_EQUAL(malloc_trim(0), 0);
}

static char *build(size_t bytes, char content)
{
	char *array = NULL;

	for (size_t size = 400000; size <= bytes; size += size / 2) {
		array = realloc(array, size);
		CHECK(array != NULL);
		array[0] = array[size / 2] = content;
		if (content)
			memset(array, content, malloc_usable_size(array));
	}
	return array;
}

/* An array that grows gets the pages of an array that grew before. Fresh memory is had in place of what is kept. */
static void test_built_again(void)
{
	const size_t bytes = 10000000;
	size_t old = 0;
	char *array, *aligned;

	want_mappings();
	free(build(bytes, 'a'));
	array = build(bytes, 0);
	for (size_t i = 0; i < bytes / 2; i++)
		old += array[i] == 'a';
	CHECK(old > bytes / 2 - 100000);
	free(array);
	aligned = aligned_alloc((size_t)2 << 20, 2 * bytes);
	array = malloc(bytes / 2);
	CHECK(aligned && array && is_zero(array, bytes / 2));
	free(aligned);
	free(array);
	malloc_trim(0);
}

/* Pages that nobody had written among others that somebody had. */
static void test_calloc_of_kept(void)
{
	const size_t bytes = 12000000;

	for (size_t step = 4096; step < bytes; step *= 4) {
		char *object = malloc(bytes);

		for (size_t i = 0; i < bytes; i += step)
			object[i] = 1;
		free(object);
		object = calloc(1, bytes);
		CHECK(object && is_zero(object, bytes));
		free(object);
	}
}

/* What an aligned mapping has too much is less than a page. A kept mapping is not cut to such a part either. */
static void test_aligned_beside_kept(void)
{
	const size_t bytes = (size_t)20 << 20;

	for (size_t align = 128; align <= 65536; align *= 4) {
		char *object, *rest[2];

		malloc_trim(0);
		free(calloc(1, bytes)); /* nothing of it is resident, */
		free(memset(malloc(bytes), 'x', bytes)); /* and all */
		object = aligned_alloc(align, bytes + align);
		rest[0] = calloc(1, (size_t)8 << 20);
		rest[1] = calloc(1, (size_t)9 << 20);
		CHECK(object && !((uintptr_t)object % align));
		CHECK(rest[0] && rest[1] && is_zero(rest[0], (size_t)8 << 20) && is_zero(rest[1], (size_t)9 << 20));
		free(rest[0]);
		free(rest[1]);
		free(object);
	}
	for (size_t align = 128; align <= 2048; align *= 4) {
		char *object, *rest;

		malloc_trim(0);
		free(memset(malloc(bytes), 'x', bytes));
		object = aligned_alloc(align, bytes / 2);
		rest = calloc(1, bytes / 2 - (size_t)256);
		CHECK(object && rest && is_zero(rest, bytes / 2 - 256));
		free(rest);
		free(object);
	}
}

static char *barely_touched(size_t bytes)
{
	char *object = malloc(bytes);

	CHECK(object != NULL);
	memset(object, 'a', 100000);
	object[bytes - 1] = 'a';
	return object;
}

/* A mapping that has hardly any memory is handed out whole, and comes back whole. An object can grow into it. */
static void test_sparse(void)
{
	const size_t bytes = 20000000;
	char *object;
	uintptr_t start;

	want_mappings();
	object = barely_touched(bytes);
	start = (uintptr_t)object;
	free(object);
	for (unsigned round = 0; round < 3; round++) {
		object = malloc(5000000);
		CHECK_EQUAL((uintptr_t)object, start);
		CHECK(malloc_usable_size(object) >= 5000000 && malloc_usable_size(object) < 5200000);
		free(object);
		object = barely_touched(bytes);
		CHECK_EQUAL((uintptr_t)object, start);
		free(object);
	}
	object = malloc(5000000);
	fill(object, 5000000, 1);
	object = realloc(object, 16000000);
	CHECK_EQUAL((uintptr_t)object, start);
	CHECK(malloc_usable_size(object) >= 16000000 && malloc_usable_size(object) < 18500000);
	CHECK(is_filled(object, 5000000, 1));
	want_mappings();
	free(object);
	CHECK_EQUAL(malloc_trim(0), 1);
}

/* A mapping that has hardly any memory is not joined to another, and is not given back in another's place. */
static void test_sparse_grows(void)
{
	char *objects[2], *grown, *other;

	want_mappings();
	for (unsigned i = 0; i < 2; i++)
		objects[i] = barely_touched(5000000 + i * 1000000);
	for (unsigned i = 0; i < 2; i++)
		free(objects[i]);
	grown = malloc(9000000);
	CHECK(grown && grown[50000] == 'a');
	other = malloc(5000000);
	CHECK(other == objects[0] && other[4999999] == 'a');
	fill(grown, 9000000, 1);
	fill(other, 5000000, 2);
	CHECK(is_filled(grown, 9000000, 1));
	free(grown);
	free(other);
	malloc_trim(0);
}

/* The program protects or unmaps pages, and then frees them. Two objects come after them, as an aligned object may leave
 * another mapping. */
static void test_protected(void)
{
	const size_t bytes = 8000000, page = (size_t)sysconf(_SC_PAGESIZE);
	char *object, *next[2];

	for (unsigned round = 0; round < 3; round++) {
		malloc_trim(0);
		object = memset(aligned_alloc(page, bytes), 'a', bytes);
		if (round < 2)
			CHECK(!mprotect(object + 16 * page, 64 * page, round ? PROT_NONE : PROT_READ));
		else
			CHECK(!munmap(object + 16 * page, 64 * page));
		free(object);
		for (unsigned i = 0; i < 2; i++) {
			next[i] = malloc(bytes);
			fill(next[i], bytes, i);
		}
		for (unsigned i = 0; i < 2; i++) {
			CHECK(is_filled(next[i], bytes, i));
			free(next[i]);
		}
	}
	malloc_trim(0);
}

/* A mapping of its own that grows gets an eighth more, and grows into that without a move. One that shrinks keeps at most a
 * quarter too much. */
static void test_room_of_mappings(void)
{
	const size_t mib = (size_t)1 << 20;
	char *object = malloc(16 * mib), *same;

	malloc_trim(0);
	same = realloc(object, 13 * mib);
	CHECK(same == object && malloc_usable_size(same) >= 16 * mib);
	same = realloc(same, 10 * mib);
	CHECK(same && malloc_usable_size(same) >= 10 * mib && malloc_usable_size(same) < 12 * mib);
	object = realloc(same, 24 * mib);
	CHECK(object && malloc_usable_size(object) >= 27 * mib);
	same = realloc(object, 27 * mib);
	CHECK(same == object);
	free(same);
}

/* A resize to 0 bytes frees the object. */
static void test_realloc_to_nothing(void)
{
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;

	for (size_t bytes = 8; bytes < (size_t)32 << 20; bytes *= 4)
		for (unsigned i = 0; i < 10; i++)
			CHECK(realloc(malloc(bytes), no_size) == NULL);
	CHECK(mallinfo2().uordblks + mallinfo2().hblkhd < before + ((size_t)1 << 20));
}

/* The addresses in front of an aligned mapping are all given back. */
static void test_before_aligned(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *object = aligned_alloc((size_t)64 << 20, 1 << 20);
	unsigned char there;

	CHECK(object != NULL);
	CHECK(mincore(object - 2 * page, page, &there) != 0);
	free(object);
}

int main(void)
{
	test_sizes();
	test_large_sizes();
	test_impossible_sizes();
	test_zero();
	test_calloc();
	test_growth_and_shrinking();
	test_steps();
	test_refused_growth();
	test_alignments();
	test_wrong_alignments();
	test_pages();
	test_random();
	test_free_keeps_errno();
	test_sized_frees();
	test_internal_names();
	test_figures();
	test_trim();
	test_kept();
	test_joined();
	test_built_again();
	test_calloc_of_kept();
	test_aligned_beside_kept();
	test_sparse();
	test_sparse_grows();
	test_protected();
	test_room_of_mappings();
	test_before_aligned();
	test_realloc_to_nothing();
	return check_result();
}
