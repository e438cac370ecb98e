/*
 * Pass 4: writes the capture as rows of the trace, with the implied events merged in at their places.
 *
 * Pass 3 has decided everything. This pass only follows what is live: it numbers objects and pages, and gives frees the sizes of
 * their allocations. A free of something that is not live frees something older than the trace.
 */
#include "import.h"

#include <stdlib.h>

struct output {
	struct resolution *result; /* only the counts of its caches change */
	struct counts *counts;
	uint64_t first_time;
	unsigned page_shift;
	struct live_map objects, pages;
	struct live_pool pool;
	uint32_t next_implied, next_page_event, next_cache_alloc, next_unmatched_free;
};

static struct row row_of(const struct output *output, const struct record *record)
{
	return (struct row){
		.time = record->time - output->first_time,
		.address = record->address,
		.object = NONE,
		.call_site = record->call_site,
		.stack = record->stack,
		.task = record->task,
		.cpu = record->cpu,
		.cache = NO_CACHE,
		.gfp = record->gfp,
		.kind = record->kind,
		.order = record->order,
		.migrate = record->migrate,
		.node = record->node,
		.accounted = record->accounted,
	};
}

/* A row of an implied event: at the time and on the CPU of the record that follows it. */
static struct row implied_row(const struct output *output, const struct record *record, uint64_t address, enum kind kind)
{
	struct row row = row_of(output, &(struct record){.time = record->time, .address = address, .call_site = NONE, .stack = NONE, .task = NONE,
	                                                 .cpu = record->cpu, .kind = (uint8_t)kind, .migrate = -1, .node = -1});
	row.origin = IMPLIED;
	return row;
}

