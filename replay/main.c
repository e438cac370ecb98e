/*
 * slabyard-replay: runs a trace against one allocator, and says what it can of allocators without a trace.
 *
 *   slabyard-replay --scratch FILE --allocator SPEC --mode exact|timed|latency|cost [--points N] [--log FILE]
 *                   [--memory BYTES] [--ask-every NS] [--allow-failures] [--locks]
 *   slabyard-replay --scratch FILE --allocator SPEC --mode serve [...]
 *   slabyard-replay --scratch FILE --mode settings [--memory BYTES] [--allow-failures] [--locks]
 *   slabyard-replay --scratch FILE --allocator SPEC --proc buddyinfo|pagetypeinfo|slabinfo [--memory BYTES] [--allow-failures]
 *   slabyard-replay --list
 *   slabyard-replay --limits
 *   slabyard-replay --check --allocator SPEC [--kernel N]
 *   slabyard-replay --geometry --allocator SPEC [--cpus N] SIZE...
 *   slabyard-replay --layout SCRIPT --allocator SPEC
 *   slabyard-replay --kernel-log LOG --records N --allocator SPEC [--cpus N] [--nodes N]
 *
 * The lab starts it once for each allocator and reads the JSON on standard output; users rarely see it. Every run but one of many
 * settings has a process to itself (stage.c), so nothing of one allocator's memory, caches or clock reaches another one's figures.
 * `cost` is for valgrind (cost.c). `serve` runs the passes that standard input names, one a line, and answers each with one line;
 * `settings` runs the exact pass of each spec that it names (settings.c).
 *
 * Everything is computed before anything is printed. So standard output has whole results or nothing; a full disk is noticed. Exit
 * status: 0 done; 2 wrong usage or input, with one line on standard error.
 *
 * --ask-every has the heap asked for memory again and again, by the trace's time, as on a machine that is short of memory all along.
 * --locks has the exact pass count how often the policy takes a lock, and of each cache what left the fast path.
 * --log writes a line for each event that a policy logs: its name and its numbers. The policy must have a tunable for it.
 * --check asks whether there is such an allocator with such tunables, and lists the tunables that change nothing beside the others. The
 * workload's kernel is 256 times the major number of Linux and the minor one.
 */
#define _GNU_SOURCE /* clock_gettime */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "layout.h"
#include "programs/options.h"
#include "kernel_log.h"
#include "replay.h"

#define LEAST_POINTS 200
#define MOST_POINTS 65536
#define DEFAULT_POINTS 256

struct arguments {
	const char *scratch, *allocator, *mode, *proc, *points, *memory, *ask_every, *cpus, *log, *layout, *kernel_log, *records, *nodes, *kernel;
	bool list, limits, geometry, check, allow_failures, locks, help;
	char *const *operands;
	int operand_count;
};

/* ---- The command line ----------------------------------------------------------------------------------------- */

static bool parse_arguments(struct arguments *arguments, int count, char **words, struct fault *fault)
{
	const struct option options[] = {
		{ "--scratch", &arguments->scratch, NULL },
		{ "--allocator", &arguments->allocator, NULL },
		{ "--mode", &arguments->mode, NULL },
		{ "--proc", &arguments->proc, NULL },
		{ "--points", &arguments->points, NULL },
		{ "--memory", &arguments->memory, NULL },
		{ "--ask-every", &arguments->ask_every, NULL },
		{ "--cpus", &arguments->cpus, NULL },
		{ "--log", &arguments->log, NULL },
		{ "--layout", &arguments->layout, NULL },
		{ "--kernel-log", &arguments->kernel_log, NULL },
		{ "--records", &arguments->records, NULL },
		{ "--nodes", &arguments->nodes, NULL },
		{ "--kernel", &arguments->kernel, NULL },
		{ "--list", NULL, &arguments->list },
		{ "--limits", NULL, &arguments->limits },
		{ "--geometry", NULL, &arguments->geometry },
		{ "--check", NULL, &arguments->check },
		{ "--allow-failures", NULL, &arguments->allow_failures },
		{ "--locks", NULL, &arguments->locks },
		{ "--help", NULL, &arguments->help },
		{ 0 },
	};
	int first = options_read(options, count, words, fault);

	if (first == 0)
		return false;
	arguments->operands = words + first;
	arguments->operand_count = count - first;
	if (arguments->operand_count && !arguments->geometry)
		return refuse(fault, "unexpected argument %s: see slabyard-replay --help", words[first]);
	return true;
}

/* ---- What it does --------------------------------------------------------------------------------------------- */

