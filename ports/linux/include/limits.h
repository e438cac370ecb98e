/* The core's, by the kernel's own constants: a kernel is compiled without a C library's headers. */
#ifndef SY_LINUX_LIMITS_H
#define SY_LINUX_LIMITS_H
#include <linux/limits.h>
#include <vdso/limits.h>
#ifndef CHAR_BIT
#define CHAR_BIT 8
#endif
#endif
