/* A small scratch file in memory, with something in every section: the raw material of the replay's tests. */
#ifndef REPLAY_IMAGE_H
#define REPLAY_IMAGE_H

#include "programs/scratch.h"

#define IMAGE_EVENTS 400
#define IMAGE_HANDLES 48
#define IMAGE_CACHES 3
#define IMAGE_OLDER 8
#define IMAGE_SECTIONS 9

struct image {
	_Alignas(SCRATCH_ALIGN) struct scratch_header header;
	struct scratch_section sections[IMAGE_SECTIONS];
	_Alignas(SCRATCH_ALIGN) struct scratch_event events[IMAGE_EVENTS];
	_Alignas(SCRATCH_ALIGN) struct scratch_cache caches[IMAGE_CACHES];
	_Alignas(SCRATCH_ALIGN) struct scratch_zone zones[2];
	_Alignas(SCRATCH_ALIGN) struct scratch_free_blocks free_blocks[1];
	_Alignas(SCRATCH_ALIGN) struct scratch_older older[IMAGE_OLDER];
	_Alignas(SCRATCH_ALIGN) struct scratch_run run[1];
	_Alignas(SCRATCH_ALIGN) uint32_t order[IMAGE_CACHES];
	_Alignas(SCRATCH_ALIGN) struct scratch_older laid[IMAGE_OLDER];
	_Alignas(SCRATCH_ALIGN) struct scratch_grace graces[2];
};

static inline struct scratch_section image_section(const char *name, size_t offset, size_t count, size_t bytes)
{
	struct scratch_section section = { .offset = offset, .count = count, .record_bytes = (uint32_t)bytes };

	memcpy(section.name, name, strlen(name));
	return section;
}

#define IMAGE_SECTION(image, name, member) \
	image_section(name, offsetof(struct image, member), sizeof (image)->member / sizeof *(image)->member, \
	              sizeof *(image)->member)

/* What a handle holds while the events are made up. */
struct image_holder {
	uint8_t kind; /* of its allocation */
	uint16_t cache;
	uint8_t order;
	bool live;
};

static inline struct scratch_event image_event(struct image_holder *holders, uint64_t *random, uint32_t number)
{
	uint32_t handle = (uint32_t)(check_random(random) % IMAGE_HANDLES);
	struct image_holder *holder = &holders[handle];
	struct scratch_event event = { .time_ns = number * UINT64_C(400000), .handle = handle, .node = SY_ANY_NODE,
		                       .cpu = (uint16_t)(check_random(random) % 6), .cache = NO_CACHE };

	if (!holder->live) {
		holder->kind = (uint8_t)(check_random(random) % 3 * 2);
		holder->cache = holder->kind == EVENT_CACHE_ALLOC ? (uint16_t)(check_random(random) % IMAGE_CACHES) : NO_CACHE;
		holder->order = holder->kind == EVENT_PAGE_ALLOC ? (uint8_t)(check_random(random) % 4) : 0;
		event.size = (uint32_t)(check_random(random) % 9000);
		event.migrate = (uint8_t)(check_random(random) % SY_MIGRATE_TYPES);
		event.call_site = (uint32_t)(check_random(random) % 10);
	}
	event.kind = (uint8_t)(holder->kind + holder->live);
	event.cache = holder->cache;
	event.order = holder->order;
	event.flags = check_random(random) % 8 ? 0 : EVENT_IMPLIED;
	holder->live = !holder->live;
	return event;
}

static inline void image_fill_events(struct image *image)
{
	struct image_holder holders[IMAGE_HANDLES] = { 0 };
	uint64_t random = 42;

	for (unsigned i = 0; i < IMAGE_OLDER / 2; i++)
		holders[i] = (struct image_holder){ .kind = EVENT_CACHE_ALLOC, .cache = (uint16_t)(i % IMAGE_CACHES),
			                            .live = true };
	for (uint32_t i = 0; i < IMAGE_EVENTS; i++) {
		image->events[i] = image_event(holders, &random, i);
		if (i % 50 != 49)
			continue;
		holders[image->events[i].handle].live = !holders[image->events[i].handle].live; /* it does not happen */
		image->events[i].kind = i == 49 ? EVENT_SNAPSHOT : i == 99 ? EVENT_UNKNOWN_FREE :
		                         i == 149 ? EVENT_UNKNOWN_PAGE_FREE : EVENT_OLDER_PAGE_FREE;
		image->events[i].handle = i == 49 ? 0 : i;
		image->events[i].order = 0;
	}
}

