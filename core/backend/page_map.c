/*
 * The page map: the descriptor of the first page of the slab, or large allocation, that a page is of. For freeing without
 * knowing the cache.
 *
 * kfree gets an address and nothing else, and every free needs the slab's state, in the descriptor of its first page. The page's
 * own descriptor says which that is, but to ask the descriptors of all pages of a slab, for the way to one of them, is to
 * wait for another cache line in each free; and such a descriptor is what other CPUs may write to. So heaps of threads keep one
 * word for each page, which only changes when the page changes hands: where the descriptor of its block's first page is. Eight
 * pages share a cache line.
 *
 * Whoever takes pages for objects that kfree may get says so before any such object is handed out; what is said of
 * other pages is never looked at, so nothing is undone when pages are given back.
 *
 * They are reserved for the whole range of pages at once, and made usable in chunks as pages are used, so that they count
 * against no limit before. A block of pages is within one chunk, as both are aligned. Two threads may make the same chunk
 * usable at once: that is no harm. Whether a chunk is usable is an acquire, against the release of who made it so, that no
 * write to it is made before the word was seen; the mapping itself is changed for all processors at once. Words are relaxed: who
 * frees an object got it from somebody who got it after the word was written.
 */
#include "page_map.h"

#include "../page_interface.h"

#define CHUNK ((size_t)8 << SY_MAX_ORDER) /* pages: their words are as much memory as the largest pages of machines are */
#define CHUNK_BYTES (CHUNK * sizeof(struct sy_page *))

static size_t chunks(size_t pages)
{
	return (pages + CHUNK - 1) / CHUNK;
}

/* A byte for each chunk, in cache lines: they stand in front of the table, as its first words share their page then. */
static size_t there_bytes(size_t pages)
{
	return (chunks(pages) + SY_CACHE_LINE - 1) & ~(size_t)(SY_CACHE_LINE - 1);
}

/* Bytes from `there` on, with so many in front of the words of so many pages; whole pages of any system. */
static size_t needed(size_t front, size_t pages)
{
	return (front + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES + chunks(pages) * CHUNK_BYTES;
}

bool sy__page_map_create(struct sy__page_map *map, const struct sy_heap *heap)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)heap->pages;

	map->memory = (uintptr_t)base->memory;
	map->pages = (size_t)base->page_count;
	map->reserved = needed(there_bytes(map->pages), map->pages);
	map->there = sy__source_reserve(map->reserved);
	if (!map->there)
		return false;
	map->table = (struct sy_page **)(void *)(map->there + there_bytes(map->pages));
	if (sy__source_commit(map->there, there_bytes(map->pages)) != 0) {
		sy__page_map_destroy(map);
		return false;
	}
	return true;
}

void sy__page_map_destroy(struct sy__page_map *map)
{
	if (map->there)
		sy__source_release(map->there, map->reserved);
	map->there = NULL;
}

bool sy__page_map_resize(struct sy__page_map *map, size_t pages)
{
	size_t bytes = needed((size_t)((uint8_t *)map->table - map->there), pages);
	uint8_t *end = map->there + map->reserved;

	if (bytes > map->reserved && !sy__source_reserve_at(end, bytes - map->reserved))
		return false;
	for (size_t chunk = chunks(pages); chunk < chunks(map->pages); chunk++)
		map->there[chunk] = 0;
	map->pages = pages;
	if (bytes < map->reserved)
		sy__source_release(map->there + bytes, map->reserved - bytes);
	map->reserved = bytes;
	return true;
}

static SY__COLD bool make_usable(struct sy__page_map *map, size_t chunk)
{
	if (sy__source_commit(map->table + chunk * CHUNK, CHUNK_BYTES) != 0)
		return false;
	__atomic_store_n(&map->there[chunk], 1, __ATOMIC_RELEASE);
	return true;
}

bool sy__page_map_set(struct sy__page_map *map, const struct sy_heap *heap, struct sy_page *page, size_t count)
{
	size_t first = sy__page_map_index(map, sy__page_address(heap, page));
	struct sy_page **words = map->table + first;

	if (sy__unlikely(!__atomic_load_n(&map->there[first / CHUNK], __ATOMIC_ACQUIRE)) && !make_usable(map, first / CHUNK))
		return false;
	for (size_t i = 0; i < count; i++)
		__atomic_store_n(&words[i], page, __ATOMIC_RELAXED);
	return true;
}
