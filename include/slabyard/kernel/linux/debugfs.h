/* <linux/debugfs.h> for kernel code that is compiled into a program: nobody mounts it, as in a kernel without CONFIG_DEBUG_FS. */
#ifndef SLABYARD_KERNEL_LINUX_DEBUGFS_H
#define SLABYARD_KERNEL_LINUX_DEBUGFS_H

#pragma GCC system_header

#include "fs.h"
#include "seq_file.h"

struct dentry;

static inline bool debugfs_initialized(void)
{
	return false;
}

static inline struct dentry *debugfs_create_dir(const char *name, struct dentry *parent)
{
	(void)name, (void)parent;
	return (struct dentry *)ERR_PTR(-ENODEV);
}

static inline struct dentry *debugfs_create_file(const char *name, umode_t mode, struct dentry *parent, void *data,
                                                 const struct file_operations *operations)
{
	(void)name, (void)mode, (void)parent, (void)data, (void)operations;
	return (struct dentry *)ERR_PTR(-ENODEV);
}

static inline struct dentry *debugfs_lookup(const char *name, struct dentry *parent)
{
	(void)name, (void)parent;
	return (struct dentry *)ERR_PTR(-ENODEV);
}

static inline void debugfs_remove(struct dentry *entry)
{
	(void)entry;
}

#define debugfs_create_file_unsafe(name, mode, parent, data, operations) debugfs_create_file(name, mode, parent, data, operations)
#define debugfs_remove_recursive(entry) debugfs_remove(entry)
#define debugfs_lookup_and_remove(name, parent) ((void)(name), (void)(parent))
#define debugfs_create_u8(name, mode, parent, value) ((void)(name), (void)(mode), (void)(parent), (void)(value))
#define debugfs_create_u16(name, mode, parent, value) debugfs_create_u8(name, mode, parent, value)
#define debugfs_create_u32(name, mode, parent, value) debugfs_create_u8(name, mode, parent, value)
#define debugfs_create_u64(name, mode, parent, value) debugfs_create_u8(name, mode, parent, value)
#define debugfs_create_x32(name, mode, parent, value) debugfs_create_u8(name, mode, parent, value)
#define debugfs_create_x64(name, mode, parent, value) debugfs_create_u8(name, mode, parent, value)
#define debugfs_create_ulong(name, mode, parent, value) debugfs_create_u8(name, mode, parent, value)
#define debugfs_create_size_t(name, mode, parent, value) debugfs_create_u8(name, mode, parent, value)
#define debugfs_create_atomic_t(name, mode, parent, value) debugfs_create_u8(name, mode, parent, value)
#define debugfs_create_bool(name, mode, parent, value) debugfs_create_u8(name, mode, parent, value)

#endif
