/* <linux/xarray.h> for kernel code that is compiled into a program: pointers by number, in a tree of tables (library/xarray.c). */
#ifndef SLABYARD_KERNEL_LINUX_XARRAY_H
#define SLABYARD_KERNEL_LINUX_XARRAY_H

#pragma GCC system_header

#include "err.h"
#include "kernel.h"
#include "rcupdate.h"
#include "spinlock.h"
#include "types.h"

struct xarray {
	spinlock_t xa_lock;
	gfp_t xa_flags;
	void *xa_head;
};

struct xa_limit {
	u32 max, min;
};

typedef unsigned xa_mark_t;

#define XA_MARK_0 ((xa_mark_t)0)
#define XA_MARK_1 ((xa_mark_t)1)
#define XA_MARK_2 ((xa_mark_t)2)
#define XA_PRESENT ((xa_mark_t)8)
#define XA_MARK_MAX XA_MARK_2
#define XA_FLAGS_LOCK_IRQ ((gfp_t)0)
#define XA_FLAGS_LOCK_BH ((gfp_t)0)
#define XA_FLAGS_ACCOUNT ((gfp_t)0)
#define XA_FLAGS_ALLOC ((gfp_t)4)
#define XA_FLAGS_ALLOC1 ((gfp_t)12)
#define XA_LIMIT(least, most) (struct xa_limit) { .max = (most), .min = (least) }
#define xa_limit_32b XA_LIMIT(0, UINT_MAX)
#define xa_limit_31b XA_LIMIT(0, INT_MAX)
#define xa_limit_16b XA_LIMIT(0, USHRT_MAX)

#define XARRAY_INIT(name, flags) { __SPIN_LOCK_UNLOCKED((name).xa_lock), (flags), NULL }
#define DEFINE_XARRAY_FLAGS(name, flags) struct xarray name = XARRAY_INIT(name, flags)
#define DEFINE_XARRAY(name) DEFINE_XARRAY_FLAGS(name, 0)
#define DEFINE_XARRAY_ALLOC(name) DEFINE_XARRAY_FLAGS(name, XA_FLAGS_ALLOC)
#define DEFINE_XARRAY_ALLOC1(name) DEFINE_XARRAY_FLAGS(name, XA_FLAGS_ALLOC1)

/* What no pointer is: an error, and a place that is taken and holds nothing. */
#define sy__xa_internal(number) ((void *)(((unsigned long)(number) << 2) | 2))
#define XA_ERROR(error) sy__xa_internal(error)
#define XA_ZERO_ENTRY sy__xa_internal(257)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* With the lock held, but for the last five. */
void *sy__xa_store(struct xarray *, unsigned long index, void *entry, gfp_t);
void sy__xa_mark(struct xarray *, unsigned long index, xa_mark_t, bool set);
bool sy__xa_find_free(struct xarray *, unsigned long *index, unsigned long max);
void sy__xa_destroy(struct xarray *);
void *sy__xa_get(struct xarray *, unsigned long index);
bool sy__xa_marked_at(struct xarray *, unsigned long index, xa_mark_t);
void *sy__xa_next(struct xarray *, unsigned long *index, unsigned long max, xa_mark_t);
bool sy__xa_marked(struct xarray *, xa_mark_t);
int sy__xa_alloc(struct xarray *, u32 *id, void *entry, struct xa_limit, gfp_t);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void *xa_mk_value(unsigned long value) { return (void *)((value << 1) | 1); }
static inline unsigned long xa_to_value(const void *entry) { return (unsigned long)entry >> 1; }
static inline bool xa_is_value(const void *entry) { return (unsigned long)entry & 1; }
static inline bool xa_is_zero(const void *entry) { return entry == XA_ZERO_ENTRY; }
static inline void *xa_tag_pointer(void *pointer, unsigned long tag) { return (void *)((unsigned long)pointer | tag); }
static inline void *xa_untag_pointer(void *entry) { return (void *)((unsigned long)entry & ~3UL); }
static inline unsigned xa_pointer_tag(void *entry) { return (unsigned long)entry & 3UL; }

