/*
 * Read-copy update (linux/rcupdate.h): as much as slabs of SLAB_TYPESAFE_BY_RCU caches need, and no more.
 *
 * Counting. There are two counts of readers, and an index that says which one a new reader takes. A grace period has two phases.
 * Each flips the index and waits until the count that was current is 0. One phase is not enough: a reader may read the index just before
 * the flip and count itself only later, when the grace period no longer looks at that count. The next grace period would miss it if it
 * looked only at the other count. Nobody waits for new readers, so no number of them delays a grace period. The look at a count is a write
 * too: a reader that counts itself after it sees what was unlinked before the grace period. (McKenney's SRCU, with one pair of counts for
 * all threads: a reader pays two atomic additions.)
 *
 * Progress. call_rcu and kfree_rcu never wait; they queue an entry. Other threads advance the grace period a step when they can:
 * when they queue an entry, end their outermost read section, or release their last spin lock. synchronize_rcu and rcu_barrier
 * queue an entry of their own and advance until that has been called.
 *
 * Slabs of SLAB_TYPESAFE_BY_RCU caches wait in the heap (core/deferred.c), each with the number of the next grace period to begin.
 * The heap asks which grace periods have ended (sy_heap.grace), and that begins one too. It asks from inside allocations, where
 * no callback may run. So entries whose grace period has ended wait in a queue of their own until the next thread advances.
 *
 * Callbacks run in the order of their queueing, in a thread that holds no spin lock of linux/spinlock.h and is not reading. The
 * thread holds advance_lock but not queue_lock, so a callback may queue more.
 *
 * Locks. queue_lock protects the queue of new entries. advance_lock protects everything else, and threads only try to take it.
 * queue_lock may be taken with advance_lock held, and nothing with queue_lock held. A fork takes both (forks.c), so the child
 * finds them free. The child does not wait for readers of other threads, because it has no other threads.
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
	sy__lock_t queue_lock, advance_lock;
	struct queue queued;   /* for the next grace period */
	struct rcu_head *held; /* for the present grace period */
	struct queue ready;    /* whose grace period has ended */
	uint64_t begun, passed; /* grace periods that have begun, and ended; read without advance_lock too */
	unsigned phase;        /* of the present grace period, 1 or 2; 0: there is none */
	unsigned long pending; /* entries not called yet */
} rcu;

/* Of the thread: the nesting of its read sections, the index of its count, the number of spin locks that it holds. */
static __thread unsigned depth, reader_index, spin_locks;

/* ---- Grace periods ----------------------------------------------------------------------------------------------- */

/* Appends entries that are linked through next. */
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
static void flip_index(void)
{
	__atomic_store_n(&rcu.index, !rcu.index, __ATOMIC_SEQ_CST);
}

/* Whether all readers that were counted before the last flip have ended. The look is a write: a reader that adds itself to that count later
 * reads this write, and so sees everything unlinked before. */
static bool readers_done(void)
{
	return __atomic_fetch_add(&rcu.readers[!rcu.index], 0, __ATOMIC_SEQ_CST) == 0;
}

/* Adds to a number and returns what it was. A read-modify-write even where nothing is added: so the next grace period begins after
 * all that the caller has done before. */
static uint64_t count(uint64_t *number, uint64_t more)
{
	uint64_t guess = sy__load64(number);

	while (!sy__swap64(number, &guess, guess + more))
		;
	return guess;
}

/* Advances the grace period as far as readers allow. Begins one if entries are queued, or if the heap asks. With advance_lock. */
static void advance(bool polled)
{
	if (rcu.phase == 0) {
		rcu.held = take_queue();
		if (!rcu.held && !polled)
			return;
		count(&rcu.begun, 1);
		flip_index();
		rcu.phase = 1;
	}
	if (rcu.phase == 1 && readers_done()) {
		flip_index();
		rcu.phase = 2;
	}
	if (rcu.phase == 2 && readers_done()) {
		append(&rcu.ready, rcu.held);
		rcu.held = NULL;
		rcu.phase = 0;
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

static SY__COLD void advance_and_call(void)
{
	if (!sy__lock_try(&rcu.advance_lock))
		return;
	advance(false);
	call_ready();
	sy__unlock(&rcu.advance_lock);
}

static inline void poll(void)
{
	if (sy__unlikely(__atomic_load_n(&rcu.pending, __ATOMIC_RELAXED)) && !depth && !spin_locks)
		advance_and_call();
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

void sy__rcu_advance_fork(enum sy__fork where)
{
	if (where == SY__FORK_BEFORE) {
		sy__lock(&rcu.advance_lock);
		return;
	}
	if (where == SY__FORK_CHILD) {
		rcu.readers[0] = rcu.readers[1] = 0;
		if (depth)
			rcu.readers[reader_index] = 1;
		rcu.held = without_waiters(rcu.held);
		forget_waiters(&rcu.ready);
	}
	sy__unlock(&rcu.advance_lock);
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
	reader_index = __atomic_load_n(&rcu.index, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&rcu.readers[reader_index], 1, __ATOMIC_SEQ_CST);
}

void sy__rcu_read_unlock(void)
{
	if (--depth)
		return;
	__atomic_fetch_sub(&rcu.readers[reader_index], 1, __ATOMIC_SEQ_CST);
	poll();
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
	poll();
}

/* ---- Slabs that wait in the heap -------------------------------------------------------------------------------- */

static uint64_t next_to_begin(void)
{
	return count(&rcu.begun, 0) + 1;
}

static uint64_t last_passed(void)
{
	if (sy__lock_try(&rcu.advance_lock)) {
		advance(true);
		sy__unlock(&rcu.advance_lock);
	}
	return count(&rcu.passed, 0);
}

void sy__rcu_hold_slabs(struct sy_heap *heap)
{
	static const struct sy_grace grace = { .wanted = next_to_begin, .passed = last_passed };

	heap->grace = &grace;
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* Returns when all entries that were queued before have been called, and so after a grace period too. Sleeps after a while, because
 * readers may take long. */
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
		advance_and_call();
	}
}

/* ---- Spin locks -------------------------------------------------------------------------------------------------- */

/* The public header has a lock of the same form as the core's. */
static sy__lock_t *lock_of(spinlock_t *lock)
{
	_Static_assert(sizeof(*lock) == sizeof(sy__lock_t) && offsetof(sy__lock_t, held) == 0, "a lock is one word");
	return (sy__lock_t *)(void *)lock;
}

void spin_lock(spinlock_t *lock)
{
	spin_locks++;
	sy__lock(lock_of(lock));
}

int spin_trylock(spinlock_t *lock)
{
	bool got = sy__lock_try(lock_of(lock));

	spin_locks += got;
	return got;
}

void spin_unlock(spinlock_t *lock)
{
	sy__unlock(lock_of(lock));
	spin_locks--;
	poll();
}
