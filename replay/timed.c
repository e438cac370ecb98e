/*
 * The timed pass: how long the requests take, and nothing else.
 *
 * Only the loops below run between the two readings of the clock. The trace was validated and translated before. So the loops
 * check nothing but whether memory ran out, a branch that is never taken, and read 16 bytes of each step in order, which the
 * processor prefetches by itself. It cannot foresee the live table's entry of a handle; that is prefetched some steps ahead.
 * Objects are neither touched nor prefetched: when their cache lines arrive is the allocator's doing, and part of its time.
 *
 * The trace has been run once before, and the memory that it uses is resident and private to this process (warm_up.c).
 *
 *   seconds              of the loop
 *   operations           allocations and frees of objects, implied ones included
 *   events               all that the loop replayed, environment pages included. A malloc is served the objects alone, so its
 *                        loop has fewer.
 *   page_faults          that the loop took: hardly any with a policy; a malloc may ask for new memory
 *   shrink_seconds,      of a full shrink behind the loop, and per page that it gave back
 *   shrink_ns_per_page
 *   resident_peak_kb     of a malloc, whose memory cannot be counted otherwise: how far the process's resident memory rose in the
 *                        first run. Objects are not written to, so pages that the malloc leaves alone do not count.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "replay.h"

#include "programs/likely.h"
#include "programs/ticks.h"

#include <math.h>
#include <sys/resource.h>

#define PREFETCH_AHEAD 8u
_Static_assert(PREFETCH_AHEAD <= STEPS_AHEAD, "the steps that are looked at ahead exist");

static __attribute__((noinline, cold)) void note_failure(struct failed *failed, const struct step *step)
{
	if (step_oversized(step))
		return;
	if (!failed->count++)
		failed->first = step;
}

static void replay_policy(struct driver *driver, struct failed *failed)
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
			if (unlikely(!driver_pages(driver, step)))
				note_failure(failed, step);
			break;
		case EVENT_PAGE_FREE:
		case EVENT_OLDER_PAGE_FREE:
			driver_pages(driver, step);
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

void replay_steps(struct driver *driver, struct failed *failed)
{
	if (driver->heap)
		replay_policy(driver, failed);
	else
		replay_malloc(driver, failed);
}

/* ---- Around the loop ------------------------------------------------------------------------------------------ */

static void count_steps(const struct driver *driver, uint64_t *operations, uint64_t *events)
{
	for (uint64_t i = 0; i < driver->step_count; i++) {
		const struct step *step = &driver->steps[i];
		bool object = step_allocates(step) || step_frees(step);

		*operations += object;
		*events += object || (driver->heap && step->kind != STEP_TICK);
	}
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
	struct sy_policy_description is;

	if (!driver->heap)
		return false;
	sy_policy_describe(driver->spec->policy, &is);
	return is.gives != SY_GIVES_AT_ONCE;
}

/* Null where nothing came back, and of a malloc, which cannot be asked. */
static void write_shrink(struct json *json, struct driver *driver)
{
	uint64_t pages = 0;
	double seconds = gives_when_asked(driver) ? time_shrink(driver, &pages) : 0;

	json_measured(json, "shrink_seconds", pages ? seconds : (double)NAN, 9);
	json_measured(json, "shrink_ns_per_page", pages ? seconds * 1e9 / (double)pages : (double)NAN, 3);
}

static void write_timed(struct json *json, struct stage *stage, double seconds, uint64_t faults)
{
	struct driver *driver = &stage->driver;
	uint64_t operations = 0, events = 0;

	count_steps(driver, &operations, &events);
	json_object(json, NULL);
	json_object(json, "timed");
	json_measured(json, "seconds", seconds, 9);
	json_count(json, "operations", operations);
	json_measured(json, "ns_per_operation", operations ? seconds * 1e9 / (double)operations : (double)NAN, 3);
	json_count(json, "events", events);
	json_measured(json, "events_per_second", seconds > 0 ? (double)events / seconds : (double)NAN, 0);
	json_count(json, "page_faults", faults);
	json_known(json, "resident_peak_kb", stage->resident_kb, stage->resident_kb);
	write_shrink(json, driver);
	json_object_end(json);
	json_object_end(json);
}

void timed_pass(struct json *json, struct stage *stage)
{
	struct failed failed = { 0 };
	uint64_t start, end, faults;

	resident_bring(stage->resident);
	monotonic_ns(); /* the first reading may be slow */
	faults = page_faults();
	start = monotonic_ns();
	replay_steps(&stage->driver, &failed);
	end = monotonic_ns();
	write_timed(json, stage, (double)(end - start) * 1e-9, page_faults() - faults);
}
