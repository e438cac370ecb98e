/*
 * How a thread stops all slots, so that it may work on them as a replay would.
 *
 * It holds the table's lock throughout, and takes the locks of the shared slots as well. The other slots' owners are its victims.
 *
 *   1. It sets each victim's state from OUTSIDE to STOPPED. If the victim is INSIDE, it sets the state to STOPPING, which the victim's
 *      sy__call_leave answers with STOPPED in place of OUTSIDE. From now on the victim's slow calls wait, as they need OUTSIDE.
 *   2. It sets each victim's `slot_offset` to the dummy. Fast calls that load it from now on miss, and become slow calls.
 *   3. It has all victims execute a fence, by one membarrier.
 *   4. It waits until each victim's `busy` is 0.
 *   5. If a victim's call noted an object meanwhile, it drops the note and goes back to 3. This happens once at most. Now the slots are
 *      stopped.
 *   6. To resume, it sets `slot_offset` back to the slot, then state to OUTSIDE. If all calls of a thread are to be slow (sy__watch),
 *      `slot_offset` stays the dummy, as it does when such a thread's slow call ends.
 *
 * Why step 4 suffices. Owner: store busy, load slot_offset. Stopping thread: store slot_offset, load busy. If both loads returned old
 * values, both would work on the slot at once. A processor may indeed do the owner's load before its store is visible. A fence in
 * between would prevent that, and cost as much as the rest of a fast call. Instead step 3 has every processor that runs a thread
 * of this process execute the fence, at some point between the stopping thread's store and its load. If that point comes before the
 * owner's load of slot_offset, the load sees the dummy. If it comes after, the store of busy, earlier in program order, is visible
 * to the stopping thread. A signal fence keeps the compiler from reordering the two. tests/model/ checks all interleavings, with store
 * buffers.
 *
 * Why step 5. A call that begins with an object reads `last` instead of `slot_offset`. Step 2 resets that word too, and the
 * argument above holds for it. But a call that loaded its slot from `slot_offset` earlier may note an object after step 2. After
 * step 4 all such calls have ended, and later ones find the dummy, which hands out no objects to note. So dropping the notes once
 * more suffices.
 *
 * Memory orders. The owner's writes to the slot's state reach the stopping thread through busy = 0 (release; acquire in step 4), and
 * those of slow calls through state (release in sy__call_leave, acquire in step 1). The stopping thread's writes come back through
 * slot_offset (release in step 6, acquire in sy__call_begin), which the owner loads before it notes an object again, and through state
 * (release in step 6, acquire in sy__call_enter).
 *
 * Waiting. A thread that stops slots waits a moment for those that still sleep since the last stop. So a thread that stops the slots again
 * and again lets others run in between. sy__stop_enter waits for slow calls without a bound. That wait ends: the stopping thread holds
 * only sy__slots.lock and shared locks, was outside before, and no thread inside a call waits for either. sy__stop_enter_soon gives up after
 * a while. No stop waits for a fast call for ever: it leaves out that slot.
 *
 * sy__stop_try may come with any lock held, from deep in a call that ran out of memory. It stops nothing while threads sleep since
 * the last stop, only tries sy__slots.lock, looks at each victim for a moment, and leaves out those that do not come. It never yields: a
 * victim that does not come at once is likely without a processor, and among thousands of threads a yield lasts until the others have had
 * their turns, with nearly all slots stopped meanwhile. All threads may be in calls, as when a program runs out of memory. So each victim
 * that does not come halves the moment that the next ones get.
 *
 * Without membarrier (an old kernel, or a sandbox that forbids it) steps 3 and 4 are impossible. Then a stop does not reach the slots
 * of other threads, which keep their contents until they end. Step 1 still keeps slow calls out, so a fork is safe.
 */
#define _GNU_SOURCE /* syscall */
#include "threads.h"

#define PATIENCE 127u /* looks at a victim by a stop that must not wait: too few to give the processor away */

/* linux/membarrier.h, which old systems lack. */
#define MEMBARRIER_PRIVATE_EXPEDITED (1 << 3)
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED (1 << 4)

/* ---- The fence for all threads ----------------------------------------------------------------------------------- */

#ifdef __NR_membarrier
static bool membarrier(int command)
{
	return sy__system(__NR_membarrier, command, 0, 0, 0) == 0;
}
#else
static bool membarrier(int command)
{
	(void)command;
	return false;
}
#endif

/* Whether the kernel lets this process fence. Registers it, before its first stop with other threads: that takes some milliseconds,
 * so no lock of the table is held. A program with one thread makes no such call, as a sandbox might end it for that. */
static void get_fence(void)
{
	if (__atomic_load_n(&sy__slots.owned, __ATOMIC_RELAXED) > 1 && !__atomic_load_n(&sy__slots.fences, __ATOMIC_RELAXED) &&
	    !sy__system_is_shut_in())
		__atomic_store_n(&sy__slots.fences, membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED), __ATOMIC_RELAXED);
}

