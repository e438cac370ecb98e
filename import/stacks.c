/*
 * Call stacks: the lines of a call chain that stand behind an event, as perf script prints them where the capture was recorded with -g:
 *
 *     [000]  4719.718901716:  kmem:kmalloc: call_site=... ptr=...
 *             ffffffff81636e0d kmem_cache_alloc_noprof
 *             ffffffff813ceccc alloc_inode
 *             ...
 *
 * The innermost function stands first. A stack becomes one text, outermost function first, with semicolons between: how flame graphs are
 * made everywhere. Offsets and modules are left out, or each stack would have a hundred forms; a function without a name is its address.
 * What the capture has of user space is left out too: it is different in every process, and a kernel's memory is what is asked about.
 *
 * An event's record waits until the next event comes, since its stack stands behind it.
 */
#include "import.h"
#include "words.h"

#define KERNEL ((uint64_t)1 << 63)        /* addresses from here on are the kernel's, */
#define KERNEL_32 ((uint64_t)1 << 31)     /* and where there are 32 bits from here on */

void stack_wait(struct scan *scan, const struct record *record)
{
	scan->waiting = *record;
	scan->has_waiting = true;
	scan->stack_at = sizeof scan->stack;
}

void stack_end(struct scan *scan)
{
	if (!scan->has_waiting)
		return;
	scan->has_waiting = false;
	if (scan->stack_at < sizeof scan->stack)
		scan->waiting.stack = intern(&scan->texts.stacks, scan->stack + scan->stack_at, sizeof scan->stack - scan->stack_at);
	spool_put(&scan->spool, &scan->waiting);
}

/* `function`, of `function+0x2a ([kernel.kallsyms])`; the address where there is no name. */
static struct word function_of(struct word address, const char *end)
{
	struct word name = {skip_blanks(address.end, end), end};
	for (const char *at = name.end; at > name.start + 1; at--)
		if (at[-1] == '(' && at[-2] == ' ') {
			name.end = at - 2;
			break;
		}
	for (const char *at = name.end; at > name.start + 2; at--)
		if (at[-3] == '+' && at[-2] == '0' && at[-1] == 'x') {
			name.end = at - 3;
			break;
		}
	while (name.end > name.start && name.end[-1] == ' ')
		name.end--;
	return name.start == name.end || WORD_IS(name, "[unknown]") ? address : name;
}

/* Texts are made from their ends, as the innermost function comes first. A stack that is too long loses its outermost functions. */
bool take_frame(struct scan *scan, const char *line, const char *end)
{
	uint64_t value;
	struct word address = {skip_blanks(line, end), end};
	address.end = word_end(address.start, end);
	if (address.start == line || !hexadecimal(address, &value))
		return false;
	if (!scan->has_waiting || !(value >= KERNEL || (value >= KERNEL_32 && value <= UINT32_MAX)))
		return true;
	struct word name = function_of(address, end);
	size_t length = (size_t)(name.end - name.start), semicolon = scan->stack_at < sizeof scan->stack;
	if (length + semicolon > scan->stack_at)
		return true;
	if (semicolon)
		scan->stack[--scan->stack_at] = ';';
	scan->stack_at -= length;
	for (size_t i = 0; i < length; i++)
		scan->stack[scan->stack_at + i] = name.start[i] == ';' ? ':' : name.start[i];
	return true;
}
