/*
 * SLOB: what is in a page, for walks (core/walk.h).
 *
 * A page knows its free blocks, but not its objects. So the space between two free blocks is told as one part in use, however
 * many objects it has. A free block's place is its number in its page, in the order in which a search meets them.
 */
#include "../../walk.h"
#include "slob.h"

static const char *const list_names[SY__SLOB_LISTS] = { "small list", "medium list", "large list" };

static void locate(const struct sy__slob_heap *slob, const struct sy__slob_page *state, struct sy_slab *slab)
{
	slab->list = "full";
	if (!state->free_units)
		return;
	slab->list = list_names[state->list];
	slab->place = sy__walk_place(&slob->partial[state->list], &state->link);
}

void sy__slob_walk(struct sy__walk *walk, struct sy_page *page)
{
	const struct sy__slob_heap *slob = sy__slob_of(walk->heap);
	const struct sy__slob_page *state = sy__slob_page_state(page);
	const sy__slob_unit_t *base = sy__slob_page_units(slob, page);
	struct sy__mark mark = { .list = "free blocks", .lists = 1, .state = SY_PART_FREE };
	uint32_t first = state->free_units ? state->first : SY__SLOB_PAGE_UNITS, units, next;

	locate(slob, state, &walk->slab);
	if (!sy__walk_slab(walk))
		return;
	if (sy__slob_check_blocks(base, first, state->free_units))
		first = SY__SLOB_PAGE_UNITS; /* corrupt: nothing tells what is free */
	for (uint32_t block = first; block != SY__SLOB_PAGE_UNITS; block = next) {
		sy__slob_read(base, block, &units, &next);
		sy__walk_part(walk, block * SY__SLOB_UNIT, SY_PART_USED);
		sy__walk_block(walk, (block + units) * SY__SLOB_UNIT, &mark);
		mark.place++;
	}
	sy__walk_part(walk, walk->slab.bytes, SY_PART_USED);
}