/* Has every thread execute a fence. */
static bool fence_all(void)
{
	return !sy__system_is_shut_in() && membarrier(MEMBARRIER_PRIVATE_EXPEDITED);
}

/* ---- The steps. With the table's lock held --------------------------------------------------------------------------- */

/* Steps 1 and 2. Waits for the victim's slow call to end; false: it did not in time, and goes on. */
static bool stop_slow_calls(struct sy__thread *victim, unsigned patience)
{
	unsigned looks = 0;

	while (!sy__state_change(victim, OUTSIDE, STOPPED)) {
		sy__state_change(victim, INSIDE, STOPPING);
		while (sy__state_of(victim) == STOPPING && looks < patience)
			looks = sy__look_again(looks);
		if (sy__state_of(victim) == STOPPED)
			break;
		if (looks >= patience && sy__state_change(victim, STOPPING, INSIDE))
			return false;
	}
	sy__show(victim, SY__DUMMY_OFFSET);
	return true;
}

/* Step 4. False: the victim is still in a fast call. */
static bool fast_call_ended(const struct sy__thread *victim, unsigned patience)
{
	unsigned looks = 0;

	while (__atomic_load_n(&victim->busy, SY__STOP_LOAD)) {
		if (looks >= patience)
			return false;
		looks = sy__look_again(looks);
	}
	return true;
}

/* Whether a stopped slot has an owner. */
static bool has_victims(void)
{
	for (unsigned slot = SHARED + 1; slot <= SHARED + sy__slots.owned; slot++)
		if (sy__slots.slot[slot].stopped && sy__slots.slot[slot].owner)
			return true;
	return false;
}

/* Steps 3 and 4. After each victim that does not come the next get less time. */
static void wait_for_fast_calls(unsigned patience)
{
	bool fenced = has_victims() && fence_all();

	for (unsigned slot = SHARED + 1; slot <= SHARED + sy__slots.owned; slot++) {
		if (!sy__slots.slot[slot].stopped || !sy__slots.slot[slot].owner)
			continue;
		sy__slots.slot[slot].stopped = fenced && fast_call_ended(sy__slots.slot[slot].owner, patience);
		patience = sy__slots.slot[slot].stopped ? patience : patience / 2;
	}
}

/* Step 5. Whether there was a note. */
static bool forget_notes(void)
{
	bool any = false;

	for (unsigned slot = SHARED + 1; slot <= SHARED + sy__slots.owned; slot++) {
		struct sy__thread *owner = sy__slots.slot[slot].stopped ? sy__slots.slot[slot].owner : NULL;

		if (!owner || __atomic_load_n(&owner->last, __ATOMIC_RELAXED) == SY__NOTHING)
			continue;
		sy__show(owner, SY__DUMMY_OFFSET);
		any = true;
	}
	return any;
}

/* Steps 1 and 2 for all slots. Slots without an owner need no more. False: some slow call goes on. After each such call the next get less
 * time, as all threads may have been stopped by signals in the middle of theirs. */
static bool stop_all_slow_calls(struct sy__thread *self, unsigned patience)
{
	bool all = true;

	sy__forget_the_dead(self);
	for (unsigned slot = SHARED + 1; slot <= SHARED + sy__slots.owned; slot++) {
		struct sy__thread *owner = sy__slots.slot[slot].owner;
		bool stopped = !owner || sy__slots.slot[slot].lost || owner == self || stop_slow_calls(owner, patience);

		sy__slots.slot[slot].stopped = !sy__slots.slot[slot].lost && owner != self && stopped;
		patience = stopped ? patience : patience / 2;
		all &= stopped;
	}
	return all;
}

/* Steps 3 to 5, for the slots whose slow calls have stopped. */
static void stop_fast_calls(struct sy__thread *self, unsigned patience)
{
	do
		wait_for_fast_calls(patience);
	while (forget_notes());
	self->stops = true;
}

/* Step 6. */
static void resume_all(struct sy__thread *self)
{
	self->stops = false;
	sy__forget_the_dead(self);
	for (unsigned slot = SHARED + 1; slot <= SHARED + sy__slots.owned; slot++) {
		struct sy__thread *owner = sy__slots.slot[slot].owner;

		sy__slots.slot[slot].stopped = false;
		if (!owner || sy__state_of(owner) != STOPPED)
			continue;
		owner->watches |= self->watches;
		sy__show_own(owner, slot);
		__atomic_store_n(&owner->state, OUTSIDE, __ATOMIC_RELEASE);
	}
}

/* With both locks held. Relaxed: readers without them only choose how to wait. */
static void set_shared_stopped(unsigned index, bool stopped)
{
	__atomic_store_n(&sy__slots.slot[sy__shared_slot(index)].stopped, stopped, __ATOMIC_RELAXED);
}

