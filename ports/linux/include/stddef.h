/* The core's, by the kernel's own types: a kernel is compiled without a C library's headers. */
#ifndef SY_LINUX_STDDEF_H
#define SY_LINUX_STDDEF_H
#include <linux/stddef.h>
#include <linux/types.h>
#endif
