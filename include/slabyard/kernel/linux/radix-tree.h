/* <linux/radix-tree.h> for kernel code that is compiled into a program: pointers by number, under the older names; on xarrays. */
#ifndef SLABYARD_KERNEL_LINUX_RADIX_TREE_H
#define SLABYARD_KERNEL_LINUX_RADIX_TREE_H

#pragma GCC system_header

#include "xarray.h"

#define radix_tree_root xarray
#define RADIX_TREE_MAX_TAGS 3
#define RADIX_TREE_INIT(name, flags) XARRAY_INIT(name, 0)
#define RADIX_TREE(name, flags) struct radix_tree_root name = RADIX_TREE_INIT(name, flags)
#define INIT_RADIX_TREE(root, flags) xa_init(root)
#define radix_tree_empty(root) xa_empty(root)
#define radix_tree_preload(flags) ((void)(flags), 0)
#define radix_tree_maybe_preload(flags) ((void)(flags), 0)
#define radix_tree_preload_end() ((void)0)

/* The caller keeps other writers away. -EEXIST, -ENOMEM. */
static inline int radix_tree_insert(struct radix_tree_root *root, unsigned long index, void *entry)
{
	int error = xa_insert(root, index, entry, GFP_ATOMIC);

	return error == -EBUSY ? -EEXIST : error;
}

static inline void *radix_tree_lookup(const struct radix_tree_root *root, unsigned long index)
{
	return xa_load((struct xarray *)(uintptr_t)root, index);
}

static inline void *radix_tree_delete(struct radix_tree_root *root, unsigned long index)
{
	return xa_erase(root, index);
}

/* NULL where another stands, or nothing. */
static inline void *radix_tree_delete_item(struct radix_tree_root *root, unsigned long index, void *item)
{
	return item && radix_tree_lookup(root, index) != item ? NULL : xa_erase(root, index);
}

static inline unsigned radix_tree_gang_lookup(const struct radix_tree_root *root, void **into, unsigned long first, unsigned count)
{
	return xa_extract((struct xarray *)(uintptr_t)root, into, first, ULONG_MAX, count, XA_PRESENT);
}

static inline unsigned radix_tree_gang_lookup_tag(const struct radix_tree_root *root, void **into, unsigned long first, unsigned count,
                                                  unsigned tag)
{
	return xa_extract((struct xarray *)(uintptr_t)root, into, first, ULONG_MAX, count, tag);
}

static inline void *radix_tree_tag_set(struct radix_tree_root *root, unsigned long index, unsigned tag)
{
	xa_set_mark(root, index, tag);
	return xa_load(root, index);
}

static inline void *radix_tree_tag_clear(struct radix_tree_root *root, unsigned long index, unsigned tag)
{
	xa_clear_mark(root, index, tag);
	return xa_load(root, index);
}

static inline int radix_tree_tag_get(const struct radix_tree_root *root, unsigned long index, unsigned tag)
{
	return xa_get_mark((struct xarray *)(uintptr_t)root, index, tag);
}

static inline int radix_tree_tagged(const struct radix_tree_root *root, unsigned tag)
{
	return xa_marked(root, tag);
}

#endif
