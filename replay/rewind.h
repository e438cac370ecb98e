/* Sets a machine's pages back to the state that they were saved in, so that one process replays many settings. See rewind.c. */
#ifndef REPLAY_REWIND_H
#define REPLAY_REWIND_H

#include <slabyard/slabyard.h>

#include "programs/fault.h"

struct rewind;

/* Saves pages that no heap uses yet. NULL: see fault. Then the caller forks, and the parent leaves them alone. */
struct rewind *rewind_save(struct sy_pages *, struct fault *);

/* In the child, before it uses them. False: see fault. */
bool rewind_begin(struct rewind *, struct fault *);

/* There, sets them back. Heaps that use them exist no longer. False: see fault. */
bool rewind_back(const struct rewind *, struct fault *);
void rewind_release(struct rewind *);

#endif
