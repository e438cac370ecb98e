/*
 * What a program says of its bugs, on standard error, before it aborts.
 *
 * The first line is "slabyard: KIND: ADDRESS", of which KIND is one of the names of sy_bug_name. If the heap has checks there follows
 * what Bonwick's report has (1994, section 6.8), in his order: what was changed, the buffer and its cache, the transactions on it, the
 * youngest first, each with thread, time before now and stack, and where the log goes on. With "json" it is all one line of JSON.
 *
 * Nothing here may allocate: the heap is in the middle of a call, with locks held, and what it holds may be damaged. The log is read
 * as it is; other threads may go on writing it.
 */
#include "report.h"

#include "core/debug/debug.h"
#include "core/page_interface.h"
#include "symbols.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_TOLD 8u /* transactions of one report */

/* One transaction as a report tells it. */
struct told {
	const char *what; /* "allocated", "freed" */
	const struct sy_cache *cache;
	uint64_t time, thread;
	uintptr_t frames[SY__DEBUG_FRAMES];
	unsigned depth;
};

struct report {
	struct sy_heap *heap;
	const struct sy__finding *finding;
	uint64_t now;
	struct told told[MOST_TOLD + 1]; /* the last one is the call that found it */
	unsigned count;
	struct told *here;
};

/* ---- Output ------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[1024];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	length = length < (int)sizeof(line) ? length : (int)sizeof(line) - 1;
	for (int at = 0; at < length;) {
		ssize_t written = write(STDERR_FILENO, line + at, (size_t)(length - at));

		if (written <= 0)
			return;
		at += (int)written;
	}
}

static void say_string(const char *text)
{
	say("\"");
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			say("\\%c", *text);
		else
			say((unsigned char)*text < ' ' ? "\\u%04x" : "%c", (unsigned char)*text);
	say("\"");
}

/* ---- What is told ------------------------------------------------------------------------------------------------- */

static void copy_stack(const struct sy__debug *debug, uint32_t number, struct told *to)
{
	if (!number || !debug->stacks)
		return;
	to->depth = debug->stacks[number - 1].depth;
	memcpy(to->frames, debug->stacks[number - 1].frames, sizeof(to->frames));
}

static void tell(struct report *report, const char *what, const struct sy_cache *cache, uint64_t time, uint64_t thread, uint32_t stack)
{
	struct told *told = &report->told[report->count++];

	*told = (struct told){ .what = what, .cache = cache, .time = time, .thread = thread };
	copy_stack(report->heap->debug, stack, told);
}

/* The object's own transactions are in its record, former owners' in the ring. */
static void gather(struct report *report)
{
	const struct sy__record *record = &report->finding->record;
	const struct sy__debug *debug = report->heap->debug;
	uint64_t number = debug->transactions + 1;

	if (!report->finding->known)
		return;
	if (record->state != SY__RECORD_LIVE)
		tell(report, "freed", record->cache, record->freed, record->freer, record->free_stack);
	tell(report, "allocated", record->cache, record->allocated, record->allocator, record->allocation_stack);
	while (report->count < MOST_TOLD && (number = sy__transaction_before(debug, record, number))) {
		const struct sy__transaction *at = &debug->ring[(number - 1) % debug->config.ring];

		if (at->time < record->allocated || (at->time == record->allocated && at->free))
			tell(report, at->free ? "freed" : "allocated", at->cache, at->time, at->thread, at->stack);
	}
}

static void look_up(struct report *report)
{
	uintptr_t addresses[(MOST_TOLD + 1) * SY__DEBUG_FRAMES];
	size_t count = 0;

	for (unsigned i = 0; i < report->count; i++)
		for (unsigned j = 0; j < report->told[i].depth; j++)
			addresses[count++] = report->told[i].frames[j];
	sy__symbols_look_up(addresses, count);
}

