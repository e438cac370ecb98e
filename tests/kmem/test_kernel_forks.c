/*
 * Forks of programs that use the slab API, while other threads queue callbacks, wait for readers, and register shrinkers: no fork
 * waits for ever, and the child can do all of it.
 */
#include <linux/rcupdate.h>
#include <linux/shrinker.h>
#include <linux/slab.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define FORKS 60
#define PATIENCE 100 /* seconds that a child may take */

static bool stopped;

struct left {
	struct rcu_head head;
};

/* Runs with the turn of RCU held, and queues one more. */
static void free_left(struct rcu_head *head)
{
	struct left *more = kmalloc(sizeof(*more), GFP_KERNEL);

	kfree(container_of(head, struct left, head));
	if (more)
		kfree_rcu(more, head);
}

static unsigned long count_none(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker, (void)control;
	return 0;
}

static void use_all(void)
{
	struct shrinker *shrinker = shrinker_alloc(0, "short"); /* not on the stack, which a child uses for others */
	struct left *left = kmalloc(sizeof(*left), GFP_KERNEL);

	CHECK(shrinker != NULL && left != NULL);
	if (!shrinker || !left)
		return;
	call_rcu(&left->head, free_left);
	synchronize_rcu();
	shrinker->count_objects = shrinker->scan_objects = count_none;
	shrinker_register(shrinker);
	shrinker_free(shrinker);
}

static void *use_until_stopped(void *none)
{
	while (!READ_ONCE(stopped))
		use_all();
	return none;
}

static _Noreturn void go_on_in_child(void)
{
	alarm(PATIENCE);
	use_all();
	rcu_barrier();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	_exit(check_result());
}

/* One child after the other, until one has failed: the next would have its failures. */
static void fork_often(void)
{
	for (unsigned i = 0; i < FORKS && !check_failures; i++) {
		pid_t child = fork();
		int status = 1;

		if (child == 0)
			go_on_in_child();
		CHECK(child > 0 && waitpid(child, &status, 0) == child);
		CHECK_EQUAL(status, 0);
	}
}

int main(void)
{
	pthread_t threads[3];

	use_all(); /* a fork beside the very first call is not prepared for */
	for (unsigned i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, use_until_stopped, NULL));
	fork_often();
	WRITE_ONCE(stopped, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	rcu_barrier();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
