/*
 * Large runs of heaps of threads (core/backend/best_fit.c): where they are placed, and that the page allocator stays sound
 * whatever comes and goes. The neighbours that leave a hole never join to a block, so a run in a hole can only have been found
 * as an extent.
 */
#include "runs_support.h"

#include "../../core/backend/best_fit.h"

#include <string.h>

#define BLOCK ((size_t)4 << 20)

static size_t committed(struct sy_heap *heap)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return (size_t)counts.committed_pages;
}

/* Objects that fill the heap from its start, each directly behind the last. */
static void fill(struct sy_heap *heap, char **objects, unsigned count, size_t pages)
{
	for (unsigned i = 0; i < count; i++) {
		objects[i] = sy_malloc(heap, pages * PAGE, 0);
		CHECK(objects[i] != NULL);
		if (objects[i])
			memset(objects[i], (int)i + 1, pages * PAGE);
	}
}

/* 48 pages and 48 more leave 96 in a row, which are blocks of 32, 16, 16 and 32 or the like: none of 128. */
static void neighbours_are_one_hole(void)
{
	struct sy_heap *heap = open_exact(0);
	char *objects[16], *run;
	size_t before;
	unsigned at = 0;

	fill(heap, objects, 16, 48);
	for (unsigned i = 1; i + 2 < 16 && !at; i++)
		if (objects[i + 1] == objects[i] + 48 * PAGE)
			at = i;
	CHECK(at != 0);
	sy_mfree(heap, objects[at]);
	sy_mfree(heap, objects[at + 1]);
	before = committed(heap);
	run = sy_malloc(heap, 90 * PAGE, 0);
	CHECK(run == objects[at]);
	CHECK(committed(heap) == before);
	memset(run, 77, 90 * PAGE);
	CHECK(is_sound(heap));
	CHECK(objects[at - 1][48 * PAGE - 1] == (char)at && objects[at + 2][0] == (char)(at + 3));
	CHECK(sy_usable_size(heap, run) == 90 * PAGE);
	sy_mfree(heap, run);
	run = sy_malloc(heap, 96 * PAGE - 5, SY_ZERO);
	CHECK(run == objects[at] && run[0] == 0 && run[96 * PAGE - 6] == 0);
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

/* The hole that fits best is taken, though another comes first. */
static void smallest_is_best(void)
{
	struct sy_heap *heap = open_exact(0);
	char *large[3], *small[3], *run;

	fill(heap, large, 3, 100);
	fill(heap, small, 3, 52);
	sy_mfree(heap, large[1]);
	sy_mfree(heap, small[1]);
	run = sy_malloc(heap, 50 * PAGE, 0);
	CHECK(run == small[1]);
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

/* The run that was freed last is taken instead, if all of its memory is there and it is not much too large. Each shrink
 * empties the slot's cache of runs. */
static void freed_last_is_better(void)
{
	struct sy_heap *heap = open_exact(0);
	char *large[3], *small[3], *huge[3];

	fill(heap, large, 3, 100);
	fill(heap, small, 3, 60);
	fill(heap, huge, 3, 130);
	sy_mfree(heap, small[1]);
	sy_heap_shrink(heap);
	sy_mfree(heap, large[1]);
	sy_heap_shrink(heap);
	CHECK(sy_malloc(heap, 50 * PAGE, 0) == large[1]);
	sy_mfree(heap, huge[1]);
	sy_heap_shrink(heap);
	CHECK(sy_malloc(heap, 51 * PAGE, 0) == small[1]);
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

/* The smallest hole that suffices is found among 200 of 40 to 119 pages, 80 MiB in all, wherever it is. */
static void best_of_many(void)
{
	enum { HOLES = 200 };
	struct sy_heap *heap = open_exact(0);
	char *holes[HOLES], *walls[HOLES];

	for (unsigned i = 0; i < HOLES; i++) {
		holes[i] = sy_malloc(heap, (40 + (i * 37) % 80) * PAGE, 0);
		walls[i] = sy_malloc(heap, (i ? 35 : 200) * PAGE, 0);
		CHECK(holes[i] && walls[i]);
		memset(holes[i], 1, (40 + (i * 37) % 80) * PAGE);
	}
	for (unsigned i = 0; i < HOLES; i++)
		sy_mfree(heap, holes[i]);
	sy_heap_shrink(heap);
	sy_mfree(heap, walls[0]); /* freed last, but too large to be taken first */
	sy_heap_shrink(heap);
	for (unsigned pages = 41; pages < 60; pages += 6) {
		char *run = sy_malloc(heap, pages * PAGE, 0);
		unsigned at = 0;

		while (at < HOLES && holes[at] != run)
			at++;
		CHECK(at < HOLES && 40 + (at * 37) % 80 == pages);
	}
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

/* A hole whose memory is there comes before a smaller one whose memory has gone. */
static void memory_comes_first(void)
{
	struct sy_heap *heap = open_exact(0);
	char *objects[4];

	fill(heap, objects, 2, 50);
	fill(heap, objects + 2, 1, 120);
	fill(heap, objects + 3, 1, 50);
	sy_mfree(heap, objects[0]);
	sy_heap_trim(heap);
	sy_mfree(heap, objects[2]);
	sy_heap_shrink(heap);
	CHECK(sy_malloc(heap, 45 * PAGE, 0) == objects[2]);
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

/* A hole that begins with pages of another kind serves with its rest. */
static void another_kind_is_passed_over(void)
{
	struct sy_heap *heap = open_exact(0);
	char *objects[3];
	struct sy_page *head;

	fill(heap, objects, 1, 50);
	fill(heap, objects + 1, 1, 200);
	fill(heap, objects + 2, 1, 50);
	sy_mfree(heap, objects[1]);
	sy_heap_shrink(heap);
	head = sy__page(heap->pages, (uint64_t)(objects[1] - heap->pages->base.memory) >> SY_PAGE_SHIFT);
	sy__zone_move_last(heap->pages->zones, head, SY_RECLAIMABLE_TYPE);
	CHECK(sy_malloc(heap, 60 * PAGE, 0) == objects[1] + (PAGE << head->order));
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

/* The run that was freed last may lie in memory that the heap has since given up. */
static void the_end_comes_nearer(void)
{
	struct sy_heap *heap = open_exact(0);
	struct sy__zone *zone = heap->pages->zones;
	char *runs[20];
	uint64_t grown;

	fill(heap, runs, 20, 700);
	grown = zone->next_ungrown;
	for (unsigned i = 0; i < 20; i++)
		sy_mfree(heap, runs[i]);
	sy_heap_shrink(heap);
	sy_heap_trim(heap);
	CHECK(sy__reservation_withdraw(heap) && zone->next_ungrown < grown);
	sy__best_fit_freed(zone, grown - 1);
	CHECK(sy_malloc(heap, 300 * PAGE, 0) && sy_malloc(heap, 800 * PAGE, 0));
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

/* A power of two of pages stays aligned to its size: aligned allocation counts on that. */
static void powers_stay_aligned(void)
{
	struct sy_heap *heap = open_exact(0);
	char *objects[12], *run;

	fill(heap, objects, 12, 48);
	sy_mfree(heap, objects[4]);
	sy_mfree(heap, objects[5]);
	run = sy_malloc(heap, 64 * PAGE, 0);
	CHECK(((uintptr_t)run & (64 * PAGE - 1)) == 0);
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

/* Runs of any size in a heap of a few maximal blocks, over their ends too. */
static void random_runs(void)
{
	struct sy_heap *heap = open_exact(12 * BLOCK);
	uint64_t random = 88172645463325252u;
	char *objects[24] = { NULL };
	size_t sizes[24] = { 0 };
	unsigned across = 0;

	for (unsigned round = 0; round < 4000; round++) {
		unsigned at = (unsigned)(random >> 33) % 24;

		random = random * 6364136223846793005u + 1442695040888963407u;
		if (objects[at]) {
			CHECK(objects[at][0] == (char)at && objects[at][sizes[at] - 1] == (char)(at + 1));
			sy_mfree(heap, objects[at]);
		}
		sizes[at] = PAGE * (size_t)(9 + (random >> 40) % 600) - (size_t)((random >> 20) % 4000);
		objects[at] = sy_malloc(heap, sizes[at], round % 3 ? 0 : SY_ZERO);
		if (!objects[at])
			continue;
		CHECK(round % 3 || (objects[at][0] == 0 && objects[at][sizes[at] / 2] == 0));
		across += ((uintptr_t)objects[at] ^ (uintptr_t)(objects[at] + sizes[at] - 1)) / BLOCK != 0;
		objects[at][sizes[at] / 2] = 1;
		objects[at][0] = (char)at;
		objects[at][sizes[at] - 1] = (char)(at + 1);
		if (round % 64 == 0)
			CHECK(is_sound(heap));
	}
	CHECK(across != 0);
	for (unsigned at = 0; at < 24; at++)
		sy_mfree(heap, objects[at]);
	CHECK(is_sound(heap));
	sy_heap_trim(heap);
	CHECK(committed(heap) < 64);
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

int main(void)
{
	neighbours_are_one_hole();
	smallest_is_best();
	freed_last_is_better();
	best_of_many();
	memory_comes_first();
	another_kind_is_passed_over();
	the_end_comes_nearer();
	powers_stay_aligned();
	random_runs();
	return check_result();
}
