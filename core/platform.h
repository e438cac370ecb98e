/*
 * The platform: everything that the core needs from below.
 *
 * The core is freestanding C11. It calls no libc function and no operating system except through the names below. A build
 * includes one shim that defines them: platform/user.h for programs and replays, platform/bare.h for machines without an operating
 * system, ports/linux/ for a kernel. -DSY_PLATFORM_SHIM='"platform/bare.h"' picks the shim.
 *
 * A shim defines:
 *
 *   sy__lock_t, SY__LOCK_INIT      a lock that is never held across a call into the client, and never taken twice
 *   sy__lock(l), sy__unlock(l)     acquire and release; on one CPU they may be empty
 *   sy__lock_try(l)                acquires it if it is free; else returns false
 *   sy__local_begin(slot)          from here to sy__local_end(slot) no other code touches the state of this CPU slot;
 *   sy__local_end(slot)            nothing in a replay, where one thread drives all slots
 *   sy__load64(p)                  reads a word of 64 bits that others may exchange meanwhile: a guess for sy__swap64
 *   sy__swap64(p, &guess, value)   compare-and-exchange: if the word equals the guess, stores value and returns true; else
 *                                  puts the word into the guess and returns false. Acquires and releases, also on machines
 *                                  with 32-bit words only
 *   sy__call_begin()               begins a fast call on the caller's own slot. Returns where the slot's state is, as a distance
 *                                  in bytes from a cache's state of slot 0: slot * SY_SLOT_STRIDE (ptrdiff_t), or the dummy
 *                                  slot's, SY__DUMMY_OFFSET. Nobody else touches the slot's state until
 *   sy__call_end()                 ends the call. Neither takes a lock, writes shared memory, or costs more than a few
 *                                  instructions. Calls don't nest.
 *   sy__call_note(object, state)   in a fast call on a real slot: notes an object, with the slot's state that it came from. The
 *                                  note lasts until the next one, or until a slow call or a stop may change the slot
 *   sy__call_begin_with(object)    begins a fast call. True: this object is noted, and sy__call_from() returns the state noted
 *                                  with it, which the caller may use. False:
 *   sy__call_noted(state)          in a fast call: the object that is noted with that state; or NULL
 *   sy__call_slot_offset()                returns where the slot is, as sy__call_begin() does
 *   sy__call_enter(&slot)          begins a slow call, also in place of a fast call that got the dummy slot: waits until the
 *                                  caller has a real slot. The caller may block; sy__call_begin returns the dummy slot
 *                                  meanwhile. False: the caller is in a slow call already (a constructor that calls back),
 *                                  and nothing was begun
 *   sy__call_leave()               ends it
 *   sy__calls()                    number of the caller's slow calls, some of which look at the clock
 *   sy__calls_more()               counts one more; returns the number
 *   sy__watch(on)                  on: from the end of this slow call, all calls of the caller are slow ones, so that it looks
 *                                  at the clock again soon; the same holds for threads that it stops. off: no
 *                                  longer. Returns the former setting
 *   sy__stop_enter(&slot)          begins a slow call and stops all other slots: waits until their owners' calls end; their
 *                                  next calls wait. Not from inside a call (false)
 *   sy__stop_enter_soon(&slot)     the same, but gives up after a while (false): an owner may have been stopped in its call
 *   sy__stop_leave()               ends it
 *   sy__fast_calls_lock()          to be called when a heap is made whose fast calls take locks: a fork waits for their ends, too
 *   sy__signals_learn()            to be called each second or so: whether handlers of signals might keep a thread in a call
 *   sy__stop_try()                 stops all other slots from inside a slow call, locks held or not. Never waits for long, so
 *                                  it may leave some slots out. False: nothing is stopped
 *   sy__stop_end()                 has them go on
 *   sy__thread_slots()             slots for threads: SY_THREAD_SLOTS, SY_FEW_THREAD_SLOTS or SY_FEWEST_THREAD_SLOTS
 *   sy__thread_slots_reduce(n)     there are at most n; false: slots beyond are in use, there are no more already, or they can't be so few
 *   sy__slots_high()               slots from this one on never had an owner
 *   sy__slot_mine(slot)            whether the caller may touch this slot's state: it is the caller's own, or stopped by it
 *   sy__slot_unowned(slot)         whether the slot has no owner, and is not the shared one that the caller's call has; a hint unless
 *                                  the caller may touch the slot
 *   sy__on_slot_end(f)             has f(slot) called when a slot's owner ends, in a slow call of that thread. There is one f for
 *                                  the whole program
 *   sy__construct(f, object, bytes)   calls a cache's constructor with an object and its size; optional, for a kernel, whose
 *                                  constructors have another type
 *   sy__caller()                   an address that differs between threads
 *   sy__random()                   64 bits that nobody can guess, of a hardened heap's secrets
 *   sy__cpus()                     CPUs that threads may run on
 *   sy__now()                      nanoseconds, monotonic, from any origin; in a replay the trace's own time
 *   sy__source_reserve(bytes)      address space without memory, aligned to the page; NULL when there is none
 *   sy__source_commit(p, bytes)    makes reserved space usable and zero; 0, or -1 when there is no memory
 *   sy__source_discard(p, bytes)   gives the memory back; the space stays usable, and reads zero
 *   sy__source_withdraw(p, bytes)  turns usable space into reserved space again; its contents are lost
 *   sy__source_prefer_huge(p, bytes)  asks for the machine's huge pages there; false: it has none
 *   sy__source_prefer_small(p, bytes)  asks for small pages there, as little of the space is ever touched
 *   sy__source_tells()             whether the system tells what has memory
 *   sy__source_has(p, bytes, least)  whether at least `least` bytes there have memory; true if the system does not tell
 *   sy__source_allows(bytes)       whether the limit to the process's addresses allows these bytes in all; it may have been set
 *                                  after they were reserved
 *   sy__source_release(p, bytes)   gives the address space back, or the end of it
 *   sy__source_reserve_at(p, bytes)  reserves such an end again; false: the program has those addresses
 *   sy__copy(to, from, bytes), sy__fill(to, byte, bytes)   as memcpy, memset
 *   sy__same(a, b, bytes)          true when the bytes are the same
 *  
 */
