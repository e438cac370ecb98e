/*
 * Works (linux/workqueue.h): functions that threads of a queue call later. A queue has a thread for each work that waits and
 * nobody is free for, up to the number of works that it may run at once. The first AT_ONCE are made when works are queued. As
 * nothing tells whether those that run sleep, more come one after the other, for as long as no work is taken within two ticks: so
 * a crowd of short works does not get hundreds of threads, and works that wait for another one get to it. A thread that had
 * nothing to do for a while ends, but for the last one, without which there might be no memory for another.
 *
 * A work is off its queue when its function is called, which may free it: what is known of a running one is its address alone.
 * It never runs twice at once: queued again meanwhile, it waits until it has done, and who does it then wakes a thread. As in a
 * kernel, a work freed and made anew at the same address while the function still runs waits as well.
 *
 * Lock: one for all queues, which is not held while a function runs. A timer's may be taken with it held, not the other way
 * round. The child of a fork has the works that waited, and none of the threads but the one that forked: it gets some when it
 * queues a work or waits for one. What others ran is not known there any more.
 */
#include <slabyard/kernel/linux/workqueue.h>

#include "forks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define AT_ONCE 16
#define IDLE_SECONDS 2
#define STACK_BYTES ((size_t)1 << 20) /* a kernel's are far smaller */

struct workqueue_struct {
	struct list_head link, works, workers;
	unsigned waiting, idle, threads, most;
	unsigned taken, seen; /* works so far; at the last look whether any is taken */
	struct timer_list next_look;
	pthread_cond_t more; /* for its threads: a work may run, or the queue ends */
	bool ending;
	char name[24];
};

struct worker {
	struct list_head link;
	struct workqueue_struct *queue;
	struct work_struct *running;
	bool again; /* it was seen on a queue meanwhile */
};

static void look_again(struct timer_list *);
static void see_to(struct workqueue_struct *);

static __thread struct worker *myself; /* of a queue's thread */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* for who waits: something has been done, or a thread has ended */
static LIST_HEAD(queues);
static struct workqueue_struct of_system = { .works = LIST_HEAD_INIT(of_system.works),
	                                         .workers = LIST_HEAD_INIT(of_system.workers),
	                                         .link = LIST_HEAD_INIT(of_system.link),
	                                         .most = WQ_DFL_ACTIVE,
	                                         .next_look = { .function = look_again },
	                                         .more = PTHREAD_COND_INITIALIZER,
	                                         .name = "events" };

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

static struct worker *runner_in(struct workqueue_struct *queue, const struct work_struct *work)
{
	struct worker *worker;

	list_for_each_entry(worker, &queue->workers, link)
		if (worker->running == work)
			return worker;
	return NULL;
}

static struct worker *runner_of(const struct work_struct *work)
{
	struct workqueue_struct *queue;
	struct worker *runner = runner_in(&of_system, work);

	if (runner)
		return runner;
	list_for_each_entry(queue, &queues, link) {
		runner = runner_in(queue, work);
		if (runner)
			return runner;
	}
	return NULL;
}

static bool is_running(const struct work_struct *work)
{
	return runner_of(work) != NULL;
}

/* The first that may run now. */
static struct work_struct *next_work(struct workqueue_struct *queue)
{
	struct work_struct *work;

	list_for_each_entry(work, &queue->works, entry) {
		struct worker *runner = runner_of(work);

		if (!runner)
			return work;
		runner->again = true;
		if (queue->most == 1)
			return NULL;
	}
	return NULL;
}

static void take_off(struct workqueue_struct *queue, struct work_struct *work)
{
	list_del_init(&work->entry);
	WRITE_ONCE(work->sy__pending, false);
	queue->waiting--;
}

static void see_to_all(void)
{
	struct workqueue_struct *queue;

	see_to(&of_system);
	list_for_each_entry(queue, &queues, link)
		see_to(queue);
}

static void do_work(struct worker *worker, struct work_struct *work)
{
	work_func_t function = work->func;

	take_off(worker->queue, work);
	worker->queue->taken++;
	worker->running = work;
	worker->again = false;
	see_to(worker->queue);
	pthread_mutex_unlock(&lock);
	function(work);
	pthread_mutex_lock(&lock);
	worker->running = NULL;
	if (worker->again)
		see_to_all();
	pthread_cond_broadcast(&changed);
}

/* False: nothing came for a while. */
static bool wait_for_more(struct workqueue_struct *queue)
{
	struct timespec until;
	int error;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += IDLE_SECONDS;
	queue->idle++;
	error = pthread_cond_timedwait(&queue->more, &lock, &until);
	queue->idle--;
	return error != ETIMEDOUT;
}

