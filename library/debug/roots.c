/*
 * The roots of a search for leaks: a program's data, its threads' stacks and registers, and all else that it has mapped.
 *
 * Threads are stopped by a signal. Its handler waits; what the thread had in its registers is on its stack by then, so from its stack
 * pointer on the stack has all that the thread knows. Thread-local variables are on the stack's upper end, or in mappings of their
 * own. Of a stack whose thread does not answer, because it blocks the signal, all counts. Only the kernel knows a thread's alternate stack
 * for signals (sigaltstack), so each thread asks.
 *
 * Parts come from /proc/self/maps. What is mapped read-only, or from a device, holds no pointer that the program wrote. A mapping of a
 * file may be longer than the file, and a touch of what is beyond would be a fault: so pages of files are tried by a call first. Of
 * shared ones only those in memory count, as a data base may be mapped so that is larger than memory.
 */
#include "roots.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FUTEX_WAIT 0 /* of linux/futex.h, which C libraries need not come with */
#define FUTEX_WAKE 1
#define MOST_THREADS 4096u
#define STOPPING (SIGRTMAX - 1)
#define PATIENCE 200u /* milliseconds for all threads to answer */

static struct {
	int stopped;  /* threads that have answered */
	int released; /* the futex that they wait for */
	unsigned asked;
	uintptr_t stacks[MOST_THREADS]; /* their stack pointers */
	uintptr_t alternates[MOST_THREADS + 1]; /* their alternate stacks, and the caller's */
} world;

/* ---- Threads ------------------------------------------------------------------------------------------------------ */

