/*
 * Setting a machine's pages back to a saved state.
 *
 * A heap keeps all that it has in the simulated memory, and the page allocator keeps what it knows in a table and a structure of its
 * own. With these two set back the machine is as it was before there was a heap: nothing knows of the memory that the heap
 * wrote to. That memory stays as it is, with the pages that the system has given for it; of a fresh process each would cost a fault.
 * Only the marks of written pages stay, since requests for zeroed memory must clear those (core/pages/interface.c).
 *
 * The table may have hundreds of MiB, of which a replay changes some. So the state is saved before a fork, and set back in the child.
 * There the system tells which pages were written (/proc/self/pagemap): they are the child's own, while others are still shared with
 * its parent, which must not write to them. A page that had no memory when the state was saved is zero in the copy too.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "rewind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "library/lab/replay.h"

#define CHUNK 4096u /* entries of pagemap read at once */

/* Of an entry of pagemap. */
#define PRESENT ((uint64_t)1 << 63)
#define SWAPPED ((uint64_t)1 << 62)
#define EXCLUSIVE ((uint64_t)1 << 56)

enum { TABLE, REST, SPANS };

struct rewind {
	struct sy_lab_span spans[SPANS];
	char *saved[SPANS]; /* as large as each */
	int pagemap;
	size_t page_bytes;
};

static char *start_of(const struct rewind *rewind, unsigned number)
{
	return rewind->spans[number].start;
}

typedef void (*visitor)(const struct rewind *, unsigned number, size_t offset, size_t bytes);

/* Visits each page of a span that an entry has one of these marks for. False: the system does not tell. */
static bool each_page(const struct rewind *rewind, unsigned number, uint64_t marks, visitor visit)
{
	const struct sy_lab_span *span = &rewind->spans[number];
	size_t count = (span->bytes + rewind->page_bytes - 1) / rewind->page_bytes;
	uint64_t entries[CHUNK];

	for (size_t at = 0; at < count; at += CHUNK) {
		size_t wanted = count - at < CHUNK ? count - at : CHUNK;
		off_t place = (off_t)(((uintptr_t)span->start / rewind->page_bytes + at) * sizeof *entries);

		if (pread(rewind->pagemap, entries, wanted * sizeof *entries, place) != (ssize_t)(wanted * sizeof *entries))
			return false;
		for (size_t i = 0; i < wanted; i++) {
			size_t offset = (at + i) * rewind->page_bytes, left = span->bytes - offset;

			if (entries[i] & marks)
				visit(rewind, number, offset, left < rewind->page_bytes ? left : rewind->page_bytes);
		}
	}
	return true;
}

static void save_page(const struct rewind *rewind, unsigned number, size_t offset, size_t bytes)
{
	memcpy(rewind->saved[number] + offset, start_of(rewind, number) + offset, bytes);
}

/* Entries may lie across two pages. */
static void set_table_back(const struct rewind *rewind, size_t offset, size_t bytes)
{
	const struct sy_lab_span *table = &rewind->spans[TABLE];

	for (size_t at = offset / table->each * table->each; at < offset + bytes && at < table->bytes; at += table->each)
		sy_lab_rewind((void *)(start_of(rewind, TABLE) + at), (const void *)(rewind->saved[TABLE] + at));
}

static void set_page_back(const struct rewind *rewind, unsigned number, size_t offset, size_t bytes)
{
	if (number == TABLE)
		set_table_back(rewind, offset, bytes);
	else
		memcpy(start_of(rewind, number) + offset, rewind->saved[number] + offset, bytes);
}

static bool all_pages(const struct rewind *rewind, uint64_t marks, visitor visit, struct fault *fault)
{
	for (unsigned number = 0; number < SPANS; number++)
		if (!each_page(rewind, number, marks, visit))
			return refuse(fault, "/proc/self/pagemap does not tell which pages have memory: %s", strerror(errno));
	return true;
}

static bool map_copies(struct rewind *rewind)
{
	for (unsigned number = 0; number < SPANS; number++) {
		void *copy = mmap(NULL, rewind->spans[number].bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (copy == MAP_FAILED)
			return false;
		rewind->saved[number] = copy;
	}
	return true;
}

static int open_pagemap(struct fault *fault)
{
	int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (file < 0)
		refuse(fault, "cannot open /proc/self/pagemap: %s", strerror(errno));
	return file;
}

struct rewind *rewind_save(struct sy_pages *pages, struct fault *fault)
{
	struct rewind *rewind = calloc(1, sizeof *rewind);

	if (!rewind) {
		refuse(fault, "no memory for a copy of the machine");
		return NULL;
	}
	sy_lab_spans(pages, &rewind->spans[TABLE], &rewind->spans[REST]);
	rewind->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	rewind->pagemap = open_pagemap(fault);
	if (rewind->pagemap >= 0 && !map_copies(rewind))
		refuse(fault, "no address space for a copy of the machine");
	else if (rewind->pagemap >= 0 && all_pages(rewind, PRESENT | SWAPPED, save_page, fault))
		return rewind;
	rewind_release(rewind);
	return NULL;
}

/* Whether the system tells of a page that was just written to. Some that stand in for Linux have the file, but not all that is in it. */
static bool tells(const struct rewind *rewind)
{
	volatile char *byte = start_of(rewind, REST);
	uint64_t entry = 0;
	off_t place = (off_t)((uintptr_t)byte / rewind->page_bytes * sizeof entry);

	*byte = *byte;
	return pread(rewind->pagemap, &entry, sizeof entry, place) == (ssize_t)sizeof entry && entry & EXCLUSIVE;
}

bool rewind_begin(struct rewind *rewind, struct fault *fault)
{
	close(rewind->pagemap); /* of the parent */
	rewind->pagemap = open_pagemap(fault);
	return rewind->pagemap >= 0 &&
	       (tells(rewind) || refuse(fault, "/proc/self/pagemap does not tell which pages were written"));
}

bool rewind_back(const struct rewind *rewind, struct fault *fault)
{
	return all_pages(rewind, EXCLUSIVE | SWAPPED, set_page_back, fault);
}

void rewind_release(struct rewind *rewind)
{
	for (unsigned number = 0; number < SPANS; number++)
		if (rewind->saved[number])
			munmap(rewind->saved[number], rewind->spans[number].bytes);
	if (rewind->pagemap >= 0)
		close(rewind->pagemap);
	free(rewind);
}
