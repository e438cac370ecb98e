/* <linux/fs.h> for kernel code that is compiled into a program: files as those see them who serve them. Nobody opens any but the program, by
 * the functions of their struct file_operations. */
#ifndef SLABYARD_KERNEL_LINUX_FS_H
#define SLABYARD_KERNEL_LINUX_FS_H

#pragma GCC system_header

#include "err.h"
#include "list.h"
#include "mutex.h"
#include "spinlock.h"
#include "string.h"
#include "types.h"

#include <stdio.h>

struct file;
struct module;
struct poll_table_struct;
struct vm_area_struct;

struct inode {
	umode_t i_mode;
	loff_t i_size;
	void *i_private; /* what the file was made with */
};

struct file_operations {
	struct module *owner;
	loff_t (*llseek)(struct file *, loff_t, int);
	ssize_t (*read)(struct file *, char *, size_t, loff_t *);
	ssize_t (*write)(struct file *, const char *, size_t, loff_t *);
	__poll_t (*poll)(struct file *, struct poll_table_struct *);
	long (*unlocked_ioctl)(struct file *, unsigned, unsigned long);
	long (*compat_ioctl)(struct file *, unsigned, unsigned long);
	int (*mmap)(struct file *, struct vm_area_struct *);
	int (*open)(struct inode *, struct file *);
	int (*flush)(struct file *, void *);
	int (*release)(struct inode *, struct file *);
	int (*fsync)(struct file *, loff_t, loff_t, int);
};

struct file {
	const struct file_operations *f_op;
	struct inode *f_inode;
	void *private_data;
	loff_t f_pos;
	unsigned f_flags, f_mode;
};

static inline struct inode *file_inode(const struct file *file)
{
	return file->f_inode;
}

/* What is at *place of that many bytes, which goes on; -EINVAL: there is no such place. */
static inline ssize_t simple_read_from_buffer(void *to, size_t count, loff_t *place, const void *from, size_t available)
{
	if (*place < 0)
		return -EINVAL;
	if ((size_t)*place >= available)
		return 0;
	if (count > available - (size_t)*place)
		count = available - (size_t)*place;
	memcpy(to, (const char *)from + *place, count);
	*place += (loff_t)count;
	return (ssize_t)count;
}

/* The same in the other direction; fewer where there is no more room. */
static inline ssize_t simple_write_to_buffer(void *to, size_t available, loff_t *place, const void *from, size_t count)
{
	if (*place < 0)
		return -EINVAL;
	if ((size_t)*place >= available)
		return 0;
	if (count > available - (size_t)*place)
		count = available - (size_t)*place;
	memcpy((char *)to + *place, from, count);
	*place += (loff_t)count;
	return (ssize_t)count;
}

static inline int simple_open(struct inode *inode, struct file *file)
{
	if (inode->i_private)
		file->private_data = inode->i_private;
	return 0;
}

/* From the beginning (SEEK_SET) or the place (SEEK_CUR). */
static inline loff_t no_seek_end_llseek(struct file *file, loff_t offset, int whence)
{
	loff_t place = whence == SEEK_CUR ? file->f_pos + offset : offset;

	if ((whence != SEEK_SET && whence != SEEK_CUR) || place < 0)
		return -EINVAL;
	return file->f_pos = place;
}

#define default_llseek no_seek_end_llseek

#endif
