/* <linux/rbtree.h> for kernel code that is compiled into a program: trees of nodes that users embed, search and link themselves, kept balanced (library/rbtree.c). */
#ifndef SLABYARD_KERNEL_LINUX_RBTREE_H
#define SLABYARD_KERNEL_LINUX_RBTREE_H

#pragma GCC system_header

#include "container_of.h"
#include "rcupdate.h"
#include "types.h"

/* The colour is in the lowest bit of the parent's address. */
struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right, *rb_left;
} __aligned(sizeof(long));

struct rb_root {
	struct rb_node *rb_node;
};

/* That knows its first node. */
struct rb_root_cached {
	struct rb_root rb_root;
	struct rb_node *rb_leftmost;
};

struct rb_augment_callbacks;

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

void sy__rb_insert(struct rb_node *, struct rb_root *, const struct rb_augment_callbacks *);
void sy__rb_erase(struct rb_node *, struct rb_root *, const struct rb_augment_callbacks *);
void sy__rb_replace(struct rb_node *victim, struct rb_node *by, struct rb_root *);
struct rb_node *sy__rb_end(const struct rb_root *, bool last);
struct rb_node *sy__rb_beside(const struct rb_node *, bool before);
struct rb_node *sy__rb_deepest(const struct rb_node *);
struct rb_node *sy__rb_after_children(const struct rb_node *);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define RB_ROOT (struct rb_root) { NULL, }
#define RB_ROOT_CACHED (struct rb_root_cached) { { NULL, }, NULL }
#define RB_EMPTY_ROOT(root) (READ_ONCE((root)->rb_node) == NULL)
#define RB_EMPTY_NODE(node) ((node)->__rb_parent_color == (unsigned long)(node))
#define RB_CLEAR_NODE(node) ((node)->__rb_parent_color = (unsigned long)(node))
#define rb_parent(node) ((struct rb_node *)((node)->__rb_parent_color & ~3UL))
#define rb_entry(pointer, type, member) container_of(pointer, type, member)
#define rb_entry_safe(pointer, type, member) \
	__extension__ ({ \
		__typeof__(pointer) sy__node = (pointer); \
		sy__node ? rb_entry(sy__node, type, member) : NULL; \
	})

/* In order; NULL: there is none. */
static inline struct rb_node *rb_first(const struct rb_root *root) { return sy__rb_end(root, false); }
static inline struct rb_node *rb_last(const struct rb_root *root) { return sy__rb_end(root, true); }
static inline struct rb_node *rb_next(const struct rb_node *node) { return sy__rb_beside(node, false); }
static inline struct rb_node *rb_prev(const struct rb_node *node) { return sy__rb_beside(node, true); }
#define rb_first_cached(root) ((root)->rb_leftmost)

/* Children before their parents. */
static inline struct rb_node *rb_first_postorder(const struct rb_root *root)
{
	return root->rb_node ? sy__rb_deepest(root->rb_node) : NULL;
}

static inline struct rb_node *rb_next_postorder(const struct rb_node *node)
{
	return node ? sy__rb_after_children(node) : NULL;
}

/* Whose place was found by a search; rb_insert_color comes next. */
static inline void rb_link_node(struct rb_node *node, struct rb_node *parent, struct rb_node **link)
{
	node->__rb_parent_color = (unsigned long)parent;
	node->rb_left = node->rb_right = NULL;
	*link = node;
}

static inline void rb_link_node_rcu(struct rb_node *node, struct rb_node *parent, struct rb_node **link)
{
	node->__rb_parent_color = (unsigned long)parent;
	node->rb_left = node->rb_right = NULL;
	rcu_assign_pointer(*link, node);
}

static inline void rb_insert_color(struct rb_node *node, struct rb_root *root)
{
	sy__rb_insert(node, root, NULL);
}

static inline void rb_erase(struct rb_node *node, struct rb_root *root)
{
	sy__rb_erase(node, root, NULL);
}

static inline void rb_replace_node(struct rb_node *victim, struct rb_node *by, struct rb_root *root)
{
	sy__rb_replace(victim, by, root);
}

