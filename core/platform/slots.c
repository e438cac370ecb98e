/*
 * Which thread owns which slot.
 *
 * A thread gets a slot at its first slow call. It gets the lowest free one, so that few are in use. But of the first SY_WARM_SLOTS
 * slots, in which policies leave things for the next owner, a thread gets the one whose last owner had its thread-local storage at the
 * same address. A C library gives the stack of a joined thread, with that storage, to the next thread. That thread likely continues
 * the first one's work, as in a pool of workers, of which several may end and begin at once.
 *
 * A thread gives its slot back when it ends, by a destructor of thread-specific data. Destructors that run after ours may allocate
 * again. They use shared slots (calls.c).
 *
 * A program with one thread makes no system call that it would not make without us, as a sandbox might end it for that. So the kernel is
 * asked about the first thread (liveness.c) when a second one comes.
 *
 * Memory orders. The owner of a slot changes under the lock, and readers without the lock get a hint. `owned` is read relaxed: a slot that
 * it does not include yet has at most the first state of its owner, which no other thread may touch; stops read it under the lock.
 * Seeing AWAKE acquires the key and the handlers that the waking thread released.
 */
#define _GNU_SOURCE /* syscall */
#include "threads.h"

#include <pthread.h>
#include <sys/resource.h>

#define LOOKS_FOR_SLOT 512u /* at the table's lock */

__thread struct sy__thread sy__self = { .slot_offset = SY__DUMMY_OFFSET, .last = SY__NOTHING, .slot = NO_SLOT };

struct sy__slots sy__slots;
const void *const sy__slots_table = &sy__slots;

static void (*on_slot_end)(unsigned slot); /* NULL: not registered */
static pthread_key_t at_end; /* its destructor runs when a thread ends */
static int library; /* ASLEEP, AWAKE, UNLOADED, or the process in which a thread is waking it */

enum { AWAKE = -1, ASLEEP, UNLOADED = -2 };

_Static_assert(SY__DUMMY_OFFSET == -(ptrdiff_t)SY_SLOT_STRIDE, "the dummy's state stands in front of slot 0's");

/* ---- How many there are -------------------------------------------------------------------------------------------- */

unsigned sy__thread_slots(void)
{
	return sy__slot_count();
}

static bool reduce(unsigned most)
{
	unsigned slots = most < SY_FEW_THREAD_SLOTS ? SY_FEWEST_THREAD_SLOTS : SY_FEW_THREAD_SLOTS;

	if (slots > most || slots >= sy__slot_count() || sy__slots.shares_more || sy__slots.owned > slots - sy__shared_of(slots))
		return false;
	__atomic_store_n(&sy__slots.most, slots, __ATOMIC_RELAXED);
	return true;
}

/* Locks may be held that come behind the table's. */
bool sy__thread_slots_reduce(unsigned most)
{
	bool reduced;

	if (sy__self.stops || !sy__queue_try(&sy__slots.lock))
		return sy__self.stops && reduce(most);
	reduced = reduce(most);
	sy__queue_unlock(&sy__slots.lock);
	return reduced;
}

static bool reduce_within(uint64_t bytes, bool (*to)(unsigned most))
{
	return (bytes < SY_FEWEST_ADDRESSES && to(SY_FEWEST_THREAD_SLOTS)) || (bytes < SY_FEW_ADDRESSES && to(SY_FEW_THREAD_SLOTS));
}

void sy__thread_slots_limited(uint64_t bytes)
{
	reduce_within(bytes, sy__thread_slots_reduce);
}

unsigned sy__slots_high(void)
{
	return sy__shared_slots() > 1 ? sy__slot_count() : SHARED + 1 + __atomic_load_n(&sy__slots.owned, __ATOMIC_RELAXED);
}

bool sy__slot_unowned(unsigned slot)
{
	return sy__self.slot != slot && !__atomic_load_n(&sy__slots.slot[slot].owner, __ATOMIC_RELAXED);
}

unsigned sy__slots_adopt(const void *theirs, bool (*is_there)(const void *, size_t))
{
	const struct sy__slots *other = theirs;
	unsigned slots, inside = 0;

	if (other->most && other->most < sy__slot_count())
		sy__slots.most = other->most;
	slots = other->owned < sy__last_owned() ? other->owned : sy__last_owned() - 1;
	for (unsigned slot = SHARED + 1; slot <= slots; slot++) {
		const struct sy__thread *owner = other->slot[slot].owner;

		if (owner && is_there(owner, sizeof(*owner)))
			inside += owner->busy || owner->state == INSIDE || owner->state == STOPPING;
	}
	if (sy__slots.owned < slots)
		sy__slots.owned = slots;
	sy__slots.shares_more = sy__slots.shares_more || other->shares_more;
	return inside;
}

/* ---- Owners ---------------------------------------------------------------------------------------------------------- */

/* With the table's lock held. Relaxed: a thread that sees it late goes without a slot for one more call, or searches in vain. */
static void set_full(bool full)
{
	__atomic_store_n(&sy__slots.full, full, __ATOMIC_RELAXED);
}

/* With the table's lock held. Relaxed: readers without the lock get a hint. */
static void set_owner(unsigned slot, struct sy__thread *owner)
{
	__atomic_store_n(&sy__slots.slot[slot].owner, owner, __ATOMIC_RELAXED);
}

void sy__slot_free(unsigned slot)
{
	if (sy__slots.slot[slot].owner)
		sy__slots.slot[slot].last_owner = sy__slots.slot[slot].owner;
	set_owner(slot, NULL);
	sy__slots.lowest = slot < sy__slots.lowest ? slot : sy__slots.lowest;
	set_full(false);
}