static void futex(int *word, int operation, int value)
{
	syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

/* Of the calling thread; 0: none. */
static uintptr_t alternate_stack(void)
{
	stack_t alternate;

	return !sigaltstack(NULL, &alternate) && !(alternate.ss_flags & SS_DISABLE) ? (uintptr_t)alternate.ss_sp : 0;
}

static void wait_here(int signal, siginfo_t *information, void *registers)
{
	int error = errno, place = __atomic_fetch_add(&world.stopped, 1, __ATOMIC_ACQ_REL);

	(void)signal;
	(void)information;
	(void)registers;
	if ((unsigned)place < MOST_THREADS) {
		world.alternates[place] = alternate_stack();
		__atomic_store_n(&world.stacks[place], (uintptr_t)__builtin_frame_address(0), __ATOMIC_RELEASE);
	}
	while (!__atomic_load_n(&world.released, __ATOMIC_ACQUIRE))
		futex(&world.released, FUTEX_WAIT, 0);
	errno = error;
}

/* Signals the threads of the process that were not signalled yet; none where a filter keeps the caller from knowing its own number, as it
 * would wait for itself. Entries of the directory are in the kernel's form. */
static unsigned ask_threads(int directory)
{
	struct entry {
		uint64_t number;
		int64_t offset;
		unsigned short length;
		unsigned char type;
		char name[];
	};
	_Alignas(struct entry) char room[8192];
	pid_t process = getpid(), self = (pid_t)syscall(SYS_gettid);
	unsigned asked = 0;
	long bytes;

	while (self > 0 && (bytes = syscall(SYS_getdents64, directory, room, sizeof(room))) > 0) {
		for (long at = 0; at < bytes;) {
			const struct entry *entry = (const struct entry *)(const void *)(room + at);
			pid_t thread = (pid_t)strtol(entry->name, NULL, 10);

			if (thread > 0 && thread != self && !syscall(SYS_tgkill, process, thread, STOPPING))
				asked++;
			at += entry->length;
		}
	}
	return asked;
}

static void stop_world(struct sigaction *before)
{
	struct sigaction action = { .sa_sigaction = wait_here, .sa_flags = SA_SIGINFO | SA_RESTART };
	int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct timespec moment = { .tv_nsec = 1000000 };

	world.stopped = world.released = 0;
	memset(world.stacks, 0, sizeof(world.stacks));
	memset(world.alternates, 0, sizeof(world.alternates));
	world.alternates[MOST_THREADS] = alternate_stack();
	sigfillset(&action.sa_mask);
	sigaction(STOPPING, &action, before);
	world.asked = directory < 0 ? 0 : ask_threads(directory);
	if (directory >= 0)
		close(directory);
	for (unsigned i = 0; i < PATIENCE && (unsigned)__atomic_load_n(&world.stopped, __ATOMIC_ACQUIRE) < world.asked; i++)
		nanosleep(&moment, NULL);
}

/* If a thread has not answered yet the handler stays, because the signal would end the program without it. */
static void release_world(const struct sigaction *before)
{
	bool all = (unsigned)__atomic_load_n(&world.stopped, __ATOMIC_ACQUIRE) >= world.asked;

	__atomic_store_n(&world.released, 1, __ATOMIC_RELEASE);
	futex(&world.released, FUTEX_WAKE, INT_MAX);
	if (all)
		sigaction(STOPPING, before, NULL);
}

/* ---- Mappings ----------------------------------------------------------------------------------------------------- */

/* Where a mapping begins to count: at the lowest stack pointer in it. */
static uintptr_t live_start(uintptr_t start, uintptr_t end, uintptr_t own_stack)
{
	uintptr_t lowest = own_stack >= start && own_stack < end ? own_stack : end;

	for (unsigned i = 0; i < MOST_THREADS; i++) {
		uintptr_t stack = __atomic_load_n(&world.stacks[i], __ATOMIC_ACQUIRE);

		if (stack >= start && stack < lowest)
			lowest = stack;
	}
	return lowest == end ? start : lowest & ~(sizeof(void *) - 1);
}

typedef void visitor(void *context, uintptr_t start, uintptr_t end);

/* Whether a page may be read. A filter may refuse the question: it is then taken as in a program's own data. */
static bool is_readable(uintptr_t page)
{
	char byte;
	struct iovec to = { .iov_base = &byte, .iov_len = 1 }, from = { .iov_base = (void *)page, .iov_len = 1 };

	return syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

static bool is_in_memory(uintptr_t page, size_t size)
{
	unsigned char present = 0;

	return !syscall(SYS_mincore, page, size, &present) && present & 1;
}

static void visit_file(uintptr_t start, uintptr_t end, bool shared, visitor *visit, void *context)
{
	size_t page = (size_t)getpagesize();

	for (uintptr_t next = start & ~(page - 1), from = start; next < end; from = next) {
		next += page;
		if ((!shared || is_in_memory(next - page, page)) && is_readable(next - page))
			visit(context, from, next);
	}
}

/* A device's memory is not a program's, but for the two that are files of memory. */
static bool is_of_device(const char *line)
{
	return strstr(line, "/dev/") && !strstr(line, "/dev/zero (deleted)") && !strstr(line, "/dev/shm/");
}

/* One line of /proc/self/maps: "start-end rwxp …". */
static void visit_line(const char *line, uintptr_t own_stack, visitor *visit, void *context)
{
	char *end_of_start, *end_of_end;
	uintptr_t start = (uintptr_t)strtoull(line, &end_of_start, 16), end;

	if (*end_of_start != '-')
		return;
	end = (uintptr_t)strtoull(end_of_start + 1, &end_of_end, 16);
	if (strncmp(end_of_end, " rw", 3) || is_of_device(line) || strstr(line, "[v"))
		return;
	start = live_start(start, end, own_stack);
	if (strchr(line, '/'))
		visit_file(start, end, end_of_end[4] == 's', visit, context);
	else
		visit(context, start, end);
}

/* False: they cannot be read, or there are none. */
static bool visit_maps(const char *path, uintptr_t own_stack, visitor *visit, void *context)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	static char line[4200];
	size_t length = 0;
	bool any = false;
	ssize_t got;
	static char room[8192];

	if (file < 0)
		return false;
	while ((got = read(file, room, sizeof(room))) > 0) {
		any = true;
		for (ssize_t i = 0; i < got; i++) {
			if (room[i] != '\n') {
				if (length < sizeof(line) - 1)
					line[length++] = room[i];
				continue;
			}
			line[length] = '\0';
			length = 0;
			visit_line(line, own_stack, visit, context);
		}
	}
	close(file);
	return any && got == 0;
}

bool sy__roots_visit(const struct sy__stack_start *start, void (*visit)(void *context, uintptr_t start, uintptr_t end), void *context)
{
	struct sigaction before;
	bool all;

	visit(context, (uintptr_t)start->registers, (uintptr_t)(start->registers + start->count));
	stop_world(&before);
	visit(context, (uintptr_t)world.alternates, (uintptr_t)(world.alternates + MOST_THREADS + 1));
	all = visit_maps("/proc/self/maps", (uintptr_t)start->stack, visit, context) || /* empty once the main thread has ended */
	      visit_maps("/proc/thread-self/maps", (uintptr_t)start->stack, visit, context);
	release_world(&before);
	return all;
}
