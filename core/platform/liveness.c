/*
 * Threads that end without telling us.
 *
 * Our destructor does not run for a thread that first allocates in the last round of destructors, or that ends by the bare system
 * call. Then its slot's owner pointer may point to anything. So every stop first asks the kernel whether the owners still live. It
 * frees the slots of those that do not, with their contents for the next owner. A thread may also end in that way during a stop, so
 * the stop asks again at its end. What remains are the moments between an answer and the stores after it.
 *
 * The question. For some time after a join the kernel still knows a thread whose stack may be gone already. But it forgets the
 * thread's list of robust futexes earlier. glibc registers such a list for every thread. So we ask whether a thread still has it.
 *
 * A filter of system calls may forbid the questions. Then all owners count as alive.
 *
 * What the dead thread wrote is visible. It wrote all before the kernel's answer, and the stop's fence follows the answer.
 */
#define _GNU_SOURCE /* syscall */
#include "threads.h"

#include <signal.h>

/* Whether the kernel has a list of robust futexes of this thread; `unknown` if it does not tell. */
static bool is_robust(long id, bool unknown)
{
	void *list = NULL;
	size_t bytes;

	if (sy__system_is_shut_in())
		return unknown;
	if (sy__system(SYS_get_robust_list, id, sy__system_word(&list), sy__system_word(&bytes), 0) == 0)
		return list != NULL;
	return unknown;
}

long sy__thread_id(void)
{
	return sy__system_is_shut_in() ? 0 : sy__system(SYS_gettid, 0, 0, 0, 0);
}

void sy__note_robust(unsigned slot)
{
	sy__slots.slot[slot].robust = sy__slots.slot[slot].owner && is_robust(sy__slots.slot[slot].id, false);
}

static bool owner_lives(unsigned slot)
{
	if (sy__system_is_shut_in())
		return true;
	if (sy__slots.slot[slot].robust && !is_robust(sy__slots.slot[slot].id, true))
		return false;
	return sy__system(SYS_tgkill, sy__system_process(), sy__slots.slot[slot].id, 0, 0) != -ESRCH;
}

void sy__forget_the_dead(const struct sy__thread *self)
{
	for (unsigned slot = SHARED + 1; slot <= SHARED + sy__slots.owned; slot++)
		if (sy__slots.slot[slot].owner && sy__slots.slot[slot].owner != self && !owner_lives(slot))
			sy__slot_free(slot);
}
