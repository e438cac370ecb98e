/*
 * The tree of linux/interval_tree.h: that of linux/interval_tree_generic.h over unsigned long, once for all who include it. A
 * program that is linked with the kernel's lib/interval_tree.c has that file's.
 */
#include <slabyard/kernel/linux/interval_tree.h>

#define start_of(node) ((node)->start)
#define last_of(node) ((node)->last)

INTERVAL_TREE_DEFINE(struct interval_tree_node, rb, unsigned long, __subtree_last, start_of, last_of, , interval_tree)