/* Frames of the library stand first where it is a part of the program. */
static unsigned first_frame(const struct told *told)
{
	unsigned first = 0;

	while (first + 1 < told->depth && sy__symbol_is_own(told->frames[first]))
		first++;
	return first;
}

/* ---- As text ------------------------------------------------------------------------------------------------------ */

static const char *cache_name(const struct sy_cache *cache)
{
	return cache ? cache->name : "general allocation";
}

static void say_told(const struct report *report, const struct told *told)
{
	uint64_t ago = report->now - told->time;

	say("%s by thread=%" PRIu64 "  time=T-%" PRIu64 ".%06" PRIu64 "  cache: %s\n", told->what, told->thread, ago / 1000000000u,
	    ago / 1000u % 1000000u, cache_name(told->cache));
	for (unsigned i = first_frame(told); i < told->depth; i++)
		say("    %s\n", sy__symbol_of(told->frames[i]));
}

static const char *interface_name(unsigned interface)
{
	static const char *const names[] = { "any", "a cache", "malloc", "new", "new[]" };

	return names[interface];
}

static void say_what(const struct sy__finding *finding)
{
	const struct sy__record *record = &finding->record;
	long offset = (long)((const char *)finding->address - record->object);

	switch (finding->kind) {
	case SY_BUG_WRITE_AFTER_FREE:
	case SY_BUG_WRITE_PAST_THE_END:
	case SY_BUG_WRITE_BEFORE_THE_START:
		say("modification occurred at offset %s%#lx (%#" PRIx32 " replaced by %#" PRIx32 ")\n", offset < 0 ? "-" : "",
		    offset < 0 ? -offset : offset, finding->expected, finding->found);
		break;
	case SY_BUG_CHANGED_STATE:
		say("the byte at offset %#lx was constructed as %#" PRIx32 " and is %#" PRIx32 "\n", offset, finding->expected, finding->found);
		break;
	case SY_BUG_WRONG_SIZE:
		say("it was freed with size %zu, and allocated with %zu\n", finding->size, record->size);
		break;
	case SY_BUG_WRONG_CACHE:
		if (finding->other || record->cache)
			say("it is of %s, and was freed to %s\n", cache_name(record->cache), cache_name(finding->other));
		else
			say("it was allocated by %s, and is freed as by %s\n", interface_name(record->interface),
			    interface_name(finding->interface));
		break;
	case SY_BUG_INTERIOR_FREE:
		say("it is %#lx bytes from the start of the object\n", offset);
		break;
	case SY_BUG_FOREIGN_FREE:
		say("no object is there%s\n", finding->known ? ", but one near below" : "");
		break;
	default:
		break;
	}
}

static const char *state_name(unsigned state)
{
	return state == SY__RECORD_LIVE ? "in use" : state == SY__RECORD_QUARANTINED ? "freed" : "freed, and its memory may be used again";
}

/* Where the slab, or the run of pages, begins; NULL: the object is not in the heap's pages. */
static void *slab_of(const struct report *report)
{
	struct sy_heap *heap = report->heap;
	const struct sy_page *page = sy__pages_find(heap, report->finding->record.base);

	return page ? sy__page_address(heap, page) : NULL;
}

static void say_text(const struct report *report)
{
	const struct sy__finding *finding = report->finding;
	const struct sy__record *record = &finding->record;
	const struct sy__debug *debug = report->heap->debug;

	say("slabyard: %s%s: %p\n", finding->possible ? "possible " : "", sy_bug_name(finding->kind), finding->address);
	say_what(finding);
	if (finding->known) {
		say("buffer=%p  size=%zu  slab=%p  %s  cache: %s\n", (void *)record->object, record->size, slab_of(report), state_name(record->state),
		    cache_name(record->cache));
		say("previous transactions on buffer %p:\n", (void *)record->object);
	}
	for (unsigned i = 0; i < report->count; i++) {
		if (&report->told[i] == report->here)
			say("found in this call:\n");
		say_told(report, &report->told[i]);
	}
	if (debug->ring)
		say("(transaction log continues at %p: %" PRIu64 " transactions, of which the last %" PRIu32 " are kept)\n",
		    (void *)&debug->ring[debug->transactions % debug->config.ring], debug->transactions, debug->config.ring);
	if (debug->stacks_lost)
		say("(%" PRIu32 " stacks are missing: the table of stacks is full)\n", debug->stacks_lost);
}

