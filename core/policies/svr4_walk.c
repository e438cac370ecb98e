/*
 * svr4: what is in a pool, for walks (core/walk.h).
 *
 * A pool's maps tell its blocks, and which of them are globally free. The others are in use or locally free: to the pool
 * the two look alike, which is what makes that lazy, so a block is looked for on its class's list. Hence a walk takes time by the
 * square of a class's free blocks: nothing but the list tells a free block's place on it. Pools are on no list and belong to no cache.
 */
#include "../walk.h"
#include "svr4.h"

/* Whether the block is on a list, and where. A list that was written over ends where its links don't lead both ways. */
static bool is_on(const struct sy_heap *heap, const struct sy_list *list, const void *block, struct sy__mark *mark)
{
	const struct sy_list *before = list;

	mark->place = 0;
	for (const struct sy_list *at = list->next; at != list && sy__pages_find(heap, at) && at->prev == before; at = at->next) {
		if (at == block)
			return true;
		before = at;
		mark->place++;
	}
	return false;
}

static void walk_block(struct sy__walk *walk, struct sy__svr4_heap *svr4, uint32_t unit, uint32_t end, bool global)
{
	size_t start = (size_t)unit << SY__UNIT_SHIFT, past = (size_t)end << SY__UNIT_SHIFT;
	struct sy__svr4_class *class = sy__svr4_class_of(svr4, walk->slab.node, (uint32_t)(past - start));
	struct sy__mark mark = { .list = global ? "globally free" : "locally free", .lists = 1, .state = SY_PART_FREE };
	bool is_free = is_on(walk->heap, global ? &class->global : &class->local, walk->slab.address + start, &mark);

	sy__walk_block(walk, past, is_free ? &mark : NULL);
}

void sy__svr4_walk(struct sy__walk *walk, struct sy_page *pool)
{
	struct sy__svr4_heap *svr4 = (struct sy__svr4_heap *)(void *)walk->heap;
	const uint32_t *starts = SY_SLAB_STATE(struct sy__general_page, pool)->map;
	const uint32_t *global = starts + ((size_t)SY__STARTS_WORDS << sy__page_order(pool));
	uint32_t units = SY__PAGE_UNITS << sy__page_order(pool);

	walk->slab.list = "pool";
	if (!sy__walk_slab(walk))
		return;
	for (uint32_t unit = 0, end; unit < units; unit = end) {
		end = sy__starts_end(starts, unit, units);
		walk_block(walk, svr4, unit, end, sy__starts_at(global, unit));
	}
}
