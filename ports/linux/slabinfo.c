/*
 * /proc/slabinfo (slabinfo(5), version 2.1) of a kernel on slabyard.
 *
 * It lists the heap's caches, the newest first, as a replay's slabinfo does. Merged caches are listed once, under the oldest name.
 * Objects in per-CPU state count as active, as in Linux. Columns about slabs are 0 where caches share their pages.
 *
 * All counts of one opening are taken at one moment, while the other CPUs wait. So they add up.
 */
#include "port.h"

#include "core/list.h"

#include <linux/init.h>
#include <linux/mm.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/stop_machine.h>

struct row {
	char name[SY_NAME_BYTES];
	uint32_t size;
	struct sy_cache_counts counts;
};

struct table {
	unsigned room, count; /* count may be above room: the caches that there are */
	struct row rows[];
};

/* Runs while all other CPUs wait. */
static int fill(void *context)
{
	struct sy_heap *heap = sy__linux_heap;
	struct table *table = context;

	WRITE_ONCE(sy__everybody_waits, true);
	table->count = 0;
	for (struct sy_list *at = heap->caches.prev; at != &heap->caches; at = at->prev, table->count++) {
		struct sy_cache *cache = sy__entry(at, struct sy_cache, link);
		struct row *row = &table->rows[table->count];

		if (table->count >= table->room)
			continue;
		memcpy(row->name, cache->name, sizeof(row->name));
		row->size = cache->size;
		memset(&row->counts, 0, sizeof(row->counts));
		cache->policy->counts(cache, &row->counts);
	}
	WRITE_ONCE(sy__everybody_waits, false);
	return 0;
}

static void *start(struct seq_file *file, loff_t *position)
{
	struct table *table = file->private;

	return *position <= min(table->room, table->count) ? position : NULL;
}

static void *next(struct seq_file *file, void *at, loff_t *position)
{
	++*position;
	return start(file, position);
}

static void stop(struct seq_file *file, void *at)
{
}

static int show(struct seq_file *file, void *at)
{
	const struct table *table = file->private;
	loff_t number = *(loff_t *)at;
	const struct row *row = &table->rows[number - 1];
	const struct sy_cache_counts *counts = &row->counts;

	if (!number) {
		seq_puts(file, "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>"
		               " : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n");
		return 0;
	}
	seq_printf(file, "%-17s %6llu %6llu %6u %4u %4u : tunables %4u %4u %4u : slabdata %6llu %6llu %6llu\n", row->name,
	           counts->objects_in_use + counts->objects_cached, counts->objects, row->size, counts->slab_objects,
	           counts->slab_pages, counts->limit, counts->batchcount, counts->shared, counts->slabs - counts->idle_slabs,
	           counts->slabs, counts->objects_shared);
	return 0;
}

static const struct seq_operations rows = { .start = start, .next = next, .stop = stop, .show = show };

static int open(struct inode *inode, struct file *file)
{
	unsigned room = 256;
	struct table *table;
	int error;

	for (;;) {
		table = kvzalloc(struct_size(table, rows, room), GFP_KERNEL);
		if (!table)
			return -ENOMEM;
		table->room = room;
		stop_machine(fill, table, NULL);
		if (table->count <= room)
			break;
		room = table->count + 16;
		kvfree(table);
	}
	error = seq_open(file, &rows);
	if (error) {
		kvfree(table);
		return error;
	}
	((struct seq_file *)file->private_data)->private = table;
	return 0;
}

static int release(struct inode *inode, struct file *file)
{
	kvfree(((struct seq_file *)file->private_data)->private);
	return seq_release(inode, file);
}

static const struct proc_ops operations = {
	.proc_open = open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = release,
};

static int __init create(void)
{
	proc_create("slabinfo", 0400, NULL, &operations);
	return 0;
}
fs_initcall(create);
