/*
 * What debugging needs of malloc beyond the heap's own checks: objects that are mappings, the interface that an object is from, and
 * faults.
 *
 * A fault (SIGSEGV, SIGBUS) may come from a damaged heap, long after the damage, or from a guarded object. So a handler first looks
 * whether the address is in a guarded object, then whether any check finds damage, and reports that. Otherwise the fault is the
 * program's own: the program's former handler gets it, or, if it had none, the handler takes itself away, and the fault comes again.
 * A program that handles these signals itself later takes the handler's place.
 *
 * A program that ends itself (SIGABRT: abort, assert, std::terminate) may do so because of damage: with checks that is looked for, too.
 */
#define _GNU_SOURCE
#include "debugging.h"

#include "library/debug/report.h"
#include "parts.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static struct sy_heap *debugged; /* NULL: there is no debugging */

void sy__debugging_tag(void *object, unsigned by)
{
	if (debugged && object)
		sy__debug_tag(debugged, object, by);
}

bool sy__debugging_expects(const void *object, size_t size, unsigned by)
{
	return !debugged || !object || sy__debug_expect(debugged, object, size, by);
}

void *sy__debugging_map(struct sy_heap *heap, size_t align, size_t size, unsigned flags)
{
	size_t bytes = sy__debug_adopted_bytes(align, size);
	void *memory, *object = sy__debug_guarded(heap, align, size, flags);

	if (object)
		return object;
	memory = bytes > size ? sy__mapping_create(bytes, ALIGNMENT) : NULL;
	if (!memory)
		return NULL;
	object = sy__debug_adopt(heap, memory, sy__mapping_usable(memory), align, size, flags);
	if (!object)
		sy__mapping_end(memory);
	return object;
}

/* ---- Faults ------------------------------------------------------------------------------------------------------- */

static struct sy_heap *watched;
#define FAULTS 2u /* of the signals; SIGABRT is none */

static const int watched_signals[] = { SIGSEGV, SIGBUS, SIGABRT };
static struct sigaction former[sizeof(watched_signals) / sizeof(watched_signals[0])];

static const struct sigaction *former_of(int signal)
{
	unsigned at = 0;

	while (watched_signals[at] != signal)
		at++;
	return &former[at];
}

static void pass_on(int signal, siginfo_t *information, void *registers)
{
	const struct sigaction *before = former_of(signal);

	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(signal, information, registers);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(signal);
	else {
		sigaction(signal, before, NULL);
		if (signal == SIGABRT)
			raise(signal); /* does not come again by itself */
	}
}

/* A report ends in SIGABRT, too. An address that an object has had, and that went back, may be what the program's own handler waits for. */
static bool is_told(int signal, const void *address, struct sy__finding *finding)
{
	if (signal == SIGABRT)
		return !sy__bug_is_told() && sy__debug_find_damage(watched, finding);
	if (!sy__debug_find_fault(watched, address, finding))
		return debugged && sy__debug_find_damage(debugged, finding);
	return finding->record.state != SY__RECORD_GONE || former_of(signal)->sa_handler == SIG_DFL;
}

static void fault(int signal, siginfo_t *information, void *registers)
{
	static bool again; /* the search for the damage has met it */
	struct sy__finding finding;

	if (!__atomic_exchange_n(&again, true, __ATOMIC_RELAXED)) {
		if (is_told(signal, information->si_addr, &finding))
			watched->debug->hooks->report(watched, &finding);
		__atomic_store_n(&again, false, __ATOMIC_RELAXED);
	}
	pass_on(signal, information, registers);
}

/* A filter might not expect the calls; a fault then ends the program without a word of ours. */
static void watch(struct sy_heap *heap, unsigned signals)
{
	struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (sy__system_is_shut_in())
		return;
	watched = heap;
	sigemptyset(&action.sa_mask);
	for (unsigned i = 0; i < signals; i++)
		sigaction(watched_signals[i], &action, &former[i]);
}

void sy__debugging_watch_faults(struct sy_heap *heap)
{
	watch(heap, FAULTS);
}

void sy__debugging_start(struct sy_heap *heap)
{
	if (!heap->debug)
		return;
	debugged = heap;
	watch(heap, sizeof(watched_signals) / sizeof(watched_signals[0]));
}
