/*
 * The JSON before and after the rows:
 *
 *     `SYIMPORT`, uint32 length, JSON of that length    everything known before the first row: texts, counters, caches
 *     the blocks of rows.c
 *     uint32 length, JSON of that length                what was counted while the rows were written
 *
 * If the last part is missing, the import failed.
 *
 * The texts come from a file that may be made up. UTF-8 stays as it is; a byte that is no UTF-8 becomes `\xff`, four characters.
 */
#include "import.h"
#include "values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "programs/json.h"

#define FIRST_SECOND UINT64_C(1000000000) /* ns: of a kernel that is traced from its start */

static void put_texts(struct json *json, const char *key, const struct interner *texts)
{
	json_array(json, key);
	for (uint32_t i = 0; i < texts->count; i++)
		json_text(json, NULL, texts->texts[i], texts->lengths[i]);
	json_array_end(json);
}

static void put_pair(struct json *json, uint64_t first, uint64_t second)
{
	json_counts(json, NULL, (const uint64_t[]){ first, second }, 2);
}

/* ---- What the scans counted, added up ------------------------------------------------------------------------------ */

static uint64_t sum(const struct capture *capture, size_t offset)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < capture->scan_count; i++) {
		uint64_t value;
		memcpy(&value, (const char *)&capture->scans[i] + offset, sizeof value);
		total += value;
	}
	return total;
}
#define SUM(capture, member) sum(capture, offsetof(struct scan, member))

/* Lines with fewer or more fields than most of their event. A kernel prints an event with the same fields each time, so these were cut
 * off, or run together. */
static uint64_t odd_lines(const struct capture *capture)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < capture->scan_count; i++)
		for (unsigned event = 0; event < EVENT_NAMES; event++) {
			const uint64_t *lines = capture->scans[i].by_fields[event];
			uint64_t all = 0, most = 0;
			for (unsigned fields = 0; fields < MOST_FIELDS; fields++) {
				all += lines[fields];
				most = lines[fields] > most ? lines[fields] : most;
			}
			total += all - most;
		}
	return total;
}

static void put_events(struct json *json, const struct capture *capture)
{
	json_object(json, "events");
	for (unsigned name = 0; name < EVENT_NAMES; name++) {
		uint64_t count = sum(capture, offsetof(struct scan, events) + name * sizeof(uint64_t));
		if (count && name != EVENT_MARK)
			json_count(json, event_names[name], count);
	}
	json_object_end(json);
	json_array(json, "unknown_events");
	for (uint32_t i = 0; i < capture->scan_count; i++)
		for (uint32_t number = 0; number < capture->scans[i].unknown.count; number++) {
			const struct interner *names = &capture->scans[i].unknown;
			json_array(json, NULL);
			json_text(json, NULL, names->texts[number], names->lengths[number]);
			json_count(json, NULL, capture->scans[i].unknown_counts[number]);
			json_array_end(json);
		}
	json_array_end(json);
}

static void put_headings(struct json *json, const struct capture *capture)
{
	json_array(json, "headings");
	for (uint32_t i = 0; i < capture->scan_count; i++) {
		const struct interner *lines = &capture->scans[i].headings;
		for (uint32_t number = 0; number < lines->count; number++)
			json_text(json, NULL, lines->texts[number], lines->lengths[number]);
	}
	json_array_end(json);
}

static void put_scans(struct json *json, const struct capture *capture)
{
	uint32_t cpus = 1, nodes = 1, pageblock_order = NONE;
	uint64_t least_pfn = UINT64_MAX, most_pfn = 0, headed = 0, placed = 0;
	bool truncated = false, tracefs = false, counted = false;
	for (uint32_t i = 0; i < capture->scan_count; i++) {
		const struct scan *scan = &capture->scans[i];
		cpus = scan->cpus > cpus ? scan->cpus : cpus;
		nodes = scan->nodes > nodes ? scan->nodes : nodes;
		pageblock_order = scan->pageblock_order < pageblock_order ? scan->pageblock_order : pageblock_order;
		least_pfn = scan->least_pfn < least_pfn ? scan->least_pfn : least_pfn;
		most_pfn = scan->most_pfn > most_pfn ? scan->most_pfn : most_pfn;
		truncated |= scan->truncated;
		tracefs |= scan->tracefs;
		counted |= scan->counted;
		headed += scan->other_tracer ? 0 : scan->headed;
		placed += scan->other_tracer ? 0 : scan->placed;
	}
	put_events(json, capture);
	put_headings(json, capture);
	json_count(json, "headed", headed);
	json_count(json, "placed", placed);
	json_count(json, "odd_lines", odd_lines(capture));
	json_count(json, "hidden_pointers", SUM(capture, hidden));
	json_count(json, "lines", SUM(capture, lines));
	json_count(json, "unparsed_lines", SUM(capture, unparsed));
	json_count(json, "lost", SUM(capture, lost));
	json_count(json, "null_frees", SUM(capture, null_frees));
	json_count(json, "failed_allocations", SUM(capture, failed_allocs));
	json_count(json, "reordered", SUM(capture, spool.reordered));
	json_count(json, "late", SUM(capture, spool.late));
	json_count(json, "cpus", cpus);
	json_count(json, "nodes", nodes);
	json_count(json, "span_ns", capture->last_time - capture->first_time);
	json_bool(json, "from_boot", capture->first_time - TIME_ZERO < FIRST_SECOND);
	if (pageblock_order != NONE)
		json_count(json, "pageblock_order", pageblock_order);
	if (least_pfn != UINT64_MAX) {
		json_count(json, "least_pfn", least_pfn);
		json_count(json, "most_pfn", most_pfn);
	}
	json_bool(json, "truncated", truncated);
	json_bool(json, "tracefs", tracefs);
	json_bool(json, "counted_times", counted);
}

