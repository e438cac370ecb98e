/*
 * The library's own code at all interleavings of a few threads.
 *
 * What runs. The core as it is in the library, on platform/user.h as it is, compiled with the calls that -fsanitize=thread
 * puts before every access to memory. Those calls come here, not to a sanitizer: there is one thread of the operating system,
 * and the model's threads are contexts on it, which change only where the code is about to do something atomic (a word's
 * exchange, a relaxed look, a lock). A step is that and all plain accesses up to the next.
 *
 * All interleavings. An execution begins with the state that `set_up` left. It is made again and again, each time with another
 * thread that goes on at some step (depth first). Two steps that touch different words, or only read, may be exchanged without
 * a difference; executions that differ in nothing else are not made twice. For that, a thread whose next step has been tried
 * here sleeps until another one does something that its step depends on (Godefroid, "Partial-Order Methods for the
 * Verification of Concurrent Systems", 1996).
 *
 * Memory orders. Executions are sequentially consistent. Two arguments cover what else a weak order allows. One: the releases
 * and acquires that are written in the code must order plain accesses of two threads to one byte. Vector clocks verify that at
 * each access (as thread sanitizers do: Serebryany and Iskhodzhanov, "ThreadSanitizer: data race detection in practice",
 * 2009), at all interleavings. Programs without such races behave as if they were sequentially consistent, except in relaxed
 * accesses to several words. Two: the stop protocol, owned slabs and kept runs have such accesses; stop.c, owned.c and
 * run_cache.c try them with store buffers.
 *
 * Calls and stops. In place of platform/stop.c: a thread's slot is its number, the first one's 1. A call is stopped only at
 * its steps. A stop waits until nobody else is in a call, and lets nobody begin one.
 *
 * Interrupts. A thread may interrupt another one. It begins between any two accesses of the other thread, plain ones too,
 * unless that thread has interrupts off, and ends before the other goes on.
 *
 * A program breaks off at the first thing that is wrong: a race, a deadlock, a crash, or what a thread or `verify` reports. It
 * prints which thread made which steps, and ends with status 1.
 */
#ifndef MODEL_SCHEDULE_H
#define MODEL_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mutants.h"

#define MODEL_THREADS 4

struct model {
	const char *name;
	void (*set_up)(void);                   /* makes the state in which every execution begins */
	void (*threads[MODEL_THREADS + 1])(void); /* from the first on, to NULL */
	uint8_t interrupts[MODEL_THREADS];      /* the thread that each one interrupts, counted from 1; 0: none */
	bool stops;                             /* a thread stops slots */
	const char *(*verify)(void);            /* when all have ended: NULL, or what is wrong */
};

/* Static memory that threads share: each execution finds what set_up left in it. Before the first model_try. */
void model_share(void *memory, size_t bytes);

/* Memory that each thread has of its own (__thread), zero when it begins. From set_up. */
void model_own(void *memory, size_t bytes);

/* Tries all interleavings of each model, in a process of its own, and prints how many executions that took. The list of
 * models ends with a name of NULL; arguments name some of them. If the first argument is `mutants`, it tries all mutants of
 * the second list, which ends in the same way, or those that the arguments name. For main to return: whether something was
 * wrong. */
int model_try(const struct model *, const struct mutant *, int argc, char **argv);

/* From threads and set_up: something is wrong. */
_Noreturn void model_wrong(const char *what);

/* From set_up: calls of the library come from this slot from now on. */
void model_on_slot(unsigned slot);

/* The calling thread's slot: its number, counted from 1. */
unsigned model_slot(void);

/* Waits until the word is not 0, and acquires what its writer released. */
void model_wait_for(const unsigned *word);

/* From now on nobody interrupts the calling thread, or somebody may again. */
void model_interrupts(bool on);

#endif
