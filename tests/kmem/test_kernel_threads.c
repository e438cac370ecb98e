/*
 * What kernel code finds in its headers to let things happen later and elsewhere: works, timers, completions, queues of those who wait, threads, locks
 * of readers and writers, what is kept per processor; and caches that give something up when memory is short.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/percpu.h>
#include <linux/rwsem.h>
#include <linux/semaphore.h>
#include <linux/seqlock.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "check.h"

#include <dirent.h>

/* Of core/pages/pages.h, which is not for kernel code. */
void sy_pages_fail_after(struct sy_pages *, uint64_t requests);

#define WORKS 500

/* ---- Works ------------------------------------------------------------------------------------------------------- */

struct job {
	struct work_struct work;
	struct delayed_work later;
	unsigned number;
};

static atomic_t done, order_wrong;
static unsigned last_number;

static void run_job(struct work_struct *work)
{
	kfree(container_of(work, struct job, work));
	atomic_inc(&done);
}

static void run_in_order(struct work_struct *work)
{
	struct job *job = container_of(work, struct job, work);

	if (job->number != last_number++)
		atomic_inc(&order_wrong);
	run_job(work);
}

static void queue_jobs(struct workqueue_struct *queue, work_func_t run)
{
	for (unsigned i = 0; i < WORKS; i++) {
		struct job *job = kzalloc(sizeof(*job), GFP_KERNEL);

		INIT_WORK(&job->work, run);
		job->number = i;
		CHECK(queue_work(queue, &job->work));
	}
}

static DECLARE_COMPLETION(may_go_on);

static void wait_in_work(struct work_struct *work)
{
	(void)work;
	wait_for_completion(&may_go_on);
	atomic_inc(&done);
}

#define TIME_TO_FLUSH 300 /* milliseconds, on a machine that has much else to do */

static atomic_t flushing;

/* Once somebody waits for that. */
static void let_go_on(struct work_struct *work)
{
	(void)work;
	while (!atomic_read(&flushing))
		msleep(1);
	msleep(TIME_TO_FLUSH);
	complete(&may_go_on);
	complete(&may_go_on);
}

#define CROWD 200

static DECLARE_COMPLETION(crowd_goes_on);
static atomic_t at_once, most_at_once, timed_out;

static void wait_in_crowd(struct work_struct *work)
{
	int now = atomic_inc_return(&at_once), most = atomic_read(&most_at_once);

	(void)work;
	while (now > most && atomic_cmpxchg(&most_at_once, most, now) != most)
		most = atomic_read(&most_at_once);
	if (!wait_for_completion_timeout(&crowd_goes_on, 60 * HZ))
		atomic_inc(&timed_out);
	atomic_dec(&at_once);
}

static void let_crowd_go_on(struct work_struct *work)
{
	(void)work;
	complete_all(&crowd_goes_on);
}

static void queue_crowd(struct workqueue_struct *queue, struct work_struct *crowd, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		INIT_WORK(&crowd[i], wait_in_crowd);
		CHECK(queue_work(queue, &crowd[i]));
	}
}

static unsigned threads_now(void)
{
	DIR *tasks = opendir("/proc/self/task");
	unsigned count = 0;

	while (tasks && readdir(tasks))
		count++;
	if (tasks)
		closedir(tasks);
	return count;
}

/* Works wait for one behind them, as in a kernel, whose queues run as many at once as they were asked to. */
static void works_that_wait_for_another(void)
{
	struct workqueue_struct *many = alloc_workqueue("crowd", WQ_UNBOUND, 0), *few = alloc_workqueue("few", WQ_UNBOUND, 3);
	static struct work_struct crowd[CROWD];
	DECLARE_WORK(starter, let_crowd_go_on);

	queue_crowd(many, crowd, CROWD);
	CHECK(queue_work(many, &starter));
	flush_workqueue(many);
	CHECK_EQUAL(atomic_read(&most_at_once), CROWD);
	reinit_completion(&crowd_goes_on);
	atomic_set(&most_at_once, 0);
	queue_crowd(few, crowd, 20);
	msleep(50);
	CHECK_EQUAL(atomic_read(&at_once), 3);
	CHECK(schedule_work(&starter));
	flush_workqueue(few);
	CHECK_EQUAL(atomic_read(&most_at_once), 3);
	CHECK_EQUAL(atomic_read(&timed_out), 0);
	for (unsigned waits = 0; waits < 3000 && threads_now() > CROWD / 4; waits++)
		msleep(10);
	CHECK(threads_now() <= CROWD / 4);
	destroy_workqueue(many);
	destroy_workqueue(few);
}

