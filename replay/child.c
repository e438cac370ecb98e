/*
 * Work that is done in a copy of this process.
 *
 * A machine populated with a hundred thousand objects takes far longer to make than a fork of it, whose memory is shared until one
 * of the two writes to it. So every pass over a trace begins in a child, from the same state at the same addresses, and leaves
 * nothing behind but its output.
 *
 * The child reports its refusal through a page that both share. It must not outlive its parent, which may be killed at any time:
 * Linux is asked to kill it then. If the parent died before the child could ask, the child has another parent by now and ends.
 *
 * If the child crashes, as a malloc library may make it, this program has crashed for all that others need to know: the parent
 * ends by the same signal, without a second core dump.
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
