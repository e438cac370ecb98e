/*
 * The slots of threads: who owns which, and how others reach it.
 *
 * Every thread gets a slot at its first slow call, and gives it back when it ends. Its calls run on the slot without a lock. Others
 * touch a slot's state only by a claim. A claim costs the owner nothing, except when a call meets one.
 *
 * What the owner does. A fast call (sy__call_begin, inline in user.h) stores `busy`, loads `slot_offset`, works on that slot, and
 * clears `busy`. A slow call (sy__call_enter) also moves `state` from OUTSIDE to INSIDE and back by compare-and-exchange, and sets
 * `slot_offset` to the dummy slot meanwhile. So a constructor that calls back misses, comes to sy__call_enter, and is refused.
 *
 * What a claimer does, with table.lock held throughout:
 *
 *   1. sets each victim's state from OUTSIDE to CLAIMED. If the victim is INSIDE, sets it to WANTED, which the victim's
 *      sy__call_leave answers with CLAIMED in place of OUTSIDE. From now on the victim's slow calls wait, as they need OUTSIDE.
 *   2. sets each victim's `slot_offset` to the dummy. Fast calls that load it from now on miss, and become slow calls.
 *   3. has all victims execute a fence, by one membarrier.
 *   4. waits until each victim's `busy` is 0.
 *   5. if a victim's call noted an object meanwhile, drops the note and goes back to 3; this happens once at most. Now nobody uses
 *      the slots, and the claimer works on them as a replay would.
 *   6. sets `slot_offset` back to the slot, then state to OUTSIDE. If all calls of a thread are to be slow (sy__watch),
 *      `slot_offset` stays the dummy, as it does when such a thread's slow call ends.
 *
 * Why step 4 suffices. Owner: store busy, load slot_offset. Claimer: store slot_offset, load busy. If both loads returned old
 * values, both would work on the slot at once. A processor may indeed do the owner's load before its store is visible. A fence in
 * between would prevent that, and cost as much as the rest of a fast call. Instead step 3 has every processor that runs a thread
 * of this process execute the fence, at some point between the claimer's store and its load. If that point comes before the
 * owner's load of slot_offset, the load sees the dummy. If it comes after, the store of busy, earlier in program order, is visible
 * to the claimer. A signal fence keeps the compiler from reordering the two. tests/model/ checks all interleavings, with store
 * buffers.
 *
 * Why step 5. A call that begins with an object reads `last` instead of `slot_offset`; step 2 resets that word too, and the
 * argument above holds for it. But a call that loaded its slot from `slot_offset` earlier may note an object after step 2. After
 * step 4 all such calls have ended, and later ones find the dummy, which hands out no objects to note. So dropping the notes once
 * more suffices.
 *
 * Memory orders. The owner's writes to the slot's state reach the claimer through busy = 0 (release; acquire in step 4), and those
 * of slow calls through state (release in sy__call_leave, acquire in step 1). The claimer's writes come back through slot_offset
 * (release in step 6, acquire in sy__call_begin), which the owner loads before it notes an object again, and through state
 * (release in step 6, acquire in sy__call_enter). Only the owner writes `slot_offset` while it is INSIDE, only the claimer while
 * the victim is CLAIMED. Seeing AWAKE acquires the key and the handlers that the waking thread released. table.owned is read
 * relaxed: a slot that it does not include yet has at most the first state of its owner, which nobody else may touch; claims read
 * it under the lock.
 *
 * Waiting. A slow call that meets a claim sleeps until that ends, and needs no lock then: where hundreds had to take one in turn,
 * most turns would be those of threads without a processor. A claimer waits a moment for those that still sleep since the last
 * claim, so a thread that claims again and again lets others run in between. Claimers queue for table.lock, a ticket lock;
 * threads that begin or end, which have it for a moment, try for it. sy__claim_enter waits for slow calls without a bound. That
 * wait ends: the claimer holds only table.lock and shared locks, was outside before, and no thread inside a call waits for
 * either. sy__claim_enter_soon gives up after a while, and no claim waits for a fast call for ever: it leaves out that slot.
 * sy__slots_claim_try may come with any lock held, from deep in a call that ran out of memory. It claims nothing while threads
 * sleep since the last claim, only tries table.lock, looks at each victim for a moment, and leaves out those that do not come. It
 * never yields: a victim that does not come at once is likely without a processor, and among thousands of threads a yield lasts
 * until the others have had their turns, with nearly all slots claimed meanwhile. As all threads may be in calls, as when a
 * program runs out of memory, each victim that does not come halves the moment that the next ones get.
 *
 * Signals. A signal's handler may hold its thread for long, as in programs that stop all their threads to collect garbage. With one
 * of our locks, or with a fork waiting for the end of its call, such a thread would stop others. So where there are other threads, a
 * slow call lets no signal in. All calls of a thread without a slot are slow ones; it lets none in from its first lock on (sy__lock).
 * Nor does a claimer, as claimed threads wait for it. Fast calls have no locks, but in policies that try for one
 * (sy__call_begin_locked). Signals for what a thread itself has done wrong always come in. This takes two system calls, so it is done
 * only where the program handles a signal by which threads may stop each other: the kernel is asked when there is a second thread, and
 * each second.
 *
 * Which slot. The lowest free one, so that few are in use. But of the first SY_WARM_SLOTS slots, in which policies leave things for
 * the next owner, a thread gets the one whose last owner had its thread-local storage at the same address. A C library gives the
 * stack of a joined thread, with that storage, to the next thread. That thread likely continues the first one's work, as in a pool
 * of workers, of which several may end and begin at once.
 *
 * Without a slot. Threads for which no slot is free, and threads past their end (destructors of thread-specific data that run
 * after ours), use shared slots, each under a lock, one call at a time. Their `slot_offset` is the dummy for good. Slot SHARED is
 * one; the others, the last ones of all, are in use only once all slots have had owners. A claimer takes these locks as well. Who
 * finds all taken for some looks sleeps for one of them. Its end wakes a thread only if one sleeps there, and only one: were each
 * end to wake whoever has not run yet since the last, nearly all calls would make a system call.
 *
 * Fork. The forking thread first claims every slot, so no other thread is in a call or holds a lock of ours. A thread without a
 * processor may stay in a fast call for long; where such calls take locks (sy__fast_calls_lock) the fork waits for it, as nobody in
 * the child would end them. In the child, the slots of the other threads are free again, with their contents for the next owner.
 * Between our handler and the fork, glibc locks its list of streams. A thread that holds that lock (fflush(NULL)) and waits for memory
 * would wait for us. So our handler takes the lock first; its owner may take it again.
 *
 * Threads that end unnoticed. Our destructor does not run for a thread that first allocates in the last round of destructors, or
 * that ends by the bare system call. Then its slot's owner pointer may point to anything. So every claim first asks the kernel
 * whether the owners still live, and frees the slots of those that do not, contents included. For some time after a join the
 * kernel still knows a thread whose stack may be gone already. But it forgets the thread's list of robust futexes earlier, which
 * glibc registers for every thread. So the question is whether a thread still has that list. What the dead thread wrote is
 * visible, by the fence of step 3, which follows the answer, which followed all that the thread did. A victim may also end in that
 * way during a claim, so the claimer asks again before step 6. What remains are the moments between an answer and the stores
 * after it.
 *
 * Without membarrier (an old kernel, or a sandbox that forbids it) steps 3 and 4 are impossible. Then claims do not reach the slots
 * of other threads, which keep their contents until they end. Step 1 still keeps slow calls out, so a fork is safe. In the
 * child the slots of other threads are never used again, as their owners may have been in the middle of a fast call.
 */
