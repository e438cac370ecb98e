/*
 * The map of free pages (core/backend/free_page_map.c). A search from any start finds the same extents as a look at each page.
 * The map follows whatever a heap does. The check of the page allocator notices where it does not.
 */
#include "runs_support.h"

#include "../../core/backend/free_page_map.h"

#define OBJECTS 400u

static uint64_t random_state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % below;
}

static bool is_free(const struct sy__zone *zone, uint64_t number)
{
	return zone->pages->page_bits[number / 64] >> number % 64 & 1;
}

/* The free pages from there on, counted one by one. */
static uint64_t run_at(const struct sy__zone *zone, uint64_t number, uint64_t to)
{
	uint64_t count = 0;

	while (number + count < to && is_free(zone, number + count))
		count++;
	return count;
}

/* Each extent that is found is one, and no long one is left out. */
static void finds_all_extents(const struct sy__zone *zone, uint64_t from, uint64_t to)
{
	uint64_t start = 0, pages, found, expected = 0;

	for (uint64_t number = from; number < to; number += pages ? pages : 1) {
		pages = run_at(zone, number, to);
		expected += pages >= SY__FREE_PAGE_MAP_LEAST;
		found = sy__free_page_map_around(zone, from, to, number + draw(pages ? pages : 1), &start);
		CHECK(found == pages && (!pages || start == number));
	}
	for (uint64_t at = from; (found = sy__free_page_map_next(zone, from, to, at, &start)); at = start + found) {
		CHECK(start >= at && found == run_at(zone, start, to) && (start == from || !is_free(zone, start - 1)));
		expected -= found >= SY__FREE_PAGE_MAP_LEAST;
	}
	CHECK(expected == 0);
}

/* Objects of up to a page, and runs of up to 3 MiB; each round replaces some of them. */
static void follows_a_heap(size_t limit, uint64_t most_pages, unsigned rounds)
{
	struct sy_heap *heap = open_exact(limit);
	const struct sy__zone *zone = heap->pages->zones;
	void *objects[OBJECTS] = { NULL };

	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < 100; i++) {
			unsigned at = (unsigned)draw(OBJECTS);

			sy_mfree(heap, objects[at]);
			objects[at] = sy_malloc(heap, (size_t)(at % 3 ? 16 + draw(2 * PAGE) : PAGE * (1 + draw(most_pages))), 0);
		}
		if (round % 8 == 5)
			sy_heap_trim(heap);
		if (round % 8 == 7)
			sy_heap_shrink(heap);
		CHECK(is_sound(heap));
		if (zone->told) {
			uint64_t end = zone->next_ungrown > zone->start ? zone->next_ungrown : zone->start + zone->present;

			finds_all_extents(zone, zone->start, end);
			finds_all_extents(zone, zone->start, end - draw(end - zone->start));
		}
	}
	CHECK(zone->told);
	for (unsigned i = 0; i < OBJECTS; i++)
		sy_mfree(heap, objects[i]);
	sy_heap_trim(heap);
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

/* A large heap has its map before the first search, as making it then would take long. */
static void begins_before_a_heap_is_large(void)
{
	enum { COUNT = 10000 };
	static void *small[COUNT];
	struct sy_heap *heap = open_exact(0);
	const struct sy__zone *zone = heap->pages->zones;

	for (unsigned i = 0; i < COUNT; i++)
		small[i] = sy_malloc(heap, 8000, 0);
	CHECK(zone->told && zone->next_ungrown > 16 * 1024);
	CHECK(is_sound(heap));
	for (unsigned i = 0; i < COUNT; i += 2)
		sy_mfree(heap, small[i]);
	CHECK(is_sound(heap));
	finds_all_extents(zone, zone->start, zone->next_ungrown);
	sy_heap_close(heap);
}

/* A small heap without a large run has no map, so that it costs nothing. */
static void begins_with_a_search(void)
{
	struct sy_heap *heap = open_exact(0);
	void *small = sy_malloc(heap, 100, 0), *large;

	CHECK(small && !heap->pages->zones->told);
	large = sy_malloc(heap, 50 * PAGE, 0);
	CHECK(large && heap->pages->zones->told);
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

static void wrong_bits_are_noticed(void)
{
	struct sy_heap *heap = open_exact(0);
	char *run = sy_malloc(heap, 50 * PAGE, 0);
	uint64_t number = (uint64_t)(run - heap->pages->base.memory) >> SY_PAGE_SHIFT, last = heap->pages->zones->next_ungrown - 1;

	CHECK(is_sound(heap) && is_free(heap->pages->zones, last));
	heap->pages->page_bits[number / 64] ^= (uint64_t)1 << number % 64;
	CHECK_TEXT(sy_pages_check(heap->pages), "the map of free pages disagrees with a block");
	heap->pages->page_bits[number / 64] ^= (uint64_t)1 << number % 64;
	heap->pages->page_bits[last / 64] ^= (uint64_t)1 << last % 64;
	CHECK_TEXT(sy_pages_check(heap->pages), "the map of free pages disagrees with a block");
	heap->pages->page_bits[last / 64] ^= (uint64_t)1 << last % 64;
	CHECK(is_sound(heap));
	sy_heap_close(heap);
}

int main(void)
{
	begins_with_a_search();
	begins_before_a_heap_is_large();
	wrong_bits_are_noticed();
	follows_a_heap(0, 800, 60);
	follows_a_heap((size_t)48 << 20, 800, 40);
	follows_a_heap((size_t)3 << 20, 90, 40);
	return check_result();
}
