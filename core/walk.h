/*
 * How a policy shows what is in its slabs. The public side is sy_heap_walk (slabyard.h); see walk.c.
 *
 * A policy's walk gets a walk whose slab is filled in but for cache, list, owner and place. It fills in these, announces
 * the slab, and tells its parts: either one after the other (sy__walk_part), or, where objects stand side by side in one
 * size, with sy__walk_objects, which needs no more than a function that names the free ones. What is left of the slab
 * behind the last part is unused. Nothing of it may take memory or locks that a check may not take.
 */
#ifndef SY_WALK_H
#define SY_WALK_H

#include "types.h"

#define SY__WALK_WINDOW 64u /* objects that are looked for at a time */

/* Where a free object is. */
struct sy__mark {
	const char *list;
	uint64_t place;
	uint16_t owner, lists;
	enum sy_part_state state;
};

/* Objects side by side in a slab. */
struct sy__walk_grid {
	size_t start, size; /* bytes: to the first; from one to the next */
	uint32_t objects;
	/* Calls sy__walk_mark for each free object of the slab, and of as many others as is convenient. */
	void (*mark)(struct sy__walk *, const void *context);
	const void *context;
	enum sy_part_state held; /* what an object is that is not marked: SY_PART_USED, but for the policy's own */
};

struct sy__walk {
	struct sy_heap *heap;
	const struct sy_visitor *visitor;
	struct sy_slab slab;
	size_t told;  /* bytes of the slab whose parts were told */
	size_t large; /* bytes of a large allocation that are in its blocks to come */
	bool ended;   /* the visitor has had enough */
	const struct sy__walk_grid *grid;
	uint32_t first; /* object of the window */
	struct sy__mark window[SY__WALK_WINDOW];
};

/* Announces the slab, when it is filled in. False: tell no parts. */
bool sy__walk_slab(struct sy__walk *);

/* Tells of the next part, from where the last one ended up to `end`, bytes from the slab's start; nothing if that is no
 * further. */
void sy__walk_part(struct sy__walk *, size_t end, enum sy_part_state);

/* Likewise of a block, free or not. mark says where a free one is; NULL: it is in use. */
void sy__walk_block(struct sy__walk *, size_t end, const struct sy__mark *mark);

/* Tells of all objects of a grid, and of what is before them as colour. */
void sy__walk_objects(struct sy__walk *, const struct sy__walk_grid *);

/* This object is free and on that list, at that place from the next to be handed out. Objects of other slabs are
 * ignored. */
void sy__walk_mark(struct sy__walk *, const void *object, enum sy_part_state, const char *list, unsigned owner,
                   uint64_t place);

/* The same of a chain of objects, each of which has a pointer to the next so many bytes from its start, from its first at place
 * 0 on. It ends at the latest behind `most` objects and one, where it runs in a circle, and where it leaves the heap. */
void sy__walk_chain(struct sy__walk *, const void *first, size_t offset, uint64_t most, enum sy_part_state, const char *list,
                    unsigned owner);

/* Place of a link on its list; the list's length: it is not on it. */
uint64_t sy__walk_place(const struct sy_list *list, const struct sy_list *link);

#endif
