/*
 * What a thread frees of another thread's slabs (core/policies/yard/strays.c): it keeps that for itself, in counts, checks and
 * walks it is free all the same, and goes home when it becomes too much, when somebody trims or shrinks, and when the thread
 * ends.
 */
#include "core/policies/yard/fast.h"
#include "threads_heap.h"

#define SIZE 256
#define LARGER 1024
#define TAKEN 128 /* objects of the main thread's: those freed here are of the slab that it allocates from */

static struct sy_heap *heap;
static struct sy_cache *cache;
static void *objects[TAKEN + 1]; /* and one of the other thread's */
static void *more[2];            /* of the main thread's, taken when the other one says so */
static atomic_uint turn;

enum { WORKS, TAKES_MORE, OVER };

static void open_with(const char *spec, size_t size)
{
	const struct sy_cache_config config = { .name = "crossing", .size = size, .flags = SY_CACHE_NO_MERGE };

	heap = open_small(spec);
	cache = sy_cache_create(heap, &config);
	CHECK(cache != NULL);
	for (unsigned i = 0; i < TAKEN; i++)
		objects[i] = sy_alloc(cache, 0);
}

/* ---- What is seen of strays ----------------------------------------------------------------------------------------- */

struct seen {
	size_t in_use, strays, twice, empty_slabs;
};

static bool see_slab(void *context, const struct sy_slab *slab)
{
	struct seen *seen = context;

	seen->empty_slabs += slab->cache == cache && !strcmp(slab->list, "empty");
	return true;
}

static bool see(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct seen *seen = context;

	if (slab->cache != cache || !part->is_object)
		return true;
	seen->in_use += part->state == SY_PART_USED;
	seen->strays += part->list && !strcmp(part->list, "strays");
	seen->twice += part->lists > 1;
	return true;
}

static struct seen look(void)
{
	struct seen seen = { 0, 0, 0, 0 };
	const struct sy_visitor visitor = { see_slab, see, &seen, NULL };

	CHECK(sy_heap_walk(heap, &visitor));
	return seen;
}

/* With so many objects in use, of which the walk knows as well as the counts. */
static size_t strays_with(size_t in_use)
{
	struct sy_cache_counts counts;
	struct seen seen;

	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_cache_count(cache, &counts);
	CHECK_EQUAL(counts.objects_in_use, in_use);
	seen = look();
	CHECK_EQUAL(seen.in_use, in_use);
	CHECK_EQUAL(seen.twice, 0);
	return seen.strays;
}

/* ---- Another thread --------------------------------------------------------------------------------------------------- */

/* A thread that allocates too. */
static void *begin(void *work)
{
	objects[TAKEN] = sy_alloc(cache, 0);
	(*(void (**)(void))work)();
	turn = OVER;
	return NULL;
}

static void run(void (*work)(void))
{
	pthread_t thread;

	turn = WORKS;
	CHECK_EQUAL(pthread_create(&thread, NULL, begin, &work), 0);
	while (turn != OVER) {
		if (turn == TAKES_MORE) {
			more[0] = sy_alloc(cache, 0);
			more[1] = sy_alloc(cache, 0);
			turn = WORKS;
		}
		sched_yield();
	}
	pthread_join(thread, NULL);
}

static void main_takes_more(void)
{
	turn = TAKES_MORE;
	while (turn == TAKES_MORE)
		sched_yield();
}

static void free_last(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sy_free(cache, objects[TAKEN - 1 - i]);
}

static bool was_freed(const void *object, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (objects[TAKEN - 1 - i] == object)
			return true;
	return false;
}

/* What it keeps is what it gets next, though it has a slab of its own. */
static void keeps(void)
{
	void *again[13]; /* of fewer than eight nobody makes use before all else is used up */

	free_last(20);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20), 20);
	while (!was_freed(again[0] = sy_alloc(cache, 0), 20))
		; /* what is left of the page that its slab has begun */
	for (unsigned i = 1; i < sizeof(again) / sizeof(again[0]); i++) {
		again[i] = sy_alloc(cache, 0);
		CHECK(was_freed(again[i], 20));
		CHECK_TEXT(sy_heap_check(heap), NULL);
	}
}

static void keeps_few(void)
{
	free_last(4);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 4), 4);
	sy_free(cache, objects[TAKEN - 5]);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 5), 0);
}

static void keeps_none(void)
{
	free_last(20);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20), 0);
}

static void trims(void)
{
	free_last(20);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20), 20);
	sy_heap_trim(heap);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20), 0);
}

