/*
 * Rights that are no longer needed.
 *
 * Reading another user's process takes rights, looking at what was read takes none. And what was read is not to be trusted: a program
 * may prepare its memory for who looks at it. So before a pointer of the heap is followed, this process becomes its owner, without
 * capabilities or a way to get any again.
 */
#define _GNU_SOURCE
#include "inspect.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CAPABILITY_VERSION 0x20080522u /* linux/capability.h, which not every C library has beside it */

bool privileges_drop(const struct target *target, struct fault *fault)
{
	struct {
		uint32_t version;
		int process;
	} header = { CAPABILITY_VERSION, 0 };
	const struct {
		uint32_t effective, permitted, inheritable;
	} none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(target->group, target->group, target->group) ||
	                       setresuid(target->owner, target->owner, target->owner)))
		return refuse(fault, "cannot give up the rights of root: %s", strerror(errno));
	if (syscall(SYS_capset, &header, none) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return refuse(fault, "cannot give up capabilities: %s", strerror(errno));
	return true;
}
