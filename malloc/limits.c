/*
 * Functions of the C library that tell the heap what a program does to itself: limits, locked memory, sandboxes.
 *
 * The addresses that are reserved for the heap count toward RLIMIT_AS. They would leave nothing to the program's own mappings and
 * its threads' stacks, so the heap gives some up (process.c). A limit that another process sets is not noticed. The system call
 * is made here: in a statically linked program there is no way to glibc's function of the same name.
 *
 * On 32-bit machines setrlimit and its kind are glibc's: a limit that a program sets itself counts all of the reservation.
 *
 * mlockall would lock, or fail to lock, all reserved addresses, and would not concern what the heap takes of them later.
 *
 * prctl can forbid the program system calls. A filter that kills makes mistakes fatal, so the heap then makes no calls that a
 * sandbox might not expect (core/platform/source.c). Filters can only be set after PR_SET_NO_NEW_PRIVS, or by root. It also can forbid
 * the processor's counter, so that clocks that read it are faults (clock.c).
 */
#define _GNU_SOURCE
#include "parts.h"

#include "core/platform/system_call.h"

#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define STRICT 1 /* SECCOMP_MODE_STRICT of linux/seccomp.h, which C libraries need not come with */
#define EXPORT __attribute__((visibility("default")))

/* Sets errno where a call failed. */
static int result_of(long result)
{
	if (!sy__system_failed(result))
		return (int)result;
	errno = (int)-result;
	return -1;
}

EXPORT int mlockall(int flags)
{
	return result_of(-sy__process_lock_memory(flags));
}

EXPORT int munlockall(void)
{
	sy__source_lock_future(SY__LOCKS_NONE);
	return result_of(sy__system(SYS_munlockall, 0, 0, 0, 0));
}

EXPORT int prctl(int option, ...)
{
	unsigned long word[4];
	va_list more;
	bool without;
	long result;

	va_start(more, option);
	for (unsigned i = 0; i < 4; i++)
		word[i] = va_arg(more, unsigned long);
	va_end(more);
	if (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP) {
		sy__background_end();
		sy__system_shut_in();
	}
	if (option == PR_SET_SECCOMP && word[0] == STRICT) {
		slabyard_sample_rate = 0; /* a sample is mapped */
		sy__sample_notice();
	}
	without = (option == PR_SET_TSC && word[0] == PR_TSC_SIGSEGV) || (option == PR_SET_SECCOMP && word[0] == STRICT);
	if (without)
		sy__clock_without_counter(true);
	result = sy__system_call(SYS_prctl, option, (long)word[0], (long)word[1], (long)word[2], (long)word[3], 0);
	if (sy__system_failed(result) ? without : option == PR_SET_TSC && word[0] == PR_TSC_ENABLE)
		sy__clock_without_counter(false);
	return result_of(result);
}

#if defined(__LP64__) && defined(__GLIBC__)

_Static_assert(sizeof(struct rlimit) == 16 && RLIM_INFINITY == UINT64_MAX, "what the kernel's call takes");

EXPORT int prlimit(pid_t process, __rlimit_resource_t resource, const struct rlimit *limit, struct rlimit *before)
{
	long failed = sy__system(SYS_prlimit64, process, (long)resource, sy__system_word(limit), sy__system_word(before));

	if (!failed && limit && (process == 0 || process == sy__system_process()))
		sy__process_limited((int)resource, limit->rlim_cur);
	return result_of(failed);
}

EXPORT int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	return prlimit(0, resource, limit, NULL);
}

EXPORT int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	return prlimit(0, resource, (const struct rlimit *)(const void *)limit, NULL);
}

EXPORT int prlimit64(pid_t process, __rlimit_resource_t resource, const struct rlimit64 *limit, struct rlimit64 *before)
{
	return prlimit(process, resource, (const struct rlimit *)(const void *)limit, (struct rlimit *)(void *)before);
}

#endif