#define _GNU_SOURCE /* syscall */
#include "../types.h"

#include "system_call.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

enum state { OUTSIDE, INSIDE, WANTED, CLAIMED };

#define NO_SLOT (~0u)
#define SHARED 0u
#define PATIENCE 127u /* looks at a victim by a claim that must not wait, and at shared slots: too few to give the processor away */
#define LOOKS_FOR_SLOT 512u /* at the table's lock */
#define FOREVER (~0u)
#define SOON 16384u /* looks: some hundredths of a second, most of it asleep */

/* linux/membarrier.h, which old systems lack. */
#define MEMBARRIER_PRIVATE_EXPEDITED (1 << 3)
#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED (1 << 4)

__thread struct sy__thread sy__self = { .slot_offset = SY__DUMMY_OFFSET, .last = SY__NOTHING, .slot = NO_SLOT };

static struct table {
	struct sy__queue lock;
	struct sy__event released; /* a claim has ended */
	unsigned owned; /* slots beyond SHARED that ever had an owner; all of the table is zero at first, so unused slots take no memory */
	bool fences;       /* this process may fence its threads */
	bool handlers;     /* the program handles signals */
	bool fast_calls_lock; /* some heap's fast calls do; never unset */
	unsigned unasked; /* a slot whose owner was alone when it came; 0: none */
	unsigned lowest; /* no slot below is free */
	bool few; /* only SY_FEW_THREAD_SLOTS slots are to be used; read without the lock */
	bool overflown; /* the other shared slots are in use; as `full` */
	bool full;      /* every slot has an owner or is lost; read without the lock, so that threads without a slot do not queue for it */
	struct {
		struct sy__thread *owner; /* NULL: nobody. Of shared slots always */
		const struct sy__thread *last_owner; /* has ended; to compare with, not to follow */
		long id;      /* the owner's thread id */
		bool robust;  /* the kernel had a list of robust futexes of the owner */
		bool claimed; /* by the thread that holds the lock */
		bool lost;    /* never to be used again */
	} slots[SY_THREAD_SLOTS];
} table;

