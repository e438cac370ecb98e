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

/* How many of so many bytes there are from a place on; -EINVAL: there is no such place. */
static inline ssize_t sy__bytes_at(loff_t place, size_t count, size_t available)
{
	if (place < 0)
		return -EINVAL;
	if ((size_t)place >= available)
		return 0;
	return (ssize_t)(count < available - (size_t)place ? count : available - (size_t)place);
}

/* Copies what is at *place, which goes on; bytes, or an error. */
static inline ssize_t simple_read_from_buffer(void *to, size_t count, loff_t *place, const void *from, size_t available)
{
	ssize_t copied = sy__bytes_at(*place, count, available);

	if (copied > 0) {
		memcpy(to, (const char *)from + *place, (size_t)copied);
		*place += copied;
	}
	return copied;
}

static inline ssize_t simple_write_to_buffer(void *to, size_t available, loff_t *place, const void *from, size_t count)
{
	ssize_t copied = sy__bytes_at(*place, count, available);

	if (copied > 0) {
		memcpy((char *)to + *place, from, (size_t)copied);
		*place += copied;
	}
	return copied;
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
