/*
 * The slots of threads: who has which, and how others reach it.
 *
 * Every thread that calls the library gets a slot of its own at its first slow call, and gives it back when it ends. A call
 * runs on the caller's slot without a lock. Others touch that slot's state only by a claim, which costs the owner nothing but
 * where it meets one.
 *
 * What the owner does. A fast call (sy__call_begin, inline in user.h) stores `busy`, loads `here`, works on that slot, and
 * clears `busy`. A slow call (sy__call_enter) also moves `state` from OUTSIDE to INSIDE and back by compare-and-exchange, and
 * shows itself the dummy slot meanwhile; a constructor that calls back therefore misses, comes to sy__call_enter, and is refused.
 *
 * What a claimer does, with table.lock held from the first step to the last:
 *
 *   1. each victim's state from OUTSIDE to CLAIMED; of a victim that is INSIDE, to WANTED, which its sy__call_leave answers
 *      with CLAIMED in place of OUTSIDE. From now on the victim's slow calls wait, as they need OUTSIDE.
 *   2. each victim's `here` to the dummy. Its fast calls that load it from now on miss, and become slow calls.
 *   3. one membarrier for all victims.
 *   4. waits until each victim's `busy` is 0.
 *   5. where a victim's call noted an object meanwhile, takes that away and goes back to 3, which happens once. Now the slot is nobody's; the
 *      claimer works on it as a replay would.
 *   6. `here` back to the slot, then state to OUTSIDE. Of a thread that is to watch (sy__watch) `here` stays the dummy, as it does when such
 *      a thread's slow call ends: all its calls are slow then.
 *
 * Why step 4 suffices. Owner: store busy, load here. Claimer: store here, load busy. If both loads read old values, both work on
 * the slot at once. A processor may well do the owner's load before its store is visible; a fence between would prevent it, and
 * cost as much as everything else in a fast call. Step 3 has every processor that runs a thread of this process execute that
 * fence, at some point between the claimer's store and its load. If that point falls before the owner's load of here, the load
 * sees the dummy; if after, the store of busy, which precedes the load in the program, is visible to the claimer. The compiler is
 * kept from reordering the two by a signal fence. tests/model/ goes through all interleavings, with store buffers.
 *
 * Why step 5. A call that begins with an object asks `last` in the place of `here`, and the same holds of that word, which step 2
 * takes away too. But a call that has found its slot in `here` before may note an object after that. When step 4 is done all
 * such calls have ended, and as later ones find the dummy, which hands out nothing, no other object will be noted: to take the
 * notes away once more is enough.
 *
 * Memory orders. The owner's writes to the slot's state come to the claimer by busy = 0 (release; acquire in step 4) and, of slow
 * calls, by state (release in sy__call_leave, acquire in step 1). The claimer's writes come back by here (release in step 6,
 * acquire in sy__call_begin), which the owner loads before it notes an object again, and by state (release in step 6, acquire
 * in sy__call_enter). `here` is written by the owner while it is INSIDE, and by the claimer while the victim is CLAIMED, never
 * by both. Who finds the library AWAKE acquires the key and the handlers that the waking thread released. table.owned is read
 * relaxed: slots that it does not tell of yet have an owner's first things in them, at most, which nobody else may touch, and a
 * claim reads it with the lock.
 *
 * Waiting. table.lock is had in the order of asking, and a slow call that meets a claim begins with that lock: somebody who
 * claims again and again lets the others get on between. Hundreds that begin at once, each to get a slot, sleep the longer the
 * more are before them (sy__queue_lock). sy__claim_enter waits for owners without a bound. It holds table.lock and shared_lock
 * only, was outside before, and no thread inside a call waits for either: hence it ends. sy__slots_claim_try may come with any
 * lock held, from deep in a call that ran out of memory: it tries table.lock, waits a moment for each victim, and leaves out
 * those who don't come. Where all of a program's threads run out of memory at once they wait for each other in vain, in calls
 * that none of them ends. So the moment is shorter after each time that somebody did not come, and of its full length now and
 * then.
 *
 * Which slot. The lowest that is free, so that few are ever in use; but of the first SY_WARM_SLOTS, in which policies leave
 * things for the next owner, the one whose last owner had its thread-specific data at the same address. A C library gives the
 * stack of a thread that was joined, with that data, to one that is created next. The program is likely to go on there with
 * what the first one left, as a pool of workers does; several of which may end and begin at once.
 *
 * Without a slot. Threads beyond SY_THREAD_SLOTS - 1, and threads that are past their end (destructors of thread-specific data
 * that run after ours), use slot SHARED under shared_lock, one call at a time, with the dummy in `here` for good. A claimer
 * takes that lock as well.
 *
 * Fork. Before it, the forking thread claims every slot; so no other thread is in a call, and holds no lock of ours. In the
 * child the slots of the threads that it does not have are free again, with whatever is in them for the next owner. After our
 * half and before it forks, glibc takes the lock of its list of streams; whoever has that (fflush(NULL)) and waits for
 * memory waits for us. So we take it first: it may be taken again by the thread that has it.
 *
 * Threads that end unnoticed. Our destructor does not run for a thread that first allocates in the last round of those
 * destructors, or that leaves by the bare system call. What its slot's owner points to may then be anything. So every claim
 * asks the kernel first whether the owners still live, and sets the slots of those who don't free, with whatever is in them.
 * The kernel knows a thread for some time after it told those who join it, and they may have taken its stack away. But before
 * that it forgets the thread's list of robust futexes, which glibc gives to every thread; so the question is whether it has one
 * still. What the thread did is seen then, by the fence of step 3 that comes after the question, as the kernel's answer came
 * after all of it. A claim may last, and its victims end meanwhile in that way: so the question comes again before step 6. What
 * remains are the moments between an answer and the stores after it.
 *
 * Without membarrier (an old kernel; a sandbox that forbids it) steps 3 and 4 are not possible: the slots of other threads are
 * not reached, what they keep stays with them until they end. Slow calls are still kept out by step 1, so that a fork is safe;
 * in the child the slots of other threads, whose owners may have been in the middle of a fast call, are never used again.
 */
