/*
 * Reading and validating the scratch file (scratch.h).
 *
 * The file is mapped, not read: the arrays are used where they lie. One pass over everything verifies what the replaying passes rely
 * on, so that their loops check nothing:
 *
 *   sections   known, not twice, aligned, of the right record size, within the file
 *   run        counts that the program can hold: CPU slots, nodes, call sites; the pageblock order
 *   caches     sizes, alignments and flags that sy_cache_create accepts, unless memory is short
 *   zones      what sy_pages_config_error accepts is decided there; here only that sums can't overflow
 *   events     known kinds and flags, cache, call site, order, migrate type and node in range, time never decreasing
 *   handles    in range; allocated only while free, and freed only while allocated, by the kind (and to the cache) that allocated
 *              them. So the pass keeps the holder of each handle.
 *
 * Tables whose size section run tells come from calloc, which touches nothing before its use. So a damaged count costs address space
 * only, or is refused. Every refusal is one line that names the section and the record. A refused file was cut short by a full
 * disk, or damaged; the lab makes a new one from the trace.
 */
#define _GNU_SOURCE /* open, mmap, fstat, madvise */
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_HANDLES (1u << 28)
#define MAX_CALL_SITES (1u << 24)
#define MAX_SNAPSHOTS (1u << 16)
#define MAX_PAGE ((uint64_t)1 << 32) /* end of the last zone: 16 TiB */
#define MAX_TIME ((uint64_t)1 << 62) /* nanoseconds: 146 years */

#define KNOWN_FLAGS ((SY_NO_RECLAIM << 1) - 1u)
#define KNOWN_CACHE_FLAGS ((uint32_t)(2 * SY_CACHE_LINK_INSIDE - 1) & ~(uint32_t)SY_CACHE_KMALLOC) /* all but the heap's own mark */

/* The fields that each kind of event uses, and that are checked. */
enum field {
	ALLOCATES = 1u << 0, /* takes the handle */
	FREES = 1u << 1,     /* gives the handle back */
	OF_CACHE = 1u << 2,
	OF_PAGES = 1u << 3,
	NUMBERED = 1u << 4, /* the handle is the number of a snapshot */
};

static const unsigned fields[EVENT_KINDS] = {
	[EVENT_KMALLOC] = ALLOCATES,
	[EVENT_KFREE] = FREES,
	[EVENT_CACHE_ALLOC] = ALLOCATES | OF_CACHE,
	[EVENT_CACHE_FREE] = FREES | OF_CACHE,
	[EVENT_PAGE_ALLOC] = ALLOCATES | OF_PAGES,
	[EVENT_PAGE_FREE] = FREES | OF_PAGES,
	[EVENT_SNAPSHOT] = NUMBERED,
	[EVENT_OLDER_PAGE_FREE] = OF_PAGES,
	[EVENT_UNKNOWN_FREE] = 0,
	[EVENT_UNKNOWN_PAGE_FREE] = 0,
};

/* State of a handle. */
#define HELD_BY_NOBODY 0u
#define HELD_BY_KMALLOC 1u
#define HELD_BY_PAGES 2u
#define HELD_BY_CACHE(number) (3u + (number))

/* ---- Sections ------------------------------------------------------------------------------------------------- */

struct wanted {
	const char *name;
	uint32_t record_bytes;
	const void **records;
	uint64_t *count;
};

static bool find_sections(const unsigned char *bytes, size_t size, uint32_t sections, struct wanted *wanted,
                          size_t wanted_count, struct fault *fault)
{
	for (uint32_t i = 0; i < sections; i++) {
		struct scratch_section section;
		struct wanted *at = wanted, *end = wanted + wanted_count;

		memcpy(&section, bytes + sizeof(struct scratch_header) + i * sizeof section, sizeof section);
		while (at < end && strncmp(section.name, at->name, sizeof section.name) != 0)
			at++;
		if (at == end)
			return refuse(fault, "the scratch file is damaged: section %u has an unknown name", i);
		if (*at->records)
			return refuse(fault, "the scratch file is damaged: section %s stands in it twice", at->name);
		if (section.record_bytes != at->record_bytes)
			return refuse(fault, "the scratch file is damaged: records of section %s have %u bytes, expected %u",
			              at->name, section.record_bytes, at->record_bytes);
		if (section.offset % SCRATCH_ALIGN)
			return refuse(fault, "the scratch file is damaged: section %s is not aligned to %u bytes", at->name,
			              SCRATCH_ALIGN);
		if (section.offset > size || section.count > (size - section.offset) / section.record_bytes)
			return refuse(fault, "the scratch file is cut short: section %s ends beyond its %zu bytes", at->name, size);
		*at->records = bytes + section.offset;
		*at->count = section.count;
	}
	return true;
}

