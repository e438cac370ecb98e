/*
 * Who did it: the task and its number, which stand before the CPU in the lines of every recorder:
 *
 *     find  4719 [001]  4719.718901716:  kmem:kmalloc: ...       perf script; 4719/4720 is process and thread
 *     find-4719 [001] d..2.  4719.718901: kmalloc: ...           tracefs, and with its record-tgid: find-4719    (   4719) [001]
 *
 * A name may have blanks and hyphens in it, so it is read from its end: the number first, then what stands before it. Recorders pad names
 * to 16 letters, so what stands before such padding (a log's own time, the number of a line) is no part of the name. Name and number
 * are interned as one text, `4719 find`; writer.py makes two columns of it. A line without a task, as of perf script -F without comm,
 * has none.
 */
#include "import.h"
#include "words.h"

enum { LONGEST = 64, WIDTH = 16 }; /* letters of a name that some tools print; and to which the kernel's, fewer, are padded */

static const char *back_over_digits(const char *line, const char *end)
{
	while (end > line && is_digit(end[-1]))
		end--;
	return end;
}

/* Before tracefs's thread group in parentheses, where it stands. */
static const char *before_group(const char *line, const char *end)
{
	const char *open = end;
	if (end == line || end[-1] != ')')
		return end;
	while (open > line && open[-1] != '(')
		open--;
	return open > line ? back_over_blanks(line, open - 1) : end;
}

/* Where the name begins that ends there: behind the last two blanks, or a tab. */
static const char *name_start(const char *line, const char *end)
{
	const char *start = end;
	while (start > line && start[-1] != '\t' && !(start[-1] == ' ' && (start - 1 == line || start[-2] == ' ')))
		start--;
	if (end - start < WIDTH)
		return start;
	if (end[-WIDTH] == ' ')
		return end - WIDTH + 1;
	while (end > start && end[-1] != ' ')
		end--;
	return end;
}

uint32_t task_of(struct scan *scan, const char *line, const char *end)
{
	char text[LONGEST + 16];
	size_t digits, length;
	end = before_group(line, back_over_blanks(line, end));
	struct word number = {back_over_digits(line, end), end};
	if (number.start - line > 1 && number.start[-1] == '/') { /* the thread; the process stands before it */
		number.end = number.start - 1;
		number.start = back_over_digits(line, number.end);
	}
	digits = (size_t)(number.end - number.start);
	if (!digits || digits > 10 || number.start == line)
		return NONE;
	const char *name_end = number.start[-1] == '-' ? number.start - 1 : back_over_blanks(line, number.start);
	const char *name = name_start(line, name_end);
	length = (size_t)(name_end - name);
	if (!length || length > LONGEST || name_end == number.start)
		return NONE;
	for (size_t i = 0; i < digits; i++)
		text[i] = number.start[i];
	text[digits] = ' ';
	for (size_t i = 0; i < length; i++)
		text[digits + 1 + i] = name[i];
	return intern(&scan->texts.tasks, text, digits + 1 + length);
}
