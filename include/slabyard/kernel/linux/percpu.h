/* <linux/percpu.h> for kernel code that is compiled into a program: a variable for each processor, which are threads (smp.h), a line of the processor's cache apart. */
#ifndef SLABYARD_KERNEL_LINUX_PERCPU_H
#define SLABYARD_KERNEL_LINUX_PERCPU_H

#pragma GCC system_header

#include "atomic.h"
#include "cache.h"
#include "slab.h"
#include "smp.h"

/* The variable is that of the first processor, and the address of those of all. */
#define SY__PER_CPU(type) union { __typeof__(type) of; char line[(sizeof(type) + 63) & ~(size_t)63]; }
#define DECLARE_PER_CPU(type, name) extern SY__PER_CPU(type) sy__percpu_##name[NR_CPUS]
#define DEFINE_PER_CPU(type, name) SY__PER_CPU(type) sy__percpu_##name[NR_CPUS] __aligned(64)
#define DEFINE_PER_CPU_ALIGNED(type, name) DEFINE_PER_CPU(type, name)
#define DEFINE_PER_CPU_SHARED_ALIGNED(type, name) DEFINE_PER_CPU(type, name)
#define per_cpu(name, cpu) (sy__percpu_##name[cpu].of)
#define __get_cpu_var(name) per_cpu(name, smp_processor_id())
#define get_cpu_var(name) __get_cpu_var(name)
#define put_cpu_var(name) ((void)0)

/* Those of alloc_percpu. NULL: no memory. */
#define alloc_percpu(type) ((__typeof__(type) *)sy__percpu_alloc(sizeof(type), GFP_KERNEL))
#define alloc_percpu_gfp(type, flags) ((__typeof__(type) *)sy__percpu_alloc(sizeof(type), flags))
#define __alloc_percpu(size, align) sy__percpu_alloc(size, GFP_KERNEL)
#define per_cpu_ptr(pointer, cpu) \
	((__typeof__(pointer))((char *)(pointer) + ((sizeof(*(pointer)) + 63) & ~(size_t)63) * (size_t)(cpu)))
#define this_cpu_ptr(pointer) per_cpu_ptr(pointer, smp_processor_id())
#define raw_cpu_ptr(pointer) this_cpu_ptr(pointer)
#define get_cpu_ptr(pointer) this_cpu_ptr(pointer)
#define put_cpu_ptr(pointer) ((void)(pointer))
#define SY__PERCPU_HERE(member) (this_cpu_ptr(&(member)))

static inline void *sy__percpu_alloc(size_t size, gfp_t flags)
{
	return kvmalloc(((size + 63) & ~(size_t)63) * NR_CPUS, flags | __GFP_ZERO);
}

static inline void free_percpu(const void *pointer)
{
	kvfree(pointer);
}

/* Of *pointer, where that is a number of alloc_percpu; as threads beyond NR_CPUS share, they are atomic. */
#define this_cpu_add(number, by) ((void)__atomic_fetch_add(this_cpu_ptr(&(number)), by, __ATOMIC_RELAXED))
#define this_cpu_sub(number, by) ((void)__atomic_fetch_sub(this_cpu_ptr(&(number)), by, __ATOMIC_RELAXED))
#define this_cpu_inc(number) this_cpu_add(number, 1)
#define this_cpu_dec(number) this_cpu_sub(number, 1)
#define this_cpu_read(number) __atomic_load_n(this_cpu_ptr(&(number)), __ATOMIC_RELAXED)
#define this_cpu_write(number, value) __atomic_store_n(this_cpu_ptr(&(number)), value, __ATOMIC_RELAXED)

#endif
