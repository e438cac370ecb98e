/* <linux/cache.h> for kernel code that is compiled into a program: lines of a processor's cache. */
#ifndef SLABYARD_KERNEL_LINUX_CACHE_H
#define SLABYARD_KERNEL_LINUX_CACHE_H

#pragma GCC system_header

#include "kernel.h"

#ifndef L1_CACHE_BYTES
#define L1_CACHE_SHIFT 6
#define L1_CACHE_BYTES (1 << L1_CACHE_SHIFT)
#endif
#define SMP_CACHE_BYTES L1_CACHE_BYTES
#define L1_CACHE_ALIGN(number) ALIGN(number, L1_CACHE_BYTES)
#define cache_line_size() L1_CACHE_BYTES
#define ____cacheline_aligned __aligned(L1_CACHE_BYTES)
#define ____cacheline_aligned_in_smp ____cacheline_aligned
#define __cacheline_aligned ____cacheline_aligned
#define __cacheline_aligned_in_smp ____cacheline_aligned

#endif
