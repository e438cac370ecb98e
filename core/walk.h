/*
 * How a policy shows what is in its slabs. The public side is sy_heap_walk (slabyard.h); see walk.c.
 *
 * A policy's walk function gets a walk whose slab is filled in except for cache, list, owner and place. It fills these in,
 * announces the slab (sy__walk_slab), and tells its parts in order of address. It may tell them one by one (sy__walk_part,
 * sy__walk_block). Where objects of one size stand side by side, it calls sy__walk_objects, which only needs a function
 * that marks the free ones. The rest of the slab, behind the last part told, is unused. A walk must not take memory or locks that
 * a check may not take.
 *
 * slabyard-inspect walks copies of other processes' heaps. So a walk follows pointers from the heap into its own memory only, none to
 * the program's functions or constants: only heap->policy is the walking program's own.
 */
#ifndef SY_WALK_H
#define SY_WALK_H

#include "types.h"

#define SY__WALK_WINDOW 64u /* objects that one pass over the lists looks for */

/* Where a free object is. */
struct sy__mark {
	const char *list;
	uint64_t place;
	uint16_t owner, lists;
	enum sy_part_state state;
};

/* Objects side by side in a slab. */
struct sy__walk_grid {
	size_t start, size; /* bytes to the first object; from one object to the next */
	uint32_t objects;
	/* Calls sy__walk_mark for each free object of the slab; it may do so for objects of other slabs too. */
	void (*mark)(struct sy__walk *, const void *context);
	const void *context;
	enum sy_part_state held; /* state of objects that are not marked: SY_PART_USED, or SY_PART_BOOKKEEPING */
};

struct sy__walk {
	struct sy_heap *heap;
	const struct sy_visitor *visitor;
	struct sy_slab slab;
	size_t told;  /* bytes of the slab, from its start, whose parts were told */
	size_t large; /* bytes of a large allocation that lie in its further blocks */
	bool ended;   /* the visitor has had enough */
	const struct sy__walk_grid *grid;
	uint32_t first; /* number of the window's first object */
	struct sy__mark window[SY__WALK_WINDOW];
};

/* Announces the slab, once it is filled in. False: tell no parts. */
bool sy__walk_slab(struct sy__walk *);

/* Tells the next part: from the end of the last one to `end`, in bytes from the slab's start. Nothing if that is empty. */
void sy__walk_part(struct sy__walk *, size_t end, enum sy_part_state);

/* Tells a block as the next part. mark: where the free block is; NULL: it is in use. */
void sy__walk_block(struct sy__walk *, size_t end, const struct sy__mark *mark);

/* Tells all objects of a grid, and the bytes before them as colour. */
void sy__walk_objects(struct sy__walk *, const struct sy__walk_grid *);

/* Marks an object as free, on that list, with its place from the object that is handed out next. Ignores objects of other slabs. */
void sy__walk_mark(struct sy__walk *, const void *object, enum sy_part_state, const char *list, unsigned owner,
                   uint64_t place);

/* Marks a chain of objects, from place 0 on. Each object has the pointer to the next one `offset` bytes from its start. Stops after
 * most + 1 objects, so a circle ends, and where the chain leaves the heap. */
void sy__walk_chain(struct sy__walk *, const void *first, size_t offset, uint64_t most, enum sy_part_state, const char *list,
                    unsigned owner);

/* For slabyard-inspect. The first: as sy_heap_walk, of the slab with this first page. The second: the places of slabs on lists all read
 * 0, as a heap with a hundred thousand partial slabs would take minutes to look for each on its list. */
bool sy__walk_one(struct sy_heap *, struct sy_page *head, const struct sy_visitor *);
extern bool sy__walk_skips_places;

/* Place of a link on its list; the list's length if it is not there. */
uint64_t sy__walk_place(const struct sy_list *list, const struct sy_list *link);

#endif