static void *work_for_queue(void *argument)
{
	struct worker worker = { .queue = argument };
	struct workqueue_struct *queue = argument;
	struct work_struct *work;

	myself = &worker;
	pthread_mutex_lock(&lock);
	list_add(&worker.link, &queue->workers);
	while (!queue->ending || queue->waiting) {
		work = next_work(queue);
		if (work) {
			do_work(&worker, work);
			continue;
		}
		if (!wait_for_more(queue) && !queue->waiting && queue->threads > 1)
			break;
	}
	list_del(&worker.link);
	queue->threads--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void add_thread(struct workqueue_struct *queue)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (!pthread_create(&thread, &attributes, work_for_queue, queue))
		queue->threads++;
	pthread_attr_destroy(&attributes);
}

static bool needs_thread(const struct workqueue_struct *queue)
{
	return queue->waiting > queue->idle && queue->threads < queue->most;
}

static void look_later(struct workqueue_struct *queue)
{
	if (!timer_pending(&queue->next_look))
		queue->seen = queue->taken;
	sy__timer_start(&queue->next_look, jiffies + 2, false, true);
}

/* Somebody does what waits. Where there is no memory for a thread, those that there are do it. */
static void see_to(struct workqueue_struct *queue)
{
	if (queue->waiting && queue->idle)
		pthread_cond_signal(&queue->more);
	if (!needs_thread(queue))
		return;
	if (queue->threads < AT_ONCE)
		add_thread(queue);
	else
		look_later(queue);
}

