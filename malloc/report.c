/*
 * The report at the end of a program: what it asked malloc for, and what that took.
 *
 * With SLABYARD_STATS=FILE in the environment every program that ends by exit() appends one line of JSON to that file
 * (`slabyard run --stats` reads it). Only then do counting functions stand between callers and the heap. They count allocations
 * and frees by size, and the live bytes with their peak. A size is the room of an object. Size classes are ALIGNMENT apart up to
 * SMALL bytes, then STEPS to a doubling. Counters are relaxed atomics, each of which is right when nobody counts any more.
 */
#define _GNU_SOURCE
#include "parts.h"
#include "system.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS 4u           /* classes to a doubling, from SMALL on */
#define SMALL 128u         /* bytes; up to here classes are ALIGNMENT apart */
#define SMALL_CLASSES (SMALL / ALIGNMENT)
#define CLASSES (SMALL_CLASSES + STEPS * 40)

static struct {
	struct service behind; /* serves calls once they are counted */
	uint64_t allocations[CLASSES], frees[CLASSES], live_bytes, peak_bytes;
	const char *file; /* NULL: nothing is counted */
} counted;

bool sy__report_counts;

/* ---- Counting ----------------------------------------------------------------------------------------------------- */

static unsigned class_of(size_t bytes)
{
	unsigned doubling, step;

	if (bytes <= SMALL)
		return bytes ? (unsigned)(bytes - 1) / ALIGNMENT : 0;
	doubling = 63u - (unsigned)__builtin_clzll(bytes - 1);
	step = (unsigned)((bytes - 1) >> (doubling - 2)) & (STEPS - 1);
	return SMALL_CLASSES + (doubling - 7) * STEPS + step;
}

/* The largest size in a class. */
static uint64_t class_bytes(unsigned class)
{
	unsigned doubling, step;

	if (class < SMALL_CLASSES)
		return (uint64_t)(class + 1) * ALIGNMENT;
	doubling = (class - SMALL_CLASSES) / STEPS + 7;
	step = (class - SMALL_CLASSES) % STEPS;
	return ((uint64_t)1 << doubling) + ((uint64_t)(step + 1) << (doubling - 2));
}

