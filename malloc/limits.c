/*
 * setrlimit and prlimit, as glibc has them: they tell the heap of limits that the program sets itself.
 *
 * The addresses that are reserved for the heap count toward RLIMIT_AS. They would leave nothing to the program's own mappings and
 * its threads' stacks, so the heap gives some up (process.c). A limit that another process sets is not noticed. The system call
 * is made here: in a statically linked program there is no way to glibc's function of the same name.
 *
 * 32-bit machines have no reservation that would be in the way. There these functions are glibc's.
 */
#define _GNU_SOURCE
#include "parts.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__LP64__) && defined(__GLIBC__)

#define EXPORT __attribute__((visibility("default")))

_Static_assert(sizeof(struct rlimit) == 16 && RLIM_INFINITY == UINT64_MAX, "what the kernel's call takes");

EXPORT int prlimit(pid_t process, __rlimit_resource_t resource, const struct rlimit *limit, struct rlimit *before)
{
	long failed = syscall(SYS_prlimit64, process, resource, limit, before);

	if (!failed && limit && resource == RLIMIT_AS && (process == 0 || process == getpid()))
		sy__process_limited(limit->rlim_cur);
	return (int)failed;
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
