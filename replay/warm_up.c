/*
 * A warm-up before a measurement, so that the allocator is measured and not the operating system beneath the simulation.
 *
 * A kernel's memory is simply there. Simulated memory appears page by page at its first write, at the cost of a fault each. In a
 * short trace these faults take longer than all requests together, and in a forked child pages are copied first. Huge pages would
 * make faults rare, but on a machine that has run for a while each may wait tens of milliseconds. So the trace is run once
 * unmeasured, in a child of its own, which notes the pages that it used (resident.c). A replay is deterministic: each pass uses
 * exactly these pages, and has them before its clock starts. Memory that the trace will commit is committed here already. It
 * reads zero as before, so no allocator can tell the difference.
 *
 * The warm-up also tells what fails for lack of memory, and calibrates the clock.
 *
 * A malloc keeps the heap that it has grown, like that of a program that has run for a while. So it runs the trace once more before
 * that, in this process, where the heap stays. Then everything is freed, and the objects older than the trace are allocated
 * again. That run also measures how far the malloc's resident memory rises. How many pages the malloc holds is measured before that
 * (malloc_memory.c).
 */
#define _GNU_SOURCE /* clock_gettime */
#include "child.h"
#include "replay.h"
#include "programs/resident_status.h"

#include "library/lab/replay.h"

/* ---- A malloc's heap ------------------------------------------------------------------------------------------ */

static bool grow_heap(struct stage *stage, struct fault *fault)
{
	struct failed failed = { 0 };
	struct page_time time = { 0 };
	uint64_t before, peak;

	reset_resident_peak();
	before = status_kb("VmRSS");
	replay_steps(&stage->driver, &failed, &time);
	peak = status_kb("VmHWM");
	stage->resident_kb = peak > before ? peak - before : 0;
	driver_empty(&stage->driver);
	return driver_populate(&stage->driver, fault);
}

/* ---- Pages ---------------------------------------------------------------------------------------------------- */

/* Runs the trace in a child. */
static bool run_once(void *context, struct fault *fault)
{
	struct stage *stage = context;
	struct failed failed = { 0 };
	struct page_time time = { 0 };

	replay_steps(&stage->driver, &failed, &time);
	if (failed.count && !stage->options->allow_failures)
		return driver_refuse_memory(&stage->driver, driver_event_of(&stage->driver, failed.first), fault);
	if (stage->driver.heap)
		sy_heap_shrink(stage->driver.heap); /* as the timed pass does behind its loop */
	resident_note(stage->resident);
	return true;
}

/* Commits those of these pages that lie in reserved memory. If the system refuses, the passes will report it. */
static void commit(const struct stage *stage)
{
	const struct resident *resident = stage->resident;

	for (size_t i = 0; i < resident->count; i++)
		sy_lab_commit(stage->driver.pages, (const void *)resident->runs[i].start, resident->runs[i].bytes);
}

bool warm_up(struct stage *stage, struct fault *fault)
{
	if (stage->resident)
		return true;
	ticks_calibrate(&stage->ticks);
	if (!stage->driver.heap && (!malloc_memory_measure(stage, fault) || !grow_heap(stage, fault)))
		return false;
	stage->resident = resident_create();
	if (!stage->resident)
		return refuse(fault, "no address space to note which pages the trace uses");
	if (!child_run(run_once, stage, fault))
		return false;
	if (stage->driver.pages)
		commit(stage);
	return true;
}