static struct __attribute__((aligned(64))) { /* threads with different slots share no cache line */
	struct sy__wakeful lock;
} shared[SY_SHARED_SLOTS]; /* SHARED's, then those of the other shared slots, the last one first */
static void (*on_slot_end)(unsigned slot); /* NULL: nobody wants to know */
static pthread_key_t at_end; /* its destructor runs when a thread ends */
static int library; /* ASLEEP, AWAKE, UNLOADED, or the process in which a thread is waking it */

enum { AWAKE = -1, ASLEEP, UNLOADED = -2 };

/* glibc's, of its list of streams; recursive. */
void lock_streams(void) __asm__("_IO_list_lock") __attribute__((weak));
void unlock_streams(void) __asm__("_IO_list_unlock") __attribute__((weak));
void reset_streams_lock(void) __asm__("_IO_list_resetlock") __attribute__((weak));

/* ---- How many there are -------------------------------------------------------------------------------------------- */

/* Relaxed: it changes before a slot beyond has an owner, if at all. */
unsigned sy__thread_slots(void)
{
	return __atomic_load_n(&table.few, __ATOMIC_RELAXED) ? SY_FEW_THREAD_SLOTS : SY_THREAD_SLOTS;
}

/* The shared slots but SHARED are behind it. */
static unsigned last_owned(void)
{
	return sy__thread_slots() - SY_SHARED_SLOTS;
}

static bool reduce(void)
{
	if (table.few || table.overflown || table.owned > SY_FEW_THREAD_SLOTS - SY_SHARED_SLOTS)
		return false;
	__atomic_store_n(&table.few, true, __ATOMIC_RELAXED);
	return true;
}

/* Locks may be held that come behind the table's. */
bool sy__thread_slots_reduce(void)
{
	bool reduced;

	if (sy__self.claims || !sy__queue_try(&table.lock))
		return sy__self.claims && reduce();
	reduced = reduce();
	sy__queue_unlock(&table.lock);
	return reduced;
}

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

/* Whether the kernel lets this process fence. Registers it, before its first claim with other threads: that takes some milliseconds,
 * so no lock of the table is held. A program with one thread makes no such call, as a sandbox might end it for that. */
static void get_fence(void)
{
	if (__atomic_load_n(&table.owned, __ATOMIC_RELAXED) > 1 && !__atomic_load_n(&table.fences, __ATOMIC_RELAXED) && !sy__system_is_shut_in())
		__atomic_store_n(&table.fences, membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED), __ATOMIC_RELAXED);
}

/* Has every thread execute a fence. */
static bool fence_all(void)
{
	return !sy__system_is_shut_in() && membarrier(MEMBARRIER_PRIVATE_EXPEDITED);
}

/* ---- Signals ------------------------------------------------------------------------------------------------------ */

static uint64_t signal_bit(int number)
{
	return (uint64_t)1 << (number - 1);
}

/* All but those that a thread brings upon itself. */
static uint64_t usual_signals(void)
{
	return ~(signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGFPE) | signal_bit(SIGILL) | signal_bit(SIGTRAP) |
	         signal_bit(SIGSYS) | signal_bit(SIGABRT));
}

/* By which users, terminals and children tell a process something: no threads stop each other by these. */
static uint64_t from_outside(void)
{
	return signal_bit(SIGHUP) | signal_bit(SIGINT) | signal_bit(SIGQUIT) | signal_bit(SIGTERM) | signal_bit(SIGPIPE) | signal_bit(SIGCHLD) |
	       signal_bit(SIGTSTP) | signal_bit(SIGCONT) | signal_bit(SIGTTIN) | signal_bit(SIGTTOU) | signal_bit(SIGWINCH);
}

