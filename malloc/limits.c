/*
 * Limits that the program sets itself: setrlimit and prlimit, as glibc has them.
 *
 * Addresses that are reserved for the heap count toward RLIMIT_AS, which would leave nothing to a program's own mappings and to
 * stacks of threads. So the heap is told of such a limit (process.c). One set by another process is not noticed. The kernel's
 * call is made here, as there is no way to glibc's function behind the name where a program is linked statically.
 *
 * Machines of 32 bits have no range that would be in the way: there these functions are glibc's.
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
