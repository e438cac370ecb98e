/* <linux/numa.h> for kernel code that is compiled into a program: of one memory node. */
#ifndef SLABYARD_KERNEL_LINUX_NUMA_H
#define SLABYARD_KERNEL_LINUX_NUMA_H

#pragma GCC system_header

#include <slabyard/kmem.h>

#define MAX_NUMNODES 1
#define numa_node_id() 0
#define numa_mem_id() 0

#endif
