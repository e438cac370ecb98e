/*
 * A process: its mappings, its memory, and how it is stopped.
 *
 * Stopping. Each thread is seized and interrupted (ptrace), which its program and its parent do not notice: no signal is sent,
 * and a thread in a system call goes on with it afterwards. A signal that comes meanwhile is delivered when the thread is let
 * go. If this process is killed, the kernel lets the threads go. A process that a debugger has stopped stays so, and is read as
 * it is.
 */
#define _GNU_SOURCE
#include "inspect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(50000000) /* for a thread to stop */
#define MISSING 4 /* exit status: a privilege is missing */

static struct {
	pid_t id;
	int signal; /* that came meanwhile */
	bool stopped, gone;
} *threads;
static size_t thread_count, thread_room;

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- What /proc tells ----------------------------------------------------------------------------------------- */

/* /proc/PID/name, until the next call. */
static const char *proc_path(pid_t pid, const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	return path;
}

/* A number behind a name in /proc/PID/status, and the word behind it; -1: it is not there. */
static long status_of(pid_t pid, const char *name, char *word)
{
	FILE *file = fopen(proc_path(pid, "status"), "re");
	char line[256];
	long value = -1;

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0) {
			const char *at = line + strlen(name) + strspn(line + strlen(name), " \t");

			value = strtol(at, NULL, 10);
			if (word)
				*word = *at;
		}
	if (file)
		fclose(file);
	return value;
}

static bool read_maps(struct target *target, struct fault *fault)
{
	FILE *file = fopen(proc_path(target->pid, "maps"), "re");
	char line[4400], kind[5];
	bool kept = true;

	if (!file)
		return refuse(fault, "%s: its mappings cannot be read: %s", target->name, strerror(errno));
	while (kept && fgets(line, sizeof(line), file)) {
		unsigned long start, end;
		unsigned long long offset;
		int behind = 0;
		struct region region = { 0 };

		if (sscanf(line, "%lx-%lx %4s %llx %*s %*s %n", &start, &end, kind, &offset, &behind) < 4)
			continue;
		line[strcspn(line, "\n")] = '\0';
		region = (struct region){ .start = start, .end = end, .offset = offset, .readable = kind[0] == 'r',
			                  .writable = kind[1] == 'w', .executable = kind[2] == 'x', .shared = kind[3] == 's',
			                  .path = behind && line[behind] ? strdup(line + behind) : NULL };
		kept = regions_add(&target->regions, &region, fault) &&
		       (!region.path || *region.path != '/' || regions_add(&target->modules, &region, fault));
	}
	fclose(file);
	return kept;
}

bool process_open(struct target *target, pid_t pid, int *status, struct fault *fault)
{
	target->pid = pid;
	if (access(proc_path(pid, "status"), F_OK))
		return refuse(fault, "there is no process %ld", (long)pid);
	target->memory = open(proc_path(pid, "mem"), O_RDONLY | O_CLOEXEC);
	if (target->memory < 0 && (errno == EACCES || errno == EPERM)) {
		*status = MISSING;
		return refuse(fault, "process %ld may not be looked into by this user; it takes the right to trace it (root, or the process's user)", (long)pid);
	}
	if (target->memory < 0 || readlink(proc_path(pid, "exe"), target->program, sizeof(target->program) - 1) <= 0)
		return refuse(fault, "process %ld has no program: it is a kernel thread, or has ended", (long)pid);
	target->owner = (uid_t)status_of(pid, "Uid:", NULL);
	target->group = (gid_t)status_of(pid, "Gid:", NULL);
	target->direct = true;
	return read_maps(target, fault);
}

/* ---- Stopping ------------------------------------------------------------------------------------------------- */

static bool is_known(pid_t id)
{
	for (size_t i = 0; i < thread_count; i++)
		if (threads[i].id == id)
			return true;
	return false;
}

/* Seizes a thread. False: it cannot be; threads that have ended do not count. */
static bool seize(pid_t id)
{
	if (thread_count == thread_room) {
		void *more = realloc(threads, (thread_room + 256) * sizeof(*threads));

		if (!more)
			return false;
		threads = more;
		thread_room += 256;
	}
	if (ptrace(PTRACE_SEIZE, id, 0, 0)) {
		char state = '?';

		status_of(id, "State:", &state);
		return errno == ESRCH || state == 'Z' || state == 'X' || state == '?';
	}
	memset(&threads[thread_count], 0, sizeof(*threads));
	threads[thread_count].gone = ptrace(PTRACE_INTERRUPT, id, 0, 0) != 0;
	threads[thread_count++].id = id;
	return true;
}

/* Seizes all threads that were not yet. Returns how many; -1: one cannot be. */
static int seize_new(pid_t pid)
{
	DIR *folder = opendir(proc_path(pid, "task"));
	int found = 0;

	for (const struct dirent *entry; folder && found >= 0 && (entry = readdir(folder));) {
		pid_t id = (pid_t)strtol(entry->d_name, NULL, 10);

		if (id <= 0 || is_known(id))
			continue;
		found = seize(id) ? found + 1 : -1;
	}
	if (folder)
		closedir(folder);
	return folder ? found : -1;
}

/* Waits until a thread has stopped. */
static void await(size_t index, uint64_t deadline)
{
	const struct timespec moment = { .tv_nsec = 50000 };
	int state;
	pid_t got;

	while (!(got = waitpid(threads[index].id, &state, __WALL | WNOHANG)) && now_ns() < deadline)
		nanosleep(&moment, NULL);
	if (got < 0 || (got && !WIFSTOPPED(state)))
		threads[index].gone = true;
	else if (got) {
		threads[index].stopped = true;
		threads[index].signal = state >> 16 ? 0 : WSTOPSIG(state);
	}
}

bool process_stop(struct target *target, struct fault *fault)
{
	uint64_t deadline = now_ns() + PATIENCE_NS;
	long tracer = status_of(target->pid, "TracerPid:", NULL);
	char state = '?';
	size_t seen = 0;
	int found = 0;

	target->stopped_ns = now_ns();
	if (tracer > 0) {
		status_of(target->pid, "State:", &state);
		target->stopped = state == 't';
		target->stopped_ns = 0;
		return refuse(fault, "process %ld traces it", tracer);
	}
	target->stopped = true;
	do {
		found = seize_new(target->pid);
		for (; seen < thread_count; seen++)
			if (!threads[seen].gone)
				await(seen, deadline);
	} while (found > 0);
	for (size_t i = 0; i < thread_count; i++)
		target->stopped = target->stopped && (threads[i].stopped || threads[i].gone);
	target->stopped = target->stopped && !found;
	target->threads = (unsigned)thread_count;
	return target->stopped || refuse(fault, "not all of its threads can be stopped");
}

/* A thread that did not stop in time does so now, as its interruption is pending. */
void process_resume(struct target *target)
{
	for (size_t i = 0; i < thread_count; i++) {
		if (threads[i].gone)
			continue;
		if (!threads[i].stopped)
			await(i, now_ns() + PATIENCE_NS);
		ptrace(PTRACE_DETACH, threads[i].id, 0, threads[i].signal);
	}
	if (thread_count) {
		target->stopped_ns = now_ns() - target->stopped_ns;
		target->stopped = false;
	}
	thread_count = 0;
	target->direct = false; /* the rights that it takes are given up */
}
