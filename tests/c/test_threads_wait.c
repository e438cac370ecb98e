/*
 * Waiting for others. A long wait lets threads of lower priority run, so that the thread waited for gets on, and it looks less
 * and less often. Threads beyond the slots don't wait in line for each other, and get a slot as soon as one comes free. A
 * waiter far behind in a line seldom looks. A stop from inside a call gives its processor to nobody, but leaves out threads
 * that are in a call. Threads that sleep for a lock are woken one by one.
 */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include <errno.h>
#include <semaphore.h>
#include <sys/resource.h>

#include "threads_support.h"

#define OWNERS (SY_THREAD_SLOTS - SY_SHARED_SLOTS - 1) /* of all slots but the shared ones and the main thread's */
#define OTHERS 40
#define CALLS 4000u /* of each */
#define LOOKS 20000u
#define LEAST_SLEEP 80000000u /* nanoseconds of all looks; with sleeps of at most 100 microseconds it would be nine million */

static struct world world;
static sem_t arrived, over, goes_on;

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

/* A thread that sleeps gives up its processor voluntarily; one that yields does not, and real-time priorities go first. No
 * sleep is shorter than asked for. */
static void long_waits_sleep(void)
{
	uint64_t began = sy__now();
	long before = sleeps();
	unsigned looks = 0;

	errno = 1234;
	for (unsigned i = 0; i < LOOKS; i++)
		looks = sy__look_again(looks);
	CHECK(sleeps() - before >= 10);
	CHECK(sy__now() - began >= LEAST_SLEEP);
	CHECK_EQUAL(errno, 1234);
}

static struct sy__queue line;

static void *wait_in_line(void *none)
{
	long before = sleeps();

	errno = 1234;
	sy__queue_lock(&line);
	CHECK(sleeps() - before < 100); /* with one sleep of 100 microseconds after another it would be more than a thousand */
	CHECK_EQUAL(errno, 1234);
	sy__queue_unlock(&line);
	return none;
}

static void those_far_behind_look_seldom(void)
{
	const struct timespec moment = { 0, 200000000 };
	pthread_t thread;

	line = (struct sy__queue){ .next = 300, .serving = 0 };
	CHECK(!pthread_create(&thread, NULL, wait_in_line, NULL));
	nanosleep(&moment, NULL);
	for (unsigned i = 0; i < 300; i++)
		sy__queue_unlock(&line);
	pthread_join(thread, NULL);
	CHECK_EQUAL(line.serving, 301);
}

static bool has_slot(void)
{
	sy_mfree(world.heap, sy_malloc(world.heap, 100, 0));
	return sy__self.slot < SY_THREAD_SLOTS;
}

/* A thread that begins beside many others may go without a slot for its first calls. */
static void *own_a_slot(void *end)
{
	for (unsigned tries = 0; !has_slot() && tries < CALLS; tries++)
		sched_yield();
	CHECK(has_slot());
	sem_post(&arrived);
	sem_wait(end);
	return NULL;
}

static void *get_one_late(void *none)
{
	CHECK(!has_slot());
	sem_post(&arrived);
	sem_wait(&goes_on);
	CHECK(has_slot());
	return none;
}

static void *do_without(void *none)
{
	for (unsigned i = 0; i < CALLS; i++)
		sy_mfree(world.heap, sy_malloc(world.heap, 16 + i % 900, 0));
	return none;
}

static void start(pthread_t *thread, void *(*work)(void *), void *argument)
{
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	CHECK(!pthread_create(thread, &small, work, argument));
	pthread_attr_destroy(&small);
}

static void beyond_the_slots(void)
{
	static pthread_t owners[OWNERS], others[OTHERS], late;
	static sem_t first_over;
	long before;

	if (!world_open(&world, "yard", NULL))
		return;
	sem_init(&first_over, 0, 0);
	for (unsigned i = 0; i < OWNERS; i++)
		start(&owners[i], own_a_slot, i ? &over : &first_over);
	for (unsigned i = 0; i < OWNERS; i++)
		sem_wait(&arrived);
	before = switches();
	for (unsigned i = 0; i < OTHERS; i++)
		start(&others[i], do_without, NULL);
	for (unsigned i = 0; i < OTHERS; i++)
		pthread_join(others[i], NULL);
	CHECK(switches() - before < (long)(OTHERS * CALLS)); /* at most one for two calls; in line it would be dozens for each */

	start(&late, get_one_late, NULL);
	sem_wait(&arrived);
	sem_post(&first_over);
	pthread_join(owners[0], NULL);
	sem_post(&goes_on);
	pthread_join(late, NULL);
	for (unsigned i = 1; i < OWNERS; i++)
		sem_post(&over);
	for (unsigned i = 1; i < OWNERS; i++)
		pthread_join(owners[i], NULL);
	world_close(&world);
}

static void *stay_inside(void *slot)
{
	CHECK(sy__call_enter(slot));
	sem_post(&arrived);
	sem_wait(&goes_on);
	sy__call_leave();
	return NULL;
}

/* If a stop yielded, it would wait, with every slot stopped, until each thread that can run has had its turn. */
static void stops_leave_out_who_is_inside(void)
{
	static pthread_t threads[OTHERS];
	static unsigned slots[OTHERS];
	unsigned own;
	uint64_t before;

	for (unsigned i = 0; i < OTHERS; i++) {
		start(&threads[i], stay_inside, &slots[i]);
		sem_wait(&arrived);
	}
	CHECK(sy__call_enter(&own));
	before = sy_platform_lock_wait_time();
	CHECK(sy__stop_try());
	CHECK_EQUAL(sy_platform_lock_wait_time() - before, 0);
	for (unsigned i = 0; i < OTHERS; i++)
		CHECK(!sy__slot_mine(slots[i]));
	sy__stop_end();
	for (unsigned i = 0; i < OTHERS; i++)
		sem_post(&goes_on);
	for (unsigned i = 0; i < OTHERS; i++)
		pthread_join(threads[i], NULL);
	CHECK(sy__stop_try());
	for (unsigned i = 0; i < OTHERS; i++)
		CHECK(sy__slot_mine(slots[i]));
	sy__stop_end();
	sy__call_leave();
}

static struct sy__wakeful lock;
static unsigned inside, turns;

static void *take_turns(void *none)
{
	for (unsigned i = 0; i < CALLS / 10; i++) {
		while (!sy__wakeful_ask(&lock))
			sy__wakeful_sleep(&lock);
		CHECK(!inside++);
		sched_yield();
		turns++;
		inside--;
		sy__wakeful_unlock(&lock);
	}
	return none;
}

static void sleepers_are_woken(void)
{
	pthread_t threads[OTHERS];

	CHECK(sy__wakeful_try(&lock));
	CHECK(!sy__wakeful_try(&lock));
	for (unsigned i = 0; i < OTHERS; i++)
		start(&threads[i], take_turns, NULL);
	sched_yield();
	sy__wakeful_unlock(&lock);
	for (unsigned i = 0; i < OTHERS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQUAL(turns, OTHERS * (CALLS / 10));
	CHECK(sy__wakeful_try(&lock));
	CHECK_EQUAL(lock.held, 1); /* nobody sleeps any more, so its end makes no system call */
	sy__wakeful_unlock(&lock);
	CHECK_EQUAL(lock.held, 0);
}

int main(void)
{
	sem_init(&arrived, 0, 0);
	sem_init(&over, 0, 0);
	sem_init(&goes_on, 0, 0);
	beyond_the_slots();
	long_waits_sleep();
	those_far_behind_look_seldom();
	stops_leave_out_who_is_inside();
	sleepers_are_woken();
	return check_result();
}