static bool read_sections(struct scratch *scratch, const void *bytes, size_t size, struct fault *fault)
{
	struct scratch_header header;
	const void *records[9] = { NULL };
	uint64_t runs = 0;
	struct wanted wanted[] = {
		{ "events", sizeof(struct scratch_event), &records[0], &scratch->event_count },
		{ "caches", sizeof(struct scratch_cache), &records[1], &scratch->cache_count },
		{ "zones", sizeof(struct scratch_zone), &records[2], &scratch->zone_count },
		{ "freeblk", sizeof(struct scratch_free_blocks), &records[3], &scratch->free_block_count },
		{ "older", sizeof(struct scratch_older), &records[4], &scratch->older_count },
		{ "run", sizeof(struct scratch_run), &records[5], &runs },
		{ "order", sizeof(uint32_t), &records[6], &scratch->order_count },
		{ "laid", sizeof(struct scratch_older), &records[7], &scratch->laid_count },
		{ "graces", sizeof(struct scratch_grace), &records[8], &scratch->grace_count },
	};
	size_t known = sizeof wanted / sizeof *wanted;

	if (size < sizeof header || memcmp(bytes, SCRATCH_MAGIC, sizeof header.magic) != 0)
		return refuse(fault, "this is no scratch file of slabyard: it does not begin with " SCRATCH_MAGIC);
	memcpy(&header, bytes, sizeof header);
	if (header.version != SCRATCH_VERSION)
		return refuse(fault, "the scratch file has version %u, this program reads version %u: install both of one release",
		              header.version, SCRATCH_VERSION);
	if (header.sections > known || size < sizeof header + header.sections * sizeof(struct scratch_section))
		return refuse(fault, "the scratch file is cut short: it has no room for the table of its %u sections",
		              header.sections);
	if (!find_sections(bytes, size, header.sections, wanted, known, fault))
		return false;
	if (!records[0] || !records[5] || runs != 1)
		return refuse(fault, "the scratch file is damaged: it needs a section events, and a section run with one record");

	scratch->events = records[0];
	scratch->caches = records[1];
	scratch->zones = records[2];
	scratch->free_blocks = records[3];
	scratch->older = records[4];
	scratch->run = records[5];
	scratch->order = records[6];
	scratch->laid = records[7];
	scratch->graces = records[8];
	return true;
}

/* ---- Everything but the events -------------------------------------------------------------------------------- */

static bool check_run(const struct scratch *scratch, struct fault *fault)
{
	const struct scratch_run *run = scratch->run;

	if (run->cpus < 1 || run->cpus > SY_MAX_SLOTS)
		return refuse(fault, "the trace has %u CPUs; 1 to %d can be replayed", run->cpus, SY_MAX_SLOTS);
	if (run->nodes < 1 || run->nodes > SY_MAX_NODES)
		return refuse(fault, "the trace has %u memory nodes; 1 to %d can be replayed", run->nodes, SY_MAX_NODES);
	if (run->pageblock_order < 1 || run->pageblock_order > SY_MAX_ORDER)
		return refuse(fault, "the trace has pageblocks of order %u; 1 to %d can be replayed", run->pageblock_order,
		              SY_MAX_ORDER);
	if (run->handles > MAX_HANDLES)
		return refuse(fault, "the trace has %u handles; at most %u can be replayed", run->handles, MAX_HANDLES);
	if (run->call_sites > MAX_CALL_SITES || run->snapshots > MAX_SNAPSHOTS)
		return refuse(fault, "the trace has %u call sites and %u snapshots; at most %u and %u can be replayed",
		              run->call_sites, run->snapshots, MAX_CALL_SITES, MAX_SNAPSHOTS);
	if (run->span_ns > MAX_TIME)
		return refuse(fault, "the scratch file is damaged: the trace lasts for more than a century");
	return true;
}

