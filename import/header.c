/*
 * The JSON before and after the rows:
 *
 *     `SYIMPORT`, uint32 length, JSON of that length    everything known before the first row: texts, counters, caches
 *     the blocks of rows.c
 *     uint32 length, JSON of that length                what was counted while the rows were written
 *
 * If the last part is missing, the import failed.
 *
 * The texts come from a file that may be made up. UTF-8 stays as it is; a byte that is none becomes `\xff`, four characters.
 */
#include "import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "programs/json.h"

/* A zero follows the text. */
static void put_text(FILE *json, const char *text, size_t length)
{
	fputc('"', json);
	for (size_t i = 0; i < length;) {
		const unsigned char *c = (const unsigned char *)text + i;
		unsigned bytes = json_utf8_length(c);
		if (*c == '"' || *c == '\\')
			fprintf(json, "\\%c", *c);
		else if (*c < 32 || *c == 127)
			fprintf(json, "\\u%04x", *c);
		else if (bytes)
			fwrite(c, 1, bytes, json);
		else
			fprintf(json, "\\\\x%02x", *c);
		i += bytes ? bytes : 1;
	}
	fputc('"', json);
}

static void put_texts(FILE *json, const char *key, const struct interner *texts)
{
	fprintf(json, "\"%s\":[", key);
	for (uint32_t i = 0; i < texts->count; i++) {
		if (i)
			fputc(',', json);
		put_text(json, texts->texts[i], texts->lengths[i]);
	}
	fputs("],", json);
}

static void put_bool(FILE *json, const char *key, bool value)
{
	fprintf(json, "\"%s\":%s,", key, value ? "true" : "false");
}

