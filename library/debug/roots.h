/* The memory of a program where pointers to objects may be. See roots.c. */
#ifndef SY_ROOTS_H
#define SY_ROOTS_H

#include "stack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stops all other threads, calls visit for every writable part of the program's memory, and has the threads go on. Nothing in between
 * may allocate, or take a lock that a thread could have. False: which parts there are is unknown (no /proc, no free file descriptor). */
bool sy__roots_visit(const struct sy__stack_start *, void (*visit)(void *context, uintptr_t start, uintptr_t end), void *context);

#endif
