/*
 * The heap behind malloc: one for the program, made at its first request.
 *
 * The environment variable SLABYARD names the policy and its tunables ("slub:cpu_partial=8"). Without it the default policy
 * serves. A spec that makes no sense ends the program with one line and status 2 (settings.c): on another allocator than the one
 * that was asked for, the program would give figures for the wrong one.
 *
 * A thread that makes the heap may come here again, where a function of the C library that the making calls is another's and
 * allocates. It then gets mappings (entries.c).
 *
 * Reservation. The heap reserves its range of addresses as a whole. Reserved addresses cost nothing, so that is several times
 * the machine's memory (of 32-bit addresses as many as a heap can have), or what SLABYARD_RESERVE says. Under a limit to addresses
 * (ulimit -v, RLIMIT_AS) it is half of the limit, so that the program's own mappings, stacks and libraries find room; and less where
 * the program has more than half already.
 *
 * A program may set itself such a limit while it runs (limits.c). The reservation is then cut to its share: half of what other mappings
 * leave of the limit, but at least the part in use. It grows again when the limit rises. Neither half is lost to the other. Where a mapped
 * object finds no room, the reservation is cut to half of what is left beside the object, as threads want stacks while it lives. Where the
 * heap is full, its reservation grows by half of what the limit leaves beside all else, again and again, as small objects have no other
 * place. The child of a vfork has its parent's memory and limits of its own, so it changes nothing.
 *
 * Data. Memory that the heap can write to counts toward a limit to the program's data (RLIMIT_DATA), and toward what a system
 * without overcommitment has promised, even where it has the memory back. So where a mapped object finds no room under such a
 * limit, and after malloc_trim, the free pages at the end of the used range become inaccessible again, as they were before
 * their first use. Free pages in between stay.
 *
 * Nothing that runs with the lock asks malloc for memory.
 */
#define _GNU_SOURCE
#include "parts.h"
#include "system.h"

#include <stdint.h>
#include <sys/resource.h>

#include "core/this_slot.h"
#include "core/backend/slot_areas.h"
#include "core/page_interface.h"
#include "library/debug/spec.h"

#define BLOCK (SY_PAGE_SIZE << SY_MAX_ORDER)
#define LEAST_RESERVE ((size_t)512 << 10) /* bytes */
#define USUAL_RESERVE (sizeof(void *) > 4 ? 0 : (size_t)SY_HEAP_ADDRESSES - BLOCK) /* 0: the library's default */
#define UNKNOWN SIZE_MAX
#define LEFT_OVER 16u                  /* 1/16 of a limit stays free where the heap takes more than a share, or does not know all else */

static struct sy_heap *the_heap;
static const char *spec; /* NULL before the first request */
static sy__lock_t starting = SY__LOCK_INIT;
static int process; /* the one that the heap belongs to; 0: this one, in the child of a fork under a filter */
static size_t most_held; /* bytes that the heap and all mappings may hold; 0: any number */
static const void *maker; /* the thread that makes the heap; NULL: none */

bool sy__process_small_pages;

/* ---- Creation ----------------------------------------------------------------------------------------------------- */

/* A limit to the program's addresses or data, in bytes; SIZE_MAX: there is none. */
static size_t limit_now(int resource)
{
	uint64_t limit = sy__system_limit(resource);

	return limit < SIZE_MAX ? (size_t)limit : SIZE_MAX;
}

/* The bytes of addresses to reserve; 0: the default. wanted: by the user; 0: any number. */
static size_t reserve(size_t wanted)
{
	size_t half = limit_now(RLIMIT_AS) / 2, usual = wanted ? wanted : USUAL_RESERVE;

	return half >= SY_HEAP_ADDRESSES || (usual && usual < half) ? usual : half;
}

static size_t less(size_t bytes)
{
	return bytes < 2 * LEAST_RESERVE ? LEAST_RESERVE : bytes / 2 & ~(size_t)(SY_PAGE_SIZE - 1);
}

/* Without a heap malloc returns NULL. The user, who set the limit, is told once. */
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
		sy__setting_tell("SLABYARD", spec, error);
	told = told || !heap;
	return heap;
}

