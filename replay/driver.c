/*
 * Runs a trace's requests against one allocator.
 *
 * The machine. Zones come from the trace. Where it has none they are a PC's: DMA up to 16 MiB, DMA32 up to 4 GiB, Normal up to
 * the end of memory, shared evenly by the nodes. A recorded zone is extended to whole blocks of the largest order; its managed
 * pages stay as they were. Where the trace has the kernel's free lists, the zones start with these (sy_pages_populate),
 * otherwise pristine.
 *
 * CPU slots. One thread drives all of them: an event runs on the slot of its recorded CPU, modulo the slots there are. So a
 * replay is a deterministic simulation of per-CPU state, without any contention.
 *
 * Time is the trace's. It stands still between ticks. There is one tick before the first event of every new millisecond: it sets
 * the clock and has the heap free what waited for a grace period, as a kernel does from its timer tick.
 *
 * Steps. Events are translated into steps once, before any pass begins: 16 bytes each, with the slot worked out, page flags and
 * migrate type merged, and ticks between them. Every event has exactly one step. All passes run the same steps, so the times of
 * one belong to the figures of the other.
 *
 * Order of creation: pages, heap, caches in the order of the trace's metadata (merging depends on it), objects older than the
 * trace; all on the slots that the trace names.
 *
 * A failed allocation leaves NULL in the live table, and its free then does nothing. A request beyond the largest block of pages
 * fails however much memory there is. It counts as a failure, but not as a lack of memory.
 */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

#include "library/lab/replay.h"

#define TICK_NS 1000000u
#define DEFAULT_MEMORY ((uint64_t)4 << 30) /* as population.py has it, which writes zones into every scratch file */
#define BLOCK ((uint64_t)1 << SY_MAX_ORDER) /* pages; zones begin and end at multiples */

static unsigned long long simulated_mib(const struct driver *driver)
{
	return driver->memory_pages >> (20 - SY_PAGE_SHIFT);
}

/* ---- Time ----------------------------------------------------------------------------------------------------- */

static uint64_t trace_time; /* of the one replay that runs in this program */

static uint64_t trace_clock(void)
{
	return trace_time;
}

void driver_tick(struct driver *driver, uint64_t time)
{
	trace_time = time;
	if (!driver->heap)
		return;
	sy_heap_tick(driver->heap);
	if (driver->ask_ns && time >= driver->next_ask) {
		driver->next_ask = time + driver->ask_ns;
		sy_lab_ask(driver->heap);
	}
}

/* ---- Grace periods of the recorded kernel ------------------------------------------------------------------------ */

#define LONGEST_GRACES 3u /* of its usual length: where the trace does not tell how long it waited at most */

static const struct scratch *recorded; /* of the one replay that runs in this program */
static uint64_t next_grace; /* in it: the first that begins now or later */

static uint64_t longest_wait(const struct scratch_run *run)
{
	return run->longest_wait_us ? run->longest_wait_us * UINT64_C(1000) : LONGEST_GRACES * run->grace_ns;
}

/* No wait is longer than the longest, whatever the trace has seen end later. */
static uint64_t grace_ends(void)
{
	uint64_t latest = trace_time + longest_wait(recorded->run), ends;

	while (next_grace < recorded->grace_count && recorded->graces[next_grace].begins_ns < trace_time)
		next_grace++;
	ends = next_grace < recorded->grace_count ? recorded->graces[next_grace].ends_ns : latest;
	return ends < latest ? ends : latest;
}

uint64_t driver_longest_grace(const struct driver *driver)
{
	return driver->as_recorded ? longest_wait(driver->scratch->run) : driver->scratch->run->grace_ns;
}

/* A heap by the rules of the recorded kernel begins with its layout, and waits as long as that did. */
static void begin_as_recorded(struct driver *driver)
{
	if (driver->scratch->laid) {
		driver->laid = driver->scratch->laid;
		driver->laid_count = driver->scratch->laid_count;
	}
	recorded = driver->scratch;
	next_grace = 0;
}

/* ---- Pages of the environment --------------------------------------------------------------------------------- */

