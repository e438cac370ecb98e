/*
 * How much memory a malloc holds for a trace: before the first event, at the peak and at the end, in pages of the
 * system.
 *
 * A policy's pages are counted whether they were written to or not, as a kernel's are. A malloc's can't be counted
 * from outside, but the system tells which pages of this process are there (Anonymous in /proc/self/smaps_rollup, which
 * walks the page tables and is exact; VmRSS is not, as each thread keeps back some pages of it). So a run of its own
 * writes to every page of every object, and asks. What the library keeps of itself, for its tables and its free
 * memory, counts with it; what was there before the library served anything does not.
 *
 * Asking takes as long as some hundred requests, hence it is not done after each step: at 256 points evenly over the
 * steps, and wherever the bytes that live are at a new maximum, at least a 256th above the last one that was looked at.
 * Memory that comes and goes between these, beyond both, is not seen.
 *
 * The run is in a child, whose pages vanish with it: the passes find the heap as it would be without it. Huge pages
 * are off in it, as they would have the peak in steps of 2 MiB. The numbers come back through a page that both share.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "child.h"
#include "replay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LOOKS 256u

struct run {
	struct stage *stage;
	struct malloc_memory *found; /* shared */
	uint32_t *sizes;             /* of live objects, by handle; shared as well, hence not among the pages that are counted */
	uint64_t live_bytes, looked_bytes;
};

/* ---- Asking the system ---------------------------------------------------------------------------------------- */

/* Without the C library's files, whose buffers are of the malloc that is measured. */
uint64_t malloc_memory_now(void)
{
	static const char key[] = "\nAnonymous:";
	char text[4096], *line;
	int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);

	if (file >= 0)
		close(file);
	if (got <= 0)
		return 0;
	text[got] = '\0';
	line = strstr(text, key);
	return line ? strtoull(line + sizeof key - 1, NULL, 10) >> (SY_PAGE_SHIFT - 10) : 0;
}

static uint64_t held_pages(const struct run *run)
{
	uint64_t now = malloc_memory_now(), before = run->stage->driver.pages_before;

	return now > before ? now - before : 0;
}

static void look(struct run *run)
{
	uint64_t held = held_pages(run);

	if (held > run->found->peak)
		run->found->peak = held;
}

/* ---- The run -------------------------------------------------------------------------------------------------- */

/* Bytes that a request's client may write: a cache's objects are of one size, whatever the request says. cache: NO_CACHE for a
 * kmalloc. */
static uint32_t bytes_of(const struct run *run, uint16_t cache, uint32_t size)
{
	return cache == NO_CACHE ? size : run->stage->driver.scratch->caches[cache].object_size;
}

static void write_to(void *object, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *at = object;

	if (!object || !bytes)
		return;
	for (size_t offset = 0; offset < bytes; offset += page)
		at[offset] = 0;
	at[bytes - 1] = 0;
}

static void write_to_older(void *context, const struct scratch_older *older, void *object)
{
	struct run *run = context;
	uint32_t bytes = bytes_of(run, older->cache, older->size);

	write_to(object, bytes);
	run->live_bytes += bytes;
	if (older->handle != NO_HANDLE)
		run->sizes[older->handle] = bytes;
}

static void serve(struct run *run, const struct step *step)
{
	struct driver *driver = &run->stage->driver;
	void **live = &driver->live[step->handle];

	if (step_allocates(step)) {
		uint32_t bytes = bytes_of(run, step->kind == EVENT_CACHE_ALLOC ? step->cache : NO_CACHE, step->size);

		*live = driver_alloc(driver, step);
		run->sizes[step->handle] = *live ? bytes : 0;
		write_to(*live, bytes);
		run->live_bytes += run->sizes[step->handle];
	} else if (step_frees(step)) {
		driver_free(driver, step, *live);
		*live = NULL;
		run->live_bytes -= run->sizes[step->handle];
		run->sizes[step->handle] = 0;
	}
	if (run->live_bytes > run->looked_bytes + run->looked_bytes / LOOKS) {
		run->looked_bytes = run->live_bytes;
		look(run);
	}
}

static bool run_all(void *context, struct fault *fault)
{
	struct run *run = context;
	const struct driver *driver = &run->stage->driver;
	uint64_t every = driver->step_count / LOOKS + 1;

	(void)fault;
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	driver_each_older(driver, write_to_older, run);
	run->looked_bytes = run->live_bytes;
	run->found->start = run->found->peak = held_pages(run);
	for (uint64_t i = 0; i < driver->step_count; i++) {
		serve(run, &driver->steps[i]);
		if (i % every == 0)
			look(run);
	}
	look(run);
	run->found->end = held_pages(run);
	return true;
}

bool malloc_memory_measure(struct stage *stage, struct fault *fault)
{
	size_t bytes = sizeof(struct malloc_memory) + ((size_t)stage->driver.scratch->run->handles + 1) * sizeof(uint32_t);
	struct malloc_memory *shared;
	struct run run = { .stage = stage };
	bool good;

	if (!stage->driver.pages_before)
		return true; /* the system doesn't tell */
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return refuse(fault, "no memory for a pass");
	run.found = shared;
	run.sizes = (uint32_t *)(shared + 1);
	good = child_run(run_all, &run, fault);
	stage->memory = *shared;
	munmap(shared, bytes);
	return good;
}
