/*
 * Slots of threads: the table that the files about them share. Private to those files.
 *
 * Every thread gets a slot at its first slow call, and gives it back when it ends. Its calls run on the slot without a lock. Other
 * threads touch a slot's state only after they have stopped the slot. A stop costs the owner nothing, except when a call meets one.
 *
 *   slots.c      which slot a thread gets, when it gets it, and when it gives it back
 *   calls.c      slow calls; threads without a slot
 *   stop.c       how a thread stops all slots, and the proof that nobody uses them then
 *   signals.c    which signals wait until a slow call has ended
 *   liveness.c   threads that end without telling us
 *   fork.c       what happens at a fork
 *
 * A thread's words (struct sy__thread, user.h) are its own, with two exceptions. `state` goes from OUTSIDE to INSIDE and back by the
 * thread, and to STOPPING and STOPPED by the thread that stops the slots. `slot_offset` belongs to the thread while it is INSIDE, and
 * to the stopping thread while it is STOPPED.
 *
 * sy__slots.lock is a ticket lock. Under it change: the slots' owners, and which slots are stopped. What is read without it is a hint, or
 * the comment at the member says why it suffices.
 */
#ifndef SY_PLATFORM_THREADS_H
#define SY_PLATFORM_THREADS_H

#include "../types.h"

#include "system_call.h"

enum state {
	OUTSIDE,  /* in no slow call */
	INSIDE,   /* in a slow call */
	STOPPING, /* in a slow call, which ends in STOPPED */
	STOPPED   /* in no call; the next slow call waits */
};

#define NO_SLOT (~0u)
#define SHARED 0u
#define FOREVER (~0u)
#define SOON 16384u /* looks: some hundredths of a second, most of it asleep */

struct sy__slots {
	struct sy__queue lock;
	struct sy__event resumed; /* a stop has ended */
	unsigned owned; /* slots beyond SHARED that ever had an owner; all of the table is zero at first, so unused slots take no memory */
	bool fences;       /* this process may fence its threads */
	bool handlers;     /* the program handles signals */
	bool fast_calls_lock; /* some heap's fast calls do; never unset */
	unsigned first; /* slot whose owner is the first thread, of which the kernel was not asked yet, see slots.c; 0: none */
	unsigned lowest; /* no slot below is free */
	unsigned most; /* slots that are to be used; 0: SY_THREAD_SLOTS; read without the lock */
	bool full;      /* every slot has an owner or is lost; read without the lock, so that threads without a slot do not queue for it */
	bool shares_more; /* the shared slots beside SHARED are in use; read without the lock; never unset */
	struct {
		struct sy__thread *owner; /* NULL: none. Of shared slots always */
		const struct sy__thread *last_owner; /* has ended; to compare with, not to follow */
		long id;      /* the owner's thread id */
		bool robust;  /* the kernel had a list of robust futexes of the owner */
		bool stopped; /* by the thread that holds the lock */
		bool lost;    /* never to be used again */
	} slot[SY_THREAD_SLOTS];
};

extern struct sy__slots sy__slots __attribute__((visibility("hidden")));

struct __attribute__((aligned(64))) sy__shared_slot { /* threads with different slots share no cache line */
	struct sy__wakeful lock;
};

/* SHARED's, then those of the last slots, the last one first. */
extern struct sy__shared_slot sy__shared[SY_SHARED_SLOTS] __attribute__((visibility("hidden")));

/* ---- A thread's words ------------------------------------------------------------------------------------------------ */

/* Also drops the note of an object: the slot's state may change from now on. */
static inline void sy__show(struct sy__thread *thread, ptrdiff_t slot_offset)
{
	__atomic_store_n(&thread->last, SY__NOTHING, SY__STOP_STORE);
	__atomic_store_n(&thread->slot_offset, slot_offset, SY__STOP_STORE);
}

/* Shows a thread its slot, unless all its calls are to be slow ones. */
static inline void sy__show_own(struct sy__thread *thread, unsigned slot)
{
	sy__show(thread, thread->watches ? SY__DUMMY_OFFSET : (ptrdiff_t)(slot * SY_SLOT_STRIDE));
}

static inline enum state sy__state_of(const struct sy__thread *thread)
{
	return (enum state)__atomic_load_n(&thread->state, __ATOMIC_ACQUIRE);
}

static inline bool sy__state_change(struct sy__thread *thread, enum state from, enum state to)
{
	unsigned expected = from;

	return __atomic_compare_exchange_n(&thread->state, &expected, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline bool sy__in_call(const struct sy__thread *self)
{
	enum state state = sy__state_of(self);

	return state == INSIDE || state == STOPPING;
}

/* ---- The table ------------------------------------------------------------------------------------------------------- */

/* What sy__thread_slots returns. Relaxed: it changes before a slot beyond has an owner, if at all. */
static inline unsigned sy__slot_count(void)
{
	unsigned most = __atomic_load_n(&sy__slots.most, __ATOMIC_RELAXED);

	return most ? most : SY_THREAD_SLOTS;
}

/* How many of that many slots are shared. */
static inline unsigned sy__shared_of(unsigned slots)
{
	return slots > SY_FEWEST_THREAD_SLOTS ? SY_SHARED_SLOTS : 1;
}

/* The shared slots but SHARED are behind it. */
static inline unsigned sy__last_owned(void)
{
	unsigned slots = sy__slot_count();

	return slots - sy__shared_of(slots);
}

static inline unsigned sy__shared_slot(unsigned index)
{
	return index ? sy__slot_count() - index : SHARED;
}

/* Shared slots in use. Relaxed: a thread that stops slots has the table's lock, under which it changes; others may begin to use them
 * late. */
static inline unsigned sy__shared_slots(void)
{
	return __atomic_load_n(&sy__slots.shares_more, __ATOMIC_RELAXED) ? sy__shared_of(sy__slot_count()) : 1;
}

static inline bool sy__slot_is_free(unsigned slot)
{
	return !sy__slots.slot[slot].owner && !sy__slots.slot[slot].lost;
}

/* slots.c. The first two with the table's lock held. */
void sy__slot_own(struct sy__thread *, long id, unsigned slot, bool alone);
void sy__slot_free(unsigned slot);
void sy__attach(struct sy__thread *); /* outside a call: gives the thread a slot, if it can */

/* calls.c */
void sy__sleep_while_stopped(void);

/* stop.c, for a fork. The first stops all slots, for a thread outside of calls, which lets no signal in until sy__resume_outside. False:
 * a thread is in a slow call, and nothing is stopped. */
bool sy__stop_outside(struct sy__thread *, unsigned patience);
void sy__resume_outside(struct sy__thread *);
void sy__stop_locked_calls(struct sy__thread *); /* stops what sy__stop_outside left out, as long as that takes */

/* signals.c */
void sy__hold_signals(struct sy__thread *); /* lets no signal in until sy__let_signals_in */
void sy__let_signals_in(struct sy__thread *);
bool sy__signals_may_keep_others(const struct sy__thread *);

/* liveness.c. With the table's lock held. */
void sy__note_robust(unsigned slot);
long sy__thread_id(void); /* the calling one's; 0: a filter might not expect the question, nor any about that thread */
void sy__forget_the_dead(const struct sy__thread *self);

/* fork.c. False: there is no memory for it. */
bool sy__fork_watch(void);

#endif
