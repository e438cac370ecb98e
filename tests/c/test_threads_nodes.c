/*
 * Empty slabs that a node keeps because one thread fills them again and again and another one empties them
 * (core/policies/yard/nodes.c): they serve without a request of pages; and go when a thread needs memory for something else,
 * when the heap shrinks, and after a while.
 */
#include "core/policies/yard/yard.h"
#include "threads_heap.h"

#define SIZE 1024
#define OTHER 2048
#define SLABS 8u
#define OBJECTS (SLABS * SY_PAGE_SIZE / SIZE)
#define ROUNDS 12
#define USUAL 4u /* slabs that the two threads may have: what the first allocates from, what they own besides, the other one's row */

static struct sy_heap *heap;
static void *objects[OBJECTS];
static atomic_uint turn; /* odd: the other thread's */
static void (*others_work)(void);

static uint64_t requests(void)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return counts.requests;
}

static bool count_slab(void *context, const struct sy_slab *slab)
{
	*(unsigned *)context += slab->cache && slab->cache->object_size == SIZE;
	return true;
}

static bool pass(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	return context && slab && part;
}

static unsigned slabs(void)
{
	unsigned count = 0;
	const struct sy_visitor visitor = { count_slab, pass, &count, NULL };

	CHECK_TEXT(sy_heap_check(heap), NULL);
	CHECK(sy_heap_walk(heap, &visitor));
	return count;
}

/* ---- Two threads ------------------------------------------------------------------------------------------------------ */

static void *other_thread(void *nothing)
{
	sy_mfree(heap, sy_malloc(heap, 8, 0)); /* a thread's first call is slow */
	for (;;) {
		while (turn % 2 == 0)
			sched_yield();
		if (!others_work)
			return nothing;
		others_work();
		turn++;
	}
}

static void have(void (*work)(void))
{
	unsigned begun;

	others_work = work;
	begun = turn++;
	while (turn == begun + 1)
		sched_yield();
}

static void give(void)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		sy_mfree(heap, objects[i]);
}

static void need_another_size(void)
{
	void *others[3 * SLABS];

	for (unsigned i = 0; i < 3 * SLABS; i++)
		others[i] = sy_malloc(heap, OTHER, 0);
	CHECK(slabs() <= USUAL);
	for (unsigned i = 0; i < 3 * SLABS; i++)
		sy_mfree(heap, others[i]);
}

static void take(void)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		objects[i] = sy_malloc(heap, SIZE, 0);
}

static void rounds(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		take();
		have(give);
	}
	CHECK(slabs() > SLABS - 2);
}

/* ---- What becomes of the slabs ------------------------------------------------------------------------------------------ */

static void they_serve(void)
{
	uint64_t before;

	rounds();
	before = requests();
	take();
	CHECK_EQUAL(requests(), before);
	have(give);
	CHECK_EQUAL(requests(), before);
}

static void they_go_for_others(void)
{
	rounds();
	need_another_size();
}

static void they_go_for_others_of_another_thread(void)
{
	rounds();
	have(need_another_size);
}

static void they_go_for_large_ones(void)
{
	void *large;

	rounds();
	large = sy_malloc(heap, (size_t)3 << 20, 0);
	CHECK(slabs() <= USUAL);
	sy_mfree(heap, large);
}

static void they_go_after_a_while(void)
{
	uint64_t before;

	rounds();
	sy__settle_soon(heap);
	sy__heap_tick(heap);
	CHECK(slabs() <= USUAL);
	take();
	have(give);
	CHECK(slabs() <= USUAL);
	before = requests();
	take();
	CHECK(requests() > before);
	have(give);
}

static void they_go_with_shrinks(void)
{
	rounds();
	sy_heap_shrink(heap);
	CHECK_EQUAL(slabs(), 0);
}

/* ---- How many nodes keep some ------------------------------------------------------------------------------------------- */

static struct sy_cache *cache;

static size_t sparing(void)
{
	return __atomic_load_n(&sy__yard_heap(heap)->sparing, __ATOMIC_RELAXED);
}

static void give_to_cache(void)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		sy_free(cache, objects[i]);
}

/* Whoever needs pages asks no node while none keeps any: of a size, of a cache beside it, and again without these. */
static void they_are_counted(void)
{
	const struct sy_cache_config config = { .name = "apart", .size = SIZE, .flags = SY_CACHE_NO_MERGE };

	CHECK_EQUAL(sparing(), 0);
	rounds();
	CHECK_EQUAL(sparing(), 1);
	cache = sy_cache_create(heap, &config);
	for (unsigned i = 0; i < ROUNDS; i++) {
		for (unsigned j = 0; j < OBJECTS; j++)
			objects[j] = sy_alloc(cache, 0);
		have(give_to_cache);
	}
	CHECK_EQUAL(sparing(), 2);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(sparing(), 1);
	sy__settle_soon(heap);
	sy__heap_tick(heap);
	CHECK_EQUAL(sparing(), 0);
}

static void run(void (*work)(void))
{
	pthread_t thread;

	heap = open_unsettled("yard:max_order=0");
	turn = 0;
	CHECK_EQUAL(pthread_create(&thread, NULL, other_thread, NULL), 0);
	work();
	others_work = NULL;
	turn++;
	pthread_join(thread, NULL);
	sy_heap_close(heap);
}

int main(void)
{
	run(they_serve);
	run(they_go_for_others);
	run(they_go_for_others_of_another_thread);
	run(they_go_for_large_ones);
	run(they_go_after_a_while);
	run(they_go_with_shrinks);
	run(they_are_counted);
	return check_result();
}
