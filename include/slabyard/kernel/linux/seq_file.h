/* <linux/seq_file.h> for kernel code that is compiled into a program: text that is written piece by piece, and grows; files that show such
 * (library/seq_file.c). */
#ifndef SLABYARD_KERNEL_LINUX_SEQ_FILE_H
#define SLABYARD_KERNEL_LINUX_SEQ_FILE_H

#pragma GCC system_header

#include "fs.h"
#include "slab.h"
#include "string.h"

#include <stdarg.h>

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
void *sy__seq_open_private(struct file *, const struct seq_operations *, size_t);
int sy__seq_release_private(struct inode *, struct file *);
void sy__seq_vprintf(struct seq_file *, const char *format, va_list) __attribute__((__format__(__printf__, 2, 0)));
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define seq_printf(file, ...) sy__seq_printf(file, __VA_ARGS__)
#define seq_vprintf(file, format, arguments) sy__seq_vprintf(file, format, arguments)
#define seq_has_overflowed(file) ((file)->overflowed)

static inline int seq_write(struct seq_file *file, const void *text, size_t length) { return sy__seq_write(file, text, length); }
static inline void seq_puts(struct seq_file *file, const char *text) { sy__seq_write(file, text, strlen(text)); }
static inline void seq_put_decimal_ull(struct seq_file *file, const char *before, unsigned long long number)
{
	seq_printf(file, "%s%llu", before ? before : "", number);
}

static inline void seq_put_decimal_ll(struct seq_file *file, const char *before, long long number)
{
	seq_printf(file, "%s%lld", before ? before : "", number);
}

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

/* The same with so many bytes, zeroed, in private, which seq_release_private frees. NULL: no memory. */
static inline void *__seq_open_private(struct file *file, const struct seq_operations *operations, int size)
{
	return sy__seq_open_private(file, operations, (size_t)size);
}

static inline int seq_open_private(struct file *file, const struct seq_operations *operations, int size)
{
	return __seq_open_private(file, operations, size) ? 0 : -ENOMEM;
}

#define seq_release_private sy__seq_release_private
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

/* With the head as the first of them. */
static inline struct list_head *seq_list_start_head(struct list_head *head, loff_t place)
{
	return place ? seq_list_start(head, place - 1) : head;
}

static inline struct hlist_node *seq_hlist_start(struct hlist_head *head, loff_t place)
{
	struct hlist_node *at;

	hlist_for_each(at, head)
		if (place-- == 0)
			return at;
	return NULL;
}

static inline struct hlist_node *seq_hlist_next(void *at, struct hlist_head *head, loff_t *place)
{
	++*place;
	return at == SEQ_START_TOKEN ? head->first : ((struct hlist_node *)at)->next;
}

#define DEFINE_SHOW_ATTRIBUTE(name) \
	static int name##_open(struct inode *inode, struct file *file) \
	{ \
		return single_open(file, name##_show, inode->i_private); \
	} \
	static const struct file_operations name##_fops = { \
		.owner = THIS_MODULE, .llseek = seq_lseek, .read = seq_read, .open = name##_open, .release = single_release, \
	}

/* For linux/proc_fs.h. */
#define DEFINE_PROC_SHOW_ATTRIBUTE(name) \
	static int name##_open(struct inode *inode, struct file *file) \
	{ \
		return single_open(file, name##_show, pde_data(inode)); \
	} \
	static const struct proc_ops name##_proc_ops = { \
		.proc_open = name##_open, .proc_read = seq_read, .proc_lseek = seq_lseek, .proc_release = single_release, \
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
