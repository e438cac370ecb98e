/*
 * Pass 3: what the capture proves but does not show.
 *
 * The pass walks the capture with two views of the same memory: page runs, from mm_page_alloc to mm_page_free, and live
 * objects, each in the run that holds it. It learns:
 *
 * Owners. A run in which an object was allocated or freed is the recorded allocator's: `large` if its one allocation is a kmalloc
 * that fills the run from its start, else `slab`. Every other run is the environment's. A page older than the trace becomes a run
 * of one page when an object is first seen in it.
 *
 * Implied events. Some traffic fires no event: bulk allocation and bulk free, frees of whole RCU batches, page frees while
 * events were lost. The capture then contradicts itself, and the contradiction proves the event:
 *   - an address is allocated that is still live: it was freed before;
 *   - a page run is freed, or handed out again, while objects in it are live: they were all freed before;
 *   - an object is freed that was never allocated, in a run younger than the trace: it was allocated before. So it was where one was freed
 *     already in an older run, if the kernel said which pages were slabs when the capture began;
 *   - a page is handed out that is part of a live run: that run was freed before;
 *   - a page is freed that was freed already: it was allocated before;
 *   - part of a run is freed: the run was split (split_page) into pieces of that size;
 *   - an object is in a page that was no slab when the capture began, and that nothing took since: a slab came.
 * imply_free() and unmatched_free() choose the place of such an event within the time that is left open; docs/trace-format.md says
 * why.
 *
 * Older than the trace. The first event of an address in a page older than the trace, if it is a free, frees an object older than the
 * trace. So does a free of a page that the trace has not seen before, for a page: the allocator's, if the kernel said so when the
 * capture began, or if an object was seen in it.
 *
 * Caches, see caches.c.
 */
#include "import.h"

#include <stdlib.h>

/* A page run that lives now. */
struct run {
	uint64_t pfn;
	uint32_t history;
	uint32_t born;         /* ordinal of the record that allocated it */
	uint32_t first_object; /* live ones, linked through struct live; NONE */
	uint32_t stride;       /* bytes_alloc of the first object allocated in it, 0: none yet */
	uint8_t order, allocs; /* allocations of objects, saturating at 2 */
	int8_t migrate;
	bool older, mixed, in_use;
	const struct slab_shape *shape; /* of a slab that came without an event; else NULL */
};

struct walk {
	struct resolution *result;
	const struct base *base;
	struct page_map pages;
	struct run *runs;
	uint32_t run_count, run_room, free_run; /* free list through history, numbered from 1 */
	struct live_map objects;
	struct live_pool pool;
	uint32_t now; /* ordinal of the record */
	bool knows_slabs; /* which page frames were slabs when the capture began */
	const struct slab_frames *slabs;
	uint64_t runs_judged, runs_mixed; /* with two objects or more; of these, with different strides */
};

static struct implied *imply(struct walk *walk, enum implied_kind kind, uint64_t address, uint32_t before)
{
	struct resolution *result = walk->result;
	uint32_t number = result->implied_count;
	APPEND(result->implied, result->implied_count, result->implied_room, (struct implied){
		.address = address, .before = before, .sequence = number, .history = NONE, .call_site = NONE,
		.cache = NO_CACHE, .name = NO_TEXT, .kind = (uint8_t)kind, .migrate = -1,
	});
	return &result->implied[number];
}

/* ---- Objects in runs -------------------------------------------------------------------------------------------- */

/*
 * A freed object leaves its entry as a tombstone until its run ends. If the address is then freed again without an allocation, the
 * tombstone tells since when it was free. In a run older than the trace only where slabs are known: with a snapshot that comes later, as
 * of a boot, what is estimated to be older then is nearer to the kernel's slabs without such allocations.
 */

static void put_into_run(struct walk *walk, uint32_t object, uint32_t run)
{
	struct live *live = &walk->pool.entries[object];
	live->run = run;
	live->prev = NONE;
	live->next = NONE;
	if (run == NONE)
		return;
	live->next = walk->runs[run].first_object;
	if (live->next != NONE)
		walk->pool.entries[live->next].prev = object;
	walk->runs[run].first_object = object;
}

static void object_gone(struct walk *walk, uint32_t object)
{
	const struct live *live = &walk->pool.entries[object];
	if (live->next != NONE)
		walk->pool.entries[live->next].prev = live->prev;
	if (live->prev != NONE)
		walk->pool.entries[live->prev].next = live->next;
	else if (live->run != NONE)
		walk->runs[live->run].first_object = live->next;
	live_remove(&walk->objects, &walk->pool, object);
}

