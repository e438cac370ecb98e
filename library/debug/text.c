/*
 * A report of a bug, as text or as one line of JSON; the same in a program and in a kernel's log.
 *
 * The first line is "slabyard: KIND: ADDRESS", of which KIND is one of the names of sy_bug_name. The rest is as in Bonwick's report (1994,
 * section 6.8), in the same order: the change, the buffer and its cache, the transactions on it, newest first, each with thread, age and
 * stack, and the place in the log for more.
 *
 * The log is read as it is; others may go on writing it. Nothing here allocates.
 */
#include "text.h"

#include "core/page_interface.h"

/* ---- What is told ------------------------------------------------------------------------------------------------- */

static void copy_stack(const struct sy__debug *debug, uint32_t number, struct sy__told *to)
{
	if (!number || !debug->stacks)
		return;
	to->depth = debug->stacks[number - 1].depth;
	memcpy(to->frames, debug->stacks[number - 1].frames, sizeof(to->frames));
}

static void tell(struct sy__report *report, const char *what, const struct sy_cache *cache, uint64_t time, uint64_t thread, uint32_t stack)
{
	struct sy__told *told = &report->told[report->count++];

	*told = (struct sy__told){ .what = what, .cache = cache, .time = time, .thread = thread };
	copy_stack(report->heap->debug, stack, told);
}

/* The object's own transactions are in its record, former owners' in the ring. */
void sy__report_gather(struct sy__report *report)
{
	const struct sy__record *record = &report->finding->record;
	const struct sy__debug *debug = report->heap->debug;
	uint64_t number = debug->transactions + 1;

	if (!report->finding->known)
		return;
	if (record->state != SY__RECORD_LIVE)
		tell(report, "freed", record->cache, record->freed, record->freer, record->free_stack);
	tell(report, "allocated", record->cache, record->allocated, record->allocator, record->allocation_stack);
	while (report->count < SY__MOST_TOLD && (number = sy__transaction_before(debug, record, number))) {
		const struct sy__transaction *at = &debug->ring[(number - 1) % debug->config.ring];

		if (at->time < record->allocated || (at->time == record->allocated && at->free))
			tell(report, at->free ? "freed" : "allocated", at->cache, at->time, at->thread, at->stack);
	}
}

/* Frames of the library stand first where it is a part of the program. */
static unsigned first_frame(const struct sy__told *told)
{
	unsigned first = 0;

	while (first + 1 < told->depth && sy__symbol_is_own(told->frames[first]))
		first++;
	return first;
}

static void say_string(const char *text)
{
	sy__say("\"");
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			sy__say("\\%c", *text);
		else
			sy__say((unsigned char)*text < ' ' ? "\\u%04x" : "%c", (unsigned char)*text);
	sy__say("\"");
}

/* ---- As text ------------------------------------------------------------------------------------------------------ */

static const char *cache_name(const struct sy_cache *cache)
{
	return cache ? cache->name : "general allocation";
}

static void say_told(const struct sy__report *report, const struct sy__told *told)
{
	uint64_t ago = report->now - told->time;

	sy__say("%s by thread=%" PRIu64 "  time=T-%" PRIu64 ".%06" PRIu64 "  cache: %s\n", told->what, told->thread, ago / 1000000000u,
	    ago / 1000u % 1000000u, cache_name(told->cache));
	for (unsigned i = first_frame(told); i < told->depth; i++)
		sy__say("    %s\n", sy__symbol_of(told->frames[i]));
}

static const char *interface_name(unsigned interface)
{
	static const char *const names[] = { "any", "a cache", "malloc", "new", "new[]" };

	return names[SY__BY_INTERFACE(interface)];
}

static void say_what(const struct sy__finding *finding)
{
	const struct sy__record *record = &finding->record;
	long offset = (long)((const char *)finding->address - record->object);

	switch (finding->kind) {
	case SY_BUG_WRITE_AFTER_FREE:
	case SY_BUG_WRITE_PAST_THE_END:
	case SY_BUG_WRITE_BEFORE_THE_START:
	case SY_BUG_READ_AFTER_FREE:
	case SY_BUG_READ_PAST_THE_END:
	case SY_BUG_READ_BEFORE_THE_START:
		sy__say("%s occurred at offset %s%#lx ", finding->expected == finding->found ? "an access" : "modification",
		        offset < 0 ? "-" : "", offset < 0 ? -offset : offset);
		if (finding->expected == finding->found)
			sy__say("in a page that may not be touched\n");
		else
			sy__say("(%#" PRIx32 " replaced by %#" PRIx32 ")\n", finding->expected, finding->found);
		break;
	case SY_BUG_CHANGED_STATE:
		sy__say("the byte at offset %#lx was constructed as %#" PRIx32 " and is %#" PRIx32 "\n", offset, finding->expected, finding->found);
		break;
	case SY_BUG_WRONG_SIZE:
		sy__say("it was freed with size %zu, and allocated with %zu\n", finding->size, record->size);
		break;
	case SY_BUG_WRONG_CACHE:
		if (finding->other || record->cache)
			sy__say("it is of %s, and was freed to %s\n", cache_name(record->cache), cache_name(finding->other));
		else if (SY__BY_INTERFACE(record->interface) == SY__BY_INTERFACE(finding->interface))
			sy__say("it was allocated with alignment %zu, and is freed with alignment %zu (1: none was named)\n",
			        SY__BY_ALIGN(record->interface), SY__BY_ALIGN(finding->interface));
		else
			sy__say("it was allocated by %s, and is freed as by %s; where a library has a copy of either, add mixed to the checks\n",
			    interface_name(record->interface), interface_name(finding->interface));
		break;
	case SY_BUG_INTERIOR_FREE:
		if (finding->known)
			sy__say("it is %s%#lx bytes from the start of the object\n", offset < 0 ? "-" : "", offset < 0 ? -offset : offset);
		break;
	case SY_BUG_FOREIGN_FREE:
		sy__say("no object is there%s\n", finding->known ? ", but one near below" : "");
		break;
	default:
		break;
	}
}

