/* <linux/processor.h> for kernel code that is compiled into a program: waiting in a loop. */
#ifndef SLABYARD_KERNEL_LINUX_PROCESSOR_H
#define SLABYARD_KERNEL_LINUX_PROCESSOR_H

#pragma GCC system_header

/* Lets the processor's other thread go on meanwhile. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield" ::: "memory");
#else
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

#define spin_begin() ((void)0)
#define spin_cpu_relax() cpu_relax()
#define spin_end() ((void)0)
#define spin_until_cond(condition) \
	do { \
		while (!(condition)) \
			cpu_relax(); \
	} while (0)

#endif