/* Whether the program has a handler that might keep a thread. Signals between 31 and SIGRTMIN are the C library's. */
static bool handles(int number)
{
	struct {
		void (*handler)(int);
		unsigned long rest[20]; /* of the kernel's structure */
	} action = { .handler = SIG_DFL };

	return usual_signals() & ~from_outside() & signal_bit(number) && (number < 32 || number >= SIGRTMIN) &&
	       sy__system(SYS_rt_sigaction, number, 0, sy__system_word(&action), sizeof(uint64_t)) == 0 && action.handler != SIG_DFL &&
	       action.handler != SIG_IGN;
}

/* Relaxed, as what is true of some moment is enough. */
void sy__signals_learn(void)
{
	int number = 1;

	if (__atomic_load_n(&table.owned, __ATOMIC_RELAXED) <= (sy__self.slot != NO_SLOT) || sy__system_is_shut_in())
		return;
	while (number <= 64 && !handles(number))
		number++;
	__atomic_store_n(&table.handlers, number <= 64, __ATOMIC_RELAXED);
}

/* Whether a handler may keep others waiting. Relaxed: a thread that this one has not heard of yet waits for nothing of it. */
static bool may_keep_others(const struct sy__thread *self)
{
	return __atomic_load_n(&table.handlers, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&table.owned, __ATOMIC_RELAXED) > (self->slot != NO_SLOT) && !sy__system_is_shut_in();
}

/* Lets no signal in until let_signals_in. */
static SY__COLD void hold_signals(struct sy__thread *self)
{
	const uint64_t held = usual_signals();

	self->holds_at_lock = false;
	if (!self->holds_signals && may_keep_others(self))
		self->holds_signals = sy__system(SYS_rt_sigprocmask, SIG_BLOCK, sy__system_word(&held), sy__system_word(&self->signals),
		                                 sizeof(held)) == 0;
}

/* What comes in at once finds that nothing is held, and the mask used already. */
static SY__COLD void let_signals_in(struct sy__thread *self)
{
	if (!self->holds_signals)
		return;
	self->holds_signals = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	sy__system(SYS_rt_sigprocmask, SIG_SETMASK, sy__system_word(&self->signals), 0, sizeof(self->signals));
}

static void (*lock_watch)(const sy__lock_t *);

void sy__locks_watch(void (*watch)(const sy__lock_t *))
{
	lock_watch = watch;
	sy__self.holds_at_lock = watch;
}

void sy__signals_hold(const sy__lock_t *lock)
{
	if (lock_watch)
		lock_watch(lock);
	else
		hold_signals(&sy__self);
}

/* ---- A slot of one's own ----------------------------------------------------------------------------------------- */

_Static_assert(SY__DUMMY_OFFSET == -(ptrdiff_t)SY_SLOT_STRIDE, "the dummy's state stands in front of slot 0's");

/* Also drops the note: whoever works on the slot may change the state that was noted. */
static void show(struct sy__thread *thread, ptrdiff_t slot_offset)
{
	__atomic_store_n(&thread->last, SY__NOTHING, SY__CLAIM_STORE);
	__atomic_store_n(&thread->slot_offset, slot_offset, SY__CLAIM_STORE);
}

