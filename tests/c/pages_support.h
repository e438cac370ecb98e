/* Configurations and checks that the tests of the page allocator share. */
#ifndef SY_TEST_PAGES_SUPPORT_H
#define SY_TEST_PAGES_SUPPORT_H

#include "check.h"
#include "../../core/pages/pages.h"

#define MIB ((uint64_t)1 << 20)

/* Free blocks as in /proc/pagetypeinfo. */
typedef uint64_t blocks_t[SY_MIGRATE_TYPES][SY_ORDERS];

/* Random numbers that are the same everywhere: xorshift64*. The state must not be 0. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static inline void name_zone(struct sy_zone_config *zone, const char *name, uint64_t start_page, uint64_t page_count)
{
	strcpy(zone->name, name);
	zone->start_page = start_page;
	zone->pages = page_count;
}

/* One zone, Normal, from page 0. */
static inline void one_zone(struct sy_pages_config *config, uint64_t page_count, unsigned slots)
{
	memset(config, 0, sizeof(*config));
	config->zone_count = 1;
	name_zone(&config->zones[0], "Normal", 0, page_count);
	config->slots = slots;
	config->pageblock_order = 9;
	config->cpu_lists = true;
}

/* A PC: DMA below 16 MiB, DMA32 below 4 GiB, the rest Normal. */
static inline void pc_config(struct sy_pages_config *config, uint64_t bytes, unsigned slots)
{
	static const struct {
		const char *name;
		uint64_t end;
	} zones[] = { { "DMA", 4096 }, { "DMA32", 1048576 }, { "Normal", UINT64_MAX } };
	uint64_t count = bytes / SY_PAGE_SIZE, start = 0;
	unsigned i;

	one_zone(config, count, slots);
	config->zone_count = 0;
	for (i = 0; i < 3 && start < count; i++) {
		uint64_t end = zones[i].end < count ? zones[i].end : count;

		name_zone(&config->zones[config->zone_count++], zones[i].name, start, end - start);
		start = end;
	}
}

/* Everything was given back: after draining, all managed pages are free, in blocks as large as can be. */
static inline void check_all_free(struct sy_pages *pages, const struct sy_pages_config *config)
{
	struct sy_pages_counts counts;
	unsigned slot, i, type, order;

	for (slot = 0; slot < config->slots; slot++)
		sy_pages_drain(pages, slot);
	for (i = 0; i < pages->zone_count; i++)
		while (sy__highatomic_unreserve(&pages->zones[i], SY_MOVABLE_TYPE))
			;
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_count(pages, &counts);
	for (i = 0; i < counts.zone_count; i++) {
		const struct sy_zone_counts *zone = &counts.zones[i];

		CHECK(zone->used[SY_USE_FREE] + zone->ungrown == zone->managed);
		CHECK(zone->used[SY_USE_PRETRACE] == zone->pages - zone->managed);
		for (order = 0; order < SY_ORDERS; order++) {
			uint64_t blocks = 0;

			for (type = 0; type < SY_MIGRATE_TYPES; type++)
				blocks += zone->free_blocks[type][order];
			CHECK(blocks == (order == SY_MAX_ORDER ? zone->managed >> order : zone->managed >> order & 1));
		}
	}
}

#endif
