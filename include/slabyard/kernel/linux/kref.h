/* <linux/kref.h> for kernel code that is compiled into a program: references to an object, which the last one to go releases. */
#ifndef SLABYARD_KERNEL_LINUX_KREF_H
#define SLABYARD_KERNEL_LINUX_KREF_H

#pragma GCC system_header

#include "refcount.h"

struct kref {
	refcount_t refcount;
};

#define KREF_INIT(number) { REFCOUNT_INIT(number) }

static inline void kref_init(struct kref *kref)
{
	refcount_set(&kref->refcount, 1);
}

static inline unsigned kref_read(const struct kref *kref)
{
	return refcount_read(&kref->refcount);
}

static inline void kref_get(struct kref *kref)
{
	refcount_inc(&kref->refcount);
}

static inline int __must_check kref_get_unless_zero(struct kref *kref)
{
	return refcount_inc_not_zero(&kref->refcount);
}

/* 1: that was the last one. */
static inline int kref_put(struct kref *kref, void (*release)(struct kref *))
{
	if (!refcount_dec_and_test(&kref->refcount))
		return 0;
	release(kref);
	return 1;
}

#endif
