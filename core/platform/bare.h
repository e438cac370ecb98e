/*
 * The platform for machines without an operating system: a microcontroller, a boot loader, a kernel before its own services
 * are up. See platform.h for the contract. Select it with -DSY_PLATFORM_SHIM='"platform/bare.h"'.
 *
 * There is one CPU, and no interrupt handler allocates, so locks and local sections are empty. A machine with such handlers
 * calls the library with interrupts masked.
 *
 * Slots. Calls without a slot run on slot 0, and there are no others to stop. A system with several CPUs, whose calls do not
 * migrate, returns the CPU's number times the cache line from sy__call_begin.
 *
 * Memory. The program first hands over one buffer (sy_platform_set_buffer). Reservations are cut from its start upwards.
 * Releasing the last reservation makes its space available again; others stay until the end, as such a machine creates its
 * page allocator once. Commit and discard clear the memory: nobody else does, and there is nobody to give it back to.
 *
 * Time. The program supplies the clock (sy_platform_set_clock). Without one, time stands still, and grace periods longer than
 * zero never end.
 *
 * The compiler may turn copies and comparisons into calls of memcpy, memset, memmove and memcmp; a freestanding program
 * provides these four, as every compiler demands. The state behind this header is in bare.c.
 */
#ifndef SY_PLATFORM_BARE_H
#define SY_PLATFORM_BARE_H

typedef struct {
	unsigned char none; /* C has no empty structure */
} sy__lock_t;

#define SY__LOCK_INIT { 0 }

/* Memory for everything: zones, descriptors, bookkeeping. Align it to the largest block, else up to one is lost. */
void sy_platform_set_buffer(void *buffer, size_t bytes);

/* Replaces the clock of sy__now(); NULL: time stands still. */
void sy_platform_set_clock(uint64_t (*clock)(void));

extern uint64_t (*sy__clock)(void);

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
	(void)lock;
}

static inline bool sy__lock_try(sy__lock_t *lock)
{
	(void)lock;
	return true;
}

static inline void sy__unlock(sy__lock_t *lock)
{
	(void)lock;
}

static inline void sy__local_begin(unsigned slot)
{
	(void)slot;
}

static inline void sy__local_end(unsigned slot)
{
	(void)slot;
}

static inline uint64_t sy__load64(const uint64_t *word)
{
	return *word;
}

static inline bool sy__swap64(uint64_t *word, uint64_t *guess, uint64_t value)
{
	if (*word != *guess) {
		*guess = *word;
		return false;
	}
	*word = value;
	return true;
}

#define SY__DUMMY_OFFSET ((ptrdiff_t)-4096)

/* What sy__call_note noted; per CPU where there are several. */
extern const void *sy__last;
extern void *sy__from;

static inline ptrdiff_t sy__call_slot_offset(void)
{
	return 0;
}

static inline ptrdiff_t sy__call_begin(void)
{
	return sy__call_slot_offset();
}

static inline bool sy__call_begin_with(const void *object)
{
	return sy__last == object;
}

static inline const void *sy__call_noted(const void *from)
{
	return sy__from == from && sy__last != SY__NOTHING ? sy__last : NULL;
}

static inline void *sy__call_from(void)
{
	return sy__from;
}

static inline void sy__call_note(const void *object, void *from)
{
	sy__last = object;
	sy__from = from;
}

static inline void sy__call_end(void)
{
}

bool sy__call_enter(unsigned *slot);
void sy__call_leave(void);
unsigned sy__calls(void);
unsigned sy__calls_more(void);

static inline bool sy__watch(bool on)
{
	(void)on;
	return false;
}

static inline bool sy__stop_enter(unsigned *slot)
{
	return sy__call_enter(slot);
}

static inline bool sy__stop_enter_soon(unsigned *slot)
{
	return sy__call_enter(slot);
}

static inline void sy__stop_leave(void)
{
	sy__call_leave();
}

static inline void sy__signals_learn(void)
{
}

static inline void sy__fast_calls_lock(void)
{
}

static inline bool sy__stop_try(void)
{
	return true;
}

static inline void sy__stop_end(void)
{
}

static inline bool sy__slot_mine(unsigned slot)
{
	(void)slot;
	return true;
}

static inline bool sy__slot_unowned(unsigned slot)
{
	(void)slot;
	return false;
}

static inline void sy__on_slot_end(void (*function)(unsigned slot))
{
	(void)function;
}

static inline unsigned sy__thread_slots(void)
{
	return 1;
}

static inline bool sy__thread_slots_reduce(unsigned most)
{
	(void)most;
	return false;
}

static inline unsigned sy__slots_high(void)
{
	return 1;
}

static inline const void *sy__caller(void)
{
	return ""; /* any address: there is one caller */
}

static inline unsigned sy__cpus(void)
{
	return 1;
}

/* As far as the clock goes: such a machine has nothing better. */
static inline uint64_t sy__random(void)
{
	return sy__clock() * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t sy__now(void)
{
	return sy__clock();
}

#include "bytes.h"

#endif