static void put_number(FILE *json, const char *key, uint64_t value)
{
	fprintf(json, "\"%s\":%" PRIu64 ",", key, value);
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

static void put_events(FILE *json, const struct capture *capture)
{
	fputs("\"events\":{", json);
	const char *comma = "";
	for (unsigned name = 0; name < EVENT_NAMES; name++) {
		uint64_t count = sum(capture, offsetof(struct scan, events) + name * sizeof(uint64_t));
		if (count && name != EVENT_MARK) {
			fprintf(json, "%s\"%s\":%" PRIu64, comma, event_names[name], count);
			comma = ",";
		}
	}
	fputs("},\"unknown_events\":[", json);
	comma = "";
	for (uint32_t i = 0; i < capture->scan_count; i++)
		for (uint32_t number = 0; number < capture->scans[i].unknown.count; number++) {
			const struct interner *names = &capture->scans[i].unknown;
			fprintf(json, "%s[", comma);
			put_text(json, names->texts[number], names->lengths[number]);
			fprintf(json, ",%" PRIu64 "]", capture->scans[i].unknown_counts[number]);
			comma = ",";
		}
	fputs("],", json);
}

static void put_headings(FILE *json, const struct capture *capture)
{
	const char *comma = "";
	fputs("\"headings\":[", json);
	for (uint32_t i = 0; i < capture->scan_count; i++) {
		const struct interner *lines = &capture->scans[i].headings;
		for (uint32_t number = 0; number < lines->count; number++) {
			fputs(comma, json);
			put_text(json, lines->texts[number], lines->lengths[number]);
			comma = ",";
		}
	}
	fputs("],", json);
}

static void put_scans(FILE *json, const struct capture *capture)
{
	uint32_t cpus = 1, nodes = 1, pageblock_order = NONE;
	uint64_t least_pfn = UINT64_MAX, most_pfn = 0;
	bool truncated = false, tracefs = false;
	for (uint32_t i = 0; i < capture->scan_count; i++) {
		const struct scan *scan = &capture->scans[i];
		cpus = scan->cpus > cpus ? scan->cpus : cpus;
		nodes = scan->nodes > nodes ? scan->nodes : nodes;
		pageblock_order = scan->pageblock_order < pageblock_order ? scan->pageblock_order : pageblock_order;
		least_pfn = scan->least_pfn < least_pfn ? scan->least_pfn : least_pfn;
		most_pfn = scan->most_pfn > most_pfn ? scan->most_pfn : most_pfn;
		truncated |= scan->truncated;
		tracefs |= scan->tracefs;
	}
	put_events(json, capture);
	put_headings(json, capture);
	put_number(json, "hidden_pointers", SUM(capture, hidden));
	put_number(json, "lines", SUM(capture, lines));
	put_number(json, "unparsed_lines", SUM(capture, unparsed));
	put_number(json, "lost", SUM(capture, lost));
	put_number(json, "null_frees", SUM(capture, null_frees));
	put_number(json, "failed_allocations", SUM(capture, failed_allocs));
	put_number(json, "reordered", SUM(capture, spool.reordered));
	put_number(json, "late", SUM(capture, spool.late));
	put_number(json, "cpus", cpus);
	put_number(json, "nodes", nodes);
	put_number(json, "span_ns", capture->last_time - capture->first_time);
	if (pageblock_order != NONE)
		put_number(json, "pageblock_order", pageblock_order);
	if (least_pfn != UINT64_MAX) {
		put_number(json, "least_pfn", least_pfn);
		put_number(json, "most_pfn", most_pfn);
	}
	put_bool(json, "truncated", truncated);
	put_bool(json, "tracefs", tracefs);
}

/* ---- What pass 3 found --------------------------------------------------------------------------------------------- */

static void put_caches(FILE *json, const struct capture *capture, const struct caches *caches)
{
	const struct interner *names = &capture->texts.names;
	fputs("\"caches\":[", json);
	for (uint32_t i = 0; i < caches->count; i++) {
		const struct cache *cache = &caches->list[i];
		fprintf(json, "%s{\"name\":", i ? "," : "");
		put_text(json, cache->name == NO_TEXT ? "" : names->texts[cache->name], cache->name == NO_TEXT ? 0 : names->lengths[cache->name]);
		fprintf(json, ",\"size\":%" PRIu32 ",\"allocated\":%" PRIu32 ",\"alignment\":%" PRIu32 "}", cache->size, cache->allocated,
			cache_alignment(cache));
	}
	fputs("],", json);
}

/* Which call sites allocate from which cache: pairs of their numbers, in order of first appearance. */
static void put_allocators(FILE *json, const struct caches *caches)
{
	fputs("\"allocators\":[", json);
	for (uint32_t i = 0; i < caches->class_count; i++)
		fprintf(json, "%s[%" PRIu16 ",%" PRIu32 "]", i ? "," : "", caches->classes[i].cache, caches->classes[i].call_site);
	fputs("],", json);
}

/* A stream in memory, because the length stands before the text. */
static FILE *open_document(char **text, size_t *length)
{
	FILE *json = open_memstream(text, length);
	if (!json)
		die("out of memory");
	return json;
}

static void close_document(FILE *json, FILE *file, const char *magic, char **text, const size_t *length)
{
	if (fclose(json) != 0)
		die("out of memory");
	if (*length > UINT32_MAX)
		die("the texts of the capture do not fit 4 GiB; import it in parts");
	uint32_t bytes = (uint32_t)*length;
	fputs(magic, file);
	fwrite(&bytes, sizeof bytes, 1, file);
	fwrite(*text, 1, *length, file);
	free(*text);
}

void header_write(const struct capture *capture, const struct base *base, const struct resolution *result, FILE *file)
{
	char *text;
	size_t length;
	FILE *json = open_document(&text, &length);
	fputc('{', json);
	put_scans(json, capture);
	put_texts(json, "call_sites", &capture->texts.call_sites);
	put_texts(json, "stacks", &capture->texts.stacks);
	put_texts(json, "tasks", &capture->texts.tasks);
	put_texts(json, "gfp", &capture->texts.gfp);
	put_texts(json, "marks", &capture->texts.marks);
	put_caches(json, capture, &result->caches);
	put_allocators(json, &result->caches);
	put_number(json, "explained", result->explained);
	put_number(json, "older", result->older_objects);
	put_number(json, "unexplained", result->unexplained);
	put_number(json, "page_size", (uint64_t)1 << base->shift);
	put_bool(json, "shared_pages", result->shared_pages);
	put_bool(json, "hashed", base->hashed);
	if (base->known)
		fprintf(json, "\"base\":\"0x%" PRIx64 "\"}", base->address);
	else
		fputs("\"base\":null}", json);
	close_document(json, file, "SYIMPORT", &text, &length);
}

void trailer_write(const struct resolution *result, const struct counts *counts, FILE *file)
{
	char *text;
	size_t length;
	FILE *json = open_document(&text, &length);
	fputc('{', json);
	put_number(json, "unknown_frees", counts->unknown_frees);
	put_number(json, "implied_frees", counts->implied_frees);
	put_number(json, "implied_allocations", counts->implied_allocs);
	put_number(json, "implied_page_frees", counts->implied_page_frees);
	put_number(json, "implied_page_allocations", counts->implied_page_allocs);
	put_number(json, "pages_of_unknown_owner", counts->pages_of_unknown_owner);
	put_number(json, "page_contradictions", result->page_contradictions);
	fputs("\"cache_counts\":[", json);
	for (uint32_t i = 0; i < result->caches.count; i++)
		fprintf(json, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "", result->caches.list[i].allocs, result->caches.list[i].frees);
	fputs("],\"snapshots\":[", json);
	for (uint32_t i = 0; i < counts->snapshots; i++)
		fprintf(json, "%s[%" PRIu64 ",%" PRIu32 "]", i ? "," : "", counts->snapshot_marks[i].time, counts->snapshot_marks[i].mark);
	fprintf(json, "],\"rows\":%" PRIu64 "}", counts->rows);
	close_document(json, file, "", &text, &length);
}
