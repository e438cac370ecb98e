/*
 * The timed pass: how long the requests take, and nothing else.
 *
 * Only the loops below run between the two readings of the clock. The trace was validated and translated before. So the loops
 * check nothing but whether memory ran out, a branch that is never taken, and read 16 bytes of each step in order, which the
 * processor prefetches by itself. It cannot foresee the live table's entry of a handle; that is prefetched some steps ahead.
 * Objects are neither touched nor prefetched: when their cache lines arrive is the allocator's doing, and part of its time.
 *
 * The environment's page events are between those of the objects, and may take most of the time. So the loop reads the
 * processor's counter (ticks.h) before and after each run of page events. What lies between the two readings is the pages' time.
 * All else is the objects', as are the ticks, which free what waited. The cost of the readings is taken off both.
 *
 * The trace has been run once before, and the memory that it uses is resident and private to this process (warm_up.c).
 *
 *   seconds              of the loop
 *   operations,          allocations and frees of objects, implied ones included; time of one
 *   ns_per_operation
 *   page_operations,     the same of the environment's pages
 *   ns_per_page_operation
 *   events               all that the loop replayed, environment pages included. A malloc is served the objects alone, so its
 *                        loop has fewer.
 *   page_faults          that the loop took: hardly any with a policy; a malloc may ask for new memory
 *   shrink_seconds,      of a full shrink behind the loop, and per page that it gave back
 *   shrink_ns_per_page
 *   held_pages_start ... of a malloc, whose memory cannot be counted otherwise: its pages in a run that writes to all objects
 *                        (malloc_memory.c)
 *   resident_peak_kb     of a malloc: how far the process's resident memory rose in the first run. Objects are not written to, so
 *                        pages that the malloc leaves alone do not count.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "replay.h"

#include "programs/likely.h"
#include "programs/ticks.h"

#include <math.h>
#include <sys/resource.h>

static __attribute__((noinline, cold)) void note_failure(struct failed *failed, const struct step *step)
{
	if (step_oversized(step))
		return;
	if (!failed->count++)
		failed->first = step;
}

/* Serves a run of page steps under the clock; the last of them. Behind every run is another step: the last one is a tick. */
static const struct step *serve_pages(struct driver *driver, const struct step *step, struct failed *failed,
                                      struct page_time *time)
{
	uint64_t start = ticks_now(), end;

	for (; step_of_pages(step); step++) {
		__builtin_prefetch(&driver->live[step[PREFETCH_AHEAD].handle], 1);
		if (unlikely(!driver_pages(driver, step)) && step->kind == EVENT_PAGE_ALLOC)
			note_failure(failed, step);
	}
	end = ticks_now();
	if (end > start) /* a counter that runs backwards (another processor) counts as no time */
		time->ticks += end - start;
	time->runs++;
	return step - 1;
}

static void replay_policy(struct driver *driver, struct failed *failed, struct page_time *time)
{
	struct sy_heap *heap = driver->heap;
	struct sy_cache *const *caches = driver->caches;
	void **live = driver->live, **entry;
	const struct step *step = driver->steps, *end = step + driver->step_count;

	for (; step < end; step++) {
		__builtin_prefetch(&live[step[PREFETCH_AHEAD].handle], 1);
		entry = &live[step->handle];
		switch (step->kind) {
		case EVENT_KMALLOC:
			*entry = sy_kmalloc(heap, step->slot, step->size, step->flags, step->node);
			if (unlikely(!*entry))
				note_failure(failed, step);
			break;
		case EVENT_KFREE:
			sy_kfree(heap, step->slot, *entry);
			break;
		case EVENT_CACHE_ALLOC:
			*entry = sy_cache_alloc(caches[step->cache], step->slot, step->flags, step->node);
			if (unlikely(!*entry))
				note_failure(failed, step);
			break;
		case EVENT_CACHE_FREE:
			if (likely(*entry))
				sy_cache_free(caches[step->cache], step->slot, *entry);
			break;
		case EVENT_PAGE_ALLOC:
		case EVENT_PAGE_FREE:
		case EVENT_OLDER_PAGE_FREE:
			step = serve_pages(driver, step, failed, time);
			break;
		case STEP_TICK:
			driver_tick(driver, step_time(step));
			break;
		default: /* snapshots and unknown frees */
			break;
		}
	}
}

static void replay_malloc(struct driver *driver, struct failed *failed)
{
	const struct malloc_target *target = &driver->malloc;
	void **live = driver->live, **entry;
	const struct step *step = driver->steps, *end = step + driver->step_count;

	for (; step < end; step++) {
		__builtin_prefetch(&live[step[PREFETCH_AHEAD].handle], 1);
		entry = &live[step->handle];
		if (step_allocates(step)) {
			*entry = malloc_target_alloc(target, step->kind == EVENT_CACHE_ALLOC ? (int)step->cache : -1, step->size,
			                             step->flags);
			if (unlikely(!*entry))
				note_failure(failed, step);
		} else if (step_frees(step)) {
			target->free(*entry);
			*entry = NULL; /* what is left at the end is freed by driver_empty */
		}
	}
}