static const char *state_name(unsigned state)
{
	return state == SY__RECORD_LIVE ? "in use" : state == SY__RECORD_GONE ? "freed, and its memory may be used again" : "freed";
}

/* Where the slab, or the run of pages, begins; NULL: the object is not in the heap's pages. */
static void *slab_of(const struct sy__report *report)
{
	struct sy_heap *heap = report->heap;
	const struct sy_page *page = sy__pages_find(heap, report->finding->record.base);

	return page ? sy__page_address(heap, page) : NULL;
}

static void say_text(const struct sy__report *report)
{
	const struct sy__finding *finding = report->finding;
	const struct sy__record *record = &finding->record;
	const struct sy__debug *debug = report->heap->debug;

	sy__say("slabyard: %s%s: 0x%lx\n", finding->possible ? "possible " : "", sy_bug_name(finding->kind), (unsigned long)finding->address);
	say_what(finding);
	if (finding->known) {
		sy__say("buffer=%#lx  size=%zu  slab=%#lx  %s  cache: %s\n", (unsigned long)record->object, record->size,
			(unsigned long)slab_of(report), state_name(record->state), cache_name(record->cache));
		sy__say("previous transactions on buffer %#lx:\n", (unsigned long)record->object);
	}
	for (unsigned i = 0; i < report->count; i++) {
		if (&report->told[i] == report->here)
			sy__say("found in this call:\n");
		say_told(report, &report->told[i]);
	}
	if (debug->ring)
		sy__say("(transaction log continues at %#lx: %" PRIu64 " transactions, of which the last %" PRIu32 " are kept)\n",
		    (unsigned long)&debug->ring[debug->transactions % debug->config.ring], debug->transactions, debug->config.ring);
	if (debug->stacks_lost)
		sy__say("(%" PRIu32 " stacks are missing: the table of stacks is full)\n", debug->stacks_lost);
}

/* ---- As JSON ------------------------------------------------------------------------------------------------------ */

static void say_json_told(const struct sy__report *report, const struct sy__told *told)
{
	sy__say("{\"what\": \"%s\", \"thread\": %" PRIu64 ", \"seconds_ago\": %" PRIu64 ".%09" PRIu64 ", \"cache\": ", told->what, told->thread,
	    (report->now - told->time) / 1000000000u, (report->now - told->time) % 1000000000u);
	say_string(cache_name(told->cache));
	sy__say(", \"stack\": [");
	for (unsigned i = first_frame(told); i < told->depth; i++) {
		sy__say("%s", i > first_frame(told) ? ", " : "");
		say_string(sy__symbol_of(told->frames[i]));
	}
	sy__say("]}");
}

static void say_json(const struct sy__report *report)
{
	const struct sy__finding *finding = report->finding;
	const struct sy__record *record = &finding->record;

	sy__say("{\"slabyard\": \"%s\", \"address\": \"0x%lx\"", sy_bug_name(finding->kind), (unsigned long)finding->address);
	if (finding->expected || finding->found)
		sy__say(", \"expected\": \"%#" PRIx32 "\", \"found\": \"%#" PRIx32 "\"", finding->expected, finding->found);
	if (finding->known) {
		sy__say(", \"object\": \"%#lx\", \"offset\": %ld, \"size\": %zu, \"state\": \"%s\", \"cache\": ", (unsigned long)record->object,
		    (long)((const char *)finding->address - record->object), record->size, state_name(record->state));
		say_string(cache_name(record->cache));
	}
	sy__say(", \"transactions\": [");
	for (unsigned i = 0; i < report->count; i++) {
		sy__say("%s", i ? ", " : "");
		say_json_told(report, &report->told[i]);
	}
	sy__say("]}\n");
}

/* ---- Both --------------------------------------------------------------------------------------------------------- */

void sy__report_say(const struct sy__report *report)
{
	if (report->heap->debug->config.json)
		say_json(report);
	else
		say_text(report);
}
