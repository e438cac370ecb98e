/* Stacks of the calling thread. See stack.c. */
#ifndef SY_STACK_H
#define SY_STACK_H

#include <stdint.h>

#define SY__REGISTERS 16u

/* Reads up to most return addresses of the calling thread, the innermost first, and gives their number. Frames inside of this library
 * are left out where it is a module of its own. */
unsigned sy__stack_read(uintptr_t *frames, unsigned most);

/* The program is about to end: no stack of a static one is read any more. */
void sy__stack_end(void);

/* Where the calling thread's stack begins to count, and its registers at that place. */
struct sy__stack_start {
	const void *stack;
	uintptr_t registers[SY__REGISTERS];
	unsigned count;
};

/* The frame that called exit, if the caller runs because of that; else the caller's caller. The stack beyond is not the program's, and
 * holds remains of former calls. */
void sy__stack_start_find(struct sy__stack_start *, const void *caller);

#endif
