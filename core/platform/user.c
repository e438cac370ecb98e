/*
 * State and system calls behind platform/user.h: locks. Memory is in source.c, slots in the files that threads.h lists, the clock in clock.c.
 *
 * Only the files of this folder, among the core's, include headers of the operating system.
 */
#define _GNU_SOURCE /* syscall */
#include <slabyard/slabyard.h>

#include "../platform.h"
#include "system_call.h"


/* FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG of linux/futex.h, which C libraries need not come with. */
#define PRIVATE_WAIT 128
#define PRIVATE_WAKE 129
#define SPINS_BEFORE_YIELD 128
#define SPINS_BEFORE_SLEEP (64 * SPINS_BEFORE_YIELD)
#define SLEEP_NS 100000
#define EVENT_NS 100000000 /* most that a thread sleeps before it looks whether an event has happened */
#define SLEEPS_BEFORE_LONGER 16u /* of one length; then as many of twice the length */
#define MOST_DOUBLINGS 6u
#define NEAR 4u /* waiters at the front of a queue that spin; those behind sleep at once */
#define FAR 400u
#define SLEEP_EACH_NS 50000 /* for each waiter ahead, of FAR at most */

uint64_t (*sy__clock)(void) = sy__monotonic;

/* The system is asked once, as a program may shut itself in later (source.c). Without an answer the clock and an address stand in. */
uint64_t sy__random(void)
{
	static uint64_t first, calls;
	uint64_t seed = __atomic_load_n(&first, __ATOMIC_RELAXED), number;

	if (!seed) {
#ifdef SYS_getrandom
		if (sy__system(SYS_getrandom, sy__system_word(&seed), sizeof(seed), 0, 0) != sizeof(seed))
#endif
			seed = sy__monotonic() * UINT64_C(0x9e3779b97f4a7c15) ^ (uintptr_t)&seed;
		__atomic_store_n(&first, seed | 1, __ATOMIC_RELAXED);
	}
	number = seed + __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) * UINT64_C(0x9e3779b97f4a7c15);
	number = (number ^ number >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return number ^ number >> 32;
}

void sy_platform_set_clock(uint64_t (*clock)(void))
{
	sy__clock = clock ? clock : sy__monotonic;
}

#if defined(__x86_64__) || defined(__i386__)
static inline void spin_pause(void)
{
	__builtin_ia32_pause();
}
#elif defined(__aarch64__) || defined(__arm__)
static inline void spin_pause(void)
{
	__asm__ volatile("yield" ::: "memory");
}
#else
static inline void spin_pause(void)
{
	__asm__ volatile("" ::: "memory");
}
#endif

static void yield(void)
{
	sy__system(SYS_sched_yield, 0, 0, 0, 0);
}

/* Sandboxes let futexes through, as every lock needs them, but maybe no other call that sleeps. The call's argument has two words on all
 * machines. */
bool sy__word_sleep(const unsigned *word, unsigned value, long nanoseconds)
{
#ifdef SYS_futex
	const long moment[2] = { 0, nanoseconds };

	sy__system(SYS_futex, sy__system_word(word), PRIVATE_WAIT, (long)value, nanoseconds ? sy__system_word(moment) : 0);
	return true;
#else
	(void)word, (void)value, (void)nanoseconds;
	return false;
#endif
}

static void sleep_on(const unsigned *word, unsigned value, long nanoseconds)
{
	if (!sy__word_sleep(word, value, nanoseconds))
		yield();
}

static void wake(const unsigned *word, long most)
{
#ifdef SYS_futex
	sy__system(SYS_futex, sy__system_word(word), PRIVATE_WAKE, most, 0);
#else
	(void)word, (void)most;
#endif
}

void sy__word_wake(const unsigned *word)
{
	wake(word, INT_MAX);
}

/* Waits on a word for which no wake-up ever comes. */
static void sleep_for(long nanoseconds)
{
	static const unsigned word;

	sleep_on(&word, 0, nanoseconds);
}

/* The sleep grows to about 1/16 of the time waited so far. If hundreds of waiters looked each moment, as when all end at once, the
 * lock's owner would get no processor. */
static long sleep_length(unsigned looks)
{
	unsigned after = looks > SPINS_BEFORE_SLEEP ? looks - SPINS_BEFORE_SLEEP : 0;
	unsigned doublings = after / (SPINS_BEFORE_YIELD * SLEEPS_BEFORE_LONGER);

	return (long)SLEEP_NS << (doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS);
}

/* How often this thread had to wait for a lock, and how long it gave its processor away meanwhile. */
static __thread uint64_t lock_waits __attribute__((tls_model("initial-exec")));
static __thread uint64_t lock_wait_time __attribute__((tls_model("initial-exec")));

uint64_t sy_platform_lock_waits(void)
{
	return lock_waits;
}

uint64_t sy_platform_lock_wait_time(void)
{
	return lock_wait_time;
}

/* Sleeps; 0: yields. */
static void give_way(long nanoseconds)
{
	uint64_t start = sy__monotonic();

	if (nanoseconds)
		sleep_for(nanoseconds);
	else
		yield();
	lock_wait_time += sy__monotonic() - start;
}