static void mark_freed(struct walk *walk, uint32_t object)
{
	struct live *live = &walk->pool.entries[object];
	if (live->run == NONE || (walk->runs[live->run].older && !walk->knows_slabs)) {
		object_gone(walk, object);
		return;
	}
	live->tombstone = true;
	live->since = walk->now;
}

/* Bulk frees end slabs and make room for the next allocations at once. So the event is placed as late as it can be. */
static void imply_free(struct walk *walk, uint32_t object)
{
	imply(walk, IMPLIED_OBJECT_FREE, walk->pool.entries[object].key, walk->now);
}

/* ---- Runs ------------------------------------------------------------------------------------------------------- */

static uint32_t new_history(struct walk *walk, enum owner owner)
{
	struct resolution *result = walk->result;
	APPEND(result->histories, result->history_count, result->history_room,
	       (struct history){.class = NONE, .name = NO_TEXT, .owner = (uint8_t)owner});
	return result->history_count - 1;
}

/* The owner of pages in which no object was seen. Without a base only movable pages are known to be no slab. */
static enum owner owner_without_objects(const struct walk *walk, int8_t migrate)
{
	return walk->base->known || migrate == MOVABLE ? OWNER_ENVIRONMENT : OWNER_UNKNOWN;
}

static uint32_t new_run(struct walk *walk, uint64_t pfn, uint8_t order, uint32_t history)
{
	uint32_t number = walk->free_run;
	if (number) {
		number--;
		walk->free_run = walk->runs[number].history;
	} else {
		RESERVE(walk->runs, walk->run_count, walk->run_room);
		number = walk->run_count++;
	}
	walk->runs[number] = (struct run){
		.pfn = pfn, .history = history, .born = walk->now, .first_object = NONE, .order = order, .migrate = -1, .in_use = true};
	page_fill(&walk->pages, pfn, (uint64_t)1 << order, PAGE_FIRST_RUN + number);
	return number;
}

static void judge(struct walk *walk, const struct run *run)
{
	walk->runs_judged += run->allocs > 1;
	walk->runs_mixed += run->mixed;
}

/* A slab that came unseen was filled before the next one came. So at each place of which nothing was seen an object was
 * allocated when the slab came; and freed when it went, where it `ends`. */
static void fill_unseen(struct walk *walk, const struct run *run, bool ends)
{
	for (uint32_t i = 0; run->shape && i < run->shape->objects; i++) {
		uint64_t address = walk->base->address + (run->pfn << walk->base->shift) + (uint64_t)i * run->shape->stride;
		if (live_find(&walk->objects, &walk->pool, address) != NONE)
			continue;
		struct implied *implied = imply(walk, IMPLIED_OBJECT_ALLOC, address, run->born);
		implied->history = run->history;
		if (ends)
			imply(walk, IMPLIED_OBJECT_FREE, address, walk->now);
	}
}

/* Ends a run. Objects that are still live in it must have been freed. */
static void end_run(struct walk *walk, uint32_t number)
{
	struct run *run = &walk->runs[number];
	fill_unseen(walk, run, true);
	while (run->first_object != NONE) {
		if (!walk->pool.entries[run->first_object].tombstone)
			imply_free(walk, run->first_object);
		object_gone(walk, run->first_object);
	}
	judge(walk, run);
	page_fill(&walk->pages, run->pfn, (uint64_t)1 << run->order, PAGE_FREED);
	run->in_use = false;
	run->history = walk->free_run;
	walk->free_run = number + 1;
}

static uint32_t imply_page_alloc(struct walk *walk, uint64_t pfn, uint8_t order, uint32_t history, int8_t migrate, uint32_t before)
{
	struct implied *implied = imply(walk, IMPLIED_PAGE_ALLOC, pfn, before);
	implied->order = order;
	implied->history = history;
	implied->migrate = migrate;
	uint32_t run = new_run(walk, pfn, order, history);
	walk->runs[run].migrate = migrate;
	walk->runs[run].born = before;
	return run;
}

/* What slabs are made of that have such an object. NULL: the recorder has not told it, or the record has neither a name nor a size. */
static const struct slab_shape *shape_of(const struct walk *walk, const struct record *record)
{
	bool allocates = record->kind == KMALLOC || record->kind == CACHE_ALLOC;
	for (size_t i = 0; i < walk->slabs->shape_count; i++) {
		const struct slab_shape *shape = &walk->slabs->shapes[i];
		if (allocates ? shape->stride == record->allocated : record->name != NO_TEXT && shape->name == record->name)
			return shape;
	}
	return NULL;
}

