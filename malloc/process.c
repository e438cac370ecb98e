/*
 * The heap behind malloc: one for the program, made at its first request.
 *
 * The environment variable SLABYARD names the policy and its tunables ("slub:cpu_partial=8"). Without it the default policy
 * serves. A spec that makes no sense ends the program with one line and status 2: on another allocator than the one that was
 * asked for, the program would give figures for the wrong one. Programs with more rights than their user (set-user-ID) ignore the
 * environment.
 *
 * Reservation. The heap reserves its range of addresses as a whole. Reserved addresses cost nothing, so that is several times
 * the machine's memory. Under a limit to addresses (ulimit -v, RLIMIT_AS) it is half of the limit, so that the program's own
 * mappings, stacks and libraries find room; and less where the program has more than half already.
 *
 * A program may set itself such a limit while it runs (limits.c). The reservation is then cut to its share: half of what the
 * limit leaves beside all else, but no less than what is in use. It grows again when the limit rises. Neither half is lost to
 * the other. Where a mapped object finds no room, the reservation is cut to half of what is left beside the object, as threads
 * want stacks while it lives. Where the heap is full, its reservation grows to its share again. The child of a vfork has its
 * parent's memory and limits of its own, so it changes nothing.
 *
 * Data. Memory that the heap can write to counts toward a limit to the program's data (RLIMIT_DATA), even where the system has
 * the memory back. So where a mapped object finds no room under such a limit, and after malloc_trim, the free blocks at the end of
 * the used range become inaccessible again, as they were before their first use. Free blocks in between stay.
 *
 * Nothing that runs with the lock asks malloc for memory.
 */
#define _GNU_SOURCE
#include "parts.h"
#include "system.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/this_slot.h"
#include "core/page_interface.h"
#include "library/debug/spec.h"
#include "library/spec.h"

#define LEAST_RESERVE ((size_t)4 << 20) /* bytes: a maximal block */
#define UNKNOWN SIZE_MAX
#define LEFT_OVER 16u                  /* one in so many parts of a limit stays free where the other mappings are not known */
#define BEFORE_FIRST LEAST_RESERVE      /* bytes at most in front of the first block of the range, which is aligned */

static struct sy_heap *the_heap;
static const char *spec; /* NULL before the first request */
static sy__lock_t starting = SY__LOCK_INIT;
static pid_t process; /* the one that the heap belongs to */

/* ---- Creation ----------------------------------------------------------------------------------------------------- */

/* A limit to the program's addresses or data, in bytes; SIZE_MAX: there is none. */
static size_t limit_now(__rlimit_resource_t resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur > SIZE_MAX)
		return SIZE_MAX;
	return (size_t)limit.rlim_cur;
}

/* The bytes of addresses to reserve; 0: the default. */
static size_t reserve(void)
{
	size_t half = limit_now(RLIMIT_AS) / 2;

	return half < SY_HEAP_ADDRESSES ? half : 0;
}

static size_t less(size_t bytes)
{
	return bytes < 2 * LEAST_RESERVE ? LEAST_RESERVE : bytes / 2 & ~(LEAST_RESERVE - 1);
}

static void tell(const char *variable, const char *value, const char *why)
{
	char shown[SY__SPEC_SHOWN], line[sizeof(struct sy_fault) + SY__SPEC_SHOWN + 40];
	int length;

	sy__spec_show(shown, sizeof(shown), value);
	length = snprintf(line, sizeof(line), "slabyard: %s=%s: %s\n", variable, shown, why);
	sy__file_write(STDERR_FILENO, line, (size_t)length);
}

static _Noreturn void refuse(const char *variable, const char *value, const char *why)
{
	tell(variable, value, why);
	_exit(2);
}

/* Without a heap malloc returns NULL. Whoever set the limit is told once. */
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
		tell("SLABYARD", spec, error);
	told = told || !heap;
	return heap;
}

/* A copy in a mapping of its own, because programs write their titles over the environment. */
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
	const char *debug = asked ? NULL : sy__process_setting("SLABYARD_DEBUG");
	struct sy_heap_options options = {
		.reserve = reserve(),
		.sizing = { .classes = SY_CLASSES_FINE, .align = ALIGNMENT, .exact_runs = true },
	};
	struct sy_heap_config parsed;
	struct sy_fault fault;

	asked = true;
	process = getpid();
	if (!spec)
		spec = wanted ? wanted : sy_policies[0]->name;
	if (!sy_spec_parse(&parsed, spec, &fault))
		refuse("SLABYARD", spec, fault.text);
	if (debug && !sy__debug_parse(&parsed.debug, debug, &fault))
		refuse("SLABYARD_DEBUG", debug, fault.text);
	return open_or_tell(&options);
}

/* The acquire pairs with the release below, where another thread has made the heap. With the lock the_heap may be read plainly:
 * only holders of the lock write it. */
struct sy_heap *sy__process_heap(void)
{
	struct sy_heap *heap = __atomic_load_n(&the_heap, __ATOMIC_ACQUIRE);
	static bool failed;
	unsigned slot;

