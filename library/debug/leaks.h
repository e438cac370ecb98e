/* Leaks, and what heaps with checks do at a program's end. See leaks.c. */
#ifndef SY_LEAKS_H
#define SY_LEAKS_H

#include <slabyard/slabyard.h>

#define SY__MOST_WATCHED 64u

/* Has a heap with checks looked at when the program ends by exit(): for damage, and for leaks if it asks for that. No longer. */
void sy__debug_watch(struct sy_heap *);
void sy__debug_unwatch(struct sy_heap *);

/* One of them, by number below SY__MOST_WATCHED; NULL: none. */
struct sy_heap *sy__debug_watched(unsigned);

#endif
