/*
 * A fault (SIGSEGV, SIGBUS) may come from a damaged heap, long after the damage, or from a guarded object. So a handler first looks
 * whether the address is in a guarded object of any heap with checks, then whether any check finds damage, and reports that. Otherwise
 * the fault is the program's own: the program's former handler gets it, or, if it had none, the handler takes itself away, and the
 * fault comes again. A program that handles these signals itself later takes the handler's place.
 *
 * The handler is set up once. If it were set up again behind a handler that passes faults on to it, each would call the other without end.
 *
 * A program that ends itself (SIGABRT: abort, assert, std::terminate) may do so because of damage: that is looked for, too.
 */
#include "faults.h"

#include "leaks.h"
#include "report.h"
#include "core/debug/debug.h"

#include <signal.h>
#include <stddef.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __aarch64__
#include <asm/sigcontext.h>
#endif

static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT };
static struct sigaction former[sizeof(signals) / sizeof(signals[0])];

static const struct sigaction *former_of(int signal)
{
	unsigned at = 0;

	while (signals[at] != signal)
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

/* Whether the instruction has read: the processor's error code says what it did. Where that is unknown, it has written. */
#if (defined(__x86_64__) || defined(__i386__)) && defined(REG_ERR)
#define WROTE 2 /* in the code of a page fault */

static bool has_read(const void *registers)
{
	const ucontext_t *context = registers;

	return !(context->uc_mcontext.gregs[REG_ERR] & WROTE);
}
#elif defined(__aarch64__) && defined(ESR_MAGIC)
#define WROTE (1u << 6) /* in the syndrome of a data abort */

static bool has_read(const void *registers)
{
	const ucontext_t *context = registers;
	const char *at = (const char *)context->uc_mcontext.__reserved;
	const struct _aarch64_ctx *head = (const void *)at;

	for (; head->magic && head->size; head = (const void *)at) {
		if (head->magic == ESR_MAGIC)
			return !(((const struct esr_context *)(const void *)at)->esr & WROTE);
		at += head->size;
	}
	return false;
}
#else
static bool has_read(const void *registers)
{
	(void)registers;
	return false;
}
#endif

/* The heap that has damage; NULL: none. */
static struct sy_heap *damaged(struct sy__finding *finding)
{
	struct sy_heap *heap;

	for (unsigned i = 0; i < SY__MOST_WATCHED; i++)
		if ((heap = sy__debug_watched(i)) && sy__debug_find_damage(heap, finding))
			return heap;
	return NULL;
}

/* The heap that a fault is about; NULL: none. An address that an object has had, and that went back, may be what the program's own
 * handler waits for. */
static struct sy_heap *at_fault(int signal, const void *address, bool read, struct sy__finding *finding)
{
	struct sy_heap *heap;

	for (unsigned i = 0; i < SY__MOST_WATCHED; i++)
		if ((heap = sy__debug_watched(i)) && sy__debug_find_fault(heap, address, read, finding))
			return finding->record.state != SY__RECORD_GONE || former_of(signal)->sa_handler == SIG_DFL ? heap : NULL;
	return damaged(finding);
}

/* A report ends in SIGABRT, too. Another thread's report, or search, is not to be cut short by this one's fault. */
static void fault(int signal, siginfo_t *information, void *registers)
{
	static const void *searcher;
	struct sy__finding finding;
	struct sy_heap *heap;
	const void *none = NULL;

	while (sy__bug_is_told_elsewhere())
		pause();
	while (!__atomic_compare_exchange_n(&searcher, &none, sy__caller(), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) &&
	       none != sy__caller())
		none = NULL;
	if (!none && !sy__bug_is_told()) {
		heap = signal == SIGABRT ? damaged(&finding) : at_fault(signal, information->si_addr, has_read(registers), &finding);
		if (heap)
			heap->debug->hooks->report(heap, &finding);
	}
	if (!none)
		__atomic_store_n(&searcher, NULL, __ATOMIC_RELEASE);
	pass_on(signal, information, registers);
}

/* A system-call filter might not allow sigaction. A fault then ends the program without a report. */
void sy__faults_watch(void)
{
	struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	static int watching;

	if (sy__system_is_shut_in() || __atomic_exchange_n(&watching, 1, __ATOMIC_RELAXED))
		return;
	sigemptyset(&action.sa_mask);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, &former[i]);
}
