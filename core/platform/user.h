/*
 * The platform for programs: the replay, the malloc drop-in, tests. See platform.h for the contract.
 *
 * Locks. A word, taken by one atomic exchange and given back by one store. A contended lock is watched with plain loads
 * (test and test-and-set; relaxed, as the exchange that follows acquires), so that waiters share the line instead of tearing it
 * from the owner; after a while they offer their processor to others, as the owner of a lock may have lost its own, and then
 * sleep for moments, as those others may be all but the owner; longer ones by and by, as those others may be hundreds that
 * sleep and look as well. No call into the operating system on either uncontended path.
 *
 * Slots. One thread drives all slots of a replay, or each thread its own: nothing interrupts the code between
 * sy__local_begin and sy__local_end, so both are empty. A thread's own slot is in its struct sy__thread: beginning a call is
 * one store and one load there, ending it one store. How others reach the slot nevertheless: threads.c.
 *
 * Words of 64 bits are exchanged by the machine's own instruction; by locks, many of them and chosen by the word's address, on
 * the few 32-bit machines that have none. Those read such a word in two halves, which a guess may.
 *
 * Time. CLOCK_MONOTONIC, unless the program replaces the clock: a replay sets the trace's time, so that every result
 * follows from the trace alone.
 *
 * Memory. Address space is reserved without access and without being charged, made accessible piece by piece, and backed by
 * the operating system when it is first touched; hence a simulated terabyte costs what is used of it.
 *
 * The state behind this header is in user.c and threads.c.
 */
#ifndef SY_PLATFORM_USER_H
#define SY_PLATFORM_USER_H

#include <string.h>

typedef struct {
	unsigned held;
} sy__lock_t;

#define SY__LOCK_INIT { 0 }

extern uint64_t (*sy__clock)(void); /* sy_platform_set_clock */

/* What a thread has in thread-local storage. What stands before `slot` is the fast path's, but for `state`; the rest is
 * threads.c's. */
struct __attribute__((aligned(64))) sy__thread {
	unsigned busy;    /* 1 from sy__call_begin to sy__call_end; written by the thread alone */
	unsigned state;   /* enum in threads.c: may others claim the slot? */
	ptrdiff_t here;   /* what sy__call_begin returns */
	const void *last; /* what sy__call_note was told; or SY__NOTHING */
	void *from;       /* with it */
	unsigned slot;  /* the thread's own; the shared one while in a call on that; or none */
	unsigned calls; /* slow ones, and what counts as such */
	bool watches;   /* all its calls are slow; written by whoever may write `here` */
	bool claims;    /* has claimed the slots of others */
	bool ending;    /* its slot was given back for good, as the thread ends */
	bool forking;   /* between the halves of a fork */
};

extern __thread struct sy__thread sy__self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * A thread sanitizer does not know the barrier that a claim has all threads execute (threads.c), so under one both sides of
 * that protocol use the order that it does know. The protocol is the same.
 */
#if defined(__SANITIZE_THREAD__)
#define SY__OWNER_STORE __ATOMIC_SEQ_CST
#define SY__OWNER_LOAD __ATOMIC_SEQ_CST
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SY__OWNER_STORE __ATOMIC_SEQ_CST
#define SY__OWNER_LOAD __ATOMIC_SEQ_CST
#endif
#endif
#ifndef SY__OWNER_STORE
#define SY__OWNER_STORE __ATOMIC_RELAXED
#define SY__OWNER_LOAD __ATOMIC_ACQUIRE
#define SY__CLAIM_STORE __ATOMIC_RELEASE
#define SY__CLAIM_LOAD __ATOMIC_ACQUIRE
#else
#define SY__CLAIM_STORE __ATOMIC_SEQ_CST
#define SY__CLAIM_LOAD __ATOMIC_SEQ_CST
#endif

/* sy__call_begin of a thread without a slot: -SY_SLOT_STRIDE. */
#define SY__DUMMY_HERE ((ptrdiff_t)-4096)

bool sy__call_enter(unsigned *slot);
void sy__call_leave(void);
unsigned sy__calls(void);
bool sy__watch(bool on);
bool sy__claim_enter(unsigned *slot);
void sy__claim_leave(void);
bool sy__slots_claim_try(void);
void sy__slots_release(void);
bool sy__slot_claim(unsigned slot);
void sy__slot_release(unsigned slot);
bool sy__slot_mine(unsigned slot);
bool sy__slot_unowned(unsigned slot);
void sy__on_slot_end(void (*)(unsigned slot));
unsigned sy__slots_high(void);
unsigned sy__cpus(void);
unsigned sy__look_again(unsigned looks);