/* The flags that make the page allocator choose this migrate type. */
static uint16_t page_flags(const struct scratch_event *event)
{
	static const unsigned by_type[SY_MIGRATE_TYPES] = {
		[SY_UNMOVABLE] = 0,
		[SY_MOVABLE_TYPE] = SY_MOVABLE,
		[SY_RECLAIMABLE_TYPE] = SY_RECLAIMABLE,
		[SY_HIGHATOMIC_TYPE] = SY_HIGHATOMIC,
	};
	unsigned others = event->flags & 0xffffu & ~(unsigned)(SY_MOVABLE | SY_RECLAIMABLE);

	return (uint16_t)(others | by_type[event->migrate]);
}

bool driver_pages(struct driver *driver, const struct step *step)
{
	void **live = &driver->live[step->handle];

	if (!driver->pages)
		return true;
	switch (step->kind) {
	case EVENT_PAGE_ALLOC:
		*live = sy_pages_alloc(driver->pages, step->slot, step->order, step->flags, step->node);
		return *live != NULL;
	case EVENT_PAGE_FREE:
		if (*live)
			sy_pages_free(driver->pages, step->slot, *live);
		*live = NULL;
		return true;
	default:
		return sy_pages_free_pretrace(driver->pages, step->slot, step->order, step->size);
	}
}

bool driver_refuse_memory(const struct driver *driver, uint64_t event, struct fault *fault)
{
	return refuse(fault, "the trace needs more than the %llu MiB of simulated memory (first failed at event %llu): raise "
	                     "--memory, or count failures with --allow-failures", simulated_mib(driver), (unsigned long long)event);
}

/* ---- Steps ---------------------------------------------------------------------------------------------------- */

static struct step tick_step(uint64_t time)
{
	return (struct step){ .size = (uint32_t)time, .flags = (uint16_t)(time >> 32), .cache = (uint16_t)(time >> 48),
		              .kind = STEP_TICK };
}

static struct step event_step(const struct scratch_event *event, unsigned slots)
{
	struct step step = { .handle = event->handle, .size = event->size, .flags = (uint16_t)event->flags,
		             .cache = event->cache, .slot = (uint8_t)(event->cpu % slots), .kind = event->kind,
		             .order = event->order, .node = event->node };

	if (event->kind == EVENT_PAGE_ALLOC)
		step.flags = page_flags(event);
	if (step_of_object(&step))
		step.order = !!(event->flags & EVENT_IMPLIED);
	if (event->kind == EVENT_OLDER_PAGE_FREE)
		step.size = event->handle; /* a page frame number */
	if (event->kind > EVENT_PAGE_FREE) /* no object or page of the trace */
		step.handle = 0;
	return step;
}

/* The ticks that a trace needs, with one at its end. */
static uint64_t count_ticks(const struct scratch *scratch)
{
	uint64_t ticks = 1, last = 0;

	for (uint64_t i = 0; i < scratch->event_count; i++) {
		uint64_t now = scratch->events[i].time_ns / TICK_NS;

		ticks += now != last;
		last = now;
	}
	return ticks;
}

static uint16_t cache_of(const struct step *step)
{
	return step->kind == EVENT_CACHE_ALLOC ? step->cache : NO_CACHE;
}

/* Tells each free how much was asked for, and in the end which objects are left. sizes: by handle. */
static void follow_objects(struct driver *driver, uint32_t *sizes)
{
	const struct scratch *scratch = driver->scratch;

	for (uint64_t i = 0; i < scratch->run->handles; i++)
		driver->kept[i] = NOT_KEPT;
	for (uint64_t i = 0; i < scratch->older_count; i++) {
		const struct scratch_older *older = &scratch->older[i];

		if (older->handle != NO_HANDLE && older->handle != VACATED) {
			sizes[older->handle] = older->size;
			driver->kept[older->handle] = older->cache;
		}
	}
	for (struct step *step = driver->steps; step < driver->steps + driver->step_count; step++) {
		if (step_allocates(step)) {
			sizes[step->handle] = step->size;
			driver->kept[step->handle] = cache_of(step);
		} else if (step_frees(step)) {
			step->size = sizes[step->handle];
			driver->kept[step->handle] = NOT_KEPT;
		}
	}
}

static bool follow(struct driver *driver, struct fault *fault)
{
	size_t handles = driver->scratch->run->handles;
	uint32_t *sizes = calloc(handles + 1, sizeof *sizes);

	driver->kept = calloc(handles + 1, sizeof *driver->kept);
	if (!sizes || !driver->kept) {
		free(sizes);
		return refuse(fault, "no memory for %zu handles", handles);
	}
	follow_objects(driver, sizes);
	free(sizes);
	return true;
}

