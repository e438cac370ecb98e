/*
 * The part of the core's platform for programs that stands in platform/user.c and platform/stop.c: memory, and stops.
 *
 * All memory comes from one arena, so that an execution can begin with what set_up left. The arena is a file in memory; each
 * execution maps it privately, and drops what it wrote. Static memory of the program is copied.
 *
 * A thread's struct sy__thread is in the place where the library looks for it while that thread runs, and elsewhere while
 * others run. The same holds for other memory that each thread has of its own.
 */
#define _GNU_SOURCE /* memfd_create */
#include "core/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inside.h"

#define ARENA ((size_t)64 << 20)
#define SHARES 4

__thread struct sy__thread sy__self;

static struct {
	char *start;
	size_t used, used_at_first;
	int file;
	bool frozen;
} memory = { .file = -1 };

static struct {
	struct range range;
	char *at_first;
} shares[SHARES];

static unsigned share_count;

static struct {
	char *start, *of[MODEL_THREADS];
	size_t bytes;
} owns[SHARES];

static unsigned own_count;
static struct sy__thread threads[MODEL_THREADS];
static bool inside[MODEL_THREADS]; /* slow calls */
static int stopper = -1;
static char stop_word[8]; /* stands for what a stopper releases to calls, */
static char call_words[MODEL_THREADS][8]; /* and each call to stoppers */

static uint64_t standstill(void)
{
	return 0;
}

uint64_t (*sy__clock)(void) = standstill;

uint64_t sy__random(void)
{
	return 1;
}

/* ---- Memory --------------------------------------------------------------------------------------------------------- */

static void must(bool done)
{
	if (!done) {
		perror("the model's memory");
		exit(2);
	}
}

char *arena(size_t *bytes)
{
	*bytes = ARENA;
	if (memory.start)
		return memory.start;
	memory.file = memfd_create("model", 0);
	must(memory.file >= 0 && ftruncate(memory.file, ARENA) == 0);
	memory.start = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file, 0);
	must(memory.start != MAP_FAILED);
	return memory.start;
}

void model_share(void *start, size_t bytes)
{
	must(share_count < SHARES);
	shares[share_count].range = (struct range){ start, bytes };
	shares[share_count].at_first = malloc(bytes);
	must(shares[share_count++].at_first != NULL);
	races_add((struct range){ start, bytes });
}

void model_own(void *start, size_t bytes)
{
	must(own_count < SHARES);
	owns[own_count].start = start;
	owns[own_count].bytes = bytes;
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		must((owns[own_count].of[i] = malloc(bytes)) != NULL);
	own_count++;
}

static void keep_own(unsigned thread)
{
	for (unsigned i = 0; i < own_count; i++)
		memcpy(owns[i].of[thread], owns[i].start, owns[i].bytes);
}

static void have_own(unsigned thread)
{
	for (unsigned i = 0; i < own_count; i++)
		memcpy(owns[i].start, owns[i].of[thread], owns[i].bytes);
}

static void freeze(void)
{
	must(mmap(memory.start, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, memory.file, 0) == memory.start);
	memory.frozen = true;
	memory.used_at_first = memory.used;
	for (unsigned i = 0; i < share_count; i++)
		memcpy(shares[i].at_first, shares[i].range.start, shares[i].range.bytes);
}

void *sy__source_reserve(size_t bytes)
{
	size_t size;
	char *start = arena(&size) + memory.used;

	bytes = (bytes + SY_PAGE_SIZE - 1) & ~(SY_PAGE_SIZE - 1);
	if (bytes > size - memory.used)
		return NULL;
	memory.used += bytes;
	return start;
}

int sy__source_commit(void *start, size_t bytes)
{
	(void)start;
	(void)bytes;
	return 0;
}

void sy__source_discard(void *start, size_t bytes)
{
	memset(start, 0, bytes);
}

void sy__on_slot_end(void (*function)(unsigned slot))
{
	(void)function;
}

bool sy__source_prefer_huge(void *start, size_t bytes)
{
	(void)start;
	(void)bytes;
	return false;
}

void sy__source_prefer_small(void *start, size_t bytes)
{
	(void)start;
	(void)bytes;
}

bool sy__source_allows(size_t bytes)
{
	(void)bytes;
	return true;
}

bool sy__source_tells(void)
{
	return false;
}

bool sy__source_locks(void)
{
	return false;
}

bool sy__system_is_shut_in(void)
{
	return false;
}

uint64_t sy__system_limit(int resource)
{
	(void)resource;
	return UINT64_MAX;
}

void sy__system_limited(int resource, uint64_t limit)
{
	(void)resource;
	(void)limit;
}

void sy__source_lock_future(enum sy__locks locks)
{
	(void)locks;
}

void sy__source_only_small(void)
{
}

bool sy__source_has(const void *start, size_t bytes, size_t least)
{
	(void)start;
	(void)bytes;
	(void)least;
	return true;
}

void sy__source_release(void *start, size_t bytes)
{
	sy__source_discard(start, bytes);
}

void sy__source_withdraw(void *start, size_t bytes)
{
	sy__source_discard(start, bytes);
}

bool sy__source_reserve_at(void *start, size_t bytes)
{
	(void)start;
	(void)bytes;
	return false;
}

/* A step that would have to wait here is not made (LOCK). */
void sy__lock_wait(sy__lock_t *lock)
{
	(void)lock;
	model_wrong("a lock is taken that was not given back");
}

unsigned sy__cpus(void)
{
	return 2;
}

/* ---- Threads -------------------------------------------------------------------------------------------------------- */