/* The calling thread, of that id, owns the slot. Of a thread that is alone the kernel is asked when a second one comes. */
void sy__slot_own(struct sy__thread *self, long id, unsigned slot, bool alone)
{
	set_owner(slot, self);
	sy__slots.slot[slot].id = id;
	sy__slots.slot[slot].robust = false;
	if (!alone) {
		sy__note_robust(slot);
		if (sy__slots.first)
			sy__note_robust(sy__slots.first);
	}
	sy__slots.first = alone ? slot : 0;
}

/* Takes the table's lock, for a moment, for a thread that has or wants a slot. False: not after that many looks. It does not queue: where
 * hundreds of threads begin or end at once, each turn in a queue would be that of a thread without a processor. With signals held. */
static bool lock_table(unsigned patience)
{
	for (unsigned looks = 0; !sy__queue_try(&sy__slots.lock); looks = sy__look_again(looks)) {
		if (looks >= patience)
			return false;
		sy__sleep_while_stopped();
	}
	return true;
}

static void detach(struct sy__thread *self)
{
	sy__hold_signals(self);
	lock_table(FOREVER);
	sy__slot_free(self->slot);
	self->slot = NO_SLOT;
	sy__show(self, SY__DUMMY_OFFSET);
	sy__queue_unlock(&sy__slots.lock);
	sy__let_signals_in(self);
}

void sy__on_slot_end(void (*function)(unsigned slot))
{
	__atomic_store_n(&on_slot_end, function, __ATOMIC_RELAXED);
}

static void tell_slot_end(unsigned slot)
{
	void (*function)(unsigned) = __atomic_load_n(&on_slot_end, __ATOMIC_RELAXED);

	if (function)
		function(slot);
}

/* The thread gets no other slot: other destructors may still run after this one. */
static void thread_ends(void *thread)
{
	struct sy__thread *self = thread;
	unsigned slot;

	self->ending = true;
	if (self->slot == NO_SLOT || !sy__call_enter(&slot))
		return;
	tell_slot_end(slot);
	sy__call_leave();
	detach(self);
}

/* Whether the library is set up, else sets it up. That may allocate memory, by a malloc that may be ours: such a call finds the
 * library waking, as other threads' calls do meanwhile, and goes on without a slot. If a fork came while a thread was waking it,
 * the child starts again. */
static bool awake(void)
{
	int seen = __atomic_load_n(&library, __ATOMIC_ACQUIRE), now;

	if (sy__likely(seen == AWAKE))
		return true;
	now = sy__system_process();
	if (seen == now || seen == UNLOADED || !__atomic_compare_exchange_n(&library, &seen, now, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	reduce_within(sy__system_limit(RLIMIT_AS), reduce);
	reduce_within(sy__system_limit(RLIMIT_DATA), reduce);
	if (pthread_key_create(&at_end, thread_ends) || !sy__fork_watch())
		return false;
	__atomic_store_n(&library, AWAKE, __ATOMIC_RELEASE);
	return true;
}

/* Before there are other threads, which might fork meanwhile. */
__attribute__((constructor)) static void wake(void)
{
	awake();
}

/* A plugin with the library in it is unloaded, and threads that used it end later: their ends must not come to code that is gone. The
 * C library forgets the fork handlers by itself. At the end of a program this runs as well, as late as possible; threads that still
 * run then keep the slots they have. */
__attribute__((destructor(101))) static void unload(void)
{
	int seen = AWAKE;

	if (__atomic_compare_exchange_n(&library, &seen, UNLOADED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		pthread_key_delete(at_end);
}

/* ---- A slot for a thread --------------------------------------------------------------------------------------------- */

/* Above sy__last_owned(): none is free. */
static unsigned free_slot(const struct sy__thread *self)
{
	unsigned slot;

	for (slot = SHARED + 1; slot < SY_WARM_SLOTS; slot++)
		if (sy__slots.slot[slot].last_owner == self && sy__slot_is_free(slot))
			return slot;
	for (slot = sy__slots.lowest > SHARED ? sy__slots.lowest : SHARED + 1; slot <= sy__last_owned() && !sy__slot_is_free(slot); slot++)
		;
	return sy__slots.lowest = slot;
}

/* NO_SLOT: none is free, or others had the lock for long; then the thread goes without for a call. With signals held. */
static unsigned take_free_slot(struct sy__thread *self)
{
	long id = sy__thread_id();
	unsigned slot;

	if (!lock_table(LOOKS_FOR_SLOT))
		return NO_SLOT;
	slot = free_slot(self);
	if (slot <= sy__last_owned()) {
		sy__slot_own(self, id, slot, !sy__slots.owned);
	} else {
		set_full(true);
		__atomic_store_n(&sy__slots.shares_more, true, __ATOMIC_RELAXED);
	}
	if (slot > SHARED + sy__slots.owned && slot <= sy__last_owned())
		__atomic_store_n(&sy__slots.owned, slot - SHARED, __ATOMIC_RELAXED);
	sy__queue_unlock(&sy__slots.lock);
	return slot <= sy__last_owned() ? slot : NO_SLOT;
}

/* Outside a call: pthread_setspecific may allocate, and a thread that stops slots waits for owners that are in a call. */
void sy__attach(struct sy__thread *self)
{
	sy__call_end();
	if (self->ending || self->stops || __atomic_load_n(&sy__slots.full, __ATOMIC_RELAXED) || !awake())
		return;
	if (__atomic_load_n(&sy__slots.owned, __ATOMIC_RELAXED) == 1) /* this is the second thread */
		sy__signals_learn();
	sy__hold_signals(self);
	self->slot = take_free_slot(self);
	sy__let_signals_in(self);
	if (self->slot != NO_SLOT && pthread_setspecific(at_end, self)) {
		self->ending = true;
		detach(self);
	}
}
