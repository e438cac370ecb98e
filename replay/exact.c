/*
 * The exact pass: every measure that follows from the trace alone.
 *
 * It serves the same steps as the timed pass and looks after each of them. It keeps integers only. It reads counters of the core and
 * offsets in pages, never addresses or clocks. So the result is the same to the byte on every run and machine. docs/measures.md
 * defines the measures. They come from:
 *
 *   requests, frees ...   events, by kind and by the implied mark. The free of a failed request counts as nothing.
 *   requested bytes       sizes of live requests, those older than the trace included
 *   given bytes           what live objects occupy: the distance between objects of a cache or size class, the pages of a large
 *                         allocation, or the bytes that may be written where a policy has no size classes
 *   pages                 the heap's own counters, looked at after every step that changed one. A peak is the highest value
 *                         after any step. The mean weighs each value by the trace time for which it held. Growth is what is above
 *                         the value before the first event. By cache: exact_growth.c.
 *   nodes                 the node of an object's page against the slot's node, and against the one that was asked for
 *   pressure              how often the page allocator asked the heap for memory, read after every step
 *   fast path             operations less those that the policy counted as having left it
 *   fallbacks, free lists the page allocator's counters. Walking its zones is slow, so they are read at points alone.
 *
 * Points of the time series lie at equal distances of trace time from begin to end. Each is the state after the last event that is
 * not later. Peaks between points are in the peak measures.
 *
 * Who asked. Every request is counted for its call site and for a row. The row of a cache's object is its cache. That of a kmalloc
 * is the heap's size class that serves it, found by size and kind of memory (DMA before reclaimable before accounted). A kmalloc
 * of a policy without classes has one row, and a kmalloc in pages of its own another.
 *
 * Scalars alone (settings.c) need no table of objects, rows or points. The same loop leaves them out: a free tells how much was asked
 * for (driver.c), and what is left at the end is looked at then.
 */
#include "exact.h"

#include <errno.h>
#include <string.h>

/* ---- Looking -------------------------------------------------------------------------------------------------- */

void exact_count_pages(const struct exact *exact, struct sy_pages_counts *counts)
{
	memset(counts, 0, sizeof *counts);
	if (exact->driver->pages)
		sy_pages_count(exact->driver->pages, counts);
}

static void add_free_blocks(const struct sy_pages_counts *counts, uint64_t free_blocks[SY_ORDERS])
{
	for (unsigned zone = 0; zone < counts->zone_count; zone++)
		for (unsigned type = 0; type < SY_MIGRATE_TYPES; type++)
			for (unsigned order = 0; order < SY_ORDERS; order++)
				free_blocks[order] += counts->zones[zone].free_blocks[type][order];
}

void exact_look(struct exact *exact, struct point *point)
{
	const struct sy_heap_counters *counters = exact->counters;
	struct sy_pages_counts counts;

	*point = (struct point){ .time = exact->now, .requested_bytes = exact->requested_bytes };
	if (!exact->driver->heap)
		return;
	exact_count_pages(exact, &counts);
	point->slab_pages = exact_slab_pages(exact);
	point->large_pages = exact_large_pages(exact);
	point->held_pages = point->slab_pages + point->large_pages;
	point->metadata_pages = counters->metadata_pages;
	point->taken_pages = counters->taken_pages - exact->taken_before;
	point->fragmentation_events = counts.fallbacks - exact->fallbacks_before;
	add_free_blocks(&counts, point->free_blocks);
}

static uint64_t held_pages(const struct exact *exact)
{
	return exact_slab_pages(exact) + exact_large_pages(exact);
}

static void raise(uint64_t *peak, uint64_t value)
{
	if (value > *peak)
		*peak = value;
}

/* After a step that changed what the heap holds, and before the first one. */
static void look_for_peaks(struct exact *exact)
{
	const struct sy_heap_counters *counters = exact->counters;
	uint64_t held = held_pages(exact);

	raise(&exact->slab_peak, exact_slab_pages(exact));
	raise(&exact->large_peak, exact_large_pages(exact));
	raise(&exact->metadata_peak, counters->metadata_pages);
	if (held > exact->held_peak) {
		exact->held_peak = held;
		exact->large_at_held_peak = counters->large_pages;
		exact_growth_peak(exact);
		exact->requested_at_held_peak = exact->requested_bytes;
	}
	exact->at_peak = exact->driver->heap && held == exact->held_peak;
}

