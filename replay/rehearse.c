/*
 * A rehearsal before a measurement, so that what is measured is the allocator and not the operating system beneath the
 * simulation.
 *
 * A kernel's memory is there; simulated memory appears page by page when it is first written to, at the cost of a
 * fault each, which for a short trace is more than all its requests together. Huge pages would make these faults rare,
 * but each may wait for the system to find one: tens of milliseconds on a machine that has run for a while. So the
 * trace is run once unmeasured. Which pages of the simulated memory, and of the table that describes it, it made
 * resident is asked from the system (mincore); then a new allocator is set up, and the same pages, by their offset,
 * are made resident before the clock starts. As a replay is deterministic, it is going to use exactly these. They read
 * zero as before; no allocator can tell the difference.
 *
 * The rehearsal also tells what fails for lack of memory, and how far a malloc's resident memory rises; and it leaves
 * the program's code and tables warm. A malloc keeps the heap that it has grown, like that of a program that has run
 * for a while.
 */
#define _GNU_SOURCE /* mincore */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../core/page_interface.h"
#include "replay.h"

#define CHUNK 65536u /* pages asked for at once */

/* Resident pages of one mapping, in order. */
struct resident {
	char *base;   /* where the mapping is now */
	size_t bytes; /* of all of it */
	uint32_t *pages; /* by number, in pages of the system */
	size_t count, room;
};

/* The mappings that a page allocator uses. */
struct footprint {
	struct resident memory, table;
};

/* ---- What was used -------------------------------------------------------------------------------------------- */

static bool note_page(struct resident *resident, size_t page)
{
	if (resident->count == resident->room) {
		size_t room = resident->room ? 2 * resident->room : 1024;
		uint32_t *pages = realloc(resident->pages, room * sizeof *pages);

		if (!pages)
			return false;
		resident->pages = pages;
		resident->room = room;
	}
	resident->pages[resident->count++] = (uint32_t)page;
	return true;
}

/* Where the system can't tell, nothing was resident: then the measurement includes its faults. */
static bool find_resident(struct resident *resident)
{
	static unsigned char flags[CHUNK];
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), pages = resident->bytes / page_bytes;

	for (size_t start = 0; start < pages; start += CHUNK) {
		size_t count = pages - start < CHUNK ? pages - start : CHUNK;

		if (mincore(resident->base + start * page_bytes, count * page_bytes, (void *)flags) != 0)
			return true;
		for (size_t i = 0; i < count; i++)
			if ((flags[i] & 1) && !note_page(resident, start + i))
				return false;
	}
	return true;
}

/* Rounds inwards to whole pages of the system. */
static void locate(struct resident *resident, char *start, size_t bytes)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	uintptr_t first = ((uintptr_t)start + mask) & ~mask, end = ((uintptr_t)start + bytes) & ~mask;

	resident->base = (char *)first;
	resident->bytes = end > first ? end - first : 0;
}

static void locate_all(struct footprint *footprint, const struct sy_pages *pages)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)pages;

	locate(&footprint->memory, base->memory, (size_t)base->page_count << SY_PAGE_SHIFT);
	locate(&footprint->table, (char *)base->table, (size_t)base->page_count * sizeof(struct sy_page));
}

/* ---- Having it there ------------------------------------------------------------------------------------------ */

/* Committing again what the page allocator is going to commit changes nothing for it. */
static void touch(const struct resident *resident)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0, next; i < resident->count; i = next) {
		char *start = resident->base + resident->pages[i] * page_bytes;

		for (next = i + 1; next < resident->count && resident->pages[next] == resident->pages[next - 1] + 1;)
			next++;
		if (sy__source_commit(start, (next - i) * page_bytes) != 0)
			return;
		for (size_t page = 0; page < next - i; page++) {
			volatile char *byte = start + page * page_bytes;

			*byte = *byte;
		}
	}
}

/* ---- The rehearsal -------------------------------------------------------------------------------------------- */

/* A figure in kB from /proc/self/status; 0 where there is none. */
static uint64_t status_kb(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	unsigned long long value = 0;

	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), ": %llu", &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

/* Lets the peak of resident memory begin anew. Where the system refuses, the peak is that of the whole process. */
static void reset_resident_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	if (!file)
		return;
	fputs("5", file);
	fclose(file);
}

/* Runs the trace on a driver that is then destroyed. */
static bool run_once(struct driver *driver, const struct pass_options *options, struct footprint *footprint,
                     uint64_t *resident_kb, struct fault *fault)
{
	struct failed failed = { 0 };
	uint64_t before, peak;

	if (!driver_populate(driver, NULL, NULL, fault))
		return false;
	reset_resident_peak();
	before = status_kb("VmRSS");
	replay_steps(driver, &failed);
	peak = status_kb("VmHWM");
	*resident_kb = peak > before ? peak - before : 0;
	if (failed.count && !options->allow_failures)
		return driver_refuse_memory(driver, driver_event_of(driver, failed.first), fault);
	if (!driver->pages)
		return true;
	locate_all(footprint, driver->pages);
	return (find_resident(&footprint->memory) && find_resident(&footprint->table)) ||
	       refuse(fault, "no memory to note which pages the trace uses");
}

/* Sets up the driver that is to be measured. */
static bool set_up(struct driver *driver, const struct scratch *scratch, const struct spec *spec,
                   const struct pass_options *options, struct footprint *footprint, struct fault *fault)
{
	if (!driver_create(driver, scratch, spec, &options->driver, fault))
		return false;
	if (!driver_populate(driver, NULL, NULL, fault)) {
		driver_destroy(driver);
		return false;
	}
	if (driver->pages) {
		locate_all(footprint, driver->pages);
		touch(&footprint->memory);
		touch(&footprint->table);
	}
	return true;
}

bool rehearse(struct driver *driver, const struct scratch *scratch, const struct spec *spec,
              const struct pass_options *options, uint64_t *resident_kb, struct fault *fault)
{
	struct footprint footprint = { 0 };
	bool good;

	if (!driver_create(driver, scratch, spec, &options->driver, fault))
		return false;
	good = run_once(driver, options, &footprint, resident_kb, fault);
	driver_destroy(driver);
	good = good && set_up(driver, scratch, spec, options, &footprint, fault);
	free(footprint.memory.pages);
	free(footprint.table.pages);
	return good;
}
