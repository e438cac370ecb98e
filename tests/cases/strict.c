/* "strict": allocates where the system allows read, write and exit alone, and clocks that read the processor's counter are faults.
 * "counter": only these are. "number": a filter that the library does not notice refuses threads their numbers. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void work(void)
{
	static void *objects[50];

	for (unsigned round = 0; round < 2000; round++) {
		for (unsigned i = 0; i < 50; i++)
			objects[i] = malloc(64);
		for (unsigned i = 0; i < 50; i++)
			free(objects[i]);
	}
}

static int refuse_numbers(void)
{
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { .len = 4, .filter = lines };

	return syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}

int main(int count, char **words)
{
	int strict = count > 1 && !strcmp(words[1], "strict");
	int failed;

	work();
	if (strict)
		failed = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	else if (count > 1 && !strcmp(words[1], "number"))
		failed = refuse_numbers();
	else
		failed = prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	if (failed)
		return 77;
	work();
	if (write(STDOUT_FILENO, "ok\n", 3) < 0)
		return 1;
	if (strict)
		syscall(SYS_exit, 0);
	return 0;
}
