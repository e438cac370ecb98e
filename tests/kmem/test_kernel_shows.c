/*
 * A module that shows what it has, by files that nobody mounts: a program opens and reads them by their operations.
 */
#include <linux/debugfs.h>
#include <linux/freezer.h>
#include <linux/instrumented.h>
#include <linux/kasan.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/processor.h>

#include "check.h"

struct thing {
	struct list_head link;
	int number;
};

static LIST_HEAD(things);
static struct dentry *folder;
static struct proc_dir_entry *entry;
static int error_of_show;

static int total_show(struct seq_file *file, void *none)
{
	int total = 0;
	struct thing *thing;

	(void)none;
	list_for_each_entry(thing, &things, link)
		total += thing->number;
	seq_printf(file, "%s %d\n", (const char *)file->private, total);
	return error_of_show;
}
DEFINE_SHOW_ATTRIBUTE(total);

static void *all_start(struct seq_file *file, loff_t *place)
{
	(void)file;
	return *place ? seq_list_start(&things, *place - 1) : SEQ_START_TOKEN;
}

static void *all_next(struct seq_file *file, void *at, loff_t *place)
{
	(void)file;
	if (at != SEQ_START_TOKEN)
		return seq_list_next(at, &things, place);
	++*place;
	return seq_list_start(&things, 0);
}

static void all_stop(struct seq_file *file, void *at)
{
	(void)at;
	seq_puts(file, "end\n");
}

/* Odd ones are left out. */
static int all_show(struct seq_file *file, void *at)
{
	if (at == SEQ_START_TOKEN) {
		seq_puts(file, "numbers\n");
		return 0;
	}
	seq_printf(file, "%d\n", list_entry(at, struct thing, link)->number);
	return list_entry(at, struct thing, link)->number % 2 ? SEQ_SKIP : error_of_show;
}

static const struct seq_operations all_sops = { .start = all_start, .next = all_next, .stop = all_stop, .show = all_show };
DEFINE_SEQ_ATTRIBUTE(all);

static int total_of_proc_show(struct seq_file *file, void *none)
{
	return total_show(file, none);
}
DEFINE_PROC_SHOW_ATTRIBUTE(total_of_proc);

/* One that keeps how many it has shown, and begins with the head. */
static void *counted_start(struct seq_file *file, loff_t *place)
{
	(void)file;
	return seq_list_start_head(&things, *place);
}

static void *counted_next(struct seq_file *file, void *at, loff_t *place)
{
	(void)file;
	return seq_list_next(at, &things, place);
}

static void counted_stop(struct seq_file *file, void *at)
{
	(void)at;
	seq_put_decimal_ull(file, "shown ", *(const unsigned *)file->private);
	seq_put_decimal_ll(file, " ", -1);
	seq_putc(file, '\n');
}

static int counted_show(struct seq_file *file, void *at)
{
	if (at == &things)
		seq_puts(file, "head\n");
	else
		++*(unsigned *)file->private;
	return error_of_show;
}

static const struct seq_operations counted_sops = {
	.start = counted_start, .stop = counted_stop, .next = counted_next, .show = counted_show
};

static int counted_open(struct inode *inode, struct file *file)
{
	(void)inode;
	return seq_open_private(file, &counted_sops, sizeof(unsigned));
}

static const struct file_operations counted_fops = {
	.open = counted_open, .read = seq_read, .llseek = seq_lseek, .release = seq_release_private
};

static void hash_lists(void)
{
	struct hlist_node one, two;
	HLIST_HEAD(head);
	loff_t place = 0;

	hlist_add_head(&two, &head);
	hlist_add_head(&one, &head);
	CHECK(seq_hlist_start(&head, 0) == &one && seq_hlist_start(&head, 1) == &two && !seq_hlist_start(&head, 2));
	CHECK(seq_hlist_next(SEQ_START_TOKEN, &head, &place) == &one && seq_hlist_next(&one, &head, &place) == &two);
	CHECK(!seq_hlist_next(&two, &head, &place) && place == 3);
}

