/*
 * What code compiled with -fsanitize=thread calls before plain accesses, and for atomic ones. The names are the compilers'.
 *
 * At an access threads may change (schedule.h), and races are looked for. Then the access is made; a mutant may leave it out,
 * or change it (mutants.h). Atomic accesses are made here. The code itself makes plain ones after the call. So a wrong value
 * is put into memory before the access, or put right at the thread's next call; no other thread runs between.
 */
#include "inside.h"

#include <string.h>

#define CALLER __builtin_return_address(0)

static void look(const volatile void *address, size_t bytes, bool writes, bool atomic)
{
	const char *wrong = race((unsigned)running(), address, bytes, writes, atomic);

	if (wrong)
		model_wrong(wrong);
}

#define MOST_ACCESSES 50000000u /* of an execution: one that makes more runs in a circle */

static unsigned accesses;

/* The value that a word is to have once the access to it has been made. */
static struct {
	void *address;
	size_t bytes; /* 0: no access is broken */
	uint64_t words[2];
} restored;

/* A store that is made when a function returns. */
static struct late {
	volatile void *address;
	size_t bytes; /* 0: none */
	uint64_t value;
	int order;
} late[MODEL_THREADS];

static const volatile void *not_taken[MODEL_THREADS]; /* the lock that a thread seems to hold */

void accesses_begin(void)
{
	accesses = 0;
	restored.bytes = 0;
	memset(late, 0, sizeof(late));
	memset(not_taken, 0, sizeof(not_taken));
}

static void restore(void)
{
	if (restored.bytes)
		memcpy(restored.address, restored.words, restored.bytes);
	restored.bytes = 0;
}

static void restore_later(const volatile void *address, size_t bytes)
{
	restored.address = (void *)(uintptr_t)address;
	restored.bytes = bytes;
	memcpy(restored.words, restored.address, bytes);
}

/* The code will read another value than the word has. Values have the low bytes first. */
static void give_other(enum fault fault, const volatile void *address, size_t bytes)
{
	uint64_t value;

	if (bytes > sizeof(value))
		return;
	restore_later(address, bytes);
	value = as_read(fault, restored.words[0]);
	memcpy(restored.address, &value, bytes);
}

static void plain(const void *caller, const volatile void *address, size_t bytes, bool writes)
{
	enum fault fault;

	restore();
	if (++accesses > MOST_ACCESSES)
		model_wrong("no end");
	if (running() < 0)
		return;
	fault = bytes > sizeof(restored.words) ? SOUND : fault_of(writes ? STORES : LOADS, caller);
	if (fault == NOT_DONE) {
		restore_later(address, bytes);
		return;
	}
	if (steps_plainly())
		step(ACCESS, address, writes);
	look(address, bytes, writes, false);
	if (fault == READS || fault == READS_MORE)
		give_other(fault, address, bytes);
}

/* Whether the access counts. An access to the thread's own words does not: the stop protocol consists of these. */
static bool atomic(enum kind kind, const volatile void *address, size_t bytes, bool writes, enum fault fault)
{
	if (running() < 0 || is_own_word(address))
		return false;
	step(kind, address, writes);
	look(address, bytes, writes, fault != PLAIN);
	return true;
}

static void read_done(const volatile void *address, int order, enum fault fault)
{
	atomic_read((unsigned)running(), address, fault == NO_ACQUIRE || fault == BY_STORE ? __ATOMIC_RELAXED : order);
}

static void write_done(const volatile void *address, int order, bool exchanged, enum fault fault)
{
	atomic_written((unsigned)running(), address, fault == NO_RELEASE ? __ATOMIC_RELAXED : order, exchanged && fault != BY_STORE);
}

static void store_late(void)
{
	struct late *store = &late[running()];

	if (!store->bytes)
		return;
	atomic(ACCESS, store->address, store->bytes, true, SOUND);
	write_done(store->address, store->order, false, SOUND);
	memcpy((void *)(uintptr_t)store->address, &store->value, store->bytes);
	store->bytes = 0;
}