static inline bool xa_is_err(const void *entry)
{
	return ((unsigned long)entry & 3) == 2 && (unsigned long)entry >= (unsigned long)XA_ERROR(-MAX_ERRNO);
}

static inline int xa_err(void *entry)
{
	return xa_is_err(entry) ? (int)((long)entry >> 2) : 0;
}

static inline void xa_init_flags(struct xarray *xa, gfp_t flags)
{
	spin_lock_init(&xa->xa_lock);
	xa->xa_flags = flags;
	xa->xa_head = NULL;
}

static inline void xa_init(struct xarray *xa)
{
	xa_init_flags(xa, 0);
}

#define xa_trylock(xa) spin_trylock(&(xa)->xa_lock)
#define xa_lock(xa) spin_lock(&(xa)->xa_lock)
#define xa_unlock(xa) spin_unlock(&(xa)->xa_lock)
#define xa_lock_bh(xa) spin_lock_bh(&(xa)->xa_lock)
#define xa_unlock_bh(xa) spin_unlock_bh(&(xa)->xa_lock)
#define xa_lock_irq(xa) spin_lock_irq(&(xa)->xa_lock)
#define xa_unlock_irq(xa) spin_unlock_irq(&(xa)->xa_lock)
#define xa_lock_irqsave(xa, flags) spin_lock_irqsave(&(xa)->xa_lock, flags)
#define xa_unlock_irqrestore(xa, flags) spin_unlock_irqrestore(&(xa)->xa_lock, flags)

static inline bool xa_empty(const struct xarray *xa)
{
	return READ_ONCE(xa->xa_head) == NULL;
}

/* A place that is only taken reads as NULL. */
static inline void *sy__xa_seen(void *entry)
{
	return xa_is_zero(entry) ? NULL : entry;
}

static inline void *xa_load(struct xarray *xa, unsigned long index)
{
	return sy__xa_seen(sy__xa_get(xa, index));
}

static inline bool xa_get_mark(struct xarray *xa, unsigned long index, xa_mark_t mark) { return sy__xa_marked_at(xa, index, mark); }
static inline bool xa_marked(const struct xarray *xa, xa_mark_t mark) { return sy__xa_marked((struct xarray *)(uintptr_t)xa, mark); }

/* ---- With the lock held; the flags may wait nevertheless --------------------------------------------------------- */

/* What was there; or an error, see xa_err. */
static inline void *__xa_store(struct xarray *xa, unsigned long index, void *entry, gfp_t flags)
{
	return sy__xa_seen(sy__xa_store(xa, index, !entry && xa->xa_flags & XA_FLAGS_ALLOC ? XA_ZERO_ENTRY : entry, flags));
}

static inline void *__xa_erase(struct xarray *xa, unsigned long index)
{
	return sy__xa_seen(sy__xa_store(xa, index, NULL, 0));
}

/* Where nothing stands; a place that is only taken is something. -EBUSY, -ENOMEM. */
static inline int __must_check __xa_insert(struct xarray *xa, unsigned long index, void *entry, gfp_t flags)
{
	return sy__xa_get(xa, index) ? -EBUSY : xa_err(sy__xa_store(xa, index, entry ? entry : XA_ZERO_ENTRY, flags));
}

static inline void *__xa_cmpxchg(struct xarray *xa, unsigned long index, void *old, void *entry, gfp_t flags)
{
	void *is = sy__xa_seen(sy__xa_get(xa, index)), *was = is == old ? sy__xa_store(xa, index, entry, flags) : is;

	return xa_is_err(was) ? was : is;
}

/* In the first free place within the limits, told by *id. -EBUSY: there is none. */
static inline int __must_check __xa_alloc(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, gfp_t flags)
{
	return sy__xa_alloc(xa, id, entry, limit, flags);
}

