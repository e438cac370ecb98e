/*
 * Where callbacks of call_rcu may not run, as in a kernel: in a thread that has a spin lock of whatever kind, does not want to be
 * interrupted, or is at a processor's own. They run when it ends that.
 */
#include <linux/bit_spinlock.h>
#include <linux/interrupt.h>
#include <linux/local_lock.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/seqlock.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

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

int main(void)
{
	one_kind();
	two_kinds();
	guarded();
	rcu_barrier();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
