/* Pairs of an allocation and a free, of plain buffers and of objects as a kernel has them. See main.c and kinds.c. */
#ifndef PAIRS_PAIRS_H
#define PAIRS_PAIRS_H

#include <stddef.h>

#define MOST_PARTS 4
#define MOST_LIVE 4096 /* at once */

/* An object of a kind. */
struct type {
	const char *name;
	size_t size;
	void (*construct)(void *object, size_t size);
	void (*destruct)(void *object, size_t size);
};

/* What is made and taken apart as one: objects, and a buffer if there is one. */
struct kind {
	const char *name, *what;
	const struct type *parts[MOST_PARTS]; /* NULL: no more */
	size_t buffer;                        /* bytes of it, by kmem_alloc; 0: none */
	/* What every use sets anew, and what it leaves behind in constructed state. `parts`: the objects, then the buffer. */
	void (*begin)(void **parts);
	void (*end)(void **parts);
};

extern const struct kind kinds[]; /* the last one has no name */

#endif
