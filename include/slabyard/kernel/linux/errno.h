/* <linux/errno.h> for kernel code that is compiled into a program. The C library's <errno.h> reads it too, in place of the system's. */
#ifndef SLABYARD_KERNEL_LINUX_ERRNO_H
#define SLABYARD_KERNEL_LINUX_ERRNO_H

#pragma GCC system_header

#include <asm/errno.h>

/* What a kernel has for itself. */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ENOIOCTLCMD 515
#define EPROBE_DEFER 517
#define ENOTSUPP 524
#define EBADHANDLE 521
#define ENOTSYNC 522
#define ETOOSMALL 525

#endif
