/* The first page of the block that a page is of. See owners.c. */
#ifndef SY_OWNERS_H
#define SY_OWNERS_H

#include "page_interface.h"

struct sy__owners {
	uintptr_t memory; /* address of the first page */
	size_t pages;     /* in the range */
	struct sy_page **heads; /* for each of them, the descriptor of the first page of its block; NULL: not created */
	uint8_t *there;   /* for each CHUNK of heads: whether it can be written to */
};

/* All are undefined at first. False: no memory. */
bool sy__owners_create(struct sy__owners *, const struct sy_heap *);
void sy__owners_destroy(struct sy__owners *);

/* So many pages are a block's from now on, from its first one. False: there is no memory to say so. */
bool sy__owners_set(struct sy__owners *, const struct sy_heap *, struct sy_page *, size_t count);

/* First page of the block that a page in the range is in. */
static inline struct sy_page *sy__owners_head(const struct sy__owners *owners, size_t page)
{
	return owners->heads[page];
}

/* Of any address: the number of its page in the range, or at least `pages`. */
static inline size_t sy__owners_index(const struct sy__owners *owners, const void *address)
{
	return ((uintptr_t)address - owners->memory) >> SY_PAGE_SHIFT;
}

#endif