/*
 * A slab came without an event, of a process whose events the kernel tells nobody: its pages were no slab when the capture
 * began, and nothing took them since. It came as early as it can have, so that objects freed meanwhile leave no room for its
 * own elsewhere: behind the first mark, or now, if its pages were freed, as it is not known when. NONE: none came.
 */
static uint32_t slab_unseen(struct walk *walk, const struct record *record, uint64_t pfn)
{
	const struct slab_shape *shape = shape_of(walk, record);
	uint32_t since = walk->now ? 1 : 0;
	if (!shape)
		return NONE;
	pfn = pfn >> shape->order << shape->order;
	for (uint64_t page = pfn; page < pfn + ((uint64_t)1 << shape->order); page++) {
		uint32_t entry = page_get(&walk->pages, page);
		if (entry == PAGE_FREED)
			since = walk->now;
		else if (entry != PAGE_UNSEEN)
			return NONE;
	}
	uint32_t run = imply_page_alloc(walk, pfn, shape->order, new_history(walk, OWNER_SLAB), -1, since);
	walk->runs[run].shape = shape;
	return run;
}

/* The live run that has the object's page; a new one where the page is older than the trace. NONE: the page is not known. */
static uint32_t run_of_object(struct walk *walk, const struct record *record)
{
	struct resolution *result = walk->result;
	if (!walk->base->known)
		return NONE;
	uint64_t pfn = (record->address - walk->base->address) >> walk->base->shift;
	if (pfn >= MAX_PFN) {
		result->unexplained++;
		return NONE;
	}
	uint32_t entry = page_get(&walk->pages, pfn), number = entry - PAGE_FIRST_RUN;
	if (likely(entry >= PAGE_FIRST_RUN)) {
		if (walk->runs[number].older) {
			result->older_objects++;
			return number;
		}
		if (walk->runs[number].migrate == MOVABLE)
			result->unexplained++;
		else
			result->explained++;
		struct history *history = &result->histories[walk->runs[number].history];
		if (history->owner != OWNER_LARGE)
			history->owner = OWNER_SLAB;
		return number;
	}
	if (entry == PAGE_FREED)
		result->unexplained++;
	else
		result->older_objects++;
	number = entry == PAGE_SLAB ? NONE : slab_unseen(walk, record, pfn);
	if (number != NONE)
		return number;
	number = new_run(walk, pfn, 0, new_history(walk, OWNER_SLAB));
	walk->runs[number].older = true;
	return number;
}

static void allocated_in_run(struct walk *walk, const struct record *record, struct run *run, uint32_t class)
{
	struct history *history = &walk->result->histories[run->history];
	uint64_t start = walk->base->address + (run->pfn << walk->base->shift);
	bool fills = !run->older && record->kind == KMALLOC && record->address == start &&
	             record->allocated == (uint64_t)1 << (walk->base->shift + run->order);
	history->owner = fills && !run->allocs ? OWNER_LARGE : OWNER_SLAB;
	run->allocs = run->allocs ? 2 : 1;
	if (!run->stride)
		run->stride = record->allocated;
	run->mixed |= run->stride != record->allocated;
	if (class == NONE) {
		history->kmalloc_size = record->size;
		history->kmalloc_allocated = record->allocated;
	} else if (history->class == NONE) {
		history->class = class;
	} else {
		class_beside(&walk->result->caches, history->class, class);
	}
}

/* ---- Object events ---------------------------------------------------------------------------------------------- */

static uint32_t note_cache_alloc(struct walk *walk, uint32_t class, uint32_t history)
{
	struct resolution *result = walk->result;
	APPEND(result->cache_allocs, result->cache_alloc_count, result->cache_alloc_room,
	       (struct cache_alloc){.history = history, .class = class, .name = NO_TEXT, .cache = NO_CACHE});
	return result->cache_alloc_count - 1;
}

