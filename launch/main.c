/*
 * slabyard: the installed command. Starts slabyard-python beside it, the script that pip writes, with the same arguments.
 *
 * Python takes some hundredths of a second until it runs a line of ours, and answers Ctrl-C with a traceback meanwhile. So the signals
 * that end the lab are blocked here; the new program inherits that. lab/slabyard/__main__.py unblocks them as soon as it can
 * handle them. No signal is lost, and an ignored one stays ignored.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *name, int error)
{
	const char *to_do = error == EACCES ? "let this user read and run it, and the Python that its first line names"
	                                    : "install slabyard again (pip install .)";

	fprintf(stderr, "slabyard: %s: %s; %s\n", name, strerror(error), to_do);
	return 4;
}

int main(int argc, char **argv)
{
	static const char script[] = "-python";
	char path[PATH_MAX];
	sigset_t ending;

	(void)argc;
	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	sigprocmask(SIG_BLOCK, &ending, NULL);

	ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof script);
	if (length < 0)
		return fail("/proc/self/exe", errno);
	memcpy(path + length, script, sizeof script);
	execv(path, argv);
	return fail(path, errno);
}
