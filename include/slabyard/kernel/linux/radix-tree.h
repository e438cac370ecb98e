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

/* ---- One after the other, from start on ----------------------------------------------------------------------------- */

/* The slot is the iterator's own, with what the tree has there. */
struct radix_tree_iter {
	unsigned long index, next_index;
	bool sy__over;
	void *sy__entry;
};

static inline void **sy__radix_tree_next(const struct radix_tree_root *root, struct radix_tree_iter *iter, unsigned tag)
{
	iter->index = iter->next_index;
	iter->sy__entry = iter->sy__over ? NULL : sy__xa_next((struct xarray *)(uintptr_t)root, &iter->index, ULONG_MAX, tag);
	iter->next_index = iter->index + 1;
	iter->sy__over = iter->index == ULONG_MAX;
	return iter->sy__entry ? &iter->sy__entry : NULL;
}

static inline void **sy__radix_tree_first(const struct radix_tree_root *root, struct radix_tree_iter *iter, unsigned long start,
                                          unsigned tag)
{
	iter->next_index = start;
	iter->sy__over = false;
	return sy__radix_tree_next(root, iter, tag);
}

#define radix_tree_for_each_slot(slot, root, iter, start) \
	for ((slot) = sy__radix_tree_first(root, iter, start, XA_PRESENT); (slot); (slot) = sy__radix_tree_next(root, iter, XA_PRESENT))
#define radix_tree_for_each_tagged(slot, root, iter, start, tag) \
	for ((slot) = sy__radix_tree_first(root, iter, start, tag); (slot); (slot) = sy__radix_tree_next(root, iter, tag))
#define radix_tree_deref_slot(slot) (*(slot))
#define radix_tree_deref_slot_protected(slot, lock) (*(slot))
#define radix_tree_deref_retry(entry) ((void)(entry), 0)
#define radix_tree_iter_resume(slot, iter) ((void)(iter), (slot))

static inline void radix_tree_iter_replace(struct radix_tree_root *root, const struct radix_tree_iter *iter, void **slot,
                                           void *entry)
{
	*slot = entry;
	sy__xa_store(root, iter->index, entry, GFP_ATOMIC);
}

static inline void radix_tree_replace_slot(struct radix_tree_root *root, void **slot, void *entry)
{
	radix_tree_iter_replace(root, container_of(slot, struct radix_tree_iter, sy__entry), slot, entry);
}

static inline void radix_tree_iter_delete(struct radix_tree_root *root, struct radix_tree_iter *iter, void **slot)
{
	radix_tree_iter_replace(root, iter, slot, NULL);
}

static inline void radix_tree_iter_tag_set(struct radix_tree_root *root, const struct radix_tree_iter *iter, unsigned tag)
{
	sy__xa_mark(root, iter->index, tag, true);
}

static inline void radix_tree_iter_tag_clear(struct radix_tree_root *root, const struct radix_tree_iter *iter, unsigned tag)
{
	sy__xa_mark(root, iter->index, tag, false);
}

#endif
