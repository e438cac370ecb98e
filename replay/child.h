/* Work that is done in a copy of this process. See child.c. */
#ifndef REPLAY_CHILD_H
#define REPLAY_CHILD_H

#include "programs/fault.h"

/* Forks, does the work in the child, and waits. The child sees all that this process has and changes nothing of it, but for
 * what the two share: open files, and memory mapped as shared. False: see fault, which is the work's own where it returned
 * false. A child that a signal ends ends this process in the same way. */
bool child_run(bool (*work)(void *context, struct fault *), void *context, struct fault *fault);

#endif