#ifndef SY_PLATFORM_H
#define SY_PLATFORM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define sy__likely(x) __builtin_expect(!!(x), 1)
#define sy__unlikely(x) __builtin_expect(!!(x), 0)
#define SY__COLD __attribute__((__cold__, __noinline__))
#define SY__OUT_OF_LINE __attribute__((__noinline__)) /* frequent, unlike SY__COLD; the fast path needs no stack frame for it */

/* Reads a word that other threads may write meanwhile. Not an atomic load, as compilers don't make that an operand of a comparison. Every
 * machine reads a word at once. */
#if defined(__SANITIZE_THREAD__)
#define SY__SANITIZES_THREADS
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SY__SANITIZES_THREADS
#endif
#endif
#ifdef SY__SANITIZES_THREADS
#define SY__READ_AT_ONCE(word) __atomic_load_n(&(word), __ATOMIC_SEQ_CST) /* which knows no membarrier, see core/platform/user.h */
#else
#define SY__READ_AT_ONCE(word) (word)
#endif

/* A fast path's result, unchanged: tells gcc that it matters more than the address of the thread's words, which else takes the register
 * of results. */
static inline void *sy__result(void *object)
{
	__asm__("" : "+r"(object));
	return object;
}

/* In place of an object in sy__call_note: no object has this address, nor contains it. */
#define SY__NOTHING ((const void *)1)

#ifndef SY_PLATFORM_SHIM
#define SY_PLATFORM_SHIM "platform/user.h"
#endif
#include SY_PLATFORM_SHIM

#ifndef sy__construct
#define sy__construct(constructor, object, bytes) (constructor)(object, bytes)
#endif

#endif