static void object_alloc(struct walk *walk, const struct record *record)
{
	uint32_t object = live_find(&walk->objects, &walk->pool, record->address);
	if (unlikely(object != NONE && !walk->pool.entries[object].tombstone))
		imply_free(walk, object);
	uint32_t run = run_of_object(walk, record);
	uint32_t class = record->kind == CACHE_ALLOC ? class_of(&walk->result->caches, record) : NONE;
	if (class != NONE)
		class_seen(&walk->result->caches, class, record->address);
	if (run != NONE)
		allocated_in_run(walk, record, &walk->runs[run], class);
	if (object == NONE) {
		object = live_add(&walk->objects, &walk->pool, record->address);
		put_into_run(walk, object, run);
	}
	struct live *live = &walk->pool.entries[object];
	live->tombstone = false;
	live->class = class;
	live->size = record->size;
	live->allocated = record->allocated;
	live->since = walk->now;
	if (class != NONE)
		live->serial = note_cache_alloc(walk, class, run == NONE ? NONE : walk->runs[run].history);
}

/* Learns from the free of a live object about its cache and about the free's call site. */
static void learn_from_free(struct walk *walk, const struct record *record, const struct live *live)
{
	struct resolution *result = walk->result;
	struct free_site *site = &result->caches.free_sites[record->call_site];
	if (live->class == NONE) {
		site->size = live->size;
		site->allocated = live->allocated;
		return;
	}
	if (record->kind == CACHE_FREE && site->class != NONE && record->name == NO_TEXT)
		class_join(&result->caches, site->class, live->class);
	site->class = live->class;
	if (record->name != NO_TEXT) {
		result->cache_allocs[live->serial].name = record->name;
		class_named(&result->caches, live->class, record->name);
	}
}

/* The free of an object whose allocation is not recorded. tombstone: of the last free at this address, or NONE. */
static void unmatched_free(struct walk *walk, const struct record *record, uint32_t run, uint32_t tombstone)
{
	struct resolution *result = walk->result;
	APPEND(result->unmatched_frees, result->unmatched_free_count, result->unmatched_free_room,
	       run == NONE ? NONE : walk->runs[run].history);
	if (run == NONE || (walk->runs[run].older && !walk->knows_slabs))
		return;
	if (tombstone != NONE || !walk->runs[run].older) {
		uint32_t known_free = tombstone == NONE ? walk->runs[run].born : walk->pool.entries[tombstone].since;
		/* Bulk allocations fill slabs when they are new. So the event is placed as early as it can be. */
		uint32_t before = known_free < walk->now ? known_free + 1 : walk->now;
		struct implied *implied = imply(walk, IMPLIED_OBJECT_ALLOC, record->address, before);
		implied->history = walk->runs[run].history;
		implied->call_site = record->call_site;
		implied->name = record->name;
		implied->free_kind = record->kind;
	}
	if (tombstone == NONE) {
		tombstone = live_add(&walk->objects, &walk->pool, record->address);
		put_into_run(walk, tombstone, run);
	}
	mark_freed(walk, tombstone);
}

static void object_free(struct walk *walk, const struct record *record)
{
	uint32_t object = live_find(&walk->objects, &walk->pool, record->address);
	uint32_t run = run_of_object(walk, record);
	if (run != NONE && record->name != NO_TEXT)
		walk->result->histories[walk->runs[run].history].name = record->name;
	if (unlikely(object == NONE || walk->pool.entries[object].tombstone)) {
		unmatched_free(walk, record, run, object);
		return;
	}
	learn_from_free(walk, record, &walk->pool.entries[object]);
	mark_freed(walk, object);
}

/* ---- Page events ------------------------------------------------------------------------------------------------ */

static void note_page_event(struct walk *walk, uint32_t history)
{
	struct resolution *result = walk->result;
	APPEND(result->page_events, result->page_event_count, result->page_event_room, history);
}

static void imply_page_free(struct walk *walk, uint32_t run)
{
	uint64_t pfn = walk->runs[run].pfn;
	bool older = walk->runs[run].older;
	end_run(walk, run);
	if (!older)
		imply(walk, IMPLIED_PAGE_FREE, pfn, walk->now);
}

static void page_alloc(struct walk *walk, const struct record *record)
{
	uint64_t end = record->address + ((uint64_t)1 << record->order);
	for (uint64_t pfn = record->address; pfn < end; pfn++) {
		uint32_t entry = page_get(&walk->pages, pfn);
		if (unlikely(entry >= PAGE_FIRST_RUN)) {
			walk->result->page_contradictions++;
			imply_page_free(walk, entry - PAGE_FIRST_RUN);
		}
	}
	uint32_t history = new_history(walk, owner_without_objects(walk, record->migrate));
	uint32_t run = new_run(walk, record->address, record->order, history);
	walk->runs[run].migrate = record->migrate;
	note_page_event(walk, history);
}

