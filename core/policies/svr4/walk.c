/*
 * svr4: what is in a pool, for walks (core/walk.h).
 *
 * A pool's maps tell its blocks, and which of them are globally free. The others are in use or locally free; to the pool both look
 * alike, as the algorithm is lazy, and only a list knows a free block's place. Searching the class's list for each block would
 * take quadratic time.
 *
 * So while a walk lasts, all free blocks are numbered. Each block on a list is marked in the map as if it were globally free, and
 * its link to the previous block is replaced by a number: its place, and which list it is on. The end of the walk restores links
 * and marks. The number is odd, which no address of a block is; a marked block without a number is on no list. Pools are on no list
 * and belong to no cache.
 *
 * A list that a program has overwritten is numbered as far as its links match both ways and lead to blocks of its class. The blocks
 * behind are shown as in use, and left alone.
 */
#include "../../walk.h"
#include "svr4.h"

#define NUMBERED 1u /* bits of a number, below the place */
#define LOCALLY 2u
#define PLACE_SHIFT 2

/* A pool's maps, and its units. */
struct pool {
	uint32_t *starts, *global;
	uint32_t units;
};

static struct pool pool_of(struct sy_page *page)
{
	uint32_t *starts = SY_SLAB_STATE(struct sy__general_page, page)->map;

	return (struct pool){ starts, starts + ((size_t)SY__STARTS_WORDS << sy__page_order(page)), SY__PAGE_UNITS << sy__page_order(page) };
}

/* The pool in which a block of `units` starts at that address; NULL: none does. */
static struct sy_page *find_block(const struct sy_heap *heap, const void *block, uint32_t units, uint32_t *unit)
{
	struct sy_page *page = sy__pages_find(heap, block);
	struct pool pool;

	if (!page || !sy__page_is_slab(page) || (uintptr_t)block % SY__UNIT)
		return NULL;
	pool = pool_of(page);
	*unit = (uint32_t)((size_t)((const char *)block - (char *)sy__page_address(heap, page)) >> SY__UNIT_SHIFT);
	return sy__starts_at(pool.starts, *unit) && sy__starts_end(pool.starts, *unit, pool.units) == *unit + units ? page : NULL;
}

/* ---- Numbers ------------------------------------------------------------------------------------------------------ */

static struct sy_list *number_of(uint64_t place, unsigned bits)
{
	return (struct sy_list *)((uintptr_t)place << PLACE_SHIFT | bits);
}

/* Numbers the blocks of a list; returns how many. */
static uint64_t number(const struct sy_heap *heap, const struct sy_list *list, uint32_t units, unsigned bits)
{
	const struct sy_list *before = list;
	uint64_t count = 0;
	uint32_t unit;

	for (struct sy_list *at = list->next; at != list; at = at->next) {
		struct sy_page *page = find_block(heap, at, units, &unit);

		if (!page || at->prev != before)
			break;
		sy__starts_set(pool_of(page).global, unit);
		at->prev = number_of(count++, bits);
		before = at;
	}
	return count;
}

static void link_again(const struct sy_heap *heap, struct sy_list *list, uint32_t units, uint64_t count, bool locally)
{
	struct sy_list *before = list, *at = list->next;
	uint32_t unit;

	while (count--) {
		struct sy_page *page = find_block(heap, at, units, &unit);

		if (locally)
			sy__starts_clear(pool_of(page).global, unit);
		at->prev = before;
		before = at;
		at = at->next;
	}
}

void sy__svr4_walk_begin(struct sy_heap *heap)
{
	struct sy__svr4_heap *svr4 = (struct sy__svr4_heap *)(void *)heap;

	for (unsigned node = 0; node < heap->nodes; node++)
		for (unsigned at = 0; at < SY__SVR4_CLASSES; at++) {
			struct sy__svr4_class *class = &svr4->classes[node][at];

			class->seen_globally = number(heap, &class->global, 1u << at, NUMBERED);
			class->seen_blocks = number(heap, &class->local, 1u << at, NUMBERED | LOCALLY);
		}
}

void sy__svr4_walk_end(struct sy_heap *heap)
{
	struct sy__svr4_heap *svr4 = (struct sy__svr4_heap *)(void *)heap;

	for (unsigned node = 0; node < heap->nodes; node++)
		for (unsigned at = 0; at < SY__SVR4_CLASSES; at++) {
			struct sy__svr4_class *class = &svr4->classes[node][at];

			link_again(heap, &class->global, 1u << at, class->seen_globally, false);
			link_again(heap, &class->local, 1u << at, class->seen_blocks, true);
		}
}

/* ---- Walks -------------------------------------------------------------------------------------------------------- */

static void walk_free(struct sy__walk *walk, size_t start, size_t end)
{
	uintptr_t number = (uintptr_t)((const struct sy_list *)(const void *)(walk->slab.address + start))->prev;
	struct sy__mark mark = { .list = number & LOCALLY ? "locally free" : "globally free", .lists = 1, .state = SY_PART_FREE,
		                 .place = number >> PLACE_SHIFT };

	sy__walk_block(walk, end, number & NUMBERED ? &mark : NULL);
}

void sy__svr4_walk(struct sy__walk *walk, struct sy_page *page)
{
	struct pool pool = pool_of(page);

	walk->slab.list = "pool";
	if (!sy__walk_slab(walk))
		return;
	for (uint32_t unit = 0, end; unit < pool.units; unit = end) {
		end = sy__starts_end(pool.starts, unit, pool.units);
		if (sy__starts_at(pool.global, unit))
			walk_free(walk, (size_t)unit << SY__UNIT_SHIFT, (size_t)end << SY__UNIT_SHIFT);
		else
			sy__walk_block(walk, (size_t)end << SY__UNIT_SHIFT, NULL);
	}
}
