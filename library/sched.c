/*
 * Threads that sleep until somebody wakes them (linux/sched.h, wait.h, completion.h, kthread.h).
 *
 * As in a kernel: a thread says that it sleeps, looks once more whether it has to, and only then calls schedule, which returns
 * at once when somebody has woken it in between. So nothing is missed, and no lock is held while the condition is looked at.
 *
 * Who wakes holds the lock of the queue, and whoever waited takes it to leave the queue: so a thread does not end, and a
 * completion on a stack is not gone, while somebody is still about to wake.
 *
 * A kthread has two references: its own, and that of whoever stops it or never does. Its memory goes with the last.
 */
#include <slabyard/kernel/linux/completion.h>
#include <slabyard/kernel/linux/kthread.h>
#include <slabyard/kernel/linux/rwsem.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct sy__kthread {
	struct task_struct task;
	pthread_mutex_t lock;
	pthread_cond_t woken;
	unsigned state; /* under the lock */
	refcount_t refs;
	int (*run)(void *);
	void *data;
	int result;
	bool stop, started;
	struct completion ended;
};

static __thread struct sy__kthread own;
static __thread struct sy__kthread *self;

static void init(struct sy__kthread *thread)
{
	thread->task.sy__kthread = thread;
	pthread_mutex_init(&thread->lock, NULL);
	pthread_cond_init(&thread->woken, NULL);
	refcount_set(&thread->refs, 1);
	init_completion(&thread->ended);
}

static struct sy__kthread *this_thread(void)
{
	if (!self) {
		init(&own);
		own.task.pid = own.task.tgid = (int)getpid();
		snprintf(own.task.comm, sizeof(own.task.comm), "thread");
		self = &own;
	}
	return self;
}

