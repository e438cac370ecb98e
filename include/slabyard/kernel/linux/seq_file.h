/* <linux/seq_file.h> for kernel code that is compiled into a program: text that is written piece by piece, and grows. */
#ifndef SLABYARD_KERNEL_LINUX_SEQ_FILE_H
#define SLABYARD_KERNEL_LINUX_SEQ_FILE_H

#pragma GCC system_header

#include "slab.h"
#include "string.h"

/* A text of the caller's own: zeroed, or with memory of kmalloc; kfree(buf) at the end. What has no memory is left out, and overflowed set. */
struct seq_file {
	char *buf;
	size_t size, count;
	bool overflowed;
#ifndef __cplusplus /* where it is no name */
	void *private;
#endif
};

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

int sy__seq_write(struct seq_file *, const void *text, size_t length);
void sy__seq_printf(struct seq_file *, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define seq_printf(file, ...) sy__seq_printf(file, __VA_ARGS__)
#define seq_has_overflowed(file) ((file)->overflowed)

static inline int seq_write(struct seq_file *file, const void *text, size_t length) { return sy__seq_write(file, text, length); }
static inline void seq_puts(struct seq_file *file, const char *text) { sy__seq_write(file, text, strlen(text)); }
static inline void seq_putc(struct seq_file *file, char character) { sy__seq_write(file, &character, 1); }

#endif
