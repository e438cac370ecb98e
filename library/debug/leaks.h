/* Leaks, and what heaps with checks do at a program's end. See leaks.c. */
#ifndef SY_LEAKS_H
#define SY_LEAKS_H

#include <slabyard/slabyard.h>

/* Has a heap with checks looked at when the program ends by exit(): for damage, and for leaks if it asks for that. No longer. */
void sy__debug_watch(struct sy_heap *);
void sy__debug_unwatch(struct sy_heap *);

#endif