/* Shows a thread its slot, unless all its calls are to be slow ones. */
static void show_own(struct sy__thread *thread, unsigned slot)
{
	show(thread, thread->watches ? SY__DUMMY_OFFSET : (ptrdiff_t)(slot * SY_SLOT_STRIDE));
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

/* With the table's lock held. Relaxed: a thread that sees it late goes without a slot for one more call, or searches in vain. */
static void say_full(bool full)
{
	__atomic_store_n(&table.full, full, __ATOMIC_RELAXED);
}

/* With the table's lock held. Relaxed: readers without the lock get a hint. */
static void set_owner(unsigned slot, struct sy__thread *owner)
{
	__atomic_store_n(&table.slots[slot].owner, owner, __ATOMIC_RELAXED);
}

static void set_free(unsigned slot)
{
	if (table.slots[slot].owner)
		table.slots[slot].last_owner = table.slots[slot].owner;
	set_owner(slot, NULL);
	table.lowest = slot < table.lowest ? slot : table.lowest;
	say_full(false);
}

/* Sleeps while slots are claimed. Relaxed: the count comes before, and changes after. */
static void sleep_through_claim(void)
{
	unsigned count = sy__event_count(&table.released);

	if (__atomic_load_n(&table.slots[SHARED].claimed, __ATOMIC_RELAXED))
		sy__event_wait(&table.released, count);
}

/* For a moment, by a thread that has or wants a slot; false: not after so many looks. It does not queue: where hundreds begin or end at
 * once, each turn in a queue would be that of a thread without a processor. With signals held. */
static bool lock_table(unsigned patience)
{
	for (unsigned looks = 0; !sy__queue_try(&table.lock); looks = sy__look_again(looks)) {
		if (looks >= patience)
			return false;
		sleep_through_claim();
	}
	return true;
}

static void detach(struct sy__thread *self)
{
	hold_signals(self);
	lock_table(FOREVER);
	set_free(self->slot);
	self->slot = NO_SLOT;
	show(self, SY__DUMMY_OFFSET);
	sy__queue_unlock(&table.lock);
	let_signals_in(self);
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

static void before_fork(void);
static void after_fork_parent(void);
static void after_fork_child(void);

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
	if (sy__system_limit(RLIMIT_AS) < SY_FEW_ADDRESSES || sy__system_limit(RLIMIT_DATA) < SY_FEW_ADDRESSES)
		reduce();
	if (pthread_key_create(&at_end, thread_ends) || pthread_atfork(before_fork, after_fork_parent, after_fork_child))
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

/* Whether the kernel has a list of robust futexes of this thread; `unknown` if it does not tell. */
static bool is_robust(long id, bool unknown)
{
	if (sy__system_is_shut_in())
		return unknown;

	void *list = NULL;
	size_t bytes;

	if (sy__system(SYS_get_robust_list, id, sy__system_word(&list), sy__system_word(&bytes), 0) == 0)
		return list != NULL;
	return unknown;
}

/* With the table's lock held, as the next. */
static void note_robust(unsigned slot)
{
	table.slots[slot].robust = table.slots[slot].owner && is_robust(table.slots[slot].id, false);
}

/* The calling thread, of that id, owns the slot. Of a thread that is alone the kernel is asked when a second one comes: a program with
 * one thread makes no such call, as a sandbox might end it for that. */
static void own_slot(struct sy__thread *self, long id, unsigned slot, bool alone)
{
	set_owner(slot, self);
	table.slots[slot].id = id;
	table.slots[slot].robust = false;
	if (!alone) {
		note_robust(slot);
		if (table.unasked)
			note_robust(table.unasked);
	}
	table.unasked = alone ? slot : 0;
}

static bool is_free(unsigned slot)
{
	return !table.slots[slot].owner && !table.slots[slot].lost;
}

/* The slot for a thread that has none; above last_owned(): none is free. */
static unsigned free_slot(const struct sy__thread *self)
{
	unsigned slot;

	for (slot = SHARED + 1; slot < SY_WARM_SLOTS; slot++)
		if (table.slots[slot].last_owner == self && is_free(slot))
			return slot;
	for (slot = table.lowest > SHARED ? table.lowest : SHARED + 1; slot <= last_owned() && !is_free(slot); slot++)
		;
	return table.lowest = slot;
}

/* NO_SLOT: none is free, or others had the lock for long; then the thread goes without for a call. With signals held. */
static unsigned take_free_slot(struct sy__thread *self)
{
	long id = sy__system(SYS_gettid, 0, 0, 0, 0);
	unsigned slot;

	if (!lock_table(LOOKS_FOR_SLOT))
		return NO_SLOT;
	slot = free_slot(self);
	if (slot <= last_owned()) {
		own_slot(self, id, slot, !table.owned);
	} else {
		say_full(true);
		__atomic_store_n(&table.overflown, true, __ATOMIC_RELAXED);
	}
	if (slot > SHARED + table.owned && slot <= last_owned())
		__atomic_store_n(&table.owned, slot - SHARED, __ATOMIC_RELAXED);
	sy__queue_unlock(&table.lock);
	return slot <= last_owned() ? slot : NO_SLOT;
}

/* Outside a call: pthread_setspecific may allocate, and claimers wait for slot owners that are in a call. */
static void attach(struct sy__thread *self)
{
	sy__call_end();
	if (self->ending || self->claims || __atomic_load_n(&table.full, __ATOMIC_RELAXED) || !awake())
		return;
	if (__atomic_load_n(&table.owned, __ATOMIC_RELAXED) == 1) /* this is the second thread */
		sy__signals_learn();
	hold_signals(self);
	self->slot = take_free_slot(self);
	let_signals_in(self);
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

/* A claimer works on this thread's slot. Sleeps until the claim has ended. */
static void begin_after_claim(struct sy__thread *self)
{
	unsigned count = sy__event_count(&table.released);

	sy__call_end();
	while (!change(self, OUTSIDE, INSIDE)) {
		sy__event_wait(&table.released, count);
		count = sy__event_count(&table.released);
	}
}

static unsigned shared_slot(unsigned index)
{
	return index ? sy__thread_slots() - index : SHARED;
}

static bool is_shared(unsigned slot)
{
	return slot == SHARED || slot > last_owned();
}

/* Shared slots in use. Relaxed: claimers have the table's lock, under which it changes; others may begin to use them late. */
static unsigned shared_slots(void)
{
	return __atomic_load_n(&table.overflown, __ATOMIC_RELAXED) ? SY_SHARED_SLOTS : 1;
}

/* Where a thread looks first. */
static unsigned first_shared(const struct sy__thread *self)
{
	return (unsigned)((uintptr_t)self >> 12) % shared_slots();
}

/* Takes a shared slot that is free. Threads that run at once are few, so most find one at once. */
static bool try_shared(struct sy__thread *self)
{
	unsigned count = shared_slots(), first = first_shared(self);

	for (unsigned i = 0; i < count; i++) {
		unsigned index = (first + i) % count;

		if (!sy__wakeful_try(&shared[index].lock))
			continue;
		self->slot = shared_slot(index);
		return true;
	}
	return false;
}

/* Sleeps until the slot at which it looks first is left; or takes another one that is free after all. */
static void sleep_for_shared(struct sy__thread *self)
{
	unsigned index = first_shared(self);

	while (!sy__wakeful_ask(&shared[index].lock)) {
		if (try_shared(self))
			return;
		sy__wakeful_sleep(&shared[index].lock);
	}
	self->slot = shared_slot(index);
}

/* The locks are unfair, as with a queue hundreds of threads would wait for each other's turns on a processor. A forking thread has all
 * of these locks already. */
static SY__COLD void take_shared(struct sy__thread *self)
{
	unsigned looks = 0;

	if (self->claims)
		self->slot = SHARED;
	while (self->slot == NO_SLOT && !try_shared(self)) {
		sleep_through_claim();
		looks = sy__look_again(looks);
		if (looks >= PATIENCE)
			sleep_for_shared(self);
	}
}

static SY__COLD void leave_shared(struct sy__thread *self)
{
	unsigned slot = self->slot;

	self->slot = NO_SLOT;
	self->holds_at_lock = false;
	if (self->claims)
		return;
	sy__wakeful_unlock(&shared[slot == SHARED ? 0 : sy__thread_slots() - slot].lock);
}

bool sy__call_enter(unsigned *slot)
{
	struct sy__thread *self = &sy__self;

	if (sy__unlikely(in_call(self)))
		return false;
	if (sy__unlikely(self->slot == NO_SLOT))
		attach(self);
	if (sy__unlikely(__atomic_load_n(&table.handlers, __ATOMIC_RELAXED)) && self->slot != NO_SLOT && !self->claims)
		hold_signals(self);
	if (sy__unlikely(!change(self, OUTSIDE, INSIDE)))
		begin_after_claim(self);
	show(self, SY__DUMMY_OFFSET);
	self->calls++;
	if (sy__unlikely(self->slot == NO_SLOT)) {
		take_shared(self);
		self->holds_at_lock = !self->holds_signals && !self->claims && may_keep_others(self);
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
		show_own(self, self->slot);
	if (sy__unlikely(!change(self, INSIDE, OUTSIDE)))
		__atomic_store_n(&self->state, CLAIMED, __ATOMIC_RELEASE);
	sy__call_end();
	if (sy__unlikely(self->holds_signals) && !self->claims) /* a forking thread lets them in later */
		let_signals_in(self);
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

/* Steps 1 and 2. Waits for the victim's slow call to end; false: it did not in time, and goes on. */
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
	show(victim, SY__DUMMY_OFFSET);
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
	if (table.slots[slot].robust && !is_robust(table.slots[slot].id, true))
		return false;
	return sy__system(SYS_tgkill, sy__system_process(), table.slots[slot].id, 0, 0) != -ESRCH;
}

static void forget_the_dead(const struct sy__thread *self)
{
	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++)
		if (table.slots[slot].owner && table.slots[slot].owner != self && !owner_lives(slot))
			set_free(slot);
}

/* Whether a claimed slot has an owner. With the table's lock held, as the next two. */
static bool has_victims(void)
{
	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++)
		if (table.slots[slot].claimed && table.slots[slot].owner)
			return true;
	return false;
}

/* Steps 3 and 4. After each victim that does not come the next get less time. */
static void wait_for_fast_calls(unsigned patience)
{
	bool fenced = has_victims() && fence_all();

	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++) {
		if (!table.slots[slot].claimed || !table.slots[slot].owner)
			continue;
		table.slots[slot].claimed = fenced && fast_call_ended(table.slots[slot].owner, patience);
		patience = table.slots[slot].claimed ? patience : patience / 2;
	}
}

/* Step 5. Whether there was one. */
static bool forget_notes(void)
{
	bool any = false;

	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++) {
		struct sy__thread *owner = table.slots[slot].claimed ? table.slots[slot].owner : NULL;

		if (!owner || __atomic_load_n(&owner->last, __ATOMIC_RELAXED) == SY__NOTHING)
			continue;
		show(owner, SY__DUMMY_OFFSET);
		any = true;
	}
	return any;
}

