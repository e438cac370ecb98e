/*
 * A thread has lost its processor in a fast call, with a lock, while the program forks. The fork waits, however long that
 * takes, as nobody would give the lock back in the child. This holds for policies whose fast calls have locks; each is tried
 * in a process of its own.
 */
#include "threads_heap.h"

#define LONG 300000000 /* nanoseconds: more than a stop waits for a fast call */

static sy__lock_t lock = SY__LOCK_INIT;
static atomic_bool inside;

static void *stay_in_a_fast_call(void *heap)
{
	const struct timespec time = { 0, LONG };

	sy_mfree(heap, sy_malloc(heap, 100, 0)); /* by then the thread has a slot */
	while (sy__call_begin_locked(&lock) == SY__DUMMY_OFFSET) { /* as it is due for a look at the clock */
		sy_mfree(heap, sy_malloc(heap, 100, 0));
		sched_yield();
	}
	atomic_store(&inside, true);
	nanosleep(&time, NULL);
	sy__call_end_locked(&lock);
	return NULL;
}

static bool finds_it_free(struct sy_heap *heap)
{
	pthread_t thread;
	pid_t child;
	int status = -1;

	CHECK_EQUAL(pthread_create(&thread, NULL, stay_in_a_fast_call, heap), 0);
	while (!atomic_load(&inside))
		sched_yield();
	child = fork();
	if (!child)
		_exit(sy__lock_try(&lock) ? 0 : 1);
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	pthread_join(thread, NULL);
	return status == 0;
}

static void fork_beside_a_fast_call(const char *policy)
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		struct sy_heap *heap = open_small(policy);

		CHECK(finds_it_free(heap));
		sy_heap_close(heap);
		exit(check_result());
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

int main(void)
{
	if (check_slow()) { /* the thread sanitizer allows no thread in a child */
		CHECK(finds_it_free(open_small("bonwick")));
		return check_result();
	}
	fork_beside_a_fast_call("bonwick");
	fork_beside_a_fast_call("bsd44");
	fork_beside_a_fast_call("svr4");
	fork_beside_a_fast_call("sunos4");
	return check_result();
}
