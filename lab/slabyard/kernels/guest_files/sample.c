/*
 * Samples a guest's kernel while a program runs: slabyard-sample FREQUENCY FILE PROGRAM ARGUMENT...
 *
 * On every CPU a clock of the kernel's own (perf's cpu-clock, a high-resolution timer) stops whatever runs, FREQUENCY times a second,
 * and notes the stack of the kernel's functions. FILE gets a line for each sample: the addresses, the innermost function first; an
 * empty line where a program was found running. Idle CPUs are not sampled. A last line `lost N` tells how many samples found no room.
 *
 * Rings of 256 KiB for each CPU are emptied every 20 ms, into a buffer that is written when it is full, so that the sampler itself
 * runs little. Linked statically, so it runs in any guest.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RING = 256 << 10, MOST_CPUS = 64 };

struct ring {
	int descriptor;
	struct perf_event_mmap_page *head; /* the ring's bytes are behind the first page */
};

static struct ring rings[MOST_CPUS];
static long page, cpus;
static unsigned long long lost;

static int fail(const char *what)
{
	fprintf(stderr, "slabyard-sample: ");
	perror(what);
	return 1;
}

static int open_ring(struct ring *ring, int cpu, unsigned frequency)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = frequency,
		.freq = 1,
		.sample_type = PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
		.exclude_idle = 1,
		.exclude_callchain_user = 1,
		.sample_max_stack = 120,
	};
	void *memory;

	ring->descriptor = (int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ring->descriptor < 0)
		return -1;
	memory = mmap(NULL, (size_t)page + RING, PROT_READ | PROT_WRITE, MAP_SHARED, ring->descriptor, 0);
	ring->head = memory;
	return memory == MAP_FAILED ? -1 : 0;
}

/* Bytes of the ring from `at` on, which may go round its end. */
static void copy(const struct ring *ring, uint64_t at, void *to, size_t length)
{
	const char *bytes = (const char *)ring->head + page;

	for (size_t i = 0; i < length; i++)
		((char *)to)[i] = bytes[(at + i) % RING];
}

static void write_sample(FILE *file, const uint64_t *addresses, uint64_t count)
{
	const char *between = "";

	for (uint64_t i = 0; i < count; i++) {
		if (addresses[i] >= PERF_CONTEXT_MAX)
			continue; /* a marker that says what follows */
		fprintf(file, "%s%llx", between, (unsigned long long)addresses[i]);
		between = " ";
	}
	fputc('\n', file);
}

static void empty(struct ring *ring, FILE *file)
{
	uint64_t end = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE), at = ring->head->data_tail;

	while (at < end) {
		struct perf_event_header header;
		static uint64_t record[8192];

		copy(ring, at, &header, sizeof(header));
		copy(ring, at, record, header.size);
		if (header.type == PERF_RECORD_SAMPLE)
			write_sample(file, record + 2, record[1]);
		else if (header.type == PERF_RECORD_LOST)
			lost += record[2];
		at += header.size;
	}
	__atomic_store_n(&ring->head->data_tail, at, __ATOMIC_RELEASE);
}

static pid_t start(char **argv, const sigset_t *children)
{
	pid_t child = fork();

	if (child == 0) {
		sigprocmask(SIG_UNBLOCK, children, NULL);
		execv(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	return child;
}

int main(int argc, char **argv)
{
	struct timespec period = { .tv_nsec = 20 * 1000000 };
	sigset_t children;
	int status;
	pid_t child;
	FILE *file;

	if (argc < 4) {
		fprintf(stderr, "usage: slabyard-sample FREQUENCY FILE PROGRAM ARGUMENT...\n");
		return 2;
	}
	page = sysconf(_SC_PAGESIZE);
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpus = cpus > MOST_CPUS ? MOST_CPUS : cpus;
	file = fopen(argv[2], "we");
	if (!file)
		return fail(argv[2]);
	setvbuf(file, NULL, _IOFBF, 1 << 16);
	for (int cpu = 0; cpu < cpus; cpu++)
		if (open_ring(&rings[cpu], cpu, (unsigned)atoi(argv[1])))
			return fail("the kernel's clock");
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	for (int cpu = 0; cpu < cpus; cpu++)
		ioctl(rings[cpu].descriptor, PERF_EVENT_IOC_ENABLE, 0);

	child = start(argv + 3, &children);
	if (child < 0)
		return fail("fork");
	while (waitpid(child, &status, WNOHANG) != child) {
		sigtimedwait(&children, NULL, &period);
		for (int cpu = 0; cpu < cpus; cpu++)
			empty(&rings[cpu], file);
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		ioctl(rings[cpu].descriptor, PERF_EVENT_IOC_DISABLE, 0);
		empty(&rings[cpu], file);
	}
	fprintf(file, "lost %llu\n", lost);
	if (fclose(file))
		return fail(argv[2]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