static inline void image_make(struct image *image)
{
	static const struct scratch_cache caches[IMAGE_CACHES] = {
		{ .name = "dentry", .object_size = 192, .flags = SY_CACHE_RECLAIMABLE },
		{ .name = "inode", .object_size = 600, .flags = SY_CACHE_HWCACHE_ALIGN, .constructor = 1 },
		{ .name = "anon_vma", .object_size = 80, .flags = SY_CACHE_TYPESAFE_BY_RCU },
	};

	memset(image, 0, sizeof *image);
	memcpy(image->header.magic, SCRATCH_MAGIC, sizeof image->header.magic);
	image->header.version = SCRATCH_VERSION;
	image->header.sections = IMAGE_SECTIONS;
	image->sections[0] = IMAGE_SECTION(image, "events", events);
	image->sections[1] = IMAGE_SECTION(image, "caches", caches);
	image->sections[2] = IMAGE_SECTION(image, "zones", zones);
	image->sections[3] = IMAGE_SECTION(image, "freeblk", free_blocks);
	image->sections[4] = IMAGE_SECTION(image, "older", older);
	image->sections[5] = IMAGE_SECTION(image, "run", run);
	image->sections[6] = IMAGE_SECTION(image, "order", order);
	image->sections[7] = IMAGE_SECTION(image, "laid", laid);
	image->sections[8] = IMAGE_SECTION(image, "graces", graces);
	image_fill_events(image);
	for (uint32_t i = 0; i < IMAGE_CACHES; i++)
		image->order[i] = IMAGE_CACHES - 1 - i;
	memcpy(image->caches, caches, sizeof caches);
	image->zones[0] = (struct scratch_zone){ .name = "DMA", .start_page = 1, .pages = 4095, .managed = 3840 };
	image->zones[1] = (struct scratch_zone){ .name = "Normal", .start_page = 4096, .pages = 16384, .managed = 16384 };
	image->free_blocks[0].zone = 1;
	image->free_blocks[0].free_blocks[SY_MOVABLE_TYPE][SY_MAX_ORDER] = 10;
	image->free_blocks[0].free_blocks[SY_UNMOVABLE][3] = 20;
	image->free_blocks[0].pageblocks[SY_MOVABLE_TYPE] = 28;
	image->free_blocks[0].pageblocks[SY_UNMOVABLE] = 4;
	for (unsigned i = 0; i < IMAGE_OLDER; i++)
		image->older[i] = (struct scratch_older){ .handle = i < IMAGE_OLDER / 2 ? i : i % 2 ? VACATED : NO_HANDLE, .size = 100 + i,
			                                  .cache = i < IMAGE_OLDER / 2 ? (uint16_t)(i % IMAGE_CACHES) : NO_CACHE,
			                                  .cpu = (uint16_t)i };
	for (unsigned i = 0; i < IMAGE_OLDER; i++)
		image->laid[i] = image->older[IMAGE_OLDER - 1 - i];
	image->laid[IMAGE_OLDER - 1].handle = VACATED; /* the handle is one that only the first list has */
	for (unsigned i = 0; i < 2; i++)
		image->graces[i] = (struct scratch_grace){ .begins_ns = i * 10000, .ends_ns = i * 10000 + 5000 };
	image->run[0] = (struct scratch_run){ .handles = IMAGE_HANDLES, .cpus = 4, .nodes = 1, .pageblock_order = 9,
		                              .call_sites = 10, .snapshots = 1, .span_ns = UINT64_C(400000) * IMAGE_EVENTS,
		                              .grace_ns = 10000000 };
}

#endif
