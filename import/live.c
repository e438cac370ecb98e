/*
 * Live objects and pages by address: hash maps with chains over one pool of entries. The number of an entry is the `object` column
 * of the trace. The entry that was freed last is reused first, so numbers stay small and dense.
 */
#include "import.h"

#include <stdlib.h>

void live_map_init(struct live_map *map)
{
	*map = (struct live_map){.mask = (1u << 16) - 1};
	map->buckets = grow(NULL, (size_t)map->mask + 1, sizeof *map->buckets);
	for (uint32_t i = 0; i <= map->mask; i++)
		map->buckets[i] = NONE;
}

void live_map_free(struct live_map *map)
{
	free(map->buckets);
}

void live_pool_free(struct live_pool *pool)
{
	free(pool->entries);
}

static uint32_t bucket_of(const struct live_map *map, uint64_t key)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 32) & map->mask;
}

uint32_t live_find(const struct live_map *map, const struct live_pool *pool, uint64_t key)
{
	uint32_t entry = map->buckets[bucket_of(map, key)];
	while (entry != NONE && pool->entries[entry].key != key)
		entry = pool->entries[entry].chain;
	return entry;
}

static void widen(struct live_map *map, struct live_pool *pool)
{
	uint32_t *old = map->buckets, old_mask = map->mask;
	map->mask = 2 * map->mask + 1;
	map->buckets = grow(NULL, (size_t)map->mask + 1, sizeof *map->buckets);
	for (uint32_t i = 0; i <= map->mask; i++)
		map->buckets[i] = NONE;
	for (uint32_t i = 0; i <= old_mask; i++)
		for (uint32_t entry = old[i], next; entry != NONE; entry = next) {
			uint32_t bucket = bucket_of(map, pool->entries[entry].key);
			next = pool->entries[entry].chain;
			pool->entries[entry].chain = map->buckets[bucket];
			map->buckets[bucket] = entry;
		}
	free(old);
}

static uint32_t take(struct live_pool *pool)
{
	uint32_t entry = pool->free;
	if (entry) { /* the free list counts entries from 1, so a zeroed pool is empty */
		pool->free = pool->entries[entry - 1].chain;
		return entry - 1;
	}
	RESERVE(pool->entries, pool->count, pool->room);
	return pool->count++;
}

uint32_t live_add(struct live_map *map, struct live_pool *pool, uint64_t key)
{
	if (unlikely(map->count > map->mask))
		widen(map, pool);
	uint32_t entry = take(pool), bucket = bucket_of(map, key);
	pool->entries[entry] = (struct live){.key = key, .chain = map->buckets[bucket]};
	map->buckets[bucket] = entry;
	map->count++;
	return entry;
}

void live_remove(struct live_map *map, struct live_pool *pool, uint32_t entry)
{
	uint32_t *link = &map->buckets[bucket_of(map, pool->entries[entry].key)];
	while (*link != entry)
		link = &pool->entries[*link].chain;
	*link = pool->entries[entry].chain;
	pool->entries[entry].chain = pool->free;
	pool->free = entry + 1;
	map->count--;
}
