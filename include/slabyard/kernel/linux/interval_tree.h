/*
 * <linux/interval_tree.h> for kernel code that is compiled into a program: the tree of interval_tree_generic.h over unsigned
 * long.
 */
#ifndef SLABYARD_KERNEL_LINUX_INTERVAL_TREE_H
#define SLABYARD_KERNEL_LINUX_INTERVAL_TREE_H

#pragma GCC system_header

#include "interval_tree_generic.h"

/* From start to last, both included. */
struct interval_tree_node {
	struct rb_node rb;
	unsigned long start, last;
	unsigned long __subtree_last;
};

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define interval_tree_insert sy__interval_tree_insert
#define interval_tree_remove sy__interval_tree_remove
#define interval_tree_iter_first sy__interval_tree_iter_first
#define interval_tree_iter_next sy__interval_tree_iter_next

void interval_tree_insert(struct interval_tree_node *, struct rb_root_cached *);
void interval_tree_remove(struct interval_tree_node *, struct rb_root_cached *);
struct interval_tree_node *interval_tree_iter_first(struct rb_root_cached *, unsigned long start, unsigned long last);
struct interval_tree_node *interval_tree_iter_next(struct interval_tree_node *, unsigned long start, unsigned long last);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
