/*
 * What is known of each page frame: never seen, freed, a slab older than the capture, or in which live run it lies. A hash of
 * chunks of 512 frames, because a capture touches a small part of a machine's memory, in clusters. The last chunk is remembered:
 * events that are neighbours in time are often neighbours in memory.
 */
#include "import.h"

#include <stdlib.h>

enum { CHUNK_PAGES = 512 };

struct chunk {
	uint64_t number; /* first frame / CHUNK_PAGES */
	uint32_t entries[CHUNK_PAGES];
};

void page_map_init(struct page_map *map)
{
	*map = (struct page_map){.mask = 1023};
	map->slots = zeroed(map->mask + 1, sizeof *map->slots);
}

void page_map_free(struct page_map *map)
{
	for (uint32_t i = 0; i <= map->mask; i++)
		free(map->slots[i]);
	free(map->slots);
}

static uint32_t slot_of(const struct page_map *map, uint64_t number)
{
	uint32_t slot = (uint32_t)((number * 0x9e3779b97f4a7c15u) >> 32) & map->mask;
	while (map->slots[slot] && map->slots[slot]->number != number)
		slot = (slot + 1) & map->mask;
	return slot;
}

static void widen(struct page_map *map)
{
	struct chunk **old = map->slots;
	uint32_t old_mask = map->mask;
	map->mask = 2 * map->mask + 1;
	map->slots = zeroed((size_t)map->mask + 1, sizeof *map->slots);
	for (uint32_t i = 0; i <= old_mask; i++)
		if (old[i])
			map->slots[slot_of(map, old[i]->number)] = old[i];
	free(old);
}

static struct chunk *chunk_at(struct page_map *map, uint64_t number)
{
	if (2 * map->count > map->mask)
		widen(map);
	uint32_t slot = slot_of(map, number);
	if (!map->slots[slot]) {
		map->slots[slot] = zeroed(1, sizeof *map->slots[slot]);
		map->slots[slot]->number = number;
		map->count++;
	}
	return map->slots[slot];
}

uint32_t page_get(struct page_map *map, uint64_t pfn)
{
	struct chunk *chunk = map->recent;
	if (unlikely(!chunk || chunk->number != pfn / CHUNK_PAGES)) {
		chunk = map->slots[slot_of(map, pfn / CHUNK_PAGES)];
		if (!chunk)
			return PAGE_UNSEEN;
		map->recent = chunk;
	}
	return chunk->entries[pfn % CHUNK_PAGES];
}

void page_fill(struct page_map *map, uint64_t pfn, uint64_t count, uint32_t entry)
{
	while (count) {
		struct chunk *chunk = map->recent;
		if (!chunk || chunk->number != pfn / CHUNK_PAGES)
			map->recent = chunk = chunk_at(map, pfn / CHUNK_PAGES);
		uint64_t first = pfn % CHUNK_PAGES, here = CHUNK_PAGES - first;
		if (here > count)
			here = count;
		for (uint64_t i = first; i < first + here; i++)
			chunk->entries[i] = entry;
		pfn += here;
		count -= here;
	}
}
