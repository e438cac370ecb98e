/*
 * The heap behind malloc: one for the program, made at its first request.
 *
 * The environment variable SLABYARD says which policy with which tunables ("slub:cpu_partial=8"); without it, DEFAULT_SPEC. A
 * spec that makes no sense ends the program with one line and status 2: a program that goes on under another allocator than
 * the one that was asked for would give figures for the wrong one. Programs with more rights than their user (set-user-ID)
 * don't look at the environment.
 *
 * Addresses. The heap's range is reserved as a whole, several times the machine's memory, since reserved addresses cost
 * nothing; where a resource limit (ulimit -v) leaves less, half of what it leaves, so that the program's own mappings, stacks
 * and libraries find the rest; or, where the program has more than half already, as much less as it takes.
 *
 * Nothing that runs with the lock asks for memory by malloc.
 */
#define _GNU_SOURCE
#include "parts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#define DEFAULT_SPEC "slub"
#define LEAST_RESERVE ((size_t)4 << 20) /* bytes: a maximal block */

static struct sy_heap *the_heap;
static const char *spec = DEFAULT_SPEC;
static sy__lock_t starting = SY__LOCK_INIT;

/* ---- Creation ----------------------------------------------------------------------------------------------------- */

/* What a limit on the program's addresses leaves to the heap; 0: there is none. */
static size_t reserve(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	return (size_t)limit.rlim_cur / 2;
}

static size_t less(size_t bytes)
{
	return bytes < 2 * LEAST_RESERVE ? LEAST_RESERVE : bytes / 2 & ~(LEAST_RESERVE - 1);
}

static void tell(const char *why)
{
	struct iovec parts[] = {
		{ (void *)(uintptr_t)"slabyard: SLABYARD=", 19 },
		{ (void *)(uintptr_t)spec, strlen(spec) },
		{ (void *)(uintptr_t)": ", 2 },
		{ (void *)(uintptr_t)why, strlen(why) },
		{ (void *)(uintptr_t)"\n", 1 },
	};

	(void)!writev(STDERR_FILENO, parts, sizeof(parts) / sizeof(parts[0]));
}

static _Noreturn void refuse(const char *why)
{
	tell(why);
	_exit(2);
}

/* Malloc returns NULL, and the program may even live with that; but who set the limit should know. */
static struct sy_heap *open_or_tell(struct sy_heap_options *options)
{
	static bool told;
	const char *error;
	struct sy_heap *heap = sy_heap_open(spec, options, &error);

	while (!heap && options->reserve > LEAST_RESERVE) {
		options->reserve = less(options->reserve);
		heap = sy_heap_open(spec, options, &error);
	}
	if (!heap && !told)
		tell(error);
	told = told || !heap;
	return heap;
}

/* In a mapping of its own: programs write their titles over the environment. */
static const char *copy(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return room == MAP_FAILED ? text : memcpy(room, text, bytes);
}

const char *sy__process_setting(const char *name)
{
	const char *value = getauxval(AT_SECURE) ? NULL : getenv(name);

	return value && *value ? copy(value) : NULL;
}

static struct sy_heap *make(void)
{
	static bool asked;
	const char *wanted = asked ? NULL : sy__process_setting("SLABYARD");
	struct sy_heap_options options = {
		.reserve = reserve(),
		.sizing = { .classes = SY_CLASSES_FINE, .align = ALIGNMENT, .exact_runs = true },
	};
	struct sy_heap_config parsed;
	struct sy_fault fault;

	asked = true;
	if (wanted)
		spec = wanted;
	if (!sy_spec_parse(&parsed, spec, &fault))
		refuse(fault.text);
	return open_or_tell(&options);
}

/* Acquires the heap that another thread has made; the store below releases it. With the lock the_heap may be read plainly, as
 * it is written under that alone. */
struct sy_heap *sy__process_heap(void)
{
	struct sy_heap *heap = __atomic_load_n(&the_heap, __ATOMIC_ACQUIRE);
	static bool failed;
	unsigned slot;

	if (sy__likely(heap))
		return heap;
	/* The thread's first call may allocate, and come here for it: not with the lock. */
	if (sy__call_enter(&slot))
		sy__call_leave();
	sy__lock(&starting);
	heap = the_heap ? the_heap : make();
	if (heap && !the_heap)
		sy__serve(heap, !failed);
	failed = !heap;
	__atomic_store_n(&the_heap, heap, __ATOMIC_RELEASE);
	sy__unlock(&starting);
	return heap;
}

const char *sy__process_spec(void)
{
	return spec;
}