/* ---- Time ----------------------------------------------------------------------------------------------------- */

static uint64_t time_of_point(const struct exact *exact, unsigned number)
{
	uint64_t span = exact->driver->span_ns, steps = exact->point_count - 1;

	return span / steps * number + span % steps * number / steps;
}

static void add_product(struct wide *sum, uint64_t a, uint64_t b)
{
	sum->low += a * (b & UINT32_MAX);
	sum->high += a * (b >> 32) + (sum->low >> 32);
	sum->low &= UINT32_MAX;
}

static uint64_t time_of_next_point(const struct exact *exact)
{
	return exact->points_taken < exact->point_count ? time_of_point(exact, exact->points_taken) : UINT64_MAX;
}

static void take_points(struct exact *exact, uint64_t until)
{
	while (exact->next_point < until) {
		struct point *point = &exact->points[exact->points_taken++];

		exact_look(exact, point);
		point->time = exact->next_point;
		exact->next_point = time_of_next_point(exact);
	}
}

/* Lets time pass. The present state holds until then. */
static inline void pass_time(struct exact *exact, uint64_t until)
{
	if (exact->next_point < until)
		take_points(exact, until);
	exact->now = until;
}

/* From now on the heap holds `held` pages. */
static void hold(struct exact *exact, uint64_t held)
{
	add_product(&exact->held_by_time, exact->held, exact->now - exact->held_since);
	exact->held = held;
	exact->held_since = exact->now;
}

/* ---- Objects -------------------------------------------------------------------------------------------------- */

static unsigned kind_of_memory(unsigned flags, unsigned dma, unsigned reclaimable, unsigned account)
{
	return flags & dma ? 3 : flags & reclaimable ? 2 : flags & account ? 1 : 0;
}

/* The size class whose objects have `usable` bytes; class_count: none. A policy without classes for a kind of memory may serve
 * it from its plain ones. */
static unsigned class_of(const struct exact *exact, size_t usable, unsigned wanted)
{
	unsigned plain = exact->class_count;

	for (unsigned i = 0; i < exact->class_count; i++) {
		const struct sy_cache_description *class = &exact->classes[i].is;
		unsigned kind = kind_of_memory(class->flags, SY_CACHE_DMA, SY_CACHE_RECLAIMABLE, SY_CACHE_ACCOUNT);

		if (class->object_size == usable && kind == wanted)
			return i;
		if (class->object_size == usable && kind == 0)
			plain = i;
	}
	return plain;
}

/* The same as a row. Requests are of few sizes, and there are dozens of classes, so what was found is kept at hand. */
static uint32_t row_of_kmalloc(struct exact *exact, uint32_t usable, unsigned flags)
{
	unsigned kind = kind_of_memory(flags, SY_DMA, SY_RECLAIMABLE, SY_ACCOUNT);
	struct row_of_class *found = &exact->classes_at_hand[(usable / 8 * 4 + kind) % CLASSES_AT_HAND];

	if (found->usable != usable || found->kind != kind)
		*found = (struct row_of_class){ usable, kind, exact_class_row(exact, class_of(exact, usable, kind)) };
	return found->row;
}

static struct note note_of(struct exact *exact, uint16_t cache, uint32_t size, unsigned flags,
                           const void *object)
{
	struct sy_heap *heap = exact->driver->heap;
	struct note note = { .size = size, .row = cache == NO_CACHE ? exact_kmalloc_row(exact) : cache };
	struct sy_lab_place place;

	note.call_site = NO_SITE;
	if (!heap)
		return note;
	place = sy_lab_place_of(heap, object);
	note.node = (uint8_t)place.node;
	if (place.large) {
		note.large = true;
		note.given = (uint32_t)(SY_PAGE_SIZE << place.order);
		if (cache == NO_CACHE)
			note.row = exact_large_row(exact);
	} else if (cache != NO_CACHE) {
		note.given = exact->cache_bytes[cache];
	} else {
		note.given = (uint32_t)sy_usable_size(heap, object);
		note.row = row_of_kmalloc(exact, note.given, flags);
	}
	return note;
}