/* From *next on, and then from the start: 1. */
static inline int __xa_alloc_cyclic(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, u32 *next, gfp_t flags)
{
	const struct xa_limit rest = XA_LIMIT(*next > limit.min ? *next : limit.min, limit.max);
	int error = rest.min > rest.max ? -EBUSY : __xa_alloc(xa, id, entry, rest, flags), wrapped = 0;

	if (error == -EBUSY && rest.min > limit.min) {
		error = __xa_alloc(xa, id, entry, limit, flags);
		wrapped = 1;
	}
	if (!error)
		*next = *id + 1;
	return error ? error : wrapped;
}

#define __xa_set_mark(xa, index, mark) sy__xa_mark(xa, index, mark, true)
#define __xa_clear_mark(xa, index, mark) sy__xa_mark(xa, index, mark, false)

/* ---- That take the lock ------------------------------------------------------------------------------------------- */

#define SY__XA_LOCKED(type, xa, call) \
	type sy__result; \
	xa_lock(xa); \
	sy__result = call; \
	xa_unlock(xa); \
	return sy__result

static inline void *xa_store(struct xarray *xa, unsigned long index, void *entry, gfp_t flags)
{
	SY__XA_LOCKED(void *, xa, __xa_store(xa, index, entry, flags));
}

static inline void *xa_erase(struct xarray *xa, unsigned long index)
{
	SY__XA_LOCKED(void *, xa, __xa_erase(xa, index));
}

static inline int __must_check xa_insert(struct xarray *xa, unsigned long index, void *entry, gfp_t flags)
{
	SY__XA_LOCKED(int, xa, __xa_insert(xa, index, entry, flags));
}

static inline void *xa_cmpxchg(struct xarray *xa, unsigned long index, void *old, void *entry, gfp_t flags)
{
	SY__XA_LOCKED(void *, xa, __xa_cmpxchg(xa, index, old, entry, flags));
}

static inline int __must_check xa_alloc(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, gfp_t flags)
{
	SY__XA_LOCKED(int, xa, __xa_alloc(xa, id, entry, limit, flags));
}

static inline int xa_alloc_cyclic(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, u32 *next, gfp_t flags)
{
	SY__XA_LOCKED(int, xa, __xa_alloc_cyclic(xa, id, entry, limit, next, flags));
}

/* A place that a store without memory will find. */
static inline int __must_check xa_reserve(struct xarray *xa, unsigned long index, gfp_t flags)
{
	SY__XA_LOCKED(int, xa, sy__xa_get(xa, index) ? 0 : xa_err(sy__xa_store(xa, index, XA_ZERO_ENTRY, flags)));
}

static inline void xa_release(struct xarray *xa, unsigned long index)
{
	xa_lock(xa);
	if (xa_is_zero(sy__xa_get(xa, index)))
		sy__xa_store(xa, index, NULL, 0);
	xa_unlock(xa);
}

static inline void xa_set_mark(struct xarray *xa, unsigned long index, xa_mark_t mark)
{
	xa_lock(xa);
	__xa_set_mark(xa, index, mark);
	xa_unlock(xa);
}

static inline void xa_clear_mark(struct xarray *xa, unsigned long index, xa_mark_t mark)
{
	xa_lock(xa);
	__xa_clear_mark(xa, index, mark);
	xa_unlock(xa);
}

/* What the entries point to is the caller's. */
static inline void xa_destroy(struct xarray *xa)
{
	xa_lock(xa);
	sy__xa_destroy(xa);
	xa_unlock(xa);
}

#define xa_store_bh(...) xa_store(__VA_ARGS__)
#define xa_store_irq(...) xa_store(__VA_ARGS__)
#define xa_erase_bh(...) xa_erase(__VA_ARGS__)
#define xa_erase_irq(...) xa_erase(__VA_ARGS__)
#define xa_insert_bh(...) xa_insert(__VA_ARGS__)
#define xa_insert_irq(...) xa_insert(__VA_ARGS__)
#define xa_alloc_bh(...) xa_alloc(__VA_ARGS__)
#define xa_alloc_irq(...) xa_alloc(__VA_ARGS__)
#define xa_alloc_cyclic_irq(...) xa_alloc_cyclic(__VA_ARGS__)

