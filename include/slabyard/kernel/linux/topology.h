/* <linux/topology.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_TOPOLOGY_H
#define SLABYARD_KERNEL_LINUX_TOPOLOGY_H

#pragma GCC system_header

#include "numa.h"
#include "smp.h"

#endif