#define rb_replace_node_rcu(victim, by, root) rb_replace_node(victim, by, root)

static inline void rb_insert_color_cached(struct rb_node *node, struct rb_root_cached *root, bool leftmost)
{
	if (leftmost)
		root->rb_leftmost = node;
	rb_insert_color(node, &root->rb_root);
}

/* The first node from then on, if that has changed. */
static inline struct rb_node *rb_erase_cached(struct rb_node *node, struct rb_root_cached *root)
{
	struct rb_node *leftmost = NULL;

	if (root->rb_leftmost == node)
		leftmost = root->rb_leftmost = rb_next(node);
	rb_erase(node, &root->rb_root);
	return leftmost;
}

static inline void rb_replace_node_cached(struct rb_node *victim, struct rb_node *by, struct rb_root_cached *root)
{
	if (root->rb_leftmost == victim)
		root->rb_leftmost = by;
	rb_replace_node(victim, by, &root->rb_root);
}

/* Behind those that are equal; whether it is the first. */
static inline bool sy__rb_add(struct rb_node *node, struct rb_root *root, bool (*less)(struct rb_node *, const struct rb_node *))
{
	struct rb_node **link = &root->rb_node, *parent = NULL;
	bool leftmost = true;

	while (*link) {
		parent = *link;
		if (less(node, parent)) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			leftmost = false;
		}
	}
	rb_link_node(node, parent, link);
	rb_insert_color(node, root);
	return leftmost;
}

static inline void rb_add(struct rb_node *node, struct rb_root *root, bool (*less)(struct rb_node *, const struct rb_node *))
{
	sy__rb_add(node, root, less);
}

/* The node, if it is the first. */
static inline struct rb_node *rb_add_cached(struct rb_node *node, struct rb_root_cached *root,
                                            bool (*less)(struct rb_node *, const struct rb_node *))
{
	if (!sy__rb_add(node, &root->rb_root, less))
		return NULL;
	root->rb_leftmost = node;
	return node;
}

/* One that is equal and was there, or NULL: the node was added. */
static inline struct rb_node *rb_find_add(struct rb_node *node, struct rb_root *root,
                                          int (*compare)(struct rb_node *, const struct rb_node *))
{
	struct rb_node **link = &root->rb_node, *parent = NULL;

	while (*link) {
		int order = compare(node, *link);

		if (!order)
			return *link;
		parent = *link;
		link = order < 0 ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(node, parent, link);
	rb_insert_color(node, root);
	return NULL;
}

static inline struct rb_node *rb_find(const void *key, const struct rb_root *root,
                                      int (*compare)(const void *key, const struct rb_node *))
{
	struct rb_node *node = root->rb_node;
	int order;

	while (node && (order = compare(key, node)) != 0)
		node = order < 0 ? node->rb_left : node->rb_right;
	return node;
}

/* The first of those that are equal. */
static inline struct rb_node *rb_find_first(const void *key, const struct rb_root *root,
                                            int (*compare)(const void *key, const struct rb_node *))
{
	struct rb_node *node = root->rb_node, *match = NULL;

	while (node) {
		int order = compare(key, node);

		if (!order)
			match = node;
		node = order <= 0 ? node->rb_left : node->rb_right;
	}
	return match;
}

static inline struct rb_node *rb_next_match(const void *key, struct rb_node *node,
                                            int (*compare)(const void *key, const struct rb_node *))
{
	node = rb_next(node);
	return node && !compare(key, node) ? node : NULL;
}

#define rb_for_each(node, key, tree, compare) \
	for ((node) = rb_find_first(key, tree, compare); (node); (node) = rb_next_match(key, node, compare))

/* All, which may be freed on the way, as nobody looks at the tree again. */
#define rbtree_postorder_for_each_entry_safe(at, spare, root, member) \
	for ((at) = rb_entry_safe(rb_first_postorder(root), __typeof__(*(at)), member); \
	     (at) && ((spare) = rb_entry_safe(rb_next_postorder(&(at)->member), __typeof__(*(at)), member), 1); (at) = (spare))

#endif