/* objects: 1 allocated, or -1 freed. */
static void add_to_tally(struct tally *tally, int objects, uint64_t bytes)
{
	tally->live += (uint64_t)objects;
	tally->live_bytes += bytes;
	raise(&tally->peak_bytes, tally->live_bytes);
}

/* Counts an object that was allocated (objects: 1) or is freed (-1). Sums of uint64_t wrap, so adding a negative number subtracts. */
static void count_objects(struct exact *exact, const struct note *note, int objects)
{
	uint64_t sign = (uint64_t)objects, size = sign * note->size;

	exact->requested_bytes += size;
	raise(&exact->requested_peak, exact->requested_bytes);
	*(note->large ? &exact->given_large_bytes : &exact->given_slab_bytes) += sign * note->given;
	exact->requested_large_bytes += note->large ? size : 0;
	add_to_tally(&exact->rows[note->row], objects, size);
	if (note->call_site != NO_SITE)
		add_to_tally(&exact->call_sites[note->call_site], objects, size);
}

/* Counts an object older than the trace, for driver_each_older. */
static void count_older(void *context, const struct scratch_older *older, void *object)
{
	struct exact *exact = context;
	struct note note;

	exact->older_objects++;
	if (exact->scalars_alone) {
		exact->requested_bytes += older->size;
		return;
	}
	note = note_of(exact, older->cache, older->size, older->flags, object);
	count_objects(exact, &note, 1);
	if (older->handle != NO_HANDLE)
		exact->notes[older->handle] = note;
}

/* ---- Scalars alone ---------------------------------------------------------------------------------------------- */

/* A request that was served, and where. Nothing is noted of an object: its free tells how much was asked for (struct step). */
static inline unsigned count_asked(struct exact *exact, const struct step *step, const void *object)
{
	exact->requested_bytes += step->size;
	raise(&exact->requested_peak, exact->requested_bytes);
	return exact->one_node ? 0 : sy_lab_place_of(exact->driver->heap, object).node;
}

static inline unsigned count_freed(struct exact *exact, const struct step *step, const void *object)
{
	exact->requested_bytes -= step->size;
	return exact->one_node ? 0 : sy_lab_place_of(exact->driver->heap, object).node;
}

static void count_given(struct exact *exact, uint16_t cache, const void *object)
{
	struct note note;

	if (!object)
		return; /* its allocation failed */
	note = note_of(exact, cache, 0, 0, object);
	*(note.large ? &exact->given_large_bytes : &exact->given_slab_bytes) += note.given;
}

/* What the remaining objects occupy: where it was not noted, they are looked at in the end. */
static void count_kept(struct exact *exact)
{
	const struct driver *driver = exact->driver;
	const struct scratch *scratch = driver->scratch;

	for (uint64_t i = 0; i < driver->laid_count; i++)
		if (driver->laid[i].handle == NO_HANDLE)
			count_given(exact, driver->laid[i].cache, driver->older[i]);
	for (uint64_t i = 0; i < scratch->run->handles; i++)
		if (driver->kept[i] != NOT_KEPT)
			count_given(exact, driver->kept[i], driver->live[i]);
}

/* ---- Nodes ---------------------------------------------------------------------------------------------------- */

static inline void count_node_of_alloc(struct exact *exact, const struct step *step, unsigned node)
{
	struct locality *locality = &exact->locality;

	if (!exact->driver->heap)
		return;
	*(node == exact->slot_nodes[step->slot] ? &locality->local_allocations : &locality->remote_allocations) += 1;
	if (step->node != SY_ANY_NODE)
		*((int)node == step->node ? &locality->node_requests_met : &locality->node_requests_missed) += 1;
}

static inline void count_node_of_free(struct exact *exact, const struct step *step, unsigned node)
{
	struct locality *locality = &exact->locality;

	if (exact->driver->heap)
		*(node == exact->slot_nodes[step->slot] ? &locality->local_frees : &locality->remote_frees) += 1;
}

/* ---- Events of objects ---------------------------------------------------------------------------------------- */

static void note_failure(struct exact *exact, const struct step *step, uint64_t event)
{
	if (!exact->failed)
		exact->first_failed = event;
	exact->failed = true;
	if (step_oversized(step)) {
		exact->oversized_failures++;
		return;
	}
	if (!exact->short_of_memory)
		exact->first_short = event;
	exact->short_of_memory = true;
}

