/*
 * Visits: periodic work of a policy on each CPU slot, such as emptying what nobody used lately.
 *
 * A kernel has a timer on each CPU for that. Here the heap's tick_due says when the next visit is due, the heap's driver calls
 * sy_heap_tick, and policy->tick calls sy__visits_run. Each visit has a due time of its own, independent of when ticks come. A
 * late tick makes all missed visits, in order and as of their due times, so the clock alone decides what happens. Visits of
 * the slots are spread evenly over the period.
 *
 * In a heap of threads the caller visits the slots that it may touch: its own and those that it could stop (this_slot.c). In a kernel
 * the CPU that tick_slot names makes the visit.
 *
 * After a long silence most missed visits would find nothing left to do. So only the last CATCH_UP periods are made up for.
 *
 * Lock: sy_heap.lock, from reading the time to the end of the last visit, as visits walk the list of caches. sy_heap_tick reads
 * the time without it. It may read half of an old time and half of a new one (struct sy_time); then it calls too early and
 * nothing is due, or it leaves the visits to the next tick.
 */
#include "visits.h"

#define CATCH_UP 256u

/* Due time of the first visit to make: at most CATCH_UP periods ago. */
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