static bool power_of_two(uint32_t value)
{
	return value && !(value & (value - 1));
}

static bool check_caches(const struct scratch *scratch, struct fault *fault)
{
	if (scratch->cache_count >= NO_CACHE)
		return refuse(fault, "the trace has %" PRIu64 " caches; at most %u can be replayed", scratch->cache_count, NO_CACHE - 1u);
	for (uint64_t i = 0; i < scratch->cache_count; i++) {
		const struct scratch_cache *cache = &scratch->caches[i];

		if (!memchr(cache->name, '\0', sizeof cache->name))
			return refuse(fault, "the scratch file is damaged: the name of cache %" PRIu64 " does not end", i);
		if (!cache->object_size || cache->object_size > SY_PAGE_SIZE << SY_MAX_ORDER)
			return refuse(fault, "cache %" PRIu64 " (%s) has objects of %u bytes; 1 to %zu can be replayed", i, cache->name,
			              cache->object_size, SY_PAGE_SIZE << SY_MAX_ORDER);
		if (cache->align && (!power_of_two(cache->align) || cache->align > SY_PAGE_SIZE))
			return refuse(fault, "cache %" PRIu64 " (%s) aligns to %u bytes: no power of two up to a page", i, cache->name,
			              cache->align);
		if (cache->flags & ~KNOWN_CACHE_FLAGS || cache->constructor > 1)
			return refuse(fault, "the scratch file is damaged: cache %" PRIu64 " has unknown flags", i);
	}
	return true;
}

/* Each cache must be in the order of creation once. */
static bool check_order(const struct scratch *scratch, struct fault *fault)
{
	unsigned char seen[NO_CACHE] = { 0 };

	if (scratch->order && scratch->order_count != scratch->cache_count)
		return refuse(fault, "the scratch file is damaged: an order of %" PRIu64 " caches for %" PRIu64,
		              scratch->order_count, scratch->cache_count);
	for (uint64_t i = 0; i < scratch->order_count; i++)
		if (scratch->order[i] >= scratch->cache_count || seen[scratch->order[i]]++)
			return refuse(fault, "the scratch file is damaged: cache %u is out of range or twice in the order of creation",
			              scratch->order[i]);
	return true;
}

static bool check_zones(const struct scratch *scratch, struct fault *fault)
{
	if (scratch->zone_count > SY_MAX_ZONES)
		return refuse(fault, "the trace has %" PRIu64 " zones; at most %d can be replayed", scratch->zone_count, SY_MAX_ZONES);
	for (uint64_t i = 0; i < scratch->zone_count; i++) {
		const struct scratch_zone *zone = &scratch->zones[i];

		if (!memchr(zone->name, '\0', sizeof zone->name))
			return refuse(fault, "the scratch file is damaged: the name of zone %" PRIu64 " does not end", i);
		if (zone->node >= scratch->run->nodes)
			return refuse(fault, "zone %" PRIu64 " (%s) is on memory node %u of %u", i, zone->name, zone->node, scratch->run->nodes);
		if (zone->start_page > MAX_PAGE || zone->pages > MAX_PAGE || zone->managed > zone->pages)
			return refuse(fault, "the scratch file is damaged: zone %" PRIu64 " (%s) has impossible bounds", i, zone->name);
	}
	for (uint64_t i = 0; i < scratch->free_block_count; i++)
		if (scratch->free_blocks[i].zone >= scratch->zone_count)
			return refuse(fault, "the scratch file is damaged: free blocks of zone %u, but there are %" PRIu64 " zones",
			              scratch->free_blocks[i].zone, scratch->zone_count);
	return true;
}

