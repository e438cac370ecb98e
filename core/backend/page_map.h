/* The first page of the block that a page is of. See heads.c. */
#ifndef SY_HEADS_H
#define SY_HEADS_H

#include "page_interface.h"

struct sy__heads {
	uintptr_t memory;       /* address of the first page */
	size_t pages;           /* in the range */
	uintptr_t *table;       /* for each of them, the descriptor of the first page of its block, and its block's mark */
	uint8_t *there;         /* for each CHUNK of the table: whether it can be written to; NULL: not created */
	size_t reserved;        /* bytes from there on */
};

/* All are undefined at first. False: no memory. */
bool sy__heads_create(struct sy__heads *, const struct sy_heap *);
void sy__heads_destroy(struct sy__heads *);

/* The range has so many pages from now on, at most as many as at first. False: there are no addresses for that. */
bool sy__heads_reach(struct sy__heads *, size_t pages);

/* A mark stands in the highest byte of a word, where no address has anything; there is none in words of 32 bits. It is 0, or
 * SY__HEADS_MARKED and a number up to SY__HEADS_MOST_MARK. */
#define SY__HEADS_MARK_SHIFT 56u
#define SY__HEADS_MOST_MARK (sizeof(void *) == 8 ? 127u : 0u)
#define SY__HEADS_MARKED 128u

/* So many pages are a block's from now on, from its first one, with that mark. False: there is no memory to say so. */
bool sy__heads_set(struct sy__heads *, const struct sy_heap *, struct sy_page *, size_t count, unsigned mark);

/* What is said of the pages of a block, and of a page in the range. The next ones take it apart. */
static inline uintptr_t sy__heads_marked(const struct sy_page *page, unsigned mark)
{
	return (uintptr_t)((uint64_t)(uintptr_t)page | (uint64_t)mark << SY__HEADS_MARK_SHIFT);
}

static inline uintptr_t sy__heads_word(const struct sy__heads *heads, size_t page)
{
	return __atomic_load_n(&heads->table[page], __ATOMIC_RELAXED);
}

/* Where it has no mark, it is its block's descriptor. */
static inline bool sy__heads_is_marked(uintptr_t word)
{
	return SY__HEADS_MOST_MARK && (ptrdiff_t)word < 0;
}

static inline unsigned sy__heads_mark(uintptr_t word)
{
	return (unsigned)((uint64_t)word >> SY__HEADS_MARK_SHIFT);
}

static inline unsigned sy__heads_number(uintptr_t word)
{
	return sy__heads_mark(word) & SY__HEADS_MOST_MARK;
}

static inline struct sy_page *sy__heads_block(uintptr_t word)
{
	return (struct sy_page *)(SY__HEADS_MOST_MARK ? word << 8 >> 8 : word);
}

/* First page of the block that a page in the range is in. */
static inline struct sy_page *sy__heads_at(const struct sy__heads *heads, size_t page)
{
	return sy__heads_block(sy__heads_word(heads, page));
}

/* Of any address: the number of its page in the range, or at least `pages`. */
static inline size_t sy__heads_index(const struct sy__heads *heads, const void *address)
{
	return ((uintptr_t)address - heads->memory) >> SY_PAGE_SHIFT;
}

/* First page of the block that an address in the range is in. */
static inline struct sy_page *sy__heads_of(const struct sy__heads *heads, const void *address)
{
	return sy__heads_at(heads, sy__heads_index(heads, address));
}

#endif
