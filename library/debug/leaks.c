/*
 * Leaks: live objects to which the program has no pointer any more (Bonwick 1994, section 6.7, does this from outside, by age alone).
 *
 * A conservative mark, as a garbage collector's (Boehm and Weiser 1988). Whatever looks like the address of a byte of an object may be a
 * pointer to it. The search reaches the objects to which a root has such a word, then those to which reached objects have one, and so on.
 * The rest is lost. Roots are all of the program's writable memory (roots.c) except the heap's own pages: these hold the objects, and the
 * bookkeeping of heap and checks, which points to every object.
 *
 * So a reported leak is a real one, unless the program hides its pointers (in files, or by changing bits of them). A leak may stay
 * unreported where an old pointer, or a number that looks like one, is still in memory.
 *
 * Objects that are reached and older than a given age are possible leaks, as Bonwick's are.
 *
 * Memory: 32 bytes for each object, mapped for the search. Time: a million objects take a fraction of a second.
 */
#include "leaks.h"

#include "report.h"
#include "core/debug/debug.h"
#include "core/page_interface.h"
#include "roots.h"
#include "spec.h"
#include "text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MOST_GROUPS 100u

struct object {
	uintptr_t start, end; /* what a pointer may point to: one past the end, too; not the zone before it, which policies point to */
	struct sy__record *record;
	uint32_t next; /* in the list of those to look into, by number from 1; 0: the end */
	bool reached;
};

struct search {
	struct sy_heap *heap;
	struct object *objects;
	uint32_t count, todo;
	uintptr_t lowest, highest; /* of all objects */
	uintptr_t skip[3][2]; /* from, to: the heap's pages and their descriptors, and the search's own memory */
};

struct group {
	const struct sy__record *example; /* the oldest */
	size_t objects, bytes;
};

/* ---- Marking ------------------------------------------------------------------------------------------------------ */

/* In order of address. */
static void list_objects(struct search *search)
{
	struct sy__record_walk walk = { .depth = 0 };
	struct sy__record *at;

	while ((at = sy__record_next(search->heap->debug, &walk)))
		if (at->state == SY__RECORD_LIVE)
			search->objects[search->count++] =
				(struct object){ (uintptr_t)at->object, (uintptr_t)at->object + at->size + 1, at, 0, false };
	if (!search->count)
		return;
	search->lowest = search->objects[0].start;
	search->highest = search->objects[search->count - 1].end;
}

