/*
 * The platform for programs: the replay, the malloc drop-in, tests. See platform.h for the contract.
 *
 * Locks. A word, acquired by one atomic exchange and released by one store (test-and-test-and-set). Waiters watch a contended lock
 * with relaxed loads, so that they share the cache line and do not take it from the owner; the exchange that follows acquires.
 * After a while they yield their processor, as the owner may have lost its own. Then they sleep, as yielding may run any thread but
 * the owner; and longer and longer, as hundreds of waiters may sleep and look. Uncontended paths make no system call.
 *
 * Slots. One thread drives all slots of a replay, or each thread its own. Nothing interrupts the code between sy__local_begin and
 * sy__local_end, so both are empty. struct sy__thread says which slot a thread has: beginning a call is one store and one load
 * there, ending it one store. stop.c says how others reach the slot.
 *
 * Words of 64 bits are exchanged by the machine's instruction. The few 32-bit machines without one use an array of locks, chosen
 * by the word's address; they read such a word in two halves, which is good enough for a guess.
 *
 * Time. CLOCK_MONOTONIC, unless the program replaces the clock: a replay sets the trace's time, so that every result
 * follows from the trace alone.
 *
 * Memory. Address space is reserved without access and without being charged, made accessible piece by piece, and backed by
 * the operating system when it is first touched. So a simulated terabyte costs what is used of it.
 *
 * The state behind this header is in user.c, source.c, clock.c and, for slots, in the files that threads.h lists.
 */
#ifndef SY_PLATFORM_USER_H
#define SY_PLATFORM_USER_H

typedef struct {
	unsigned held;
} sy__lock_t;

#define SY__LOCK_INIT { 0 }

uint64_t sy__monotonic(void); /* nanoseconds */
void sy__clock_without_counter(bool without); /* the processor's, which a program may not read then */
extern uint64_t (*sy__clock)(void); /* that, or what the program has set by sy_platform_set_clock */

/* Thread-local state. The fast path uses the members before `slot`, except `state`. */
struct __attribute__((aligned(64))) sy__thread {
	unsigned busy;         /* 1 from sy__call_begin to sy__call_end; written by the thread alone */
	unsigned state;        /* enum in threads.h: may others stop the slot? */
	ptrdiff_t slot_offset; /* what sy__call_begin returns */
	const void *last;      /* the object that sy__call_note noted; or SY__NOTHING */
	void *from;            /* the state noted with it */
	unsigned slot;  /* the thread's own; the shared slot during a call on that; or NO_SLOT */
	unsigned calls; /* slow calls, and what counts as such */
	bool watches;   /* all its calls are slow; written as `slot_offset` */
	bool stops;     /* has stopped the slots of others */
	bool ending;    /* the thread ends, and has given its slot back for good */
	bool forking;   /* between the halves of a fork */
	bool holds_at_lock; /* in a slow call that has taken no lock yet */
	bool holds_signals; /* lets no signal in; and the mask before */
	uint64_t signals;
};

extern __thread struct sy__thread sy__self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * Thread sanitizers do not know membarrier, which stops use (stop.c). So under one, both sides of that protocol use
 * sequentially consistent accesses. The protocol is the same.
 */
#ifdef SY__SANITIZES_THREADS
#define SY__OWNER_STORE __ATOMIC_SEQ_CST
#define SY__OWNER_LOAD __ATOMIC_SEQ_CST
#define SY__STOP_STORE __ATOMIC_SEQ_CST
#define SY__STOP_LOAD __ATOMIC_SEQ_CST
#else
#define SY__OWNER_STORE __ATOMIC_RELAXED
#define SY__OWNER_LOAD __ATOMIC_ACQUIRE
#define SY__STOP_STORE __ATOMIC_RELEASE
#define SY__STOP_LOAD __ATOMIC_ACQUIRE
#endif

/* sy__call_begin of a thread without a slot: -SY_SLOT_STRIDE. */
#define SY__DUMMY_OFFSET ((ptrdiff_t)-4096)

bool sy__call_enter(unsigned *slot);
void sy__call_leave(void);
unsigned sy__calls(void);
bool sy__watch(bool on);
bool sy__stop_enter(unsigned *slot);
bool sy__stop_enter_soon(unsigned *slot);
void sy__stop_leave(void);
void sy__fast_calls_lock(void);
bool sy__stop_try(void);
void sy__stop_end(void);
bool sy__slot_mine(unsigned slot);
bool sy__slot_unowned(unsigned slot);
void sy__on_slot_end(void (*)(unsigned slot));
unsigned sy__slots_high(void);
unsigned sy__thread_slots(void);
bool sy__thread_slots_reduce(unsigned most);
void sy__thread_slots_limited(uint64_t bytes); /* of addresses or data; likewise, to what such a limit leaves room for */

/* For slabyard-inspect, in a process that looks at another one's heaps: where the state of its slots is; and takes over from there
 * which slots had owners. Returns how many threads were inside of calls. is_there: whether memory of the other process can be read,
 * as an owner may have ended unnoticed. The calling process has one thread, and no heap of its own. */
extern const void *const sy__slots_table;
unsigned sy__slots_adopt(const void *table, bool (*is_there)(const void *, size_t));