static void look_again(struct timer_list *timer)
{
	struct workqueue_struct *queue = container_of(timer, struct workqueue_struct, next_look);

	pthread_mutex_lock(&lock);
	if (needs_thread(queue)) {
		if (queue->seen == queue->taken)
			add_thread(queue);
		look_later(queue);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- Forks ------------------------------------------------------------------------------------------------------- */

static void forget_threads(struct workqueue_struct *queue)
{
	INIT_LIST_HEAD(&queue->workers);
	pthread_cond_init(&queue->more, NULL);
	queue->threads = queue->idle = 0;
	if (myself && myself->queue == queue) {
		list_add(&myself->link, &queue->workers);
		queue->threads = 1;
	}
}

void sy__works_fork(enum sy__fork where)
{
	struct workqueue_struct *queue;

	if (where == SY__FORK_BEFORE) {
		pthread_mutex_lock(&lock);
		return;
	}
	if (where == SY__FORK_CHILD) {
		pthread_cond_init(&changed, NULL);
		forget_threads(&of_system);
		list_for_each_entry(queue, &queues, link)
			forget_threads(queue);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

struct workqueue_struct *sy__workqueue_of_system(void)
{
	return &of_system;
}

struct workqueue_struct *sy__workqueue_new(int at_once, const char *name, ...)
{
	struct workqueue_struct *queue = kzalloc(sizeof(*queue), GFP_KERNEL);
	va_list arguments;

	if (!queue)
		return NULL;
	INIT_LIST_HEAD(&queue->works);
	INIT_LIST_HEAD(&queue->workers);
	queue->most = at_once < 1 ? WQ_DFL_ACTIVE : at_once > WQ_MAX_ACTIVE ? WQ_MAX_ACTIVE : (unsigned)at_once;
	timer_setup(&queue->next_look, look_again, 0);
	pthread_cond_init(&queue->more, NULL);
	va_start(arguments, name);
	vsnprintf(queue->name, sizeof(queue->name), name, arguments);
	va_end(arguments);
	sy__prepare_forks();
	pthread_mutex_lock(&lock);
	list_add(&queue->link, &queues);
	pthread_mutex_unlock(&lock);
	return queue;
}

static bool is_busy(struct workqueue_struct *queue)
{
	struct worker *worker;

	if (queue->waiting)
		return true;
	list_for_each_entry(worker, &queue->workers, link)
		if (worker->running)
			return true;
	return false;
}

static void wait_until_idle(struct workqueue_struct *queue)
{
	see_to(queue);
	while (is_busy(queue))
		pthread_cond_wait(&changed, &lock);
}

void sy__workqueue_flush(struct workqueue_struct *queue)
{
	pthread_mutex_lock(&lock);
	wait_until_idle(queue);
	pthread_mutex_unlock(&lock);
}

void sy__workqueue_end(struct workqueue_struct *queue)
{
	pthread_mutex_lock(&lock);
	wait_until_idle(queue);
	queue->ending = true;
	pthread_cond_broadcast(&queue->more);
	while (queue->threads)
		pthread_cond_wait(&changed, &lock);
	list_del(&queue->link);
	pthread_mutex_unlock(&lock);
	sy__timer_stop(&queue->next_look, true);
	pthread_cond_destroy(&queue->more);
	kfree(queue);
}

/* ---- Works ------------------------------------------------------------------------------------------------------- */

static void put_on(struct workqueue_struct *queue, struct work_struct *work)
{
	list_add_tail(&work->entry, &queue->works);
	queue->waiting++;
	see_to(queue);
}

bool sy__work_queue(struct workqueue_struct *queue, struct work_struct *work)
{
	bool was;

	sy__prepare_forks();
	pthread_mutex_lock(&lock);
	was = work->sy__pending;
	if (!was) {
		WRITE_ONCE(work->sy__pending, true);
		put_on(queue, work);
	}
	pthread_mutex_unlock(&lock);
	return !was;
}

static struct workqueue_struct *queue_of(const struct work_struct *work)
{
	struct workqueue_struct *queue;
	struct work_struct *at;

	list_for_each_entry(at, &of_system.works, entry)
		if (at == work)
			return &of_system;
	list_for_each_entry(queue, &queues, link)
		list_for_each_entry(at, &queue->works, entry)
			if (at == work)
				return queue;
	return NULL;
}

/* The function that runs may look for itself, but not wait. */
static bool wait_for(const struct work_struct *work)
{
	bool waited = false;

	for (; is_running(work); waited = true)
		pthread_cond_wait(&changed, &lock);
	return waited;
}

bool sy__work_flush(struct work_struct *work)
{
	bool waited = false;

	pthread_mutex_lock(&lock);
	if (!list_empty(&work->entry))
		see_to(queue_of(work));
	for (; !list_empty(&work->entry); waited = true)
		pthread_cond_wait(&changed, &lock);
	waited |= wait_for(work);
	pthread_mutex_unlock(&lock);
	return waited;
}

static bool take_back(struct work_struct *work)
{
	struct workqueue_struct *queue;

	if (list_empty(&work->entry))
		return false;
	queue = queue_of(work);
	take_off(queue, work);
	see_to(queue); /* the next one waited for this to run */
	pthread_cond_broadcast(&changed);
	return true;
}

bool sy__work_cancel(struct work_struct *work, bool wait)
{
	bool was;

	pthread_mutex_lock(&lock);
	was = take_back(work);
	if (wait)
		wait_for(work);
	pthread_mutex_unlock(&lock);
	return was;
}

unsigned sy__work_busy(struct work_struct *work)
{
	unsigned busy;

	pthread_mutex_lock(&lock);
	busy = (work->sy__pending ? WORK_BUSY_PENDING : 0) | (is_running(work) ? WORK_BUSY_RUNNING : 0);
	pthread_mutex_unlock(&lock);
	return busy;
}

/* ---- Works that wait for their time ------------------------------------------------------------------------------- */

/* Of a timer whose work was not taken back meanwhile. */
void sy__work_time(struct timer_list *timer)
{
	struct delayed_work *work = container_of(timer, struct delayed_work, timer);

	pthread_mutex_lock(&lock);
	if (work->work.sy__pending && list_empty(&work->work.entry) && !timer_pending(timer))
		put_on(work->wq, &work->work);
	pthread_mutex_unlock(&lock);
}

bool sy__work_delay(struct workqueue_struct *queue, struct delayed_work *work, unsigned long ticks, bool again)
{
	bool was;

	sy__prepare_forks();
	pthread_mutex_lock(&lock);
	was = work->work.sy__pending;
	if (!was || again) {
		sy__timer_stop(&work->timer, false);
		take_back(&work->work);
		WRITE_ONCE(work->work.sy__pending, true);
		work->wq = queue;
		if (ticks)
			sy__timer_start(&work->timer, jiffies + ticks, false, false);
		else
			put_on(queue, &work->work);
	}
	pthread_mutex_unlock(&lock);
	return again ? was : !was;
}

bool sy__work_delayed_flush(struct delayed_work *work)
{
	pthread_mutex_lock(&lock);
	if (work->work.sy__pending && list_empty(&work->work.entry)) {
		sy__timer_stop(&work->timer, false);
		put_on(work->wq, &work->work);
	}
	pthread_mutex_unlock(&lock);
	return sy__work_flush(&work->work);
}

/* A timer's function that runs already finds that nothing is to be done, or has put the work on its queue. */
bool sy__work_delayed_cancel(struct delayed_work *work, bool wait)
{
	bool was;

	pthread_mutex_lock(&lock);
	was = work->work.sy__pending;
	sy__timer_stop(&work->timer, false);
	take_back(&work->work);
	WRITE_ONCE(work->work.sy__pending, false);
	if (wait)
		wait_for(&work->work);
	pthread_mutex_unlock(&lock);
	if (wait)
		sy__timer_stop(&work->timer, true);
	return was;
}
