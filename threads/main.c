/*
 * slabyard-threads: real threads on one heap, or on a malloc.
 *
 *   slabyard-threads --allocator SPEC --workload NAME --threads N [--operations N] [--size BYTES|LEAST-MOST] [--batch N]
 *                    [--caches] [--pin] [--sample N] [--seed N] [--scratch FILE] [--check]
 *   slabyard-threads --list
 *
 * One run in a process of its own. The lab repeats and interleaves runs, and reads the JSON on standard output. Exit status: 0
 * done; 1 the allocator corrupted an object; 2 wrong usage or input, or no memory. 1 and 2 come with one line on standard error.
 *
 *   --operations N   objects that each thread takes
 *   --size           of the objects: one size, or evenly between two bounds
 *   --batch N        objects held at once
 *   --caches         objects of one size come from a cache of their own, not from general allocation
 *   --pin            each thread stays on one of the processors that the program may use, in turn
 *   --sample N       times one operation in N (on average) for latencies and the allocator's share, and so slows the run; 0: none
 *   --seed N         of the random numbers
 *   --scratch FILE   the trace that the workload "trace" replays
 *   --check          runs nothing, and prints nothing where all this is possible
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/json.h"
#include "programs/options.h"
#include "programs/scratch.h"
#include "run.h"

#define MOST_THREADS 1024u
#define MOST_OPERATIONS ((uint64_t)1 << 40)
#define MOST_SIZE ((uint64_t)4 << 20)
#define MOST_BATCH ((uint64_t)1 << 24)
#define MOST_SAMPLE 65536u
#define NS_PER_SECOND 1e9

struct arguments {
	const char *allocator, *workload, *threads, *operations, *size, *batch, *sample, *seed, *scratch;
	bool caches, pin, check, list, help;
};

/* ---- The command line ----------------------------------------------------------------------------------------- */

static bool parse_arguments(struct arguments *arguments, int count, char **words, struct fault *fault)
{
	const struct option options[] = {
		{ "--allocator", &arguments->allocator, NULL },
		{ "--workload", &arguments->workload, NULL },
		{ "--threads", &arguments->threads, NULL },
		{ "--operations", &arguments->operations, NULL },
		{ "--size", &arguments->size, NULL },
		{ "--batch", &arguments->batch, NULL },
		{ "--sample", &arguments->sample, NULL },
		{ "--seed", &arguments->seed, NULL },
		{ "--scratch", &arguments->scratch, NULL },
		{ "--caches", NULL, &arguments->caches },
		{ "--pin", NULL, &arguments->pin },
		{ "--check", NULL, &arguments->check },
		{ "--list", NULL, &arguments->list },
		{ "--help", NULL, &arguments->help },
		{ 0 },
	};
	int first = options_read(options, count, words, fault);

	if (first && first < count)
		return refuse(fault, "unexpected argument %s: see slabyard-threads --help", words[first]);
	return first;
}

static bool parse_size(const char *text, struct run *run, struct fault *fault)
{
	const char *rest = text;
	uint64_t least, most;

	if (!text)
		return true;
	if (!run->workload->size_min)
		return refuse(fault, "%s has sizes of its own, so --size is of no use", run->workload->name);
	if (number_read(&rest, 1, MOST_SIZE, &least)) {
		most = least;
		if (!*rest || (*rest++ == '-' && number_read(&rest, least, MOST_SIZE, &most) && !*rest)) {
			run->size_min = (size_t)least;
			run->size_max = (size_t)most;
			return true;
		}
	}
	return refuse(fault, "--size cannot be %s: give bytes from 1 to %" PRIu64 ", or two numbers, the lesser first, such as 16-256",
	              text, MOST_SIZE);
}

static const struct workload *find_workload(const char *name)
{
	for (const struct workload *const *each = workloads; *each; each++)
		if (strcmp((*each)->name, name) == 0)
			return *each;
	return NULL;
}

static bool check_caches(const struct run *run, struct fault *fault)
{
	if (!run->caches)
		return true;
	if (!run->workload->takes_kind)
		return refuse(fault, "%s takes objects of its own kinds, so --caches is of no use", run->workload->name);
	if (run->size_min != run->size_max)
		return refuse(fault, "--caches needs objects of one size: give --size, such as --size 64");
	return true;
}