/* Whether a store is left out, now or for good. Also left out is the store that gives back a lock which was not taken. */
static bool is_left_out(enum fault fault, const volatile void *address, size_t bytes, uint64_t value, int order)
{
	if (running() < 0)
		return false;
	if (address == not_taken[running()]) {
		not_taken[running()] = NULL;
		return true;
	}
	if (fault == LATE)
		late[running()] = (struct late){ (volatile void *)(uintptr_t)address, bytes, value, order };
	return fault == LATE || fault == NOT_DONE;
}

static bool is_lock_left_out(enum kind kind, const volatile void *address, const void *caller)
{
	if (kind != LOCK || fault_of(LOCKS, caller) != NOT_DONE)
		return false;
	not_taken[running()] = address;
	return true;
}

/* ---- Plain accesses ------------------------------------------------------------------------------------------------ */

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void __tsan_read_range(void *address, size_t bytes);
void __tsan_write_range(void *address, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memmove(void *to, const void *from, size_t bytes);
void *__tsan_memset(void *to, int byte, size_t bytes);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
	restore();
	mutants_enter(CALLER);
}

void __tsan_func_exit(void)
{
	restore();
	if (mutants_leave(CALLER))
		store_late();
}

void __tsan_read_range(void *address, size_t bytes)
{
	plain(CALLER, address, bytes, false);
}

void __tsan_write_range(void *address, size_t bytes)
{
	plain(CALLER, address, bytes, true);
}

/* No mutant breaks these accesses: they belong to no function. */
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
	plain(NULL, from, bytes, false);
	plain(NULL, to, bytes, true);
	return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
	plain(NULL, from, bytes, false);
	plain(NULL, to, bytes, true);
	return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int byte, size_t bytes)
{
	plain(NULL, to, bytes, true);
	return memset(to, byte, bytes);
}

#define PLAIN_CALLS(name, bytes) \
	void __tsan_read##name(void *address); \
	void __tsan_write##name(void *address); \
	void __tsan_unaligned_read##name(void *address); \
	void __tsan_unaligned_write##name(void *address); \
	void __tsan_read##name(void *address) { plain(CALLER, address, bytes, false); } \
	void __tsan_write##name(void *address) { plain(CALLER, address, bytes, true); } \
	void __tsan_unaligned_read##name(void *address) { plain(CALLER, address, bytes, false); } \
	void __tsan_unaligned_write##name(void *address) { plain(CALLER, address, bytes, true); }

PLAIN_CALLS(1, 1)
PLAIN_CALLS(2, 2)
PLAIN_CALLS(4, 4)
PLAIN_CALLS(8, 8)
PLAIN_CALLS(16, 16)

/* ---- Atomic ones ---------------------------------------------------------------------------------------------------- */

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	model_wrong("a fence, of which the model knows nothing");
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}

/* Takes a lock: nothing else exchanges words of this size for 1. */
static enum kind exchange_kind(size_t bytes, uint64_t value, int order)
{
	return bytes == sizeof(unsigned) && value == 1 && order == __ATOMIC_ACQUIRE ? LOCK : ACCESS;
}

/* In two steps where it should be one. */
#define ATOMIC_UPDATE(type, prefix, name, kind, operation, expression) \
	type prefix##name(volatile type *word, type value, int order); \
	type prefix##name(volatile type *word, type value, int order) \
	{ \
		enum fault fault; \
		bool counts; \
		type old; \
		restore(); \
		if (is_lock_left_out(kind, word, CALLER)) \
			return 0; \
		fault = (kind) == LOCK ? SOUND : fault_of(operation, CALLER); \
		if (fault == BY_STORE) \
			atomic(ACCESS, word, sizeof(*word), false, fault); \
		old = *word; \
		counts = atomic(kind, word, sizeof(*word), fault != NOT_DONE, fault); \
		old = fault == BY_STORE ? old : *word; \
		if (counts) \
			read_done(word, order, fault); \
		if (fault == NOT_DONE) \
			return old; \
		*word = (type)as_written(fault, (uint64_t)(expression)); \
		if (counts) \
			write_done(word, order, true, fault); \
		return (type)as_read(fault, (uint64_t)old); \
	}