/* A request that found no memory. */
static void fail(struct exact *exact, const struct step *step, const struct scratch_event *event)
{
	exact->failures++;
	if (step->kind == EVENT_CACHE_ALLOC && !exact->scalars_alone)
		exact->rows[step->cache].requests += !step->order;
	note_failure(exact, step, (uint64_t)(event - exact->driver->scratch->events));
}

/* For its cache and its call site; returns its node. */
static unsigned note_alloc(struct exact *exact, const struct step *step, const struct scratch_event *event, const void *object)
{
	struct note *note = &exact->notes[step->handle];

	*note = note_of(exact, step->kind == EVENT_CACHE_ALLOC ? step->cache : NO_CACHE, step->size, step->flags, object);
	note->call_site = event->call_site;
	exact->row = note->row;
	exact->rows[note->row].requests += !step->order;
	count_objects(exact, note, 1);
	return note->node;
}

static unsigned note_free(struct exact *exact, const struct step *step)
{
	const struct note *note = &exact->notes[step->handle];

	exact->row = note->row;
	count_objects(exact, note, -1);
	return note->node;
}

static inline void run_alloc(struct exact *exact, const struct step *step, const struct scratch_event *event, bool scalars_alone)
{
	bool implied = step->order;
	void *object = driver_alloc(exact->driver, step);

	exact->driver->live[step->handle] = object;
	*(implied ? &exact->implied_allocations : &exact->requests) += 1;
	if (!scalars_alone)
		exact->call_sites[event->call_site].requests += !implied;
	if (!object) {
		fail(exact, step, event);
		return;
	}
	exact->operations++;
	count_node_of_alloc(exact, step, scalars_alone ? count_asked(exact, step, object) : note_alloc(exact, step, event, object));
}

static inline void run_free(struct exact *exact, const struct step *step, bool scalars_alone)
{
	void *object = exact->driver->live[step->handle];

	if (!object)
		return; /* its allocation failed */
	*(step->order ? &exact->implied_frees : &exact->frees) += 1;
	exact->operations++;
	count_node_of_free(exact, step, scalars_alone ? count_freed(exact, step, object) : note_free(exact, step));
	driver_free(exact->driver, step, object);
	exact->driver->live[step->handle] = NULL;
}

/* ---- Pages and marks ------------------------------------------------------------------------------------------ */

static void run_page_alloc(struct exact *exact, const struct step *step, const struct scratch_event *event)
{
	*(event->flags & EVENT_IMPLIED ? &exact->implied_page_allocations : &exact->environment_requests) += 1;
	if (!exact->driver->pages)
		return;
	if (driver_pages(exact->driver, step)) {
		exact->environment_pages += (uint64_t)1 << step->order;
	} else {
		exact->environment_failures++;
		note_failure(exact, step, (uint64_t)(event - exact->driver->scratch->events));
	}
}

static void run_page_free(struct exact *exact, const struct step *step, const struct scratch_event *event)
{
	const struct sy_page *page = exact->driver->live[step->handle];

	if (exact->driver->pages && !page)
		return; /* its allocation failed */
	*(event->flags & EVENT_IMPLIED ? &exact->implied_page_frees : &exact->environment_frees) += 1;
	if (page)
		exact->environment_pages -= (uint64_t)1 << sy_lab_page_order(page);
	driver_pages(exact->driver, step);
}

static void run_older_page_free(struct exact *exact, const struct step *step)
{
	*(driver_pages(exact->driver, step) ? &exact->older_page_frees : &exact->older_page_frees_missed) += 1;
}

static void take_snapshot(struct exact *exact, const struct scratch_event *event)
{
	struct snapshot *snapshot = &exact->snapshots[exact->snapshot_count++];

	exact_look(exact, &snapshot->at);
	snapshot->number = event->handle;
}

/* Anything but a step of an object. */
static void run_other(struct exact *exact, const struct step *step, const struct scratch_event *event)
{
	switch (step->kind) {
	case EVENT_PAGE_ALLOC:
		run_page_alloc(exact, step, event);
		break;
	case EVENT_PAGE_FREE:
		run_page_free(exact, step, event);
		break;
	case EVENT_OLDER_PAGE_FREE:
		run_older_page_free(exact, step);
		break;
	case EVENT_SNAPSHOT:
		if (!exact->scalars_alone)
			take_snapshot(exact, event);
		break;
	case EVENT_UNKNOWN_PAGE_FREE:
		exact->unknown_page_frees++;
		break;
	default:
		exact->unknown_frees++;
	}
}

