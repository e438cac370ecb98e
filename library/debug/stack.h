/* Stacks of the calling thread. See stack.c. */
#ifndef SY_STACK_H
#define SY_STACK_H

#include <stdint.h>

#define SY__REGISTERS 16u

/* Reads up to most return addresses of the calling thread, the innermost first, and gives their number. Frames inside of this library
 * are left out where it is a module of its own. */
unsigned sy__stack_read(uintptr_t *frames, unsigned most);

/* From where on the calling thread's stack counts, and what its registers had there. */
struct sy__stack_start {
	const void *stack;
	uintptr_t registers[SY__REGISTERS];
	unsigned count;
};

/* Where exit was called, if the caller runs because of that; else where the caller's caller is. What lies further down is not the
 * program's, and has remains of former calls. */
void sy__stack_start_find(struct sy__stack_start *, const void *caller);

#endif