/* The bytes of a run. The largest order of the largest pages does not fit in 32 bits, and becomes UINT32_MAX. */
static uint32_t bytes_of(const struct output *output, uint8_t order)
{
	uint64_t bytes = (uint64_t)1 << (output->page_shift + order);
	return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

static void put(struct output *output, const struct row *row)
{
	output->counts->rows++;
	rows_put(row);
}

/* ---- Objects ---------------------------------------------------------------------------------------------------- */

/* Makes the row's object live and numbers it. */
static struct live *add_live(struct output *output, struct row *row)
{
	row->object = live_add(&output->objects, &output->pool, row->address);
	struct live *live = &output->pool.entries[row->object];
	live->size = row->size;
	live->allocated = row->allocated;
	live->class = row->cache;
	live->kind = row->kind;
	return live;
}

static void object_alloc(struct output *output, const struct record *record)
{
	struct row row = row_of(output, record);
	if (record->kind == CACHE_ALLOC) {
		row.cache = output->result->cache_allocs[output->next_cache_alloc++].cache;
		output->result->caches.list[row.cache].allocs++;
	}
	row.size = record->size;
	row.allocated = record->allocated;
	add_live(output, &row);
	put(output, &row);
}

static void remove_live(struct output *output, uint32_t object, struct row *row)
{
	const struct live *live = &output->pool.entries[object];
	row->object = object;
	row->size = live->size;
	row->allocated = live->allocated;
	row->cache = (uint16_t)live->class;
	live_remove(&output->objects, &output->pool, object);
}

static uint16_t cache_of_older(const struct output *output, const struct record *record, uint32_t history)
{
	const struct caches *caches = &output->result->caches;
	uint16_t cache = record->name != NO_TEXT ? caches->by_name[record->name] : cache_of_run(output->result, history);
	uint32_t class = caches->free_sites[record->call_site].class;
	if (cache == NO_CACHE && record->kind == CACHE_FREE && class != NONE)
		cache = caches->classes[class].cache;
	return cache;
}

static void object_free(struct output *output, const struct record *record)
{
	struct row row = row_of(output, record);
	uint32_t object = live_find(&output->objects, &output->pool, record->address);
	if (object == NONE) {
		row.origin = OLDER;
		row.cache = cache_of_older(output, record, output->result->unmatched_frees[output->next_unmatched_free++]);
		output->counts->unknown_frees++;
	} else {
		output->next_unmatched_free += output->pool.entries[object].implied;
		remove_live(output, object, &row);
	}
	if (row.cache != NO_CACHE)
		output->result->caches.list[row.cache].frees++;
	put(output, &row);
}

/* ---- Pages ------------------------------------------------------------------------------------------------------ */

static void page_alloc(struct output *output, struct row *row, uint32_t history)
{
	row->owner = output->result->histories[history].owner;
	row->size = bytes_of(output, row->order);
	row->object = live_add(&output->pages, &output->pool, row->address);
	struct live *live = &output->pool.entries[row->object];
	live->order = row->order;
	live->owner = row->owner;
	if (row->owner == OWNER_UNKNOWN)
		output->counts->pages_of_unknown_owner += (uint64_t)1 << row->order;
	put(output, row);
}

static void page_free(struct output *output, struct row *row, uint32_t page)
{
	const struct live *live = &output->pool.entries[page];
	row->object = page;
	row->order = live->order;
	row->owner = live->owner;
	row->size = bytes_of(output, row->order);
	live_remove(&output->pages, &output->pool, page);
	put(output, row);
}

static void recorded_page_free(struct output *output, const struct record *record)
{
	struct row row = row_of(output, record);
	uint32_t history = output->result->page_events[output->next_page_event++];
	uint32_t page = live_find(&output->pages, &output->pool, record->address);
	if (page != NONE) {
		page_free(output, &row, page);
		return;
	}
	row.origin = OLDER;
	row.owner = output->result->histories[history].owner;
	row.size = bytes_of(output, row.order);
	if (row.owner == OWNER_UNKNOWN)
		output->counts->pages_of_unknown_owner += (uint64_t)1 << row.order;
	put(output, &row);
}

/* ---- Implied events --------------------------------------------------------------------------------------------- */

static void implied_object_alloc(struct output *output, const struct implied *implied, const struct record *record)
{
	struct row row = implied_row(output, record, implied->address, implied->cache == NO_CACHE ? KMALLOC : CACHE_ALLOC);
	row.size = implied->size;
	row.allocated = implied->allocated;
	row.cache = implied->cache;
	add_live(output, &row)->implied = true;
	output->counts->implied_allocs++;
	put(output, &row);
}

static void implied_object_free(struct output *output, const struct implied *implied, const struct record *record)
{
	uint32_t object = live_find(&output->objects, &output->pool, implied->address);
	if (object == NONE) /* its allocation is implied too, and was dropped */
		return;
	enum kind kind = output->pool.entries[object].kind == KMALLOC ? KFREE : CACHE_FREE;
	struct row row = implied_row(output, record, implied->address, kind);
	remove_live(output, object, &row);
	output->counts->implied_frees++;
	put(output, &row);
}

static void implied_page_alloc(struct output *output, const struct implied *implied, const struct record *record)
{
	struct row row = implied_row(output, record, implied->address, PAGE_ALLOC);
	row.order = implied->order;
	row.migrate = implied->migrate;
	output->counts->implied_page_allocs++;
	page_alloc(output, &row, implied->history);
}

static void implied_page_free(struct output *output, const struct implied *implied, const struct record *record)
{
	struct row row = implied_row(output, record, implied->address, PAGE_FREE);
	output->counts->implied_page_frees++;
	page_free(output, &row, live_find(&output->pages, &output->pool, implied->address));
}

static void put_implied(struct output *output, uint32_t ordinal, const struct record *record)
{
	const struct resolution *result = output->result;
	for (; output->next_implied < result->implied_count && result->implied[output->next_implied].before == ordinal;
	     output->next_implied++) {
		const struct implied *implied = &result->implied[output->next_implied];
		switch (implied->kind) {
		case IMPLIED_OBJECT_ALLOC:
			if (!implied->dropped)
				implied_object_alloc(output, implied, record);
			break;
		case IMPLIED_OBJECT_FREE: implied_object_free(output, implied, record); break;
		case IMPLIED_PAGE_ALLOC: implied_page_alloc(output, implied, record); break;
		case IMPLIED_PAGE_FREE: implied_page_free(output, implied, record); break;
		}
	}
}

/* ---- The pass --------------------------------------------------------------------------------------------------- */

static void snapshot(struct output *output, const struct record *record)
{
	struct counts *counts = output->counts;
	struct row row = row_of(output, record);
	row.address = 0;
	row.object = counts->snapshots;
	APPEND(counts->snapshot_marks, counts->snapshots, counts->snapshot_room,
	       (struct snapshot_mark){row.time, (uint32_t)record->address});
	put(output, &row);
}

static void put_record(struct output *output, const struct record *record)
{
	struct row row;
	switch (record->kind) {
	case KMALLOC:
	case CACHE_ALLOC: object_alloc(output, record); break;
	case KFREE:
	case CACHE_FREE: object_free(output, record); break;
	case PAGE_ALLOC:
		row = row_of(output, record);
		page_alloc(output, &row, output->result->page_events[output->next_page_event++]);
		break;
	case PAGE_FREE: recorded_page_free(output, record); break;
	case EXTFRAG:
		row = row_of(output, record);
		put(output, &row);
		break;
	case SNAPSHOT: snapshot(output, record); break;
	}
}

void emit(struct capture *capture, const struct base *base, struct resolution *result, struct counts *counts, FILE *file)
{
	struct output output = {
		.result = result, .counts = counts, .first_time = capture->first_time, .page_shift = base->shift};
	uint32_t ordinal = 0;
	live_map_init(&output.objects);
	live_map_init(&output.pages);
	rows_begin(file);
	capture_rewind(capture);
	for (const struct record *record; (record = capture_next(capture)) != NULL; ordinal++) {
		if (unlikely(output.next_implied < result->implied_count && result->implied[output.next_implied].before == ordinal))
			put_implied(&output, ordinal, record);
		put_record(&output, record);
	}
	rows_end();
	live_map_free(&output.objects);
	live_map_free(&output.pages);
	live_pool_free(&output.pool);
}
