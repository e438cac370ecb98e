/*
 * slabyard-inspect: what is in the heaps of a running process or of a core file, as JSON.
 *
 *   slabyard-inspect (--pid N | --core FILE) [--slabs CACHE | --profile | --address A [--slab]] [--log [--last N]]
 *   slabyard-inspect --pid N --sampling    where its slabyard_sample_rate is, for slabyard sample; stops nothing
 *
 * A process is stopped once, while the memory to be read is copied. To make that short, the memory is copied once before, while the process
 * runs, so that the pages of the copy exist. The rest after MOST_STOPPED_NS is copied when the process runs again.
 */
#define _GNU_SOURCE /* personality */
#include "inspect.h"

#include "programs/options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#define MOST_STOPPED_NS UINT64_C(50000000) /* twice as long is promised: others may have our processor */
#define MOST_ATTEMPTS 16u
#define ATTEMPT "SLABYARD_INSPECT_ATTEMPT" /* in our own environment, how often this began again */
#define LAST 20u

struct arguments {
	const char *pid, *core, *slabs, *address, *last;
	bool slab, log, profile, sampling;
};

static int status = 2;

static bool read_arguments(struct arguments *arguments, struct question *question, pid_t *pid, int count, char **words,
                           struct fault *fault)
{
	const struct option options[] = {
		{ "--pid", &arguments->pid, NULL },
		{ "--core", &arguments->core, NULL },
		{ "--slabs", &arguments->slabs, NULL },
		{ "--address", &arguments->address, NULL },
		{ "--slab", NULL, &arguments->slab },
		{ "--log", NULL, &arguments->log },
		{ "--last", &arguments->last, NULL },
		{ "--profile", NULL, &arguments->profile },
		{ "--sampling", NULL, &arguments->sampling },
		{ NULL, NULL, NULL },
	};
	int end = options_read(options, count, words, fault);
	uint64_t number = 0;
	char *rest;

	if (!end)
		return false;
	if (end < count || !arguments->pid == !arguments->core)
		return refuse(fault, "give --pid N or --core FILE, and nothing else");
	if (!option_number("--pid", arguments->pid, 1, INT32_MAX, &number, fault))
		return false;
	*pid = (pid_t)number;
	question->last = LAST;
	if (!option_number("--last", arguments->last, 1, UINT32_MAX, &question->last, fault))
		return false;
	question->cache = arguments->slabs;
	question->log = arguments->log;
	question->slab = arguments->slab;
	question->profile = arguments->profile;
	question->whose = arguments->address;
	question->address = arguments->address ? (uintptr_t)strtoull(arguments->address, &rest, 0) : 0;
	if (arguments->address && (*rest || !*arguments->address))
		return refuse(fault, "--address %s: is no address", arguments->address);
	return true;
}

/* ---- Other addresses ------------------------------------------------------------------------------------------ */

/* Begins this program again, to get other addresses: random ones, and every other time with mappings from below. */
static void begin_again(char **words)
{
	const char *before = getenv(ATTEMPT);
	unsigned attempt = before ? (unsigned)strtoul(before, NULL, 10) + 1 : 1;
	char text[16];

	if (attempt > MOST_ATTEMPTS)
		return;
	snprintf(text, sizeof(text), "%u", attempt);
	setenv(ATTEMPT, text, 1);
	personality(attempt % 2 ? ADDR_COMPAT_LAYOUT : 0);
	execv("/proc/self/exe", words);
}

/* ---- Copying -------------------------------------------------------------------------------------------------- */

static void want_all(struct found *found, bool all)
{
	heaps_list(found);
	for (unsigned i = 0; i < found->count; i++)
		sy_inspect_want(found->heaps[i], all, image_want);
}

/* Bookkeeping first: without it nothing can be told; without an object's memory only its slab's count may be wrong. */
static uint64_t copy_process(struct target *target, struct found *found, const char **unstopped)
{
	static struct fault why;
	uint64_t at, deadline = 0;

	heaps_adopt_slots(found);
	want_all(found, false);
	image_fetch(0);
	image_note_first();
	want_all(found, true);
	image_fetch(0);
	if (!process_stop(target, &why))
		*unstopped = target->stopped ? NULL : why.text;
	at = now_ns();
	if (target->stopped_ns)
		deadline = target->stopped_ns + MOST_STOPPED_NS;
	image_counts = (struct image_counts){ 0 };
	image_renew();
	image_fetch(0);
	heaps_adopt_slots(found);
	want_all(found, false);
	image_fetch(0);
	want_all(found, true);
	image_fetch(deadline);
	process_resume(target);
	image_fetch(0);
	return at;
}