#define ATOMIC(type, prefix) \
	type prefix##load(const volatile type *word, int order); \
	void prefix##store(volatile type *word, type value, int order); \
	static int prefix##compare_exchange(const void *caller, volatile type *word, type *expected, type value, int order, int failure); \
	int prefix##compare_exchange_strong(volatile type *word, type *expected, type value, int order, int failure); \
	int prefix##compare_exchange_weak(volatile type *word, type *expected, type value, int order, int failure); \
	type prefix##compare_exchange_val(volatile type *word, type expected, type value, int order, int failure); \
	type prefix##load(const volatile type *word, int order) \
	{ \
		enum fault fault; \
		restore(); \
		fault = fault_of(LOADS, CALLER); \
		if (atomic(ACCESS, word, sizeof(*word), false, fault)) \
			read_done(word, order, fault); \
		else \
			asks_slot_offset(word, order); \
		return (type)as_read(fault, (uint64_t)*word); \
	} \
	void prefix##store(volatile type *word, type value, int order) \
	{ \
		enum fault fault; \
		restore(); \
		fault = fault_of(STORES, CALLER); \
		if (is_left_out(fault, word, sizeof(*word), (uint64_t)value, order)) \
			return; \
		if (atomic(ACCESS, word, sizeof(*word), true, fault)) \
			write_done(word, order, false, fault); \
		else \
			says_busy(word, (uint64_t)value, order); \
		*word = value; \
	} \
	static int prefix##compare_exchange(const void *caller, volatile type *word, type *expected, type value, int order, int failure) \
	{ \
		enum fault fault; \
		bool counts, done; \
		restore(); \
		fault = fault_of(SWAPS, caller); \
		if (fault == NOT_DONE) \
			return true; \
		counts = atomic(ACCESS, word, sizeof(*word), true, fault); \
		done = *word == *expected || fault == BY_STORE; \
		if (done) \
			*word = (type)as_written(fault, (uint64_t)value); \
		else \
			mutants_exchange_failed(); \
		*expected = (type)as_read(done ? fault : SOUND, (uint64_t)(done ? *expected : *word)); \
		if (counts) \
			read_done(word, done ? order : failure, fault); \
		if (counts && done) \
			write_done(word, order, true, fault); \
		return done; \
	} \
	int prefix##compare_exchange_strong(volatile type *word, type *expected, type value, int order, int failure) \
	{ \
		return prefix##compare_exchange(CALLER, word, expected, value, order, failure); \
	} \
	int prefix##compare_exchange_weak(volatile type *word, type *expected, type value, int order, int failure) \
	{ \
		return prefix##compare_exchange(CALLER, word, expected, value, order, failure); \
	} \
	type prefix##compare_exchange_val(volatile type *word, type expected, type value, int order, int failure) \
	{ \
		prefix##compare_exchange(CALLER, word, &expected, value, order, failure); \
		return expected; \
	} \
	ATOMIC_UPDATE(type, prefix, exchange, exchange_kind(sizeof(*word), (uint64_t)value, order), SWAPS, value) \
	ATOMIC_UPDATE(type, prefix, fetch_add, ACCESS, ADDS, old + value) \
	ATOMIC_UPDATE(type, prefix, fetch_sub, ACCESS, ADDS, old - value) \
	ATOMIC_UPDATE(type, prefix, fetch_and, ACCESS, ADDS, old & value) \
	ATOMIC_UPDATE(type, prefix, fetch_or, ACCESS, ADDS, old | value)

ATOMIC(uint8_t, __tsan_atomic8_)
ATOMIC(uint16_t, __tsan_atomic16_)
ATOMIC(uint32_t, __tsan_atomic32_)
ATOMIC(uint64_t, __tsan_atomic64_)