static struct sy_heap *make(void)
{
	static bool asked;
	const size_t limit = most_held = sy__setting_bytes("SLABYARD_LIMIT");
	const char *wanted = asked ? NULL : sy__setting("SLABYARD");
	const char *debug = asked ? NULL : sy__setting("SLABYARD_DEBUG");
	struct sy_heap_options options = {
		.reserve = reserve(sy__setting_bytes("SLABYARD_RESERVE")),
		.limit = limit,
		.sizing = { .classes = SY_CLASSES_FINE, .align = ALIGNMENT, .small_less = true, .exact_runs = true },
	};
	struct sy_heap_config parsed;
	const char *refusal;
	struct sy_fault fault;

	asked = true;
	process = sy__system_process();
	if (!spec)
		spec = wanted ? wanted : sy_policies[0]->name;
	sy__process_small_pages = !sy__setting_on("SLABYARD_HUGE_PAGES", true);
	if (sy__process_small_pages)
		sy__source_only_small();
	if (!sy_spec_parse(&parsed, spec, &fault))
		sy__setting_refuse("SLABYARD", spec, fault.text);
	parsed.threads = true;
	refusal = sy__heap_refuses(&parsed);
	if (refusal)
		sy__setting_refuse("SLABYARD", spec, refusal);
	if (debug && !sy__debug_parse(&parsed.debug, debug, &fault))
		sy__setting_refuse("SLABYARD_DEBUG", debug, fault.text);
	return open_or_tell(&options);
}

/* Relaxed: a thread sees its own store, and no other's word is its address. */
bool sy__process_is_making(void)
{
	return __atomic_load_n(&maker, __ATOMIC_RELAXED) == sy__caller();
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
	if (sy__process_is_making())
		return NULL;
	/* A thread's first call may allocate, and so come here again. That must not happen with the lock. */
	if (sy__call_enter(&slot))
		sy__call_leave();
	sy__lock(&starting);
	__atomic_store_n(&maker, sy__caller(), __ATOMIC_RELAXED);
	heap = the_heap ? the_heap : make();
	if (heap && !the_heap)
		sy__serve(heap, !failed);
	failed = !heap;
	__atomic_store_n(&the_heap, heap, __ATOMIC_RELEASE);
	__atomic_store_n(&maker, NULL, __ATOMIC_RELAXED);
	sy__unlock(&starting);
	return heap;
}

/* ---- Limits to addresses ------------------------------------------------------------------------------------------ */

/* Bytes of addresses that the process has beside the heap's, as the kernel counts them. UNKNOWN: no free file descriptor, no
 * /proc, or a filter. */