#define _GNU_SOURCE /* syscall */
#include "../types.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum state { OUTSIDE, INSIDE, WANTED, CLAIMED };

#define NO_SLOT (~0u)
#define SHARED 0u
#define PATIENCE 4096u /* looks at one victim that a claim under memory pressure takes */
#define MOST_HALVINGS 6u /* of that, after as many claims in vain; */
#define FULL_EACH 32u    /* so many later it is whole again */
#define FOREVER (~0u)

/* linux/membarrier.h, which old systems lack. */
#define MEMBARRIER_PRIVATE_EXPEDITED (1 << 3)
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED (1 << 4)

__thread struct sy__thread sy__self = { .here = SY__DUMMY_HERE, .last = SY__NOTHING, .slot = NO_SLOT };

static struct {
	struct sy__queue lock;
	unsigned owned; /* slots beyond SHARED that ever had an owner: zero at first, as all of this, so that untouched slots take no memory */
	bool full;      /* every slot has an owner, or is lost: asked without the lock, lest threads without one wait in line for that at each call */
	unsigned in_vain; /* claims under memory pressure since one that reached everybody */
	struct {
		struct sy__thread *owner; /* NULL: nobody. Of SHARED always */
		const struct sy__thread *last_owner; /* only to compare with: it is no more */
		long id;      /* the kernel's, of the owner */
		bool robust;  /* it had a list of robust futexes of the owner */
		bool claimed; /* by whoever holds the lock: nobody else touches it */
		bool lost;    /* never to be used again */
	} slots[SY_THREAD_SLOTS];
} table;

static sy__lock_t shared_lock;
static void (*on_slot_end)(unsigned slot); /* NULL: nobody wants to know */
static pthread_key_t at_end; /* its destructor runs when a thread ends */
static int library; /* ASLEEP, AWAKE, or the process in which a thread is waking it */

enum { AWAKE = -1, ASLEEP };

/* glibc's, of its list of streams; recursive. */
void lock_streams(void) __asm__("_IO_list_lock") __attribute__((weak));
void unlock_streams(void) __asm__("_IO_list_unlock") __attribute__((weak));
void reset_streams_lock(void) __asm__("_IO_list_resetlock") __attribute__((weak));

/* ---- The fence for all threads ----------------------------------------------------------------------------------- */