static bool print_help(void)
{
	struct sy_policy_description first;

	sy_policy_describe(sy_policies[0], &first);
	puts("slabyard-replay --scratch FILE --allocator SPEC --mode exact|timed|latency|cost|serve [--points N]\n"
	     "                [--log FILE] [--memory BYTES] [--ask-every NS] [--allow-failures] [--locks]\n"
	     "slabyard-replay --scratch FILE --mode settings [--locks]\n"
	     "slabyard-replay --scratch FILE --allocator SPEC --proc buddyinfo|pagetypeinfo|slabinfo\n"
	     "slabyard-replay --list\n"
	     "slabyard-replay --limits\n"
	     "slabyard-replay --check --allocator SPEC [--kernel N]\n"
	     "slabyard-replay --geometry --allocator SPEC [--cpus N] SIZE...\n"
	     "slabyard-replay --layout SCRIPT --allocator SPEC\n"
	     "slabyard-replay --kernel-log LOG --records N --allocator SPEC [--cpus N] [--nodes N]\n"
	     "\n"
	     "SPEC: policy[:tunable=value[,tunable=value...]], malloc:system or malloc:/path/lib.so\n"
	     "Replays a scratch file of the lab; prints JSON. Example:");
	printf("  slabyard-replay --geometry --allocator %s --cpus 2 192\n", first.name);
	return true;
}

static bool print_geometry(const struct arguments *arguments, const struct spec *spec, struct fault *fault)
{
	struct json json;
	uint64_t cpus = 1;

	json_begin(&json, stdout);
	return option_number("--cpus", arguments->cpus, 1, SY_MAX_SLOTS, &cpus, fault) &&
	       spec_geometry(&json, spec, (unsigned)cpus, arguments->operands, arguments->operand_count, fault) &&
	       json_finish(&json, fault);
}

static bool check_spec(const struct arguments *arguments, const struct spec *spec, struct fault *fault)
{
	struct json json;
	uint64_t kernel = 0;

	if (spec->library && !malloc_target_check(spec->library, fault))
		return false;
	if (!option_number("--kernel", arguments->kernel, 0, UINT16_MAX, &kernel, fault))
		return false;
	json_begin(&json, stdout);
	spec_idle(&json, spec, (uint16_t)kernel);
	return json_finish(&json, fault);
}

static bool print_list(struct fault *fault)
{
	struct json json;

	json_begin(&json, stdout);
	spec_list(&json);
	return json_finish(&json, fault);
}

/* The most that a replay can have of each. */
static bool print_limits(struct fault *fault)
{
	struct json json;

	json_begin(&json, stdout);
	json_object(&json, NULL);
	json_count(&json, "cpus", SY_MAX_SLOTS);
	json_count(&json, "nodes", SY_MAX_NODES);
	json_object_end(&json);
	return json_finish(&json, fault);
}

/* What a kernel on slabyard has logged. */
static bool replay_log(const struct arguments *arguments, const struct spec *spec, struct fault *fault)
{
	uint64_t cpus = 1, nodes = 1, records = 0;
	struct kernel_log_options options = { .path = arguments->kernel_log };

	if (!arguments->records)
		return refuse(fault, "--kernel-log needs --records, the number of the log's lines");
	if (!option_number("--cpus", arguments->cpus, 1, SY_MAX_SLOTS, &cpus, fault) ||
	    !option_number("--nodes", arguments->nodes, 1, SY_MAX_NODES, &nodes, fault) ||
	    !option_number("--records", arguments->records, 0, UINT64_MAX, &records, fault))
		return false;
	options.records = records;
	options.cpus = (unsigned)cpus;
	options.nodes = (unsigned)nodes;
	return kernel_log_print(spec, &options, stdout, fault);
}

static void print_log(void *context, const char *event, const uint64_t *values, unsigned count)
{
	FILE *log = context;

	fputs(event, log);
	for (unsigned i = 0; i < count; i++)
		fprintf(log, " %" PRIu64, values[i]);
	putc('\n', log);
}

static bool mode_is(const struct arguments *arguments, const char *mode)
{
	return arguments->mode && strcmp(arguments->mode, mode) == 0;
}

