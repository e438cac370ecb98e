/*
 * The cost pass: the trace as valgrind's callgrind is to see it, which counts instructions and simulates caches.
 *
 * A run of 20,000 operations takes milliseconds, which other programs of the machine disturb. The instructions of such a
 * run, and the misses of a simulated cache, are the same every time. Callgrind counts them. The lab starts this program
 * under it and reads what it wrote (lab/slabyard/replay/cost.py, which also says which instruction belongs to what).
 *
 * What is counted. Callgrind collects inside of cost_object and cost_tick alone (its option --toggle-collect, by these
 * names): requests of objects, and the passing of time, in which an allocator frees what waited. Setting up, what is older
 * than the trace, and the environment's pages are not. What these two functions do themselves, to find the step's cache and
 * its object, is left out by the lab.
 *
 * What the caches see. Everything from the first event on: the environment's page events, the steps and the table of live
 * objects too, as callgrind simulates all that it instruments. They begin empty. Callgrind starts to instrument when this
 * program asks it to, because the machine and its tens of thousands of older objects would take a minute otherwise.
 *
 * The request is a sequence of instructions that does nothing on a processor, and that valgrind knows; it is part of
 * valgrind's interface to programs (valgrind.h, which is not there where only the tool is installed).
 *
 * Without valgrind the pass serves the trace and counts nothing.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "replay.h"

#define CALLGRIND_START 0x43540004u
#define CALLGRIND_STOP 0x43540005u
#define STACK_MULTIPLE ((size_t)512 << 10) /* bytes of one way of the largest cache */

#if defined(__x86_64__)
static void request(uint64_t what)
{
	volatile uint64_t words[6] = { what };
	uint64_t answer = 0;

	__asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
	                 : "+d"(answer)
	                 : "a"(&words[0])
	                 : "cc", "memory");
}
#elif defined(__aarch64__)
static void request(uint64_t what)
{
	volatile uint64_t words[6] = { what };
	register uint64_t answer __asm__("x3") = 0;
	register volatile uint64_t *at __asm__("x4") = words;

	__asm__ volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\torr x10, x10, x10"
	                 : "+r"(answer)
	                 : "r"(at)
	                 : "cc", "memory");
}
#else
static void request(uint64_t what)
{
	(void)what;
}
#endif

/* ---- What callgrind watches ----------------------------------------------------------------------------------- */

void cost_object(struct driver *, const struct step *);
void cost_tick(struct driver *, const struct step *);

__attribute__((noinline)) void cost_object(struct driver *driver, const struct step *step)
{
	void **entry = &driver->live[step->handle];

	if (step_allocates(step)) {
		*entry = driver_alloc(driver, step);
		return;
	}
	driver_free(driver, step, *entry);
	*entry = NULL;
}

__attribute__((noinline)) void cost_tick(struct driver *driver, const struct step *step)
{
	driver_tick(driver, step_time(step));
}

/* ---- The pass ------------------------------------------------------------------------------------------------- */

/* Serves the steps as the timed loop does, with a driver on its own stack; the number of object operations. */
static __attribute__((noinline)) uint64_t serve(const struct driver *populated)
{
	struct driver copy = *populated, *driver = &copy;
	uint64_t operations = 0;

	for (const struct step *step = driver->steps; step < driver->steps + driver->step_count; step++) {
		if (step_of_object(step)) {
			operations++;
			if (step->kind != EVENT_CACHE_FREE || driver->live[step->handle])
				cost_object(driver, step);
		} else if (step->kind == STEP_TICK) {
			cost_tick(driver, step);
		} else if (step_of_pages(step)) {
			driver_pages(driver, step);
		}
	}
	return operations;
}

/* The environment and the program's path decide where the stack begins, and so which of its cache lines conflict with others. So it is
 * moved down to a multiple of STACK_MULTIPLE, which falls on the same lines of a cache in every run. */
static uint64_t serve_at_multiple(const struct driver *driver)
{
	volatile char here = 0;
	volatile char *room = __builtin_alloca(1 + (uintptr_t)&here % STACK_MULTIPLE);

	*room = here;
	return serve(driver);
}

void cost_pass(struct json *json, struct stage *stage)
{
	uint64_t operations;

	request(CALLGRIND_START);
	operations = serve_at_multiple(&stage->driver);
	request(CALLGRIND_STOP);
	json_object(json, NULL);
	json_object(json, "cost");
	json_count(json, "operations", operations);
	json_object_end(json);
	json_object_end(json);
}
