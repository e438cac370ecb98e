/* The first page of the block that a page is of. See heads.c. */
#ifndef SY_PAGE_MAP_H
#define SY_PAGE_MAP_H

#include "../page_interface.h"

struct sy__page_map {
	uintptr_t memory;       /* address of the first page */
	size_t pages;           /* in the range */
	uintptr_t *table;       /* for each of them, the descriptor of the first page of its block, and its block's mark */
	uint8_t *there;         /* for each CHUNK of the table: whether it can be written to; NULL: not created */
	size_t reserved;        /* bytes from there on */
};

/* All are undefined at first. False: no memory. */
bool sy__page_map_create(struct sy__page_map *, const struct sy_heap *);
void sy__page_map_destroy(struct sy__page_map *);

/* The range has so many pages from now on, at most as many as at first. False: there are no addresses for that. */
bool sy__page_map_resize(struct sy__page_map *, size_t pages);

/* A mark stands in the highest byte of a word, where no address has anything; there is none in words of 32 bits. It is 0, or
 * SY__PAGE_MAP_MARKED and a number up to SY__PAGE_MAP_MOST_MARK. */
#define SY__PAGE_MAP_MARK_SHIFT 56u
#define SY__PAGE_MAP_MOST_MARK (sizeof(void *) == 8 ? 127u : 0u)
#define SY__PAGE_MAP_MARKED 128u

/* So many pages are a block's from now on, from its first one, with that mark. False: there is no memory to say so. */
bool sy__page_map_set(struct sy__page_map *, const struct sy_heap *, struct sy_page *, size_t count, unsigned mark);

/* What is said of the pages of a block, and of a page in the range. The next ones take it apart. */
static inline uintptr_t sy__page_map_marked(const struct sy_page *page, unsigned mark)
{
	return (uintptr_t)((uint64_t)(uintptr_t)page | (uint64_t)mark << SY__PAGE_MAP_MARK_SHIFT);
}

static inline uintptr_t sy__page_map_word(const struct sy__page_map *heads, size_t page)
{
	return __atomic_load_n(&heads->table[page], __ATOMIC_RELAXED);
}

/* Where it has no mark, it is its block's descriptor. */
static inline bool sy__page_map_is_marked(uintptr_t word)
{
	return SY__PAGE_MAP_MOST_MARK && (ptrdiff_t)word < 0;
}

static inline unsigned sy__page_map_mark(uintptr_t word)
{
	return (unsigned)((uint64_t)word >> SY__PAGE_MAP_MARK_SHIFT);
}

static inline unsigned sy__page_map_number(uintptr_t word)
{
	return sy__page_map_mark(word) & SY__PAGE_MAP_MOST_MARK;
}

static inline struct sy_page *sy__page_map_block(uintptr_t word)
{
	return (struct sy_page *)(SY__PAGE_MAP_MOST_MARK ? word << 8 >> 8 : word);
}

/* First page of the block that a page in the range is in. */
static inline struct sy_page *sy__page_map_at(const struct sy__page_map *heads, size_t page)
{
	return sy__page_map_block(sy__page_map_word(heads, page));
}

/* Of any address: the number of its page in the range, or at least `pages`. */
static inline size_t sy__page_map_index(const struct sy__page_map *heads, const void *address)
{
	return ((uintptr_t)address - heads->memory) >> SY_PAGE_SHIFT;
}

/* First page of the block that an address in the range is in. */
static inline struct sy_page *sy__page_map_of(const struct sy__page_map *heads, const void *address)
{
	return sy__page_map_at(heads, sy__page_map_index(heads, address));
}

#endif