static bool check_run(const struct arguments *arguments, struct pass_options *options, struct fault *fault)
{
	uint64_t points = DEFAULT_POINTS;

	if (!arguments->scratch || !arguments->mode == !arguments->proc)
		return refuse(fault, "give --scratch, and either --mode or --proc: see slabyard-replay --help");
	if (arguments->mode && !mode_is(arguments, "serve") && !mode_is(arguments, "settings") && pass_named(arguments->mode) > PASS_COST)
		return refuse(fault, "--mode cannot be %s: it can be exact, timed, latency, cost, serve or settings", arguments->mode);
	if (arguments->proc && (pass_named(arguments->proc) <= PASS_COST || pass_named(arguments->proc) == PASSES))
		return refuse(fault, "--proc cannot be %s: it can be buddyinfo, pagetypeinfo or slabinfo", arguments->proc);
	if (arguments->cpus)
		return refuse(fault, "--cpus goes with --geometry: a scratch file states the CPUs of a replay");
	if (arguments->log && !mode_is(arguments, "exact"))
		return refuse(fault, "--log goes with --mode exact");
	if (!option_number("--points", arguments->points, LEAST_POINTS, MOST_POINTS, &points, fault) ||
	    !option_number("--memory", arguments->memory, (uint64_t)1 << (SY_MAX_ORDER + SY_PAGE_SHIFT), (uint64_t)1 << 46,
	                 &options->driver.memory, fault) ||
	    !option_number("--ask-every", arguments->ask_every, 0, UINT64_MAX, &options->driver.ask_ns, fault))
		return false;
	options->points = (unsigned)points;
	options->allow_failures = arguments->allow_failures;
	options->locks = arguments->locks;
	return true;
}

static bool open_log(const struct arguments *arguments, struct pass_options *options, struct fault *fault)
{
	if (!arguments->log)
		return true;
	options->log = fopen(arguments->log, "w");
	if (!options->log)
		return refuse(fault, "cannot write the log %s: %s", arguments->log, strerror(errno));
	options->driver.log = print_log;
	options->driver.log_context = options->log;
	return true;
}

static bool close_log(const struct pass_options *options)
{
	return !options->log || fclose(options->log) == 0;
}

static bool run_passes(const struct arguments *arguments, struct stage *stage, struct fault *fault)
{
	if (mode_is(arguments, "serve"))
		return stage_serve(stage, fault);
	return stage_run(stage, pass_named(arguments->mode ? arguments->mode : arguments->proc), fault);
}

static bool replay(const struct arguments *arguments, const struct spec *spec, struct fault *fault)
{
	struct pass_options options = { 0 };
	struct scratch scratch;
	struct stage stage;
	bool good;

	if (!check_run(arguments, &options, fault) || !scratch_open(&scratch, arguments->scratch, fault))
		return false;
	if (!open_log(arguments, &options, fault)) {
		scratch_close(&scratch);
		return false;
	}
	good = stage_prepare(&stage, &scratch, spec->policy, &options, fault);
	if (good) {
		good = stage_open(&stage, spec, fault) && run_passes(arguments, &stage, fault);
		stage_close(&stage);
	}
	scratch_close(&scratch);
	if (!close_log(&options) && good)
		return refuse(fault, "cannot write the log %s: %s", arguments->log, strerror(errno));
	return good;
}

static bool replay_settings(const struct arguments *arguments, struct fault *fault)
{
	struct pass_options options = { 0 };
	struct scratch scratch;
	bool good;

	if (!check_run(arguments, &options, fault) || !scratch_open(&scratch, arguments->scratch, fault))
		return false;
	good = settings_serve(&scratch, &options, fault);
	scratch_close(&scratch);
	return good;
}

static bool run(int count, char **words, struct fault *fault)
{
	struct arguments arguments = { 0 };
	struct spec spec;

	if (!parse_arguments(&arguments, count, words, fault))
		return false;
	if (arguments.help)
		return print_help();
	if (arguments.list)
		return print_list(fault);
	if (arguments.limits)
		return print_limits(fault);
	if (mode_is(&arguments, "settings"))
		return arguments.allocator ? refuse(fault, "--mode settings reads its allocators from standard input")
		                           : replay_settings(&arguments, fault);
	if (!arguments.allocator)
		return refuse(fault, "give --allocator: see slabyard-replay --help");
	if (!spec_parse(&spec, arguments.allocator, fault))
		return false;
	if (spec.library)
		malloc_target_make_room(words);
	if (arguments.check)
		return check_spec(&arguments, &spec, fault);
	if (arguments.layout)
		return layout_print(&spec, arguments.allocator, arguments.layout, stdout, fault);
	if (arguments.kernel_log)
		return replay_log(&arguments, &spec, fault);
	return arguments.geometry ? print_geometry(&arguments, &spec, fault) : replay(&arguments, &spec, fault);
}

int main(int count, char **words)
{
	struct fault fault;

	signal(SIGXFSZ, SIG_IGN); /* a file that gets too large is an error like a full disk */
	return program_status("slabyard-replay", run(count, words, &fault), &fault);
}
