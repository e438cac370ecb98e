/*
 * measure: runs one command with an allocator preloaded and tells its time and memory.
 *
 *   measure RESULT PRELOAD COMMAND...      PRELOAD: for LD_PRELOAD, or - for none
 *
 * Writes one line of JSON to the file RESULT: wall and processor time, peak resident memory of the largest process (the command
 * itself, or a child that it waited for), and how it ended. Standard streams are the command's own.
 *
 * The system's figure for a child's peak begins at what the parent had when it forked. So this program must be smaller than
 * anything that it measures, and has only a few pages.
 */
#define _GNU_SOURCE /* wait4 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CANNOT_START 127

static double seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec * 1e-6;
}

static void be_command(const char *preload, char **command)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (strcmp(preload, "-") == 0 || setenv("LD_PRELOAD", preload, 1) == 0)
		execvp(*command, command);
	perror(*command);
	_exit(CANNOT_START);
}

int main(int count, char **words)
{
	struct timespec start, end;
	struct rusage usage;
	FILE *result;
	pid_t child;
	int status;

	if (count < 4) {
		fputs("measure RESULT PRELOAD COMMAND...\n", stderr);
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	child = fork();
	if (child == 0)
		be_command(words[2], words + 3);
	if (child < 0 || wait4(child, &status, 0, &usage) != child) {
		perror("measure");
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	result = fopen(words[1], "w");
	if (!result) {
		perror(words[1]);
		return 2;
	}
	fprintf(result, "{\"seconds\": %.6f, \"cpu_seconds\": %.6f, \"peak_kb\": %ld, \"status\": %d, \"signal\": %d}\n",
	        (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9,
	        seconds(&usage.ru_utime) + seconds(&usage.ru_stime), usage.ru_maxrss, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	        WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return fclose(result) == 0 ? 0 : 2;
}
