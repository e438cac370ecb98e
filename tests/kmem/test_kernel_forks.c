/*
 * Forks of programs with kernel code, in the middle of all that its threads do with works, timers, per-CPU memory, shrinkers and
 * RCU: nobody waits for ever, and the child goes on with each of these, with the works that waited too.
 */
#include <linux/completion.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define FORKS 60
#define PATIENCE 100 /* seconds that a child may take */

static bool stopped;
static atomic_t done;

static void count_work(struct work_struct *work)
{
	(void)work;
	atomic_inc(&done);
}

static void count_timer(struct timer_list *timer)
{
	(void)timer;
	atomic_inc(&done);
}

static DECLARE_WORK(often, count_work);
static DEFINE_TIMER(tick, count_timer);

struct left {
	struct rcu_head head;
};

/* From inside the turn of RCU. */
static void go_on_later(struct rcu_head *head)
{
	kfree(container_of(head, struct left, head));
	schedule_work(&often);
	mod_timer(&tick, jiffies + 1);
}

static void leave_behind(void)
{
	struct left *left = kmalloc(sizeof(*left), GFP_KERNEL);

	if (left)
		call_rcu(&left->head, go_on_later);
}

static unsigned long count_none(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker, (void)control;
	return 0;
}

static void come_and_go(void)
{
	struct shrinker *shrinker = shrinker_alloc(0, "short"); /* not on the stack, which a child would use for others */

	CHECK(shrinker != NULL);
	if (!shrinker)
		return;
	shrinker->count_objects = shrinker->scan_objects = count_none;
	shrinker_register(shrinker);
	shrinker_free(shrinker);
}

static void use_all(void)
{
	int __percpu *counts = alloc_percpu(int);

	CHECK(counts != NULL);
	schedule_work(&often);
	mod_timer(&tick, jiffies + 1);
	leave_behind();
	synchronize_rcu();
	come_and_go();
	free_percpu(counts);
}

static void *use_until_stopped(void *none)
{
	while (!READ_ONCE(stopped))
		use_all();
	return none;
}

static pid_t begin_child(void)
{
	pid_t child = fork();

	if (child == 0)
		alarm(PATIENCE);
	return child;
}

static void wait_for_child(pid_t child)
{
	int status = 1;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

static _Noreturn void go_on_in_child(void)
{
	DECLARE_WORK(own, count_work);
	int before;

	use_all();
	flush_work(&often);
	before = atomic_read(&done);
	CHECK(schedule_work(&own));
	flush_work(&own);
	CHECK(atomic_read(&done) > before);
	timer_delete_sync(&tick);
	rcu_barrier();
	flush_work(&often);
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	_exit(check_result());
}

/* One child after the other, until one has failed, as the next would have its failures. */
static void fork_often(void)
{
	for (unsigned i = 0; i < FORKS && !check_failures; i++) {
		pid_t child = begin_child();

		if (child == 0)
			go_on_in_child();
		wait_for_child(child);
	}
}

/* Threads that are in the middle of something at each fork. */
static void beside_others(void)
{
	pthread_t threads[3];

	for (unsigned i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, use_until_stopped, NULL));
	fork_often();
	WRITE_ONCE(stopped, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	rcu_barrier();
	timer_delete_sync(&tick);
	flush_work(&often);
}

static DECLARE_COMPLETION(begun);
static DECLARE_COMPLETION(may_end);

static void wait_in_work(struct work_struct *work)
{
	(void)work;
	complete(&begun);
	wait_for_completion(&may_end);
}

/* What waits for a thread that the child has not got is done there as well; what that thread runs is not. */
static void with_works_waiting(void)
{
	struct workqueue_struct *queue = alloc_ordered_workqueue("one", 0);
	DECLARE_WORK(runs, wait_in_work);
	DECLARE_WORK(waits, count_work);
	int before = atomic_read(&done);
	pid_t child;

	CHECK(queue_work(queue, &runs));
	wait_for_completion(&begun);
	CHECK(queue_work(queue, &waits));
	child = begin_child();
	if (child == 0) {
		CHECK(flush_work(&waits));
		CHECK_EQUAL(atomic_read(&done), before + 1);
		CHECK(!flush_work(&runs));
		destroy_workqueue(queue);
		_exit(check_result());
	}
	wait_for_child(child);
	CHECK_EQUAL(atomic_read(&done), before);
	complete(&may_end);
	destroy_workqueue(queue);
	CHECK_EQUAL(atomic_read(&done), before + 1);
}

static void fork_in_work(struct work_struct *work)
{
	pid_t child = begin_child();

	(void)work;
	if (child == 0)
		go_on_in_child();
	wait_for_child(child);
}

/* A queue's thread is the one that the child has. */
static void from_work(void)
{
	DECLARE_WORK(forks, fork_in_work);

	CHECK(schedule_work(&forks));
	flush_work(&forks);
}

int main(void)
{
	with_works_waiting();
	from_work();
	beside_others();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
