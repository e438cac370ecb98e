/*
 * slabyard: the installed command. Starts slabyard-python beside it, the script that pip writes, with the same arguments.
 *
 * Variables of the environment that begin with PYTHON are for the user's own programs: a PYTHONPATH with modules named like ours, or a
 * PYTHONHOME, would end the lab with a traceback. So Python is started as the script's first line says, but with -E. What the lab starts
 * inherits the variables. Where pip could not name Python in that line (its path is long or has blanks), the script starts as it is.
 *
 * Python takes some hundredths of a second until it runs a line of ours, and answers Ctrl-C with a traceback meanwhile. So the signals
 * that end the lab are blocked here; the new program inherits that. lab/slabyard/__main__.py unblocks them as soon as it can
 * handle them. No signal is lost, and an ignored one stays ignored.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *name, int error)
{
	const char *to_do = error == EACCES ? "let this user read and run it, and the Python that its first line names"
	                                    : "install slabyard again (pip install .)";

	fprintf(stderr, "slabyard: %s: %s; %s\n", name, strerror(error), to_do);
	return 4;
}

/* Starts the Python that the first line of the script names. Returns where it names none, or one that does not start. */
static void start_python(char *script, int argc, char **argv)
{
	char line[PATH_MAX];
	char **words = calloc((size_t)argc + 3, sizeof *words);
	FILE *file = fopen(script, "re");
	const char *read = file && words ? fgets(line, sizeof line, file) : NULL;

	if (file)
		fclose(file);
	char *end = read && !strncmp(line, "#!/", 3) ? strpbrk(line, " \t\r\n") : NULL;
	if (end && *end == '\n' && !strncmp(strrchr(line, '/'), "/python", 7)) {
		*end = '\0';
		words[0] = line + 2;
		words[1] = (char[]){"-E"};
		words[2] = script;
		for (int at = 1; at < argc; at++)
			words[at + 2] = argv[at];
		execv(words[0], words);
	}
	free(words);
}

int main(int argc, char **argv)
{
	static const char script[] = "-python";
	char path[PATH_MAX];
	sigset_t ending;

	sigemptyset(&ending);
	sigaddset(&ending, SIGINT);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGHUP);
	sigprocmask(SIG_BLOCK, &ending, NULL);

	ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof script);
	if (length < 0)
		return fail("/proc/self/exe", errno);
	memcpy(path + length, script, sizeof script);
	start_python(path, argc, argv);
	execv(path, argv);
	return fail(path, errno);
}
