/*
 * The deferred queue: memory that a policy may free only after an RCU grace period.
 *
 * In Linux, readers may look at an object of an RCU-typesafe cache without a reference, so its memory must keep its type
 * until every reader that could have found the object is done. Policies queue such memory here. An entry takes 16 bytes, and fits
 * where a kernel has its rcu_head. In a kernel a grace period ends when every CPU has passed a quiescent state; here it is a span
 * of time, sy_heap.grace_ns on the platform's clock, which a replay sets from its trace. A grace of 0 ends at the next tick. In a
 * program whose readers announce themselves (library/rcu.c), numbered grace periods take the place of time.
 *
 * All entries of a heap wait equally long, so the order of arrival is the order of due times, and a queue suffices: add at the
 * end, take from the front. Nothing runs on its own. The heap's driver calls sy_heap_tick, which costs one load while nothing
 * waits.
 *
 * Invariants: due times never decrease along the queue; the last entry's next is NULL; counters.deferred is the length.
 *
 * Lock: sy_heap.deferred_lock, held for a few instructions and never across a call. grace_passed runs without it, and may queue
 * again. A relaxed load of deferred_first tells without the lock whether anything waits: a tick that sees an entry takes the lock before it
 * follows it, and one that misses a new entry leaves it to a later tick.
 */
#include "deferred.h"

/* A grace period that would end after UINT64_MAX never ends. */
static uint64_t grace_ends(const struct sy_heap *heap)
{
	uint64_t now;

	if (heap->grace)
		return heap->grace->wanted();
	now = sy__now();
	return heap->grace_ns < UINT64_MAX - now ? now + heap->grace_ns : UINT64_MAX;
}

void sy__defer(struct sy_heap *heap, struct sy_deferred *entry)
{
	entry->next = NULL;
	sy__lock(&heap->deferred_lock);
	entry->due = grace_ends(heap);
	if (heap->deferred_last)
		heap->deferred_last->next = entry;
	else
		__atomic_store_n(&heap->deferred_first, entry, __ATOMIC_RELAXED);
	heap->deferred_last = entry;
	heap->counters.deferred++;
	sy__unlock(&heap->deferred_lock);
}

/* Takes the entries that are due off the queue, as a chain through next. */
static struct sy_deferred *take_due(struct sy_heap *heap)
{
	struct sy_deferred *first, *last = NULL;
	uint64_t now = heap->grace ? heap->grace->passed() : sy__now();

	sy__lock(&heap->deferred_lock);
	first = heap->deferred_first;
	for (struct sy_deferred *at = first; at && at->due <= now; at = at->next) {
		last = at;
		heap->counters.deferred--;
	}
	if (last) {
		__atomic_store_n(&heap->deferred_first, last->next, __ATOMIC_RELAXED);
		if (!last->next)
			heap->deferred_last = NULL;
		last->next = NULL;
	}
	sy__unlock(&heap->deferred_lock);
	return last ? first : NULL;
}

/* Hands a chain of entries to the policy. */
static void pass_on(struct sy_heap *heap, struct sy_deferred *entry)
{
	while (entry) {
		struct sy_deferred *next = entry->next;

		heap->policy->grace_passed(heap, entry);
		entry = next;
	}
}

void sy__deferred_run(struct sy_heap *heap)
{
	pass_on(heap, take_due(heap));
}

struct sy_deferred *sy__deferred_extract(struct sy_heap *heap,
                                         bool (*wanted)(const struct sy_deferred *, const void *context),
                                         const void *context)
{
	struct sy_deferred *taken = NULL, **taken_end = &taken, *kept = NULL, **kept_end = &kept, *last = NULL;

	sy__lock(&heap->deferred_lock);
	for (struct sy_deferred *at = heap->deferred_first; at; at = at->next) {
		if (wanted(at, context)) {
			*taken_end = at;
			taken_end = &at->next;
			heap->counters.deferred--;
		} else {
			*kept_end = at;
			kept_end = &at->next;
			last = at;
		}
	}
	*taken_end = NULL;
	*kept_end = NULL;
	__atomic_store_n(&heap->deferred_first, kept, __ATOMIC_RELAXED);
	heap->deferred_last = last;
	sy__unlock(&heap->deferred_lock);
	return taken;
}

void sy__deferred_finish(struct sy_heap *heap, bool (*wanted)(const struct sy_deferred *, const void *context),
                         const void *context)
{
	pass_on(heap, sy__deferred_extract(heap, wanted, context));
}

const char *sy__deferred_check(struct sy_heap *heap)
{
	const struct sy_deferred *last = NULL;
	const char *wrong = NULL;
	uint64_t length = 0;

	sy__lock(&heap->deferred_lock);
	for (const struct sy_deferred *at = heap->deferred_first; at && length <= heap->counters.deferred; at = at->next) {
		if (last && at->due < last->due)
			wrong = "deferred queue: not in order of due time";
		last = at;
		length++;
	}
	if (length != heap->counters.deferred)
		wrong = "deferred queue: its length is not what is counted";
	else if (last != heap->deferred_last)
		wrong = "deferred queue: its last entry is not where it is said to be";
	sy__unlock(&heap->deferred_lock);
	return wrong;
}
