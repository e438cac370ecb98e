/*
 * A policy that is badly broken makes the test crash or never end. Hypothesis is to shrink such a failure like any other, so
 * this runs a program with a net under it. A fault or a trap, or more than GUARD_SECONDS of processor time, ends the run and
 * becomes its message. What the broken library left behind stays in its own reserved memory.
 *
 * Not for sanitizers, which want to report the crash themselves.
 */
#define _XOPEN_SOURCE 700 /* setitimer */
#include "conformance.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#define GUARD_SECONDS 240

static const int guarded[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF };

#define GUARDED (sizeof(guarded) / sizeof(guarded[0]))

static sigjmp_buf landing;

static void fall(int number)
{
	siglongjmp(landing, number);
}

/* Limit of processor time, as the machine may be busy with other things; 0: none. */
static void limit_time(long seconds)
{
	struct itimerval limit = { .it_value = { .tv_sec = seconds } };

	setitimer(ITIMER_PROF, &limit, NULL);
}

bool sy_conformance_run_guarded(const struct sy_policy *policy, const struct conformance_config *config,
                                const struct op *ops, uint64_t count, struct conformance_result *result)
{
	struct sigaction net = { .sa_handler = fall }, before[GUARDED];
	volatile bool kept = false;
	int fell;

	sigemptyset(&net.sa_mask);
	for (unsigned i = 0; i < GUARDED; i++)
		sigaction(guarded[i], &net, &before[i]);
	fell = sigsetjmp(landing, 1);
	if (!fell) {
		limit_time(GUARD_SECONDS);
		kept = sy_conformance_run(policy, config, ops, count, result);
	} else {
		snprintf(result->message, sizeof(result->message),
		         fell == SIGPROF ? "did not end" : "crashed with signal %d", fell);
	}
	limit_time(0);
	for (unsigned i = 0; i < GUARDED; i++)
		sigaction(guarded[i], &before[i], NULL);
	return kept;
}