/* split_page() made pieces of a run, and now one is freed. */
static void split(struct walk *walk, uint32_t number, uint8_t order)
{
	struct run run = walk->runs[number];
	imply_page_free(walk, number);
	for (uint64_t pfn = run.pfn; pfn < run.pfn + ((uint64_t)1 << run.order); pfn += (uint64_t)1 << order)
		imply_page_alloc(walk, pfn, order, run.history, run.migrate, walk->now);
}

/* Ends all runs in a freed range that is not one whole run, and returns the history of the free. Slow path. */
static uint32_t free_range(struct walk *walk, const struct record *record)
{
	uint64_t end = record->address + ((uint64_t)1 << record->order);
	bool held = false;
	for (uint64_t pfn = record->address; pfn < end; pfn++) {
		uint32_t entry = page_get(&walk->pages, pfn), number = entry - PAGE_FIRST_RUN;
		held |= entry == PAGE_SLAB;
		if (entry < PAGE_FIRST_RUN)
			continue;
		struct run *run = &walk->runs[number];
		if (run->older) {
			held = true;
			end_run(walk, number);
		} else if (run->order > record->order && run->first_object == NONE && run->pfn % ((uint64_t)1 << record->order) ==
		           record->address % ((uint64_t)1 << record->order)) {
			uint32_t history = run->history;
			split(walk, number, record->order);
			end_run(walk, page_get(&walk->pages, record->address) - PAGE_FIRST_RUN);
			return history;
		} else {
			imply_page_free(walk, number);
		}
	}
	page_fill(&walk->pages, record->address, (uint64_t)1 << record->order, PAGE_FREED);
	return new_history(walk, held ? OWNER_SLAB : owner_without_objects(walk, -1));
}

static void page_free(struct walk *walk, const struct record *record)
{
	uint32_t entry = page_get(&walk->pages, record->address), number = entry - PAGE_FIRST_RUN;
	if (unlikely(entry == PAGE_FREED)) {
		uint32_t history = new_history(walk, owner_without_objects(walk, -1));
		walk->result->page_contradictions += record->order > 0; /* Linux's bulk allocation, of single pages, fires no event */
		free_range(walk, record); /* whatever else lives in the range */
		number = imply_page_alloc(walk, record->address, record->order, history, -1, walk->now);
		entry = number + PAGE_FIRST_RUN;
	}
	if (likely(entry >= PAGE_FIRST_RUN && walk->runs[number].pfn == record->address &&
	           walk->runs[number].order == record->order && !walk->runs[number].older)) {
		note_page_event(walk, walk->runs[number].history);
		end_run(walk, number);
	} else {
		note_page_event(walk, free_range(walk, record));
	}
}

/* ---- The pass --------------------------------------------------------------------------------------------------- */

uint16_t cache_of_run(const struct resolution *result, uint32_t number)
{
	if (number == NONE || result->shared_pages)
		return NO_CACHE;
	const struct history *history = &result->histories[number];
	if (history->name != NO_TEXT)
		return result->caches.by_name[history->name];
	return history->class != NONE ? result->caches.classes[history->class].cache : NO_CACHE;
}

/* In pages older than the trace a run is one page, and what was last freed in it may be of another slab than what lay there before. */
static bool is_of_stride(const struct cache *cache, const struct class *class)
{
	return !cache->allocated || cache->allocated == class->allocated;
}

static void resolve_cache_allocs(struct resolution *result)
{
	struct caches *caches = &result->caches;
	for (uint32_t i = 0; i < result->history_count; i++)
		if (result->histories[i].name != NO_TEXT)
			cache_named(caches, result->histories[i].name);
	for (uint32_t i = 0; i < result->cache_alloc_count; i++) {
		struct cache_alloc *alloc = &result->cache_allocs[i];
		const struct class *class = &caches->classes[alloc->class];
		alloc->cache = class->cache;
		if (class->name == NO_TEXT) {
			uint16_t by_run = cache_of_run(result, alloc->history);
			if (alloc->name != NO_TEXT)
				alloc->cache = cache_named(caches, alloc->name);
			else if (by_run != NO_CACHE && is_of_stride(&caches->list[by_run], class))
				alloc->cache = by_run;
		}
		cache_holds(&caches->list[alloc->cache], class);
	}
}

