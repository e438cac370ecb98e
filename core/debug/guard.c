/*
 * Objects in pages of their own, between two pages that can't be touched (Bonwick 1994, section 6.6).
 *
 *     | guard | pages of the object, which stands at their end | guard |
 *
 * A write past the end of a page, or into a freed object, is a fault at that very instruction. The bytes between the object and its page's
 * edge are zones as those of any object. The pages are the platform's, reserved and committed, so the policy below knows nothing
 * of them; a freed object's pages are withdrawn, while its addresses stay reserved until the record goes.
 */
#include "debug.h"

#include "../geometry.h"

/* Addresses whose second page is aligned. */
static char *reserve(size_t bytes, size_t align)
{
	size_t more = align > SY_PAGE_SIZE ? align - SY_PAGE_SIZE : 0, before;
	char *start = sy__source_reserve(bytes + more);

	if (!start || !more)
		return start;
	before = sy__align_up((uintptr_t)start + SY_PAGE_SIZE, align) - (uintptr_t)start - SY_PAGE_SIZE;
	if (before)
		sy__source_release(start, before);
	if (before < more)
		sy__source_release(start + before + bytes, more - before);
	return start + before;
}

bool sy__guard_create(struct sy__record *record, size_t align, size_t size, bool low)
{
	size_t inside, bytes;
	char *start;

	if (size > SIZE_MAX / 4 || align > SIZE_MAX / 4)
		return false;
	inside = sy__align_up(size ? size : 1, SY_PAGE_SIZE);
	bytes = inside + 2 * SY_PAGE_SIZE;
	start = reserve(bytes, align);
	if (!start)
		return false;
	if (sy__source_commit(start + SY_PAGE_SIZE, inside)) {
		sy__source_release(start, bytes);
		return false;
	}
	record->base = start;
	record->room = bytes;
	record->size = size;
	record->object = start + SY_PAGE_SIZE + (low ? 0 : (inside - size) & ~(align - 1));
	record->guarded = true;
	return true;
}

void sy__guard_close(const struct sy__record *record)
{
	sy__source_withdraw(record->base + SY_PAGE_SIZE, record->room - 2 * SY_PAGE_SIZE);
}

void sy__guard_release(const struct sy__record *record)
{
	sy__source_release(record->base, record->room);
}
