/*
 * sunos4: what is in a chunk, for walks (core/walk.h).
 *
 * A chunk's map tells its blocks, its node's tree which of them are free. A free block's place is how far below the
 * root it stands. Since a tree's left sons have lower addresses and its right ones higher, that and the order of address
 * are the whole tree.
 */
#include "../walk.h"
#include "sunos4.h"

/* Whether the block is in the tree, and how deep. */
static bool is_free(const struct sy__tree *tree, uint64_t number, struct sy__mark *mark)
{
	uint64_t at = sy__tree_at(&tree->root);

	mark->place = 0;
	while (at && at != number) {
		const struct sy__tree_node *node = sy__tree_node(tree, at);

		at = sy__tree_at(number < at ? &node->left : &node->right);
		mark->place++;
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
		sy__walk_block(walk, (size_t)end << SY__UNIT_SHIFT, is_free(tree, first + unit, &mark) ? &mark : NULL);
	}
}
