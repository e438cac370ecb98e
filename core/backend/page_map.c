/*
 * The page map: for each page, the descriptor of the first page of its slab or large allocation.
 *
 * Why. kfree gets an address only, and every free needs the state of the slab, which is in the descriptor of its first page. The
 * descriptor of the object's own page leads there too. But each page of a slab has another descriptor, so nearly every free would
 * miss the cache, and other CPUs write to these descriptors. So heaps of threads keep one word for each page. It changes only
 * when the page changes hands, and eight pages share a cache line.
 *
 * Pages for objects are entered here before any object is handed out. Entries stay when pages go back, and lead to a
 * descriptor that tells of other pages then, or of none. Programs that free wrong addresses look up any page.
 *
 * Memory. The map reserves addresses for the whole range of pages and commits them in chunks, so that it counts against no limit
 * in advance. A block of pages never crosses chunks, as both are aligned. Two threads may commit one chunk at once, which does no
 * harm.
 *
 * Memory order. A load of usable[chunk] acquires and the store releases, so that no thread writes to a chunk before it saw the
 * chunk committed; the mapping itself changes for all processors at once. Words of the map are relaxed: an object reaches the
 * thread that frees it by some synchronisation of the program's, and the word was written before.
 */
#include "page_map.h"

#include "../page_interface.h"

#define CHUNK ((size_t)8 << SY_MAX_ORDER) /* pages; the words of a chunk fill a huge page */
#define CHUNK_BYTES (CHUNK * sizeof(struct sy_page *))

static size_t chunks(size_t pages)
{
	return (pages + CHUNK - 1) / CHUNK;
}

/* A byte for each chunk, rounded up to cache lines. They stand in front of the table, on one page with its first words. */
static size_t usable_bytes(size_t pages)
{
	return (chunks(pages) + SY_CACHE_LINE - 1) & ~(size_t)(SY_CACHE_LINE - 1);
}

/* Bytes of the mapping, for `front` bytes before the words of `pages` pages; whole pages on any system. */
static size_t needed(size_t front, size_t pages)
{
	return (front + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES + chunks(pages) * CHUNK_BYTES;
}

bool sy__page_map_create(struct sy__page_map *map, const struct sy_heap *heap)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)heap->pages;

	map->memory = (uintptr_t)base->memory;
	map->pages = (size_t)base->page_count;
	map->reserved = needed(usable_bytes(map->pages), map->pages);
	map->usable = sy__source_reserve(map->reserved);
	if (!map->usable)
		return false;
	map->table = (struct sy_page **)(void *)(map->usable + usable_bytes(map->pages));
	if (sy__source_commit(map->usable, usable_bytes(map->pages)) != 0) {
		sy__page_map_destroy(map);
		return false;
	}
	return true;
}

void sy__page_map_destroy(struct sy__page_map *map)
{
	if (map->usable)
		sy__source_release(map->usable, map->reserved);
	map->usable = NULL;
}

bool sy__page_map_resize(struct sy__page_map *map, size_t pages)
{
	size_t bytes = needed((size_t)((uint8_t *)map->table - map->usable), pages);
	uint8_t *end = map->usable + map->reserved;

	if (bytes > map->reserved && !sy__source_reserve_at(end, bytes - map->reserved))
		return false;
	for (size_t chunk = chunks(pages); chunk < chunks(map->pages); chunk++)
		map->usable[chunk] = 0;
	map->pages = pages;
	if (map->end > pages)
		map->end = pages;
	if (bytes < map->reserved)
		sy__source_release(map->usable + bytes, map->reserved - bytes);
	map->reserved = bytes;
	return true;
}

static SY__COLD bool make_usable(struct sy__page_map *map, size_t chunk)
{
	if (sy__source_commit(map->table + chunk * CHUNK, CHUNK_BYTES) != 0)
		return false;
	__atomic_store_n(&map->usable[chunk], 1, __ATOMIC_RELEASE);
	return true;
}

/* Raises the end of the map to this page. Pages below it that were never entered get the empty entry, unless their owner enters them at
 * this moment. */
static SY__COLD void extend(struct sy__page_map *map, size_t page)
{
	static struct sy_page unused; /* nobody writes to it */
	size_t from = __atomic_load_n(&map->end, __ATOMIC_RELAXED), to = page;

	while (to > from && __atomic_load_n(&map->usable[(to - 1) / CHUNK], __ATOMIC_ACQUIRE)) {
		struct sy_page *none = NULL;

		__atomic_compare_exchange_n(&map->table[--to], &none, &unused, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	while (from < page && !__atomic_compare_exchange_n(&map->end, &from, page, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

bool sy__page_map_set(struct sy__page_map *map, const struct sy_heap *heap, struct sy_page *page, size_t count)
{
	size_t first = sy__page_map_index(map, sy__page_address(heap, page));
	struct sy_page **words = map->table + first;

	if (sy__unlikely(!__atomic_load_n(&map->usable[first / CHUNK], __ATOMIC_ACQUIRE)) && !make_usable(map, first / CHUNK))
		return false;
	for (size_t i = 0; i < count; i++)
		__atomic_store_n(&words[i], page, __ATOMIC_RELAXED);
	if (sy__unlikely(first + count > __atomic_load_n(&map->end, __ATOMIC_RELAXED)))
		extend(map, first + count);
	return true;
}
