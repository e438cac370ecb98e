/*
 * Where callbacks of call_rcu may not run, as in a kernel: in a thread that has a spin lock of whatever kind, does not want to be
 * interrupted, or is at a processor's own. They run when it ends that.
 */
#include <linux/bit_spinlock.h>
#include <linux/cleanup.h>
#include <linux/interrupt.h>
#include <linux/local_lock.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <linux/seqlock.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>

#include "check.h"

static unsigned long word, flags, inner;
static DEFINE_SPINLOCK(lock);
static DEFINE_RAW_SPINLOCK(raw);
static DEFINE_RWLOCK(shared);
static DEFINE_SEQLOCK(sequence);
static DEFINE_PER_CPU(int, number);
static local_lock_t here = INIT_LOCAL_LOCK(here);
static unsigned called;

/* Takes what whoever queued it may have. */
static void take(struct rcu_head *head)
{
	bit_spin_lock(0, &word);
	spin_lock(&lock);
	CHECK(in_atomic() && preempt_count() == 2);
	spin_unlock(&lock);
	bit_spin_unlock(0, &word);
	CHECK(preemptible());
	called++;
	kfree(head);
}

static unsigned queued_is_called(void)
{
	unsigned before = called;

	call_rcu((struct rcu_head *)kmalloc(sizeof(struct rcu_head), GFP_ATOMIC), take);
	return called - before;
}

/* Not while it lasts, and once when it ends. */
#define SECTION(begin, end) \
	do { \
		unsigned sy_before = called; \
		begin; \
		CHECK_EQUAL(queued_is_called(), 0); \
		CHECK(!preemptible()); \
		end; \
		CHECK_EQUAL(called - sy_before, 1); \
		CHECK(preemptible()); \
	} while (0)

static void one_kind(void)
{
	CHECK_EQUAL(queued_is_called(), 1);
	SECTION(bit_spin_lock(0, &word), bit_spin_unlock(0, &word));
	SECTION(CHECK(bit_spin_trylock(0, &word) && !bit_spin_trylock(0, &word)), bit_spin_unlock(0, &word));
	SECTION(spin_lock(&lock), spin_unlock(&lock));
	SECTION(spin_lock_bh(&lock), spin_unlock_bh(&lock));
	SECTION(spin_lock_irq(&lock), spin_unlock_irq(&lock));
	SECTION(spin_lock_irqsave(&lock, flags), spin_unlock_irqrestore(&lock, flags));
	SECTION(CHECK(spin_trylock_irqsave(&lock, flags)), spin_unlock_irqrestore(&lock, flags));
	SECTION(raw_spin_lock_irqsave(&raw, flags), raw_spin_unlock_irqrestore(&raw, flags));
	SECTION(read_lock_irqsave(&shared, flags), read_unlock_irqrestore(&shared, flags));
	SECTION(write_lock_bh(&shared), write_unlock_bh(&shared));
	SECTION(write_seqlock_irqsave(&sequence, flags), write_sequnlock_irqrestore(&sequence, flags));
	SECTION(preempt_disable(), preempt_enable());
	SECTION(local_bh_disable(), local_bh_enable());
	SECTION(local_irq_disable(), local_irq_enable());
	SECTION(local_irq_save(flags), local_irq_restore(flags));
	SECTION(get_cpu(), put_cpu());
	SECTION(++*get_cpu_ptr(&number), put_cpu_ptr(&number));
	SECTION(get_cpu_var(number)++, put_cpu_var(number));
	CHECK_EQUAL(this_cpu_read(number), 2);
}

/* A lock given up before what was off with it, and one in the other. */
static void two_kinds(void)
{
	SECTION(spin_lock_irqsave(&lock, flags), { spin_unlock(&lock); CHECK(irqs_disabled()); local_irq_restore(flags); });
	SECTION({ local_irq_save(flags); spin_lock(&lock); }, spin_unlock_irqrestore(&lock, flags));
	SECTION(spin_lock_bh(&lock), { spin_unlock(&lock); CHECK(!preemptible()); local_bh_enable(); });
	SECTION({ local_irq_save(flags); local_irq_save(inner); },
	        { local_irq_restore(inner); CHECK(irqs_disabled()); local_irq_restore(flags); });
	SECTION({ local_irq_disable(); local_irq_disable(); }, local_irq_enable());
	SECTION({ preempt_disable(); preempt_disable(); }, { preempt_enable(); CHECK_EQUAL(preempt_count(), 1); preempt_enable(); });
	SECTION({ rcu_read_lock(); preempt_disable(); }, { rcu_read_unlock(); CHECK(!preemptible()); preempt_enable(); });
	spin_lock(&lock);
	CHECK(!spin_trylock_irqsave(&lock, flags) && !irqs_disabled());
	CHECK(!spin_trylock_bh(&lock) && preempt_count() == 1);
	spin_unlock(&lock);
}

static void guarded(void)
{
	unsigned before = called;

	scoped_guard(spinlock_irqsave, &lock) {
		CHECK(irqs_disabled() && spin_is_locked(&lock));
		scoped_guard(spinlock, &raw)
			CHECK_EQUAL(queued_is_called(), 0);
		CHECK_EQUAL(called, before);
	}
	CHECK_EQUAL(called - before, 1);
	scoped_guard(spinlock_irq, &lock)
		CHECK_EQUAL(queued_is_called(), 0);
	CHECK(called - before == 2 && preemptible());
	local_lock_irqsave(&here, flags);
	CHECK_EQUAL(queued_is_called(), 0);
	local_unlock_irqrestore(&here, flags);
	CHECK(called - before == 3 && preemptible());
}