/* ---- What pass 3 found --------------------------------------------------------------------------------------------- */

static void put_caches(struct json *json, const struct capture *capture, const struct caches *caches)
{
	const struct interner *names = &capture->texts.names;
	json_array(json, "caches");
	for (uint32_t i = 0; i < caches->count; i++) {
		const struct cache *cache = &caches->list[i];
		bool named = cache->name != NO_TEXT;
		json_object(json, NULL);
		json_text(json, "name", named ? names->texts[cache->name] : "", named ? names->lengths[cache->name] : 0);
		json_count(json, "size", cache->size);
		json_count(json, "allocated", cache->allocated);
		json_count(json, "alignment", cache_alignment(cache));
		json_object_end(json);
	}
	json_array_end(json);
}

/* Which call sites allocate from which cache: pairs of their numbers, in order of first appearance. */
static void put_allocators(struct json *json, const struct caches *caches)
{
	json_array(json, "allocators");
	for (uint32_t i = 0; i < caches->class_count; i++)
		put_pair(json, caches->classes[i].cache, caches->classes[i].call_site);
	json_array_end(json);
}

/* A document goes to memory first, because its length stands before the text. */
struct document {
	struct json json;
	char *text;
	size_t length;
};

static struct json *open_document(struct document *document)
{
	FILE *stream = open_memstream(&document->text, &document->length);
	if (!stream)
		die("out of memory");
	json_begin(&document->json, stream);
	document->json.one_line = true;
	json_object(&document->json, NULL);
	return &document->json;
}

static void close_document(struct document *document, FILE *file, const char *magic)
{
	json_object_end(&document->json);
	if (fclose(document->json.out) != 0)
		die("out of memory");
	if (document->length > UINT32_MAX)
		die("the texts of the capture do not fit 4 GiB; import it in parts");
	uint32_t bytes = (uint32_t)document->length;
	fputs(magic, file);
	fwrite(&bytes, sizeof bytes, 1, file);
	fwrite(document->text, 1, document->length, file);
	free(document->text);
}

void header_write(const struct capture *capture, const struct base *base, const struct resolution *result, FILE *file)
{
	struct document document;
	struct json *json = open_document(&document);
	char address[2 + 16 + 1];
	put_scans(json, capture);
	put_texts(json, "call_sites", &capture->texts.call_sites);
	put_texts(json, "stacks", &capture->texts.stacks);
	put_texts(json, "tasks", &capture->texts.tasks);
	put_texts(json, "gfp", &capture->texts.gfp);
	put_texts(json, "marks", &capture->texts.marks);
	put_caches(json, capture, &result->caches);
	put_allocators(json, &result->caches);
	json_count(json, "explained", result->explained);
	json_count(json, "older", result->older_objects);
	json_count(json, "unexplained", result->unexplained);
	json_count(json, "numbers", result->numbers);
	json_count(json, "page_size", (uint64_t)1 << base->shift);
	json_bool(json, "shared_pages", result->shared_pages);
	json_bool(json, "hashed", base->hashed);
	snprintf(address, sizeof address, "0x%" PRIx64, base->address);
	json_string(json, "base", base->known ? address : NULL);
	close_document(&document, file, "SYIMPORT");
}

void trailer_write(const struct resolution *result, const struct counts *counts, uint32_t repeats, FILE *file)
{
	struct document document;
	struct json *json = open_document(&document);
	json_count(json, "unknown_frees", counts->unknown_frees);
	json_count(json, "implied_frees", counts->implied_frees);
	json_count(json, "implied_allocations", counts->implied_allocs);
	json_count(json, "implied_page_frees", counts->implied_page_frees);
	json_count(json, "implied_page_allocations", counts->implied_page_allocs);
	json_count(json, "pages_of_unknown_owner", counts->pages_of_unknown_owner);
	json_count(json, "page_contradictions", result->page_contradictions);
	json_count(json, "repeats", repeats);
	json_array(json, "cache_counts");
	for (uint32_t i = 0; i < result->caches.count; i++)
		put_pair(json, result->caches.list[i].allocs, result->caches.list[i].frees);
	json_array_end(json);
	json_array(json, "snapshots");
	for (uint32_t i = 0; i < counts->snapshots; i++)
		put_pair(json, counts->snapshot_marks[i].time, counts->snapshot_marks[i].mark);
	json_array_end(json);
	json_count(json, "rows", counts->rows);
	close_document(&document, file, "");
}
