/*
 * Setting up a page allocator: is the configuration possible, where does everything lie, watermarks, the order of zones.
 *
 * Frame numbers are absolute: page 0 of the address range is frame 0, whatever zones there are, so that a trace's numbers are
 * the allocator's. The range is aligned to the maximal block; offsets from there, never addresses, decide anything.
 *
 *   memory    one page per frame, reserved; committed per maximal block when a heap first gets a page of it
 *   table     one descriptor per frame, reserved; committed per maximal block when it grows, or per zone when populated
 *   self      struct sy_pages, pageblock types, bits of pages, states of maximal blocks and the per-CPU lists: committed at once, but
 *             touched only as used. A small heap uses two pages: the structure, followed by the types of the first pageblocks; and
 *             the first per-CPU lists, preceded by the states of the first maximal blocks, in descending order
 *
 * In a caller's buffer the memory stands in front, the table and self at the end, and everything is cleared at once. Nothing is
 * ever committed or discarded then.
 *
 * Watermarks, as Linux 6.1 computes them: with M KiB of memory that is not high or movable-only, keep sqrt(16 M) KiB free,
 * within 128 KiB and 256 MiB, split over the zones by size; low and high are one and two steps above min, a step being
 * min/4 or a thousandth of the zone, the larger. (A machine with transparent huge pages raises them once more; who has the
 * recorded figures passes them in.) Lowmem reserve: of each zone, 1/256 (DMA, DMA32) or 1/32 (Normal) of the memory in
 * the higher zones of its node is kept from requests that those could serve.
 *
 * Order of zones: the request's node first, then the next higher numbers, then from 0 up (Linux's order among equally distant
 * nodes); in each node, higher zones first.
 */
#include "pages.h"

#define BLOCKS_BESIDE 512u /* maximal blocks whose states share the page of the first per-CPU lists; a multiple of SY_CACHE_LINE */

/* ---- Is it possible? -------------------------------------------------------------------------------------------- */

static const char *zone_error(const struct sy_zone_config *zone)
{
	size_t length = 0;

	while (length < SY_ZONE_NAME_BYTES && zone->name[length])
		length++;
	if (length == 0 || length == SY_ZONE_NAME_BYTES)
		return "a zone's name must have 1 to 15 characters, such as DMA, DMA32, Normal or Movable";
	if (zone->node >= SY_MAX_NODES)
		return "a zone's node is too large: nodes are numbered 0 to 15";
	if (zone->start_page % SY__MAX_BLOCK)
		return "a zone must start at a multiple of 1024 pages (4 MiB with pages of 4 KiB)";
	if (zone->pages == 0)
		return "a zone has no pages: leave it out";
	if (zone->managed > zone->pages)
		return "a zone manages more pages than it spans: managed may be 0 (all) to its pages";
	if (zone->start_page > UINT64_MAX / 2 || zone->pages > UINT64_MAX / 4 ||
	    zone->start_page + zone->pages > SIZE_MAX / 2 / SY_PAGE_SIZE)
		return "a zone ends beyond what this machine can address: use fewer pages or lower frame numbers";
	if ((zone->low && zone->low < zone->min) || (zone->high && zone->high < zone->low))
		return "a zone's watermarks must rise from min over low to high";
	return NULL;
}

const char *sy_pages_config_error(const struct sy_pages_config *config)
{
	const char *error = NULL;
	unsigned i;

	if (config->zone_count < 1 || config->zone_count > SY_MAX_ZONES)
		return "there must be 1 to 24 zones";
	if (config->slots < 1 || config->slots > SY_MAX_SLOTS)
		return "there must be 1 to 512 CPU slots";
	if (config->buffer && config->zone_count != 1)
		return "a page allocator in a buffer has one zone";
	if (config->pageblock_order < 1 || config->pageblock_order > SY_MAX_ORDER)
		return "the pageblock order must be 1 to 10; it is 9 on x86-64";
	for (i = 0; i < config->zone_count && !error; i++) {
		const struct sy_zone_config *zone = &config->zones[i];

		error = zone_error(zone);
		if (!error && i > 0 && zone[-1].start_page + zone[-1].pages > zone->start_page)
			error = "zones must be in ascending order of their first page and must not overlap";
	}
	return error;
}

