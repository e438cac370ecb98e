/*
 * The platform: everything the core needs from the world below it.
 *
 * The core is freestanding C11. It calls no libc function and asks no operating system for anything but through the
 * names below, which the one shim that a build includes defines: platform/user.h for programs and the replay,
 * platform/bare.h for a machine with nothing beneath, ports/linux/ for a kernel. A build picks its shim with
 * -DSY_PLATFORM_SHIM='"platform/bare.h"'.
 *
 * A shim defines:
 *
 *   sy__lock_t, SY__LOCK_INIT      a lock that is never held across a call into the client, and never taken twice
 *   sy__lock(l), sy__unlock(l)     acquire and release; on one CPU they may be empty
 *   sy__lock_try(l)                acquires it if it is free, else false
 *   sy__local_begin(slot)          from here to sy__local_end(slot) no other code touches the state of this CPU slot;
 *   sy__local_end(slot)            nothing in a replay, where one thread drives all slots
 *   sy__load64(p)                  a word of 64 bits that others may exchange at the same time, as a guess for the next
 *   sy__swap64(p, &guess, value)   if the word is the guess, value takes its place: true; else false, and the guess is
 *                                  what the word is. One atomic step; what happened before it in one thread is seen after
 *                                  it by the next (acquire and release), also where the machine has words of 32 bits only
 *   sy__call_begin()               a call on the caller's own slot begins; where the slot is, in bytes: slot * SY_SLOT_STRIDE
 *                                  from what a cache has of slot 0 (ptrdiff_t). It may be the
 *                                  dummy slot, SY__DUMMY_HERE. From here to
 *   sy__call_end()                 nobody else touches the state of that slot. Neither takes a lock, writes anything
 *                                  shared, or costs more than a few instructions. Calls don't nest.
 *   sy__call_note(object, state)   in such a call on a real slot: remembers the object, and state of that slot with it,
 *                                  until the next one is noted, or anybody may have worked on the slot other than by
 *                                  such calls: its owner's slow calls, claims
 *   sy__call_begin_with(object)    begins a call. True: that object is remembered, and sy__call_from() is the state; it
 *                                  may be worked on without asking for the slot, which
 *   sy__call_here()                tells else, as sy__call_begin()
 *   sy__call_enter(&slot)          the same for slow paths, and in place of a sy__call_begin that got the dummy slot: waits
 *                                  until the caller has a real slot. Until sy__call_leave() the slot is the caller's, who
 *                                  may block; sy__call_begin yields the dummy. False: the caller is in a slow call already
 *                                  (a constructor that calls back); nothing was begun, and nothing must be left
 *   sy__call_leave()
 *   sy__calls()                    how many slow calls the caller has made, so that some of them look at the clock
 *   sy__calls_more()               counts a fast call as one of them: how many there are now
 *   sy__watch(on)                  from the end of this slow call on every call of the caller is a slow one, so that it
 *                                  looks at the clock again before long; or not any more. Whether it was so. Those whose
 *                                  slots it claims follow suit
 *   sy__claim_enter(&slot)         as sy__call_enter, with every other slot claimed too: waits until their owners' calls end;
 *                                  their next ones wait for sy__claim_leave(). For calls from outside
 *   sy__claim_leave()
 *   sy__slots_claim_try()          the same from inside a slow call, with locks held: never waits long, so some slots may be
 *                                  left out. False: nothing is claimed; else sy__slots_release() ends it
 *   sy__slots_release()
 *   sy__slot_claim(slot)           claims one slot that nobody has, from inside a slow call that has claimed nothing; never waits.
 *                                  False: somebody has it, or claims; else sy__slot_release(slot) ends it
 *   sy__slot_release(slot)
 *   sy__slots_high()               slots from here on never had an owner
 *   sy__slot_mine(slot)            whether the caller may touch the state of this slot: its own, or one claimed
 *   sy__slot_unowned(slot)         whether nobody has it; of a slot that the caller may not touch a hint
 *   sy__on_slot_end(f)             f(slot) is called when a slot's owner ends, in a slow call of that thread; for the whole program,
 *                                  hence always the same f
 *   sy__construct(f, object, bytes)   calls a cache's constructor with an object and its size; not needed (the macro) where a
 *                                  constructor is what it is declared to be
 *   sy__caller()                   an address that is different for each thread that calls
 *   sy__cpus()                     CPUs that threads may run on
 *   sy__now()                      nanoseconds, monotonic, from any origin; in a replay the trace's own time
 *   sy__source_reserve(bytes)      address space without memory, aligned to the page; NULL when there is none
 *   sy__source_commit(p, bytes)    makes reserved space usable and zero; 0, or -1 when there is no memory
 *   sy__source_discard(p, bytes)   gives the memory back and keeps the address space usable, and zero
 *   sy__source_withdraw(p, bytes)  has memory be reserved space again, which sy__source_commit makes usable; what was in it is lost
 *   sy__source_prefer_huge(p, bytes)  reserved space would better be backed by the machine's large pages, if it has any
 *   sy__source_prefer_small(p, bytes)  it would better not be, as little of it is ever touched
 *   sy__source_has(p, bytes, least)  whether so many bytes of it or more have memory behind them; true where that can't be told
 *   sy__source_allows(bytes)       whether the process may have so much in all, by a limit to its addresses that may have
 *                                  been set since they were reserved
 *   sy__source_release(p, bytes)   gives the address space back, or its end
 *   sy__source_reserve_at(p, bytes)  reserves that end again; false: somebody has it
 *   sy__copy(to, from, bytes), sy__fill(to, byte, bytes)   as memcpy, memset
 *   sy__same(a, b, bytes)          true when the bytes are the same
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
#define SY__OUT_OF_LINE __attribute__((__noinline__)) /* often taken, so made for speed; the fast path goes without its frame */

/* What sy__call_note has not: the address of no object, and of no byte behind the first of one. */
#define SY__NOTHING ((const void *)1)

#ifndef SY_PLATFORM_SHIM
#define SY_PLATFORM_SHIM "platform/user.h"
#endif
#include SY_PLATFORM_SHIM

#ifndef sy__construct
#define sy__construct(constructor, object, bytes) (constructor)(object, bytes)
#endif

#endif