void model_on_slot(unsigned slot)
{
	sy__self = (struct sy__thread){ .slot = slot, .slot_offset = (ptrdiff_t)(slot * SY_SLOT_STRIDE), .last = SY__NOTHING };
}

unsigned model_slot(void)
{
	return sy__self.slot;
}

void platform_begin(void)
{
	if (!memory.frozen)
		freeze();
	must(madvise(memory.start, ARENA, MADV_DONTNEED) == 0);
	memory.used = memory.used_at_first;
	for (unsigned i = 0; i < share_count; i++)
		memcpy(shares[i].range.start, shares[i].at_first, shares[i].range.bytes);
	stopper = -1;
	for (unsigned i = 0; i < own_count; i++)
		memset(owns[i].start, 0, owns[i].bytes);
	for (unsigned i = 0; i < MODEL_THREADS; i++) {
		keep_own(i);
		model_on_slot(i + 1);
		threads[i] = sy__self;
		inside[i] = false;
	}
}

void platform_switch(int from, int to)
{
	if (from >= 0) {
		threads[from] = sy__self;
		keep_own((unsigned)from);
	}
	if (to >= 0) {
		sy__self = threads[to];
		have_own((unsigned)to);
	}
}

bool may_call(unsigned thread)
{
	return stopper < 0 || stopper == (int)thread;
}

bool may_stop(unsigned thread)
{
	if (stopper >= 0)
		return false;
	for (unsigned i = 0; i < thread_count(); i++)
		if (i != thread && (inside[i] || (running() == (int)i ? sy__self : threads[i]).busy))
			return false;
	return true;
}

static void ended(unsigned thread, int order)
{
	if (has_stops())
		atomic_written(thread, call_words[thread], order, true);
}

static void enter(unsigned thread, unsigned *slot)
{
	if (has_stops())
		atomic_read(thread, stop_word, __ATOMIC_ACQUIRE);
	inside[thread] = true;
	sy__self.slot_offset = SY__DUMMY_OFFSET;
	sy__self.last = SY__NOTHING;
	sy__self.calls++;
	*slot = sy__self.slot;
}

bool sy__call_enter(unsigned *slot)
{
	int self = running();

	if (self < 0) {
		*slot = sy__self.slot;
		return true;
	}
	if (inside[self])
		return false;
	if (has_stops()) {
		sy__self.busy = 0;
		ended((unsigned)self, __ATOMIC_RELEASE);
		step(CALL, NULL, true);
	}
	enter((unsigned)self, slot);
	return true;
}

static void leave(unsigned thread)
{
	inside[thread] = false;
	sy__self.slot_offset = (ptrdiff_t)(sy__self.slot * SY_SLOT_STRIDE);
	sy__self.busy = 0;
	ended(thread, __ATOMIC_RELEASE);
}

void sy__call_leave(void)
{
	if (running() >= 0)
		leave((unsigned)running());
}

bool sy__watch(bool on)
{
	(void)on;
	return false;
}

unsigned sy__calls(void)
{
	return sy__self.calls;
}

bool sy__stop_enter(unsigned *slot)
{
	int self = running();

	if (self < 0)
		return sy__call_enter(slot);
	step(STOP, NULL, true);
	stopper = self;
	for (unsigned i = 0; i < thread_count(); i++) {
		threads[i].slot_offset = SY__DUMMY_OFFSET;
		threads[i].last = SY__NOTHING;
		atomic_read((unsigned)self, call_words[i], __ATOMIC_ACQUIRE);
	}
	enter((unsigned)self, slot);
	return true;
}

bool sy__stop_enter_soon(unsigned *slot)
{
	return sy__stop_enter(slot);
}

void sy__stop_leave(void)
{
	int self = running();

	if (self < 0)
		return;
	step(RESUME, NULL, true);
	atomic_written((unsigned)self, stop_word, __ATOMIC_RELEASE, true);
	stopper = -1;
	for (unsigned i = 0; i < thread_count(); i++)
		threads[i].slot_offset = (ptrdiff_t)(threads[i].slot * SY_SLOT_STRIDE);
	leave((unsigned)self);
}

bool sy__stop_try(void)
{
	return false;
}

/* No model has signals. */
void sy__signals_learn(void)
{
}

void sy__signals_hold(const sy__lock_t *lock)
{
	(void)lock;
}

void sy__stop_end(void)
{
	model_wrong("what was not stopped goes on");
}

bool sy__slot_mine(unsigned slot)
{
	return running() < 0 || stopper == running() || sy__self.slot == slot;
}

bool sy__slot_unowned(unsigned slot)
{
	(void)slot;
	return false;
}

unsigned sy__slots_high(void)
{
	return MODEL_THREADS + 1;
}

unsigned sy__thread_slots(void)
{
	return SY_FEW_THREAD_SLOTS;
}

bool sy__thread_slots_reduce(unsigned most)
{
	(void)most;
	return false;
}

void sy__thread_slots_limited(uint64_t bytes)
{
	(void)bytes;
}

/* ---- Words of struct sy__thread -------------------------------------------------------------------------------------- */

bool is_own_word(const volatile void *address)
{
	return (uintptr_t)address - (uintptr_t)&sy__self < sizeof(sy__self);
}

/* Before the thread says that a call begins, or after it has said that one ended. */
void says_busy(const volatile void *address, uint64_t value, int order)
{
	if (!has_stops() || running() < 0 || address != &sy__self.busy)
		return;
	if (value)
		step(TRY_CALL, NULL, true);
	else
		ended((unsigned)running(), order);
}

void asks_slot_offset(const volatile void *address, int order)
{
	if (has_stops() && running() >= 0 && (address == &sy__self.slot_offset || address == &sy__self.last))
		atomic_read((unsigned)running(), stop_word, order);
}