static DEFINE_MUTEX(mutex);
static DECLARE_RWSEM(semaphore);
DEFINE_STATIC_SRCU(sleepers);
DEFINE_GUARD(own, struct mutex *, mutex_lock(_T), mutex_unlock(_T))
DEFINE_GUARD_COND(own, _try, mutex_trylock(_T))
DEFINE_GUARD_COND(own, _newer, mutex_lock_interruptible(_T), _RET == 0)

/* 7: somebody has it. */
static int try_own(void)
{
	scoped_cond_guard(own_try, return 7, &mutex) {
		CHECK(mutex_is_locked(&mutex));
		return 1;
	}
	return 0;
}

static int wait_for_mutex(void)
{
	scoped_cond_guard(mutex_intr, return -EINTR, &mutex)
		return mutex_is_locked(&mutex);
	return 0;
}

static void guards_that_may_fail(void)
{
	int bodies = 0;

	CHECK_EQUAL(try_own(), 1);
	CHECK(!mutex_is_locked(&mutex));
	scoped_guard(own_newer, &mutex) {
		CHECK_EQUAL(try_own(), 7);
		scoped_guard(mutex_try, &mutex)
			bodies++;
	}
	CHECK(!bodies && !mutex_is_locked(&mutex) && wait_for_mutex() == 1 && !mutex_is_locked(&mutex));
	scoped_guard(rwsem_write_try, &semaphore)
		scoped_cond_guard(rwsem_read_try, bodies++, &semaphore)
			bodies += 10;
	scoped_guard(spinlock_irqsave_try, &lock)
		scoped_guard(spinlock_irqsave_try, &lock)
			bodies += 100;
	scoped_guard(spinlock_bh, &lock)
		scoped_cond_guard(spinlock_try, bodies++, &lock)
			bodies += 100;
	CHECK(bodies == 2 && preemptible() && !spin_is_locked(&lock) && !rwsem_is_locked(&semaphore));
}

static void guards_of_all_kinds(void)
{
	scoped_guard(raw_spinlock, &raw)
		CHECK(spin_is_locked(&raw) && in_atomic());
	scoped_guard(raw_spinlock_irqsave, &raw)
		CHECK(spin_is_locked(&raw) && irqs_disabled());
	scoped_guard(read_lock, &shared)
		CHECK(read_trylock(&shared) && !write_trylock(&shared));
	read_unlock(&shared);
	scoped_guard(write_lock_irqsave, &shared)
		CHECK(!read_trylock(&shared) && irqs_disabled());
	scoped_guard(irqsave) {
		scoped_guard(irqsave)
			CHECK(irqs_disabled());
		CHECK(irqs_disabled());
	}
	scoped_guard(preempt)
		CHECK(!preemptible());
	scoped_guard(srcu, &sleepers)
		CHECK(rcu_read_lock_held());
	CHECK(preemptible() && !rcu_read_lock_held() && write_trylock(&shared));
	write_unlock(&shared);
}

static void last_of_all(void)
{
	atomic_t count = ATOMIC_INIT(2);

	CHECK(!atomic_dec_and_lock(&count, &lock) && !spin_is_locked(&lock));
	CHECK(atomic_dec_and_lock_irqsave(&count, &lock, flags) && spin_is_locked(&lock) && irqs_disabled());
	spin_unlock_irqrestore(&lock, flags);
	atomic_set(&count, 2);
	CHECK(!atomic_dec_and_lock_irqsave(&count, &lock, flags) && preemptible());
	CHECK(atomic_dec_and_mutex_lock(&count, &mutex) && mutex_is_locked(&mutex));
	mutex_unlock(&mutex);
}

static seqcount_spinlock_t changes = SEQCNT_SPINLOCK_ZERO(changes, &lock);

static void of_processors(void)
{
	unsigned began;
	int old = 1;

	seqcount_spinlock_init(&changes, &lock);
	began = read_seqcount_begin(&changes);
	CHECK(!read_seqcount_retry(&changes, began));
	scoped_guard(spinlock, &lock) {
		write_seqcount_begin(&changes);
		write_seqcount_end(&changes);
	}
	CHECK(read_seqcount_retry(&changes, began));
	read_seqlock_excl(&sequence);
	CHECK(spin_is_locked(&sequence.lock));
	read_sequnlock_excl(&sequence);
	this_cpu_write(number, 5);
	CHECK(this_cpu_cmpxchg(number, 4, 6) == 5 && this_cpu_cmpxchg(number, 5, 6) == 5);
	CHECK(!this_cpu_try_cmpxchg(number, &old, 7) && old == 6 && this_cpu_sub_return(number, 2) == 4);
	this_cpu_or(number, 3);
	this_cpu_and(number, 5);
	CHECK_EQUAL(raw_cpu_read(number), 5);
}

int main(void)
{
	one_kind();
	guards_that_may_fail();
	guards_of_all_kinds();
	last_of_all();
	of_processors();
	two_kinds();
	guarded();
	rcu_barrier();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
