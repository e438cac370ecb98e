/*
 * Timers (linux/timer.h): a tree in the order of their time, and one thread that calls what is due, as a kernel's timers run on
 * one processor. The thread is made by the first timer that is started, and by the first one in the child of a fork.
 *
 * Lock: one, which is not held while a function runs: that may start and stop timers, free its own, and take any lock.
 */
#include <slabyard/kernel/linux/delay.h>
#include <slabyard/kernel/linux/timer.h>

#include "forks.h"

#include <pthread.h>
#include <time.h>

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* another timer is the first, or the one that ran has done */
	struct rb_root_cached timers;
	struct timer_list *running;
	pthread_t thread; /* which calls them, if there is one */
	bool alive;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static bool is_sooner(struct rb_node *one, const struct rb_node *other)
{
	return time_before(rb_entry(one, struct timer_list, sy__node)->expires,
	                   rb_entry(other, struct timer_list, sy__node)->expires);
}

static void take_off(struct timer_list *timer)
{
	rb_erase_cached(&timer->sy__node, &all.timers);
	WRITE_ONCE(timer->sy__pending, false);
}

#define LONGEST 100 /* milliseconds, after which the monotonic clock is looked at, as conditions wait by another one */

static void wait_for(unsigned long expires)
{
	long ticks = (long)(expires - jiffies);
	ktime_t until = ktime_add_ms(ktime_get_real(), (u64)(ticks < LONGEST ? ticks : LONGEST));
	struct timespec time = { .tv_sec = (time_t)(until / NSEC_PER_SEC), .tv_nsec = (long)(until % NSEC_PER_SEC) };

	pthread_cond_timedwait(&all.changed, &all.lock, &time);
}

static void call(struct timer_list *timer)
{
	void (*function)(struct timer_list *) = timer->function;

	take_off(timer);
	all.running = timer;
	pthread_mutex_unlock(&all.lock);
	function(timer);
	pthread_mutex_lock(&all.lock);
	all.running = NULL;
	pthread_cond_broadcast(&all.changed);
}

static void *call_when_due(void *none)
{
	pthread_mutex_lock(&all.lock);
	for (;;) {
		struct rb_node *first = rb_first_cached(&all.timers);
		struct timer_list *timer = rb_entry_safe(first, struct timer_list, sy__node);

		if (!timer)
			pthread_cond_wait(&all.changed, &all.lock);
		else if (time_before(jiffies, timer->expires))
			wait_for(timer->expires);
		else
			call(timer);
	}
	return none;
}

/* ---- Forks ------------------------------------------------------------------------------------------------------- */

void sy__timers_fork(enum sy__fork where)
{
	if (where == SY__FORK_BEFORE) {
		pthread_mutex_lock(&all.lock);
		return;
	}
	if (where == SY__FORK_CHILD) {
		pthread_cond_init(&all.changed, NULL);
		if (!all.running || !pthread_equal(pthread_self(), all.thread)) {
			all.alive = false;
			all.running = NULL;
		}
	}
	pthread_mutex_unlock(&all.lock);
}

static void start_thread(void)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	all.alive = !pthread_create(&all.thread, &attributes, call_when_due, NULL);
	pthread_attr_destroy(&attributes);
}

/* ---- Who starts and stops them ------------------------------------------------------------------------------------ */

int sy__timer_start(struct timer_list *timer, unsigned long expires, bool only_pending, bool sooner)
{
	int was;

	sy__prepare_forks();
	pthread_mutex_lock(&all.lock);
	was = timer->sy__pending;
	if (was ? !sooner || time_before(expires, timer->expires) : !only_pending) {
		if (was)
			take_off(timer);
		timer->expires = expires;
		WRITE_ONCE(timer->sy__pending, true);
		if (rb_add_cached(&timer->sy__node, &all.timers, is_sooner))
			pthread_cond_broadcast(&all.changed);
	}
	if (!all.alive)
		start_thread();
	pthread_mutex_unlock(&all.lock);
	return was;
}

int sy__timer_try_stop(struct timer_list *timer)
{
	int was;

	pthread_mutex_lock(&all.lock);
	was = all.running == timer ? -1 : timer->sy__pending;
	if (was == 1)
		take_off(timer);
	pthread_mutex_unlock(&all.lock);
	return was;
}

/* A function that waits for itself would do so for ever. */
int sy__timer_stop(struct timer_list *timer, bool wait)
{
	int was;

	pthread_mutex_lock(&all.lock);
	was = timer->sy__pending;
	if (was)
		take_off(timer);
	while (wait && all.running == timer && !pthread_equal(pthread_self(), all.thread))
		pthread_cond_wait(&all.changed, &all.lock);
	pthread_mutex_unlock(&all.lock);
	return was;
}
