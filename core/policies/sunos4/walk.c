/*
 * sunos4: what is in a chunk, for walks (core/walk.h).
 *
 * A chunk's map tells its blocks, and its node's tree tells which of them are free. A free block's place is its depth below the
 * root. As left children have lower addresses and right ones higher, depths and addresses describe the whole tree.
 */
#include "../../walk.h"
#include "sunos4.h"

bool sy__sunos4_has(const struct sy_heap *heap, const struct sy__tree *tree, uint64_t number)
{
	return sy__pages_find(heap, sy__tree_node(tree, number));
}

bool sy__sunos4_is_free(const struct sy_heap *heap, const struct sy__tree *tree, uint64_t number, uint64_t *depth)
{
	uint64_t at = sy__tree_at(&tree->root), below = 0, above = UINT64_MAX;

	*depth = 0;
	while (at && at != number) {
		const struct sy__tree_node *node = sy__tree_node(tree, at);

		if (at <= below || at >= above || !sy__sunos4_has(heap, tree, at))
			return false;
		if (number < at)
			above = at;
		else
			below = at;
		at = sy__tree_at(number < at ? &node->left : &node->right);
		++*depth;
	}
	return at != 0;
}

void sy__sunos4_walk(struct sy__walk *walk, struct sy_page *page)
{
	struct sy__sunos4_heap *sunos4 = (struct sy__sunos4_heap *)(void *)walk->heap;
	const struct sy__tree *tree = &sunos4->trees[sy__page_node(page)];
	const uint32_t *starts = SY_SLAB_STATE(struct sy__general_page, page)->map;
	uint32_t units = SY__PAGE_UNITS << sy__page_order(page);
	uint64_t first = sy__tree_number(tree, walk->slab.address);
	struct sy__mark mark = { .list = "tree", .lists = 1, .state = SY_PART_FREE };

	walk->slab.list = "chunk";
	if (!sy__walk_slab(walk))
		return;
	for (uint32_t unit = 0, end; unit < units; unit = end) {
		end = sy__starts_end(starts, unit, units);
		sy__walk_block(walk, (size_t)end << SY__UNIT_SHIFT, sy__sunos4_is_free(walk->heap, tree, first + unit, &mark.place) ? &mark : NULL);
	}
}