/* ---- Pressure ------------------------------------------------------------------------------------------------- */

/* Notes when the heap was first asked for memory, and when it first gave some. Called after each step that may have done so. */
static void watch_pressure(struct exact *exact, uint64_t event)
{
	const struct sy_heap_counters *counters = exact->counters;
	struct pressure *pressure = &exact->pressure;

	if (pressure->given || counters->asked == pressure->before.asked)
		return;
	if (!pressure->asked) {
		pressure->asked = true;
		pressure->event = event;
		pressure->time = exact->now;
	}
	if (counters->reclaimed_pages == pressure->before.reclaimed_pages)
		return;
	pressure->given = true;
	pressure->wait_events = event - pressure->event;
	pressure->wait_ns = exact->now - pressure->time;
}

/* ---- Locks ---------------------------------------------------------------------------------------------------- */

static uint64_t slow_operations(const struct exact *exact)
{
	return exact->counters->slow_allocs + exact->counters->slow_frees;
}

static inline void run_object(struct exact *exact, const struct step *step, const struct scratch_event *event, bool scalars_alone)
{
	if (step_allocates(step))
		run_alloc(exact, step, event, scalars_alone);
	else
		run_free(exact, step, scalars_alone);
}

/* The same, and for the row of the object what it counted. */
static void run_counted(struct exact *exact, const struct step *step, const struct scratch_event *event)
{
	uint64_t slow = slow_operations(exact), locks = *exact->locks, operations = exact->operations;
	struct tally *tally;

	run_object(exact, step, event, false);
	if (exact->row == NO_ROW)
		return;
	tally = &exact->rows[exact->row];
	tally->operations += exact->operations - operations;
	tally->slow += slow_operations(exact) - slow;
	tally->locks += *exact->locks - locks;
}

/* ---- The whole ------------------------------------------------------------------------------------------------ */

static uint64_t all_pages(const struct exact *exact)
{
	return held_pages(exact) + exact->counters->metadata_pages;
}

/* Whether an object's step may have changed the heap's pages: each page that comes counts as a request, and without one there are fewer. */
static inline bool pages_changed(const struct exact *exact)
{
	return exact->counters->page_requests != exact->page_requests || all_pages(exact) != exact->pages;
}

/* To ask a cache for its pages takes locks. */
static void note_growth(struct exact *exact)
{
	uint64_t locks = exact->locks ? *exact->locks : 0;

	exact_growth_note(exact);
	exact->other_locks += exact->locks ? *exact->locks - locks : 0;
}

static void look_at_pages(struct exact *exact, uint64_t event)
{
	exact->page_requests = exact->counters->page_requests;
	exact->pages = all_pages(exact);
	if (held_pages(exact) != exact->held)
		hold(exact, held_pages(exact));
	if (!exact->scalars_alone && exact_growth_due(exact))
		note_growth(exact);
	look_for_peaks(exact);
	raise(&exact->requested_at_held_peak, exact->at_peak ? exact->requested_bytes : 0);
	watch_pressure(exact, event);
}

/* After a step of an object. */
static inline void look_after(struct exact *exact, const struct scratch_event *event)
{
	if (__builtin_expect(pages_changed(exact), false)) {
		exact->now = event->time_ns;
		look_at_pages(exact, (uint64_t)(event - exact->driver->scratch->events) + 1);
	} else if (exact->at_peak) {
		raise(&exact->requested_at_held_peak, exact->requested_bytes);
	}
}

static void run_tick(struct exact *exact, const struct step *step, const struct scratch_event *next)
{
	pass_time(exact, step_time(step));
	driver_tick(exact->driver, step_time(step));
	look_at_pages(exact, (uint64_t)(next - exact->driver->scratch->events));
}

static inline void prefetch(const struct exact *exact, const struct step *step, bool scalars_alone)
{
	if (!scalars_alone)
		__builtin_prefetch(&exact->notes[step->handle], 1);
	__builtin_prefetch(&exact->driver->live[step->handle], 1);
}

