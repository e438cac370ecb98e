/*
 * State behind platform/bare.h: one buffer, one clock. Compiled only into builds that select that shim.
 *
 * The buffer is a stack of reservations. A page allocator may release a reservation at once, when its alignment does not suit,
 * so the last one can be undone. Programs that create their allocators once need no more.
 */
#include "../platform.h"

/* Reservations start at multiples of this: at least the size of any page that SY_PAGE_SHIFT allows. */
#define RESERVE_ALIGN ((uintptr_t)4096)

static char *buffer_next, *buffer_end;

static uint64_t time_stands_still(void)
{
	return 0;
}

uint64_t (*sy__clock)(void) = time_stands_still;

void sy_platform_set_clock(uint64_t (*clock)(void))
{
	sy__clock = clock ? clock : time_stands_still;
}

void sy_platform_set_buffer(void *buffer, size_t bytes)
{
	buffer_next = (char *)buffer;
	buffer_end = buffer_next + bytes;
}

const void *sy__last = SY__NOTHING;
void *sy__from;
static bool inside;
static unsigned calls;

bool sy__call_enter(unsigned *slot)
{
	*slot = 0;
	if (inside)
		return false;
	inside = true;
	sy__last = SY__NOTHING;
	calls++;
	return true;
}

void sy__call_leave(void)
{
	sy__last = SY__NOTHING; /* a constructor may have called back */
	inside = false;
}

unsigned sy__calls(void)
{
	return calls;
}

unsigned sy__calls_more(void)
{
	return ++calls;
}

void *sy__source_reserve(size_t bytes)
{
	size_t skip = (size_t)(-(uintptr_t)buffer_next & (RESERVE_ALIGN - 1));
	size_t left = (size_t)(buffer_end - buffer_next);
	char *start;

	if (skip > left || bytes > left - skip)
		return NULL;
	start = buffer_next + skip;
	buffer_next = start + bytes;
	return start;
}

int sy__source_commit(void *p, size_t bytes)
{
	sy__fill(p, 0, bytes);
	return 0;
}

void sy__source_discard(void *p, size_t bytes)
{
	sy__fill(p, 0, bytes);
}

bool sy__source_prefer_huge(void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
	return false;
}

void sy__source_prefer_small(void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
}

bool sy__source_allows(size_t bytes)
{
	(void)bytes;
	return true;
}

void sy__source_withdraw(void *p, size_t bytes)
{
	sy__source_discard(p, bytes);
}

bool sy__source_tells(void)
{
	return false;
}

bool sy__source_has(const void *p, size_t bytes, size_t least)
{
	(void)p;
	(void)bytes;
	(void)least;
	return true;
}

void sy__source_release(void *p, size_t bytes)
{
	if ((char *)p + bytes == buffer_next)
		buffer_next = (char *)p;
}

bool sy__source_reserve_at(void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
	return false;
}
