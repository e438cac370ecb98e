/* What the files of the SLOB policy share. The theory and the lock are in slob.c. */
#ifndef SY_SLOB_H
#define SY_SLOB_H

#include "../../list.h"
#include "../../page_interface.h"
#include "blocks.h"
#include "segments.h"
#include "sizes.h"

enum sy__slob_fit { SY__SLOB_NEXT, SY__SLOB_FIRST, SY__SLOB_BEST };

/* Requests by their alignment. A page that refuses a request refuses all larger ones of that kind, unless it is OTHER. */
enum sy__slob_kind {
	SY__SLOB_WORD,  /* the least alignment */
	SY__SLOB_LINE,  /* an object of a cache, aligned to a cache line */
	SY__SLOB_POWER, /* kmalloc of a power of two, aligned to its size: a block for it serves the lower powers as well. In a heap
	                 * that aligns all of kmalloc to more than a word: what is aligned to that */
	SY__SLOB_KINDS,
	SY__SLOB_OTHER = SY__SLOB_KINDS /* any alignment: bound by what bounds WORD; of kmalloc, what bounds POWER */
};

/* State of a page, in its descriptor. */
struct sy__slob_page {
	struct sy_list link; /* in sy__slob_heap.partial[], unless the page is full */
	uint64_t may_have;   /* bits of sizes: those of all its free blocks, and of some that it had */
	uint16_t most[SY__SLOB_KINDS]; /* units; no larger request of the kind finds room here */
	uint16_t free_units;
	uint16_t first; /* unit where the first free block starts; SY__SLOB_PAGE_UNITS: none */
	uint8_t list;   /* which it is on, if it is on one */
	uint8_t segment; /* of that list; best fit alone */
	uint16_t known_want;  /* key of the last request that best fit looked for in all its blocks */
	uint16_t known_least; /* units of the smallest block that this request can have; 0: not known any more */
};
SY_ASSERT_SLAB_STATE(struct sy__slob_page, link.next);
_Static_assert(SY__SLOB_PAGE_UNITS <= 1 << 14, "a key has room for the units of a request");

/* Key of a request of the first kinds: 14 bits are enough for the units of a page. */
static inline uint16_t sy__slob_key(enum sy__slob_kind kind, uint32_t units)
{
	return (uint16_t)(units | (uint32_t)kind << 14);
}

struct sy__slob_heap {
	struct sy_heap heap;
	sy__lock_t lock;
	struct sy_list partial[SY__SLOB_LISTS];
	struct sy__slob_sizes sizes[SY__SLOB_LISTS]; /* of the free blocks of the pages on each list */
	struct sy__slob_segments segments;
	enum sy__slob_fit fit;
	uint64_t log_every, until_log;
};

static inline struct sy__slob_heap *sy__slob_of(struct sy_heap *heap)
{
	return (struct sy__slob_heap *)(void *)heap;
}

static inline struct sy__slob_page *sy__slob_page_state(struct sy_page *page)
{
	return SY_SLAB_STATE(struct sy__slob_page, page);
}

static inline struct sy_page *sy__slob_page_of_link(struct sy_list *link)
{
	return sy__entry(sy__entry(link, struct sy__slob_page, link), struct sy_page, state);
}

static inline sy__slob_unit_t *sy__slob_page_units(const struct sy__slob_heap *slob, const struct sy_page *page)
{
	return (sy__slob_unit_t *)sy__page_address(&slob->heap, page);
}

/* A request, worked out once. */
struct sy__slob_request {
	struct sy__slob_want want;
	uint32_t bytes;
	uint32_t list;
	enum sy__slob_kind kind, bound; /* bound: the kind whose bound holds for it */
};

static inline bool sy__slob_on_node(const struct sy_page *page, int node)
{
	return node == SY_ANY_NODE || sy__page_node(page) == node;
}

static inline bool sy__slob_may_serve(struct sy_page *page, const struct sy__slob_request *request, int node)
{
	return sy__slob_page_state(page)->most[request->bound] >= request->want.units && sy__slob_on_node(page, node);
}

/* The page has no room for the request, and this largest block: lowers the bound for requests of its kind. */
static inline void sy__slob_refuse(struct sy__slob_page *state, const struct sy__slob_request *request, uint32_t largest)
{
	uint32_t below = request->kind == SY__SLOB_OTHER ? state->most[request->bound] : request->want.units - 1;

	state->most[request->bound] = (uint16_t)(largest < below ? largest : below);
}

/* The program has overwritten the first units of a free block. */
SY__COLD void sy__slob_tell_damage(const struct sy__slob_heap *, const struct sy_page *, uint32_t block);

/* best.c: the first page of the list with the tightest sufficient block, and its place; NULL: none. */
struct sy_page *sy__slob_search_best(struct sy__slob_heap *, const struct sy__slob_request *, int node, struct sy__slob_place *);

/* best.c: a page is at the front of its list; is about to leave it. */
void sy__slob_join_segment(struct sy__slob_heap *, struct sy__slob_page *);
void sy__slob_leave_segment(struct sy__slob_heap *, struct sy__slob_page *);

/* log.c: counts an allocation, and logs its search if it is the turn of this one. */
SY__COLD void sy__slob_log(struct sy__slob_heap *, const struct sy__slob_request *, int node);

/* check.c: NULL, or the first invariant that does not hold. */
const char *sy__slob_check(struct sy_heap *);

/* check.c: bytes of all free blocks. */
uint64_t sy__slob_unused_bytes(struct sy_heap *);

/* walk.c */
void sy__slob_walk(struct sy__walk *, struct sy_page *);

#endif