/* ---- The answer ----------------------------------------------------------------------------------------------- */

static void write_target(struct json *json, const struct target *target, const struct found *found, const char *unstopped)
{
	size_t objects, bytes;

	json_string(json, "build", sy_inspect_build());
	json_known(json, "process", target->pid, (uint64_t)target->pid);
	json_string(json, "core", target->pid ? NULL : target->name);
	json_string(json, "program", target->program);
	json_bool(json, "truncated", target->truncated);
	json_known(json, "threads", target->pid, target->threads);
	json_count(json, "inside_calls", found->inside);
	json_string(json, "unstopped", unstopped);
	json_known(json, "stopped_us", target->pid, target->stopped_ns / 1000);
	json_count(json, "copied_bytes", image_counts.copied);
	json_count(json, "late_bytes", image_counts.late);
	if (!heaps_mappings(found, &objects, &bytes)) {
		json_null(json, "mappings");
		return;
	}
	json_object(json, "mappings");
	json_count(json, "objects", objects);
	json_count(json, "bytes", bytes);
	json_object_end(json);
}

static void write_answer(struct json *json, const struct found *found, const struct target *target,
                         const struct question *question)
{
	if (question->whose)
		whose_write(json, found, target, question);
	if (question->log)
		log_write(json, found, question);
	if (question->whose || question->log)
		return;
	json_array(json, "heaps");
	for (unsigned i = 0; i < found->count; i++)
		summary_write(json, found->heaps[i], question);
	json_array_end(json);
}

static bool answer(struct found *found, const struct target *target, const struct question *question, const char *unstopped,
                   struct fault *fault)
{
	struct json json;
	FILE *nowhere = fopen("/dev/null", "we");

	if (nowhere && (question->whose || question->log || question->profile)) {
		json_begin(&json, nowhere);
		json_object(&json, NULL);
		write_answer(&json, found, target, question);
		stacks_look_up();
	}
	json_begin(&json, stdout);
	json_object(&json, NULL);
	write_target(&json, target, found, unstopped);
	write_answer(&json, found, target, question);
	json_object_end(&json);
	return json_finish(&json, fault);
}

static bool tell_sampling(const struct target *target, struct found *found, struct fault *fault)
{
	struct json json;

	if (!heaps_find_sampling(target, found, fault))
		return false;
	json_begin(&json, stdout);
	json_object(&json, NULL);
	address_write(&json, "sample_rate", found->sample_rate);
	json_object_end(&json);
	return json_finish(&json, fault);
}

static bool act(int count, char **words, struct fault *fault)
{
	static struct target target;
	static struct found found;
	struct arguments arguments = { 0 };
	struct question question = { 0 };
	const char *unstopped = NULL;
	uint64_t stopped_at = 0;
	char name[32];
	pid_t pid = 0;

	if (!read_arguments(&arguments, &question, &pid, count, words, fault))
		return false;
	snprintf(name, sizeof(name), "process %ld", (long)pid);
	target.name = pid ? name : arguments.core;
	if (!(pid ? process_open(&target, pid, &status, fault) : core_open(&target, arguments.core, fault)))
		return false;
	if (arguments.sampling)
		return tell_sampling(&target, &found, fault);
	if (!heaps_find(&target, &found, fault))
		return false;
	if (!image_prepare(&target, fault)) {
		begin_again(words);
		return false;
	}
	image_use();
	if (pid)
		stopped_at = copy_process(&target, &found, &unstopped);
	if (!privileges_drop(&target, fault))
		return false;
	heaps_list(&found);
	heaps_adopt_slots(&found);
	times_begin(&target, &found, stopped_at);
	stacks_begin(&target);
	sy_inspect_skip_places();
	return heaps_adopt(&found, fault) && answer(&found, &target, &question, unstopped, fault);
}

int main(int count, char **words)
{
	struct fault fault;

	if (act(count, words, &fault))
		return 0;
	fprintf(stderr, "slabyard-inspect: %s\n", fault.text);
	return status;
}
