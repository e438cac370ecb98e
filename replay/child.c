/*
 * Work that is done in a copy of this process.
 *
 * A machine populated with a hundred thousand objects takes far longer to make than a fork of it, whose memory is
 * shared until one of the two writes to it. So every pass over a trace begins in a child from the same state, at the
 * same addresses, and leaves nothing behind but what it printed.
 *
 * The child's refusal comes back through a page that both share. It must not outlive its parent, which may be killed
 * at any time by whoever started it: Linux is asked to end it then. If it was too late to ask, the parent is another
 * by now.
 *
 * A child that crashed (a malloc library may) was this program, for all that others need to know: the parent ends by
 * the same signal, and leaves no second core.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define REFUSED 2

static void be_child(pid_t parent, bool (*work)(void *context, struct fault *), void *context, struct fault *fault)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(EXIT_FAILURE);
	_exit(work(context, fault) ? 0 : REFUSED);
}

static void end_by(int number)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	signal(number, SIG_DFL);
	raise(number);
	_exit(EXIT_FAILURE);
}

static bool wait_for(pid_t child, const struct fault *refusal, struct fault *fault)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return refuse(fault, "cannot wait for a pass: %s", strerror(errno));
	if (WIFSIGNALED(status))
		end_by(WTERMSIG(status));
	if (WEXITSTATUS(status) == 0)
		return true;
	if (WEXITSTATUS(status) == REFUSED)
		return refuse(fault, "%s", refusal->text);
	return refuse(fault, "a pass ended with status %d", WEXITSTATUS(status));
}

bool child_run(bool (*work)(void *context, struct fault *), void *context, struct fault *fault)
{
	struct fault *refusal = mmap(NULL, sizeof *refusal, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t parent = getpid(), child;
	bool good;

	if (refusal == MAP_FAILED)
		return refuse(fault, "no memory for a pass");
	fflush(NULL); /* what is still to be written is this process's to write */
	child = fork();
	if (child == 0)
		be_child(parent, work, context, refusal);
	good = child > 0 ? wait_for(child, refusal, fault) : refuse(fault, "cannot start a pass: %s", strerror(errno));
	munmap(refusal, sizeof *refusal);
	return good;
}