/* Relaxed, as the peak below: figures order nothing. */
static void add(uint64_t *counter, uint64_t amount)
{
	__atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

void sy__report_added(const void *object)
{
	size_t bytes = sy__usable_bytes(object);
	uint64_t live = __atomic_add_fetch(&counted.live_bytes, bytes, __ATOMIC_RELAXED);
	uint64_t peak = __atomic_load_n(&counted.peak_bytes, __ATOMIC_RELAXED);

	add(&counted.allocations[class_of(bytes)], 1);
	while (peak < live && !__atomic_compare_exchange_n(&counted.peak_bytes, &peak, live, true, __ATOMIC_RELAXED,
	                                                   __ATOMIC_RELAXED))
		;
}

void sy__report_removed(const void *object)
{
	size_t bytes = sy__usable_bytes(object);

	add(&counted.frees[class_of(bytes)], 1);
	add(&counted.live_bytes, -(uint64_t)bytes);
}

static void *counting_malloc(size_t size, struct sy_heap *heap)
{
	void *object = counted.behind.malloc(size, heap);

	if (sy__likely(object))
		sy__report_added(object);
	return object;
}

static void counting_free(void *object, struct sy_heap *heap)
{
	if (object)
		sy__report_removed(object);
	counted.behind.free(object, heap);
}

void sy__report_start(struct service *served, const char *file)
{
	counted.behind = *served;
	counted.file = file;
	sy__report_counts = true;
	served->malloc = counting_malloc;
	served->free = counting_free;
}

/* In the child of a fork: what the parent did is in the parent's report. */
static void forget(void)
{
	for (unsigned class = 0; class < CLASSES; class++) {
		counted.allocations[class] -= counted.frees[class];
		counted.frees[class] = 0;
	}
	counted.peak_bytes = counted.live_bytes;
}

__attribute__((constructor)) static void watch_forks(void)
{
	if (counted.file)
		pthread_atfork(NULL, NULL, forget);
}

/* ---- The report --------------------------------------------------------------------------------------------------- */

/* The line is written by one call, so that lines of programs that end together don't mix. It is cut at the end of its buffer. */
#define LINE_BYTES ((size_t)65536)
#define MOST_TEXT 1000 /* bytes, or the rest of the last character more */

static char *line; /* mapped when it is needed: a static buffer would lie among the data that every program touches */
static size_t length;

__attribute__((format(printf, 1, 2))) static void print(const char *format, ...)
{
	va_list arguments;
	int printed;

	va_start(arguments, format);
	printed = vsnprintf(line + length, LINE_BYTES - length, format, arguments);
	va_end(arguments);
	length += (size_t)printed < LINE_BYTES - length ? (size_t)printed : LINE_BYTES - 1 - length;
}

/* Bytes of the UTF-8 character at the start of a text. 0: there is none, or it is a control character, or it needs an escape. */
static unsigned character(const char *text)
{
	static const uint32_t least[] = { ' ', 0xa0, 0x800, 0x10000 };
	unsigned first = (unsigned char)*text, more = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
	uint32_t code = first & (more ? 0x3fu >> more : 0xffu);

	if ((first & 0xc0) == 0x80 || first >= 0xf8 || first == 0x7f || first == '"' || first == '\\')
		return 0;
	for (unsigned i = 1; i <= more; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | ((unsigned char)text[i] & 0x3fu);
	}
	return code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : more + 1;
}

/* A text between quotes. A program's name may be of any length and any bytes. */
static void print_text(const char *name, const char *text)
{
	unsigned bytes;

	print("\"%s\":\"", name);
	for (const char *end = text + MOST_TEXT; *text && text < end; text += bytes) {
		bytes = character(text);
		print("%.*s", bytes ? (int)bytes : 1, bytes ? text : "?");
		bytes += !bytes;
	}
	print("\",");
}

/* A line of the system's account of this program, in KiB; 0: it has none. */
static uint64_t status_kib(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void print_resident(void)
{
	char status[4096];

	sy__system_text("/proc/self/status", status, sizeof(status));
	print("\"resident_bytes\":%" PRIu64 ",\"resident_peak_bytes\":%" PRIu64, status_kib(status, "VmRSS:") * 1024,
	      status_kib(status, "VmHWM:") * 1024);
}

static void print_classes(void)
{
	const char *comma = "";

	print("\"classes\":[");
	for (unsigned class = 0; class < CLASSES; class++) {
		if (!counted.allocations[class])
			continue;
		print("%s{\"bytes\":%" PRIu64 ",\"allocations\":%" PRIu64 ",\"frees\":%" PRIu64 "}", comma, class_bytes(class),
		      counted.allocations[class], counted.frees[class]);
		comma = ",";
	}
	print("],");
}

static void print_caches(struct sy_heap *heap)
{
	struct sy_cache_counts counts;
	const char *comma = "";

	print("\"caches\":[");
	for (struct sy_cache *cache = sy__next_cache(heap, NULL); cache; cache = sy__next_cache(heap, cache)) {
		sy_cache_count(cache, &counts);
		if (!counts.slabs)
			continue;
		print("%s{\"name\":\"%s\",\"bytes\":%" PRIu32 ",\"slabs\":%" PRIu64 ",\"pages\":%" PRIu64 ",\"objects\":%" PRIu64
		      ",\"in_use\":%" PRIu64 "}", comma, cache->name, cache->size, counts.slabs, counts.pages, counts.objects,
		      counts.objects_in_use);
		comma = ",";
	}
	print("],");
}

static void print_pages(const struct sy_heap *heap)
{
	const struct sy_heap_counters *counters = &heap->counters;
	struct mapping_counts mappings;

	sy__mapping_count(&mappings);
	print("\"page_bytes\":%u,\"slab_pages\":%" PRIu64 ",\"run_pages\":%" PRIu64 ",\"metadata_pages\":%" PRIu64
	      ",\"held_pages_peak\":%" PRIu64 ",", (unsigned)SY_PAGE_SIZE, counters->slab_pages, counters->large_pages,
	      counters->metadata_pages, counters->held_peak);
	print("\"page_requests\":%" PRIu64 ",\"slow_allocations\":%zu,\"slow_frees\":%zu,", counters->page_requests,
	      counters->slow_allocs, counters->slow_frees);
	print("\"mappings\":%zu,\"mapped_bytes\":%zu,\"mapped_bytes_peak\":%zu,", mappings.live, mappings.bytes,
	      mappings.peak_bytes);
}

/* Runs when the program ends by exit(), after most of its own exit handlers. */
__attribute__((destructor)) static void report(void)
{
	struct sy_heap *heap = counted.file ? sy__process_heap() : NULL;
	int file;

	if (heap && sy__system_is_shut_in()) {
		sy__setting_tell("SLABYARD_STATS", counted.file, "not written: the program may have forbidden itself the system calls for that");
		return;
	}
	file = heap ? sy__file_open(counted.file, O_WRONLY | O_CREAT | O_APPEND) : -1;

	if (file < 0)
		return;
	line = sy__system_map(NULL, LINE_BYTES, PROT_READ | PROT_WRITE, 0);
	if (!line) {
		sy__file_close(file);
		return;
	}
	print("{\"pid\":%ld,", (long)sy__system_process());
	print_text("program", program_invocation_name);
	print_text("allocator", sy__process_spec());
	print("\"live_bytes\":%" PRIu64 ",\"live_bytes_peak\":%" PRIu64 ",", counted.live_bytes, counted.peak_bytes);
	print_classes();
	print_caches(heap);
	print_pages(heap);
	print_resident();
	print("}\n");
	sy__file_write(file, line, length);
	sy__file_close(file);
}
