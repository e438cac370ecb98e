/* The structures of sunos4, for its tests. See sunos4.c. */
#ifndef SY_SUNOS4_H
#define SY_SUNOS4_H

#include "general.h"
#include "sunos4_tree.h"

#define SY__SUNOS4_MAX_CHUNK_ORDER 5

enum sy__sunos4_fit { SY__SUNOS4_LEFTMOST, SY__SUNOS4_BETTER };

struct sy__sunos4_heap {
	struct sy__general_heap general;
	struct sy__tree trees[SY_MAX_NODES];
	enum sy__sunos4_fit fit;
	unsigned chunk_order;
};

/* sunos4_walk.c */
void sy__sunos4_walk(struct sy__walk *, struct sy_page *);

#endif
