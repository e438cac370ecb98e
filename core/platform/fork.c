/*
 * What happens to slots at a fork.
 *
 * The forking thread first stops every slot, so no other thread is in a call or holds a lock of ours. A thread without a processor may
 * stay in a fast call for long. Where fast calls take locks (sy__fast_calls_lock), the fork waits for their end, as no thread in the
 * child would release those locks. In the child, the slots of the other threads are free again, with their contents for the next owner.
 * Slots that were not stopped are lost there: their owners may have been in the middle of a fast call.
 *
 * Between our handler and the fork, glibc locks its list of streams. A thread that holds that lock (fflush(NULL)) and waits for memory
 * would wait for us. So our handler takes the lock first. It is recursive, so glibc can take it again.
 *
 * Between before_fork and after_fork_* the thread is outside of calls, so other fork handlers may allocate. A fork inside a call (from a
 * constructor) gets no protection.
 */
#define _GNU_SOURCE /* syscall */
#include "threads.h"

#include <pthread.h>

/* glibc's, of its list of streams. */
void lock_streams(void) __asm__("_IO_list_lock") __attribute__((weak));
void unlock_streams(void) __asm__("_IO_list_unlock") __attribute__((weak));
void reset_streams_lock(void) __asm__("_IO_list_resetlock") __attribute__((weak));

void sy__fast_calls_lock(void)
{
	__atomic_store_n(&sy__slots.fast_calls_lock, true, __ATOMIC_RELAXED);
}

static void before_fork(void)
{
	struct sy__thread *self = &sy__self;

	if (self->stops || sy__in_call(self))
		return;
	if (lock_streams)
		lock_streams();
	sy__stop_outside(self, FOREVER);
	if (__atomic_load_n(&sy__slots.fast_calls_lock, __ATOMIC_RELAXED))
		sy__stop_locked_calls(self);
	self->forking = true;
}

static void after_fork_parent(void)
{
	struct sy__thread *self = &sy__self;

	if (!self->forking)
		return;
	self->forking = false;
	sy__resume_outside(self);
	if (unlock_streams)
		unlock_streams();
}

static void after_fork_child(void)
{
	struct sy__thread *self = &sy__self;

	if (!self->forking)
		return;
	for (unsigned slot = SHARED + 1; slot <= SHARED + sy__slots.owned; slot++) {
		if (sy__slots.slot[slot].owner == self) {
			sy__slot_own(self, sy__thread_id(), slot, true);
			continue;
		}
		sy__slots.slot[slot].lost = !sy__slots.slot[slot].stopped;
		sy__slot_free(slot);
	}
	self->forking = false;
	sy__slots.fences = false;
	sy__queue_forget(&sy__slots.lock);
	sy__slots.resumed.sleepers = 0;
	sy__resume_outside(self);
	if (reset_streams_lock)
		reset_streams_lock();
}

bool sy__fork_watch(void)
{
	return pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
}