struct task_struct *sy__current(void)
{
	return &this_thread()->task;
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

ktime_t sy__ktime(bool real)
{
	struct timespec now;

	clock_gettime(real ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now);
	return (ktime_t)now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

void sy__sleep(u64 nanoseconds)
{
	struct timespec rest = { .tv_sec = (time_t)(nanoseconds / NSEC_PER_SEC), .tv_nsec = (long)(nanoseconds % NSEC_PER_SEC) };

	while (nanosleep(&rest, &rest) && errno == EINTR)
		;
}

/* ---- Sleep ------------------------------------------------------------------------------------------------------- */

void sy__set_state(unsigned state)
{
	struct sy__kthread *thread = this_thread();

	pthread_mutex_lock(&thread->lock);
	thread->state = state;
	pthread_mutex_unlock(&thread->lock);
}

#define LONGEST 100 /* milliseconds, after which the monotonic clock is looked at, as conditions wait by another one */

static void wait_a_while(struct sy__kthread *thread, long ticks)
{
	ktime_t until = ktime_add_ms(ktime_get_real(), (u64)(ticks < LONGEST ? ticks : LONGEST));
	struct timespec time = { .tv_sec = (time_t)(until / NSEC_PER_SEC), .tv_nsec = (long)(until % NSEC_PER_SEC) };

	pthread_cond_timedwait(&thread->woken, &thread->lock, &time);
}

long sy__schedule(long ticks)
{
	struct sy__kthread *thread = this_thread();
	unsigned long from = jiffies;
	long left = ticks;

	pthread_mutex_lock(&thread->lock);
	while (thread->state != TASK_RUNNING && left > 0) {
		if (ticks == MAX_SCHEDULE_TIMEOUT) {
			pthread_cond_wait(&thread->woken, &thread->lock);
			continue;
		}
		wait_a_while(thread, left);
		left = ticks - (long)(jiffies - from);
	}
	thread->state = TASK_RUNNING;
	pthread_mutex_unlock(&thread->lock);
	return left > 0 ? left : 0;
}

int sy__wake(struct task_struct *task)
{
	struct sy__kthread *thread = task->sy__kthread;
	int slept;

	pthread_mutex_lock(&thread->lock);
	slept = thread->state != TASK_RUNNING || !thread->started;
	thread->state = TASK_RUNNING;
	thread->started = true;
	pthread_cond_signal(&thread->woken);
	pthread_mutex_unlock(&thread->lock);
	return slept;
}

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

/* Those who are woken one at a time stand behind the others. */
void sy__wait_begin(struct wait_queue_head *queue, struct wait_queue_entry *entry, bool exclusive, unsigned state)
{
	spin_lock(&queue->lock);
	entry->flags = exclusive ? WQ_FLAG_EXCLUSIVE : 0;
	if (list_empty(&entry->entry)) {
		if (exclusive)
			list_add_tail(&entry->entry, &queue->head);
		else
			list_add(&entry->entry, &queue->head);
	}
	if (state != TASK_RUNNING)
		sy__set_state(state);
	spin_unlock(&queue->lock);
}

void sy__wait_end(struct wait_queue_head *queue, struct wait_queue_entry *entry)
{
	sy__set_state(TASK_RUNNING);
	spin_lock(&queue->lock);
	list_del_init(&entry->entry);
	spin_unlock(&queue->lock);
}

/* Whoever is woken is off the queue until he comes again, so the next call wakes another. */
void sy__wake_locked(struct wait_queue_head *queue, int exclusive)
{
	struct wait_queue_entry *entry, *next;

	list_for_each_entry_safe(entry, next, &queue->head, entry) {
		bool counts = entry->flags & WQ_FLAG_EXCLUSIVE;

		list_del_init(&entry->entry);
		sy__wake(entry->task);
		if (counts && !--exclusive)
			return;
	}
}

void sy__wake_up(struct wait_queue_head *queue, int exclusive)
{
	spin_lock(&queue->lock);
	sy__wake_locked(queue, exclusive);
	spin_unlock(&queue->lock);
}

/* ---- Completions ------------------------------------------------------------------------------------------------- */

static bool take_one(struct completion *completion)
{
	if (!completion->done)
		return false;
	if (completion->done != UINT_MAX)
		WRITE_ONCE(completion->done, completion->done - 1);
	return true;
}

bool sy__try_wait_for_completion(struct completion *completion)
{
	bool done;

	if (!completion_done(completion)) /* lest who looks again and again keeps the lock from who would say so */
		return false;
	spin_lock(&completion->wait.lock);
	done = take_one(completion);
	spin_unlock(&completion->wait.lock);
	return done;
}

long sy__wait_for_completion(struct completion *completion, long ticks)
{
	long left = SY__WAIT(completion->wait, sy__try_wait_for_completion(completion), true, ticks, , );

	return left;
}

void sy__complete(struct completion *completion, bool all)
{
	spin_lock(&completion->wait.lock);
	if (all)
		WRITE_ONCE(completion->done, UINT_MAX);
	else if (completion->done != UINT_MAX)
		WRITE_ONCE(completion->done, completion->done + 1);
	sy__wake_locked(&completion->wait, all ? 0 : 1);
	spin_unlock(&completion->wait.lock);
}

/* ---- One who writes or many who read, of which nobody who comes later waits for one who waits -------------------------- */

bool sy__rwsem_try(struct rw_semaphore *lock, bool write)
{
	int held = __atomic_load_n(&lock->held, __ATOMIC_RELAXED);

	while (write ? held == 0 : held >= 0)
		if (__atomic_compare_exchange_n(&lock->held, &held, write ? -1 : held + 1, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return true;
	return false;
}

void sy__rwsem_take(struct rw_semaphore *lock, bool write)
{
	wait_event(lock->wait, sy__rwsem_try(lock, write));
}

/* A writer is 1 short of nobody, as a reader is 1 over. */
void sy__rwsem_drop(struct rw_semaphore *lock, bool write)
{
	__atomic_fetch_add(&lock->held, write ? 1 : -1, __ATOMIC_SEQ_CST);
	wake_up_all(&lock->wait);
}

/* ---- Threads of kernel code -------------------------------------------------------------------------------------- */

void sy__task_get(struct task_struct *task)
{
	refcount_inc(&task->sy__kthread->refs);
}

void sy__task_put(struct task_struct *task)
{
	struct sy__kthread *thread = task->sy__kthread;

	if (!refcount_dec_and_test(&thread->refs))
		return;
	pthread_cond_destroy(&thread->woken);
	pthread_mutex_destroy(&thread->lock);
	kfree(thread);
}

static bool was_started(struct sy__kthread *thread)
{
	bool stop;

	pthread_mutex_lock(&thread->lock);
	while (!thread->started && !thread->stop)
		pthread_cond_wait(&thread->woken, &thread->lock);
	stop = !thread->started;
	pthread_mutex_unlock(&thread->lock);
	return !stop;
}

static void *run(void *argument)
{
	self = argument;
	self->result = was_started(self) ? self->run(self->data) : -EINTR;
	complete_all(&self->ended);
	sy__task_put(&self->task);
	return NULL;
}

struct task_struct *sy__kthread_create(int (*function)(void *), void *data, const char *name, ...)
{
	struct sy__kthread *thread = kzalloc(sizeof(*thread), GFP_KERNEL);
	pthread_attr_t attributes;
	va_list arguments;
	pthread_t id;
	int error;

	if (!thread)
		return ERR_PTR(-ENOMEM);
	init(thread);
	thread->run = function;
	thread->data = data;
	thread->task.flags = PF_KTHREAD;
	va_start(arguments, name);
	vsnprintf(thread->task.comm, sizeof(thread->task.comm), name, arguments);
	va_end(arguments);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&id, &attributes, run, thread);
	pthread_attr_destroy(&attributes);
	if (!error)
		return &thread->task;
	sy__task_put(&thread->task);
	return ERR_PTR(-EAGAIN);
}

bool sy__kthread_should_stop(void)
{
	return __atomic_load_n(&this_thread()->stop, __ATOMIC_ACQUIRE);
}

int sy__kthread_stop(struct task_struct *task)
{
	struct sy__kthread *thread = task->sy__kthread;
	int result;

	sy__task_get(task);
	pthread_mutex_lock(&thread->lock);
	__atomic_store_n(&thread->stop, true, __ATOMIC_RELEASE);
	thread->state = TASK_RUNNING;
	pthread_cond_signal(&thread->woken);
	pthread_mutex_unlock(&thread->lock);
	wait_for_completion(&thread->ended);
	result = thread->result;
	sy__task_put(task);
	return result;
}
