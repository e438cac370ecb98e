/*
 * Red-black trees (linux/rbtree.h). Every path from a node down has as many black nodes, and no red node a red child, so no
 * path is more than twice as long as another.
 *
 * A node is inserted red; where its parent is red too, either the parent's sibling is red, and both become black and the
 * trouble moves up by two, or one or two rotations end it. A black node that is taken out leaves paths one short: a red node in
 * the place becomes black, else a red sibling is rotated away, a black one without red children becomes red and the trouble
 * moves up, and one with a red child ends it by one or two rotations. Left and right are mirrored: `side` says which is meant.
 *
 * The parent's address and the colour are one word. Whoever keeps something of all nodes below in each
 * (linux/rbtree_augmented.h) is told of what moves.
 */
#include <slabyard/kernel/linux/rbtree_augmented.h>

enum side { LEFT, RIGHT };

static struct rb_node **child_at(struct rb_node *node, enum side side)
{
	return side == LEFT ? &node->rb_left : &node->rb_right;
}

static enum side side_of(const struct rb_node *node, const struct rb_node *parent)
{
	return parent->rb_left == node ? LEFT : RIGHT;
}

static bool is_red(const struct rb_node *node)
{
	return node && !(node->__rb_parent_color & RB_BLACK);
}

static void set_parent(struct rb_node *node, struct rb_node *parent)
{
	node->__rb_parent_color = (unsigned long)parent | (node->__rb_parent_color & RB_BLACK);
}

static void make_black(struct rb_node *node)
{
	node->__rb_parent_color |= RB_BLACK;
}

static void make_red(struct rb_node *node)
{
	node->__rb_parent_color &= ~(unsigned long)RB_BLACK;
}

static void make_as(struct rb_node *node, const struct rb_node *other)
{
	node->__rb_parent_color = (node->__rb_parent_color & ~(unsigned long)RB_BLACK) | (other->__rb_parent_color & RB_BLACK);
}

/* Whoever had the one as a child has the other, which may be NULL. */
static void replace_child(struct rb_root *root, struct rb_node *parent, struct rb_node *child, struct rb_node *by)
{
	WRITE_ONCE(*(parent ? child_at(parent, side_of(child, parent)) : &root->rb_node), by);
}

/* The child at the other side comes to stand above the node, which goes down to this side. */
static void rotate(struct rb_root *root, struct rb_node *node, enum side side, const struct rb_augment_callbacks *augment)
{
	struct rb_node *up = *child_at(node, !side), *between = *child_at(up, side);

	WRITE_ONCE(*child_at(node, !side), between);
	if (between)
		set_parent(between, node);
	WRITE_ONCE(*child_at(up, side), node);
	replace_child(root, rb_parent(node), node, up);
	set_parent(up, rb_parent(node));
	set_parent(node, up);
	if (augment)
		augment->rotate(node, up);
}

void sy__rb_insert(struct rb_node *node, struct rb_root *root, const struct rb_augment_callbacks *augment)
{
	struct rb_node *parent;

	while ((parent = rb_parent(node)) && is_red(parent)) {
		struct rb_node *grandparent = rb_parent(parent);
		enum side side = side_of(parent, grandparent);
		struct rb_node *uncle = *child_at(grandparent, !side);

		make_red(grandparent);
		if (is_red(uncle)) {
			make_black(uncle);
			make_black(parent);
			node = grandparent;
			continue;
		}
		if (side_of(node, parent) != side) {
			rotate(root, parent, side, augment);
			parent = node;
		}
		make_black(parent);
		rotate(root, grandparent, !side, augment);
		break;
	}
	make_black(root->rb_node);
}

