/*
 * Slabs whose objects threads exchange (core/policies/yard/strays.c): by one in some of those that a thread gives back of
 * another's the slab's pages are marked, and from then on whoever frees its objects keeps them, the slab's owner too, without a
 * look at the slab. The owner takes the mark away when it has no room for them, and by one in some of those that it keeps; a new
 * slab bears none. And rows: what a thread that allocates none gives back of one slab goes home together.
 */
#include "core/policies/yard/fast.h"
#include "threads_heap.h"

#define SIZE 64
#define SLAB ((size_t)16 << 10) /* bytes: a class's first one */
#define TAKEN (SLAB / SIZE)
#define LIMIT 8u /* strays at most */
#define SPEC "yard:strays=8"
#define MARKS SY__YARD_STRAYS_TO_ONE

static struct sy_heap *heap;
static void *objects[TAKEN];

/* Where there is room for marks of pages. */
static bool marks(void)
{
	return SY__PAGE_MAP_MOST_MARK > 0;
}

/* Whether the slab that the objects are of is marked, as all its pages say. */
static bool is_marked(void)
{
	const struct sy__page_map *heads = &sy__yard_heap(heap)->heads;
	size_t marked = 0;

	for (const char *page = objects[0]; page < (const char *)objects[0] + SLAB; page += SY_PAGE_SIZE)
		marked += sy__page_map_is_marked(sy__page_map_word(heads, sy__page_map_index(heads, page)));
	CHECK(!marked || marked == SLAB / SY_PAGE_SIZE);
	return marked;
}

/* The caller's. */
static struct sy__yard_slot *slot(void)
{
	struct sy_page *page = sy__page_map_of(&sy__yard_heap(heap)->heads, objects[0]);

	return sy__yard_slot_here(sy__yard_slab(page)->cache->slots, sy__call_here());
}

static size_t strays(void)
{
	return slot()->stray_count;
}

static void take(void)
{
	for (unsigned i = 0; i < TAKEN; i++)
		objects[i] = sy_malloc(heap, SIZE, 0);
	CHECK_EQUAL((uintptr_t)objects[0] % SLAB, 0);
	CHECK((char *)objects[TAKEN - 1] == (char *)objects[0] + (TAKEN - 1) * SIZE);
}

static void give(unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		sy_mfree(heap, objects[i]);
	CHECK_FINE(sy_heap_check(heap));
}

static void open_slab(void)
{
	heap = open_unsettled(SPEC);
	take();
}

static void close_slab(unsigned left)
{
	give(left, TAKEN);
	sy_heap_close(heap);
}

static void run(void *(*work)(void *), unsigned count)
{
	pthread_t thread;

	CHECK_EQUAL(pthread_create(&thread, NULL, work, &count), 0);
	pthread_join(thread, NULL);
	CHECK_FINE(sy_heap_check(heap));
}

/* ---- Exchanged slabs --------------------------------------------------------------------------------------------------- */

/* A thread that has objects of the class. */
static void *exchanges(void *count)
{
	void *own = sy_malloc(heap, SIZE, 0);

	give(0, *(unsigned *)count);
	sy_mfree(heap, own);
	return NULL;
}

static void one_in_some_marks(void)
{
	open_slab();
	run(exchanges, MARKS - 1);
	CHECK(!is_marked());
	close_slab(MARKS - 1);
	open_slab();
	run(exchanges, MARKS);
	CHECK(is_marked() == marks());
	close_slab(MARKS);
}

static void *exchanges_more(void *count)
{
	void *own = sy_malloc(heap, SIZE, 0);
	size_t before;

	give(0, MARKS);
	before = strays();
	give(MARKS, *(unsigned *)count);
	CHECK_EQUAL(strays(), before + *(unsigned *)count - MARKS);
	sy_mfree(heap, own);
	return NULL;
}

/* Of a marked slab they are kept one by one, none is looked at. */
static void others_keep(void)
{
	open_slab();
	run(exchanges_more, MARKS + 3);
	CHECK(is_marked() == marks());
	close_slab(MARKS + 3);
}

/* And what its owner keeps it gets again. */
static void owner_keeps(void)
{
	unsigned end = MARKS + LIMIT;
	void *again;

	open_slab();
	run(exchanges, MARKS);
	give(MARKS, end);
	CHECK_EQUAL(strays(), marks() ? LIMIT : 0);
	again = sy_malloc(heap, SIZE, 0);
	CHECK(!marks() || again == objects[end - 1]);
	sy_mfree(heap, again);
	CHECK_EQUAL(strays(), marks() ? LIMIT : 0);
	close_slab(end);
}

/* By the first that it has no room for. */
static void owner_ends_it(void)
{
	unsigned end = MARKS + LIMIT + 1;

	open_slab();
	run(exchanges, MARKS);
	give(MARKS, end - 1);
	CHECK(is_marked() == marks());
	give(end - 1, end);
	CHECK(!is_marked());
	CHECK_EQUAL(strays(), marks() ? LIMIT : 0);
	close_slab(end);
}

/* By one in some that it keeps, seldom if it has kept many. */
static void owner_looks(uint16_t came, unsigned one)
{
	unsigned at = MARKS + LIMIT - 1;

	open_slab();
	run(exchanges, MARKS);
	slot()->came = came;
	give(MARKS, at);
	for (unsigned kept = LIMIT - 1; kept < one - 1; kept++) {
		give(at, at + 1);
		objects[at] = sy_malloc(heap, SIZE, 0);
	}
	CHECK(is_marked() == marks());
	give(at, at + 1);
	CHECK(!is_marked());
	close_slab(at + 1);
}

static void new_slab_is_unmarked(void)
{
	open_slab();
	run(exchanges, MARKS);
	give(MARKS, TAKEN);
	sy_heap_trim(heap);
	take();
	CHECK(!is_marked());
	close_slab(0);
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------------- */

static void *only_gives(void *count)
{
	sy_mfree(heap, sy_malloc(heap, 8, 0)); /* a thread's first call is slow */
	give(0, *(unsigned *)count);
	CHECK_EQUAL(strays(), (*(unsigned *)count - 1) % SY__YARD_ROW + 1);
	CHECK(!is_marked());
	return NULL;
}

static void rows_go_home(unsigned count)
{
	uint64_t word;

	open_slab();
	run(only_gives, count);
	word = sy__yard_look(sy__page_map_of(&sy__yard_heap(heap)->heads, objects[0]));
	CHECK_EQUAL(sy__yard_word_objects(word) - sy__yard_word_in_use(word), count);
	for (unsigned i = 0; i < count && sy__yard_is_enough(word, count); i++) { /* else the slab waits for more */
		void *again = sy_malloc(heap, SIZE, 0);

		CHECK((char *)again >= (char *)objects[0] && (char *)again < (char *)objects[count]);
	}
	close_slab(count);
}

int main(void)
{
	one_in_some_marks();
	others_keep();
	owner_keeps();
	owner_ends_it();
	owner_looks(0, SY__YARD_STRAYS_TO_ONE);
	owner_looks(SY__YARD_STRAYS_NEW, SY__YARD_STRAYS_TO_RARE);
	new_slab_is_unmarked();
	rows_go_home(1);
	rows_go_home(2);
	rows_go_home(SY__YARD_ROW);
	rows_go_home(3 * SY__YARD_ROW + 5);
	return check_result();
}