/* Those that have stood behind one that was taken back. */
static void works_behind_one(void)
{
	struct workqueue_struct *one = alloc_ordered_workqueue("one", 0);
	DECLARE_WORK(twice, wait_in_crowd);
	DECLARE_WORK(behind, let_crowd_go_on);

	reinit_completion(&crowd_goes_on);
	CHECK(schedule_work(&twice));
	while (work_pending(&twice))
		msleep(1);
	CHECK(queue_work(one, &twice) && queue_work(one, &behind));
	msleep(20);
	CHECK(work_pending(&behind) && cancel_work(&twice));
	flush_work(&behind);
	flush_work(&twice);
	CHECK_EQUAL(atomic_read(&timed_out), 0);
	destroy_workqueue(one);
}

static void works(void)
{
	struct workqueue_struct *many = alloc_workqueue("many-%d", WQ_UNBOUND, 0, 1), *one = alloc_ordered_workqueue("one", 0);
	DECLARE_WORK(waits, wait_in_work);
	DECLARE_WORK(lets_go_on, let_go_on);

	queue_jobs(many, run_job);
	flush_workqueue(many);
	CHECK_EQUAL(atomic_read(&done), WORKS);
	queue_jobs(one, run_in_order);
	CHECK(queue_work(many, &waits));
	while (work_pending(&waits))
		msleep(1);
	CHECK(queue_work(many, &waits)); /* runs again when it has done */
	CHECK(!queue_work(many, &waits));
	CHECK(queue_work(one, &lets_go_on));
	atomic_set(&flushing, 1);
	CHECK(flush_work(&waits));
	CHECK(!flush_work(&waits));
	destroy_workqueue(one);
	CHECK(schedule_work(&waits));
	complete(&may_go_on);
	flush_work(&waits);
	destroy_workqueue(many);
	CHECK_EQUAL(atomic_read(&done), 2 * WORKS + 3);
	CHECK_EQUAL(atomic_read(&order_wrong), 0);
}

static void count_work(struct work_struct *work)
{
	(void)work;
	atomic_inc(&done);
}

static void works_later(void)
{
	struct delayed_work soon, never;
	unsigned long from = jiffies;

	atomic_set(&done, 0);
	INIT_DELAYED_WORK(&soon, count_work);
	INIT_DELAYED_WORK(&never, count_work);
	CHECK(schedule_delayed_work(&soon, msecs_to_jiffies(20)));
	CHECK(!schedule_delayed_work(&soon, 0));
	CHECK(schedule_delayed_work(&never, 100 * HZ));
	CHECK(cancel_delayed_work_sync(&never));
	CHECK(!cancel_delayed_work_sync(&never));
	while (!atomic_read(&done))
		msleep(1);
	CHECK(time_after_eq(jiffies, from + msecs_to_jiffies(20)));
	CHECK(schedule_delayed_work(&soon, 100 * HZ));
	flush_delayed_work(&soon);
	CHECK_EQUAL(atomic_read(&done), 2);
	CHECK(!mod_delayed_work(system_wq, &soon, 100 * HZ));
	CHECK(mod_delayed_work(system_wq, &soon, 0));
	flush_delayed_work(&soon);
	CHECK_EQUAL(atomic_read(&done), 3);
}

/* ---- Timers ------------------------------------------------------------------------------------------------------ */

