/* <linux/kfifo.h> for kernel code that is compiled into a program: rings of a power of two of elements, for one who puts in and one who takes out. */
#ifndef SLABYARD_KERNEL_LINUX_KFIFO_H
#define SLABYARD_KERNEL_LINUX_KFIFO_H

#pragma GCC system_header

#include "atomic.h"
#include "err.h"
#include "kernel.h"
#include "slab.h"
#include "spinlock.h"

/* Counts of elements that came in and went out. */
struct sy__kfifo {
	unsigned in, out, mask, element;
	void *data;
};

/* Of bytes, with memory of kfifo_alloc or kfifo_init. */
struct kfifo {
	struct sy__kfifo ring;
	unsigned char *type;
};

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

int sy__kfifo_alloc(struct sy__kfifo *, unsigned elements, size_t element, gfp_t);
int sy__kfifo_init(struct sy__kfifo *, void *data, unsigned bytes, size_t element);
void sy__kfifo_free(struct sy__kfifo *);
unsigned sy__kfifo_in(struct sy__kfifo *, const void *from, unsigned elements);
unsigned sy__kfifo_peek(const struct sy__kfifo *, void *to, unsigned elements);
unsigned sy__kfifo_out(struct sy__kfifo *, void *to, unsigned elements);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define DECLARE_KFIFO_PTR(name, element_type) struct { struct sy__kfifo ring; element_type *type; } name
#define DECLARE_KFIFO(name, element_type, elements) \
	struct { struct sy__kfifo ring; element_type *type; element_type storage[elements]; } name
#define DEFINE_KFIFO(name, element_type, elements) \
	DECLARE_KFIFO(name, element_type, elements) = { \
		{ 0, 0, (elements) - 1 + BUILD_BUG_ON_ZERO((elements) & ((elements) - 1)), sizeof(element_type), name.storage }, NULL, { 0 } \
	}
#define INIT_KFIFO(name) ((void)sy__kfifo_init(&(name).ring, (name).storage, sizeof((name).storage), sizeof(*(name).type)))

/* 0, -ENOMEM, -EINVAL. The number of elements is rounded up, that of bytes down to a power of two of elements. */
#define kfifo_alloc(fifo, elements, flags) sy__kfifo_alloc(&(fifo)->ring, elements, sizeof(*(fifo)->type), flags)
#define kfifo_init(fifo, data, bytes) sy__kfifo_init(&(fifo)->ring, data, bytes, sizeof(*(fifo)->type))
#define kfifo_free(fifo) sy__kfifo_free(&(fifo)->ring)
#define kfifo_initialized(fifo) ((fifo)->ring.data != NULL)
#define kfifo_esize(fifo) ((fifo)->ring.element)
#define kfifo_recsize(fifo) 0U
#define kfifo_size(fifo) ((fifo)->ring.mask + 1)
#define kfifo_reset(fifo) ((void)((fifo)->ring.in = (fifo)->ring.out = 0))
#define kfifo_reset_out(fifo) ((void)((fifo)->ring.out = (fifo)->ring.in))
#define kfifo_len(fifo) (smp_load_acquire(&(fifo)->ring.in) - smp_load_acquire(&(fifo)->ring.out))
#define kfifo_avail(fifo) (kfifo_size(fifo) - kfifo_len(fifo))
#define kfifo_is_empty(fifo) (kfifo_len(fifo) == 0)
#define kfifo_is_full(fifo) (kfifo_len(fifo) > (fifo)->ring.mask)
#define kfifo_is_empty_spinlocked(fifo, lock) SY__KFIFO_LOCKED(lock, kfifo_is_empty(fifo))

/* Elements that there was room for, or that there were. */
#define kfifo_put(fifo, value) \
	__extension__ ({ \
		__typeof__(*(fifo)->type) sy__value = (value); \
		sy__kfifo_in(&(fifo)->ring, &sy__value, 1); \
	})
#define SY__KFIFO_OF(fifo, pointer) __extension__ ({ __typeof__((fifo)->type) sy__to = (pointer); sy__to; })
#define kfifo_get(fifo, into) sy__kfifo_out(&(fifo)->ring, SY__KFIFO_OF(fifo, into), 1)
#define kfifo_peek(fifo, into) sy__kfifo_peek(&(fifo)->ring, SY__KFIFO_OF(fifo, into), 1)
#define kfifo_in(fifo, from, elements) sy__kfifo_in(&(fifo)->ring, from, elements)
#define kfifo_out(fifo, into, elements) sy__kfifo_out(&(fifo)->ring, into, elements)
#define kfifo_out_peek(fifo, into, elements) sy__kfifo_peek(&(fifo)->ring, into, elements)
#define kfifo_skip(fifo) smp_store_release(&(fifo)->ring.out, (fifo)->ring.out + 1)
#define SY__KFIFO_LOCKED(lock, call) \
	__extension__ ({ \
		__typeof__(call) sy__result; \
		spin_lock(lock); \
		sy__result = (call); \
		spin_unlock(lock); \
		sy__result; \
	})
#define kfifo_in_spinlocked(fifo, from, elements, lock) SY__KFIFO_LOCKED(lock, kfifo_in(fifo, from, elements))
#define kfifo_out_spinlocked(fifo, into, elements, lock) SY__KFIFO_LOCKED(lock, kfifo_out(fifo, into, elements))
#define kfifo_in_locked(fifo, from, elements, lock) kfifo_in_spinlocked(fifo, from, elements, lock)
#define kfifo_out_locked(fifo, into, elements, lock) kfifo_out_spinlocked(fifo, into, elements, lock)

#endif
