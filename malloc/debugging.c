/*
 * What debugging needs of malloc beyond the heap's own checks: objects that are mappings, the interface that an object is from, and
 * faults.
 *
 * A fault (SIGSEGV, SIGBUS) may come from a damaged heap, long after the damage, or from a guarded object. So a handler first looks
 * whether the address is in a guarded object, then whether any check finds damage, and reports that. Otherwise the fault is the
 * program's own: the handler takes itself away, and the fault comes again. A program that handles these signals itself takes the
 * handler's place.
 */
#define _GNU_SOURCE
#include "debugging.h"

#include "parts.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static struct sy_heap *debugged; /* NULL: there is no debugging */

void sy__debugging_tag(void *object, enum sy__debug_interface interface)
{
	if (debugged && object)
		sy__debug_tag(debugged, object, interface);
}

bool sy__debugging_expects(const void *object, size_t size, enum sy__debug_interface interface)
{
	return !debugged || !object || sy__debug_expect(debugged, object, size, interface);
}

void *sy__debugging_map(struct sy_heap *heap, size_t align, size_t size, unsigned flags)
{
	size_t bytes = sy__debug_adopted_bytes(align, size);
	void *memory = bytes > size ? sy__mapping_create(bytes, ALIGNMENT) : NULL, *object;

	if (!memory)
		return NULL;
	object = sy__debug_adopt(heap, memory, sy__mapping_usable(memory), align, size, flags);
	if (!object)
		sy__mapping_end(memory);
	return object;
}

/* ---- Faults ------------------------------------------------------------------------------------------------------- */

static void again(int signal)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };

	sigaction(signal, &usual, NULL);
}

static void fault(int signal, siginfo_t *information, void *registers)
{
	struct sy__finding finding;

	(void)registers;
	again(signal);
	if (sy__debug_find_fault(debugged, information->si_addr, &finding) || sy__debug_find_damage(debugged, &finding))
		debugged->debug->hooks->report(debugged, &finding);
}

void sy__debugging_start(struct sy_heap *heap)
{
	struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (!heap->debug)
		return;
	debugged = heap;
	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}