/* ---- Zones -------------------------------------------------------------------------------------------------------- */

static bool has_name(const struct sy_zone_config *zone, const char *name)
{
	size_t i = 0;

	while (name[i] && zone->name[i] == name[i])
		i++;
	return !name[i] && !zone->name[i];
}

static unsigned kind_of(const struct sy_zone_config *zone)
{
	static const char *const names[SY__KINDS] = { "DMA", "DMA32", "Normal", "HighMem", "Movable" };
	unsigned kind;

	for (kind = 0; kind < SY__KINDS; kind++)
		if (has_name(zone, names[kind]))
			return kind;
	return SY__KIND_NORMAL;
}

static void set_zones(struct sy_pages *pages, const struct sy_pages_config *config)
{
	unsigned i;

	pages->lowest_kind = SY__KINDS;
	for (i = 0; i < config->zone_count; i++) {
		const struct sy_zone_config *from = &config->zones[i];
		struct sy__zone *zone = &pages->zones[i];

		zone->pages = pages;
		zone->index = (uint8_t)i;
		zone->node = (uint8_t)from->node;
		zone->kind = (uint8_t)kind_of(from);
		zone->start = from->start_page;
		zone->span = from->pages;
		zone->managed = from->managed ? from->managed : from->pages;
		sy__copy(zone->name, from->name, sizeof(zone->name));
		if (zone->kind < pages->lowest_kind)
			pages->lowest_kind = zone->kind;
		if (zone->node >= pages->nodes)
			pages->nodes = zone->node + 1u;
	}
}

/* ---- Watermarks --------------------------------------------------------------------------------------------------- */

static uint64_t square_root(uint64_t value)
{
	uint64_t root = 0, bit = (uint64_t)1 << 31;

	for (; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= value)
			root += bit;
	return root;
}

static bool is_lowmem(const struct sy__zone *zone)
{
	return zone->kind <= SY__KIND_NORMAL;
}

static void set_watermarks(struct sy_pages *pages, const struct sy_pages_config *config)
{
	uint64_t lowmem = 0, keep_kib, keep;
	unsigned i;

	for (i = 0; i < pages->zone_count; i++)
		if (is_lowmem(&pages->zones[i]))
			lowmem += pages->zones[i].managed;
	keep_kib = square_root(lowmem * SY_PAGE_SIZE / 1024 * 16);
	keep_kib = keep_kib < 128 ? 128 : keep_kib > 262144 ? 262144 : keep_kib;
	keep = keep_kib * 1024 / SY_PAGE_SIZE;
	for (i = 0; i < pages->zone_count; i++) {
		const struct sy_zone_config *from = &config->zones[i];
		struct sy__zone *zone = &pages->zones[i];
		uint64_t min = from->min, step;

		if (!min && is_lowmem(zone))
			min = keep * zone->managed / lowmem;
		else if (!min)
			min = zone->managed / 1024 < 32 ? 32 : zone->managed / 1024 > 128 ? 128 : zone->managed / 1024;
		step = min / 4 > zone->managed / 1000 ? min / 4 : zone->managed / 1000;
		zone->marks[SY__WMARK_MIN] = (size_t)min;
		zone->marks[SY__WMARK_LOW] = (size_t)(from->low ? from->low : min + step);
		zone->marks[SY__WMARK_HIGH] = (size_t)(from->high ? from->high : min + step * 2);
	}
}

static void set_reserve(struct sy_pages *pages, struct sy__zone *zone)
{
	static const uint16_t ratios[SY__KINDS] = { 256, 256, 32, 0, 0 };
	uint64_t above = 0;
	unsigned kind, i;

	if (!ratios[zone->kind])
		return;
	for (kind = zone->kind + 1u; kind < SY__KINDS; kind++) {
		for (i = 0; i < pages->zone_count; i++)
			if (pages->zones[i].node == zone->node && pages->zones[i].kind == kind)
				above += pages->zones[i].managed;
		zone->reserve[kind] = (size_t)(above / ratios[zone->kind]);
	}
}