/* scalars_alone is a constant, so that this is a loop for either. */
static inline void run_steps(struct exact *exact, bool scalars_alone)
{
	const struct driver *driver = exact->driver;
	const struct scratch_event *event = driver->scratch->events;

	for (const struct step *step = driver->steps; step < driver->steps + driver->step_count; step++) {
		prefetch(exact, step + PREFETCH_AHEAD, scalars_alone);
		exact->row = NO_ROW;
		if (step->kind == STEP_TICK) {
			run_tick(exact, step, event);
			continue;
		}
		if (!scalars_alone)
			pass_time(exact, event->time_ns);
		if (!step_of_object(step)) {
			exact->now = event->time_ns;
			run_other(exact, step, event++);
			look_at_pages(exact, (uint64_t)(event - driver->scratch->events));
			continue;
		}
		if (exact->locks && !scalars_alone)
			run_counted(exact, step, event);
		else
			run_object(exact, step, event, scalars_alone);
		look_after(exact, event++);
	}
	hold(exact, exact->held);
}

static void take_last_points(struct exact *exact)
{
	for (; exact->points_taken < exact->point_count; exact->points_taken++)
		exact_look(exact, &exact->points[exact->points_taken]);
}

/* Notes where counters stand before the first event. */
static void look_before(struct exact *exact)
{
	struct sy_pages_counts counts;

	exact_count_pages(exact, &counts);
	exact->next_point = exact->scalars_alone ? UINT64_MAX : time_of_next_point(exact);
	exact->fallbacks_before = counts.fallbacks;
	add_free_blocks(&counts, exact->free_blocks_before);
	exact->pressure.rescued_before = counts.rescued;
	exact->pressure.before = *exact->counters;
	exact->slow_before = slow_operations(exact);
	exact->taken_before = exact->pressure.before.taken_pages;
	exact->held_before = held_pages(exact);
	exact->large_before = exact->pressure.before.large_pages;
	exact->requested_peak = exact->requested_bytes;
	look_at_pages(exact, 0);
}

static void look_at_heap(struct exact *exact)
{
	static const struct sy_heap_counters none;
	const struct sy_heap *heap = exact->driver->heap;

	exact->counters = heap ? sy_lab_counters(heap) : &none;
	for (unsigned slot = 0; heap && slot < exact->driver->scratch->run->cpus && slot <= UINT8_MAX; slot++)
		exact->slot_nodes[slot] = (uint8_t)sy_lab_slot_node(heap, slot);
}

bool exact_run(struct exact *exact, struct stage *stage, bool scalars_alone, struct fault *fault)
{
	*exact = (struct exact){ .driver = &stage->driver, .scalars_alone = scalars_alone,
		                 .one_node = stage->driver.scratch->run->nodes == 1 };
	look_at_heap(exact);
	if (!exact_make_tables(exact, stage->options->points, fault)) {
		exact_release(exact);
		return false;
	}
	driver_each_older(exact->driver, count_older, exact);
	if (!exact_find_beside(exact, fault)) {
		exact_release(exact);
		return false;
	}
	look_before(exact);
	if (stage->options->locks && exact->driver->heap) {
		exact->locks = sy_lab_count_locks(exact->driver->heap);
		exact->other_locks = *exact->locks;
	}
	if (scalars_alone) {
		run_steps(exact, true);
		count_kept(exact);
	} else {
		run_steps(exact, false);
		take_last_points(exact);
		exact_growth_end(exact);
	}
	sy_lab_count_locks(NULL);
	if (exact->short_of_memory && !stage->options->allow_failures) {
		driver_refuse_memory(exact->driver, exact->first_short, fault);
		exact_release(exact);
		return false;
	}
	return true;
}

bool exact_pass(struct json *json, struct stage *stage, struct fault *fault)
{
	struct exact exact;

	if (!exact_run(&exact, stage, false, fault))
		return false;
	if (stage->options->log && (fflush(stage->options->log) != 0 || ferror(stage->options->log))) {
		exact_release(&exact);
		return refuse(fault, "cannot write the log: %s", strerror(errno));
	}
	exact_write(json, &exact);
	exact_release(&exact);
	return true;
}