/* ---- As JSON ------------------------------------------------------------------------------------------------------ */

static void say_json_told(const struct report *report, const struct told *told)
{
	say("{\"what\": \"%s\", \"thread\": %" PRIu64 ", \"seconds_ago\": %" PRIu64 ".%09" PRIu64 ", \"cache\": ", told->what, told->thread,
	    (report->now - told->time) / 1000000000u, (report->now - told->time) % 1000000000u);
	say_string(cache_name(told->cache));
	say(", \"stack\": [");
	for (unsigned i = first_frame(told); i < told->depth; i++) {
		say("%s", i > first_frame(told) ? ", " : "");
		say_string(sy__symbol_of(told->frames[i]));
	}
	say("]}");
}

static void say_json(const struct report *report)
{
	const struct sy__finding *finding = report->finding;
	const struct sy__record *record = &finding->record;

	say("{\"slabyard\": \"%s\", \"address\": \"%p\"", sy_bug_name(finding->kind), finding->address);
	if (finding->expected || finding->found)
		say(", \"expected\": \"%#" PRIx32 "\", \"found\": \"%#" PRIx32 "\"", finding->expected, finding->found);
	if (finding->known) {
		say(", \"object\": \"%p\", \"offset\": %ld, \"size\": %zu, \"state\": \"%s\", \"cache\": ", (void *)record->object,
		    (long)((const char *)finding->address - record->object), record->size, state_name(record->state));
		say_string(cache_name(record->cache));
	}
	say(", \"transactions\": [");
	for (unsigned i = 0; i < report->count; i++) {
		say("%s", i ? ", " : "");
		say_json_told(report, &report->told[i]);
	}
	say("]}\n");
}

/* ---- Reports ------------------------------------------------------------------------------------------------------ */

static void make(struct report *report)
{
	gather(report);
	report->here = &report->told[report->count];
	if (report->finding->kind != SY_BUG_LEAK) {
		*report->here = (struct told){ .what = "called", .time = report->now, .thread = report->heap->debug->hooks->thread(),
			                       .cache = report->finding->record.cache };
		report->here->depth = report->heap->debug->hooks->stack(report->here->frames, SY__DEBUG_FRAMES);
		report->count++;
	}
	look_up(report);
	if (report->heap->debug->config.json)
		say_json(report);
	else
		say_text(report);
}

void sy__bug_tell(struct sy_heap *heap, const struct sy__finding *finding)
{
	struct report report = { .heap = heap, .finding = finding, .now = sy__now() };
	static int telling;

	if (__atomic_exchange_n(&telling, 1, __ATOMIC_ACQ_REL)) {
		for (;;)
			pause(); /* another thread's report ends the process */
	}
	make(&report);
	abort();
}

void sy__bug_tell_leak(struct sy_heap *heap, const struct sy__finding *finding, size_t objects, size_t bytes)
{
	struct report report = { .heap = heap, .finding = finding, .now = sy__now() };

	make(&report);
	if (!heap->debug->config.json)
		say("(%zu object%s of %zu bytes together)\n", objects, objects == 1 ? "" : "s", bytes);
}

void sy__bug_report(struct sy_heap *heap, enum sy_bug kind, const void *address)
{
	struct sy__finding finding = { .kind = kind, .address = address };

	if (!heap->debug)
		say("slabyard: %s: %p\n", sy_bug_name(kind), address);
	else if (sy__debug_find_damage(heap, &finding))
		sy__bug_tell(heap, &finding);
	else
		sy__bug_tell(heap, &(struct sy__finding){ .kind = kind, .address = address });
	abort();
}
