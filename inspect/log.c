/*
 * What debugging recorded (library/lab/inspect.h): the log of transactions, and when things were.
 *
 * Times are seconds before the process was stopped. A core file does not say when it was written, so there they are seconds before the
 * newest time in it.
 */
#include "inspect.h"

#include <inttypes.h>

static uint64_t present;

static void raise_to(uint64_t time)
{
	if (time > present)
		present = time;
}

static void see_times(void *context, const struct sy_inspect_record *record)
{
	(void)context;
	raise_to(record->allocated.time);
	raise_to(record->freed.time);
}

void times_begin(const struct target *target, const struct found *found, uint64_t stopped_at)
{
	present = stopped_at;
	for (unsigned i = 0; i < found->count && !target->pid; i++)
		sy_inspect_records(found->heaps[i], see_times, NULL);
}

void time_write(struct json *json, uint64_t time)
{
	json_measured(json, "seconds_ago", time < present ? (double)(present - time) / 1e9 : 0, 6);
}

void address_write(struct json *json, const char *key, const void *address)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIxPTR, (uintptr_t)address);
	json_string(json, key, text);
}

const char *cache_name(const struct sy_cache *cache)
{
	return cache ? sy_inspect_cache_name(cache) : "general allocation";
}

/* ---- The log -------------------------------------------------------------------------------------------------- */

static bool is_asked(const struct sy_inspect_transaction *is, const struct question *question)
{
	return !question->whose || question->address - (uintptr_t)is->object < (is->size ? is->size : 1);
}

static void write_transaction(struct json *json, const struct sy_heap *heap, const struct sy_inspect_transaction *is, uint64_t number)
{
	json_object(json, NULL);
	json_count(json, "number", number);
	json_string(json, "what", is->free ? "freed" : "allocated");
	address_write(json, "object", is->object);
	json_count(json, "size", is->size);
	json_string(json, "cache", cache_name(is->cache));
	json_count(json, "thread", is->call.thread);
	time_write(json, is->call.time);
	stack_write(json, heap, is->call.stack);
	json_object_end(json);
}

/* The youngest first. */
static void write_heap(struct json *json, const struct sy_heap *heap, const struct sy_inspect_heap *told, const struct question *question)
{
	uint64_t left = question->last;

	for (uint64_t number = told->youngest; number >= told->oldest && left; number--) {
		struct sy_inspect_transaction is;

		sy_inspect_transaction(heap, number, &is);
		if (!is_asked(&is, question))
			continue;
		write_transaction(json, heap, &is, number);
		left--;
	}
}

void log_write(struct json *json, const struct found *found, const struct question *question)
{
	bool audited = false;

	for (unsigned i = 0; i < found->count; i++) {
		struct sy_inspect_heap told;

		sy_inspect_heap(found->heaps[i], &told);
		if (!told.log)
			continue;
		if (!audited)
			json_array(json, "log");
		audited = true;
		write_heap(json, found->heaps[i], &told, question);
	}
	if (audited)
		json_array_end(json);
	else
		json_null(json, "log");
}