/*
 * Store busy, then load here: the claimer stores here, then loads busy, with a barrier between that takes effect on all
 * processors. So at least one sees the other's store, though nothing but the compiler is kept from reordering here. The load
 * acquires, as it may see the slot released by a claimer, who wrote to its state; the store in sy__call_end releases that
 * state to the next claimer.
 */
static inline ptrdiff_t sy__call_here(void)
{
	return __atomic_load_n(&sy__self.here, SY__OWNER_LOAD);
}

static inline void sy__call_busy(void)
{
	__atomic_store_n(&sy__self.busy, 1u, SY__OWNER_STORE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline ptrdiff_t sy__call_begin(void)
{
	sy__call_busy();
	return sy__call_here();
}

/* With `last` in the place of `here`, which the claimer takes away too. */
static inline bool sy__call_begin_with(const void *object)
{
	sy__call_busy();
	return __atomic_load_n(&sy__self.last, SY__OWNER_LOAD) == object;
}

static inline void *sy__call_from(void)
{
	return sy__self.from;
}

static inline void sy__call_note(const void *object, void *from)
{
	__atomic_store_n(&sy__self.last, object, __ATOMIC_RELAXED);
	sy__self.from = from;
}

static inline void sy__call_end(void)
{
	__atomic_store_n(&sy__self.busy, 0u, __ATOMIC_RELEASE);
}

static inline unsigned sy__calls_more(void)
{
	return ++sy__self.calls;
}

static inline const void *sy__caller(void)
{
	return &sy__self;
}

void sy__lock_wait(sy__lock_t *lock);

/* Takes the lock, but for who finds it taken while that is so: false. */
bool sy__lock_unless(sy__lock_t *lock, const bool *so);

/* A lock that is had in the order in which it was asked for, for what one thread may want without end while others wait. */
struct sy__queue {
	unsigned next, serving;
};

void sy__queue_lock(struct sy__queue *);
bool sy__queue_try(struct sy__queue *);
void sy__queue_unlock(struct sy__queue *);

/* In the child of a fork, by whoever has it: those who waited are not there. */
void sy__queue_forget(struct sy__queue *);

void *sy__source_reserve(size_t bytes);
int sy__source_commit(void *p, size_t bytes);
void sy__source_discard(void *p, size_t bytes);
void sy__source_withdraw(void *p, size_t bytes);
void sy__source_prefer_huge(void *p, size_t bytes);
void sy__source_prefer_small(void *p, size_t bytes);
bool sy__source_has(const void *p, size_t bytes, size_t least);
bool sy__source_allows(size_t bytes);
void sy__source_release(void *p, size_t bytes);
bool sy__source_reserve_at(void *p, size_t bytes);

static inline void sy__lock(sy__lock_t *lock)
{
	if (sy__unlikely(__atomic_exchange_n(&lock->held, 1u, __ATOMIC_ACQUIRE)))
		sy__lock_wait(lock);
}

static inline bool sy__lock_try(sy__lock_t *lock)
{
	return !__atomic_load_n(&lock->held, __ATOMIC_RELAXED) && !__atomic_exchange_n(&lock->held, 1u, __ATOMIC_ACQUIRE);
}

static inline void sy__unlock(sy__lock_t *lock)
{
	__atomic_store_n(&lock->held, 0u, __ATOMIC_RELEASE);
}

static inline void sy__local_begin(unsigned slot)
{
	(void)slot;
}

static inline void sy__local_end(unsigned slot)
{
	(void)slot;
}

/* The orders are argued where words are: core/policies/node.h. */
#if __GCC_ATOMIC_LLONG_LOCK_FREE == 2 || defined(__LP64__)
static inline uint64_t sy__load64(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline bool sy__swap64(uint64_t *word, uint64_t *guess, uint64_t value)
{
	return __atomic_compare_exchange_n(word, guess, value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
#else
static inline uint64_t sy__load64(const uint64_t *word)
{
	return *(const volatile uint64_t *)word;
}

bool sy__swap64(uint64_t *word, uint64_t *guess, uint64_t value);
#endif

static inline uint64_t sy__now(void)
{
	return sy__clock();
}

static inline void sy__copy(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

static inline void sy__fill(void *to, int byte, size_t bytes)
{
	memset(to, byte, bytes);
}

static inline bool sy__same(const void *a, const void *b, size_t bytes)
{
	return memcmp(a, b, bytes) == 0;
}

#endif
