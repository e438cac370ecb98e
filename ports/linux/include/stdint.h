/* The core's, by the kernel's own types: a kernel is compiled without a C library's headers. */
#ifndef SY_LINUX_STDINT_H
#define SY_LINUX_STDINT_H
#include <linux/limits.h>
#include <linux/types.h>
#define UINT16_MAX U16_MAX
#define UINT32_MAX U32_MAX
#define UINT64_MAX U64_MAX
#define INT32_MAX S32_MAX
#define INT64_MIN S64_MIN
#define INT64_MAX S64_MAX
#define UINT64_C(c) c##ULL
#ifndef UINTPTR_MAX
#define UINTPTR_MAX ULONG_MAX
#endif
#endif
