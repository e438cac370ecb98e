/*
 * The timed pass: how long the requests take, and nothing else.
 *
 * The loops below are all that runs between the two readings of the clock. The trace was validated and translated before,
 * so they check nothing but whether memory ran out (one branch, never taken), and read 16 bytes of a step in order, which
 * the processor prefetches by itself. What it can't foresee is the live table's entry of a handle: that is asked for some
 * steps ahead. Objects are never touched nor prefetched: when their lines reach the cache is the allocator's doing, and part of its time.
 *
 * Figures: `seconds` of the loop; `operations`, allocations and frees of objects, implied ones included; `events`, all that
 * the loop replayed, pages of the environment too. A malloc is served the objects alone, hence its loop has fewer events.
 *
 * Simulated memory is backed by huge pages where the system grants them, as a kernel's direct map is: a first touch of a
 * page costs a kernel nothing, and it should cost little here.
 *
 * A malloc's memory can't be counted from outside, but for what the system says of the process: `resident_peak_kb` is
 * how far resident memory rose during the loop. Objects are not written to, so pages that the malloc itself leaves alone don't count.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "replay.h"

#include <time.h>

#define PREFETCH_AHEAD 8u
_Static_assert(PREFETCH_AHEAD <= STEPS_AHEAD, "the steps that are looked at ahead exist");

/* Where requests failed. */
struct failed {
	uint64_t count;
	const struct step *first;
};

static __attribute__((noinline, cold)) void note_failure(struct failed *failed, const struct step *step)
{
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
			if (sy__unlikely(!*entry))
				note_failure(failed, step);
			break;
		case EVENT_KFREE:
			sy_kfree(heap, step->slot, *entry);
			break;
		case EVENT_CACHE_ALLOC:
			*entry = sy_cache_alloc(caches[step->cache], step->slot, step->flags, step->node);
			if (sy__unlikely(!*entry))
				note_failure(failed, step);
			break;
		case EVENT_CACHE_FREE:
			if (sy__likely(*entry))
				sy_cache_free(caches[step->cache], step->slot, *entry);
			break;
		case EVENT_PAGE_ALLOC:
			if (sy__unlikely(!driver_pages(driver, step)))
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
			if (sy__unlikely(!*entry))
				note_failure(failed, step);
		} else if (step_frees(step)) {
			target->free(*entry);
			*entry = NULL; /* what is left at the end is freed by driver_destroy */
		}
	}
}

/* ---- Around the loop ------------------------------------------------------------------------------------------ */

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

static void write_timed(struct json *json, const struct driver *driver, double seconds, const uint64_t resident_kb[2])
{
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
	if (!driver->heap && resident_kb[1])
		json_count(json, "resident_peak_kb", resident_kb[1] > resident_kb[0] ? resident_kb[1] - resident_kb[0] : 0);
	else
		json_null(json, "resident_peak_kb");
	json_object_end(json);
	json_object_end(json);
}

static bool time_driver(struct json *json, struct driver *driver, const struct pass_options *options,
                        struct fault *fault)
{
	void (*replay)(struct driver *, struct failed *) = driver->heap ? replay_policy : replay_malloc;
	struct failed failed = { 0 };
	struct timespec start, end;
	uint64_t resident_kb[2];

	if (!driver_populate(driver, NULL, NULL, fault))
		return false;
	reset_resident_peak();
	resident_kb[0] = status_kb("VmRSS");
	clock_gettime(CLOCK_MONOTONIC, &start);
	replay(driver, &failed);
	clock_gettime(CLOCK_MONOTONIC, &end);
	resident_kb[1] = status_kb("VmHWM");
	if (failed.count && !options->allow_failures)
		return driver_refuse_memory(driver, driver_event_of(driver, failed.first), fault);
	write_timed(json, driver, seconds_between(&start, &end), resident_kb);
	return true;
}

bool timed_pass(struct json *json, const struct scratch *scratch, const struct spec *spec,
                const struct pass_options *options, struct fault *fault)
{
	struct driver_options of_driver = options->driver;
	struct driver driver;
	bool good;

	of_driver.huge_pages = true;
	if (!driver_create(&driver, scratch, spec, &of_driver, fault))
		return false;
	good = time_driver(json, &driver, options, fault);
	driver_destroy(&driver);
	return good;
}
