/* The structures of svr4, for its tests. See svr4.c. */
#ifndef SY_SVR4_H
#define SY_SVR4_H

#include "../general.h"
#include "../starts.h"

#define SY__SVR4_MAX_POOL_ORDER 5
#define SY__SVR4_CLASSES (SY_PAGE_SHIFT + SY__SVR4_MAX_POOL_ORDER - SY__UNIT_SHIFT + 1)

/* Blocks of one power of two, in the pools of one node. */
struct sy__svr4_class {
	struct sy_list local;  /* locally free blocks, the latest first */
	struct sy_list global; /* globally free blocks */
	uint64_t blocks;       /* N: in use, locally free and globally free */
	uint64_t locally;      /* L: on the list local */
	uint64_t globally;     /* G: on the list global */
	uint64_t seen_blocks, seen_globally; /* scratch of checks and walks */
};

struct sy__svr4_heap {
	struct sy__general_heap general;
	struct sy__svr4_class (*classes)[SY__SVR4_CLASSES]; /* of each node, by size from SY__UNIT on */
	unsigned pool_order;
};

/* Blocks in use minus locally free blocks. */
static inline uint64_t sy__svr4_slack(const struct sy__svr4_class *class)
{
	return class->blocks - 2 * class->locally - class->globally;
}

/* The class of blocks of that size, a power of two. */
static inline struct sy__svr4_class *sy__svr4_class_of(struct sy__svr4_heap *svr4, unsigned node, uint32_t bytes)
{
	return &svr4->classes[node][(unsigned)__builtin_ctz(bytes) - SY__UNIT_SHIFT];
}

/* walk.c */
void sy__svr4_walk_begin(struct sy_heap *);
void sy__svr4_walk_end(struct sy_heap *);
void sy__svr4_walk(struct sy__walk *, struct sy_page *);

#endif