static size_t others(void)
{
	char text[64];
	size_t pages = 0, all, ours = sy__reservation_bytes(the_heap);

	if (sy__system_is_shut_in() || !sy__system_text("/proc/self/statm", text, sizeof(text)))
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

/* Bytes of pages that fit into these bytes of addresses together with their descriptors and page map. */
static size_t range(size_t addresses)
{
	return addresses / (SY_PAGE_SIZE + sizeof(struct sy_page) + sizeof(void *)) * SY_PAGE_SIZE;
}

/* Whether this is the process that the heap belongs to, and no child of its vfork. A filter might not expect the question; a limit that
 * such a child sets itself is unknown then, so it changes nothing by it. */
static bool is_own(void)
{
	return sy__system_is_shut_in() || sy__process_is_own();
}

/* Begins a change of the reservation: takes the lock and stops all slots. False: it may not be changed. */
static bool begin(void)
{
	sy__lock(&starting);
	if (the_heap && is_own() && sy__slots_stop_soon(the_heap))
		return true;
	sy__unlock(&starting);
	return false;
}

static void end(void)
{
	sy__slots_resume(the_heap);
	sy__unlock(&starting);
}

/* The heap's share: half of what a limit leaves beside the other mappings. If these are not known, the system refuses a share that is too
 * large. */
static size_t share(size_t limit, size_t beside)
{
	return range(minus(limit, beside == UNKNOWN ? 0 : beside) / 2);
}

/* Takes as much as the system allows while a part of the limit stays free: a stack that can't grow ends the program. Where that part is not
 * free, half of the reservation goes, and half of the rest, until it is. */
static bool take_most(size_t limit)
{
	size_t most = share(limit, UNKNOWN), now = range(sy__reservation_bytes(the_heap));
	void *left_over = sy__source_reserve(limit / LEFT_OVER);
	size_t bytes = left_over || most < now ? most : now;
	bool reached = sy__reservation_resize(the_heap, bytes);

	while (!left_over && !(left_over = sy__source_reserve(limit / LEFT_OVER)) && bytes >= BLOCK)
		reached = sy__reservation_resize(the_heap, bytes /= 2);
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

/* What a full heap takes of the rest of a limit. */
static size_t more_of(size_t rest)
{
	return rest / 2 > BLOCK ? rest / 2 : rest;
}

/* The addresses of sampled objects' heap count as well. */
static void limit_samples(size_t limit)
{
	struct sy_heap *heap = __atomic_load_n(&sy__sampled, __ATOMIC_ACQUIRE);

	if (heap)
		sy__reservation_resize(heap, limit / SAMPLES_SHARE);
}

void sy__process_limited(int resource, size_t bytes)
{
	if ((resource != RLIMIT_AS && resource != RLIMIT_DATA) || (process && !sy__process_is_own()))
		return;
	sy__system_limited(resource, bytes);
	if (!__atomic_load_n(&the_heap, __ATOMIC_ACQUIRE)) {
		sy__thread_slots_limited(bytes);
	} else if (begin()) {
		sy__thread_slots_limited(bytes);
		sy__slot_areas_reduce(the_heap);
		if (resource == RLIMIT_AS) {
			limit_samples(bytes);
			take_share(bytes, others());
		}
		end();
	}
}

static bool has_room(size_t bytes)
{
	void *room = sy__source_reserve(bytes);

	if (room)
		sy__source_release(room, bytes);
	return room != NULL;
}

/* Cuts the reservation so that a mapping of that size finds room. If the other mappings are not known, it is cut by that size, and the
 * system is asked whether that suffices. */
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
		sy__reservation_resize(the_heap, range(minus(rest, sy__reservation_front(the_heap)) / 2));
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

	if (!begin())
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
	bool made = heap && (make_addresses(heap, bytes) || make_data(heap, bytes));

	return made;
}

void sy__process_trimmed(void)
{
	withdraw();
}

bool sy__process_extend_reservation(void)
{
	size_t limit = limit_now(RLIMIT_AS), before, beside;
	bool further = false;

	if ((limit != SIZE_MAX || sy__source_locks()) && begin()) {
		before = sy__reservation_bytes(the_heap);
		beside = others();
		if (limit == SIZE_MAX || beside == UNKNOWN)
			take_share(limit, beside);
		else
			sy__reservation_resize(the_heap, range(before + more_of(minus(limit - limit / LEFT_OVER, beside + before))));
		further = sy__reservation_bytes(the_heap) > before;
		end();
	}
	return further;
}

/* ---- Locked memory and the user's limit ----------------------------------------------------------------------------- */

static enum sy__locks locks_of(int flags)
{
#ifdef MCL_ONFAULT
	if (flags & MCL_FUTURE && flags & MCL_ONFAULT)
		return SY__LOCKS_TOUCHED;
#endif
	return flags & MCL_FUTURE ? SY__LOCKS_ALL : SY__LOCKS_NONE;
}

/* The system locks all that is mapped, and counts it toward a limit to locked memory. So the reservation is cut to what is used, and
 * grows again afterwards: under such a limit, by as much as might still be locked. */
int sy__process_lock_memory(int flags)
{
	bool stopped = begin();
	long result;

	if (stopped && flags & MCL_CURRENT)
		sy__reservation_resize(the_heap, 0);
	result = sy__system(SYS_mlockall, flags, 0, 0, 0);
	if (!result)
		sy__source_lock_future(locks_of(flags));
	if (stopped) {
		take_share(limit_now(RLIMIT_AS), others());
		end();
	}
	return (int)-result;
}

bool sy__process_may_hold(size_t more)
{
	const struct sy_heap *heap = the_heap;
	struct mapping_counts mappings;
	size_t held;

	if (!most_held || !heap)
		return true;
	sy__mapping_count(&mappings);
	held = (size_t)((heap->counters.slab_pages + heap->counters.large_pages + heap->counters.metadata_pages) << SY_PAGE_SHIFT);
	return more <= minus(most_held, held + mappings.bytes);
}

bool sy__process_is_own(void)
{
	return sy__system_process() == process;
}

/* Another thread may have held the lock, but was changing nothing: a fork waits for the thread that has all slots stopped. */
void sy__process_forked(void)
{
	process = sy__system_is_shut_in() ? 0 : sy__system_process();
	starting = (sy__lock_t)SY__LOCK_INIT;
	sy__source_lock_future(SY__LOCKS_NONE);
}

const char *sy__process_spec(void)
{
	return spec ? spec : sy_policies[0]->name;
}