/* Stops all shared slots. False: a thread that has one did not give it back in time. */
static bool stop_shared(unsigned patience)
{
	for (unsigned index = 0; index < sy__shared_slots(); index++) {
		unsigned looks = 0;

		while (!sy__wakeful_try(&sy__shared[index].lock)) {
			if (looks >= patience)
				return false;
			looks = sy__look_again(looks);
		}
		set_shared_stopped(index, true);
	}
	return true;
}

/* ---- From inside a call ---------------------------------------------------------------------------------------------- */

/* Some have not got on since the last stop. They come first. Relaxed: a figure. */
static bool threads_sleep(void)
{
	return __atomic_load_n(&sy__slots.resumed.sleepers, __ATOMIC_RELAXED);
}

bool sy__stop_try(void)
{
	struct sy__thread *self = &sy__self;

	if (self->stops || !sy__in_call(self))
		return false;
	get_fence();
	sy__hold_signals(self);
	if (threads_sleep() || !sy__queue_try(&sy__slots.lock))
		return false;
	stop_all_slow_calls(self, PATIENCE);
	for (unsigned index = 0; index < sy__shared_slots(); index++)
		if (self->slot != sy__shared_slot(index) && sy__wakeful_try(&sy__shared[index].lock))
			set_shared_stopped(index, true);
	stop_fast_calls(self, PATIENCE);
	return true;
}

void sy__stop_end(void)
{
	resume_all(&sy__self);
	for (unsigned index = 0; index < sy__shared_slots(); index++)
		if (sy__slots.slot[sy__shared_slot(index)].stopped) {
			set_shared_stopped(index, false);
			sy__wakeful_unlock(&sy__shared[index].lock);
		}
	sy__queue_unlock(&sy__slots.lock);
	sy__event_happens(&sy__slots.resumed);
}

bool sy__slot_mine(unsigned slot)
{
	const struct sy__thread *self = &sy__self;

	return (self->slot == slot && sy__in_call(self)) || (self->stops && sy__slots.slot[slot].stopped);
}

/* ---- From outside of calls ------------------------------------------------------------------------------------------- */

void sy__resume_outside(struct sy__thread *self)
{
	sy__stop_end();
	sy__let_signals_in(self);
}

/* A thread may have been stopped in the middle of a fast call, by a signal. Its slot is left out after a while. */
bool sy__stop_outside(struct sy__thread *self, unsigned patience)
{
	if (self->slot == NO_SLOT)
		sy__attach(self);
	get_fence();
	sy__hold_signals(self);
	for (unsigned looks = 0; threads_sleep() && looks < patience && looks < SOON;)
		looks = sy__look_again(looks);
	sy__queue_lock(&sy__slots.lock);
	if (!stop_shared(patience) || !stop_all_slow_calls(self, patience)) {
		sy__resume_outside(self);
		return false;
	}
	stop_fast_calls(self, SOON);
	return true;
}

static bool stop_enter(unsigned *slot, unsigned patience)
{
	struct sy__thread *self = &sy__self;

	if (self->stops || sy__in_call(self) || !sy__stop_outside(self, patience))
		return false;
	/* A plain store will do: to stop this thread, others need the lock. */
	__atomic_store_n(&self->state, INSIDE, __ATOMIC_RELAXED);
	sy__show(self, SY__DUMMY_OFFSET);
	*slot = self->slot == NO_SLOT ? SHARED : self->slot;
	return true;
}

bool sy__stop_enter(unsigned *slot)
{
	return stop_enter(slot, FOREVER);
}

bool sy__stop_enter_soon(unsigned *slot)
{
	return stop_enter(slot, SOON);
}

void sy__stop_leave(void)
{
	struct sy__thread *self = &sy__self;

	if (self->slot != NO_SLOT)
		sy__show_own(self, self->slot);
	__atomic_store_n(&self->state, OUTSIDE, __ATOMIC_RELEASE);
	sy__call_end();
	sy__resume_outside(self);
}

/* Fast calls that the stop has left out end, however long that takes, and the stop is made again with their slots. Without membarrier
 * their beginnings are seen a moment later. */
void sy__stop_locked_calls(struct sy__thread *self)
{
	bool left_out = false;

	for (unsigned slot = SHARED + 1; slot <= SHARED + sy__slots.owned; slot++) {
		struct sy__thread *owner = sy__slots.slot[slot].owner;

		if (!owner || owner == self || sy__slots.slot[slot].stopped || sy__slots.slot[slot].lost)
			continue;
		if (!left_out && !fence_all())
			sy__look_again(SOON - 1);
		left_out = true;
		fast_call_ended(owner, FOREVER);
		sy__slots.slot[slot].stopped = true;
	}
	if (left_out)
		stop_fast_calls(self, SOON);
}