struct alarm {
	struct timer_list timer;
	int left;
	struct completion rung;
};

static void ring(struct timer_list *timer)
{
	struct alarm *alarm = from_timer(alarm, timer, timer);

	if (--alarm->left)
		mod_timer(timer, jiffies + 1);
	else
		complete(&alarm->rung);
}

static void timers(void)
{
	struct alarm *alarm = kzalloc(sizeof(*alarm), GFP_KERNEL), *far = kzalloc(sizeof(*far), GFP_KERNEL);

	init_completion(&alarm->rung);
	timer_setup(&alarm->timer, ring, 0);
	timer_setup(&far->timer, ring, 0);
	alarm->left = 5;
	CHECK_EQUAL(mod_timer(&far->timer, jiffies + 100 * HZ), 0);
	CHECK_EQUAL(mod_timer(&far->timer, jiffies + 200 * HZ), 1);
	CHECK_EQUAL(mod_timer(&alarm->timer, jiffies + 3), 0);
	wait_for_completion(&alarm->rung);
	CHECK_EQUAL(alarm->left, 0);
	CHECK_EQUAL(del_timer_sync(&alarm->timer), 0);
	CHECK(timer_pending(&far->timer));
	CHECK_EQUAL(del_timer_sync(&far->timer), 1);
	kfree(alarm);
	kfree(far);
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

static DECLARE_WAIT_QUEUE_HEAD(queue);
static DEFINE_SPINLOCK(lock);
static LIST_HEAD(parcels);
static DECLARE_RWSEM(rwsem);
static DEFINE_RWLOCK(rwlock);
static DEFINE_SEQLOCK(seqlock);
static unsigned guarded[2], read_wrong;
static DEFINE_PER_CPU(unsigned, seen);

struct parcel {
	struct list_head link;
};

static bool have_parcel(struct parcel **parcel)
{
	spin_lock(&lock);
	*parcel = list_first_entry_or_null(&parcels, struct parcel, link);
	if (*parcel)
		list_del(&(*parcel)->link);
	spin_unlock(&lock);
	return *parcel != NULL;
}

static int consume(void *data)
{
	unsigned *count = per_cpu_ptr((unsigned *)data, smp_processor_id());
	struct parcel *parcel = NULL;
	int got = 0;

	while (!kthread_should_stop()) {
		wait_event_interruptible(queue, have_parcel(&parcel) || kthread_should_stop());
		if (parcel) {
			this_cpu_inc(*(unsigned *)data);
			++*count;
			--*count;
			got++;
		}
		kfree(parcel);
		parcel = NULL;
	}
	return got;
}

static void consumers(void)
{
	unsigned *counts = alloc_percpu(unsigned), cpu, sum = 0;
	struct task_struct *tasks[3];
	int got = 0;

	for (unsigned i = 0; i < 3; i++)
		CHECK(!IS_ERR(tasks[i] = kthread_run(consume, counts, "consumer/%u", i)));
	for (unsigned i = 0; i < 2000; i++) {
		struct parcel *parcel = kmalloc(sizeof(*parcel), GFP_KERNEL);

		spin_lock(&lock);
		list_add_tail(&parcel->link, &parcels);
		spin_unlock(&lock);
		wake_up(&queue);
	}
	for (bool left = true; left; msleep(1)) {
		guard(spinlock)(&lock);
		left = !list_empty(&parcels);
	}
	CHECK_TEXT(tasks[2]->comm, "consumer/2");
	for (unsigned i = 0; i < 3; i++) {
		wake_up_all(&queue);
		got += kthread_stop(tasks[i]);
	}
	CHECK_EQUAL(got, 2000);
	for_each_possible_cpu(cpu)
		sum += *per_cpu_ptr(counts, cpu);
	CHECK_EQUAL(sum, 2000);
	free_percpu(counts);
	per_cpu(seen, 3) = 1;
	CHECK_EQUAL(per_cpu(seen, 2), 0);
	CHECK_EQUAL(wait_event_timeout(queue, false, 3), 0);
	CHECK(wait_event_timeout(queue, true, 3) > 0);
	tasks[0] = kthread_create(consume, counts, "never");
	CHECK_EQUAL(kthread_stop(tasks[0]), -EINTR);
}

static int read_and_write(void *semaphore)
{
	for (unsigned i = 0; i < 3000; i++) {
		unsigned began, one, two;

		if (i % 3 == 0) {
			down_write(&rwsem);
			write_lock(&rwlock);
			write_seqlock(&seqlock);
			WRITE_ONCE(guarded[0], guarded[0] + 1);
			WRITE_ONCE(guarded[1], guarded[1] + 1);
			write_sequnlock(&seqlock);
			write_unlock(&rwlock);
			up_write(&rwsem);
			continue;
		}
		down_read(&rwsem);
		read_lock(&rwlock);
		if (guarded[0] != guarded[1])
			WRITE_ONCE(read_wrong, 1);
		read_unlock(&rwlock);
		up_read(&rwsem);
		do {
			began = read_seqbegin(&seqlock);
			one = __atomic_load_n(&guarded[0], __ATOMIC_RELAXED);
			two = __atomic_load_n(&guarded[1], __ATOMIC_RELAXED);
		} while (read_seqretry(&seqlock, began));
		if (one != two)
			WRITE_ONCE(read_wrong, 1);
	}
	up(semaphore);
	return 0;
}

static void locks(void)
{
	DEFINE_SEMAPHORE(ended, 1);

	down(&ended);
	CHECK_EQUAL(down_timeout(&ended, 2), -ETIME);
	for (unsigned i = 0; i < 3; i++)
		CHECK(!IS_ERR(kthread_run(read_and_write, &ended, "locks")));
	for (unsigned i = 0; i < 3; i++)
		down(&ended);
	CHECK_EQUAL(guarded[0], 3000);
	CHECK_EQUAL(read_wrong, 0);
}

/* Of one on the stack that is gone, and written over, as soon as it is had, though up() has not returned perhaps. */
static int raise_once(void *semaphore)
{
	up(semaphore);
	return 0;
}

static void passing_semaphores(void)
{
	for (unsigned i = 0; i < 500; i++) {
		struct semaphore passing;

		sema_init(&passing, 0);
		CHECK(!IS_ERR(kthread_run(raise_once, &passing, "giver")));
		while (down_trylock(&passing))
			cond_resched();
		memset(&passing, 0xff, sizeof(passing));
	}
}

/* ---- Numbers that are looked up while others change them ------------------------------------------------------------ */

static DEFINE_XARRAY(numbers);

static int look_up(void *stop)
{
	unsigned wrong = 0;

	for (unsigned i = 0; !__atomic_load_n((bool *)stop, __ATOMIC_RELAXED); i++) {
		unsigned long index = i % 5000 * 37UL, at = index;
		void *entry = xa_load(&numbers, index);

		wrong += entry && entry != xa_mk_value(index);
		entry = xa_find(&numbers, &at, ULONG_MAX, XA_PRESENT);
		wrong += entry && entry != xa_mk_value(at);
	}
	return (int)wrong;
}

static void looked_up_at_once(void)
{
	struct task_struct *tasks[2];
	bool stop = false;

	for (unsigned i = 0; i < 2; i++) {
		tasks[i] = kthread_run(look_up, &stop, "look up");
		get_task_struct(tasks[i]);
	}
	for (unsigned round = 0; round < 6; round++)
		for (unsigned long i = 0; i < 5000; i++)
			if (round % 2)
				xa_erase(&numbers, i * 37);
			else
				CHECK(!xa_is_err(xa_store(&numbers, i * 37, xa_mk_value(i * 37), GFP_KERNEL)));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQUAL(kthread_stop(tasks[i]), 0);
		put_task_struct(tasks[i]);
	}
	CHECK(xa_empty(&numbers));
}