#ifdef __NR_membarrier
/* Leaves errno alone, as free does, which may come here. */
static bool membarrier(int command)
{
	int before = errno;
	bool done = syscall(__NR_membarrier, command, 0) == 0;

	errno = before;
	return done;
}
#else
static bool membarrier(int command)
{
	(void)command;
	return false;
}
#endif

/* Has every thread execute a fence. Registers on demand: a process need not have inherited that across a fork. */
static bool fence_all(void)
{
	return membarrier(MEMBARRIER_PRIVATE_EXPEDITED) ||
	       (membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_PRIVATE_EXPEDITED));
}

/* ---- A slot of one's own ----------------------------------------------------------------------------------------- */

_Static_assert(SY__DUMMY_HERE == -(ptrdiff_t)SY_SLOT_STRIDE, "the dummy's state stands in front of slot 0's");

/* And nothing was handed out last: whoever works on a slot may change what that was handed out from. */
static void show(struct sy__thread *thread, ptrdiff_t here)
{
	__atomic_store_n(&thread->last, SY__NOTHING, SY__CLAIM_STORE);
	__atomic_store_n(&thread->here, here, SY__CLAIM_STORE);
}

/* Its slot, unless all its calls are to be slow ones. */
static void show_own(struct sy__thread *thread, unsigned slot)
{
	show(thread, thread->watches ? SY__DUMMY_HERE : (ptrdiff_t)(slot * SY_SLOT_STRIDE));
}

static enum state state_of(const struct sy__thread *thread)
{
	return (enum state)__atomic_load_n(&thread->state, __ATOMIC_ACQUIRE);
}