/* Steps 1 and 2 for all slots, with the table's lock held. Slots that nobody owns are claimed by that alone. False: some slow call
 * goes on. All threads may have been stopped in the middle of theirs, so after each such call the next get less time. */
static bool stop_all_slow_calls(struct sy__thread *self, unsigned patience)
{
	bool all = true;

	forget_the_dead(self);
	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++) {
		struct sy__thread *owner = table.slots[slot].owner;
		bool stopped = !owner || table.slots[slot].lost || owner == self || stop_slow_calls(owner, patience);

		table.slots[slot].claimed = !table.slots[slot].lost && owner != self && stopped;
		patience = stopped ? patience : patience / 2;
		all &= stopped;
	}
	return all;
}

/* The rest of a claim, of the slots whose slow calls have stopped. With the table's lock held. */
static void claim_stopped(struct sy__thread *self, unsigned patience)
{
	do
		wait_for_fast_calls(patience);
	while (forget_notes());
	self->claims = true;
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

/* With both locks held. Relaxed: readers without them only choose how to wait. */
static void say_shared_claimed(unsigned index, bool claimed)
{
	__atomic_store_n(&table.slots[shared_slot(index)].claimed, claimed, __ATOMIC_RELAXED);
}

/* Some have not got on since the last claim. So that a thread that claims again and again lets them, they come first. Relaxed: a
 * figure. */
static bool threads_sleep(void)
{
	return __atomic_load_n(&table.released.sleepers, __ATOMIC_RELAXED);
}

bool sy__slots_claim_try(void)
{
	struct sy__thread *self = &sy__self;

	if (self->claims || !in_call(self))
		return false;
	get_fence();
	hold_signals(self);
	if (threads_sleep() || !sy__queue_try(&table.lock))
		return false;
	stop_all_slow_calls(self, PATIENCE);
	for (unsigned index = 0; index < shared_slots(); index++)
		if (self->slot != shared_slot(index) && sy__wakeful_try(&shared[index].lock))
			say_shared_claimed(index, true);
	claim_stopped(self, PATIENCE);
	return true;
}

void sy__slots_release(void)
{
	release_all(&sy__self);
	for (unsigned index = 0; index < shared_slots(); index++)
		if (table.slots[shared_slot(index)].claimed) {
			say_shared_claimed(index, false);
			sy__wakeful_unlock(&shared[index].lock);
		}
	sy__queue_unlock(&table.lock);
	sy__event_happens(&table.released);
}

/* Nobody can own or claim the slot meanwhile, as both need the table's lock. Its last owner's writes are visible, as it gave the
 * slot back under that lock. */
bool sy__slot_claim(unsigned slot)
{
	struct sy__thread *self = &sy__self;

	if (self->claims || !in_call(self))
		return false;
	hold_signals(self);
	if (!sy__queue_try(&table.lock))
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

/* Claims all shared slots. False: a thread that has one did not give it back in time. */
static bool claim_shared(unsigned patience)
{
	for (unsigned index = 0; index < shared_slots(); index++) {
		unsigned looks = 0;

		while (!sy__wakeful_try(&shared[index].lock)) {
			if (looks >= patience)
				return false;
			looks = sy__look_again(looks);
		}
		say_shared_claimed(index, true);
	}
	return true;
}

static void release_outside(struct sy__thread *self)
{
	sy__slots_release();
	let_signals_in(self);
}

/* Claims all slots, for a thread outside of calls, which lets no signal in until release_outside. A thread may have been stopped in
 * the middle of a fast call, by a signal; its slot is left out after a while. False: one is in a slow call, and nothing is claimed. */
static bool claim_outside(struct sy__thread *self, unsigned patience)
{
	if (self->slot == NO_SLOT)
		attach(self);
	get_fence();
	hold_signals(self);
	for (unsigned looks = 0; threads_sleep() && looks < patience && looks < SOON;)
		looks = sy__look_again(looks);
	sy__queue_lock(&table.lock);
	if (!claim_shared(patience) || !stop_all_slow_calls(self, patience)) {
		release_outside(self);
		return false;
	}
	claim_stopped(self, SOON);
	return true;
}

static bool claim_enter(unsigned *slot, unsigned patience)
{
	struct sy__thread *self = &sy__self;

	if (self->claims || in_call(self) || !claim_outside(self, patience))
		return false;
	/* A plain store will do: to claim this thread, others need the lock. */
	__atomic_store_n(&self->state, INSIDE, __ATOMIC_RELAXED);
	show(self, SY__DUMMY_OFFSET);
	*slot = self->slot == NO_SLOT ? SHARED : self->slot;
	return true;
}

bool sy__claim_enter(unsigned *slot)
{
	return claim_enter(slot, FOREVER);
}

bool sy__claim_enter_soon(unsigned *slot)
{
	return claim_enter(slot, SOON);
}

void sy__claim_leave(void)
{
	struct sy__thread *self = &sy__self;

	if (self->slot != NO_SLOT)
		show_own(self, self->slot);
	__atomic_store_n(&self->state, OUTSIDE, __ATOMIC_RELEASE);
	sy__call_end();
	release_outside(self);
}

unsigned sy__slots_high(void)
{
	return shared_slots() > 1 ? sy__thread_slots() : SHARED + 1 + __atomic_load_n(&table.owned, __ATOMIC_RELAXED);
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

const void *const sy__slots_table = &table;

unsigned sy__slots_adopt(const void *theirs, bool (*is_there)(const void *, size_t))
{
	const struct table *other = theirs;
	unsigned slots, inside = 0;

	table.few = table.few || other->few;
	slots = other->owned < last_owned() ? other->owned : last_owned() - 1;
	for (unsigned slot = SHARED + 1; slot <= slots; slot++) {
		const struct sy__thread *owner = other->slots[slot].owner;

		if (owner && is_there(owner, sizeof(*owner)))
			inside += owner->busy || owner->state == INSIDE || owner->state == WANTED;
	}
	if (table.owned < slots)
		table.owned = slots;
	table.overflown = table.overflown || other->overflown;
	return inside;
}

/* ---- Fork ----------------------------------------------------------------------------------------------------------- */

void sy__fast_calls_lock(void)
{
	__atomic_store_n(&table.fast_calls_lock, true, __ATOMIC_RELAXED);
}

/* Fast calls that the claim has left out end, however long that takes, and the claim is made again with their slots. Without
 * membarrier their beginnings are seen a moment later. */
static void wait_for_locked_calls(struct sy__thread *self)
{
	bool left_out = false;

	for (unsigned slot = SHARED + 1; slot <= SHARED + table.owned; slot++) {
		struct sy__thread *owner = table.slots[slot].owner;

		if (!owner || owner == self || table.slots[slot].claimed || table.slots[slot].lost)
			continue;
		if (!left_out && !fence_all())
			sy__look_again(SOON - 1);
		left_out = true;
		fast_call_ended(owner, FOREVER);
		table.slots[slot].claimed = true;
	}
	if (left_out)
		claim_stopped(self, SOON);
}

/* Between before_fork and after_fork_* the thread is outside of calls, so other fork handlers may allocate. A fork inside a call
 * (from a constructor) gets no protection. */
static void before_fork(void)
{
	struct sy__thread *self = &sy__self;

	if (self->claims || in_call(self))
		return;
	if (lock_streams)
		lock_streams();
	claim_outside(self, FOREVER);
	if (__atomic_load_n(&table.fast_calls_lock, __ATOMIC_RELAXED))
		wait_for_locked_calls(self);
	self->forking = true;
}

static void after_fork_parent(void)
{
	struct sy__thread *self = &sy__self;

	if (!self->forking)
		return;
	self->forking = false;
	release_outside(self);
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
			own_slot(self, sy__system(SYS_gettid, 0, 0, 0, 0), slot, true);
			continue;
		}
		table.slots[slot].lost = !table.slots[slot].claimed;
		set_free(slot);
	}
	self->forking = false;
	table.fences = false;
	sy__queue_forget(&table.lock);
	table.released.sleepers = 0;
	release_outside(self);
	if (reset_streams_lock)
		reset_streams_lock();
}

unsigned sy__cpus(void)
{
	unsigned long set[1024 / (8 * sizeof(unsigned long))];
	long bytes = sy__system(SYS_sched_getaffinity, 0, sizeof(set), sy__system_word(set), 0);
	unsigned count = 0;

	for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof(*set); i++)
		count += (unsigned)__builtin_popcountl(set[i]);
	return count ? count : 1;
}
