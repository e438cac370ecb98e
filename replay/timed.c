/*
 * The timed pass: how long the requests take, and nothing else.
 *
 * The loops below are all that runs between the two readings of the clock. The trace was validated and translated
 * before, so they check nothing but whether memory ran out (one branch, never taken), and read 16 bytes of a step in
 * order, which the processor prefetches by itself. What it can't foresee is the live table's entry of a handle: that
 * is asked for some steps ahead. Objects are never touched nor prefetched: when their lines reach the cache is the
 * allocator's doing, and part of its time.
 *
 * Figures: `seconds` of the loop; `operations`, allocations and frees of objects, implied ones included; `events`, all
 * that the loop replayed, pages of the environment too. A malloc is served the objects alone, hence its loop has fewer
 * events. `page_faults` that the loop took: none or next to none with a policy; a malloc may ask for memory anew.
 *
 * Behind the loop a full shrink is timed: `shrink_seconds`, and for each page that it gave back `shrink_ns_per_page`.
 *
 * The trace has been run once before, and the memory that it uses is resident and this process's own (warm_up.c).
 *
 * A malloc's memory can't be counted from outside, but for what the system says of the process: the pages that it holds
 * are those of a run that writes to all objects (malloc_memory.c). `resident_peak_kb` is how far resident memory rose
 * in a run that doesn't, so pages that the malloc itself leaves alone don't count.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "replay.h"

#include "programs/likely.h"

#include <sys/resource.h>
#include <time.h>

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

static double seconds_between(const struct timespec *start, const struct timespec *end)
{
	return (double)(end->tv_sec - start->tv_sec) + (double)(end->tv_nsec - start->tv_nsec) * 1e-9;
}

static void count_steps(const struct driver *driver, uint64_t *operations, uint64_t *events)
{
	for (uint64_t i = 0; i < driver->step_count; i++) {
		const struct step *step = &driver->steps[i];
		bool object = step_allocates(step) || step_frees(step);

		*operations += object;
		*events += object || (driver->heap && step->kind != STEP_TICK);
	}
}

/* Faults that this process has taken without a wait for a disk. */
static uint64_t page_faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_minflt : 0;
}

/* A full shrink of what the trace leaves: how long, and how many pages it gave back. */
static double time_shrink(struct driver *driver, uint64_t *pages)
{
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	*pages = sy_heap_shrink(driver->heap);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return seconds_between(&start, &end);
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

/* Of a malloc, which can't be asked, and of what had nothing to give back there are no times. */
static void write_shrink(struct json *json, struct driver *driver)
{
	uint64_t pages = 0;
	double seconds = gives_when_asked(driver) ? time_shrink(driver, &pages) : 0;

	if (pages) {
		json_measured(json, "shrink_seconds", seconds, 9);
		json_measured(json, "shrink_ns_per_page", seconds * 1e9 / (double)pages, 3);
	} else {
		json_null(json, "shrink_seconds");
		json_null(json, "shrink_ns_per_page");
	}
}

/* Of a malloc, what a policy has among the exact figures. */
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

static void write_timed(struct json *json, struct stage *stage, double seconds, uint64_t faults)
{
	struct driver *driver = &stage->driver;
	uint64_t operations = 0, events = 0;

	count_steps(driver, &operations, &events);
	json_object(json, NULL);
	json_object(json, "timed");
	json_measured(json, "seconds", seconds, 9);
	json_count(json, "operations", operations);
	if (operations)
		json_measured(json, "ns_per_operation", seconds * 1e9 / (double)operations, 3);
	else
		json_null(json, "ns_per_operation");
	json_count(json, "events", events);
	if (seconds > 0)
		json_measured(json, "events_per_second", (double)events / seconds, 0);
	else
		json_null(json, "events_per_second");
	json_count(json, "page_faults", faults);
	if (stage->resident_kb)
		json_count(json, "resident_peak_kb", stage->resident_kb);
	else
		json_null(json, "resident_peak_kb");
	write_memory(json, &stage->memory);
	write_shrink(json, driver);
	json_object_end(json);
	json_object_end(json);
}

void timed_pass(struct json *json, struct stage *stage)
{
	struct failed failed = { 0 };
	struct timespec start, end;
	uint64_t faults;

	resident_bring(stage->resident);
	clock_gettime(CLOCK_MONOTONIC, &end); /* whatever the first reading takes, it takes now */
	faults = page_faults();
	clock_gettime(CLOCK_MONOTONIC, &start);
	replay_steps(&stage->driver, &failed);
	clock_gettime(CLOCK_MONOTONIC, &end);
	faults = page_faults() - faults;
	write_timed(json, stage, seconds_between(&start, &end), faults);
}