/* ---- The order of zones ------------------------------------------------------------------------------------------- */

static unsigned walk_node(struct sy_pages *pages, unsigned node, uint8_t *walk)
{
	unsigned count = 0, kind, i;

	for (kind = SY__KINDS; kind-- > 0;)
		for (i = pages->zone_count; i-- > 0;)
			if (pages->zones[i].node == node && pages->zones[i].kind == kind)
				walk[count++] = (uint8_t)i;
	return count;
}

/* The order below which requests of a kind leave other types alone at first: a pageblock's where the first zone that may serve
 * them is a Normal one with a DMA32 zone to turn to. */
static unsigned nofragment(const struct sy_pages *pages, const uint8_t *walk, unsigned kind)
{
	const struct sy__zone *zone, *next;
	unsigned i = 0;

	while (i < pages->zone_count && pages->zones[walk[i]].kind > kind)
		i++;
	if (i + 1 >= pages->zone_count)
		return 0;
	zone = &pages->zones[walk[i]];
	next = &pages->zones[walk[i + 1]];
	if (zone->kind != SY__KIND_NORMAL || next->kind != SY__KIND_DMA32 || next->node != zone->node)
		return 0;
	return pages->pageblock_order;
}

static void set_walks(struct sy_pages *pages)
{
	unsigned node, other, kind, count;

	for (node = 0; node < pages->nodes; node++) {
		uint8_t *walk = pages->walk[node];

		for (count = 0, other = 0; other < pages->nodes; other++)
			count += walk_node(pages, (node + other) % pages->nodes, walk + count);
		for (kind = 0; kind < SY__KINDS; kind++)
			pages->nofragment[node][kind] = (uint8_t)nofragment(pages, walk, kind);
	}
}

static unsigned slots_of_node(const struct sy_pages *pages, unsigned node)
{
	unsigned slot, count = 0;

	for (slot = 0; slot < pages->slots; slot++)
		count += slot * pages->nodes / pages->slots == node;
	return count;
}

/* ---- Creation ----------------------------------------------------------------------------------------------------- */

/* Reserves space that starts at a multiple of align in *start. NULL: no address space. Below what a system maps there is often room,
 * so the last multiple there is tried first: it takes no more addresses than were asked for, of which a limit may leave few. */
static void *reserve_aligned(size_t *bytes, size_t align, char **start)
{
	char *p = sy__source_reserve(*bytes), *below = p ? p - (uintptr_t)p % align : NULL;

	if (p != below) {
		sy__source_release(p, *bytes);
		p = sy__source_reserve_at(below, *bytes) ? below : NULL;
		if (!p) {
			*bytes += align;
			p = sy__source_reserve(*bytes);
		}
	}
	*start = p ? p + (-(uintptr_t)p & (align - 1)) : NULL;
	return p;
}

static size_t cache_lines(uint64_t bytes)
{
	return ((size_t)bytes + SY_CACHE_LINE - 1) & ~(size_t)(SY_CACHE_LINE - 1);
}

static size_t page_end(size_t bytes)
{
	return (bytes + SY_PAGE_SIZE - 1) & ~(SY_PAGE_SIZE - 1);
}

/* Where the tables of struct sy_pages start, from its own start, and where they end. `committed` is where its last byte is, the
 * first block's; blocks: the bytes that it may have. */
struct layout {
	size_t pageblock_types, above_of_block, page_bits, blocks, committed, cpu_lists, end;
};

static struct layout lay_out(const struct sy_pages_config *config, uint64_t page_count)
{
	size_t blocks = cache_lines(page_count >> SY_MAX_ORDER), zones = config->zone_count * sizeof(struct sy__zone);
	struct layout at;

