/*
 * Visits: work that a policy does for each CPU slot from time to time, like emptying what nobody used lately.
 *
 * A kernel has a timer on each CPU for that. Here is no thread and no timer: the heap's tick_due says when the next
 * visit is due, whoever drives the heap calls sy_heap_tick, and policy->tick comes here. Visits are due at times of
 * their own, whenever the tick comes: a tick that comes late makes all visits that were missed, in order and as of
 * their times, so that what happens follows from the clock alone. The slots' visits are spread evenly over the
 * period.
 *
 * In a heap of threads the slots are visited that the caller may touch: its own, and those that it could claim (here.c). In a
 * kernel, whose slots are its CPUs, it ticks on the CPU that tick_slot names.
 *
 * After a long silence there is nothing left to do for most of the visits that were missed. Of more than CATCH_UP
 * periods only the last so many are made up for.
 *
 * Lock: sy_heap.lock, from the look at the time to the end of the last visit, as the visits walk the list of caches.
 * sy_heap_tick looks without it: where it reads half of an old time and half of a new one (struct sy_time), it comes too
 * early and finds nothing due here, or leaves the visits to the next tick.
 */
#include "visits.h"

#define CATCH_UP 256u

/* The time of the next visit, if it was missed for longer than is made up for. */
static uint64_t skip_silence(uint64_t due, uint64_t period, uint64_t now)
{
	uint64_t late = now - due;

	return late > CATCH_UP * period ? due + (late / period - CATCH_UP) * period : due;
}

void sy__visits_run(struct sy_heap *heap, struct sy__visits *visits,
                    void (*visit)(struct sy_heap *, unsigned slot, uint64_t now))
{
	uint64_t now = sy__now(), due;

	sy__lock(&heap->lock);
	due = sy__time(&heap->tick_due);
	if (due <= now)
		due = skip_silence(due, visits->period, now);
	while (due <= now) {
		if (!heap->concurrent || sy__slot_mine(visits->slot))
			visit(heap, visits->slot, due);
		visits->slot = (visits->slot + 1) % heap->slots;
		due += visits->period / heap->slots;
		heap->tick_slot = visits->slot;
		sy__time_set(&heap->tick_due, due);
	}
	sy__unlock(&heap->lock);
}

void sy__visits_start(struct sy_heap *heap, struct sy__visits *visits, uint64_t period)
{
	visits->period = period;
	visits->slot = 0;
	sy__time_set(&heap->tick_due, sy__now() + SY__SECOND);
}
