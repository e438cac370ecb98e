/*
 * Text that is written piece by piece, and grows (linux/seq_file.h), and files that show such.
 *
 * A kernel makes a page of it at a time, for whoever reads on. Here the first read calls start, show and next for all there is,
 * and stop, and the rest serves from that: what is shown is of one moment.
 */
#include <slabyard/kernel/linux/seq_file.h>

#include <stdarg.h>

/* ---- Text that grows --------------------------------------------------------------------------------------------- */

int sy__seq_write(struct seq_file *file, const void *text, size_t length)
{
	if (file->size - file->count <= length) {
		size_t size = 2 * file->size + length + 1;
		char *grown = krealloc(file->buf, size, GFP_KERNEL);

		if (!grown) {
			file->overflowed = true;
			return -1;
		}
		file->buf = grown;
		file->size = size;
	}
	memcpy(file->buf + file->count, text, length);
	file->count += length;
	file->buf[file->count] = '\0';
	return 0;
}

void sy__seq_printf(struct seq_file *file, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	sy__seq_vprintf(file, format, arguments);
	va_end(arguments);
}

void sy__seq_vprintf(struct seq_file *file, const char *format, va_list arguments)
{
	char *text = kvasprintf(GFP_KERNEL, format, arguments);

	if (text)
		sy__seq_write(file, text, strlen(text));
	else
		file->overflowed = true;
	kfree(text);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

int sy__seq_open(struct file *file, const struct seq_operations *operations, int (*show)(struct seq_file *, void *), void *data)
{
	struct seq_file *text = kzalloc(sizeof(*text), GFP_KERNEL);

	if (!text)
		return -ENOMEM;
	text->op = operations;
	text->sy__show = show;
	text->private = data;
	file->private_data = text;
	return 0;
}

/* Shows one thing, or nothing of it: where it was to be skipped, or an error came, which is returned. */
static int show_one(struct seq_file *text, int (*show)(struct seq_file *, void *), void *thing)
{
	size_t before = text->count;
	int error = show(text, thing);

	if (error)
		text->count = before;
	return error < 0 ? error : 0;
}

static int show_all(struct seq_file *text)
{
	loff_t place = 0;
	void *thing;
	int error = 0;

	if (text->sy__show)
		return show_one(text, text->sy__show, NULL);
	thing = text->op->start(text, &place);
	while (thing && !IS_ERR(thing) && !error) {
		error = show_one(text, text->op->show, thing);
		if (!error)
			thing = text->op->next(text, thing, &place);
	}
	if (!error && IS_ERR(thing))
		error = (int)PTR_ERR(thing);
	text->op->stop(text, thing);
	return error;
}

ssize_t sy__seq_read(struct file *file, char *to, size_t count, loff_t *place)
{
	struct seq_file *text = file->private_data;

	if (!text->shown) {
		int error = show_all(text);

		if (!error && text->overflowed)
			error = -ENOMEM;
		if (error) {
			text->count = 0;
			text->overflowed = false;
			return error;
		}
		text->shown = true;
	}
	return simple_read_from_buffer(to, count, place, text->buf, text->count);
}

int sy__seq_release(struct inode *inode, struct file *file)
{
	struct seq_file *text = file->private_data;

	(void)inode;
	kfree(text->buf);
	kfree(text);
	return 0;
}

void *sy__seq_open_private(struct file *file, const struct seq_operations *operations, size_t size)
{
	void *data = kzalloc(size, GFP_KERNEL);

	if (!data || !sy__seq_open(file, operations, NULL, data))
		return data;
	kfree(data);
	return NULL;
}

int sy__seq_release_private(struct inode *inode, struct file *file)
{
	kfree(((struct seq_file *)file->private_data)->private);
	return sy__seq_release(inode, file);
}