	at.pageblock_types = cache_lines(offsetof(struct sy_pages, zones) + zones);
	at.above_of_block = at.pageblock_types + cache_lines(page_count >> config->pageblock_order);
	at.page_bits = at.above_of_block + blocks;
	at.blocks = blocks;
	at.cpu_lists = at.page_bits + cache_lines(page_count / 8) + blocks;
	if (config->cpu_lists)
		at.cpu_lists = page_end(at.cpu_lists) + BLOCKS_BESIDE;
	at.committed = at.cpu_lists - 1;
	at.end = at.cpu_lists + (config->cpu_lists ? (size_t)config->slots * config->zone_count * sizeof(struct sy__cpu_list) : 0);
	at.end = page_end(at.end);
	return at;
}

static uint64_t range_pages(const struct sy_pages_config *config)
{
	const struct sy_zone_config *last = &config->zones[config->zone_count - 1];

	return (last->start_page + last->pages + SY__MAX_BLOCK - 1) & ~(SY__MAX_BLOCK - 1);
}

/* ---- In a buffer ------------------------------------------------------------------------------------------------ */

/* Bytes of the tables that stand at the end of a buffer. */
static size_t tables_bytes(const struct sy_pages_config *config)
{
	uint64_t page_count = range_pages(config);

	return lay_out(config, page_count).end + (size_t)page_count * sizeof(struct sy_page);
}

static char *buffer_start(const struct sy_pages_config *config)
{
	return (char *)config->buffer + (-(uintptr_t)config->buffer & (SY_PAGE_SIZE - 1));
}

/* Ends the zone where the buffer has room for its pages and for the tables behind them; false: not even for one. */
static bool fit_buffer(struct sy_pages_config *config)
{
	size_t lost = (size_t)(buffer_start(config) - (char *)config->buffer) + SY_PAGE_SIZE, tables, room;
	struct sy_zone_config *zone = &config->zones[0];

	zone->start_page = 0;
	zone->pages = config->buffer_bytes >> SY_PAGE_SHIFT;
	for (; zone->pages; zone->pages--) {
		tables = lost + tables_bytes(config);
		room = config->buffer_bytes > tables ? (config->buffer_bytes - tables) >> SY_PAGE_SHIFT : 0;
		if (room >= zone->pages)
			break;
		if (zone->pages - room > 2 * SY__MAX_BLOCK)
			zone->pages = room + SY__MAX_BLOCK;
	}
	if (zone->managed > zone->pages)
		zone->managed = 0;
	return zone->pages;
}

/* The last place in a buffer with room behind it. */
static void *cut(const struct sy_pages_config *config, size_t bytes)
{
	char *place = (char *)config->buffer + (config->buffer_bytes - bytes);

	return place - ((uintptr_t)place & (SY_CACHE_LINE - 1));
}

/* ---- Where everything lies -------------------------------------------------------------------------------------- */

/* Where memory is committed when a zone grows, the layer above commits page_bits. */
static bool commit_self(const struct sy_pages_config *config, char *self, const struct layout *at)
{
	size_t behind = at->committed + 1 - at->blocks;

	if (!config->commit_growth)
		return sy__source_commit(self, at->end) == 0;
	return sy__source_commit(self, at->page_bits) == 0 && sy__source_commit(self + behind, at->end - behind) == 0;
}

static void *self_space(const struct sy_pages_config *config, const struct layout *at)
{
	void *self = config->buffer ? cut(config, at->end) : sy__source_reserve(at->end);

	if (config->buffer) {
		sy__fill(self, 0, at->end);
	} else if (self && !commit_self(config, self, at)) {
		sy__source_release(self, at->end);
		return NULL;
	}
	return self;
}

static struct sy_pages *create_self(const struct sy_pages_config *config, uint64_t page_count)
{
	struct layout at = lay_out(config, page_count);
	char *self = self_space(config, &at);
	struct sy_pages *pages;
	unsigned i;