static bool check_older(const struct scratch *scratch, const struct scratch_older *list, uint64_t count, uint32_t *holders,
                        struct fault *fault)
{
	for (uint64_t i = 0; i < count; i++) {
		const struct scratch_older *older = &list[i];
		bool held = older->handle != NO_HANDLE && older->handle != VACATED;
		const char *wrong = NULL;

		if (older->cache != NO_CACHE && older->cache >= scratch->cache_count)
			wrong = "is of a cache that does not exist";
		else if (older->flags & ~KNOWN_FLAGS)
			wrong = "has unknown flags";
		else if (held && older->handle >= scratch->run->handles)
			wrong = "has a handle out of range";
		else if (held && holders[older->handle] != HELD_BY_NOBODY)
			wrong = "has the handle of another one";
		if (wrong)
			return refuse(fault, "the scratch file is damaged: older object %" PRIu64 " %s", i, wrong);
		if (held)
			holders[older->handle] = older->cache == NO_CACHE ? HELD_BY_KMALLOC : HELD_BY_CACHE(older->cache);
	}
	return true;
}

/* The other list of older objects may lack some of the handles of the first; a free of these then does nothing. */
static bool check_laid(const struct scratch *scratch, const uint32_t *holders, struct fault *fault)
{
	size_t handles = scratch->run->handles;
	uint32_t *others = scratch->laid ? calloc(handles ? handles : 1, sizeof *others) : NULL;
	bool good;

	if (!scratch->laid)
		return true;
	if (!others)
		return refuse(fault, "no memory to check %zu handles", handles);
	good = check_older(scratch, scratch->laid, scratch->laid_count, others, fault);
	for (size_t i = 0; good && i < handles; i++)
		if (others[i] != HELD_BY_NOBODY && others[i] != holders[i])
			good = refuse(fault, "the scratch file is damaged: handle %zu is another object in each list of older ones", i);
	free(others);
	return good;
}

static bool check_graces(const struct scratch *scratch, struct fault *fault)
{
	for (uint64_t i = 0; i < scratch->grace_count; i++) {
		const struct scratch_grace *at = &scratch->graces[i];

		if (at->begins_ns > at->ends_ns || (i && (at->begins_ns < at[-1].begins_ns || at->ends_ns < at[-1].ends_ns)))
			return refuse(fault, "the scratch file is damaged: grace period %" PRIu64 " ends before it begins, or before others", i);
	}
	return true;
}

/* ---- Events --------------------------------------------------------------------------------------------------- */

static uint32_t holder_of(const struct scratch_event *event)
{
	unsigned uses = fields[event->kind];

	return uses & OF_CACHE ? HELD_BY_CACHE(event->cache) : uses & OF_PAGES ? HELD_BY_PAGES : HELD_BY_KMALLOC;
}

/* NULL, or what is wrong with the event on its own. */
static const char *wrong_fields(const struct scratch *scratch, const struct scratch_event *event)
{
	const struct scratch_run *run = scratch->run;
	unsigned uses;

	if (event->kind >= EVENT_KINDS)
		return "is of an unknown kind";
	uses = fields[event->kind];
	if (event->flags & ~(KNOWN_FLAGS | EVENT_IMPLIED))
		return "has unknown flags";
	if (event->node < SY_ANY_NODE || event->node >= (int)run->nodes)
		return "is on a memory node that does not exist";
	if ((uses & OF_CACHE) && event->cache >= scratch->cache_count)
		return "is of a cache that does not exist";
	if ((uses & OF_PAGES) && event->order > SY_MAX_ORDER)
		return "has an order above 10, the largest";
	if ((uses & OF_PAGES) && event->migrate >= SY_MIGRATE_TYPES)
		return "has a migrate type that does not exist";
	if ((uses & ALLOCATES) && !(uses & OF_PAGES) && event->call_site >= run->call_sites)
		return "has a call site out of range";
	if ((uses & NUMBERED) && event->handle >= run->snapshots)
		return "has a number of a snapshot out of range";
	if ((uses & (ALLOCATES | FREES)) && event->handle >= run->handles)
		return "has a handle out of range";
	return NULL;
}

