/* What the files of the SLOB policy share. The theory and the lock are in slob.c. */
#ifndef SY_SLOB_H
#define SY_SLOB_H

#include "../../list.h"
#include "../../page_interface.h"
#include "blocks.h"
#include "sizes.h"

enum { SY__SLOB_SMALL, SY__SLOB_MEDIUM, SY__SLOB_LARGE, SY__SLOB_LISTS };
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
	uint16_t list;  /* which it is on, if it is on one */
	uint16_t known_want;  /* key of the last request that best fit looked for in all its blocks */
	uint16_t known_least; /* units of the smallest block that this request can have; 0: not known any more */
};
SY_ASSERT_SLAB_STATE(struct sy__slob_page, link.next);
_Static_assert(SY__SLOB_PAGE_UNITS <= 1 << 14, "a key has room for the units of a request");

/* What tells a request of the first kinds from all others: 14 bits hold less than the units of a page. */
static inline uint16_t sy__slob_key(enum sy__slob_kind kind, uint32_t units)
{
	return (uint16_t)(units | (uint32_t)kind << 14);
}

struct sy__slob_heap {
	struct sy_heap heap;
	sy__lock_t lock;
	struct sy_list partial[SY__SLOB_LISTS];
	struct sy__slob_sizes sizes[SY__SLOB_LISTS]; /* of the free blocks of the pages on each list */
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

/* check.c: NULL, or the first invariant that does not hold. */
const char *sy__slob_check(struct sy_heap *);

/* check.c: bytes of all free blocks. */
uint64_t sy__slob_unused_bytes(struct sy_heap *);

/* walk.c */
void sy__slob_walk(struct sy__walk *, struct sy_page *);

#endif
