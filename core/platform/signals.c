/*
 * Signals that wait until a slow call has ended.
 *
 * A signal's handler may keep its thread for long, as in programs that stop all their threads to collect garbage. Such a thread may
 * hold one of our locks, or a fork may wait for the end of its call. Then it stops other threads. So where there are other threads, a
 * slow call lets no signal in.
 *
 * All calls of a thread without a slot are slow. It lets no signal in from its first lock on (sy__lock). A thread that stops slots lets
 * none in either, as the stopped threads wait for it. Fast calls take no locks, but in policies that try for one
 * (sy__call_begin_locked). Signals for what a thread itself has done wrong always come in.
 *
 * To hold signals and to let them in takes two system calls. So it is done only where the program handles a signal by which threads may
 * stop each other. The kernel is asked for that when there is a second thread, and each second.
 */
#define _GNU_SOURCE /* syscall */
#include "threads.h"

#include <signal.h>

static uint64_t signal_bit(int number)
{
	return (uint64_t)1 << (number - 1);
}

/* All signals except those that a thread's own instructions raise. */
static uint64_t usual_signals(void)
{
	return ~(signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGFPE) | signal_bit(SIGILL) | signal_bit(SIGTRAP) |
	         signal_bit(SIGSYS) | signal_bit(SIGABRT));
}

/* Signals from users, terminals and children. Threads do not stop each other with these. */
static uint64_t from_outside(void)
{
	return signal_bit(SIGHUP) | signal_bit(SIGINT) | signal_bit(SIGQUIT) | signal_bit(SIGTERM) | signal_bit(SIGPIPE) | signal_bit(SIGCHLD) |
	       signal_bit(SIGTSTP) | signal_bit(SIGCONT) | signal_bit(SIGTTIN) | signal_bit(SIGTTOU) | signal_bit(SIGWINCH);
}

/* Whether the program has a handler that might keep a thread. Signals between 31 and SIGRTMIN are the C library's. */
static bool handles(int number)
{
	struct {
		void (*handler)(int);
		unsigned long rest[20]; /* of the kernel's structure */
	} action = { .handler = SIG_DFL };

	return usual_signals() & ~from_outside() & signal_bit(number) && (number < 32 || number >= SIGRTMIN) &&
	       sy__system(SYS_rt_sigaction, number, 0, sy__system_word(&action), sizeof(uint64_t)) == 0 && action.handler != SIG_DFL &&
	       action.handler != SIG_IGN;
}

/* Relaxed: a recent state is enough. */
void sy__signals_learn(void)
{
	int number = 1;

	if (__atomic_load_n(&sy__slots.owned, __ATOMIC_RELAXED) <= (sy__self.slot != NO_SLOT) || sy__system_is_shut_in())
		return;
	while (number <= 64 && !handles(number))
		number++;
	__atomic_store_n(&sy__slots.handlers, number <= 64, __ATOMIC_RELAXED);
}

/* Relaxed: a thread that this one has not heard of yet waits for nothing of it. */
bool sy__signals_may_keep_others(const struct sy__thread *self)
{
	return __atomic_load_n(&sy__slots.handlers, __ATOMIC_RELAXED) &&
	       __atomic_load_n(&sy__slots.owned, __ATOMIC_RELAXED) > (self->slot != NO_SLOT) && !sy__system_is_shut_in();
}

SY__COLD void sy__hold_signals(struct sy__thread *self)
{
	const uint64_t held = usual_signals();

	self->holds_at_lock = false;
	if (!self->holds_signals && sy__signals_may_keep_others(self))
		self->holds_signals = sy__system(SYS_rt_sigprocmask, SIG_BLOCK, sy__system_word(&held), sy__system_word(&self->signals),
		                                 sizeof(held)) == 0;
}

/* A signal that comes in at once finds that none is held, and that the mask is in use again. */
SY__COLD void sy__let_signals_in(struct sy__thread *self)
{
	if (!self->holds_signals)
		return;
	self->holds_signals = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	sy__system(SYS_rt_sigprocmask, SIG_SETMASK, sy__system_word(&self->signals), 0, sizeof(self->signals));
}

static void (*lock_watch)(const sy__lock_t *);

void sy__locks_watch(void (*watch)(const sy__lock_t *))
{
	lock_watch = watch;
	sy__self.holds_at_lock = watch;
}

void sy__signals_hold(const sy__lock_t *lock)
{
	if (lock_watch)
		lock_watch(lock);
	else
		sy__hold_signals(&sy__self);
}
