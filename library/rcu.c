/*
 * Readers, and memory that waits for them (linux/rcupdate.h).
 *
 * Counting. There are two counts of readers, and an index that says which of them a reader adds himself to. A grace period turns
 * the index and waits until the count that was current is 0, then does the same with the other one. Once would not be enough:
 * who has read the index just before it is turned adds himself later, when nobody looks at that count any more, and would be
 * missed by the next grace period if that looked only at the other. New readers are never waited for, so that no number of them
 * holds a grace period up. Who adds himself after the look at his count sees what was unlinked before the grace period, as the
 * look is a write too. (McKenney's SRCU, with one pair of counts for all threads: a reader pays two atomic additions.)
 *
 * Waiting. Nobody waits who only leaves something behind: what is to be freed stands in a queue, and whoever comes by takes the
 * grace period one step further if it can be taken. By comes whoever queues something, ends his reading, gives up his last spin
 * lock or lets himself be interrupted again. synchronize_rcu and rcu_barrier queue an entry of their own and come by until that
 * has been called.
 *
 * Slabs of caches with SLAB_TYPESAFE_BY_RCU wait in the heap, by the number of the grace period that they wait for
 * (sy_heap.grace): the next one to begin, which the heap lets begin when it looks what has passed. It looks from inside calls
 * for memory, where no callback may run: those that are ready stand in a queue of their own, until the next who comes by calls
 * them.
 *
 * Callbacks run where a kernel's would: in a thread that has no spin lock, does not read and has neither preemption nor interrupts
 * off, one after the other in the order of their queueing. Who calls them has the turn, and no lock: they may queue more.
 *
 * Locks. queue_lock protects what is queued; the turn, which is only ever tried for, everything else. The queue's may be taken
 * with the turn held, and nothing else is taken with it held. A fork takes both (forks.c), so that the child finds them free; the
 * readers that it has not got are not waited for.
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
	struct rcu_head *held; /* those that the present one is for */
	struct queue ready;    /* whose grace period has passed */
	uint64_t begun, passed; /* grace periods; read without the turn too */
	unsigned half;         /* of the present grace period: 0: there is none */
	unsigned long pending; /* entries not called yet */
} rcu;

/* Of the thread: how deep it reads, under which index, how many spin locks and preempt_disable it has, and whether interrupts
 * are off. */
static __thread unsigned depth, reads_as, spins, irqs_off;

/* ---- Grace periods ---------------------------------------------------------------------------------------------- */

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

/* Who reads from here on is not waited for. */
static void turn_index(void)
{
	__atomic_store_n(&rcu.index, !rcu.index, __ATOMIC_SEQ_CST);
}

/* Those that were counted before the index was turned last have done. A look that writes: who adds himself to that count later
 * reads what this has written, and so sees what was unlinked before. */
static bool have_read(void)
{
	return __atomic_fetch_add(&rcu.readers[!rcu.index], 0, __ATOMIC_SEQ_CST) == 0;
}

/* Who reads this and what comes after it are one: the number that a caller gets is of a grace period that begins after what he
 * did before. */
static uint64_t count(uint64_t *number, uint64_t more)
{
	uint64_t guess = sy__load64(number);

	while (!sy__swap64(number, &guess, guess + more))
		;
	return guess;
}

/* With the turn. Goes on until there are readers to wait for; begins if there are entries, or somebody polls. */
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
	if (sy__unlikely(__atomic_load_n(&rcu.pending, __ATOMIC_RELAXED)) && !depth && !(spins | irqs_off))
		come_by();
}

/* ---- Forks ------------------------------------------------------------------------------------------------------- */

/* Who waits until all before it has been called (sy__rcu_barrier): on a thread's stack. */
struct waiter {
	struct rcu_head head;
	bool called;
};

static void tell_waiter(struct rcu_head *head)
{
	__atomic_store_n(&((struct waiter *)head)->called, true, __ATOMIC_RELEASE);
}

/* Without those of other threads, which the child has not got: their stacks will be used for others. */
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

/* ---- Readers ---------------------------------------------------------------------------------------------------- */

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

/* ---- Those who leave something behind --------------------------------------------------------------------------- */

void sy__call_rcu(struct rcu_head *head, rcu_callback_t function)
{
	sy_kmem_heap(); /* which prepares for forks */
	head->func = function;
	head->next = NULL;
	__atomic_fetch_add(&rcu.pending, 1, __ATOMIC_RELAXED);
	sy__lock(&rcu.queue_lock);
	append(&rcu.queued, head);
	sy__unlock(&rcu.queue_lock);
	pass();
}

/* ---- Slabs, which the heap keeps until then ----------------------------------------------------------------------- */

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

/* ---- Those who wait ----------------------------------------------------------------------------------------------- */

/* Until everything that was queued before has been called. Looks again after a while, as whoever reads may do so for long. */
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

/* ---- Spin locks, which tell when callbacks may run --------------------------------------------------------------- */

void sy__spin_lock(spinlock_t *lock)
{
	spins++;
	sy__lock(&lock->lock);
}

bool sy__spin_trylock(spinlock_t *lock)
{
	bool got = sy__lock_try(&lock->lock);

	spins += got;
	return got;
}

void sy__spin_unlock(spinlock_t *lock)
{
	sy__unlock(&lock->lock);
	spins--;
	pass();
}

/* ---- What else keeps callbacks away -------------------------------------------------------------------------------- */

void sy__preempt_disable(void)
{
	spins++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void sy__preempt_enable(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	spins--;
	pass();
}

unsigned sy__preempt_count(void)
{
	return spins;
}

unsigned long sy__irqs_off(void)
{
	unsigned long were = irqs_off;

	irqs_off = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return were;
}

void sy__irqs_set(unsigned long off)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	irqs_off = off != 0;
	pass();
}

unsigned long sy__irqs_are_off(void)
{
	return irqs_off;
}

/* ---- The same for those of readers and writers, whose word is the number of readers, or -1 ------------------------------- */

bool sy__rwlock_try(rwlock_t *lock, bool write)
{
	int held = __atomic_load_n(&lock->held, __ATOMIC_RELAXED);

	while (write ? held == 0 : held >= 0)
		if (__atomic_compare_exchange_n(&lock->held, &held, write ? -1 : held + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			spins++;
			return true;
		}
	return false;
}

/* Who reads already may do so again, hence nobody stands in line before readers. */
void sy__rwlock_take(rwlock_t *lock, bool write)
{
	while (!sy__rwlock_try(lock, write))
		sched_yield();
}

void sy__rwlock_drop(rwlock_t *lock, bool write)
{
	__atomic_fetch_add(&lock->held, write ? 1 : -1, __ATOMIC_RELEASE);
	spins--;
	pass();
}
