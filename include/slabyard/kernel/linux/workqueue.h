/* <linux/workqueue.h> for kernel code that is compiled into a program: functions that are called later, in threads of a queue. */
#ifndef SLABYARD_KERNEL_LINUX_WORKQUEUE_H
#define SLABYARD_KERNEL_LINUX_WORKQUEUE_H

#pragma GCC system_header

#include "atomic.h"
#include "bitops.h"
#include "list.h"
#include "timer.h"

struct work_struct;
struct workqueue_struct;

typedef void (*work_func_t)(struct work_struct *);

/* The function may free it. */
struct work_struct {
	struct list_head entry;
	work_func_t func;
	bool sy__pending;
};

struct delayed_work {
	struct work_struct work;
	struct timer_list timer;
	struct workqueue_struct *wq;
};

/* Of these, that a queue runs its works one after the other is looked at. */
#define WQ_UNBOUND 2U
#define WQ_FREEZABLE 4U
#define WQ_MEM_RECLAIM 8U
#define WQ_HIGHPRI 16U
#define WQ_CPU_INTENSIVE 32U
#define WQ_SYSFS 64U
#define WQ_PERCPU 256U
#define WQ_MAX_ACTIVE 512 /* works that a queue may run at once; asked for 0: */
#define WQ_DFL_ACTIVE 256
#define WQ_UNBOUND_MAX_ACTIVE WQ_MAX_ACTIVE
#define WORK_CPU_UNBOUND 0

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct workqueue_struct *sy__workqueue_new(int at_once, const char *name, ...) __attribute__((__format__(__printf__, 2, 3)));
struct workqueue_struct *sy__workqueue_of_system(void);
void sy__workqueue_end(struct workqueue_struct *);
void sy__workqueue_flush(struct workqueue_struct *);
bool sy__work_queue(struct workqueue_struct *, struct work_struct *);
bool sy__work_flush(struct work_struct *);
bool sy__work_cancel(struct work_struct *, bool wait);
bool sy__work_delay(struct workqueue_struct *, struct delayed_work *, unsigned long ticks, bool again);
bool sy__work_delayed_flush(struct delayed_work *);
bool sy__work_delayed_cancel(struct delayed_work *, bool wait);
unsigned sy__work_busy(struct work_struct *);
void sy__work_time(struct timer_list *);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define __WORK_INITIALIZER(name, run) { LIST_HEAD_INIT((name).entry), (run), false }
#define DECLARE_WORK(name, run) struct work_struct name = __WORK_INITIALIZER(name, run)
#define DECLARE_DELAYED_WORK(name, run) \
	struct delayed_work name = { .work = __WORK_INITIALIZER((name).work, run), .timer = { .function = sy__work_time } }
#define DECLARE_DEFERRABLE_WORK(name, run) DECLARE_DELAYED_WORK(name, run)
#define PREPARE_WORK(work, run) ((void)((work)->func = (run)))

static inline void sy__work_init(struct work_struct *work, work_func_t run)
{
	INIT_LIST_HEAD(&work->entry);
	work->func = run;
	work->sy__pending = false;
}

static inline void sy__work_init_delayed(struct delayed_work *work, work_func_t run)
{
	sy__work_init(&work->work, run);
	timer_setup(&work->timer, sy__work_time, 0);
	work->wq = NULL;
}

#define INIT_WORK(work, run) sy__work_init(work, run)
#define INIT_WORK_ONSTACK(work, run) sy__work_init(work, run)
#define INIT_DELAYED_WORK(work, run) sy__work_init_delayed(work, run)
#define INIT_DELAYED_WORK_ONSTACK(work, run) sy__work_init_delayed(work, run)
#define INIT_DEFERRABLE_WORK(work, run) sy__work_init_delayed(work, run)
#define destroy_work_on_stack(work) ((void)(work))
#define destroy_delayed_work_on_stack(work) ((void)(work))
#define work_pending(work) READ_ONCE((work)->sy__pending)
#define delayed_work_pending(delayed) work_pending(&(delayed)->work)
#define work_busy(work) sy__work_busy(work)
#define WORK_BUSY_PENDING 1U
#define WORK_BUSY_RUNNING 2U

static inline struct delayed_work *to_delayed_work(struct work_struct *work)
{
	return container_of(work, struct delayed_work, work);
}

/* NULL: no memory. */
#define alloc_workqueue(name, flags, at_once, ...) ((void)(flags), sy__workqueue_new(at_once, name, ##__VA_ARGS__))
#define alloc_ordered_workqueue(name, flags, ...) ((void)(flags), sy__workqueue_new(1, name, ##__VA_ARGS__))
#define create_workqueue(name) sy__workqueue_new(1, "%s", name)
#define create_singlethread_workqueue(name) create_workqueue(name)
#define create_freezable_workqueue(name) create_workqueue(name)
#define system_wq sy__workqueue_of_system()
#define system_percpu_wq system_wq
#define system_highpri_wq system_wq
#define system_long_wq system_wq
#define system_unbound_wq system_wq
#define system_dfl_wq system_wq
#define system_freezable_wq system_wq
#define system_power_efficient_wq system_wq

/* When its works have run, those that they queue there too. */
static inline void destroy_workqueue(struct workqueue_struct *queue) { sy__workqueue_end(queue); }
static inline void flush_workqueue(struct workqueue_struct *queue) { sy__workqueue_flush(queue); }
static inline void drain_workqueue(struct workqueue_struct *queue) { sy__workqueue_flush(queue); }

/* False: it was to run already. */
static inline bool queue_work(struct workqueue_struct *queue, struct work_struct *work) { return sy__work_queue(queue, work); }
static inline bool schedule_work(struct work_struct *work) { return queue_work(system_wq, work); }
#define queue_work_on(cpu, queue, work) ((void)(cpu), queue_work(queue, work))
#define schedule_work_on(cpu, work) ((void)(cpu), schedule_work(work))

static inline bool queue_delayed_work(struct workqueue_struct *queue, struct delayed_work *work, unsigned long ticks)
{
	return sy__work_delay(queue, work, ticks, false);
}

/* The same with another time; true: it was to run. */
static inline bool mod_delayed_work(struct workqueue_struct *queue, struct delayed_work *work, unsigned long ticks)
{
	return sy__work_delay(queue, work, ticks, true);
}

static inline bool schedule_delayed_work(struct delayed_work *work, unsigned long ticks)
{
	return queue_delayed_work(system_wq, work, ticks);
}

/* True: there was something to wait for. */
static inline bool flush_work(struct work_struct *work) { return sy__work_flush(work); }
static inline bool flush_delayed_work(struct delayed_work *work) { return sy__work_delayed_flush(work); }
static inline void flush_scheduled_work(void) { flush_workqueue(system_wq); }

/* True: it was to run. Of those whose name says sync, it does not run any more either. */
static inline bool cancel_work(struct work_struct *work) { return sy__work_cancel(work, false); }
static inline bool cancel_work_sync(struct work_struct *work) { return sy__work_cancel(work, true); }
static inline bool cancel_delayed_work(struct delayed_work *work) { return sy__work_delayed_cancel(work, false); }
static inline bool cancel_delayed_work_sync(struct delayed_work *work) { return sy__work_delayed_cancel(work, true); }

#endif
