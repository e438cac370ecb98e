/* <linux/seq_file.h> for kernel code that is compiled into a program: text that is written piece by piece, and grows; files that show such
 * (library/seq_file.c). */
#ifndef SLABYARD_KERNEL_LINUX_SEQ_FILE_H
#define SLABYARD_KERNEL_LINUX_SEQ_FILE_H

#pragma GCC system_header

#include "fs.h"
#include "slab.h"
#include "string.h"

struct seq_file;

/* What shows one thing after the other. */
struct seq_operations {
	void *(*start)(struct seq_file *, loff_t *);
	void (*stop)(struct seq_file *, void *);
	void *(*next)(struct seq_file *, void *, loff_t *);
	int (*show)(struct seq_file *, void *);
};

/* A text of the caller's own: zeroed, or with memory of kmalloc; kfree(buf) at the end. What has no memory is left out, and overflowed set. */
struct seq_file {
	char *buf;
	size_t size, count;
	bool overflowed;
	bool shown; /* by seq_read */
	const struct seq_operations *op;
	int (*sy__show)(struct seq_file *, void *); /* of single_open */
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
int sy__seq_open(struct file *, const struct seq_operations *, int (*show)(struct seq_file *, void *), void *data);
ssize_t sy__seq_read(struct file *, char *to, size_t count, loff_t *place);
int sy__seq_release(struct inode *, struct file *);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define seq_printf(file, ...) sy__seq_printf(file, __VA_ARGS__)
#define seq_has_overflowed(file) ((file)->overflowed)

static inline int seq_write(struct seq_file *file, const void *text, size_t length) { return sy__seq_write(file, text, length); }
static inline void seq_puts(struct seq_file *file, const char *text) { sy__seq_write(file, text, strlen(text)); }
static inline void seq_putc(struct seq_file *file, char character) { sy__seq_write(file, &character, 1); }

#define SEQ_START_TOKEN ((void *)1)
#define SEQ_SKIP 1

/* Files whose private_data is a struct seq_file. -ENOMEM: no memory. What a file shows is made as a whole by its first read. */
static inline int seq_open(struct file *file, const struct seq_operations *operations)
{
	return sy__seq_open(file, operations, NULL, NULL);
}

static inline int single_open(struct file *file, int (*show)(struct seq_file *, void *), void *data)
{
	return sy__seq_open(file, NULL, show, data);
}

#define seq_read sy__seq_read
#define seq_lseek no_seek_end_llseek
#define seq_release sy__seq_release
#define single_release sy__seq_release

/* The element of a list at that place; NULL: it has fewer. And the next. */
static inline struct list_head *seq_list_start(struct list_head *head, loff_t place)
{
	struct list_head *at;

	list_for_each(at, head)
		if (place-- == 0)
			return at;
	return NULL;
}

static inline struct list_head *seq_list_next(void *at, struct list_head *head, loff_t *place)
{
	++*place;
	return ((struct list_head *)at)->next == head ? NULL : ((struct list_head *)at)->next;
}

#define DEFINE_SHOW_ATTRIBUTE(name) \
	static int name##_open(struct inode *inode, struct file *file) \
	{ \
		return single_open(file, name##_show, inode->i_private); \
	} \
	static const struct file_operations name##_fops = { \
		.owner = THIS_MODULE, .llseek = seq_lseek, .read = seq_read, .open = name##_open, .release = single_release, \
	}

#define DEFINE_SEQ_ATTRIBUTE(name) \
	static int name##_open(struct inode *inode, struct file *file) \
	{ \
		int error = seq_open(file, &name##_sops); \
		if (!error && inode->i_private) \
			((struct seq_file *)file->private_data)->private = inode->i_private; \
		return error; \
	} \
	static const struct file_operations name##_fops = { \
		.owner = THIS_MODULE, .llseek = seq_lseek, .read = seq_read, .open = name##_open, .release = seq_release, \
	}

#endif
