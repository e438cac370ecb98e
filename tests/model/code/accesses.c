/*
 * What code compiled with -fsanitize=thread calls before plain accesses, and for atomic ones. The names are the compilers'.
 *
 * An access is a step where threads may change (schedule.h), and is looked at for races; then it is made.
 */
#include "inside.h"

#include <string.h>

static void look(const volatile void *address, size_t bytes, bool writes, bool atomic)
{
	const char *wrong = race((unsigned)running(), address, bytes, writes, atomic);

	if (wrong)
		model_wrong(wrong);
}

#define MOST_ACCESSES 50000000u /* of an execution: who makes more goes in a circle */

static unsigned accesses;

void accesses_begin(void)
{
	accesses = 0;
}

static void plain(const volatile void *address, size_t bytes, bool writes)
{
	if (++accesses > MOST_ACCESSES)
		model_wrong("no end");
	if (running() < 0)
		return;
	if (steps_plainly())
		step(ACCESS, address, writes);
	look(address, bytes, writes, false);
}

/* Whether the access counts; not that to the thread's own words, of which the claim protocol consists. */
static bool atomic(enum kind kind, const volatile void *address, size_t bytes, bool writes)
{
	if (running() < 0 || is_own_word(address))
		return false;
	step(kind, address, writes);
	look(address, bytes, writes, true);
	return true;
}

static void read_done(const volatile void *address, int order)
{
	atomic_read((unsigned)running(), address, order);
}

static void write_done(const volatile void *address, int order, bool exchanged)
{
	atomic_written((unsigned)running(), address, order, exchanged);
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
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *address, size_t bytes)
{
	plain(address, bytes, false);
}

void __tsan_write_range(void *address, size_t bytes)
{
	plain(address, bytes, true);
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
	plain(from, bytes, false);
	plain(to, bytes, true);
	return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
	plain(from, bytes, false);
	plain(to, bytes, true);
	return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int byte, size_t bytes)
{
	plain(to, bytes, true);
	return memset(to, byte, bytes);
}

#define PLAIN(name, bytes) \
	void __tsan_read##name(void *address); \
	void __tsan_write##name(void *address); \
	void __tsan_unaligned_read##name(void *address); \
	void __tsan_unaligned_write##name(void *address); \
	void __tsan_read##name(void *address) { plain(address, bytes, false); } \
	void __tsan_write##name(void *address) { plain(address, bytes, true); } \
	void __tsan_unaligned_read##name(void *address) { plain(address, bytes, false); } \
	void __tsan_unaligned_write##name(void *address) { plain(address, bytes, true); }

PLAIN(1, 1)
PLAIN(2, 2)
PLAIN(4, 4)
PLAIN(8, 8)
PLAIN(16, 16)

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

#define ATOMIC_UPDATE(type, prefix, name, kind, expression) \
	type prefix##name(volatile type *word, type value, int order); \
	type prefix##name(volatile type *word, type value, int order) \
	{ \
		bool counts = atomic(kind, word, sizeof(*word), true); \
		type old = *word; \
		*word = (type)(expression); \
		if (counts) { \
			read_done(word, order); \
			write_done(word, order, true); \
		} \
		return old; \
	}

#define ATOMIC(type, prefix) \
	type prefix##load(const volatile type *word, int order); \
	void prefix##store(volatile type *word, type value, int order); \
	int prefix##compare_exchange_strong(volatile type *word, type *expected, type value, int order, int failure); \
	int prefix##compare_exchange_weak(volatile type *word, type *expected, type value, int order, int failure); \
	type prefix##compare_exchange_val(volatile type *word, type expected, type value, int order, int failure); \
	type prefix##load(const volatile type *word, int order) \
	{ \
		if (atomic(ACCESS, word, sizeof(*word), false)) \
			read_done(word, order); \
		else \
			asks_here(word, order); \
		return *word; \
	} \
	void prefix##store(volatile type *word, type value, int order) \
	{ \
		if (atomic(ACCESS, word, sizeof(*word), true)) \
			write_done(word, order, false); \
		else \
			says_busy(word, (uint64_t)value, order); \
		*word = value; \
	} \
	int prefix##compare_exchange_strong(volatile type *word, type *expected, type value, int order, int failure) \
	{ \
		bool counts = atomic(ACCESS, word, sizeof(*word), true), done = *word == *expected; \
		if (done) \
			*word = value; \
		else \
			*expected = *word; \
		if (counts) \
			read_done(word, done ? order : failure); \
		if (counts && done) \
			write_done(word, order, true); \
		return done; \
	} \
	int prefix##compare_exchange_weak(volatile type *word, type *expected, type value, int order, int failure) \
	{ \
		return prefix##compare_exchange_strong(word, expected, value, order, failure); \
	} \
	type prefix##compare_exchange_val(volatile type *word, type expected, type value, int order, int failure) \
	{ \
		prefix##compare_exchange_strong(word, &expected, value, order, failure); \
		return expected; \
	} \
	ATOMIC_UPDATE(type, prefix, exchange, exchange_kind(sizeof(*word), (uint64_t)value, order), value) \
	ATOMIC_UPDATE(type, prefix, fetch_add, ACCESS, old + value) \
	ATOMIC_UPDATE(type, prefix, fetch_sub, ACCESS, old - value) \
	ATOMIC_UPDATE(type, prefix, fetch_and, ACCESS, old & value) \
	ATOMIC_UPDATE(type, prefix, fetch_or, ACCESS, old | value)

ATOMIC(uint8_t, __tsan_atomic8_)
ATOMIC(uint16_t, __tsan_atomic16_)
ATOMIC(uint32_t, __tsan_atomic32_)
ATOMIC(uint64_t, __tsan_atomic64_)