/* Paths through the parent's child at a side, which may be NULL, are one black node short. */
static void lengthen(struct rb_root *root, struct rb_node *parent, enum side side, const struct rb_augment_callbacks *augment)
{
	while (parent && !is_red(*child_at(parent, side))) {
		struct rb_node *sibling = *child_at(parent, !side);

		if (is_red(sibling)) {
			make_black(sibling);
			make_red(parent);
			rotate(root, parent, side, augment);
			sibling = *child_at(parent, !side);
		}
		if (!is_red(sibling->rb_left) && !is_red(sibling->rb_right)) {
			struct rb_node *node = parent;

			make_red(sibling);
			parent = rb_parent(node);
			if (is_red(node) || !parent) {
				make_black(node);
				return;
			}
			side = side_of(node, parent);
			continue;
		}
		if (!is_red(*child_at(sibling, !side))) {
			make_black(*child_at(sibling, side));
			make_red(sibling);
			rotate(root, sibling, !side, augment);
			sibling = *child_at(parent, !side);
		}
		make_as(sibling, parent);
		make_black(parent);
		make_black(*child_at(sibling, !side));
		rotate(root, parent, side, augment);
		return;
	}
	if (parent)
		make_black(*child_at(parent, side));
	else if (root->rb_node)
		make_black(root->rb_node);
}

/* Takes out a node without a left or a right child. */
static void take_out(struct rb_node *node, struct rb_root *root, const struct rb_augment_callbacks *augment)
{
	struct rb_node *child = node->rb_left ? node->rb_left : node->rb_right, *parent = rb_parent(node);
	enum side side = parent ? side_of(node, parent) : LEFT;

	replace_child(root, parent, node, child);
	if (child)
		set_parent(child, parent);
	if (augment && parent)
		augment->propagate(parent, NULL);
	if (!is_red(node))
		lengthen(root, parent, side, augment);
}

void sy__rb_replace(struct rb_node *victim, struct rb_node *by, struct rb_root *root)
{
	*by = *victim;
	if (by->rb_left)
		set_parent(by->rb_left, by);
	if (by->rb_right)
		set_parent(by->rb_right, by);
	replace_child(root, rb_parent(victim), victim, by);
}

/* A node with two children gives its place to the next one, which has no left child. */
void sy__rb_erase(struct rb_node *node, struct rb_root *root, const struct rb_augment_callbacks *augment)
{
	struct rb_node *next;

	if (!node->rb_left || !node->rb_right) {
		take_out(node, root, augment);
		return;
	}
	next = sy__rb_beside(node, false);
	take_out(next, root, augment);
	sy__rb_replace(node, next, root);
	if (augment) {
		augment->copy(node, next);
		augment->propagate(next, NULL);
	}
}

/* ---- In order ---------------------------------------------------------------------------------------------------- */

static struct rb_node *furthest(const struct rb_node *node, enum side side)
{
	const struct rb_node *next;

	while (node && (next = side == LEFT ? node->rb_left : node->rb_right) != NULL)
		node = next;
	return (struct rb_node *)(uintptr_t)node;
}

struct rb_node *sy__rb_end(const struct rb_root *root, bool last)
{
	return furthest(root->rb_node, last ? RIGHT : LEFT);
}

struct rb_node *sy__rb_beside(const struct rb_node *node, bool before)
{
	const struct rb_node *child, *parent;

	if (RB_EMPTY_NODE(node))
		return NULL;
	child = before ? node->rb_left : node->rb_right;
	if (child)
		return furthest(child, before ? RIGHT : LEFT);
	while ((parent = rb_parent(node)) && side_of(node, parent) == (before ? LEFT : RIGHT))
		node = parent;
	return (struct rb_node *)(uintptr_t)parent;
}

/* Without children, furthest to the left: the first of those below a node to be visited before it. */
struct rb_node *sy__rb_deepest(const struct rb_node *node)
{
	while (node->rb_left || node->rb_right)
		node = node->rb_left ? node->rb_left : node->rb_right;
	return (struct rb_node *)(uintptr_t)node;
}

struct rb_node *sy__rb_after_children(const struct rb_node *node)
{
	struct rb_node *parent = rb_parent(node);

	return parent && side_of(node, parent) == LEFT && parent->rb_right ? sy__rb_deepest(parent->rb_right) : parent;
}