/* ---- Short of memory ------------------------------------------------------------------------------------------------ */

static unsigned kept = 1000;

static unsigned long count_kept(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker;
	(void)control;
	return kept ? kept : SHRINK_EMPTY;
}

static unsigned long give_up(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker;
	CHECK(control->nr_to_scan && control->nr_to_scan <= 128 && control->nr_scanned == control->nr_to_scan && control->gfp_mask & __GFP_FS);
	kept -= (unsigned)control->nr_to_scan;
	return control->nr_to_scan;
}

static unsigned asked;

/* It says that there is much, gives up one thing, and then stops. */
static unsigned long count_much(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker;
	(void)control;
	return 1000;
}

static unsigned long give_up_one(struct shrinker *shrinker, struct shrink_control *control)
{
	CHECK_EQUAL(control->nr_to_scan, (unsigned long)shrinker->batch);
	return asked++ ? SHRINK_STOP : 1;
}

static unsigned long count_nothing(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker;
	(void)control;
	return SHRINK_STOP;
}

static void shrinkers_that_stop(void)
{
	struct shrinker shrinker = { .count_objects = count_much, .scan_objects = give_up_one, .seeks = DEFAULT_SEEKS, .batch = 10 };
	struct sy_heap *heap = sy_kmem_heap();
	void *object;

	CHECK_EQUAL(register_shrinker(&shrinker, "stops"), 0);
	for (unsigned i = 1; i <= 2; i++) { /* a thread that has asked once asks again */
		asked = 0;
		sy_heap_trim(heap); /* which keeps what was freed last */
		sy_pages_fail_after(heap->pages, 1);
		object = kmalloc(70000, GFP_KERNEL);
		CHECK(object != NULL);
		CHECK_EQUAL(asked, 2);
		kfree(object);
	}
	asked = 1;
	sy_heap_trim(heap);
	shrinker.count_objects = count_nothing;
	sy_pages_fail_after(heap->pages, 1);
	CHECK(kmalloc(70000, GFP_KERNEL) == NULL);
	CHECK_EQUAL(asked, 1);
	sy_pages_fail_after(heap->pages, 0);
	unregister_shrinker(&shrinker);
}

