/*
 * Random programs for every policy:  conformance-soak [OPERATIONS [SEED [POLICY…]]]
 *
 * OPERATIONS per policy, else the environment's SLABYARD_CONFORMANCE_OPS, else 100,000, are spread over programs of up to
 * 4,000, each with a machine of its own (draw.c). Some programs are run again once for each of their page requests, with that
 * request failing. These runs count under runs, and their failed requests under failed; operations counts only those drawn.
 *
 * Prints a table with a line for each policy:
 *
 *   operations  drawn at random and carried out                calls    objects allocated and freed, in all runs
 *   programs    drawn                                          runs     of programs
 *   requests    for pages, of heaps and of their environment   failed   of these, those that were made to fail
 *   null        objects refused for want of a page             peak     pages held by one heap at a time
 *   checks      of all invariants and promises                 seconds  of real time
 *
 * A failure names the program's seed: with OPERATIONS 1 and that SEED it is run first, and tests/conformance/shrink.py makes
 * it short. Exit status 1: a promise was broken; 2: wrong usage.
 */
#define _POSIX_C_SOURCE 200809L
#include "draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DEFAULT_OPERATIONS 100000

/* Sanitizers report crashes better than the net under a guarded run. */
#ifdef __SANITIZE_ADDRESS__
#define run_program sy_conformance_run
#else
#define run_program sy_conformance_run_guarded
#endif

struct sum {
	uint64_t operations, programs, runs, calls, requests, injected, refused, peak, checks;
};

static const struct sy_policy *soaked;
static uint64_t soaked_seed;

/* The handler that a sanitizer calls before it ends the program. */
void __sanitizer_set_death_callback(void (*)(void)) __attribute__((weak));

static void say_seed(void)
{
	fprintf(stderr, "%s: again: conformance-soak 1 %" PRIu64 " %s\n", soaked->name, soaked_seed, soaked->name);
}

static void add(struct sum *sum, const struct conformance_result *result)
{
	sum->runs++;
	sum->calls += result->allocations + result->frees;
	sum->requests += result->page_requests;
	sum->injected += result->injected;
	sum->refused += result->refused;
	sum->checks += result->checks;
	if (result->peak_pages > sum->peak)
		sum->peak = result->peak_pages;
}

static bool run_once(const struct conformance_program *program, struct sum *sum, struct conformance_result *result)
{
	if (run_program(soaked, &program->config, program->ops, program->count, result)) {
		add(sum, result);
		return true;
	}
	printf("%s: %s\n  at operation %" PRIu64 " of %" PRIu32 ", page request %" PRIu32 " failing\n", soaked->name,
	       result->message, result->failed_at, program->count, program->config.fail_first);
	fflush(stdout);
	say_seed();
	return false;
}

/* Runs a whole program; if it is meant for that, again with each of its page requests failing. */
static bool run_all(struct conformance_program *program, struct sum *sum)
{
	struct conformance_result result;
	uint64_t requests;

	if (!run_once(program, sum, &result))
		return false;
	sum->programs++;
	sum->operations += result.operations;
	requests = program->fail_each ? result.page_requests : 0;
	for (uint32_t k = 1; k <= requests; k++) {
		program->config.fail_first = k;
		if (!run_once(program, sum, &result))
			return false;
	}
	return true;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool soak(const struct sy_policy *policy, uint64_t operations, uint64_t seed)
{
	static struct conformance_program program;
	struct sum sum = { 0 };
	double start = seconds_now();

	soaked = policy;
	for (soaked_seed = seed; sum.operations < operations; soaked_seed++) {
		sy_conformance_draw(policy, soaked_seed, &program);
		if (!run_all(&program, &sum))
			return false;
	}
	printf("%-8s %10" PRIu64 " %10" PRIu64 " %8" PRIu64 " %8" PRIu64 " %9" PRIu64 " %8" PRIu64 " %8" PRIu64 " %6" PRIu64
	       " %8" PRIu64 " %7.0f\n", policy->name, sum.operations, sum.calls, sum.programs, sum.runs, sum.requests, sum.injected,
	       sum.refused, sum.peak, sum.checks, seconds_now() - start);
	return true;
}

/* A number from the command line or the environment; exits with 2 when it is none. */
static uint64_t number(const char *text, const char *what)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end) {
		fprintf(stderr, "conformance-soak: %s must be a number, not '%s'\n", what, text);
		exit(2);
	}
	return value;
}

static const struct sy_policy *named(const char *name)
{
	const struct sy_policy *policy = sy_policy_find(name);

	if (!policy) {
		fprintf(stderr, "conformance-soak: there is no policy '%s'\n", name);
		exit(2);
	}
	return policy;
}

int main(int argc, char **argv)
{
	const char *environment = getenv("SLABYARD_CONFORMANCE_OPS");
	uint64_t operations = DEFAULT_OPERATIONS, seed = 1;
	bool kept = true;

	if (argc > 1)
		operations = number(argv[1], "OPERATIONS");
	else if (environment && *environment)
		operations = number(environment, "SLABYARD_CONFORMANCE_OPS");
	if (argc > 2)
		seed = number(argv[2], "SEED");
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(say_seed);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%-8s %10s %10s %8s %8s %9s %8s %8s %6s %8s %7s\n", "policy", "operations", "calls", "programs", "runs",
	       "requests", "failed", "null", "peak", "checks", "seconds");
	for (int i = 3; i < argc; i++)
		kept = soak(named(argv[i]), operations, seed) && kept;
	for (unsigned i = 0; argc <= 3 && sy_policies[i]; i++)
		kept = soak(sy_policies[i], operations, seed) && kept;
	return !kept;
}
