/*
 * Which addresses are objects that are mappings of their own. A free or resize of an address outside of the heap means such an
 * object, or is wrong.
 *
 * A header in front of the object has a mark that follows from its address. No other memory has that mark, but memory in front of a wrong
 * address may be missing or unreadable. So the system is asked first: a refused call, rt_sigprocmask with an impossible argument, copies
 * eight bytes from there, and says so if it can't. That takes 0.1 microseconds; a system call or the copy of an object follows in any case.
 * The first page is never asked about: it holds nothing, and the call takes a null pointer for a missing argument.
 *
 * An address that is no such object ends the program. Only then the kind of mistake is looked for. A freed object has another mark, as long
 * as its mapping is cached; the addresses of the last objects whose mappings went back are remembered. An address inside an object is found
 * by a search for the header, page by page downwards.
 */
#define _GNU_SOURCE /* AT_FDCWD, MAP_ANONYMOUS */
#include "mapping_header.h"

#include "core/bug.h"
#include "core/platform/system_call.h"
#include "system.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENDED 64u            /* objects that are remembered */
#define MOST_PAGES (1u << 20) /* that are searched */

static const void *ended[ENDED]; /* relaxed: a hint for the report */
static unsigned ended_next;

void sy__mapping_note_end(const void *object)
{
	unsigned at = __atomic_fetch_add(&ended_next, 1u, __ATOMIC_RELAXED) % ENDED;

	__atomic_store_n(&ended[at], object, __ATOMIC_RELAXED);
}

static bool ended_lately(const void *object)
{
	for (unsigned i = 0; i < ENDED; i++)
		if (__atomic_load_n(&ended[i], __ATOMIC_RELAXED) == object)
			return true;
	return false;
}

static bool is_readable(const void *eight_bytes)
{
	if ((uintptr_t)eight_bytes < sy__system_page_bytes())
		return false;
#ifdef SYS_rt_sigprocmask
	return sy__system_call(SYS_rt_sigprocmask, -1, (long)(uintptr_t)eight_bytes, 0, 8, 0, 0) != -EFAULT;
#else
	return true;
#endif
}

/* Whether an object begins in this page that contains the address. Its header is at the start of the page, or so far in front of its
 * alignment. */
static bool begins_here(const char *page, const char *address)
{
	for (size_t align = sizeof(struct mapping_header); align <= sy__system_page_bytes(); align *= 2) {
		const struct mapping_header *header = (const void *)(page + align - sizeof(struct mapping_header));

		if (header->mark == sy__mapping_mark(header) && header->start == page && (size_t)(address - page) < header->used)
			return true;
	}
	return false;
}

static bool is_inside(const void *address)
{
	size_t bytes = sy__system_page_bytes();
	const char *page = (const char *)((uintptr_t)address & ~(bytes - 1));

	for (unsigned i = 0; i < MOST_PAGES && is_readable(page); i++, page -= bytes)
		if (begins_here(page, address))
			return true;
	return false;
}

static SY__COLD enum sy_bug kind_of(const void *address, const struct mapping_header *header)
{
	if (header && header->mark == sy__mapping_end_mark(header))
		return SY_BUG_DOUBLE_FREE;
	if (is_inside(address))
		return SY_BUG_INTERIOR_FREE;
	return ended_lately(address) ? SY_BUG_DOUBLE_FREE : SY_BUG_FOREIGN_FREE;
}

struct mapping_header *sy__mapping_header_checked(const void *address)
{
	struct mapping_header *header = sy__mapping_header(address);

	if (sy__unlikely((uintptr_t)address & (ALIGNMENT - 1) || !is_readable(header)))
		header = NULL;
	if (sy__unlikely(!header || header->mark != sy__mapping_mark(header))) {
		sy__bug(sy__service.heap, kind_of(address, header), address);
		__builtin_trap(); /* a program has nothing to go on with */
	}
	return header;
}
