/* Work that is done in a copy of this process. See child.c. */
#ifndef REPLAY_CHILD_H
#define REPLAY_CHILD_H

#include "programs/fault.h"

/* Forks, does the work in the child, and waits. The child works on a copy; the two share only open files and shared mappings. False:
 * see fault, which is the work's own if it returned false. If a signal ends the child, it ends this process too. */
bool child_run(bool (*work)(void *context, struct fault *), void *context, struct fault *fault);

#endif
