/*
 * <linux/percpu.h> for kernel code that is compiled into a program: a variable for each processor, which are threads (smp.h).
 * library/percpu.c says where they are.
 */
#ifndef SLABYARD_KERNEL_LINUX_PERCPU_H
#define SLABYARD_KERNEL_LINUX_PERCPU_H

#pragma GCC system_header

#include "atomic.h"
#include "cache.h"
#include "slab.h"
#include "smp.h"

/* The variable itself is that of processor 0, and the address by which all are found. Its initial value is that of each. */
#define SY__IN_PERCPU __attribute__((__section__("sy_percpu"), __aligned__(8)))
#define DECLARE_PER_CPU(type, name) extern SY__IN_PERCPU __typeof__(type) name
#define DEFINE_PER_CPU(type, name) SY__IN_PERCPU __typeof__(type) name
#define DECLARE_PER_CPU_ALIGNED(type, name) DECLARE_PER_CPU(type, name)
#define DEFINE_PER_CPU_ALIGNED(type, name) DEFINE_PER_CPU(type, name) __aligned(64)
#define DEFINE_PER_CPU_SHARED_ALIGNED(type, name) DEFINE_PER_CPU_ALIGNED(type, name)
#define DEFINE_PER_CPU_READ_MOSTLY(type, name) DEFINE_PER_CPU(type, name)

/* From what alloc_percpu gives, which is of processor 0, to that of the next processor; and the most that it gives. */
#define SY__PERCPU_UNIT 32768

#ifdef __cplusplus
extern "C" {
#endif

/* All variables of the program, or of the shared object. */
extern char __start_sy_percpu[] __attribute__((__weak__, __visibility__("hidden")));
extern char __stop_sy_percpu[] __attribute__((__weak__, __visibility__("hidden")));

#pragma GCC visibility push(default)

void *sy__percpu_alloc(size_t size, size_t align, gfp_t);
void sy__percpu_free(const void *);
void *sy__percpu_variable(char *start, size_t size, uintptr_t offset, unsigned cpu);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void *sy__percpu_at(uintptr_t address, unsigned cpu)
{
	uintptr_t offset = address - (uintptr_t)__start_sy_percpu, size = (uintptr_t)__stop_sy_percpu - (uintptr_t)__start_sy_percpu;

	if (offset < size)
		return sy__percpu_variable(__start_sy_percpu, size, offset, cpu);
	return (void *)(address + (uintptr_t)cpu * SY__PERCPU_UNIT);
}

#define per_cpu_ptr(pointer, cpu) ((__typeof__(*(pointer)) *)sy__percpu_at((uintptr_t)(pointer), (unsigned)(cpu)))
#define this_cpu_ptr(pointer) per_cpu_ptr(pointer, smp_processor_id())
#define raw_cpu_ptr(pointer) this_cpu_ptr(pointer)
#define get_cpu_ptr(pointer) (preempt_disable(), this_cpu_ptr(pointer))
#define put_cpu_ptr(pointer) ((void)(pointer), preempt_enable())
#define per_cpu(name, cpu) (*per_cpu_ptr(&(name), cpu))
#define __get_cpu_var(name) per_cpu(name, smp_processor_id())
#define get_cpu_var(name) (*get_cpu_ptr(&(name)))
#define put_cpu_var(name) put_cpu_ptr(&(name))

/* Zeroed. NULL: no memory, or more than SY__PERCPU_UNIT. */
#define alloc_percpu(type) alloc_percpu_gfp(type, GFP_KERNEL)
#define alloc_percpu_gfp(type, flags) ((__typeof__(type) *)sy__percpu_alloc(sizeof(type), __alignof__(type), flags))
#define __alloc_percpu(size, align) sy__percpu_alloc(size, align, GFP_KERNEL)
#define __alloc_percpu_gfp(size, align, flags) sy__percpu_alloc(size, align, flags)

static inline void free_percpu(const void *pointer)
{
	sy__percpu_free(pointer);
}

/* Of a variable, or of what alloc_percpu gave or its parts; as threads beyond NR_CPUS share, they are atomic. */
#define this_cpu_add(number, by) ((void)__atomic_fetch_add(this_cpu_ptr(&(number)), by, __ATOMIC_RELAXED))
#define this_cpu_sub(number, by) ((void)__atomic_fetch_sub(this_cpu_ptr(&(number)), by, __ATOMIC_RELAXED))
#define this_cpu_add_return(number, by) __atomic_add_fetch(this_cpu_ptr(&(number)), by, __ATOMIC_RELAXED)
#define this_cpu_inc(number) this_cpu_add(number, 1)
#define this_cpu_dec(number) this_cpu_sub(number, 1)
#define this_cpu_inc_return(number) this_cpu_add_return(number, 1)
#define this_cpu_dec_return(number) this_cpu_add_return(number, -1)
#define this_cpu_read(number) __atomic_load_n(this_cpu_ptr(&(number)), __ATOMIC_RELAXED)
#define this_cpu_write(number, value) __atomic_store_n(this_cpu_ptr(&(number)), value, __ATOMIC_RELAXED)
#define this_cpu_xchg(number, value) __atomic_exchange_n(this_cpu_ptr(&(number)), value, __ATOMIC_RELAXED)
#define this_cpu_sub_return(number, by) __atomic_sub_fetch(this_cpu_ptr(&(number)), by, __ATOMIC_RELAXED)
#define this_cpu_and(number, bits) ((void)__atomic_fetch_and(this_cpu_ptr(&(number)), bits, __ATOMIC_RELAXED))
#define this_cpu_or(number, bits) ((void)__atomic_fetch_or(this_cpu_ptr(&(number)), bits, __ATOMIC_RELAXED))
#define this_cpu_try_cmpxchg(number, old, value) \
	__atomic_compare_exchange_n(this_cpu_ptr(&(number)), old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define this_cpu_cmpxchg(number, old, value) \
	__extension__ ({ \
		__typeof__(number) sy__was = (old); \
		this_cpu_try_cmpxchg(number, &sy__was, value); \
		sy__was; \
	})
#define __this_cpu_add_return(number, by) this_cpu_add_return(number, by)
#define __this_cpu_xchg(number, value) this_cpu_xchg(number, value)
#define __this_cpu_cmpxchg(number, old, value) this_cpu_cmpxchg(number, old, value)
#define raw_cpu_add(number, by) this_cpu_add(number, by)
#define raw_cpu_inc(number) this_cpu_inc(number)
#define raw_cpu_dec(number) this_cpu_dec(number)
#define raw_cpu_read(number) this_cpu_read(number)
#define raw_cpu_write(number, value) this_cpu_write(number, value)
#define __this_cpu_add(number, by) this_cpu_add(number, by)
#define __this_cpu_sub(number, by) this_cpu_sub(number, by)
#define __this_cpu_inc(number) this_cpu_inc(number)
#define __this_cpu_dec(number) this_cpu_dec(number)
#define __this_cpu_read(number) this_cpu_read(number)
#define __this_cpu_write(number, value) this_cpu_write(number, value)

#endif
