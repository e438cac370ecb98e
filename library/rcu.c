/*
 * Readers, and memory that waits for them (linux/rcupdate.h): what slabs of caches with SLAB_TYPESAFE_BY_RCU need, and no more.
 *
 * Counting. There are two counts of readers, and an index that says which of the two a new reader takes. A grace period turns
 * the index, waits until the count that was current is 0, and then does the same with the other count. One turn is not enough:
 * a reader may read the index just before the turn and count itself only later, when nobody looks at that count any more. The
 * next grace period would miss it if it looked only at the other count. Nobody waits for new readers, so no number of them holds
 * up a grace period. A reader that counts itself after the look at its count sees what was unlinked before the grace period,
 * because the look is a write too. (McKenney's SRCU, with one pair of counts for all threads: a reader pays two atomic additions.)
 *
 * Waiting. call_rcu and kfree_rcu never wait: they queue an entry. Threads that come by take the grace period one step further
 * if they can. A thread comes by when it queues an entry, ends its outermost reading, or releases its last spin lock.
 * synchronize_rcu and rcu_barrier queue an entry of their own, and come by until that has been called.
 *
 * Slabs of caches with SLAB_TYPESAFE_BY_RCU wait in the heap (core/deferred.c), each with the number of its grace period: the
 * next one to begin. The heap asks which have passed (sy_heap.grace), and that begins a grace period too. It asks from inside
 * allocations, where no callback may run. So entries whose grace period has passed stand in a queue of their own until the next
 * thread comes by and calls them.
 *
 * Callbacks run in a thread that holds no spin lock of linux/spinlock.h and does not read, in the order of their queueing. The
 * thread that calls them holds the turn, but not queue_lock: a callback may queue more.
 *
 * Locks. queue_lock protects the queue of new entries. The turn protects everything else, and threads only ever try for it.
 * queue_lock may be taken with the turn held, and nothing is taken with queue_lock held. A fork takes both (forks.c), so the
 * child finds them free. The child does not wait for readers of other threads, as it has no other threads.
 */
#include "rcu.h"

#include "forks.h"

#include <slabyard/kernel/linux/rcupdate.h>
#include <slabyard/kernel/linux/spinlock.h>

#include <sched.h>
#include <time.h>

/* In order of queueing. */
struct queue {
	struct rcu_head *first, **end;
};

static struct {
	unsigned long readers[2];
	unsigned index;
	sy__lock_t queue_lock, turn;
	struct queue queued;   /* for the next grace period */
	struct rcu_head *held; /* for the present grace period */
	struct queue ready;    /* whose grace period has passed */
	uint64_t begun, passed; /* grace periods; read without the turn too */
	unsigned half;         /* of the present grace period: 0: there is none */
	unsigned long pending; /* entries not called yet */
} rcu;

/* Of the thread: how deep it reads, the index of its count, the spin locks that it holds. */
static __thread unsigned depth, reads_as, spins;

/* ---- Grace periods ----------------------------------------------------------------------------------------------- */

/* Entries, linked through next, at the end of a queue. */
static void append(struct queue *queue, struct rcu_head *first)
{
	if (!queue->first)
		queue->end = &queue->first;
	for (*queue->end = first; *queue->end; queue->end = &(*queue->end)->next)
		;
}

static struct rcu_head *take_queue(void)
{
	struct rcu_head *first;

	sy__lock(&rcu.queue_lock);
	first = rcu.queued.first;
	rcu.queued.first = NULL;
	sy__unlock(&rcu.queue_lock);
	return first;
}

/* Nobody waits for readers that begin after this. */
static void turn_index(void)
{
	__atomic_store_n(&rcu.index, !rcu.index, __ATOMIC_SEQ_CST);
}

/* Whether all readers have done that were counted before the last turn. The look is a write: a reader that adds itself to that
 * count later reads what this has written, and so sees what was unlinked before. */
static bool have_read(void)
{
	return __atomic_fetch_add(&rcu.readers[!rcu.index], 0, __ATOMIC_SEQ_CST) == 0;
}

/* A read-modify-write even where nothing is added, so that the number's grace period begins after all that the caller did before. */
static uint64_t count(uint64_t *number, uint64_t more)
{
	uint64_t guess = sy__load64(number);

	while (!sy__swap64(number, &guess, guess + more))
		;
	return guess;
}

/* Takes the grace period as far as readers allow; begins one if entries are queued, or the heap asks. With the turn. */
static void advance(bool polled)
{
	if (rcu.half == 0) {
		rcu.held = take_queue();
		if (!rcu.held && !polled)
			return;
		count(&rcu.begun, 1);
		turn_index();
		rcu.half = 1;
	}
	if (rcu.half == 1 && have_read()) {
		turn_index();
		rcu.half = 2;
	}
	if (rcu.half == 2 && have_read()) {
		append(&rcu.ready, rcu.held);
		rcu.held = NULL;
		rcu.half = 0;
		count(&rcu.passed, 1);
	}
}

static void call(struct rcu_head *head)
{
	uintptr_t offset = (uintptr_t)head->func;

	if (offset < SY__RCU_OFFSETS)
		kvfree((char *)head - offset);
	else
		head->func(head);
}

static void call_ready(void)
{
	struct rcu_head *head = rcu.ready.first;

	rcu.ready.first = NULL;
	while (head) {
		struct rcu_head *next = head->next;

		call(head);
		__atomic_fetch_sub(&rcu.pending, 1, __ATOMIC_RELAXED);
		head = next;
	}
}