unsigned sy__cpus(void);
unsigned sy__look_again(unsigned looks);

/*
 * The owner stores `busy`, then loads `slot_offset`. A thread that stops it stores `slot_offset`, then loads `busy`, with a barrier in
 * between that acts on all processors. So at least one of them sees the other's store, though here only the compiler is kept from
 * reordering. The load acquires, as a thread that wrote to the slot's state may have let the owner go on. The store in sy__call_end
 * releases that state to the next stop.
 */
static inline ptrdiff_t sy__call_slot_offset(void)
{
	return __atomic_load_n(&sy__self.slot_offset, SY__OWNER_LOAD);
}

static inline void sy__call_busy(void)
{
	__atomic_store_n(&sy__self.busy, 1u, SY__OWNER_STORE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline ptrdiff_t sy__call_begin(void)
{
	sy__call_busy();
	return sy__call_slot_offset();
}

/* The same with `last` in place of `slot_offset`: a stop changes both. */
static inline bool sy__call_begin_with(const void *object)
{
	sy__call_busy();
	return SY__READ_AT_ONCE(sy__self.last) == object;
}

static inline const void *sy__call_noted(const void *from)
{
	const void *last = SY__READ_AT_ONCE(sy__self.last);

	return last != SY__NOTHING && sy__self.from == from ? last : NULL;
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

/* Looks whether the program handles signals. */
void sy__signals_learn(void);

/* From the first lock of a slow call until its end: signals are blocked, because a handler might not return, and the lock would stay
 * held. */
void sy__signals_hold(const sy__lock_t *);

/* For a replay: `watch` is called at each lock of this thread, which is in no call of a heap of threads meanwhile; NULL: no more. */
void sy__locks_watch(void (*watch)(const sy__lock_t *));

uint64_t sy__random(void);

/* A ticket lock: threads get it in the order of asking, so that one thread cannot take it again and again while others wait. */
struct sy__queue {
	unsigned next, serving;
};

void sy__queue_lock(struct sy__queue *);
bool sy__queue_try(struct sy__queue *);
void sy__queue_unlock(struct sy__queue *);

/* Something that happens now and then, for which any number of threads may sleep. */
struct sy__event {
	unsigned count, sleepers;
};

static inline unsigned sy__event_count(const struct sy__event *event)
{
	return __atomic_load_n(&event->count, __ATOMIC_ACQUIRE);
}

/* Sleeps, unless the event has happened since it was counted; may also return for no reason. */
void sy__event_wait(struct sy__event *, unsigned count);
void sy__event_happens(struct sy__event *);

/* Sleeps until the word is woken, if it has the value still, for at most this many nanoseconds, below a second; 0: without a bound. May also
 * return for no reason. False: this system has no such call. And wakes all who sleep so. */
bool sy__word_sleep(const unsigned *word, unsigned value, long nanoseconds);
void sy__word_wake(const unsigned *word);

/* A lock for which any number of threads may sleep, each of which is woken once. */
struct sy__wakeful {
	unsigned held; /* 0: free, 1: held, 2: and a thread may sleep, so the end wakes one */
};

bool sy__wakeful_try(struct sy__wakeful *);   /* takes it if it is free */
bool sy__wakeful_ask(struct sy__wakeful *);   /* the same; else its end will wake a thread. Also to be called once woken */
void sy__wakeful_sleep(struct sy__wakeful *); /* until woken, or for no reason */
void sy__wakeful_unlock(struct sy__wakeful *);

/* In the child of a fork, by the thread that has it: forgets the waiters, which do not exist there. */
void sy__queue_forget(struct sy__queue *);

/* What mlockall asked for future memory: nothing, to lock it, or to lock the pages that are touched. */
enum sy__locks { SY__LOCKS_NONE, SY__LOCKS_ALL, SY__LOCKS_TOUCHED };

void sy__source_lock_future(enum sy__locks);
bool sy__source_locks(void);     /* whether any of it */
void sy__source_only_small(void); /* no huge pages from now on */
void sy__system_shut_in(void);   /* the program is about to forbid itself system calls */
bool sy__system_is_shut_in(void);
uint64_t sy__system_limit(int resource); /* RLIMIT_AS or RLIMIT_DATA; UINT64_MAX: there is none, or it is unknown */
void sy__system_limited(int resource, uint64_t limit); /* the program has set it */
bool sy__system_is_filtered(void); /* that, or its parent has left it a filter */

void *sy__source_reserve(size_t bytes);
int sy__source_commit(void *p, size_t bytes);
void sy__source_discard(void *p, size_t bytes);
void sy__source_withdraw(void *p, size_t bytes);
bool sy__source_prefer_huge(void *p, size_t bytes);
void sy__source_prefer_small(void *p, size_t bytes);
bool sy__source_tells(void);
bool sy__source_has(const void *p, size_t bytes, size_t least);
bool sy__source_allows(size_t bytes);
void sy__source_release(void *p, size_t bytes);
bool sy__source_reserve_at(void *p, size_t bytes);

static inline void sy__lock(sy__lock_t *lock)
{
	if (sy__unlikely(sy__self.holds_at_lock))
		sy__signals_hold(lock);
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

#include "bytes.h"

#endif
