/* <linux/idr.h> for kernel code that is compiled into a program: small numbers for pointers, and numbers alone; on xarrays. */
#ifndef SLABYARD_KERNEL_LINUX_IDR_H
#define SLABYARD_KERNEL_LINUX_IDR_H

#pragma GCC system_header

#include "xarray.h"

/* The caller keeps others away while it changes, as with the kernel's; readers may come any time. */
struct idr {
	struct xarray entries;
	unsigned base, next;
};

#define IDR_INIT_BASE(name, first) { XARRAY_INIT((name).entries, XA_FLAGS_ALLOC), (first), 0 }
#define IDR_INIT(name) IDR_INIT_BASE(name, 0)
#define DEFINE_IDR(name) struct idr name = IDR_INIT(name)
#define idr_lock(idr) xa_lock(&(idr)->entries)
#define idr_unlock(idr) xa_unlock(&(idr)->entries)

static inline void idr_init_base(struct idr *idr, int base)
{
	xa_init_flags(&idr->entries, XA_FLAGS_ALLOC);
	idr->base = (unsigned)base;
	idr->next = 0;
}

static inline void idr_init(struct idr *idr)
{
	idr_init_base(idr, 0);
}

static inline unsigned idr_get_cursor(const struct idr *idr) { return READ_ONCE(idr->next); }
static inline void idr_set_cursor(struct idr *idr, unsigned to) { WRITE_ONCE(idr->next, to); }

/* From *id on, up to max. -ENOSPC, -ENOMEM. */
static inline int __must_check idr_alloc_u32(struct idr *idr, void *pointer, u32 *id, unsigned long max, gfp_t flags)
{
	const struct xa_limit limit = XA_LIMIT(*id > idr->base ? *id : idr->base, (u32)(max > UINT_MAX ? UINT_MAX : max));
	int error = limit.min > limit.max ? -EBUSY : xa_alloc(&idr->entries, id, pointer, limit, flags);

	return error == -EBUSY ? -ENOSPC : error;
}

/* The least number from start on, below end; 0 or less: up to INT_MAX. */
static inline int idr_alloc(struct idr *idr, void *pointer, int start, int end, gfp_t flags)
{
	u32 id = (u32)start;
	int error;

	if (WARN_ON_ONCE(start < 0))
		return -EINVAL;
	error = idr_alloc_u32(idr, pointer, &id, end > 0 ? (unsigned long)end - 1 : INT_MAX, flags);
	return error ? error : (int)id;
}

/* The same from the one after the last on, and then from start. */
static inline int idr_alloc_cyclic(struct idr *idr, void *pointer, int start, int end, gfp_t flags)
{
	int from = (int)idr->next > start ? (int)idr->next : start, id = idr_alloc(idr, pointer, from, end, flags);

	if (id == -ENOSPC && from > start)
		id = idr_alloc(idr, pointer, start, end, flags);
	if (id >= 0)
		idr->next = (unsigned)id + 1;
	return id;
}

static inline void *idr_find(const struct idr *idr, unsigned long id)
{
	return xa_load((struct xarray *)(uintptr_t)&idr->entries, id);
}

static inline void *idr_remove(struct idr *idr, unsigned long id)
{
	return xa_erase(&idr->entries, id);
}

/* What was there, or an error in its place. */
static inline void *idr_replace(struct idr *idr, void *pointer, unsigned long id)
{
	if (!sy__xa_get(&idr->entries, id))
		return ERR_PTR(-ENOENT);
	return xa_store(&idr->entries, id, pointer, GFP_KERNEL);
}

static inline bool idr_is_empty(const struct idr *idr)
{
	return xa_empty(&idr->entries);
}

static inline void *idr_get_next_ul(struct idr *idr, unsigned long *id)
{
	return xa_find(&idr->entries, id, ULONG_MAX, XA_PRESENT);
}

static inline void *idr_get_next(struct idr *idr, int *id)
{
	unsigned long at = (unsigned long)*id;
	void *entry = xa_find(&idr->entries, &at, INT_MAX, XA_PRESENT);

	if (entry)
		*id = (int)at;
	return entry;
}

/* Until it returns something else than 0. */
static inline int idr_for_each(const struct idr *idr, int (*call)(int id, void *pointer, void *data), void *data)
{
	struct idr *own = (struct idr *)(uintptr_t)idr;
	int id = 0, result = 0;
	void *entry;

	for (; (entry = idr_get_next(own, &id)) != NULL && !result; id++)
		result = call(id, entry, data);
	return result;
}

static inline void idr_destroy(struct idr *idr)
{
	xa_destroy(&idr->entries);
}

/* Memory is asked for with the lock held. */
#define idr_preload(flags) ((void)(flags))
#define idr_preload_end() ((void)0)
#define idr_for_each_entry(idr, entry, id) \
	for ((id) = 0; ((entry) = (__typeof__(entry))idr_get_next(idr, &(id))) != NULL; ++(id))
#define idr_for_each_entry_ul(idr, entry, spare, id) \
	for ((spare) = 0, (id) = 0; ((entry) = (__typeof__(entry))((spare) <= (id) ? idr_get_next_ul(idr, &(id)) : NULL)) != NULL; \
	     (spare) = (id), ++(id))
#define idr_for_each_entry_continue(idr, entry, id) \
	for (; ((entry) = (__typeof__(entry))idr_get_next(idr, &(id))) != NULL; ++(id))

/* ---- Numbers alone, a word for each; with a lock of their own ------------------------------------------------------ */

struct ida {
	struct xarray entries;
};

#define IDA_INIT(name) { XARRAY_INIT((name).entries, XA_FLAGS_ALLOC) }
#define DEFINE_IDA(name) struct ida name = IDA_INIT(name)

static inline void ida_init(struct ida *ida)
{
	xa_init_flags(&ida->entries, XA_FLAGS_ALLOC);
}

static inline int ida_alloc_range(struct ida *ida, unsigned min, unsigned max, gfp_t flags)
{
	const struct xa_limit limit = XA_LIMIT(min, max > INT_MAX ? INT_MAX : max);
	u32 id = 0;
	int error = limit.min > limit.max ? -EBUSY : xa_alloc(&ida->entries, &id, xa_mk_value(0), limit, flags);

	return error ? (error == -EBUSY ? -ENOSPC : error) : (int)id;
}

static inline int ida_alloc(struct ida *ida, gfp_t flags) { return ida_alloc_range(ida, 0, INT_MAX, flags); }
static inline int ida_alloc_min(struct ida *ida, unsigned min, gfp_t flags) { return ida_alloc_range(ida, min, INT_MAX, flags); }
static inline int ida_alloc_max(struct ida *ida, unsigned max, gfp_t flags) { return ida_alloc_range(ida, 0, max, flags); }
static inline bool ida_is_empty(const struct ida *ida) { return xa_empty(&ida->entries); }
static inline void ida_destroy(struct ida *ida) { xa_destroy(&ida->entries); }

static inline void ida_free(struct ida *ida, unsigned id)
{
	WARN(!xa_erase(&ida->entries, id), "ida_free called for id=%u which is not allocated.\n", id);
}

#define ida_simple_get(ida, start, end, flags) ida_alloc_range(ida, start, (end) ? (unsigned)(end) - 1 : INT_MAX, flags)
#define ida_simple_remove(ida, id) ida_free(ida, id)

#endif