	if (!self)
		return NULL;
	pages = (struct sy_pages *)(void *)self;
	pages->in_buffer = config->buffer != NULL;
	pages->self_bytes = at.end;
	pages->base.page_count = page_count;
	pages->block_count = page_count >> SY_MAX_ORDER;
	pages->pageblock_types = (uint8_t *)self + at.pageblock_types;
	pages->committed = (uint8_t *)self + at.committed;
	pages->above_of_block = (uint8_t *)self + at.above_of_block;
	pages->page_bits = (uint64_t *)(void *)(self + at.page_bits);
	for (i = 0; config->cpu_lists && i < config->zone_count; i++)
		pages->zones[i].cpu = (struct sy__cpu_list *)(void *)(self + at.cpu_lists) + (size_t)i * config->slots;
	return pages;
}

static bool reserve_range(struct sy_pages *pages, const struct sy_pages_config *config)
{
	char *table;

	pages->memory_bytes = (size_t)pages->base.page_count << SY_PAGE_SHIFT;
	if (config->commit_growth && config->addresses && config->addresses < pages->memory_bytes)
		pages->memory_bytes = page_end(config->addresses);
	pages->memory_reserved = reserve_aligned(&pages->memory_bytes, SY_PAGE_SIZE << SY_MAX_ORDER, &pages->base.memory);
	if (!pages->memory_reserved)
		return false;
	if (config->huge_pages)
		sy__source_prefer_huge(pages->memory_reserved, pages->memory_bytes);
	pages->table_bytes = (size_t)pages->base.page_count * sizeof(struct sy_page);
	pages->table_reserved = reserve_aligned(&pages->table_bytes, SY_CACHE_LINE, &table);
	pages->base.table = (struct sy_page *)(void *)table;
	return pages->table_reserved != NULL;
}

static void place_in_buffer(struct sy_pages *pages, const struct sy_pages_config *config)
{
	size_t table_bytes = (size_t)pages->base.page_count * sizeof(struct sy_page);

	pages->base.memory = buffer_start(config);
	pages->base.table = cut(config, pages->self_bytes + table_bytes);
	sy__fill(pages->base.table, 0, table_bytes);
	sy__fill(pages->base.memory, 0, (size_t)config->zones[0].pages << SY_PAGE_SHIFT);
}

static struct sy_pages *create(const struct sy_pages_config *config, const struct sy__pages_hooks *hooks)
{
	struct sy_pages *pages;
	unsigned i;

	if (sy_pages_config_error(config))
		return NULL;
	pages = create_self(config, range_pages(config));
	if (!pages)
		return NULL;
	sy__list_init(&pages->heaps);
	pages->hooks = hooks;
	pages->zone_count = config->zone_count;
	pages->slots = config->slots;
	pages->take = sy__block_take;
	pages->pageblock_order = config->pageblock_order;
	if (config->buffer) {
		place_in_buffer(pages, config);
	} else if (!reserve_range(pages, config)) {
		sy_pages_destroy(pages);
		return NULL;
	}
	set_zones(pages, config);
	set_watermarks(pages, config);
	set_walks(pages);
	for (i = 0; i < pages->zone_count; i++) {
		set_reserve(pages, &pages->zones[i]);
		sy__cpu_size(&pages->zones[i], slots_of_node(pages, pages->zones[i].node), config);
		sy__zone_start(&pages->zones[i]);
	}
	return pages;
}

struct sy_pages *sy__pages_create(const struct sy_pages_config *wanted, const struct sy__pages_hooks *hooks)
{
	struct sy_pages_config config = *wanted;

	if (config.buffer && (config.zone_count != 1 || !fit_buffer(&config)))
		return NULL;
	return create(&config, hooks);
}

void sy_pages_destroy(struct sy_pages *pages)
{
	if (pages->in_buffer)
		return;
	if (pages->table_reserved)
		sy__source_release(pages->table_reserved, pages->table_bytes);
	if (pages->memory_reserved)
		sy__source_release(pages->memory_reserved, pages->memory_bytes);
	sy__source_release(pages, pages->self_bytes);
}

void sy_pages_on_fallback(struct sy_pages *pages, void (*fn)(void *context, const struct sy_fallback_event *),
                          void *context)
{
	pages->on_fallback = fn;
	pages->fallback_context = context;
}

uint64_t sy_page_number(const struct sy_pages *pages, const struct sy_page *page)
{
	return sy__number(pages, page);
}
