/*
 * What debugging recorded (core/debug/debug.h): the log of transactions, and when things were.
 *
 * Times are told as seconds before the process was stopped. A core file does not say when it was written, so there they are
 * told as seconds before the youngest time in it.
 */
#include "inspect.h"

#include "core/debug/debug.h"
#include "core/heap.h"

#include <inttypes.h>

static uint64_t present;

static void raise_to(uint64_t time)
{
	if (time > present)
		present = time;
}

void times_begin(const struct target *target, const struct found *found, uint64_t stopped_at)
{
	present = stopped_at;
	for (unsigned i = 0; i < found->count && !target->pid; i++) {
		const struct sy__debug *debug = found->heaps[i]->debug;
		struct sy__record_walk walk = { .depth = 0 };
		const struct sy__record *record;

		while (debug && (record = sy__record_next(debug, &walk))) {
			raise_to(record->allocated);
			raise_to(record->freed);
		}
	}
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

/* ---- The log -------------------------------------------------------------------------------------------------- */

static bool is_asked(const struct sy__transaction *is, const struct question *question)
{
	return !question->whose || question->address - (uintptr_t)is->object < (is->size ? is->size : 1);
}

static void write_transaction(struct json *json, const struct sy__debug *debug, const struct sy__transaction *is, uint64_t number)
{
	json_object(json, NULL);
	json_count(json, "number", number);
	json_string(json, "what", is->free ? "freed" : "allocated");
	address_write(json, "object", is->object);
	json_count(json, "size", is->size);
	json_string(json, "cache", is->cache ? is->cache->name : "general allocation");
	json_count(json, "thread", is->thread);
	time_write(json, is->time);
	stack_write(json, debug, is->stack);
	json_object_end(json);
}

/* The youngest first. */
static void write_heap(struct json *json, const struct sy__debug *debug, const struct question *question)
{
	uint64_t oldest = debug->transactions > debug->config.ring ? debug->transactions - debug->config.ring : 0;
	uint64_t left = question->last;

	for (uint64_t number = debug->transactions; number > oldest && left; number--) {
		const struct sy__transaction *is = &debug->ring[(number - 1) % debug->config.ring];

		if (!is_asked(is, question))
			continue;
		write_transaction(json, debug, is, number);
		left--;
	}
}

void log_write(struct json *json, const struct found *found, const struct question *question)
{
	bool audited = false;

	for (unsigned i = 0; i < found->count; i++)
		audited = audited || (found->heaps[i]->debug && found->heaps[i]->debug->ring);
	if (!audited) {
		json_null(json, "log");
		return;
	}
	json_array(json, "log");
	for (unsigned i = 0; i < found->count; i++)
		if (found->heaps[i]->debug && found->heaps[i]->debug->ring)
			write_heap(json, found->heaps[i]->debug, question);
	json_array_end(json);
}
