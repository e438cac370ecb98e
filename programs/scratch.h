/*
 * The scratch file: a trace as flat arrays, written by the lab for one replay and deleted after it.
 *
 * Little endian. A header, then a table of sections, then the sections, each an array of fixed records at an offset
 * that is a multiple of 64. "events" and "run" must be there; the others may be absent, which is the same as empty.
 *
 * Handles join an allocation to its free: small numbers, reused after the free, one numbering for objects and pages. A recorded free
 * may have no recorded allocation. The lab then places an implied allocation (EVENT_IMPLIED), or an EVENT_OLDER_PAGE_FREE for a
 * page older than the trace. Otherwise the free is counted as EVENT_UNKNOWN_FREE or EVENT_UNKNOWN_PAGE_FREE.
 */
#ifndef REPLAY_SCRATCH_H
#define REPLAY_SCRATCH_H

#include <slabyard/slabyard.h>

#include "fault.h"

#define SCRATCH_MAGIC "SLABYARD"
#define SCRATCH_VERSION 3u
#define SCRATCH_ALIGN 64u
#define NO_HANDLE UINT32_MAX /* of an older object: never freed in the trace */
#define VACATED (UINT32_MAX - 1) /* of an older object: freed once all older objects are there, for the hole that it leaves */
#define NO_CACHE UINT16_MAX  /* of an older object: from kmalloc */

enum event_kind {
	EVENT_KMALLOC,
	EVENT_KFREE,
	EVENT_CACHE_ALLOC,
	EVENT_CACHE_FREE,
	EVENT_PAGE_ALLOC, /* environment only */
	EVENT_PAGE_FREE,
	EVENT_SNAPSHOT,        /* handle: its number */
	EVENT_OLDER_PAGE_FREE, /* handle: low 32 bits of the recorded page frame number */
	EVENT_UNKNOWN_FREE,    /* of an object: counted and skipped */
	EVENT_UNKNOWN_PAGE_FREE, /* likewise */
	EVENT_KINDS
};

#define EVENT_IMPLIED (1u << 31) /* in flags, above enum sy_flags: not recorded, but follows from the record */

struct scratch_header {
	char magic[8];
	uint32_t version, sections;
};

struct scratch_section {
	char name[8]; /* NUL padded */
	uint64_t offset, count;
	uint32_t record_bytes, reserved;
};

struct scratch_event {
	uint64_t time_ns; /* never decreasing */
	uint32_t handle, size, call_site;
	uint32_t flags; /* enum sy_flags, EVENT_IMPLIED */
	uint16_t cache, cpu;
	uint8_t kind, order;
	uint8_t migrate; /* enum sy_migrate */
	int8_t node;     /* SY_ANY_NODE: any */
};

struct scratch_cache {
	char name[SY_NAME_BYTES];
	uint32_t object_size, align; /* bytes; align 0: the default */
	uint32_t flags;              /* enum sy_cache_flags */
	uint16_t constructor;        /* 0 or 1 */
	uint16_t sheaf_capacity;     /* as struct sy_cache_config has it */
};

struct scratch_zone {
	char name[SY_ZONE_NAME_BYTES];
	uint32_t node, reserved;
	uint64_t start_page, pages, managed, min, low, high;
};

struct scratch_free_blocks {
	uint32_t zone, reserved;
	uint64_t free_blocks[SY_MIGRATE_TYPES][SY_ORDERS];
	uint64_t pageblocks[SY_MIGRATE_TYPES];
};

struct scratch_older {
	uint32_t handle, size;
	uint16_t cache, cpu;
	uint32_t flags;
};

/* Grace periods of the recorded kernel: memory that began to wait by begins_ns waited until ends_ns. Neither ever decreases. */
struct scratch_grace {
	uint64_t begins_ns, ends_ns;
};

struct scratch_run {
	uint32_t handles; /* every handle is less */
	uint32_t cpus, nodes, pageblock_order;
	uint32_t call_sites, snapshots; /* every call site, every number of a snapshot is less */
	uint64_t span_ns;               /* length of the trace; its last event may be later by a rounding error */
	uint64_t grace_ns;              /* length of an RCU grace period */
	uint16_t kernel, merges;        /* struct sy_kernel: its version; 0 or 1 */
	uint32_t longest_wait_us;       /* of the recorded allocator for a grace period, at most; 0: not known */
	uint32_t beside, reserved;      /* 0 or 1: slabs in which older objects stay are no part of what is held */
};

_Static_assert(sizeof(struct scratch_header) == 16, "header");
_Static_assert(sizeof(struct scratch_section) == 32, "section");
_Static_assert(sizeof(struct scratch_event) == 32, "event");
_Static_assert(sizeof(struct scratch_cache) == 64, "cache");
_Static_assert(sizeof(struct scratch_zone) == 72, "zone");
_Static_assert(sizeof(struct scratch_free_blocks) == 392, "free blocks");
_Static_assert(sizeof(struct scratch_older) == 16, "older object");
_Static_assert(sizeof(struct scratch_grace) == 16, "grace period");
_Static_assert(sizeof(struct scratch_run) == 56, "run");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the scratch file is read in place, and is little endian");

/* A validated scratch file. Nothing in these arrays needs another check. */
struct scratch {
	const struct scratch_event *events;
	const struct scratch_cache *caches;
	const uint32_t *order; /* numbers of the caches in the order of their creation; NULL: as they stand */
	const struct scratch_zone *zones;
	const struct scratch_free_blocks *free_blocks;
	const struct scratch_older *older;
	const struct scratch_older *laid; /* those in slabs as the recorded allocator's lay, for replays of it; NULL: not known */
	const struct scratch_grace *graces; /* for the same */
	const struct scratch_run *run;
	uint64_t event_count, cache_count, order_count, zone_count, free_block_count, older_count, laid_count, grace_count;
	void *mapping; /* or NULL: the caller's memory */
	size_t mapping_bytes;
};

/* The number of the cache that is created at this turn. */
static inline uint64_t scratch_cache_at(const struct scratch *scratch, uint64_t turn)
{
	return scratch->order ? scratch->order[turn] : turn;
}

/* Maps and validates a file. False: see fault; nothing stays open. */
bool scratch_open(struct scratch *, const char *path, struct fault *);

/* Validates a file image in memory, aligned to SCRATCH_ALIGN, which must outlive the scratch. */
bool scratch_parse(struct scratch *, const void *bytes, size_t size, struct fault *);

void scratch_close(struct scratch *);

#endif
