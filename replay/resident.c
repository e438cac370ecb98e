/*
 * Which pages of this process a run of the trace uses, and how to have them resident before the next run.
 *
 * In a forked child a page costs a fault at its first write, when it becomes the child's own. So do pages that nobody had yet, and
 * code that the child has not run. A kernel has none of these faults: they are the simulation's, and must be over when the clock
 * starts.
 *
 * Noting. An earlier child runs the same steps from the same state. At its end it asks the system about every page it has
 * (/proc/self/maps and pagemap). A page that is mapped by this process alone was written to or is new. Of the other pages only
 * those matter that the parent does not have, such as code. Pages of the parent that nobody writes to stay shared. This is exact,
 * whatever wrote: the allocator, the page allocator's tables, the live table, a malloc. Two written runs with one page between
 * them are noted as one, because one more page costs no more than one more call.
 *
 * Bringing. A later child asks for these pages (MADV_POPULATE_WRITE, MADV_POPULATE_READ). Before Linux 5.14 it reads and writes one
 * byte of each through /proc/self/mem instead. That takes the same faults, and fails where a page can't be had, without ending
 * the process.
 *
 * Left out are shared mappings (the scratch file, and this table), which a timed loop does not touch; the system's own (vdso); and
 * mappings beyond 256 GiB, which are reservations whose page tables would take seconds to read.
 *
 * The table is a shared mapping with room for a million runs; only what is used takes memory. More runs would be left out, at the
 * price of their faults.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_POPULATE_WRITE */
#include "resident.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define ROOM ((size_t)1 << 20)
#define TABLE_BYTES (sizeof(struct resident) + ROOM * sizeof(struct resident_run))
#define LARGEST_MAPPING_GIB 256u
#define CHUNK 16384u /* pages asked for at once */
#define GAP 1u        /* pages between two runs that are brought too */

/* Of an entry of /proc/self/pagemap. */
#define PRESENT ((uint64_t)1 << 63)
#define OF_FILE ((uint64_t)1 << 61) /* a fork does not inherit these */
#define EXCLUSIVE ((uint64_t)1 << 56)

struct resident *resident_create(void)
{
	void *table = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return table == MAP_FAILED ? NULL : table;
}

void resident_destroy(struct resident *resident)
{
	if (resident)
		munmap(resident, TABLE_BYTES);
}

/* ---- Noting --------------------------------------------------------------------------------------------------- */

/* What the system tells of pages of this process and its parent. */
struct view {
	int own, parent;   /* pagemaps; without the parent's no page counts as inherited */
	size_t page_bytes;
	uint64_t own_entries[CHUNK], parent_entries[CHUNK];
};

static size_t read_entries(const struct view *view, int pagemap, uint64_t *entries, uintptr_t start, size_t count)
{
	off_t offset = (off_t)(start / view->page_bytes * sizeof *entries);
	ssize_t got = pread(pagemap, entries, count * sizeof *entries, offset);

	return got > 0 ? (size_t)got / sizeof *entries : 0;
}

/* least: where the mapping starts. A run does not extend across it. */
static void note_page(struct resident *resident, const struct view *view, uintptr_t least, uintptr_t start, bool written)
{
	struct resident_run *last = resident->count ? &resident->runs[resident->count - 1] : NULL;
	size_t gap = written ? (GAP + 1) * view->page_bytes : view->page_bytes;

	if (last && last->start >= least && last->written == written && start - (last->start + last->bytes) < gap)
		last->bytes = start + view->page_bytes - last->start;
	else if (resident->count < ROOM)
		resident->runs[resident->count++] = (struct resident_run){ start, view->page_bytes, written };
}

static void note_mapping(struct resident *resident, struct view *view, uintptr_t start, uintptr_t end, bool writable)
{
	uintptr_t least = start;

	while (start < end) {
		size_t left = (end - start) / view->page_bytes, count = left < CHUNK ? left : CHUNK, known;

		count = read_entries(view, view->own, view->own_entries, start, count);
		known = read_entries(view, view->parent, view->parent_entries, start, count);
		if (!count)
			return;
		for (size_t i = 0; i < count; i++) {
			uint64_t entry = view->own_entries[i];
			bool written = writable && entry & EXCLUSIVE;
			bool inherited = i < known && view->parent_entries[i] & PRESENT && !(entry & OF_FILE);

			if ((entry & PRESENT) && (written || !inherited))
				note_page(resident, view, least, start + i * view->page_bytes, written);
		}
		start += count * view->page_bytes;
	}
}

static int open_pagemap(pid_t process)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%ld/pagemap", (long)process);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void resident_note(struct resident *resident)
{
	static struct view view;
	FILE *maps = fopen("/proc/self/maps", "r");
	uintptr_t start, end;
	char line[4400], rights[5];

	view.own = open_pagemap(getpid());
	view.parent = open_pagemap(getppid());
	view.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	resident->count = 0;
	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &end, rights) == 3 && rights[0] == 'r' &&
		    rights[3] == 'p' && (end - start) >> 30 <= LARGEST_MAPPING_GIB && !strstr(line, "[v"))
			note_mapping(resident, &view, start, end, rights[1] == 'w');
	close(view.own);
	close(view.parent);
	if (maps)
		fclose(maps);
}

/* ---- Bringing ------------------------------------------------------------------------------------------------- */

/* False: the system does not know this advice. */
static bool populate(const struct resident_run *run)
{
	return madvise((void *)run->start, run->bytes, run->written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0 ||
	       errno != EINVAL;
}

static void touch(int memory, const struct resident_run *run)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	char byte;

	for (uintptr_t page = run->start; page < run->start + run->bytes; page += page_bytes)
		if (pread(memory, &byte, 1, (off_t)page) == 1 && run->written && pwrite(memory, &byte, 1, (off_t)page) != 1)
			return;
}

void resident_bring(const struct resident *resident)
{
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < resident->count; i++)
		if (!populate(&resident->runs[i]) && memory >= 0)
			touch(memory, &resident->runs[i]);
	if (memory >= 0)
		close(memory);
}