/* With some of its strays handed out again. */
static void shrinks(void)
{
	unsigned taken = 1;

	free_last(20);
	while (!was_freed(sy_alloc(cache, 0), 20))
		taken++;
	sy_free(cache, objects[0]);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20 + taken - 1), 20);
	sy_cache_shrink(cache);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20 + taken - 1), 0);
}

static void ends(void)
{
	free_last(20);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20), 20);
}

/* What stays for the slot's next owner is a slab, no strays. */
static void ends_with_a_slab_unused(void)
{
	free_last(20);
	sy_free(cache, objects[TAKEN]);
	CHECK_EQUAL(strays_with(TAKEN - 20), 20);
}

/* A slab all of whose objects go home at once is no longer needed. */
static void frees_all(void)
{
	struct sy_cache_counts counts;

	free_last(TAKEN);
	sy_free(cache, objects[TAKEN]);
	sy_heap_trim(heap);
	sy_cache_count(cache, &counts);
	CHECK_EQUAL(counts.objects_in_use, 0);
	CHECK_EQUAL(counts.slabs, 0);
}

/* What a shrink tells are the pages that were there before, those of slabs too of which the last objects were strays. */
static void counts_pages(void)
{
	struct sy_cache_counts before, after;
	uint64_t pages;

	free_last(TAKEN);
	sy_cache_count(cache, &before);
	CHECK_EQUAL(before.objects_in_use, 1);
	pages = sy_cache_shrink(cache);
	sy_cache_count(cache, &after);
	CHECK(after.pages < before.pages);
	CHECK_EQUAL(pages, before.pages - after.pages);
}

/* A slab whose objects were strays is the thread's own by the time that they go home, and has no other object in use. Slabs are
 * pages here: of the main thread's last one all objects are taken, and it goes on to another when it takes more. */
static void become_its_own(void)
{
	const unsigned of_a_slab = SY_PAGE_SIZE / SIZE;

	free_last(3);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 3), 3);
	main_takes_more();
	for (unsigned i = 3; i < of_a_slab; i++)
		sy_free(cache, objects[TAKEN - 1 - i]);
	CHECK_EQUAL(look().empty_slabs, 0);
	sy_free(cache, more[0]);
	sy_free(cache, more[1]);
	CHECK_EQUAL(strays_with(TAKEN + 1 - of_a_slab), 0);
	CHECK_EQUAL(look().empty_slabs, 1);
}

/* Full slabs of which all objects are strays become the thread's own when they go home; of empty ones it keeps two. Before, it
 * has as many slabs of others as it may, hence strays of those. */
static void empties_many(void)
{
	const unsigned of_a_slab = SY_PAGE_SIZE / LARGER;

	for (unsigned i = 0; i < 4; i++)
		sy_free(cache, objects[i * of_a_slab]);
	for (unsigned i = 4 * of_a_slab; i < 8 * of_a_slab; i++)
		sy_free(cache, objects[i]);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 4 - 4 * of_a_slab), 4 * of_a_slab);
	for (unsigned i = 0; i < 4 * of_a_slab; i++)
		if (i % of_a_slab)
			sy_free(cache, objects[i]);
	CHECK_EQUAL(look().empty_slabs, 0);
	sy_free(cache, objects[TAKEN - 1]);
	CHECK_EQUAL(strays_with(TAKEN - 8 * of_a_slab), 0);
	CHECK_EQUAL(look().empty_slabs, 2);
}

/* What programs may write over. */
struct link {
	void *next;
};

/* Strays that somebody has written to are noticed, and whoever counts or walks comes to an end. */
static void written_over(void)
{
	const struct sy_cache_config config = { .name = "other", .size = SIZE, .flags = SY_CACHE_NO_MERGE };
	struct sy_cache *other = sy_cache_create(heap, &config);
	struct sy_cache_counts counts;
	struct link *link, before, *others = sy_alloc(other, 0);

	free_last(3);
	link = objects[TAKEN - 2];
	before = *link;
	CHECK(before.next == objects[TAKEN - 1]);
	link->next = link;
	CHECK_TEXT(sy_heap_check(heap), "yard: strays of a slot are no objects in use of their cache, or too many");
	sy_cache_count(cache, &counts);
	look();
	link->next = NULL;
	CHECK_TEXT(sy_heap_check(heap), "yard: a slot's strays are not as many as it says");
	*others = before;
	((struct link *)objects[TAKEN - 3])->next = others;
	CHECK_TEXT(sy_heap_check(heap), "yard: strays of a slot are no objects in use of their cache, or too many");
	((struct link *)objects[TAKEN - 3])->next = link;
	*link = before;
	sy_free(other, others);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	CHECK(sy_cache_destroy(other, NULL));
}

