/* <linux/kthread.h> for kernel code that is compiled into a program, whose threads these are. */
#ifndef SLABYARD_KERNEL_LINUX_KTHREAD_H
#define SLABYARD_KERNEL_LINUX_KTHREAD_H

#pragma GCC system_header

#include "err.h"
#include "sched.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct task_struct *sy__kthread_create(int (*run)(void *), void *data, const char *name, ...) __attribute__((__format__(__printf__, 3, 4)));
int sy__kthread_stop(struct task_struct *);
bool sy__kthread_should_stop(void);
void sy__task_get(struct task_struct *);
void sy__task_put(struct task_struct *);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/* Asleep until it is woken first. An error in its place. */
#define kthread_create(run, data, ...) sy__kthread_create(run, data, __VA_ARGS__)
#define kthread_create_on_node(run, data, node, ...) ((void)(node), sy__kthread_create(run, data, __VA_ARGS__))
#define kthread_run(run, data, ...) \
	__extension__ ({ \
		struct task_struct *sy__task = kthread_create(run, data, __VA_ARGS__); \
		if (!IS_ERR(sy__task)) \
			wake_up_process(sy__task); \
		sy__task; \
	})

/* Waits for its end; what it returned. -EINTR: it had never been woken. */
static inline int kthread_stop(struct task_struct *task) { return sy__kthread_stop(task); }
static inline bool kthread_should_stop(void) { return sy__kthread_should_stop(); }
static inline struct task_struct *get_task_struct(struct task_struct *task) { sy__task_get(task); return task; }
static inline void put_task_struct(struct task_struct *task) { sy__task_put(task); }
#define kthread_bind(task, cpu) ((void)(task), (void)(cpu))
#define kthread_should_park() false

#endif
