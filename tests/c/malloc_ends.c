/*
 * malloc where threads and processes begin and end in odd ways: a first call that itself needs memory; threads that end
 * without notice, and whose stacks are gone; forks while other threads work with all streams; threads that go on while the
 * process ends.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include "core/types.h"
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK ((size_t)256 << 10)
#define KEYS 40u /* glibc has room for the values of 32 in each thread, and allocates for more */

static pthread_key_t keys[KEYS];

/* Before anything has been allocated, so that the library's own key comes after these. */
__attribute__((constructor(101))) static void make_keys(void)
{
	for (unsigned i = 0; i < KEYS; i++)
		CHECK_EQUAL(pthread_key_create(&keys[i], NULL), 0);
}

/* ---- Threads that end unnoticed ----------------------------------------------------------------------------------- */

static pthread_key_t last_key;

static void allocate_in_last_round(void *value)
{
	uintptr_t rounds = (uintptr_t)value;

	if (rounds > 1)
		pthread_setspecific(last_key, (void *)(rounds - 1));
	else
		free(memset(malloc(300), 1, 300));
}

static void *end_in_last_round(void *unused)
{
	(void)unused;
	pthread_setspecific(last_key, (void *)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
	return NULL;
}

static void *leave_at_once(void *unused)
{
	(void)unused;
	free(memset(malloc(300), 1, 300));
	syscall(SYS_exit, 0);
	return NULL;
}

/* The thread's stack, and with it its thread-local storage, is gone when this returns. */
static void live_and_vanish(void *(*life)(void *))
{
	void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	CHECK_EQUAL(pthread_attr_setstack(&attributes, stack, STACK), 0);
	CHECK_EQUAL(pthread_create(&thread, &attributes, life, NULL), 0);
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attributes);
	CHECK_EQUAL(munmap(stack, STACK), 0);
}

static void wait_for(pid_t child)
{
	int status = 0;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

static void look_at_all_threads(void)
{
	pid_t child;

	malloc_trim(0);
	child = fork();
	if (child == 0) {
		free(malloc(100));
		malloc_trim(0);
		_exit(0);
	}
	wait_for(child);
}

static void test_threads_that_vanish(void)
{
	CHECK_EQUAL(pthread_key_create(&last_key, allocate_in_last_round), 0);
	for (unsigned i = 0; i < 20; i++) {
		live_and_vanish(end_in_last_round);
		look_at_all_threads();
	}
	for (unsigned i = 0; i < 20; i++)
		live_and_vanish(leave_at_once);
	look_at_all_threads();
}

/* A thread that ends while it is stopped, as every thread is while somebody walks over the heap: nobody touches its stack
 * any more. */
struct victim {
	char *stack;
	atomic_long id;
	atomic_bool may_end;
};

static void *own_a_slot_and_leave(void *argument)
{
	struct victim *victim = argument;

	free(memset(malloc(300), 1, 300));
	victim->id = syscall(SYS_gettid);
	while (!victim->may_end)
		sched_yield();
	syscall(SYS_exit, 0);
	return NULL;
}

static bool let_it_end(void *context, const struct sy_slab *slab)
{
	struct victim *victim = context;

	(void)slab;
	victim->may_end = true;
	while (syscall(SYS_tgkill, getpid(), (long)victim->id, 0) == 0)
		sched_yield();
	CHECK_EQUAL(mprotect(victim->stack, STACK, PROT_NONE), 0);
	return false;
}

static bool see_no_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	(void)context, (void)slab, (void)part;
	return false;
}

static void test_a_thread_that_vanishes_while_stopped(void)
{
	struct sy_heap_options small = { .reserve = (size_t)256 << 20 };
	struct sy_heap *heap = sy_heap_open("yard", &small, NULL);
	struct victim victim = { .stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
	const struct sy_visitor visitor = { .slab = let_it_end, .part = see_no_part, .context = &victim };
	void *object = heap ? sy_malloc(heap, 100, 0) : NULL;
	pthread_attr_t attributes;
	pthread_t thread;

	CHECK(object && victim.stack != MAP_FAILED);
	pthread_attr_init(&attributes);
	CHECK_EQUAL(pthread_attr_setstack(&attributes, victim.stack, STACK), 0);
	CHECK_EQUAL(pthread_create(&thread, &attributes, own_a_slot_and_leave, &victim), 0);
	pthread_attr_destroy(&attributes);
	while (!victim.id)
		sched_yield();
	CHECK(!sy_heap_walk(heap, &visitor));
	CHECK_EQUAL(mprotect(victim.stack, STACK, PROT_READ | PROT_WRITE), 0);
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
	CHECK_EQUAL(munmap(victim.stack, STACK), 0);
	sy_mfree(heap, object);
	sy_heap_close(heap);
}

/* ---- Forks beside streams ------------------------------------------------------------------------------------------- */

static atomic_bool done;

/* The first character has a stream allocate its buffer, with the stream's lock held. */
static void *write_first(void *unused)
{
	(void)unused;
	while (!done) {
		FILE *file = fopen("/dev/null", "w");

		fputc('a', file);
		fclose(file);
	}
	return NULL;
}

/* Takes the lock of all streams, and waits for each. */
static void *flush_all(void *unused)
{
	(void)unused;
	while (!done)
		fflush(NULL);
	return NULL;
}

static void test_forks_beside_streams(void)
{
	pthread_t threads[4];

	for (unsigned i = 0; i < 4; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, i % 2 ? flush_all : write_first, NULL), 0);
	for (unsigned i = 0; i < 500; i++) {
		pid_t child = fork();

		if (child == 0) {
			FILE *file = fopen("/dev/null", "w");

			fputc('a', file);
			fflush(NULL);
			_exit(fclose(file));
		}
		wait_for(child);
	}
	done = true;
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	done = false;
}

/* ---- The end of the process ------------------------------------------------------------------------------------------- */

static void *go_on(void *unused)
{
	char *objects[64] = { NULL };

	(void)unused;
	for (unsigned i = 0;; i = (i + 7) % 64) {
		free(objects[i]);
		objects[i] = memset(malloc(i * 50 + 1), 1, i * 50 + 1);
	}
	return NULL;
}

static void end_beside_threads(void (*end)(int))
{
	pid_t child = fork();

	if (child == 0) {
		for (unsigned i = 0; i < 3; i++) {
			pthread_t thread;

			CHECK_EQUAL(pthread_create(&thread, NULL, go_on, NULL), 0);
			pthread_detach(thread);
		}
		usleep(1000);
		end(check_failures ? 1 : 0);
	}
	wait_for(child);
}

static void main_thread_ends(int status)
{
	CHECK_EQUAL(status, 0);
	pthread_exit(NULL);
}

static void *leave_process(void *unused)
{
	(void)unused;
	usleep(2000);
	free(malloc(100));
	malloc_trim(0);
	exit(check_failures ? 1 : 0);
}

static void leave_by_another_thread(int status)
{
	pthread_t thread;

	CHECK_EQUAL(pthread_create(&thread, NULL, leave_process, NULL), 0);
	main_thread_ends(status);
}

static void test_ends(void)
{
	fflush(NULL);
	for (unsigned i = 0; i < 5; i++) {
		end_beside_threads(exit);
		end_beside_threads(quick_exit);
		end_beside_threads(_exit);
		end_beside_threads(leave_by_another_thread);
	}
}

int main(void)
{
	test_threads_that_vanish();
	test_a_thread_that_vanishes_while_stopped();
	test_forks_beside_streams();
	test_ends();
	return check_result();
}