/* NULL, or what is wrong with the event after those before it; updates the state of its handle. */
static const char *wrong_handle(const struct scratch_event *event, uint32_t *holders)
{
	unsigned uses = fields[event->kind];

	if (uses & ALLOCATES) {
		if (holders[event->handle] != HELD_BY_NOBODY)
			return "allocates a handle that is in use";
		holders[event->handle] = holder_of(event);
	} else if (uses & FREES) {
		if (holders[event->handle] != holder_of(event))
			return "frees a handle that is not in use, or of another kind or cache";
		holders[event->handle] = HELD_BY_NOBODY;
	}
	return NULL;
}

static bool check_events(const struct scratch *scratch, uint32_t *holders, struct fault *fault)
{
	uint64_t time = 0;

	for (uint64_t i = 0; i < scratch->event_count; i++) {
		const struct scratch_event *event = &scratch->events[i];
		const char *wrong = wrong_fields(scratch, event);

		if (!wrong && event->time_ns < time)
			wrong = "is earlier than the one before it";
		if (!wrong && event->time_ns > MAX_TIME)
			wrong = "is a century later than the first";
		if (!wrong)
			wrong = wrong_handle(event, holders);
		if (wrong)
			return refuse(fault, "the scratch file is damaged: event %" PRIu64 " %s", i, wrong);
		time = event->time_ns;
	}
	return true;
}

static bool check_traffic(const struct scratch *scratch, struct fault *fault)
{
	size_t handles = scratch->run->handles;
	uint32_t *holders = calloc(handles ? handles : 1, sizeof *holders);
	bool good;

	if (!holders)
		return refuse(fault, "no memory to check %zu handles", handles);
	good = check_older(scratch, scratch->older, scratch->older_count, holders, fault) && check_laid(scratch, holders, fault) &&
	       check_graces(scratch, fault) && check_events(scratch, holders, fault);
	free(holders);
	return good;
}

/* ---- The whole ------------------------------------------------------------------------------------------------ */

bool scratch_parse(struct scratch *scratch, const void *bytes, size_t size, struct fault *fault)
{
	*scratch = (struct scratch){ 0 };
	return read_sections(scratch, bytes, size, fault) && check_run(scratch, fault) && check_caches(scratch, fault) &&
	       check_order(scratch, fault) && check_zones(scratch, fault) && check_traffic(scratch, fault);
}

/* Maps the file; closes it in any case. */
static void *map_file(int file, const char *path, size_t *size, struct fault *fault)
{
	struct stat status;
	void *mapping = MAP_FAILED;

	if (fstat(file, &status) != 0)
		refuse(fault, "cannot read %s: %s", path, strerror(errno));
	else if (!S_ISREG(status.st_mode))
		refuse(fault, "cannot read %s: it is no regular file", path);
	else if (status.st_size < (off_t)sizeof(struct scratch_header))
		refuse(fault, "cannot read %s: %lld bytes are too few for a scratch file", path, (long long)status.st_size);
	else if ((mapping = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0)) == MAP_FAILED)
		refuse(fault, "cannot map %s: %s", path, strerror(errno));
	else
		*size = (size_t)status.st_size;
	close(file);
	return mapping == MAP_FAILED ? NULL : mapping;
}

bool scratch_open(struct scratch *scratch, const char *path, struct fault *fault)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	void *mapping;

	if (file < 0)
		return refuse(fault, "cannot open %s: %s", path, strerror(errno));
	mapping = map_file(file, path, &size, fault);
	if (!mapping)
		return false;
	madvise(mapping, size, MADV_SEQUENTIAL);
	if (!scratch_parse(scratch, mapping, size, fault)) {
		munmap(mapping, size);
		return false;
	}
	scratch->mapping = mapping;
	scratch->mapping_bytes = size;
	return true;
}

void scratch_close(struct scratch *scratch)
{
	if (scratch->mapping)
		munmap(scratch->mapping, scratch->mapping_bytes);
	*scratch = (struct scratch){ 0 };
}
