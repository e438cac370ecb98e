/*
 * A log of every call of the core, with slabyard.log=1 on the command line: what a replay needs to make the same calls again.
 *
 * A record has 32 bytes. It is written with interrupts off right behind the call, in one order for all CPUs. On one CPU that is the
 * order of the calls; on several it is so for each of them. Records are in blocks of pages of the log's own, so logging changes
 * only the kernel's free memory. The log takes at most half of all memory. Where that is full, or there is no memory for another
 * block, records are lost. They are counted, and the kernel's log says so once.
 *
 * /proc/slabyard_log shows the records that there were when it was opened, one to a line: nanoseconds, CPU, what was done and to
 * what. Caches and objects are known by their addresses:
 *
 * 	create CACHE SIZE ALIGN FLAGS CONSTRUCTED NAME    size in bytes; flags: enum sy_cache_flags
 * 	destroy CACHE        shrink CACHE
 * 	alloc CACHE OBJECT GFP NODE                       OBJECT 0: it failed, and may be tried again
 * 	free CACHE OBJECT
 * 	kmalloc BYTES OBJECT GFP NODE                     kfree OBJECT
 * 	grace ADDRESS        tick        give             the slab that was waiting, or a place in the object
 * 	pages FRAME ORDER NODE                            what the page allocator gave; FRAME -: nothing
 *
 * `pages` is no call. It tells what the CPU's next alloc or kmalloc got from the page allocator for slabs and large objects, in
 * order: the first page frame and the order. With its pages at the same places, a replay makes the same decisions where these
 * depend on addresses. Pages for the core's bookkeeping are not logged: a replay's structures may have another size.
 *
 * The last line is `end RECORDS LOST SLAB LARGE METADATA`: the numbers of records and of lost ones, and the pages that the heap held
 * when the log was opened. Bulk calls are logged as single ones. Allocations beyond the largest class are slab_common.c's, and
 * no calls of the core.
 */
#include "port.h"

#include <linux/init.h>
#include <linux/proc_fs.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>

struct record {
	uint64_t time; /* nanoseconds */
	uint64_t object;
	uint64_t subject; /* a cache, bytes */
	uint32_t gfp;
	uint16_t cpu;
	uint8_t operation;
	int8_t node;
};
static_assert(sizeof(struct record) == 32, "records are small");

/* What the log has of a cache's creation. */
struct creation {
	uint32_t size, align, flags;
	bool constructed;
	char name[SY_NAME_BYTES];
};

#define BLOCK_ORDER 3
#define BLOCK_RECORDS ((PAGE_SIZE << BLOCK_ORDER) / sizeof(struct record))
#define TABLE_ORDER 6
#define MOST_BLOCKS ((PAGE_SIZE << TABLE_ORDER) / sizeof(void *))

bool sy__log_is_on;

static struct {
	sy__lock_t lock;
	struct record **blocks; /* of BLOCK_RECORDS each, all full but the last */
	uint64_t count, lost;
	char *bump, *bump_end; /* for creations */
} logged;

static int __init turn_on(char *text)
{
	return kstrtobool(text ?: "1", &sy__log_is_on);
}
early_param("slabyard.log", turn_on);

static void *pages(unsigned order)
{
	struct page *page = alloc_pages(GFP_NOWAIT | __GFP_NOWARN | __GFP_ZERO, order);

	return page ? page_address(page) : NULL;
}

/* Blocks that the log may have. */
static uint64_t most_blocks(void)
{
	return min_t(uint64_t, MOST_BLOCKS, totalram_pages() / 2 >> BLOCK_ORDER);
}

/* Where the next record goes; NULL: it is lost. Under the lock. */
static struct record *room(void)
{
	uint64_t block = logged.count / BLOCK_RECORDS;

	if (!logged.blocks)
		logged.blocks = pages(TABLE_ORDER);
	if (!logged.blocks || block >= most_blocks())
		return NULL;
	if (!logged.blocks[block])
		logged.blocks[block] = pages(BLOCK_ORDER);
	return logged.blocks[block] ? &logged.blocks[block][logged.count % BLOCK_RECORDS] : NULL;
}

void sy__log_write(enum sy__log_operation operation, const void *object, uint64_t cache_or_bytes, gfp_t gfp, int node)
{
	struct record *record;

	sy__lock(&logged.lock);
	record = room();
	if (record) {
		*record = (struct record){ .time = sched_clock(), .object = (uintptr_t)object, .subject = cache_or_bytes,
			                   .gfp = (__force uint32_t)gfp, .cpu = raw_smp_processor_id(),
			                   .operation = operation, .node = node };
		logged.count++;
	} else {
		logged.lost++;
	}
	sy__unlock(&logged.lock);
	if (!record) /* deferred: the caller may have what a console needs */
		printk_deferred_once(KERN_NOTICE "slabyard: log: no room for more calls after %llu; give the guest more memory\n",
		                     logged.count);
}

static struct creation *creation_room(void)
{
	struct creation *creation;