/* The number of the last object that starts at or below an address, from 1; 0: none does. */
static uint32_t number_of(const struct search *search, uintptr_t address)
{
	uint32_t low = 0, high = search->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (search->objects[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void mark(struct search *search, uintptr_t word)
{
	struct object *object;
	uint32_t number;

	if (word < search->lowest || word >= search->highest)
		return;
	number = number_of(search, word);
	object = &search->objects[number - 1];
	if (!number || word >= object->end || object->reached)
		return;
	object->reached = true;
	object->next = search->todo;
	search->todo = number;
}

/* Addresses that others may write meanwhile, and that checkers of memory have marked as untouchable. */
__attribute__((no_sanitize("address", "thread"))) static void scan(struct search *search, uintptr_t start, uintptr_t end)
{
	start = (start + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
	for (; start + sizeof(uintptr_t) <= end; start += sizeof(uintptr_t))
		mark(search, *(const volatile uintptr_t *)start);
}

/* A root, without the heap's pages, the search's own memory and objects that lie outside of the heap's pages. */
static void scan_root(void *context, uintptr_t start, uintptr_t end)
{
	struct search *search = context;

	for (unsigned i = 0; i < sizeof(search->skip) / sizeof(*search->skip); i++) {
		const uintptr_t *skip = search->skip[i];

		if (skip[0] >= end || skip[1] <= start)
			continue;
		if (start < skip[0])
			scan_root(context, start, skip[0]);
		if (end > skip[1])
			scan_root(context, skip[1], end);
		return;
	}
	while (start < end) {
		uint32_t next = number_of(search, start);
		uintptr_t stop = next < search->count && search->objects[next].start < end ? search->objects[next].start : end;

		if (next && search->objects[next - 1].end > start) {
			start = search->objects[next - 1].end;
			continue;
		}
		scan(search, start, stop);
		start = stop;
	}
}

static void scan_reached(struct search *search)
{
	while (search->todo) {
		const struct object *object = &search->objects[search->todo - 1];
		const struct sy__record *record = object->record;

		search->todo = object->next;
		scan(search, (uintptr_t)record->object, (uintptr_t)record->object + record->size);
	}
}

/* ---- Forks -------------------------------------------------------------------------------------------------------- */

/* A child has not got the registers of its parent's other threads, and maybe not their stacks. What they had allocated is the parent's to
 * tell. */
static struct {
	uint64_t time, thread; /* when this process was forked, and by whom; 0: it was not */
} fork_seen;

static __thread uint64_t forking __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
	forking = sy__debug_program.thread();
}

static void in_child(void)
{
	fork_seen.time = sy__now();
	fork_seen.thread = forking;
}

static bool is_of_another_thread_before_the_fork(const struct sy__record *record)
{
	return record->allocated < fork_seen.time && record->allocator != fork_seen.thread;
}

/* ---- Telling ------------------------------------------------------------------------------------------------------ */

/* Adds an object to the group of those that the same stack allocated; without stacks, of the same cache. */
static unsigned add_to_group(struct group *groups, unsigned count, const struct sy__record *record)
{
	unsigned i = 0;

	while (i < count && (groups[i].example->allocation_stack != record->allocation_stack || groups[i].example->cache != record->cache))
		i++;
	if (i == MOST_GROUPS)
		return count;
	if (i == count)
		groups[i] = (struct group){ .example = record };
	if (record->allocated < groups[i].example->allocated)
		groups[i].example = record;
	groups[i].objects++;
	groups[i].bytes += record->size;
	return i == count ? count + 1 : count;
}

static int larger_first(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	return (left->bytes < right->bytes) - (left->bytes > right->bytes);
}

static bool is_asked_for(const struct object *object, uint64_t now, uint64_t age)
{
	return object->record->checks & SY_DEBUG_LEAKS && !is_of_another_thread_before_the_fork(object->record) && (!object->reached || (age && now - object->record->allocated >= age));
}

static size_t tell(struct search *search, bool reached, uint64_t age)
{
	struct group groups[MOST_GROUPS];
	uint64_t now = sy__now();
	unsigned count = 0;
	size_t objects = 0;

	for (uint32_t i = 0; i < search->count; i++) {
		const struct object *object = &search->objects[i];

		if (object->reached != reached || !is_asked_for(object, now, age))
			continue;
		objects++;
		count = add_to_group(groups, count, object->record);
	}
	qsort(groups, count, sizeof(*groups), larger_first);
	for (unsigned i = 0; i < count; i++) {
		struct sy__finding finding = { .kind = SY_BUG_LEAK, .known = true, .record = *groups[i].example };

		finding.address = finding.record.object;
		finding.possible = reached;
		sy__bug_tell_leak(search->heap, &finding, groups[i].objects, groups[i].bytes);
	}
	return objects;
}

/* ---- The search --------------------------------------------------------------------------------------------------- */

/* Nothing else of the checks runs meanwhile, as all threads are stopped while this one has the lock. */
static SY__OUT_OF_LINE size_t search_from(struct sy_heap *heap, const struct sy__stack_start *start, uint64_t age)
{
	const struct sy_pages_base *pages = sy__pages_base(heap);
	struct search search = { .heap = heap };
	size_t bytes, lost = 0;
	bool complete = false;

	sy__lock(&heap->debug->lock);
	bytes = (heap->debug->records + 1) * sizeof(struct object);
	search.objects = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (search.objects != MAP_FAILED) {
		search.skip[0][0] = (uintptr_t)pages->memory;
		search.skip[0][1] = search.skip[0][0] + (uintptr_t)(pages->known << SY_PAGE_SHIFT);
		search.skip[1][0] = (uintptr_t)pages->table;
		search.skip[1][1] = (uintptr_t)(pages->table + pages->page_count);
		search.skip[2][0] = (uintptr_t)search.objects;
		search.skip[2][1] = search.skip[2][0] + bytes;
		list_objects(&search);
		complete = sy__roots_visit(start, scan_root, &search);
		scan_reached(&search);
	}
	sy__unlock(&heap->debug->lock);
	if (search.objects == MAP_FAILED)
		return 0;
	if (complete)
		lost = tell(&search, false, age);
	else
		sy__say("slabyard: leaks are not looked for: /proc/self/maps cannot be read\n");
	if (complete && age)
		tell(&search, true, age);
	munmap(search.objects, bytes);
	return lost;
}

/* Saves the caller's registers in this function's frame, so that a scan of the stack sees them. */
SY__OUT_OF_LINE size_t sy_findleaks(struct sy_heap *heap, uint64_t age_ns)
{
	static struct sy__stack_start start; /* not on the stack, where it would be a root itself */
	const void *volatile here = NULL;

	__builtin_unwind_init();
	if (!heap->debug || !(heap->debug->config.checks & SY_DEBUG_LEAKS))
		return 0;
	if (sy__system_is_shut_in()) {
		sy__say("slabyard: leaks are not looked for: the program may have forbidden itself the system calls for that\n");
		return 0;
	}
	sy__stack_start_find(&start, (const void *)&here);
	return search_from(heap, &start, age_ns);
}

/* ---- At the end of a program -------------------------------------------------------------------------------------- */

static struct sy_heap *watched[SY__MOST_WATCHED]; /* a heap beyond these is not looked at */

static void look_at_all(void);

void sy__debug_watch(struct sy_heap *heap)
{
	static int begun; /* quick_exit calls no destructor */
	struct sy_heap *none = NULL;

	if (!__atomic_exchange_n(&begun, 1, __ATOMIC_RELAXED)) {
		at_quick_exit(look_at_all);
		pthread_atfork(before_fork, NULL, in_child);
	}
	for (unsigned i = 0; i < SY__MOST_WATCHED; i++, none = NULL)
		if (__atomic_compare_exchange_n(&watched[i], &none, heap, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return;
}

void sy__debug_unwatch(struct sy_heap *heap)
{
	for (unsigned i = 0; i < SY__MOST_WATCHED; i++)
		if (__atomic_load_n(&watched[i], __ATOMIC_ACQUIRE) == heap)
			__atomic_store_n(&watched[i], NULL, __ATOMIC_RELEASE);
}

struct sy_heap *sy__debug_watched(unsigned number)
{
	return __atomic_load_n(&watched[number], __ATOMIC_ACQUIRE);
}

__attribute__((destructor)) static void look_at_all(void)
{
	for (unsigned i = 0; i < SY__MOST_WATCHED; i++) {
		struct sy_heap *heap = sy__debug_watched(i);

		if (!heap)
			continue;
		sy__debug_verify(heap);
		sy_findleaks(heap, 0);
	}
}
