/*
 * A policy that is broken badly enough makes the test crash or never end. Under Hypothesis that is a failure like any other,
 * to be made smaller: so this runs a program with a net under it. A fault or a trap, or more than GUARD_SECONDS of time,
 * ends the run and becomes its message. What the broken library left behind is in its own reserved memory and stays there.
 *
 * Not for sanitizers, which want to report the crash themselves: conformance-soak does without.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define GUARD_SECONDS 60

static const int guarded[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM };

#define GUARDED (sizeof(guarded) / sizeof(guarded[0]))

static sigjmp_buf landing;

static void fall(int number)
{
	siglongjmp(landing, number);
}

/* As sy_conformance_run; a crash or an endless loop is a failure too. */
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
		alarm(GUARD_SECONDS);
		kept = sy_conformance_run(policy, config, ops, count, result);
	} else {
		snprintf(result->message, sizeof(result->message),
		         fell == SIGALRM ? "did not end" : "crashed with signal %d", fell);
	}
	alarm(0);
	for (unsigned i = 0; i < GUARDED; i++)
		sigaction(guarded[i], &before[i], NULL);
	return kept;
}