static bool make_steps(struct driver *driver, struct fault *fault)
{
	const struct scratch *scratch = driver->scratch;
	uint64_t count = scratch->event_count + count_ticks(scratch), last = 0;
	struct step *step = NULL;

	if (count < SIZE_MAX / sizeof *step - STEPS_AHEAD)
		step = calloc((size_t)count + STEPS_AHEAD, sizeof *step);
	if (!step)
		return refuse(fault, "no memory for a trace of %llu events", (unsigned long long)scratch->event_count);
	driver->steps = step;
	driver->step_count = count;
	for (uint64_t i = 0; i < scratch->event_count; i++) {
		const struct scratch_event *event = &scratch->events[i];

		if (event->time_ns / TICK_NS != last)
			*step++ = tick_step(event->time_ns);
		last = event->time_ns / TICK_NS;
		driver->snapshot_count += event->kind == EVENT_SNAPSHOT;
		*step++ = event_step(event, scratch->run->cpus);
	}
	*step = tick_step(driver->span_ns);
	return true;
}

uint64_t driver_event_of(const struct driver *driver, const struct step *step)
{
	uint64_t event = 0;

	for (const struct step *at = driver->steps; at < step; at++)
		event += at->kind != STEP_TICK;
	return event;
}

/* ---- The machine ---------------------------------------------------------------------------------------------- */

static void recorded_zones(struct sy_pages_config *config, const struct scratch *scratch)
{
	config->zone_count = (unsigned)scratch->zone_count;
	for (unsigned i = 0; i < config->zone_count; i++) {
		const struct scratch_zone *from = &scratch->zones[i];
		struct sy_zone_config *zone = &config->zones[i];
		uint64_t end = (from->start_page + from->pages + BLOCK - 1) & ~(BLOCK - 1);

		memcpy(zone->name, from->name, sizeof zone->name);
		zone->node = from->node;
		zone->start_page = from->start_page & ~(BLOCK - 1);
		zone->pages = end - zone->start_page;
		zone->managed = from->managed ? from->managed : from->pages;
		zone->min = from->min;
		zone->low = from->low;
		zone->high = from->high;
	}
}

/* A PC's zones; the nodes share the memory evenly, in order. */
static void default_zones(struct sy_pages_config *config, uint64_t memory, unsigned nodes)
{
	static const struct {
		const char *name;
		uint64_t end; /* bytes */
	} layout[] = { { "DMA", (uint64_t)16 << 20 }, { "DMA32", (uint64_t)4 << 30 }, { "Normal", UINT64_MAX } };
	uint64_t share = (memory / nodes >> SY_PAGE_SHIFT) & ~(BLOCK - 1), start = 0;
	unsigned kind = 0;

	while (start < share * nodes) {
		struct sy_zone_config *zone = &config->zones[config->zone_count++];
		uint64_t end = layout[kind].end >> SY_PAGE_SHIFT, of_node = (start / share + 1) * share;

		snprintf(zone->name, sizeof zone->name, "%s", layout[kind].name);
		zone->node = (unsigned)(start / share);
		zone->start_page = start;
		zone->pages = (end < of_node ? end : of_node) - start;
		zone->managed = zone->pages;
		start += zone->pages;
		kind += start == end;
	}
}

static bool populate_zones(struct driver *driver, struct fault *fault)
{
	const struct scratch *scratch = driver->scratch;

	for (uint64_t i = 0; i < scratch->free_block_count; i++) {
		const struct scratch_free_blocks *blocks = &scratch->free_blocks[i];

		if (!sy_pages_populate(driver->pages, blocks->zone, blocks->free_blocks, blocks->pageblocks))
			return refuse(fault, "the recorded free blocks do not fit zone %u (%s): replay with --start empty",
			              blocks->zone, scratch->zones[blocks->zone].name);
	}
	return true;
}