static SY__COLD void come_by(void)
{
	if (!sy__lock_try(&rcu.turn))
		return;
	advance(false);
	call_ready();
	sy__unlock(&rcu.turn);
}

static inline void pass(void)
{
	if (sy__unlikely(__atomic_load_n(&rcu.pending, __ATOMIC_RELAXED)) && !depth && !spins)
		come_by();
}

/* ---- Forks ------------------------------------------------------------------------------------------------------- */

/* The entry of a thread that waits in sy__rcu_barrier, on its stack. */
struct waiter {
	struct rcu_head head;
	bool called;
};

static void tell_waiter(struct rcu_head *head)
{
	__atomic_store_n(&((struct waiter *)head)->called, true, __ATOMIC_RELEASE);
}

/* Drops the waiters of other threads from a list: the child has no such threads, and uses their stacks for new ones. */
static struct rcu_head *without_waiters(struct rcu_head *first)
{
	for (struct rcu_head **place = &first; *place;) {
		if ((*place)->func != tell_waiter) {
			place = &(*place)->next;
			continue;
		}
		*place = (*place)->next;
		rcu.pending--;
	}
	return first;
}

static void forget_waiters(struct queue *queue)
{
	struct rcu_head *first = queue->first;

	queue->first = NULL;
	append(queue, without_waiters(first));
}

void sy__rcu_turn_fork(enum sy__fork where)
{
	if (where == SY__FORK_BEFORE) {
		sy__lock(&rcu.turn);
		return;
	}
	if (where == SY__FORK_CHILD) {
		rcu.readers[0] = rcu.readers[1] = 0;
		if (depth)
			rcu.readers[reads_as] = 1;
		rcu.held = without_waiters(rcu.held);
		forget_waiters(&rcu.ready);
	}
	sy__unlock(&rcu.turn);
}

void sy__rcu_queue_fork(enum sy__fork where)
{
	if (where == SY__FORK_BEFORE) {
		sy__lock(&rcu.queue_lock);
		return;
	}
	if (where == SY__FORK_CHILD)
		forget_waiters(&rcu.queued);
	sy__unlock(&rcu.queue_lock);
}

/* ---- Readers ----------------------------------------------------------------------------------------------------- */

void sy__rcu_read_lock(void)
{
	if (depth++)
		return;
	reads_as = __atomic_load_n(&rcu.index, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&rcu.readers[reads_as], 1, __ATOMIC_SEQ_CST);
}

void sy__rcu_read_unlock(void)
{
	if (--depth)
		return;
	__atomic_fetch_sub(&rcu.readers[reads_as], 1, __ATOMIC_SEQ_CST);
	pass();
}

bool sy__rcu_reads(void)
{
	return depth != 0;
}

/* ---- Callbacks --------------------------------------------------------------------------------------------------- */

void sy__call_rcu(struct rcu_head *head, rcu_callback_t function)
{
	sy_kmem_heap(); /* opening it prepares for forks */
	head->func = function;
	head->next = NULL;
	__atomic_fetch_add(&rcu.pending, 1, __ATOMIC_RELAXED);
	sy__lock(&rcu.queue_lock);
	append(&rcu.queued, head);
	sy__unlock(&rcu.queue_lock);
	pass();
}

/* ---- Slabs that the heap keeps ----------------------------------------------------------------------------------- */

static uint64_t next_to_begin(void)
{
	return count(&rcu.begun, 0) + 1;
}

static uint64_t last_passed(void)
{
	if (sy__lock_try(&rcu.turn)) {
		advance(true);
		sy__unlock(&rcu.turn);
	}
	return count(&rcu.passed, 0);
}

void sy__rcu_hold_slabs(struct sy_heap *heap)
{
	static const struct sy_grace grace = { .wanted = next_to_begin, .passed = last_passed };

	heap->grace = &grace;
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* Returns when everything that was queued before has been called. Sleeps after a while, as readers may take long. */
void sy__rcu_barrier(void)
{
	const struct timespec moment = { .tv_nsec = 100000 };
	struct waiter waiter = { .called = false };

	sy__call_rcu(&waiter.head, tell_waiter);
	for (unsigned looks = 0; !__atomic_load_n(&waiter.called, __ATOMIC_ACQUIRE); looks++) {
		if (looks < 100)
			sched_yield();
		else
			nanosleep(&moment, NULL);
		come_by();
	}
}

void sy__synchronize_rcu(void)
{
	sy__rcu_barrier();
}

/* ---- Spin locks -------------------------------------------------------------------------------------------------- */

/* The public header knows no lock of the core's, but one of the same form. */
static sy__lock_t *lock_of(spinlock_t *lock)
{
	_Static_assert(sizeof(*lock) == sizeof(sy__lock_t) && offsetof(sy__lock_t, held) == 0, "a lock is one word");
	return (sy__lock_t *)(void *)lock;
}

void sy__spin_lock(spinlock_t *lock)
{
	spins++;
	sy__lock(lock_of(lock));
}

bool sy__spin_trylock(spinlock_t *lock)
{
	bool got = sy__lock_try(lock_of(lock));

	spins += got;
	return got;
}

void sy__spin_unlock(spinlock_t *lock)
{
	sy__unlock(lock_of(lock));
	spins--;
	pass();
}
