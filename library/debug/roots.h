/* The memory of a program where pointers to objects may be. See roots.c. */
#ifndef SY_ROOTS_H
#define SY_ROOTS_H

#include <stddef.h>
#include <stdint.h>

#define SY__REGISTERS 16u

/* From where on the calling thread's stack counts, and what its registers had there. */
struct sy__stack_start {
	const void *stack;
	uintptr_t registers[SY__REGISTERS];
	unsigned count;
};

/* Where exit was called, if the caller runs because of that; else where the caller's caller is. What lies further down is not the
 * program's, and has remains of former calls. */
void sy__stack_start_find(struct sy__stack_start *, const void *caller);

/* Stops all other threads, calls visit for every writable part of the program's memory, and has the threads go on. Nothing in between
 * may allocate, or take a lock that a thread could have. */
void sy__roots_visit(const struct sy__stack_start *, void (*visit)(void *context, uintptr_t start, uintptr_t end), void *context);

#endif
