/* <linux/rbtree_augmented.h> for kernel code that is compiled into a program: trees whose nodes know something of all below them. */
#ifndef SLABYARD_KERNEL_LINUX_RBTREE_AUGMENTED_H
#define SLABYARD_KERNEL_LINUX_RBTREE_AUGMENTED_H

#pragma GCC system_header

#include "rbtree.h"

#define RB_RED 0
#define RB_BLACK 1

/* What is kept of a node is found again: from it up to stop; as it takes another's place; as another comes to stand above it. */
struct rb_augment_callbacks {
	void (*propagate)(struct rb_node *node, struct rb_node *stop);
	void (*copy)(struct rb_node *old, struct rb_node *by);
	void (*rotate)(struct rb_node *old, struct rb_node *by);
};

static inline void rb_insert_augmented(struct rb_node *node, struct rb_root *root, const struct rb_augment_callbacks *augment)
{
	sy__rb_insert(node, root, augment);
}

static inline void rb_insert_augmented_cached(struct rb_node *node, struct rb_root_cached *root, bool leftmost,
                                              const struct rb_augment_callbacks *augment)
{
	if (leftmost)
		root->rb_leftmost = node;
	sy__rb_insert(node, &root->rb_root, augment);
}

static inline void rb_erase_augmented(struct rb_node *node, struct rb_root *root, const struct rb_augment_callbacks *augment)
{
	sy__rb_erase(node, root, augment);
}

static inline void rb_erase_augmented_cached(struct rb_node *node, struct rb_root_cached *root,
                                             const struct rb_augment_callbacks *augment)
{
	if (root->rb_leftmost == node)
		root->rb_leftmost = rb_next(node);
	sy__rb_erase(node, &root->rb_root, augment);
}

/* compute(node, exit) stores what is kept in the node; true: exit was asked for, and it was that already. */
#define RB_DECLARE_CALLBACKS(storage, name, type, member, kept, compute) \
	static inline void name##_propagate(struct rb_node *at, struct rb_node *stop) \
	{ \
		for (; at != stop && !compute(rb_entry(at, type, member), true); at = rb_parent(at)) \
			; \
	} \
	static inline void name##_copy(struct rb_node *old, struct rb_node *by) \
	{ \
		rb_entry(by, type, member)->kept = rb_entry(old, type, member)->kept; \
	} \
	static void name##_rotate(struct rb_node *old, struct rb_node *by) \
	{ \
		name##_copy(old, by); \
		compute(rb_entry(old, type, member), false); \
	} \
	storage const struct rb_augment_callbacks name = { name##_propagate, name##_copy, name##_rotate };

/* What is kept is the largest value(node) below. */
#define RB_DECLARE_CALLBACKS_MAX(storage, name, type, member, number, kept, value) \
	static inline bool name##_compute(type *node, bool exit) \
	{ \
		number most = value(node), below; \
		if (node->member.rb_left && (below = rb_entry(node->member.rb_left, type, member)->kept) > most) \
			most = below; \
		if (node->member.rb_right && (below = rb_entry(node->member.rb_right, type, member)->kept) > most) \
			most = below; \
		if (exit && node->kept == most) \
			return true; \
		node->kept = most; \
		return false; \
	} \
	RB_DECLARE_CALLBACKS(storage, name, type, member, kept, name##_compute)

#endif
