/*
 * <linux/interval_tree_generic.h> for kernel code that is compiled into a program: INTERVAL_TREE_DEFINE(type, member, number,
 * kept, first, last, static, name) makes functions of a tree of intervals from first(node) to last(node), both included:
 * name_insert, name_remove, and name_iter_first and name_iter_next, which go through those that overlap an interval by their
 * beginnings. In the field kept each node has the largest end of those below it.
 */
#ifndef SLABYARD_KERNEL_LINUX_INTERVAL_TREE_GENERIC_H
#define SLABYARD_KERNEL_LINUX_INTERVAL_TREE_GENERIC_H

#pragma GCC system_header

#include "rbtree_augmented.h"

#define INTERVAL_TREE_DEFINE(type, member, number, kept, first, last, storage, name) \
	RB_DECLARE_CALLBACKS_MAX(static, name##_augment, type, member, number, kept, last) \
	storage __maybe_unused void name##_insert(type *node, struct rb_root_cached *root) \
	{ \
		struct rb_node **link = &root->rb_root.rb_node, *above = NULL; \
		number begin = first(node), end = last(node); \
		bool leftmost = true; \
		while (*link) { \
			type *at = rb_entry(*link, type, member); \
			above = *link; \
			if (at->kept < end) \
				at->kept = end; \
			if (begin < first(at)) { \
				link = &above->rb_left; \
			} else { \
				link = &above->rb_right; \
				leftmost = false; \
			} \
		} \
		node->kept = end; \
		rb_link_node(&node->member, above, link); \
		rb_insert_augmented_cached(&node->member, root, leftmost, &name##_augment); \
	} \
	storage __maybe_unused void name##_remove(type *node, struct rb_root_cached *root) \
	{ \
		rb_erase_augmented_cached(&node->member, root, &name##_augment); \
	} \
	/* The first of this node and all below it that overlaps; what is below has an end that is not before begin. */ \
	static inline type *name##_below(type *node, number begin, number end) \
	{ \
		for (;;) { \
			struct rb_node *left = node->member.rb_left, *right = node->member.rb_right; \
			if (left && rb_entry(left, type, member)->kept >= begin) { \
				node = rb_entry(left, type, member); \
				continue; \
			} \
			if (first(node) > end) \
				return NULL; \
			if (last(node) >= begin) \
				return node; \
			if (!right || rb_entry(right, type, member)->kept < begin) \
				return NULL; \
			node = rb_entry(right, type, member); \
		} \
	} \
	storage __maybe_unused type *name##_iter_first(struct rb_root_cached *root, number begin, number end) \
	{ \
		struct rb_node *top = root->rb_root.rb_node; \
		return top && rb_entry(top, type, member)->kept >= begin ? name##_below(rb_entry(top, type, member), begin, end) : NULL; \
	} \
	storage __maybe_unused type *name##_iter_next(type *node, number begin, number end) \
	{ \
		for (;;) { \
			struct rb_node *at = &node->member, *right = at->rb_right, *above; \
			if (right && rb_entry(right, type, member)->kept >= begin) \
				return name##_below(rb_entry(right, type, member), begin, end); \
			while ((above = rb_parent(at)) && above->rb_right == at) \
				at = above; \
			if (!above) \
				return NULL; \
			node = rb_entry(above, type, member); \
			if (first(node) > end) \
				return NULL; \
			if (last(node) >= begin) \
				return node; \
		} \
	}

#endif
