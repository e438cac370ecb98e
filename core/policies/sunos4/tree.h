/*
 * The Cartesian tree of fast fits. Each free block holds its own node.
 *
 * After C. J. Stephenson, "Fast Fits: New Methods for Dynamic Storage Allocation", SOSP 1983. From left to right the
 * blocks are in order of address; from the root down they get smaller:
 *
 *     offset   0    64   160  240  464  576           576: 3520
 *     bytes    48   80   64   208  96   3520          /
 *                                                240: 208
 *                                               /        \
 *                                          64: 80         464: 96
 *                                         /      \
 *                                     0: 48     160: 64
 *
 * The root is the largest, so one look tells whether a request can be served. Below a block that is too small, all blocks
 * are.
 *
 *     leftmost fit   go left while the left child is large enough; take the block where it isn't: the lowest address
 *     better fit     go to the smaller of the children that are large enough; take the block that has no such child
 *
 * A new block stands where going down by address first meets a smaller one, and splits what is there by address into
 * its two children. A removed block is replaced by its children, merged by size. Both cost the depth of the tree, which has
 * no bound but the number of blocks; Stephenson found it to be small in practice. Nothing here recurses.
 *
 * Equal sizes. The paper lets either of two equal blocks stand above the other. The choice matters, as a kernel's holes have
 * few sizes: by address or by age, a thousand equal holes would become a list (and a benchmark of processes that exchange
 * messages would take thirty times as long). Here a hash of the block's number decides, so equal blocks form a tree as flat as
 * a random one (a treap). For a given set of free blocks there is then exactly one tree, whatever happened before.
 *
 * A node must fit into the smallest block, 16 bytes. It has a word of 64 bits for each child. The upper 54 bits are a block's
 * number: that of its first unit, counted in units of 16 bytes from the start of memory, plus one; 0: none. The lower 10
 * bits are one half of the block's own size. Stephenson's node has the sizes of the children instead, so that a search need not
 * touch their memory.
 *
 * The caller holds the lock.
 */
#ifndef SY_SUNOS4_TREE_H
#define SY_SUNOS4_TREE_H

#include "../../bug.h"
#include "../starts.h"

#define SY__TREE_SIZE_BITS 10 /* in each word */
#define SY__TREE_SIZE_MASK ((UINT64_C(1) << SY__TREE_SIZE_BITS) - 1)

struct sy__tree_node {
	uint64_t left, right; /* links: a child's number, with half of the size of the block that holds the node */
};
_Static_assert(sizeof(struct sy__tree_node) <= (size_t)1 << SY__UNIT_SHIFT, "the smallest block holds a node");

struct sy__tree {
	char *memory;    /* where block numbers start */
	uint64_t root;   /* link */
	uint64_t blocks; /* in the tree */
	uint64_t units;  /* in all of them */
	uint64_t last;   /* no block has had a larger number */
	struct sy_heap *heap;
};

/* A request, in units. */
struct sy__tree_want {
	uint32_t units, align; /* align: a power of two */
};

static inline uint64_t sy__tree_number(const struct sy__tree *tree, const void *block)
{
	return ((uint64_t)((const char *)block - tree->memory) >> SY__UNIT_SHIFT) + 1;
}

static inline struct sy__tree_node *sy__tree_node(const struct sy__tree *tree, uint64_t number)
{
	return (struct sy__tree_node *)(void *)(tree->memory + ((size_t)(number - 1) << SY__UNIT_SHIFT));
}

/* The block that a link names; 0: none. */
static inline uint64_t sy__tree_at(const uint64_t *link)
{
	return *link >> SY__TREE_SIZE_BITS;
}

/* The program has overwritten a link: it names no block from now on. */
static SY__COLD uint64_t sy__tree_lose(const struct sy__tree *tree, uint64_t *link)
{
	*link &= SY__TREE_SIZE_MASK;
	sy__bug(tree->heap, SY_BUG_WRITE_AFTER_FREE, link);
	return 0;
}

/* The same in a tree that a program may have written to: to a block that may be there. */
static inline uint64_t sy__tree_to(const struct sy__tree *tree, uint64_t *link)
{
	uint64_t number = sy__tree_at(link);

	return sy__likely(number <= tree->last) ? number : sy__tree_lose(tree, link);
}

static inline void sy__tree_set(uint64_t *link, uint64_t number)
{
	*link = number << SY__TREE_SIZE_BITS | (*link & SY__TREE_SIZE_MASK);
}

/* Size of a block; 0 for none. */
static inline uint32_t sy__tree_units(const struct sy__tree *tree, uint64_t number)
{
	const struct sy__tree_node *node;

	if (!number)
		return 0;
	node = sy__tree_node(tree, number);
	return (uint32_t)((node->left & SY__TREE_SIZE_MASK) << SY__TREE_SIZE_BITS | (node->right & SY__TREE_SIZE_MASK));
}

/* Of equal blocks the one with the higher rank stands above. The factor is 2^64 divided by the golden ratio. */
static inline uint64_t sy__tree_rank(uint64_t number)
{
	return number * UINT64_C(0x9e3779b97f4a7c15);
}

/* Whether block a stands above block b. */
static inline bool sy__tree_above(uint64_t a, uint32_t a_units, uint64_t b, uint32_t b_units)
{
	return a_units != b_units ? a_units > b_units : sy__tree_rank(a) > sy__tree_rank(b);
}