static int __init shows_init(void)
{
	for (int i = 1; i <= 4; i++) {
		struct thing *thing = kzalloc(sizeof(*thing), GFP_KERNEL);

		if (!thing)
			return -ENOMEM;
		thing->number = i * i;
		list_add_tail(&thing->link, &things);
	}
	folder = debugfs_create_dir("shows", NULL);
	debugfs_create_file("total", 0444, folder, NULL, &total_fops);
	debugfs_create_u32("count", 0444, folder, NULL);
	entry = proc_create("shows", 0444, NULL, &total_of_proc_proc_ops);
	return 0;
}

static void __exit shows_exit(void)
{
	struct thing *thing, *next;

	debugfs_remove_recursive(folder);
	proc_remove(entry);
	list_for_each_entry_safe(thing, next, &things, link)
		kfree(thing);
}

module_init(shows_init);
module_exit(shows_exit);
MODULE_LICENSE("Dual MIT/GPL");

/* By portions, as cat would with a small buffer. */
static void reads_as(const struct file_operations *operations, void *data, size_t portion, const char *text, ssize_t error)
{
	struct inode inode = { .i_private = data };
	struct file file = { .f_op = operations, .f_inode = &inode };
	char all[200] = "";
	size_t length = 0;
	ssize_t got = 1;

	CHECK_EQUAL(operations->open(&inode, &file), 0);
	while (got > 0 && length + portion < sizeof(all)) {
		got = operations->read(&file, all + length, portion, &file.f_pos);
		length += got > 0 ? (size_t)got : 0;
	}
	CHECK_EQUAL(got, error);
	CHECK_TEXT(all, text);
	CHECK_EQUAL(operations->llseek(&file, 2, SEEK_SET), 2);
	if (!error) {
		CHECK_EQUAL(operations->read(&file, all, 1, &file.f_pos), 1);
		CHECK_EQUAL(all[0], text[2]);
	}
	CHECK_EQUAL(operations->release(&inode, &file), 0);
}

static void buffers(void)
{
	char into[8] = "";
	loff_t place = 6, before = -1;

	CHECK_EQUAL(simple_write_to_buffer(into, sizeof(into), &place, "abcd", 4), 2);
	CHECK_EQUAL(place, 8);
	CHECK_EQUAL(simple_write_to_buffer(into, sizeof(into), &place, "abcd", 4), 0);
	CHECK_EQUAL(memcmp(into + 6, "ab", 2), 0);
	CHECK_EQUAL(simple_read_from_buffer(into, 4, &before, "abcd", 4), -EINVAL);
	CHECK_EQUAL(simple_write_to_buffer(into, 4, &before, "abcd", 4), -EINVAL);
}

int main(void)
{
	CHECK_EQUAL(init_module(), 0);
	CHECK(IS_ERR(folder));
	CHECK(entry == NULL);
	spin_until_cond(!kasan_enabled() && !freezing(NULL));
	for (size_t portion = 1; portion < 60; portion += 7) {
		reads_as(&total_fops, (void *)"total", portion, "total 30\n", 0);
		reads_as(&all_fops, NULL, portion, "numbers\n4\n16\nend\n", 0);
	}
	reads_as(&(const struct file_operations){ .open = total_of_proc_proc_ops.proc_open, .read = total_of_proc_proc_ops.proc_read,
	                                          .llseek = total_of_proc_proc_ops.proc_lseek,
	                                          .release = total_of_proc_proc_ops.proc_release },
	         (void *)"total", 60, "total 30\n", 0);
	reads_as(&counted_fops, NULL, 60, "head\nshown 4 -1\n", 0);
	hash_lists();
	error_of_show = -EIO;
	reads_as(&total_fops, (void *)"total", 60, "", -EIO);
	reads_as(&all_fops, NULL, 60, "", -EIO);
	buffers();
	cleanup_module();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
