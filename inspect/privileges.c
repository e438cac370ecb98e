/*
 * Rights that are no longer needed.
 *
 * Stopping and copying another user's process takes rights; looking at the copy takes none. And the copy is not to be trusted: a program
 * may prepare its memory to attack its reader. While it is copied, only the lists of heaps and of their pages are followed, to know what to
 * copy; nothing is written where they lead. When the copy is there, this process goes on as the other one's user, without capabilities or a
 * way to get any again. All else comes after that.
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
