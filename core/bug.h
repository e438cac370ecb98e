/*
 * Bugs of the program that a policy finds: an object that is freed twice, an address that is none of its objects, a free list that
 * the program wrote into.
 *
 * A policy tells the heap, which tells its owner (sy_heap.on_bug). In a program that ends the process, with a report. Where it
 * returns, as in a kernel, the policy abandons the call: it leaves the object alone, or fails the request. No object is ever handed
 * out twice, and no damaged list is followed further. Without an owner's function the program ends at once.
 *
 * The caller may hold locks of the heap, so an owner's function must not call into the heap.
 */
#ifndef SY_BUG_H
#define SY_BUG_H

#include "types.h"

/* Tells that the program has freed or damaged what is at an address. */
SY__COLD void sy__bug(struct sy_heap *, enum sy_bug, const void *address);

/* The same for a freed address that is no object in use; the kind follows from what is there. In a slab, an address that is not known to be
 * free is one where no object starts. */
SY__COLD void sy__bug_free(struct sy_heap *, const void *address);

#endif
