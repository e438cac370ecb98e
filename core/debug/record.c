/*
 * Records of objects, in a tree by address.
 *
 * A treap (Seidel and Aragon 1996): a search tree by `base` that is a heap by `priority`, a hash of the address, so that its depth is
 * logarithmic whatever the order of allocations. Splitting and joining need no parent links and no recursion.
 *
 * Invariants: base ascends in order; no child has a higher priority than its parent; records do not overlap; `records` is how many
 * there are.
 */
#include "debug.h"

static uint32_t hash(const void *address)
{
	return (uint32_t)(((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* Splits a tree into what is below an address, and the rest. */
static void split(struct sy__record *tree, const char *at, struct sy__record **below, struct sy__record **rest)
{
	while (tree) {
		if (tree->base < at) {
			*below = tree;
			below = &tree->right;
			tree = tree->right;
		} else {
			*rest = tree;
			rest = &tree->left;
			tree = tree->left;
		}
	}
	*below = *rest = NULL;
}

static struct sy__record *join(struct sy__record *below, struct sy__record *above)
{
	struct sy__record *joined, **place = &joined;

	while (below && above) {
		if (below->priority > above->priority) {
			*place = below;
			place = &below->right;
			below = below->right;
		} else {
			*place = above;
			place = &above->left;
			above = above->left;
		}
	}
	*place = below ? below : above;
	return joined;
}

void sy__record_insert(struct sy__debug *debug, struct sy__record *record)
{
	struct sy__record **place = &debug->root;

	record->priority = hash(record->base);
	while (*place && (*place)->priority >= record->priority)
		place = record->base < (*place)->base ? &(*place)->left : &(*place)->right;
	split(*place, record->base, &record->left, &record->right);
	*place = record;
	debug->records++;
}

void sy__record_remove(struct sy__debug *debug, struct sy__record *record)
{
	struct sy__record **place = &debug->root;

	while (*place != record)
		place = record->base < (*place)->base ? &(*place)->left : &(*place)->right;
	*place = join(record->left, record->right);
	debug->records--;
}

struct sy__record *sy__record_below(const struct sy__debug *debug, const void *address)
{
	struct sy__record *below = NULL;

	for (struct sy__record *at = debug->root; at;) {
		if (at->base <= (const char *)address) {
			below = at;
			at = at->right;
		} else {
			at = at->left;
		}
	}
	return below;
}

struct sy__record *sy__record_next(const struct sy__debug *debug, struct sy__record_walk *walk)
{
	struct sy__record *at = walk->last ? walk->last->right : debug->root;

	for (; at && walk->depth < SY__DEBUG_DEPTH; at = at->left)
		walk->above[walk->depth++] = at;
	walk->last = walk->depth ? walk->above[--walk->depth] : NULL;
	return walk->last;
}

const char *sy__record_check(const struct sy__debug *debug)
{
	struct sy__record_walk walk = { .depth = 0 };
	const struct sy__record *before = NULL, *at;
	size_t count = 0;

	for (; (at = sy__record_next(debug, &walk)); before = at, count++) {
		if (before && at->base < before->base + before->room)
			return "debugging: the records of two objects overlap";
		if ((at->left && at->left->priority > at->priority) || (at->right && at->right->priority > at->priority))
			return "debugging: a record stands above one of higher priority";
	}
	return count == debug->records ? NULL : "debugging: the number of records is wrong";
}