void replay_steps(struct driver *driver, struct failed *failed, struct page_time *time)
{
	if (driver->heap)
		replay_policy(driver, failed, time);
	else
		replay_malloc(driver, failed);
}

/* ---- Around the loop ------------------------------------------------------------------------------------------ */

struct counted {
	uint64_t operations, page_operations, events;
};

static struct counted count_steps(const struct driver *driver)
{
	struct counted counted = { 0 };

	for (uint64_t i = 0; i < driver->step_count; i++) {
		const struct step *step = &driver->steps[i];
		bool object = step_of_object(step);

		counted.operations += object;
		counted.page_operations += driver->heap && step_of_pages(step);
		counted.events += object || (driver->heap && step->kind != STEP_TICK);
	}
	return counted;
}

/* Page faults of this process that needed no disk. */
static uint64_t page_faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_minflt : 0;
}

/* A full shrink of what the trace leaves: how long, and how many pages it gave back. */
static double time_shrink(struct driver *driver, uint64_t *pages)
{
	uint64_t start = monotonic_ns();

	*pages = sy_heap_shrink(driver->heap);
	return (double)(monotonic_ns() - start) * 1e-9;
}

/* Whether a shrink brings anything at all. */
static bool gives_when_asked(const struct driver *driver)
{
	return driver->heap && sy_heap_gives(driver->heap) != SY_GIVES_AT_ONCE;
}

/* Null where nothing came back, and of a malloc, which cannot be asked. */
static void write_shrink(struct json *json, struct driver *driver)
{
	uint64_t pages = 0;
	double seconds = gives_when_asked(driver) ? time_shrink(driver, &pages) : 0;

	json_measured(json, "shrink_seconds", pages ? seconds : (double)NAN, 9);
	json_measured(json, "shrink_ns_per_page", pages ? seconds * 1e9 / (double)pages : (double)NAN, 3);
}

/* For a malloc: the figures that a policy has in its exact pass. */
static void write_memory(struct json *json, const struct malloc_memory *memory)
{
	if (!memory->peak)
		return;
	json_count(json, "held_pages_start", memory->start);
	json_count(json, "held_pages_peak", memory->peak);
	json_count(json, "held_pages_end", memory->end);
	json_count(json, "grew_pages_peak", memory->peak - memory->start);
	json_signed(json, "grew_pages_end", (int64_t)(memory->end - memory->start));
}

/* How long the loop took, in nanoseconds. */
struct loop_time {
	double objects, pages;
};

/* Both clocks ran over the whole loop, so they tell the length of a tick. The counter's readings cost as much between the
 * two of a run as beyond them. */
static struct loop_time divide(const struct page_time *time, double ns, double ticks, const struct ticks *clock)
{
	struct loop_time loop = { .objects = ns };
	double per_tick, readings;

	if (!time->runs || ticks <= 0)
		return loop;
	per_tick = ns / ticks;
	readings = (double)time->runs * clock->mean * per_tick;
	loop.pages = (double)time->ticks * per_tick - readings;
	loop.objects = ns - (double)time->ticks * per_tick - readings;
	if (loop.pages < 0)
		loop.pages = 0;
	if (loop.objects < 0)
		loop.objects = 0;
	return loop;
}

static void write_each(struct json *json, const char *key, double ns, uint64_t count)
{
	json_measured(json, key, count ? ns / (double)count : (double)NAN, 3);
}

static void write_timed(struct json *json, struct stage *stage, const struct loop_time *loop, uint64_t faults)
{
	struct driver *driver = &stage->driver;
	struct counted counted = count_steps(driver);
	double seconds = (loop->objects + loop->pages) * 1e-9;

	json_object(json, NULL);
	json_object(json, "timed");
	json_measured(json, "seconds", seconds, 9);
	json_count(json, "operations", counted.operations);
	write_each(json, "ns_per_operation", loop->objects, counted.operations);
	json_count(json, "page_operations", counted.page_operations);
	write_each(json, "ns_per_page_operation", loop->pages, counted.page_operations);
	json_count(json, "events", counted.events);
	json_measured(json, "events_per_second", seconds > 0 ? (double)counted.events / seconds : (double)NAN, 0);
	json_count(json, "page_faults", faults);
	json_known(json, "resident_peak_kb", stage->resident_kb, stage->resident_kb);
	write_memory(json, &stage->memory);
	write_shrink(json, driver);
	json_object_end(json);
	json_object_end(json);
}

void timed_pass(struct json *json, struct stage *stage)
{
	struct failed failed = { 0 };
	struct page_time time = { 0 };
	struct loop_time loop;
	uint64_t start_ns, ns, start, ticks, faults;

	resident_bring(stage->resident);
	monotonic_ns(); /* the first reading may be slow */
	faults = page_faults();
	start_ns = monotonic_ns();
	start = ticks_now();
	replay_steps(&stage->driver, &failed, &time);
	ticks = ticks_now() - start;
	ns = monotonic_ns() - start_ns;
	faults = page_faults() - faults;
	loop = divide(&time, (double)ns, (double)ticks, &stage->ticks);
	write_timed(json, stage, &loop, faults);
}