/* Finds the cache and size of an object with an implied allocation: by the name on its free, its slab, or the call site of its free. */
static void resolve_implied_alloc(struct resolution *result, struct implied *implied)
{
	const struct history *history = &result->histories[implied->history];
	static const struct free_site none = {.class = NONE};
	const struct free_site *site = implied->call_site == NONE ? &none : &result->caches.free_sites[implied->call_site];
	implied->cache = implied->name != NO_TEXT ? cache_named(&result->caches, implied->name) : cache_of_run(result, implied->history);
	if (implied->cache == NO_CACHE && !result->shared_pages && history->kmalloc_size) {
		implied->size = history->kmalloc_size;
		implied->allocated = history->kmalloc_allocated;
		return;
	}
	if (implied->cache == NO_CACHE && implied->free_kind == KFREE) {
		implied->size = site->size ? site->size : history->kmalloc_size;
		implied->allocated = site->size ? site->allocated : history->kmalloc_allocated;
	}
	if (implied->cache == NO_CACHE && !implied->size && site->class != NONE)
		implied->cache = result->caches.classes[site->class].cache;
	if (implied->cache == NO_CACHE && implied->free_kind == CACHE_FREE && history->class != NONE)
		implied->cache = result->caches.classes[history->class].cache;
	if (implied->cache != NO_CACHE) {
		implied->size = result->caches.list[implied->cache].size;
		implied->allocated = result->caches.list[implied->cache].allocated;
	}
	implied->dropped = !implied->size;
}

/* Of a cache of which no allocation was seen the recorder may have told the sizes. */
static void size_caches(struct caches *caches, const struct slab_frames *slabs)
{
	for (size_t i = 0; i < slabs->shape_count; i++) {
		const struct slab_shape *shape = &slabs->shapes[i];
		uint16_t number = caches->by_name[shape->name];
		if (number != NO_CACHE && !caches->list[number].size) {
			caches->list[number].size = shape->size;
			caches->list[number].allocated = shape->stride;
		}
	}
}

static int by_time(const void *a, const void *b)
{
	const struct implied *one = a, *other = b;
	if (one->before != other->before)
		return one->before < other->before ? -1 : 1;
	return (one->sequence > other->sequence) - (one->sequence < other->sequence);
}

static void resolve_late(struct walk *walk)
{
	struct resolution *result = walk->result;
	for (uint32_t i = 0; i < walk->run_count; i++)
		if (walk->runs[i].in_use) {
			judge(walk, &walk->runs[i]);
			fill_unseen(walk, &walk->runs[i], false);
		}
	result->shared_pages = walk->runs_mixed > walk->runs_judged / 20;
	if (result->shared_pages)
		caches_join_equal_sizes(&result->caches);
	else
		caches_join_grown(&result->caches);
	caches_resolve(&result->caches);
	resolve_cache_allocs(result);
	size_caches(&result->caches, walk->slabs);
	for (uint32_t i = 0; i < result->implied_count; i++)
		if (result->implied[i].kind == IMPLIED_OBJECT_ALLOC)
			resolve_implied_alloc(result, &result->implied[i]);
	if (result->implied_count)
		qsort(result->implied, result->implied_count, sizeof *result->implied, by_time);
}

void resolve(struct capture *capture, const struct base *base, const struct slab_frames *slabs, struct resolution *result)
{
	struct walk walk = {.result = result, .base = base, .knows_slabs = slabs->count > 0, .slabs = slabs};
	*result = (struct resolution){0};
	page_map_init(&walk.pages);
	for (size_t i = 0; i < slabs->count; i++)
		page_fill(&walk.pages, slabs->frames[i], 1, PAGE_SLAB);
	live_map_init(&walk.objects);
	caches_init(&result->caches, &capture->texts);
	capture_rewind(capture);
	for (const struct record *record; (record = capture_next(capture)) != NULL; walk.now++) {
		switch (record->kind) {
		case KMALLOC:
		case CACHE_ALLOC: object_alloc(&walk, record); break;
		case KFREE:
		case CACHE_FREE: object_free(&walk, record); break;
		case PAGE_ALLOC: page_alloc(&walk, record); break;
		case PAGE_FREE: page_free(&walk, record); break;
		}
	}
	resolve_late(&walk);
	result->numbers = walk.pool.count + walk.run_count;
	page_map_free(&walk.pages);
	live_map_free(&walk.objects);
	live_pool_free(&walk.pool);
	free(walk.runs);
}

void resolution_free(struct resolution *result)
{
	free(result->implied);
	free(result->histories);
	free(result->page_events);
	free(result->cache_allocs);
	free(result->unmatched_frees);
	caches_free(&result->caches);
}
