/*
 * /proc/slabyard_check: whether every invariant of the heap holds, in a running kernel.
 *
 * Reading it runs the policy's own check, which walks all pages and slabs while the other CPUs wait. It says `sound`, or which
 * invariant is broken. Nothing else runs meanwhile, so it is for tests.
 *
 * What pages have free, for fill.c, which every kernel has.
 */
#include "port.h"

#include <linux/init.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/stop_machine.h>

static int check(void *context)
{
	const char **wrong = context;
	unsigned long flags;

	local_irq_save(flags);
	__this_cpu_write(sy__call.gfp, GFP_NOWAIT | __GFP_NOWARN);
	WRITE_ONCE(sy__everybody_waits, true);
	sy__linux_pages_count();
	*wrong = sy_heap_check(sy__linux_heap);
	WRITE_ONCE(sy__everybody_waits, false);
	local_irq_restore(flags);
	return 0;
}

/* Pages of slabs and their free bytes. False: the policy does not tell. Inexact while other CPUs work. */
bool sy__linux_unused(u64 *pages, u64 *bytes)
{
	unsigned long flags;

	if (!sy__linux_heap->policy->unused_bytes)
		return false;
	local_irq_save(flags);
	sy__linux_pages_count();
	*pages = sy__linux_heap->counters.slab_pages;
	*bytes = sy__linux_heap->policy->unused_bytes(sy__linux_heap);
	local_irq_restore(flags);
	return true;
}

static int show(struct seq_file *file, void *context)
{
	const char *wrong = NULL;

	stop_machine(check, &wrong, NULL);
	seq_printf(file, "%s\n", wrong ?: "sound");
	return 0;
}

static int __init create(void)
{
	proc_create_single("slabyard_check", 0400, NULL, show);
	return 0;
}
fs_initcall(create);
