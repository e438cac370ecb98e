/* Decay of free memory. See decay.c. */
#ifndef SY_DECAY_H
#define SY_DECAY_H

#include "backend.h"

/* The hooks sy__pages_hooks.taken, given and await. */
void sy__decay_taken(struct sy_pages *, unsigned discarded);
void sy__decay_given(struct sy_pages *);
void sy__decay_await(struct sy_pages *);

#endif
