/* Bugs of the program: their names, and how they are reported. See bug.h. */
#include "bug.h"

#include "page_interface.h"

static const char *const names[SY_BUGS] = {
	[SY_BUG_DOUBLE_FREE] = "double free",
	[SY_BUG_WRITE_AFTER_FREE] = "write after free",
	[SY_BUG_WRITE_PAST_THE_END] = "write past the end",
	[SY_BUG_WRITE_BEFORE_THE_START] = "write before the start",
	[SY_BUG_INTERIOR_FREE] = "interior free",
	[SY_BUG_FOREIGN_FREE] = "foreign free",
	[SY_BUG_WRONG_SIZE] = "wrong size",
	[SY_BUG_WRONG_CACHE] = "wrong cache",
	[SY_BUG_CHANGED_STATE] = "changed constructed state",
	[SY_BUG_LEAK] = "leak",
	[SY_BUG_READ_AFTER_FREE] = "read after free",
	[SY_BUG_READ_PAST_THE_END] = "read past the end",
	[SY_BUG_READ_BEFORE_THE_START] = "read before the start",
};

const char *sy_bug_name(enum sy_bug kind)
{
	return names[kind];
}

void sy__bug(struct sy_heap *heap, enum sy_bug kind, const void *address)
{
	if (heap->on_bug)
		heap->on_bug(heap, kind, address);
	else
		__builtin_trap();
}

static enum sy_bug kind_of_free(const struct sy_heap *heap, const void *address)
{
	const struct sy_page *head = sy__pages_find(heap, address);

	if (!head)
		return sy__pages_were_used(heap, address) ? SY_BUG_DOUBLE_FREE : SY_BUG_FOREIGN_FREE;
	if (sy__page_is_metadata(head))
		return SY_BUG_FOREIGN_FREE;
	return sy__page_is_large(head) && sy__page_address(heap, head) == address ? SY_BUG_DOUBLE_FREE : SY_BUG_INTERIOR_FREE;
}

void sy__bug_free(struct sy_heap *heap, const void *address)
{
	sy__bug(heap, kind_of_free(heap, address), address);
}