static bool set_up(const struct arguments *arguments, struct run *run, struct fault *fault)
{
	uint64_t threads = 1, batch, sample = 0;

	if (!arguments->allocator || !arguments->workload)
		return refuse(fault, "give --allocator and --workload: see slabyard-threads --help");
	run->workload = find_workload(arguments->workload);
	if (!run->workload)
		return refuse(fault, "no workload is called %s: slabyard-threads --list shows them", arguments->workload);
	run->operations = run->workload->operations;
	run->size_min = run->workload->size_min;
	run->size_max = run->workload->size_max;
	batch = run->workload->batch;
	run->caches = arguments->caches;
	run->pinned = arguments->pin;
	if (arguments->batch && !batch)
		return refuse(fault, "%s has no batches, so --batch is of no use", run->workload->name);
	if (!arguments->scratch != !run->workload->wants_trace && !arguments->check)
		return refuse(fault, run->workload->wants_trace ? "%s needs a trace" : "%s takes no trace", run->workload->name);
	if (!option_number("--threads", arguments->threads, 1, MOST_THREADS / run->workload->threads_per, &threads, fault) ||
	    !option_number("--operations", arguments->operations, 1, MOST_OPERATIONS, &run->operations, fault) ||
	    !option_number("--batch", arguments->batch, 1, MOST_BATCH, &batch, fault) ||
	    !option_number("--sample", arguments->sample, 0, MOST_SAMPLE, &sample, fault) ||
	    !option_number("--seed", arguments->seed, 0, UINT32_MAX, &run->seed, fault) ||
	    !parse_size(arguments->size, run, fault))
		return false;
	run->asked = (unsigned)threads;
	run->batch = (size_t)batch;
	run->sample = (uint32_t)sample;
	return check_caches(run, fault);
}

/* ---- What is printed ------------------------------------------------------------------------------------------ */