/* First aligned place for a request in a block; it may be too near to the block's end. */
static inline uint64_t sy__tree_start(uint64_t number, const struct sy__tree_want *want)
{
	return ((number - 1 + want->align - 1) & ~(uint64_t)(want->align - 1)) + 1;
}

static inline bool sy__tree_fits(const struct sy__tree *tree, uint64_t number, const struct sy__tree_want *want)
{
	return sy__tree_start(number, want) + want->units <= number + sy__tree_units(tree, number);
}

/* ---- Changing ------------------------------------------------------------------------------------------------- */

/* Puts a block into the tree, at or below a link; all blocks above that link stand above it. */
static inline void sy__tree_insert(struct sy__tree *tree, uint64_t *link, uint64_t number, uint32_t units)
{
	struct sy__tree_node *node = sy__tree_node(tree, number);
	uint64_t at, *left = &node->left, *right = &node->right;

	tree->blocks++;
	tree->units += units;
	while ((at = sy__tree_to(tree, link)) && sy__tree_above(at, sy__tree_units(tree, at), number, units))
		link = number < at ? &sy__tree_node(tree, at)->left : &sy__tree_node(tree, at)->right;
	sy__tree_set(link, number);
	node->left = units >> SY__TREE_SIZE_BITS;
	node->right = units & SY__TREE_SIZE_MASK;
	while (at) { /* divide the smaller blocks that stood here by address */
		struct sy__tree_node *other = sy__tree_node(tree, at);

		if (at < number) {
			sy__tree_set(left, at);
			left = &other->right;
			at = sy__tree_to(tree, left);
		} else {
			sy__tree_set(right, at);
			right = &other->left;
			at = sy__tree_to(tree, right);
		}
	}
	sy__tree_set(left, 0);
	sy__tree_set(right, 0);
}

/* Takes the block that a link names out of the tree; the link then names its successor. */
static inline void sy__tree_remove(struct sy__tree *tree, uint64_t *link)
{
	uint64_t number = sy__tree_to(tree, link);
	struct sy__tree_node *node = sy__tree_node(tree, number);
	uint64_t left = sy__tree_to(tree, &node->left), right = sy__tree_to(tree, &node->right);

	tree->blocks--;
	tree->units -= sy__tree_units(tree, number);
	while (left && right) {
		if (sy__tree_above(left, sy__tree_units(tree, left), right, sy__tree_units(tree, right))) {
			sy__tree_set(link, left);
			link = &sy__tree_node(tree, left)->right;
			left = sy__tree_to(tree, link);
		} else {
			sy__tree_set(link, right);
			link = &sy__tree_node(tree, right)->left;
			right = sy__tree_to(tree, link);
		}
	}
	sy__tree_set(link, left ? left : right);
}

/* ---- Searching ------------------------------------------------------------------------------------------------ */

/* The link that names a block; NULL: it is not in the tree. */
static inline uint64_t *sy__tree_find(struct sy__tree *tree, uint64_t number)
{
	uint64_t *link = &tree->root, at;

	while ((at = sy__tree_to(tree, link)) && at != number)
		link = number < at ? &sy__tree_node(tree, at)->left : &sy__tree_node(tree, at)->right;
	return at ? link : NULL;
}

/* The free blocks next below and above an address that is in no free block; 0: none. */
static inline void sy__tree_neighbours(const struct sy__tree *tree, uint64_t number, uint64_t *below, uint64_t *above)
{
	uint64_t at = sy__tree_at(&tree->root);

	*below = *above = 0;
	while (at) {
		struct sy__tree_node *node = sy__tree_node(tree, at);

		if (at < number) {
			*below = at;
			at = sy__tree_to(tree, &node->right);
		} else {
			*above = at;
			at = sy__tree_to(tree, &node->left);
		}
	}
}

/* The link to the block of at least `units` with the lowest address above `after`; NULL: none. */
static inline uint64_t *sy__tree_leftmost(struct sy__tree *tree, uint32_t units, uint64_t after)
{
	uint64_t *link = &tree->root, *found = NULL, at;

	while ((at = sy__tree_to(tree, link)) && sy__tree_units(tree, at) >= units) {
		if (at > after) {
			found = link;
			link = &sy__tree_node(tree, at)->left;
		} else {
			link = &sy__tree_node(tree, at)->right;
		}
	}
	return found;
}

/* The link to the last block on better fit's way down in which the aligned request fits; NULL: none. */
static inline uint64_t *sy__tree_better(struct sy__tree *tree, const struct sy__tree_want *want)
{
	uint64_t *link = &tree->root, *found = NULL, at;

	while ((at = sy__tree_to(tree, link)) && sy__tree_units(tree, at) >= want->units) {
		struct sy__tree_node *node = sy__tree_node(tree, at);
		uint32_t left = sy__tree_units(tree, sy__tree_to(tree, &node->left));
		uint32_t right = sy__tree_units(tree, sy__tree_to(tree, &node->right));

		if (sy__tree_fits(tree, at, want))
			found = link;
		link = left >= want->units && (left <= right || right < want->units) ? &node->left : &node->right;
	}
	return found;
}

#endif
