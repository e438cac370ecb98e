/* <linux/smp.h> for kernel code that is compiled into a program: each thread is a processor to itself, by a number from 0, up to NR_CPUS; threads beyond share. */
#ifndef SLABYARD_KERNEL_LINUX_SMP_H
#define SLABYARD_KERNEL_LINUX_SMP_H

#pragma GCC system_header

#include "preempt.h"

#define NR_CPUS 64
#define nr_cpu_ids NR_CPUS

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

unsigned sy__processor(void);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define smp_processor_id() sy__processor()
#define raw_smp_processor_id() sy__processor()
#define get_cpu() (preempt_disable(), sy__processor())
#define put_cpu() preempt_enable()
#define num_online_cpus() NR_CPUS
#define num_possible_cpus() NR_CPUS
#define cpu_online(cpu) ((void)(cpu), true)
#define cpu_possible(cpu) ((cpu) < NR_CPUS)
#define for_each_possible_cpu(cpu) for ((cpu) = 0; (cpu) < NR_CPUS; (cpu)++)
#define for_each_online_cpu(cpu) for_each_possible_cpu(cpu)
#define for_each_present_cpu(cpu) for_each_possible_cpu(cpu)

#endif