static bool change(struct sy__thread *thread, enum state from, enum state to)
{
	unsigned expected = from;

	return __atomic_compare_exchange_n(&thread->state, &expected, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* With the table's lock held. Relaxed: who sees it late does without a slot for a call more, or looks in vain. */
static void say_full(bool full)
{
	__atomic_store_n(&table.full, full, __ATOMIC_RELAXED);
}

/* With the table's lock held. Relaxed: who asks without it gets a hint. */
static void set_owner(unsigned slot, struct sy__thread *owner)
{
	__atomic_store_n(&table.slots[slot].owner, owner, __ATOMIC_RELAXED);
}

static void set_free(unsigned slot)
{
	if (table.slots[slot].owner)
		table.slots[slot].last_owner = table.slots[slot].owner;
	set_owner(slot, NULL);
	say_full(false);
}

static void detach(struct sy__thread *self)
{
	sy__queue_lock(&table.lock);
	set_free(self->slot);
	self->slot = NO_SLOT;
	show(self, SY__DUMMY_HERE);
	sy__queue_unlock(&table.lock);
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

/* For good: who knows whether this thread's last destructor has run already. */
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

static void before_fork(void);
static void after_fork_parent(void);
static void after_fork_child(void);

/* Whether there is all that slots need. Setting it up may allocate memory, by malloc, which may be this library: such a call
 * finds it waking, as other threads' calls do in the meantime, and goes on without a slot. The child of a fork that came while
 * a thread was at it begins anew. */
static bool awake(void)
{
	int seen = __atomic_load_n(&library, __ATOMIC_ACQUIRE), here;

	if (sy__likely(seen == AWAKE))
		return true;
	here = (int)getpid();
	if (seen == here || !__atomic_compare_exchange_n(&library, &seen, here, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED);
	if (pthread_key_create(&at_end, thread_ends) || pthread_atfork(before_fork, after_fork_parent, after_fork_child))
		return false;
	__atomic_store_n(&library, AWAKE, __ATOMIC_RELEASE);
	return true;
}

/* Before there are other threads, so that none of them forks meanwhile; and while the kernel has nobody to wait for. */
__attribute__((constructor)) static void wake(void)
{
	awake();
}

/* Whether the kernel has a list of robust futexes of this thread; `unknown` where it doesn't say. */
static bool is_robust(long id, bool unknown)
{
	int before = errno;
	void *list = NULL;
	size_t bytes;

	if (syscall(SYS_get_robust_list, id, &list, &bytes) == 0)
		return list != NULL;
	errno = before;
	return unknown;
}

/* The calling thread owns the slot. With the table's lock held. */
static void own_slot(struct sy__thread *self, unsigned slot)
{
	set_owner(slot, self);
	table.slots[slot].id = syscall(SYS_gettid);
	table.slots[slot].robust = is_robust(table.slots[slot].id, false);
}

static bool is_free(unsigned slot)
{
	return !table.slots[slot].owner && !table.slots[slot].lost;
}

/* The slot for a thread that has none; SY_THREAD_SLOTS: none is free. */
static unsigned free_slot(const struct sy__thread *self)
{
	unsigned slot;

	for (slot = SHARED + 1; slot < SY_WARM_SLOTS; slot++)
		if (table.slots[slot].last_owner == self && is_free(slot))
			return slot;
	for (slot = SHARED + 1; slot < SY_THREAD_SLOTS && !is_free(slot); slot++)
		;
	return slot;
}

/* Or NO_SLOT. */
static unsigned take_free_slot(struct sy__thread *self)
{
	unsigned slot;

	sy__queue_lock(&table.lock);
	slot = free_slot(self);
	if (slot < SY_THREAD_SLOTS)
		own_slot(self, slot);
	else
		say_full(true);
	if (slot > SHARED + table.owned && slot < SY_THREAD_SLOTS)
		__atomic_store_n(&table.owned, slot - SHARED, __ATOMIC_RELAXED);
	sy__queue_unlock(&table.lock);
	return slot < SY_THREAD_SLOTS ? slot : NO_SLOT;
}

/* Outside a call, as pthread_setspecific may allocate, and who owns a slot is waited for. */
static void attach(struct sy__thread *self)
{
	sy__call_end();
	if (self->ending || self->claims || __atomic_load_n(&table.full, __ATOMIC_RELAXED) || !awake())
		return;
	self->slot = take_free_slot(self);
	if (self->slot != NO_SLOT && pthread_setspecific(at_end, self)) {
		self->ending = true;
		detach(self);
	}
}

/* ---- Slow calls --------------------------------------------------------------------------------------------------- */

static bool in_call(const struct sy__thread *self)
{
	enum state state = state_of(self);

	return state == INSIDE || state == WANTED;
}

/* Somebody works on this thread's slot, with the table's lock held. Who has the lock is claimed by nobody. */
static void begin_after_claim(struct sy__thread *self)
{
	sy__call_end();
	sy__queue_lock(&table.lock);
	__atomic_store_n(&self->state, INSIDE, __ATOMIC_RELAXED);
	sy__queue_unlock(&table.lock);
}

/* Not in the order of asking, as hundreds of threads would wait for each to get a processor in its turn. But somebody who
 * claims it is not to get it again and again: who meets him waits with the table's lock, and then only for calls, which end. A
 * thread that forks has both already. */
static SY__COLD void take_shared(struct sy__thread *self)
{
	if (!self->claims && !sy__lock_unless(&shared_lock, &table.slots[SHARED].claimed)) {
		sy__queue_lock(&table.lock);
		sy__lock(&shared_lock);
		sy__queue_unlock(&table.lock);
	}
	self->slot = SHARED;
}

static SY__COLD void leave_shared(struct sy__thread *self)
{
	self->slot = NO_SLOT;
	if (!self->claims)
		sy__unlock(&shared_lock);
}

bool sy__call_enter(unsigned *slot)
{
	struct sy__thread *self = &sy__self;

	if (sy__unlikely(in_call(self)))
		return false;
	if (sy__unlikely(self->slot == NO_SLOT))
		attach(self);
	if (sy__unlikely(!change(self, OUTSIDE, INSIDE)))
		begin_after_claim(self);
	show(self, SY__DUMMY_HERE);
	self->calls++;
	if (sy__unlikely(self->slot == NO_SLOT))
		take_shared(self);
	*slot = self->slot;
	return true;
}

void sy__call_leave(void)
{
	struct sy__thread *self = &sy__self;

	if (sy__unlikely(self->slot == SHARED))
		leave_shared(self);
	else
		show_own(self, self->slot);
	if (sy__unlikely(!change(self, INSIDE, OUTSIDE)))
		__atomic_store_n(&self->state, CLAIMED, __ATOMIC_RELEASE);
	sy__call_end();
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

/* ---- Claims -------------------------------------------------------------------------------------------------------- */

/* Steps 1 and 2. Waits for slow calls to end; false: the victim did not come out in time, and goes on. */
static bool stop_slow_calls(struct sy__thread *victim, unsigned patience)
{
	unsigned looks = 0;

	while (!change(victim, OUTSIDE, CLAIMED)) {
		change(victim, INSIDE, WANTED);
		while (state_of(victim) == WANTED && looks < patience)
			looks = sy__look_again(looks);
		if (state_of(victim) == CLAIMED)
			break;
		if (looks >= patience && change(victim, WANTED, INSIDE))
			return false;
	}
	show(victim, SY__DUMMY_HERE);
	return true;
}

/* Step 4. False: the victim is still in a fast call. */
static bool fast_call_ended(const struct sy__thread *victim, unsigned patience)
{
	unsigned looks = 0;

	while (__atomic_load_n(&victim->busy, SY__CLAIM_LOAD)) {
		if (looks >= patience)
			return false;
		looks = sy__look_again(looks);
	}
	return true;
}

/* With the table's lock held, as the next. */
static bool owner_lives(unsigned slot)
{
	int before = errno;
	bool gone;

	if (table.slots[slot].robust && !is_robust(table.slots[slot].id, true))
		return false;
	gone = syscall(SYS_tgkill, getpid(), table.slots[slot].id, 0) && errno == ESRCH;
	errno = before;
	return !gone;
}

static void forget_the_dead(const struct sy__thread *self)
{
	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++)
		if (table.slots[slot].owner && table.slots[slot].owner != self && !owner_lives(slot))
			set_free(slot);
}

/* Steps 3 and 4. With the table's lock held, as the next. */
static void wait_for_fast_calls(unsigned patience)
{
	bool fenced = fence_all();

	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++)
		if (table.slots[slot].claimed && table.slots[slot].owner)
			table.slots[slot].claimed = fenced && fast_call_ended(table.slots[slot].owner, patience);
}

/* Step 5. Whether there was one. */
static bool forget_notes(void)
{
	bool any = false;

	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++) {
		struct sy__thread *owner = table.slots[slot].claimed ? table.slots[slot].owner : NULL;

		if (!owner || __atomic_load_n(&owner->last, __ATOMIC_RELAXED) == SY__NOTHING)
			continue;
		show(owner, SY__DUMMY_HERE);
		any = true;
	}
	return any;
}

/* With the table's lock held. Slots that nobody owns are claimed by that alone. False: some did not come. */
static bool claim_all(struct sy__thread *self, unsigned patience)
{
	bool all = true;

	forget_the_dead(self);
	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++)
		table.slots[slot].claimed = !table.slots[slot].lost && table.slots[slot].owner != self &&
		                      (!table.slots[slot].owner || stop_slow_calls(table.slots[slot].owner, patience));
	do
		wait_for_fast_calls(patience);
	while (forget_notes());
	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++)
		all &= table.slots[slot].claimed || !table.slots[slot].owner || table.slots[slot].owner == self;
	self->claims = true;
	return all;
}

