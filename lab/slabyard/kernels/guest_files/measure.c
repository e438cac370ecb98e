/*
 * Runs a program in a guest and measures it: slabyard-measure PERIOD-MS PROGRAM ARGUMENT...
 *
 * Prints names and numbers, one pair a line: how long the kernel had been up when it began, how long the program took, its
 * processor time and that of the children it waited for, its exit status, and the most memory that slabs and large allocations
 * held (`Slab:` of /proc/meminfo), read every PERIOD-MS and at the end. What the program prints goes to standard error. The kernel
 * keeps no such peak itself. Reading it costs some ten microseconds, and makes the kernel allocate what reading a file takes.
 *
 * Two instructions that do nothing say to QEMU's plugin (plugin/count.c) where the workload begins and ends.
 *
 * It is linked statically, so it runs in any guest; the shell could measure no finer than a hundredth of a second.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__aarch64__)
#define MARK(number) __asm__ volatile("movz xzr, 0x51a" number : : : "memory")
#else
#define MARK(number) __asm__ volatile("nopl 0x51ab000" number "(%%rax)" : : : "memory")
#endif

static long long nanoseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long long microseconds(struct timeval time)
{
	return time.tv_sec * 1000000LL + time.tv_usec;
}

/* In KiB; -1 where the file says nothing of it. */
static long slab_memory(int meminfo)
{
	char text[4096];
	ssize_t length = pread(meminfo, text, sizeof(text) - 1, 0);
	const char *line;

	if (length <= 0)
		return -1;
	text[length] = '\0';
	line = strstr(text, "\nSlab:");
	return line ? strtol(line + strlen("\nSlab:"), NULL, 10) : -1;
}

int main(int argc, char **argv)
{
	struct timespec period = {0};
	struct rusage used;
	sigset_t children;
	long peak = -1, looks = 0;
	long long up, start;
	int meminfo, status;
	pid_t child;

	if (argc < 3) {
		fprintf(stderr, "usage: slabyard-measure PERIOD-MS PROGRAM ARGUMENT...\n");
		return 2;
	}
	period.tv_sec = atol(argv[1]) / 1000;
	period.tv_nsec = atol(argv[1]) % 1000 * 1000000;
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	meminfo = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);

	MARK("1");
	up = nanoseconds(CLOCK_BOOTTIME);
	start = nanoseconds(CLOCK_MONOTONIC);
	child = fork();
	if (child < 0) {
		perror("slabyard-measure: fork");
		return 1;
	}
	if (child == 0) {
		sigprocmask(SIG_UNBLOCK, &children, NULL);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	for (;;) {
		long held = slab_memory(meminfo);

		peak = held > peak ? held : peak;
		looks++;
		if (waitpid(child, &status, WNOHANG) == child)
			break;
		sigtimedwait(&children, NULL, &period);
	}
	start = nanoseconds(CLOCK_MONOTONIC) - start;
	MARK("2");
	getrusage(RUSAGE_CHILDREN, &used);
	printf("up_ns %lld\nelapsed_ns %lld\nuser_us %lld\nsystem_us %lld\nswitches %ld\nstatus %d\nslab_peak_kb %ld\nlooks %ld\n", up, start,
	       microseconds(used.ru_utime), microseconds(used.ru_stime), used.ru_nvcsw + used.ru_nivcsw,
	       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), peak, looks);
	return 0;
}