static bool create_pages(struct driver *driver, const struct driver_options *options, struct fault *fault)
{
	const struct scratch *scratch = driver->scratch;
	struct sy_pages_config config = { .slots = scratch->run->cpus, .pageblock_order = scratch->run->pageblock_order,
		                          .cpu_lists = true };
	const char *error;

	if (scratch->zone_count && options->memory)
		return refuse(fault, "--memory is given, but the scratch file has zones of its own");
	if (scratch->zone_count)
		recorded_zones(&config, scratch);
	else
		default_zones(&config, options->memory ? options->memory : DEFAULT_MEMORY, scratch->run->nodes);
	for (unsigned i = 0; i < config.zone_count; i++)
		driver->memory_pages += config.zones[i].managed;
	error = sy_pages_config_error(&config);
	if (error)
		return refuse(fault, "the simulated machine is impossible: %s", error);
	driver->pages = sy_pages_create(&config);
	if (!driver->pages)
		return refuse(fault, "no address space for %llu MiB of simulated memory: lower --memory or raise ulimit -v",
		              simulated_mib(driver));
	return populate_zones(driver, fault);
}

/* ---- The allocator -------------------------------------------------------------------------------------------- */

static bool create_heap(struct driver *driver, const struct driver_options *options, struct fault *fault)
{
	static const struct sy_lab_graces graces = { .ends = grace_ends, .now = trace_clock };
	const struct scratch_run *run = driver->scratch->run;
	struct sy_heap_config config = spec_heap_config(driver->spec, run->cpus, run->nodes);

	config.grace_ns = run->grace_ns;
	config.kernel = (struct sy_kernel){ run->kernel, run->merges };
	driver->heap = sy_heap_create(driver->pages, &config);
	if (!driver->heap)
		return refuse(fault, "%s cannot start with these tunables in %llu MiB of simulated memory: raise --memory",
		              spec_name(driver->spec), simulated_mib(driver));
	driver->as_recorded = sy_lab_as_recorded(driver->heap, &graces);
	if (driver->as_recorded)
		begin_as_recorded(driver);
	sy_lab_log(driver->heap, options->log, options->log_context);
	return true;
}

static bool create_caches(struct driver *driver, struct fault *fault)
{
	const struct scratch *scratch = driver->scratch;

	driver->caches = calloc((size_t)scratch->cache_count + 1, sizeof(struct sy_cache *));
	if (!driver->caches)
		return refuse(fault, "no memory for %llu caches", (unsigned long long)scratch->cache_count);
	for (uint64_t turn = 0; turn < scratch->cache_count; turn++) {
		uint64_t i = scratch_cache_at(scratch, turn);
		const struct scratch_cache *from = &scratch->caches[i];
		struct sy_cache_config config = { .name = from->name, .size = from->object_size, .align = from->align,
			                          .flags = from->flags, .sheaf_capacity = from->sheaf_capacity,
			                          .constructor = from->constructor ? replay_constructor : NULL };

		driver->caches[i] = sy_cache_create(driver->heap, &config);
		if (!driver->caches[i])
			return refuse(fault,
			              "%s cannot make cache %llu (%s) of %u-byte objects in %llu MiB of simulated memory: raise --memory",
			              spec_name(driver->spec), (unsigned long long)i, from->name, from->object_size,
			              simulated_mib(driver));
	}
	return true;
}

/* ---- The whole ------------------------------------------------------------------------------------------------ */

static uint64_t most_older(const struct scratch *scratch)
{
	return scratch->older_count > scratch->laid_count ? scratch->older_count : scratch->laid_count;
}

static bool create_tables(struct driver *driver, struct fault *fault)
{
	const struct scratch *scratch = driver->scratch;

	driver->live = calloc((size_t)scratch->run->handles + 1, sizeof(void *));
	driver->older = calloc((size_t)most_older(scratch) + 1, sizeof(void *));
	if (!driver->live || !driver->older)
		return refuse(fault, "no memory for %u handles", scratch->run->handles);
	return make_steps(driver, fault) && follow(driver, fault);
}

/* Our own tables are written to first, or their pages would come while the malloc's are counted. */
static void look_before_malloc(struct driver *driver)
{
	memset(driver->live, 0, ((size_t)driver->scratch->run->handles + 1) * sizeof *driver->live);
	memset(driver->older, 0, ((size_t)most_older(driver->scratch) + 1) * sizeof *driver->older);
	driver->pages_before = malloc_memory_now();
}

