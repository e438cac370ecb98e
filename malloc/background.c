/*
 * A thread in the background, where SLABYARD_BACKGROUND is on: it gives back what threads freed before they went idle.
 *
 * Without it slow calls do what is due by time (core/this_slot.c), for all threads. Where no thread makes one more, memory stays. The
 * thread does the same as a slow call each half second. When nothing has come of that for some time, it sleeps until a call wakes it
 * that may have left something to give back (sy_heap.wake_background): an idle program is not woken.
 *
 * The start. Creating a thread allocates, and takes locks of the C library; free is called with some of these held, as when a thread's
 * stack ends, and in the middle of a fork. So the thread starts in an allocation that has just left its call (sy_heap.after_slow_call), after
 * the program's constructors have begun, when the thread that allocates is not forking. That is an allocation that looks at the
 * clock: small programs get no thread. A forked child, which has not got its parent's, starts its own in the same way; the child
 * of a vfork does not.
 *
 * There is none where this malloc is not the C library's own, as in a plugin, which may be unloaded; nor with a system-call filter. The
 * thread ends before the program shuts itself in (limits.c).
 *
 * The end. A process ends with its last thread, so when it is alone this one ends, too. It finds that out by looking, for which it is woken
 * by the ends of threads, and stays awake where the program's first thread has ended. No signal comes to it but the C library's own.
 */
#define _GNU_SOURCE
#include "parts.h"
#include "system.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "core/page_interface.h"
#include "core/this_slot.h"

#define HALF_SECOND 500000000L
#define QUIET 6u                    /* looks that find nothing until it sleeps */
#define STACK ((size_t)256 << 10)   /* bytes; hardly touched */
#define AFTER_STATE 17u             /* fields of /proc/self/stat from the state on to the number of threads */

enum word { AWAKE, ASLEEP, ENDS };
enum stage { NONE, STARTS, RUNS, ENDED };

static struct {
	struct sy_heap *heap; /* NULL: the setting is off */
	unsigned word;        /* what the thread sleeps on */
	unsigned stage;
	bool may_start;       /* the program's constructors run, or have run */
	pthread_t thread;
} background;

static bool change(unsigned *word, unsigned from, unsigned to)
{
	return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static unsigned seen(const unsigned *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* ---- The thread ------------------------------------------------------------------------------------------------------- */

/* Whether no other thread is left, or at least the first one has ended. Neither where the system does not tell. */
static bool is_alone(bool *first_ended)
{
	char text[1024];
	const char *at;
	unsigned long threads;

	*first_ended = false;
	at = sy__system_text("/proc/self/stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
	if (!at || !at[1])
		return false;
	at += 2;
	*first_ended = *at == 'Z';
	for (unsigned i = 0; at && i < AFTER_STATE; i++)
		at = strchr(at + 1, ' ');
	threads = at ? strtoul(at, NULL, 10) : 0;
	return threads == 1u + *first_ended;
}

/* sy_heap.wake_background: in a slow call, or where a thread ends. */
static void wake(struct sy_heap *heap)
{
	__atomic_store_n(&heap->wake_background, NULL, __ATOMIC_RELAXED);
	if (change(&background.word, ASLEEP, AWAKE))
		sy__word_wake(&background.word);
}

/* Calls that began before `wake_background` was set may have left something, so a last look follows that. False: this system cannot sleep. */
static bool sleep_until_woken(struct sy_heap *heap)
{
	bool slept = true;

	if (!change(&background.word, AWAKE, ASLEEP))
		return true;
	__atomic_store_n(&heap->wake_background, wake, __ATOMIC_SEQ_CST);
	sy__scavenge_soon(heap);
	if (sy__heap_background_work(heap))
		wake(heap);
	while (slept && seen(&background.word) == ASLEEP)
		slept = sy__word_sleep(&background.word, ASLEEP, 0);
	return slept;
}

static void *work(void *context)
{
	struct sy_heap *heap = context;
	bool first_ended = false, sleeps = true;
	unsigned quiet = 0;

	sy__system(SYS_prctl, PR_SET_NAME, sy__system_word("slabyard"), 0, 0);
	while (sleeps && seen(&background.word) != ENDS && !is_alone(&first_ended)) {
		if (quiet < QUIET || first_ended)
			sleeps = sy__word_sleep(&background.word, AWAKE, HALF_SECOND);
		else
			sleeps = sleep_until_woken(heap);
		quiet = sy__heap_background_work(heap) || quiet == QUIET ? 0 : quiet + 1;
	}
	return NULL;
}

/* ---- Its start and end ------------------------------------------------------------------------------------------------ */

/* Whether the C library's own objects are the heap's. */
static bool serves_library(const struct sy_heap *heap)
{
	static char *(*const volatile duplicate)(const char *) = strdup; /* not to be replaced by a call of malloc here */
	char *object = duplicate("");
	bool serves = object && (sy__holds(heap, object) || sy__sample_has(object));

	if (serves)
		sy__release(object);
	return serves;
}

static bool create(struct sy_heap *heap)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	bool created;

	sigfillset(&all);
	if (pthread_attr_init(&attributes) || pthread_sigmask(SIG_SETMASK, &all, &before))
		return false;
	pthread_attr_setstacksize(&attributes, STACK);
	created = !pthread_create(&background.thread, &attributes, work, heap) || /* much thread-local storage needs a larger stack */
	          !pthread_create(&background.thread, NULL, work, heap);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return created;
}

/* sy_heap.after_slow_call. */
static void start(struct sy_heap *heap)
{
	if (!background.may_start || sy__self.stops || seen(&background.stage) != NONE || !sy__process_is_own() ||
	    !change(&background.stage, NONE, STARTS))
		return;
	__atomic_store_n(&heap->after_slow_call, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&background.stage, !sy__system_is_filtered() && serves_library(heap) && create(heap) ? RUNS : ENDED, __ATOMIC_RELEASE);
}

void sy__background_start(struct sy_heap *heap)
{
	if (!sy__setting_on("SLABYARD_BACKGROUND", false))
		return;
	background.heap = heap;
	heap->after_slow_call = start;
}

__attribute__((constructor)) static void constructors_run(void)
{
	background.may_start = true;
}

void sy__background_end(void)
{
	unsigned looks = 0;

	if (!background.heap || seen(&background.stage) == ENDED || !sy__process_is_own())
		return;
	while (seen(&background.stage) == STARTS)
		looks = sy__look_again(looks);
	if (change(&background.stage, NONE, ENDED) || !change(&background.stage, RUNS, ENDED))
		return;
	__atomic_store_n(&background.word, ENDS, __ATOMIC_RELEASE);
	sy__word_wake(&background.word);
	pthread_join(background.thread, NULL);
}

void sy__background_forked(void)
{
	struct sy_heap *heap = background.heap;

	if (!heap || background.stage == ENDED)
		return;
	background.word = AWAKE;
	background.stage = NONE;
	heap->wake_background = NULL;
	heap->after_slow_call = start;
}
