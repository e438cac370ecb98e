/* The core's, by the kernel's own types: a kernel is compiled without a C library's headers. */
#ifndef SY_LINUX_STDBOOL_H
#define SY_LINUX_STDBOOL_H
#include <linux/types.h>
#endif
