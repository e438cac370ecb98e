/* <linux/proc_fs.h> for kernel code that is compiled into a program: there is none of it, as in a kernel without CONFIG_PROC_FS. */
#ifndef SLABYARD_KERNEL_LINUX_PROC_FS_H
#define SLABYARD_KERNEL_LINUX_PROC_FS_H

#pragma GCC system_header

#include "fs.h"
#include "seq_file.h"

struct proc_dir_entry;

struct proc_ops {
	unsigned proc_flags;
	int (*proc_open)(struct inode *, struct file *);
	ssize_t (*proc_read)(struct file *, char *, size_t, loff_t *);
	ssize_t (*proc_write)(struct file *, const char *, size_t, loff_t *);
	loff_t (*proc_lseek)(struct file *, loff_t, int);
	int (*proc_release)(struct inode *, struct file *);
	long (*proc_ioctl)(struct file *, unsigned, unsigned long);
};

/* What the file was made with. */
static inline void *pde_data(const struct inode *inode)
{
	return inode->i_private;
}

#define PDE_DATA(inode) pde_data(inode)
#define proc_mkdir(name, parent) ((void)(name), (void)(parent), (struct proc_dir_entry *)NULL)
#define proc_create(name, mode, parent, operations) \
	((void)(name), (void)(mode), (void)(parent), (void)(operations), (struct proc_dir_entry *)NULL)
#define proc_create_data(name, mode, parent, operations, data) ((void)(data), proc_create(name, mode, parent, operations))
#define proc_create_seq(name, mode, parent, operations) proc_create(name, mode, parent, operations)
#define proc_create_single(name, mode, parent, show) proc_create(name, mode, parent, show)
#define proc_create_single_data(name, mode, parent, show, data) proc_create_data(name, mode, parent, show, data)
#define proc_remove(entry) ((void)(entry))
#define remove_proc_entry(name, parent) ((void)(name), (void)(parent))

#endif
