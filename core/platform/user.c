/*
 * State and system calls behind platform/user.h.
 *
 * The memory source. Reserved space is a private anonymous mapping without access: with MAP_NORESERVE the operating system
 * charges nothing for it, and a stray access faults instead of growing memory. Committing is mprotect, which touches
 * nothing either: pages appear when they are written. Discarding is MADV_DONTNEED, after which the pages read zero again.
 * The operating system's pages may be larger than ours (arm64 has 16 and 64 KiB pages), hence a discarded range is rounded
 * inwards: what shares a page with something in use stays. So does memory that the program has locked (mlock). What stays is
 * cleared, as callers expect zeroes. getpagesize tells the page size: sysconf would read a table that brings 64 KiB of the C
 * library into the program's memory.
 *
 * Only this file, among the core's, includes headers of the operating system.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE, madvise */
#include <slabyard/slabyard.h>

#include "../platform.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef MAP_FIXED_NOREPLACE
#define FIXED_NOREPLACE MAP_FIXED_NOREPLACE
#else
#define FIXED_NOREPLACE 0x100000 /* linux/mman.h, which old systems lack */
#endif
#define SPINS_BEFORE_YIELD 128
#define SPINS_BEFORE_SLEEP (64 * SPINS_BEFORE_YIELD)
#define SLEEP_NS 100000
#define SLEEPS_BEFORE_LONGER 16u /* of one length; then as many of twice the length */
#define MOST_DOUBLINGS 6u
#define NEAR 4u /* so many waiters at the front of a queue spin; those behind sleep at once */
#define FAR 400u
#define SLEEP_EACH_NS 50000 /* for each waiter ahead, of FAR at most */

static uint64_t monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t (*sy__clock)(void) = monotonic;

void sy_platform_set_clock(uint64_t (*clock)(void))
{
	sy__clock = clock ? clock : monotonic;
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

/* By the system call itself: the C library's nanosleep is a cancellation point. Its argument has two words on all machines. */
static void sleep_for(long nanoseconds)
{
#ifdef SYS_nanosleep
	const long moment[2] = { 0, nanoseconds };
	int before = errno;

	syscall(SYS_nanosleep, moment, NULL);
	errno = before;
#else
	(void)nanoseconds;
	sched_yield();
#endif
}

/* The sleep grows to about 1/16 of the time waited so far. If hundreds of waiters looked each moment, as when all end at once, the
 * lock's owner would get no processor. */
static long sleep_length(unsigned looks)
{
	unsigned doublings = (looks - SPINS_BEFORE_SLEEP) / (SPINS_BEFORE_YIELD * SLEEPS_BEFORE_LONGER);

	return (long)SLEEP_NS << (doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS);
}

/* Of this thread: how often it had to wait for a lock, and how long it gave its processor away meanwhile. */
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
	uint64_t start = monotonic();

	if (nanoseconds)
		sleep_for(nanoseconds);
	else
		sched_yield();
	lock_wait_time += monotonic() - start;
}

/* Waits a moment before the next look at a word that another thread will change; returns looks + 1. Yielding alone is not enough:
 * a real-time thread that yields still runs before a lower-priority owner. */
unsigned sy__look_again(unsigned looks)
{
	if (looks % SPINS_BEFORE_YIELD == SPINS_BEFORE_YIELD - 1)
		give_way(looks > SPINS_BEFORE_SLEEP ? sleep_length(looks) : 0);
	else
		spin_pause();
	return looks < UINT_MAX - 1 ? looks + 1 : 0;
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

bool sy__lock_unless(sy__lock_t *lock, const bool *so)
{
	unsigned looks = 0;

	if (sy__lock_try(lock))
		return true;
	lock_waits++;
	do {
		if (__atomic_load_n(so, __ATOMIC_RELAXED))
			return false;
		looks = sy__look_again(looks);
	} while (!sy__lock_try(lock));
	return true;
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

void *sy__source_reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int sy__source_commit(void *p, size_t bytes)
{
	uintptr_t mask = (uintptr_t)getpagesize() - 1;
	uintptr_t start = (uintptr_t)p & ~mask, end = ((uintptr_t)p + bytes + mask) & ~mask;

	return mprotect((void *)start, end - start, PROT_READ | PROT_WRITE);
}

bool sy__source_allows(size_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

void sy__source_discard(void *p, size_t bytes)
{
	uintptr_t mask = (uintptr_t)getpagesize() - 1;
	uintptr_t start = (uintptr_t)p, end = start + bytes, from = (start + mask) & ~mask, to = end & ~mask;
	int error = errno; /* free must keep it */

	if (from >= to || madvise((void *)from, to - from, MADV_DONTNEED))
		from = to = end;
	sy__fill(p, 0, from - start);
	sy__fill((void *)to, 0, end - to);
	errno = error;
}

/* A limit to data counts writable memory, present or not. If the system refuses, the memory goes on counting. */
void sy__source_withdraw(void *p, size_t bytes)
{
	uintptr_t mask = (uintptr_t)getpagesize() - 1;
	uintptr_t from = ((uintptr_t)p + mask) & ~mask, to = ((uintptr_t)p + bytes) & ~mask;
	int error = errno;

	sy__source_discard(p, bytes);
	if (from < to)
		mprotect((void *)from, to - from, PROT_NONE);
	errno = error;
}

/* Asks piece by piece, until enough is found. */
bool sy__source_has(const void *p, size_t bytes, size_t least)
{
	unsigned char there[1024];
	size_t page = (size_t)getpagesize(), step, found = 0;
	int error = errno;

	for (size_t at = 0; at < bytes && found < least; at += step) {
		step = bytes - at < sizeof(there) * page ? bytes - at : sizeof(there) * page;
		if (mincore((char *)(uintptr_t)p + at, step, there)) {
			errno = error;
			return true;
		}
		for (size_t i = 0; i < step / page; i++)
			found += there[i] & 1 ? page : 0;
	}
	return found >= least;
}

#ifdef MADV_HUGEPAGE
static void advise(void *p, size_t bytes, int advice)
{
	int error = errno;

	madvise(p, bytes, advice);
	errno = error;
}

void sy__source_prefer_huge(void *p, size_t bytes)
{
	advise(p, bytes, MADV_HUGEPAGE);
}

void sy__source_prefer_small(void *p, size_t bytes)
{
	advise(p, bytes, MADV_NOHUGEPAGE);
}
#else
void sy__source_prefer_huge(void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
}

void sy__source_prefer_small(void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
}
#endif

void sy__source_release(void *p, size_t bytes)
{
	munmap(p, bytes);
}

/* Kernels before 4.17 ignore the flag, and may map elsewhere. */
bool sy__source_reserve_at(void *p, size_t bytes)
{
	void *found = mmap(p, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | FIXED_NOREPLACE, -1, 0);

	if (found != MAP_FAILED && found != p)
		munmap(found, bytes);
	return found == p;
}
