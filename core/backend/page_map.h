/* From a page to the first page of its block. See page_map.c. */
#ifndef SY_PAGE_MAP_H
#define SY_PAGE_MAP_H

#include "../page_interface.h"

struct sy__page_map {
	uintptr_t memory;       /* address of the first page */
	size_t end;             /* pages from here on were never entered */
	size_t pages;           /* in the range */
	struct sy_page **table; /* for each of them, the descriptor of the first page of its block */
	uint8_t *usable;        /* for each CHUNK of the table: whether it is committed; NULL: no map was created */
	size_t reserved;        /* bytes of the mapping, from `usable` on */
};

/* Creates the map; false: no memory. Pages below `end` that were never entered lead to a descriptor of no use, unless there are gaps
 * of many megabytes between those that were, as between memory nodes. */
bool sy__page_map_create(struct sy__page_map *, const struct sy_heap *);
void sy__page_map_destroy(struct sy__page_map *);

/* Changes the number of pages, to at most the first one. False: those addresses are taken. */
bool sy__page_map_resize(struct sy__page_map *, size_t pages);

/* Enters the `count` pages of a block, from its first page on. False: no memory. */
bool sy__page_map_set(struct sy__page_map *, const struct sy_heap *, struct sy_page *, size_t count);

/* First page of the block that a page below `end` is in. */
static inline struct sy_page *sy__page_map_at(const struct sy__page_map *map, size_t page)
{
	return __atomic_load_n(&map->table[page], __ATOMIC_RELAXED);
}

/* Of any address: the number of its page in the range, or at least `end`. */
static inline size_t sy__page_map_index(const struct sy__page_map *map, const void *address)
{
	return ((uintptr_t)address - map->memory) >> SY_PAGE_SHIFT;
}

/* First page of the block that an address is in whose page is below `end`. */
static inline struct sy_page *sy__page_map_of(const struct sy__page_map *map, const void *address)
{
	return sy__page_map_at(map, sy__page_map_index(map, address));
}

#endif