/* ---- Several; what comes in or goes away on the way may be seen or not -------------------------------------------- */

/* The first from *index on that has the mark, or with XA_PRESENT any; NULL: none up to max. */
static inline void *xa_find(struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t mark)
{
	return sy__xa_next(xa, index, max, mark);
}

static inline void *xa_find_after(struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t mark)
{
	if (*index >= max)
		return NULL;
	++*index;
	return sy__xa_next(xa, index, max, mark);
}

static inline unsigned xa_extract(struct xarray *xa, void **into, unsigned long start, unsigned long max, unsigned count, xa_mark_t mark)
{
	unsigned found = 0;
	void *entry = count ? xa_find(xa, &start, max, mark) : NULL;

	while (entry) {
		into[found++] = entry;
		entry = found < count ? xa_find_after(xa, &start, max, mark) : NULL;
	}
	return found;
}

#define xa_for_each_range(xa, index, entry, start, last) \
	for ((index) = (start), (entry) = (__typeof__(entry))xa_find(xa, &(index), last, XA_PRESENT); (entry); \
	     (entry) = (__typeof__(entry))xa_find_after(xa, &(index), last, XA_PRESENT))
#define xa_for_each_start(xa, index, entry, start) xa_for_each_range(xa, index, entry, start, ULONG_MAX)
#define xa_for_each(xa, index, entry) xa_for_each_start(xa, index, entry, 0)
#define xa_for_each_marked(xa, index, entry, mark) \
	for ((index) = 0, (entry) = (__typeof__(entry))xa_find(xa, &(index), ULONG_MAX, mark); (entry); \
	     (entry) = (__typeof__(entry))xa_find_after(xa, &(index), ULONG_MAX, mark))

/* ---- A place in one, with the lock held, or of readers ------------------------------------------------------------- */

/* An error stays until the place is set anew, or xas_nomem takes it away. Once it was read or written, the next one is behind it. */
struct xa_state {
	struct xarray *xa;
	unsigned long xa_index;
	int sy__error;
	unsigned sy__tries; /* of xas_nomem for one entry */
	bool sy__read, sy__past;
};

#define SY__XAS_TRIES 10
#define SY__XA_STATE(array, index) { (array), (index), 0, 0, false, false }
#define XA_STATE(name, array, index) struct xa_state name = SY__XA_STATE(array, index)

static inline int xas_error(const struct xa_state *xas) { return xas->sy__error; }
static inline bool xas_invalid(const struct xa_state *xas) { return xas->sy__error || xas->sy__past; }
static inline bool xas_valid(const struct xa_state *xas) { return !xas_invalid(xas); }
static inline void xas_set_err(struct xa_state *xas, long error) { xas->sy__error = (int)error; }
static inline bool xas_retry(struct xa_state *xas, const void *entry) { return xas ? xa_is_zero(entry) : false; }

static inline void xas_reset(struct xa_state *xas)
{
	xas->sy__error = 0;
	xas->sy__read = xas->sy__past = false;
}

static inline void xas_set(struct xa_state *xas, unsigned long index)
{
	xas->xa_index = index;
	xas_reset(xas);
}

/* From the next one on, with the lock given up in between. */
static inline void xas_pause(struct xa_state *xas)
{
	if (xas->sy__read && xas->xa_index == ULONG_MAX)
		xas->sy__past = true;
	else
		xas->xa_index += xas->sy__read;
	xas->sy__read = false;
}

/* What is there; NULL after an error. */
static inline void *xas_load(struct xa_state *xas)
{
	xas->sy__read = true;
	return xas->sy__error ? NULL : sy__xa_get(xas->xa, xas->xa_index);
}

#define xas_reload(xas) xas_load(xas)