/* Waits a moment before the next look at a word that another thread will change; returns looks + 1. Yielding alone is not enough:
 * a real-time thread that yields still runs before a lower-priority owner. */
unsigned sy__look_again(unsigned looks)
{
	if (looks % SPINS_BEFORE_YIELD == SPINS_BEFORE_YIELD - 1)
		give_way(looks > SPINS_BEFORE_SLEEP || sy__system_is_shut_in() ? sleep_length(looks) : 0);
	else
		spin_pause();
	return looks < UINT_MAX - 1 ? looks + 1 : 0;
}

/* The sleeper is counted before the kernel compares the word, and the word changes before its sleepers are counted: so none is
 * missed. The sleep is bounded in any case, for the sake of signal handlers that never return. */
void sy__event_wait(struct sy__event *event, unsigned count)
{
	uint64_t start = sy__monotonic();

	lock_waits++;
	__atomic_fetch_add(&event->sleepers, 1u, __ATOMIC_SEQ_CST);
	sleep_on(&event->count, count, EVENT_NS);
	__atomic_fetch_sub(&event->sleepers, 1u, __ATOMIC_RELAXED);
	lock_wait_time += sy__monotonic() - start;
}

void sy__event_happens(struct sy__event *event)
{
	__atomic_fetch_add(&event->count, 1u, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&event->sleepers, __ATOMIC_SEQ_CST))
		wake(&event->count, INT_MAX);
}

bool sy__wakeful_try(struct sy__wakeful *lock)
{
	unsigned held = 0;

	return !__atomic_load_n(&lock->held, __ATOMIC_RELAXED) &&
	       __atomic_compare_exchange_n(&lock->held, &held, 1u, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* A thread that takes the lock so wakes another one at its end: of several that slept, the others sleep still. */
bool sy__wakeful_ask(struct sy__wakeful *lock)
{
	return !__atomic_exchange_n(&lock->held, 2u, __ATOMIC_ACQUIRE);
}

void sy__wakeful_sleep(struct sy__wakeful *lock)
{
	uint64_t start = sy__monotonic();

	lock_waits++;
	sleep_on(&lock->held, 2, EVENT_NS);
	lock_wait_time += sy__monotonic() - start;
}

void sy__wakeful_unlock(struct sy__wakeful *lock)
{
	if (__atomic_exchange_n(&lock->held, 0u, __ATOMIC_RELEASE) == 2)
		wake(&lock->held, 1);
}

SY__COLD void sy__lock_wait(sy__lock_t *lock)
{
	unsigned looks = 0;

	lock_waits++;
	do {
		while (__atomic_load_n(&lock->held, __ATOMIC_RELAXED))
			looks = sy__look_again(looks);
	} while (__atomic_exchange_n(&lock->held, 1u, __ATOMIC_ACQUIRE));
}

/* Seeing one's ticket served acquires what the last owner released; drawing a ticket orders nothing. Waiters far from the front
 * sleep longer: if hundreds looked again and again, those ahead of them would each wait for a processor. */
void sy__queue_lock(struct sy__queue *queue)
{
	unsigned number = __atomic_fetch_add(&queue->next, 1u, __ATOMIC_RELAXED), looks = 0, before;

	lock_waits += __atomic_load_n(&queue->serving, __ATOMIC_RELAXED) != number;
	while ((before = number - __atomic_load_n(&queue->serving, __ATOMIC_ACQUIRE)) != 0) {
		if (before > NEAR)
			give_way((long)(before < FAR ? before : FAR) * SLEEP_EACH_NS);
		else
			looks = sy__look_again(looks);
	}
}

bool sy__queue_try(struct sy__queue *queue)
{
	unsigned number = __atomic_load_n(&queue->serving, __ATOMIC_ACQUIRE);

	return __atomic_compare_exchange_n(&queue->next, &number, number + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void sy__queue_unlock(struct sy__queue *queue)
{
	__atomic_store_n(&queue->serving, queue->serving + 1, __ATOMIC_RELEASE);
}

void sy__queue_forget(struct sy__queue *queue)
{
	queue->next = queue->serving + 1;
}

#if !(__GCC_ATOMIC_LLONG_LOCK_FREE == 2 || defined(__LP64__))
bool sy__swap64(uint64_t *word, uint64_t *guess, uint64_t value)
{
	static sy__lock_t locks[64];
	sy__lock_t *lock = &locks[(uintptr_t)word / 64 % 64];
	uint64_t found;
	bool right;

	sy__lock(lock);
	found = *(volatile uint64_t *)word;
	right = found == *guess;
	if (right)
		*(volatile uint64_t *)word = value;
	sy__unlock(lock);
	*guess = found;
	return right;
}
#endif

/* 1 under a filter, which might not expect the question. */
unsigned sy__cpus(void)
{
	unsigned long set[1024 / (8 * sizeof(unsigned long))];
	long bytes = sy__system_is_shut_in() ? 0 : sy__system(SYS_sched_getaffinity, 0, sizeof(set), sy__system_word(set), 0);
	unsigned count = 0;

	for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof(*set); i++)
		count += (unsigned)__builtin_popcountl(set[i]);
	return count ? count : 1;
}