/* Empty slabs that a thread has too many are its node's, where nodes keep some. */
static void leaves_empty_slabs(void)
{
	struct sy_cache_counts counts;
	void *own[6 * SY_PAGE_SIZE / LARGER];

	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		own[i] = sy_alloc(cache, 0);
	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sy_free(cache, own[i]);
	CHECK_EQUAL(strays_with(TAKEN + 1), 0);
	sy_cache_count(cache, &counts);
	CHECK(counts.empty_slabs >= 5);
	sy_cache_shrink(cache);
	CHECK_EQUAL(strays_with(TAKEN + 1), 0);
	sy_cache_count(cache, &counts);
	CHECK_EQUAL(counts.empty_slabs, 0);
}

static void *only_frees(void *nothing)
{
	sy_mfree(heap, sy_malloc(heap, 8, 0)); /* a thread's first call is slow, and keeps nothing either */
	free_last(20);
	CHECK_EQUAL(strays_with(TAKEN - 20), (20 - 1) % SY__YARD_ROW + 1);
	return nothing;
}

/* Objects of less than a cache line, whose neighbours are another thread's: it hands none of them out. */
static void *frees_small_and_takes(void *nothing)
{
	void *own[40];

	sy_mfree(heap, sy_malloc(heap, 8, 0));
	free_last(12);
	CHECK_EQUAL(strays_with(TAKEN - 12), 12);
	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		own[i] = sy_alloc(cache, 0);
		CHECK(own[i] && !was_freed(own[i], 12));
	}
	CHECK_TEXT(sy_heap_check(heap), NULL);
	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sy_free(cache, own[i]);
	sy_heap_trim(heap);
	CHECK_EQUAL(strays_with(TAKEN - 12), 0);
	return nothing;
}

/* What it has freed of another's does not keep it from a slab of its own. */
static void *frees_one_and_takes(void *nothing)
{
	sy_mfree(heap, sy_malloc(heap, 8, 0));
	free_last(1);
	for (unsigned i = 0; i < SY__YARD_STRAYS_TO_SLAB; i++)
		sy_free(cache, sy_alloc(cache, 0));
	CHECK(sy__yard_slot_here(sy__yard_cache(cache)->slots, sy__call_here())->slab != NULL);
	sy_heap_trim(heap);
	CHECK_EQUAL(strays_with(TAKEN - 1), 0);
	return nothing;
}

static void run_without_a_slab(void *(*work)(void *), size_t size)
{
	pthread_t thread;

	open_with("yard", size);
	CHECK_EQUAL(pthread_create(&thread, NULL, work, NULL), 0);
	pthread_join(thread, NULL);
	sy_heap_close(heap);
}

static void frees_many(void)
{
	free_last(SY__YARD_STRAYS_TO_ONE - 1);
	CHECK_EQUAL(look().strays, SY__YARD_STRAYS_TO_ONE - 1);
}

static void frees_one_more(void)
{
	sy_free(cache, objects[TAKEN - SY__YARD_STRAYS_TO_ONE]);
	CHECK_EQUAL(look().strays, 1);
}

/* The slot's next owner begins to count anew which of them is looked at. */
static void run_two(void)
{
	open_with("yard", SIZE);
	run(frees_many);
	run(frees_one_more);
	sy_heap_close(heap);
}

static void try(const char *spec, size_t size, void (*work)(void))
{
	open_with(spec, size);
	run(work);
	CHECK_EQUAL(look().strays, 0);
	sy_heap_close(heap);
}

int main(void)
{
	try("yard", SIZE, keeps);
	try("yard:strays=4", SIZE, keeps_few);
	try("yard:strays=0", SIZE, keeps_none);
	try("yard", 48, keeps_none); /* less than a cache line */
	try("yard", SIZE, trims);
	try("yard", SIZE, shrinks);
	try("yard", SIZE, ends);
	try("yard", SIZE, ends_with_a_slab_unused);
	try("yard", SIZE, frees_all);
	try("yard", SIZE, counts_pages);
	try("yard:cpu_partial=0", SIZE, counts_pages); /* nobody adopts full slabs */
	try("yard", SIZE, written_over);
	try("yard:max_order=0,min_partial=3", LARGER, leaves_empty_slabs);
	try("yard:max_order=0,strays=4,cpu_partial=1", SIZE, become_its_own);
	try("yard:max_order=0,strays=16,cpu_partial=8", LARGER, empties_many);
	run_without_a_slab(only_frees, SIZE);
	run_without_a_slab(frees_small_and_takes, 48);
	run_without_a_slab(frees_one_and_takes, SIZE);
	run_two();
	return check_result();
}