	if (!logged.bump || logged.bump + sizeof(*creation) > logged.bump_end) {
		logged.bump = pages(0);
		logged.bump_end = logged.bump + PAGE_SIZE;
	}
	creation = (struct creation *)logged.bump;
	if (creation)
		logged.bump += sizeof(*creation);
	return creation;
}

/* Called outside of calls of the core, hence with interrupts on. */
void sy__log_creation(const struct sy_cache_config *config, uint64_t cache)
{
	struct creation *creation;
	unsigned long flags;

	if (!sy__log_is_on)
		return;
	local_irq_save(flags);
	sy__lock(&logged.lock);
	creation = creation_room();
	sy__unlock(&logged.lock);
	if (creation) {
		*creation = (struct creation){ .size = config->size, .align = config->align, .flags = config->flags,
			                       .constructed = config->constructor };
		strscpy(creation->name, config->name, sizeof(creation->name));
	}
	sy__log_write(SY__LOG_CREATE, creation, cache, 0, NUMA_NO_NODE);
	local_irq_restore(flags);
}

/* Where the log ended when it was opened, and what the heap held. */
struct end {
	uint64_t count, lost, slab_pages, large_pages, metadata_pages;
};

/* ---- /proc/slabyard_log ------------------------------------------------------------------------------------------- */

static void *start(struct seq_file *file, loff_t *position)
{
	return *position <= ((const struct end *)file->private)->count ? position : NULL;
}

static void *next(struct seq_file *file, void *at, loff_t *position)
{
	++*position;
	return start(file, position);
}

static void stop(struct seq_file *file, void *at)
{
}

static void show_creation(struct seq_file *file, const struct record *record)
{
	const struct creation *creation = (const struct creation *)(uintptr_t)record->object;

	if (creation)
		seq_printf(file, "create %llx %u %u %x %d %s\n", record->subject, creation->size, creation->align, creation->flags,
		           creation->constructed, creation->name);
	else
		seq_printf(file, "create %llx\n", record->subject);
}

static void show_pages(struct seq_file *file, const struct record *record)
{
	const void *block = (const void *)(uintptr_t)record->object;

	if (block)
		seq_printf(file, "pages %lu %llu %d\n", page_to_pfn(virt_to_page(block)), record->subject, record->node);
	else
		seq_printf(file, "pages - %llu %d\n", record->subject, record->node);
}

static void show_record(struct seq_file *file, const struct record *record)
{
	static const char *const names[] = { "create", "destroy", "shrink", "alloc", "free", "kmalloc", "kfree", "grace", "tick",
		                             "give", "pages" };
	const char *name = names[record->operation];

	seq_printf(file, "%llu %u ", record->time, record->cpu);
	switch (record->operation) {
	case SY__LOG_CREATE:
		show_creation(file, record);
		break;
	case SY__LOG_DESTROY:
	case SY__LOG_SHRINK:
		seq_printf(file, "%s %llx\n", name, record->subject);
		break;
	case SY__LOG_ALLOC:
		seq_printf(file, "%s %llx %llx %x %d\n", name, record->subject, record->object, record->gfp, record->node);
		break;
	case SY__LOG_FREE:
		seq_printf(file, "%s %llx %llx\n", name, record->subject, record->object);
		break;
	case SY__LOG_KMALLOC:
		seq_printf(file, "%s %llu %llx %x %d\n", name, record->subject, record->object, record->gfp, record->node);
		break;
	case SY__LOG_PAGES:
		show_pages(file, record);
		break;
	case SY__LOG_KFREE:
	case SY__LOG_GRACE:
		seq_printf(file, "%s %llx\n", name, record->object);
		break;
	default:
		seq_printf(file, "%s\n", name);
	}
}

static int show(struct seq_file *file, void *at)
{
	const struct end *end = file->private;
	uint64_t number = *(loff_t *)at;

	if (number < end->count)
		show_record(file, &logged.blocks[number / BLOCK_RECORDS][number % BLOCK_RECORDS]);
	else
		seq_printf(file, "end %llu %llu %llu %llu %llu\n", end->count, end->lost, end->slab_pages, end->large_pages,
		           end->metadata_pages);
	return 0;
}

static const struct seq_operations lines = { .start = start, .next = next, .stop = stop, .show = show };

/* Interrupts are off, so no call of this CPU is between its work and its record. */
static int open(struct inode *inode, struct file *file)
{
	const struct sy_heap_counters *counters = &sy__linux_heap->counters;
	struct end *end = __seq_open_private(file, &lines, sizeof(*end));
	unsigned long flags;

	if (!end)
		return -ENOMEM;
	local_irq_save(flags);
	sy__lock(&logged.lock);
	sy__linux_pages_count();
	*end = (struct end){ logged.count, logged.lost, counters->slab_pages, counters->large_pages, counters->metadata_pages };
	sy__unlock(&logged.lock);
	local_irq_restore(flags);
	return 0;
}

static const struct proc_ops operations = {
	.proc_open = open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = seq_release_private,
};

static int __init create(void)
{
	if (sy__log_is_on)
		proc_create("slabyard_log", 0400, NULL, &operations);
	return 0;
}
fs_initcall(create);
