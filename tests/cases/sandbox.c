/* A filter lets through what a C library's malloc needs. Any other call ends the program, or fails with EPERM if there is an
 * argument. "threads": two threads allocate. "leaves": ends by exit. "fork": a child does, too. "basic" and "mapped", with an argument: without
 * mprotect and mremap, and without madvise. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64u

static const int allowed[] = {
	/* a new thread and a child need these; not for "alone" */
	SYS_clone3, SYS_clone, SYS_set_robust_list, SYS_rseq, SYS_rt_sigaction, SYS_wait4,
	SYS_mremap, SYS_mprotect, /* not for "basic" */
	SYS_madvise, /* not for "mapped" */
	SYS_brk, SYS_mmap, SYS_munmap, SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_futex, SYS_rt_sigreturn, SYS_rt_sigprocmask,
	SYS_getrandom,
};

static void *work(void *unused)
{
	char *objects[500];

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 500; i++) {
			size_t size = (i * 7919 + round * 31) % 6000 * (i % 50 == 0 ? 1200 : 1) + 1;

			objects[i] = i % 2 ? malloc(size) : calloc(1, size);
			if (!objects[i])
				_exit(1);
			memset(objects[i], 1, size);
		}
		for (unsigned i = 0; i < 500; i++)
			objects[i] = realloc(objects[i], i * 31 % 9000 + 1);
		for (unsigned i = 0; i < 500; i++)
			free(objects[i]);
	}
	return unused;
}

static int shut_in(unsigned otherwise, unsigned from)
{
	struct sock_filter lines[2 * MOST];
	struct sock_fprog filter = { .filter = lines };

	lines[filter.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = from; i < sizeof(allowed) / sizeof(*allowed); i++) {
		lines[filter.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
		lines[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	lines[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int count, char **words)
{
	bool threads_too = !strcmp(words[1], "threads"), forks = !strcmp(words[1], "fork");
	unsigned from = threads_too || forks ? 0 : !strcmp(words[1], "basic") ? 8 : !strcmp(words[1], "mapped") ? 9 : 6;
	pthread_t threads[2];
	int status = 0;

	if (shut_in(count > 2 ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS, from))
		return 77;
	if (!threads_too)
		work(NULL);
	if (forks && !fork()) {
		work(NULL);
		malloc_trim(0);
		_exit(0);
	}
	if (forks && (wait(&status) < 0 || status))
		return 1;
	for (unsigned i = 0; i < 2 && threads_too; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (unsigned i = 0; i < 2 && threads_too; i++)
		pthread_join(threads[i], NULL);
	malloc_trim(0);
	if (write(STDOUT_FILENO, "ok\n", 3) < 0)
		return 1;
	if (!strcmp(words[1], "leaves"))
		exit(0);
	_exit(0);
}
