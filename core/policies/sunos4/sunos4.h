/* The structures of sunos4, for its tests. See sunos4.c. */
#ifndef SY_SUNOS4_H
#define SY_SUNOS4_H

#include "../general.h"
#include "tree.h"

#define SY__SUNOS4_MAX_CHUNK_ORDER 5

enum sy__sunos4_fit { SY__SUNOS4_LEFTMOST, SY__SUNOS4_BETTER };

struct sy__sunos4_heap {
	struct sy__general_heap general;
	struct sy__tree trees[SY_MAX_NODES];
	enum sy__sunos4_fit fit;
	unsigned chunk_order;
};

/* walk.c. For walks and checks of trees that programs may have overwritten: whether a block number lies in the heap; whether the block
 * is in the tree, and how far below the root. */
bool sy__sunos4_has(const struct sy_heap *, const struct sy__tree *, uint64_t number);
bool sy__sunos4_is_free(const struct sy_heap *, const struct sy__tree *, uint64_t number, uint64_t *depth);
void sy__sunos4_walk(struct sy__walk *, struct sy_page *);

#endif