/* What was there; nothing happens after an error. */
static inline void *xas_store(struct xa_state *xas, void *entry)
{
	void *was;

	if (xas->sy__error)
		return NULL;
	was = sy__xa_store(xas->xa, xas->xa_index, entry, GFP_NOWAIT);
	xas->sy__read = true;
	xas->sy__error = xa_err(was);
	if (xas->sy__error)
		return NULL;
	xas->sy__tries = 0;
	return was;
}

/* True: there was no memory, but with these flags some has been found: once more. Without the lock, which a shrinker may take. */
static inline bool xas_nomem(struct xa_state *xas, gfp_t flags)
{
	void *found;

	if (xas->sy__error != -ENOMEM || xas->sy__tries++ == SY__XAS_TRIES)
		return false;
	found = kmalloc(2 * SY_PAGE_SIZE, flags); /* more than the tables of an entry */
	if (!found)
		return false;
	kfree(found);
	xas_reset(xas);
	return true;
}

/* The first up to max that has the mark, behind this place if it was read; NULL: none. Places that are only taken are left out. */
static inline void *xas_find_marked(struct xa_state *xas, unsigned long max, xa_mark_t mark)
{
	void *entry = NULL;

	if (xas_invalid(xas))
		return NULL;
	xas_pause(xas);
	if (xas->sy__past || xas->xa_index > max)
		return NULL;
	entry = sy__xa_next(xas->xa, &xas->xa_index, max, mark);
	xas->sy__read = entry != NULL;
	if (!entry)
		xas->xa_index = max;
	if (!entry && max == ULONG_MAX)
		xas->sy__past = true;
	else if (!entry)
		xas->xa_index++;
	return entry;
}

static inline void *xas_find(struct xa_state *xas, unsigned long max)
{
	return xas_find_marked(xas, max, XA_PRESENT);
}

#define xas_next_entry(xas, max) xas_find(xas, max)
#define xas_next_marked(xas, max, mark) xas_find_marked(xas, max, mark)

/* The one beside this place if it was read, else the one here; at the ends it goes round. */
static inline void *sy__xas_step(struct xa_state *xas, unsigned long by)
{
	if (xas->sy__error)
		return NULL;
	xas->xa_index += xas->sy__read || xas->sy__past ? by : 0;
	xas->sy__past = false;
	return xas_load(xas);
}

static inline void *xas_next(struct xa_state *xas) { return sy__xas_step(xas, 1); }
static inline void *xas_prev(struct xa_state *xas) { return sy__xas_step(xas, ~0UL); }
static inline bool xas_get_mark(const struct xa_state *xas, xa_mark_t mark) { return xa_get_mark(xas->xa, xas->xa_index, mark); }
static inline void xas_set_mark(const struct xa_state *xas, xa_mark_t mark) { sy__xa_mark(xas->xa, xas->xa_index, mark, true); }
static inline void xas_clear_mark(const struct xa_state *xas, xa_mark_t mark) { sy__xa_mark(xas->xa, xas->xa_index, mark, false); }

#define xas_for_each(xas, entry, max) \
	for ((entry) = (__typeof__(entry))xas_find(xas, max); (entry); (entry) = (__typeof__(entry))xas_next_entry(xas, max))
#define xas_for_each_marked(xas, entry, max, mark) \
	for ((entry) = (__typeof__(entry))xas_find_marked(xas, max, mark); (entry); \
	     (entry) = (__typeof__(entry))xas_next_marked(xas, max, mark))
#define xas_trylock(xas) xa_trylock((xas)->xa)
#define xas_lock(xas) xa_lock((xas)->xa)
#define xas_unlock(xas) xa_unlock((xas)->xa)
#define xas_lock_bh(xas) xa_lock_bh((xas)->xa)
#define xas_unlock_bh(xas) xa_unlock_bh((xas)->xa)
#define xas_lock_irq(xas) xa_lock_irq((xas)->xa)
#define xas_unlock_irq(xas) xa_unlock_irq((xas)->xa)
#define xas_lock_irqsave(xas, flags) xa_lock_irqsave((xas)->xa, flags)
#define xas_unlock_irqrestore(xas, flags) xa_unlock_irqrestore((xas)->xa, flags)

#endif