static unsigned patience(void)
{
	unsigned halvings = table.in_vain % FULL_EACH ? table.in_vain : 0;

	return PATIENCE >> (halvings < MOST_HALVINGS ? halvings : MOST_HALVINGS);
}

/* Step 6. */
static void release_all(struct sy__thread *self)
{
	self->claims = false;
	forget_the_dead(self);
	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++) {
		struct sy__thread *owner = table.slots[slot].owner;

		table.slots[slot].claimed = false;
		if (!owner || state_of(owner) != CLAIMED)
			continue;
		owner->watches |= self->watches;
		show_own(owner, slot);
		__atomic_store_n(&owner->state, OUTSIDE, __ATOMIC_RELEASE);
	}
}

/* With both locks held. Relaxed: it is read without, and only tells whom to wait with. */
static void say_shared_claimed(bool claimed)
{
	__atomic_store_n(&table.slots[SHARED].claimed, claimed, __ATOMIC_RELAXED);
}

bool sy__slots_claim_try(void)
{
	struct sy__thread *self = &sy__self;

	if (self->claims || !in_call(self) || !sy__queue_try(&table.lock))
		return false;
	if (self->slot != SHARED && sy__lock_try(&shared_lock))
		say_shared_claimed(true);
	table.in_vain = claim_all(self, patience()) ? 0 : table.in_vain + 1;
	return true;
}