static void write_quantiles(struct json *json, const char *key, const struct histogram *histogram, double ns_per_tick)
{
	static const struct {
		const char *name;
		unsigned thousandths;
	} quantiles[] = { { "median", 500 }, { "p90", 900 }, { "p99", 990 }, { "p999", 999 } };

	json_object(json, key);
	for (unsigned i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
		json_measured(json, quantiles[i].name, histogram_quantile(histogram, quantiles[i].thousandths) * ns_per_tick, 2);
	json_object_end(json);
}

/* 0 to 1, of processor time. What the samples' own timing took is not part of the work. Each stands for as many operations. */
static double allocator_share(const struct run *run, const struct result *result, uint64_t timed)
{
	double mean = (double)result->sampled_ticks / (double)result->samples - run->ticks.mean;
	double work = (double)result->cpu_ns / result->ns_per_tick - (double)timed * run->ticks.mean;
	double share = mean * (double)result->operations / work;

	return share < 0 ? 0 : share < 1 ? share : 1;
}

static void write_latencies(struct json *json, const struct run *run, struct result *result)
{
	struct histogram *both = &result->takes;

	write_quantiles(json, "alloc_ns", &result->takes, result->ns_per_tick);
	write_quantiles(json, "free_ns", &result->gives, result->ns_per_tick);
	histogram_merge(both, &result->gives);
	write_quantiles(json, "latency_ns", both, result->ns_per_tick);
	json_count(json, "samples", both->total);
	json_measured(json, "allocator_share", result->samples ? allocator_share(run, result, both->total) : (double)NAN, 4);
	ticks_write(json, &run->ticks, result->ns_per_tick);
}

/* Null for a malloc, which doesn't say. */
static void write_lock_waits(struct json *json, bool known, const struct result *result)
{
	double seconds = known ? (double)result->lock_wait_ns / NS_PER_SECOND : (double)NAN;

	json_known(json, "lock_waits", known, result->lock_waits);
	json_measured(json, "lock_wait_seconds", seconds, 6);
	json_measured(json, "lock_wait_share", seconds * NS_PER_SECOND / (double)result->threads_ns, 6);
}

static void write_phases(struct json *json, const struct run *run)
{
	double per_live, sum = 0, judged = 0;

	json_array(json, "phases");
	for (unsigned i = 0; i < run->phase_count; i++) {
		const struct phase *phase = &run->phases[i];

		json_object(json, NULL);
		json_count(json, "live_kb", phase->live_bytes / 1024);
		json_count(json, "resident_kb", phase->resident_kb);
		json_object_end(json);
		per_live = (double)phase->resident_kb * 1024 / (double)phase->live_bytes;
		sum += per_live;
		if (i == run->judged)
			judged = per_live;
	}
	json_array_end(json);
	json_measured(json, "resident_per_live", run->judged ? judged : sum / run->phase_count, 4);
}

static bool print_result(const struct run *run, struct result *result, struct fault *fault)
{
	struct json json;

	json_begin(&json, stdout);
	json_object(&json, NULL);
	json_string(&json, "workload", run->workload->name);
	json_count(&json, "threads", run->threads);
	json_count(&json, "operations", result->operations);
	json_measured(&json, "seconds", result->seconds, 9);
	json_measured(&json, "operations_per_second", (double)result->operations / result->seconds, 0);
	json_measured(&json, "cpu_seconds", (double)result->cpu_ns / NS_PER_SECOND, 9);
	json_measured(&json, "cpu_ns_per_operation", (double)result->cpu_ns / (double)result->operations, 3);
	write_lock_waits(&json, run->target.heap, result);
	json_count(&json, "voluntary_switches", result->switches);
	json_count(&json, "resident_peak_kb", result->peak_kb);
	json_count(&json, "resident_work_kb", result->work_kb);
	json_count(&json, "live_work_kb", (uint64_t)result->live_bytes / 1024);
	json_count(&json, "resident_end_kb", result->end_kb);
	json_count(&json, "resident_trimmed_kb", result->trimmed_kb);
	if (run->phase_count)
		write_phases(&json, run);
	if (run->sample)
		write_latencies(&json, run, result);
	json_object_end(&json);
	return json_finish(&json, fault);
}

static bool print_list(struct fault *fault)
{
	struct json json;

	json_begin(&json, stdout);
	json_array(&json, NULL);
	for (const struct workload *const *each = workloads; *each; each++) {
		json_object(&json, NULL);
		json_string(&json, "name", (*each)->name);
		json_string(&json, "what", (*each)->what);
		json_count(&json, "operations", (*each)->operations);
		json_count(&json, "batch", (*each)->batch);
		json_count(&json, "size_min", (*each)->size_min);
		json_count(&json, "size_max", (*each)->size_max);
		json_count(&json, "threads_per", (*each)->threads_per);
		json_bool(&json, "wants_trace", (*each)->wants_trace);
		json_object_end(&json);
	}
	json_array_end(&json);
	return json_finish(&json, fault);
}

static bool print_help(void)
{
	struct sy_policy_description first;

	sy_policy_describe(sy_policies[0], &first);
	puts("slabyard-threads --allocator SPEC --workload NAME [--threads N] [--operations N] [--size BYTES|LEAST-MOST]\n"
	     "                 [--batch N] [--caches] [--pin] [--sample N] [--seed N] [--scratch FILE] [--check]\n"
	     "slabyard-threads --list\n"
	     "\n"
	     "SPEC: policy[:tunable=value[,tunable=value...]], malloc:system or malloc:/path/lib.so\n"
	     "Runs a workload with real threads; prints JSON. Example:");
	printf("  slabyard-threads --allocator %s --workload larson --threads 2\n", first.name);
	return true;
}

/* ---- The run -------------------------------------------------------------------------------------------------- */

static bool run_it(struct run *run, char **words, const struct arguments *arguments, struct fault *fault)
{
	static struct result result;
	bool good;

	if (!target_open(&run->target, arguments->allocator, words, fault))
		return false;
	good = run_workload(run, &result, fault) && print_result(run, &result, fault);
	if (good) /* otherwise threads may still wait for others that could not be started; the process ends with them */
		target_close(&run->target);
	return good;
}

static bool run_with_trace(struct run *run, char **words, const struct arguments *arguments, struct fault *fault)
{
	struct scratch scratch;
	bool good;

	if (!scratch_open(&scratch, arguments->scratch, fault))
		return false;
	if (!arguments->threads)
		run->asked = scratch.run->cpus;
	run->scratch = &scratch;
	good = run_it(run, words, arguments, fault);
	if (good)
		scratch_close(&scratch);
	return good;
}

static bool check_target(char **words, const struct arguments *arguments, struct fault *fault)
{
	struct target target;

	if (!target_open(&target, arguments->allocator, words, fault))
		return false;
	target_close(&target);
	return true;
}

static bool act(int count, char **words, struct fault *fault)
{
	struct arguments arguments = { 0 };
	static struct run run;

	if (!parse_arguments(&arguments, count, words, fault))
		return false;
	if (arguments.help)
		return print_help();
	if (arguments.list)
		return print_list(fault);
	return set_up(&arguments, &run, fault) &&
	       (arguments.check   ? check_target(words, &arguments, fault) :
	        arguments.scratch ? run_with_trace(&run, words, &arguments, fault) : run_it(&run, words, &arguments, fault));
}

int main(int count, char **words)
{
	struct fault fault;

	run_note_start();
	return program_status("slabyard-threads", act(count, words, &fault), &fault);
}
