/* Which array of per-slot state an object's page belongs to, and the first page of its block. See owners.c. */
#ifndef SY_OWNERS_H
#define SY_OWNERS_H

#include "page_interface.h"

struct sy__owners {
	uintptr_t origin; /* where the word of the page at address 0 would be */
	uintptr_t memory; /* address of the first page */
	size_t pages;     /* in the range */
	void **words;     /* one for each of them; NULL: not created */
	struct sy_page **heads; /* and the descriptor of the first page of its block */
	uint8_t *there;   /* for each CHUNK of words: whether it can be written to */
};

/* All are undefined at first. False: no memory. */
bool sy__owners_create(struct sy__owners *, const struct sy_heap *);
void sy__owners_destroy(struct sy__owners *);

/* Whom the pages of a block, so many from this one on, belong to from now on. False: there is no memory to say so. */
bool sy__owners_set(struct sy__owners *, const struct sy_heap *, struct sy_page *, size_t count, void *owner);

/* Whom the page at this address belongs to. */
static inline void *sy__owner(const struct sy__owners *owners, const void *address)
{
	return *(void **)(owners->origin + ((uintptr_t)address >> SY_PAGE_SHIFT) * sizeof(void *));
}

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