void sy__slots_release(void)
{
	release_all(&sy__self);
	if (table.slots[SHARED].claimed) {
		say_shared_claimed(false);
		sy__unlock(&shared_lock);
	}
	sy__queue_unlock(&table.lock);
}

/* Nobody can come to own it meanwhile, nor claim it, as both need the table's lock. What its last owner did is seen, as that
 * gave the slot back with the lock. */
bool sy__slot_claim(unsigned slot)
{
	struct sy__thread *self = &sy__self;

	if (self->claims || !in_call(self) || !sy__queue_try(&table.lock))
		return false;
	self->claims = slot > SHARED && slot <= SHARED + table.owned && is_free(slot);
	if (self->claims)
		table.slots[slot].claimed = true;
	else
		sy__queue_unlock(&table.lock);
	return self->claims;
}

void sy__slot_release(unsigned slot)
{
	table.slots[slot].claimed = false;
	sy__self.claims = false;
	sy__queue_unlock(&table.lock);
}

/* Everything, for a thread that is in no call. */
static void claim_outside(struct sy__thread *self)
{
	if (self->slot == NO_SLOT)
		attach(self);
	sy__queue_lock(&table.lock);
	sy__lock(&shared_lock);
	say_shared_claimed(true);
	claim_all(self, FOREVER);
}

bool sy__claim_enter(unsigned *slot)
{
	struct sy__thread *self = &sy__self;

	if (self->claims || in_call(self))
		return false;
	claim_outside(self);
	/* Whoever else could claim this thread would need the lock. */
	__atomic_store_n(&self->state, INSIDE, __ATOMIC_RELAXED);
	show(self, SY__DUMMY_HERE);
	*slot = self->slot == NO_SLOT ? SHARED : self->slot;
	return true;
}

void sy__claim_leave(void)
{
	struct sy__thread *self = &sy__self;

	if (self->slot != NO_SLOT)
		show_own(self, self->slot);
	__atomic_store_n(&self->state, OUTSIDE, __ATOMIC_RELEASE);
	sy__call_end();
	sy__slots_release();
}

unsigned sy__slots_high(void)
{
	return SHARED + 1 + __atomic_load_n(&table.owned, __ATOMIC_RELAXED);
}

bool sy__slot_mine(unsigned slot)
{
	const struct sy__thread *self = &sy__self;

	return (self->slot == slot && in_call(self)) || (self->claims && table.slots[slot].claimed);
}

bool sy__slot_unowned(unsigned slot)
{
	return !__atomic_load_n(&table.slots[slot].owner, __ATOMIC_RELAXED);
}

/* ---- Fork ----------------------------------------------------------------------------------------------------------- */

/* Between the halves of a fork the thread is in no call, so that what else prepares for it may allocate. One that forks from
 * inside a call (a constructor) is on its own. */
static void before_fork(void)
{
	struct sy__thread *self = &sy__self;

	if (self->claims || in_call(self))
		return;
	if (lock_streams)
		lock_streams();
	claim_outside(self);
	self->forking = true;
}

static void after_fork_parent(void)
{
	struct sy__thread *self = &sy__self;

	if (!self->forking)
		return;
	self->forking = false;
	sy__slots_release();
	if (unlock_streams)
		unlock_streams();
}

static void after_fork_child(void)
{
	struct sy__thread *self = &sy__self;

	if (!self->forking)
		return;
	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++) {
		if (table.slots[slot].owner == self) {
			own_slot(self, slot);
			continue;
		}
		table.slots[slot].lost = !table.slots[slot].claimed;
		set_free(slot);
	}
	self->forking = false;
	sy__queue_forget(&table.lock);
	sy__slots_release();
	if (reset_streams_lock)
		reset_streams_lock();
}

/* By the kernel's own call, as by itself the C library's would bring another part of that into a small program's memory. */
unsigned sy__cpus(void)
{
	unsigned long set[1024 / (8 * sizeof(unsigned long))];
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof(set), set);
	unsigned count = 0;

	for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof(*set); i++)
		count += (unsigned)__builtin_popcountl(set[i]);
	return count ? count : 1;
}