static void shrinkers(void)
{
	struct shrinker shrinker = { .count_objects = count_kept, .scan_objects = give_up, .seeks = DEFAULT_SEEKS };
	struct shrinker *later = shrinker_alloc(0, "later-%d", 1);
	struct sy_heap *heap = sy_kmem_heap();
	void *object;

	CHECK_EQUAL(register_shrinker(&shrinker, "kept-%d", 1), 0);
	sy_pages_fail_after(heap->pages, 1);
	CHECK(kmalloc(70000, GFP_ATOMIC) == NULL && kept == 1000);
	sy_pages_fail_after(heap->pages, 1);
	object = kmalloc(70000, GFP_KERNEL);
	CHECK(object != NULL && kept == 0);
	kfree(object);
	sy_heap_trim(heap);
	kept = 256; /* whole portions, and none of nothing */
	sy_pages_fail_after(heap->pages, 1);
	object = kmalloc(70000, GFP_KERNEL);
	CHECK(object != NULL && kept == 0);
	kfree(object);
	unregister_shrinker(&shrinker);
	later->count_objects = count_kept;
	later->scan_objects = give_up;
	shrinker_register(later);
	sy_pages_fail_after(heap->pages, 1);
	CHECK(kmalloc(700000, GFP_KERNEL) == NULL);
	shrinker_free(later);
	kept = 7; /* of one that is not asked any more */
	sy_pages_fail_after(heap->pages, 1);
	CHECK(kmalloc(700000, GFP_KERNEL) == NULL && kept == 7);
	sy_pages_fail_after(heap->pages, 0);
}

int main(void)
{
	works();
	works_that_wait_for_another();
	works_behind_one();
	works_later();
	timers();
	consumers();
	locks();
	passing_semaphores();
	looked_up_at_once();
	shrinkers();
	shrinkers_that_stop();
	rcu_barrier();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
