/*
 * Slow calls, and the slots of threads without one.
 *
 * A fast call (sy__call_begin, inline in user.h) stores `busy`, loads `slot_offset`, works on that slot, and clears `busy`. A slow call
 * also moves `state` from OUTSIDE to INSIDE and back by compare-and-exchange, and sets `slot_offset` to the dummy slot meanwhile. So a
 * constructor that calls back misses, comes to sy__call_enter, and is refused.
 *
 * A slow call that meets a stop sleeps until the stop ends, and takes no lock for that. Were there a lock to take in turn, most turns
 * of hundreds of threads would be those of threads without a processor.
 *
 * Shared slots are for threads for which no slot is free, and for threads past their end (destructors of thread-specific data that run
 * after ours). Each has a lock, for one call at a time. `slot_offset` of such a thread is the dummy for good. Slot SHARED is one. The
 * others, the last slots of all, are in use only once all slots have had owners. A thread looks at all of them some times, and then
 * sleeps for one. The end of a call wakes a thread only if one sleeps for that slot, and only one: were all woken, nearly all calls
 * would make a system call.
 */
#define _GNU_SOURCE /* syscall */
#include "threads.h"

#define LOOKS_FOR_SHARED 127u /* at shared slots: too few to give the processor away */

struct sy__shared_slot sy__shared[SY_SHARED_SLOTS];

/* Relaxed: the count comes before, and changes after. */
void sy__sleep_while_stopped(void)
{
	unsigned count = sy__event_count(&sy__slots.resumed);

	if (__atomic_load_n(&sy__slots.slot[SHARED].stopped, __ATOMIC_RELAXED))
		sy__event_wait(&sy__slots.resumed, count);
}

/* Another thread works on this one's slot. Sleeps until that has ended. */
static void begin_after_stop(struct sy__thread *self)
{
	unsigned count = sy__event_count(&sy__slots.resumed);

	sy__call_end();
	while (!sy__state_change(self, OUTSIDE, INSIDE)) {
		sy__event_wait(&sy__slots.resumed, count);
		count = sy__event_count(&sy__slots.resumed);
	}
}

/* ---- Shared slots ---------------------------------------------------------------------------------------------------- */

static bool is_shared(unsigned slot)
{
	return slot == SHARED || slot > sy__last_owned();
}

/* Where a thread looks first. */
static unsigned first_shared(const struct sy__thread *self)
{
	return (unsigned)((uintptr_t)self >> 12) % sy__shared_slots();
}

/* Takes a shared slot that is free. Threads that run at once are few, so most find one at once. */
static bool try_shared(struct sy__thread *self)
{
	unsigned count = sy__shared_slots(), first = first_shared(self);

	for (unsigned i = 0; i < count; i++) {
		unsigned index = (first + i) % count;

		if (!sy__wakeful_try(&sy__shared[index].lock))
			continue;
		self->slot = sy__shared_slot(index);
		return true;
	}
	return false;
}

/* Sleeps until the slot at which it looks first is left, or takes another one that is free after all. */
static void sleep_for_shared(struct sy__thread *self)
{
	unsigned index = first_shared(self);

	while (!sy__wakeful_ask(&sy__shared[index].lock)) {
		if (try_shared(self))
			return;
		sy__wakeful_sleep(&sy__shared[index].lock);
	}
	self->slot = sy__shared_slot(index);
}

/* The locks are unfair: in a queue, hundreds of threads would wait for each other's turns on a processor. A forking thread has all of
 * these locks already. */
static SY__COLD void take_shared(struct sy__thread *self)
{
	unsigned looks = 0;

	if (self->stops)
		self->slot = SHARED;
	while (self->slot == NO_SLOT && !try_shared(self)) {
		sy__sleep_while_stopped();
		looks = sy__look_again(looks);
		if (looks >= LOOKS_FOR_SHARED)
			sleep_for_shared(self);
	}
}

static SY__COLD void leave_shared(struct sy__thread *self)
{
	unsigned slot = self->slot;

	self->slot = NO_SLOT;
	self->holds_at_lock = false;
	if (self->stops)
		return;
	sy__wakeful_unlock(&sy__shared[slot == SHARED ? 0 : sy__slot_count() - slot].lock);
}

/* ---- Slow calls ------------------------------------------------------------------------------------------------------ */

bool sy__call_enter(unsigned *slot)
{
	struct sy__thread *self = &sy__self;

	if (sy__unlikely(sy__in_call(self)))
		return false;
	if (sy__unlikely(self->slot == NO_SLOT))
		sy__attach(self);
	if (sy__unlikely(__atomic_load_n(&sy__slots.handlers, __ATOMIC_RELAXED)) && self->slot != NO_SLOT && !self->stops)
		sy__hold_signals(self);
	if (sy__unlikely(!sy__state_change(self, OUTSIDE, INSIDE)))
		begin_after_stop(self);
	sy__show(self, SY__DUMMY_OFFSET);
	self->calls++;
	if (sy__unlikely(self->slot == NO_SLOT)) {
		take_shared(self);
		self->holds_at_lock = !self->holds_signals && !self->stops && sy__signals_may_keep_others(self);
	}
	*slot = self->slot;
	return true;
}

void sy__call_leave(void)
{
	struct sy__thread *self = &sy__self;

	if (sy__unlikely(is_shared(self->slot)))
		leave_shared(self);
	else
		sy__show_own(self, self->slot);
	if (sy__unlikely(!sy__state_change(self, INSIDE, OUTSIDE)))
		__atomic_store_n(&self->state, STOPPED, __ATOMIC_RELEASE);
	sy__call_end();
	if (sy__unlikely(self->holds_signals) && !self->stops) /* a forking thread lets them in later */
		sy__let_signals_in(self);
}

unsigned sy__calls(void)
{
	return sy__self.calls;
}

bool sy__watch(bool on)
{
	bool before = sy__self.watches;

	sy__self.watches = on;
	return before;
}