bool driver_prepare(struct driver *driver, const struct scratch *scratch, bool pages, const struct driver_options *options,
                    struct fault *fault)
{
	*driver = (struct driver){ .scratch = scratch, .span_ns = scratch->run->span_ns, .ask_ns = options->ask_ns };
	if (scratch->event_count && scratch->events[scratch->event_count - 1].time_ns > driver->span_ns)
		driver->span_ns = scratch->events[scratch->event_count - 1].time_ns;
	sy_platform_set_clock(trace_clock);
	if (create_tables(driver, fault) && (!pages || create_pages(driver, options, fault)))
		return true;
	driver_destroy(driver);
	return false;
}

static bool open_malloc(struct driver *driver, struct fault *fault)
{
	if (!malloc_target_open(&driver->malloc, driver->spec->library, driver->scratch, fault))
		return false;
	look_before_malloc(driver);
	return true;
}

bool driver_open(struct driver *driver, const struct spec *spec, const struct driver_options *options, struct fault *fault)
{
	driver->spec = spec;
	driver->next_ask = trace_time = 0;
	driver->laid = driver->scratch->older;
	driver->laid_count = driver->scratch->older_count;
	return spec->policy ? create_heap(driver, options, fault) && create_caches(driver, fault) : open_malloc(driver, fault);
}

void driver_forget(struct driver *driver)
{
	free(driver->caches);
	driver->caches = NULL;
	driver->heap = NULL;
}

static struct step older_step(const struct scratch *scratch, const struct scratch_older *older, bool frees)
{
	bool kmalloc = older->cache == NO_CACHE;

	return (struct step){ .size = older->size, .flags = (uint16_t)older->flags, .cache = older->cache,
		              .slot = (uint8_t)(older->cpu % scratch->run->cpus),
		              .kind = (uint8_t)((kmalloc ? EVENT_KMALLOC : EVENT_CACHE_ALLOC) + frees), .node = SY_ANY_NODE };
}

/* Frees the objects that were freed before the trace began, in the order of their allocation. They leave holes. */
static void free_vacated(struct driver *driver)
{
	const struct scratch *scratch = driver->scratch;

	for (uint64_t i = 0; i < driver->laid_count; i++) {
		struct step step = older_step(scratch, &driver->laid[i], true);

		if (driver->laid[i].handle != VACATED)
			continue;
		driver_free(driver, &step, driver->older[i]);
		driver->older[i] = NULL;
	}
}

bool driver_populate(struct driver *driver, struct fault *fault)
{
	const struct scratch *scratch = driver->scratch;

	for (uint64_t i = 0; i < driver->laid_count; i++) {
		const struct scratch_older *older = &driver->laid[i];
		struct step step = older_step(scratch, older, false);
		void *object = driver_alloc(driver, &step);

		if (!object)
			return refuse(fault, "the objects older than the trace need more than the %llu MiB of simulated memory: raise "
			                     "--memory", simulated_mib(driver));
		if (older->handle == NO_HANDLE || older->handle == VACATED)
			driver->older[i] = object;
		else
			driver->live[older->handle] = object;
	}
	free_vacated(driver);
	return true;
}

void driver_each_older(const struct driver *driver,
                       void (*watch)(void *context, const struct scratch_older *, void *object), void *context)
{
	for (uint64_t i = 0; i < driver->laid_count; i++) {
		const struct scratch_older *older = &driver->laid[i];

		if (older->handle != VACATED)
			watch(context, older, older->handle == NO_HANDLE ? driver->older[i] : driver->live[older->handle]);
	}
}

/* A malloc has no heap to destroy, so live objects are freed one by one. It serves no pages: the live table has objects alone. */
void driver_empty(struct driver *driver)
{
	for (uint64_t i = 0; i < driver->laid_count; i++) {
		driver->malloc.free(driver->older[i]);
		driver->older[i] = NULL;
	}
	for (uint64_t i = 0; i < driver->scratch->run->handles; i++) {
		driver->malloc.free(driver->live[i]);
		driver->live[i] = NULL;
	}
}

void driver_destroy(struct driver *driver)
{
	if (driver->malloc.free)
		driver_empty(driver);
	if (driver->heap)
		sy_heap_destroy(driver->heap);
	if (driver->pages)
		sy_pages_destroy(driver->pages);
	malloc_target_close(&driver->malloc);
	sy_platform_set_clock(NULL);
	free(driver->caches);
	free(driver->live);
	free(driver->older);
	free(driver->steps);
	free(driver->kept);
	*driver = (struct driver){ 0 };
}