	if (sy__likely(heap))
		return heap;
	/* A thread's first call may allocate, and so come here again. That must not happen with the lock. */
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

/* ---- Limits to addresses ------------------------------------------------------------------------------------------ */

/* Bytes of addresses that the process has beside the heap's, as the kernel counts them. UNKNOWN: no free file descriptor, or no
 * /proc. */
static size_t others(void)
{
	char text[64];
	size_t pages = 0, all, ours = sy__reservation_bytes(the_heap);

	if (!sy__file_text("/proc/self/statm", text, sizeof(text)))
		return UNKNOWN;
	for (const char *at = text; *at >= '0' && *at <= '9'; at++)
		pages = pages * 10 + (size_t)(*at - '0');
	all = pages * (size_t)getpagesize();
	return all > ours ? all - ours : 0;
}

static size_t minus(size_t from, size_t bytes)
{
	return from > bytes ? from - bytes : 0;
}

/* Bytes of pages that fit into so many bytes of addresses together with their descriptors and page map. */
static size_t range(size_t addresses)
{
	return addresses / (SY_PAGE_SIZE + sizeof(struct sy_page) + sizeof(void *)) * SY_PAGE_SIZE;
}

/* Begins a change of the reservation: takes the lock and stops all slots. False: it may not be changed. */
static bool begin(void)
{
	sy__lock(&starting);
	if (the_heap && getpid() == process && sy__slots_stop(the_heap))
		return true;
	sy__unlock(&starting);
	return false;
}

static void end(void)
{
	sy__slots_resume(the_heap);
	sy__unlock(&starting);
}

/* The heap's share: half of what a limit leaves beside the other mappings. Where these are not known the system refuses what is too
 * much. */
static size_t share(size_t limit, size_t beside)
{
	return range(minus(limit, beside == UNKNOWN ? 0 : beside) / 2);
}

/* Takes as much as the system allows while a part of the limit stays free: a stack that can't grow ends the program. */
static bool take_most(size_t limit)
{
	void *left_over = sy__source_reserve(limit / LEFT_OVER);
	size_t bytes = left_over ? share(limit, UNKNOWN) : range(sy__reservation_bytes(the_heap));
	bool reached = sy__reservation_resize(the_heap, bytes);

	if (left_over)
		sy__source_release(left_over, limit / LEFT_OVER);
	return reached;
}

static bool take_share(size_t limit, size_t beside)
{
	if (limit == SIZE_MAX)
		return sy__reservation_resize(the_heap, limit);
	return beside == UNKNOWN ? take_most(limit) : sy__reservation_resize(the_heap, share(limit, beside));
}

void sy__process_limited(size_t bytes)
{
	int error = errno;

	if (begin()) {
		take_share(bytes, others());
		end();
	}
	errno = error;
}

static bool has_room(size_t bytes)
{
	void *room = sy__source_reserve(bytes);

	if (room)
		sy__source_release(room, bytes);
	return room != NULL;
}

/* Cuts the reservation so that a mapping of so many bytes finds room. Where the other mappings are not known it is cut by so many
 * bytes, and the system is asked whether that suffices. */
static bool make_room(size_t limit, size_t bytes)
{
	size_t before, beside, rest;
	bool made = false;

	if (!begin())
		return false;
	before = sy__reservation_bytes(the_heap);
	beside = others();
	rest = beside == UNKNOWN ? minus(before, bytes) : minus(limit, beside + bytes);
	if (rest < before) {
		sy__reservation_resize(the_heap, range(minus(rest, BEFORE_FIRST) / 2));
		made = beside == UNKNOWN ? has_room(bytes) : sy__reservation_bytes(the_heap) <= rest;
		if (!made)
			take_share(limit, beside);
	}
	end();
	return made;
}

static bool make_addresses(struct sy_heap *heap, size_t bytes)
{
	size_t limit = limit_now(RLIMIT_AS);

	return limit != SIZE_MAX && bytes < limit && (make_room(limit, bytes) || (sy_heap_trim(heap) && make_room(limit, bytes)));
}

static bool withdraw(void)
{
	bool done;

	if (limit_now(RLIMIT_DATA) == SIZE_MAX || !begin())
		return false;
	done = sy__reservation_withdraw(the_heap);
	end();
	return done;
}

/* A limit to data does not distinguish the heap from all else, so there are no shares: only free memory can be given up. */
static bool make_data(struct sy_heap *heap, size_t bytes)
{
	size_t limit = limit_now(RLIMIT_DATA);

	if (limit == SIZE_MAX || bytes >= limit)
		return false;
	sy_heap_trim(heap);
	return withdraw();
}

bool sy__process_make_room(size_t bytes)
{
	struct sy_heap *heap = __atomic_load_n(&the_heap, __ATOMIC_ACQUIRE);
	int error = errno;
	bool made = heap && (make_addresses(heap, bytes) || make_data(heap, bytes));

	errno = error;
	return made;
}

void sy__process_trimmed(void)
{
	int error = errno;

	withdraw();
	errno = error;
}

bool sy__process_extend_reservation(void)
{
	size_t limit = limit_now(RLIMIT_AS), before, beside;
	int error = errno;
	bool further = false;

	if (limit != SIZE_MAX && begin()) {
		before = sy__reservation_bytes(the_heap);
		beside = others();
		if (share(limit, beside) > range(before))
			take_share(limit, beside);
		further = sy__reservation_bytes(the_heap) > before;
		end();
	}
	errno = error;
	return further;
}

/* Another thread may have held the lock, but was changing nothing: a fork waits for whoever has all slots stopped. */
void sy__process_forked(void)
{
	process = getpid();
	starting = (sy__lock_t)SY__LOCK_INIT;
}

const char *sy__process_spec(void)
{
	return spec ? spec : sy_policies[0]->name;
}
