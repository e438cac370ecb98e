/* The page allocator alone: a machine of up to three zones, populated or pristine, and requests from its slots. */
#include "fuzz.h"
#include "core/pages/pages.h"

#define MOST_BLOCKS 512
#define MOST_OPS 2000
#define MOST_PAGES 16384

struct block {
	struct sy_page *page;
	uint64_t number;
	unsigned order;
};

struct machine {
	struct sy_pages_config config;
	struct sy_pages *pages;
	struct block blocks[MOST_BLOCKS];
	unsigned count;
	uint8_t taken[MOST_PAGES]; /* by frame number: whether a block has the page */
};

static void take_zones(struct bytes *bytes, struct sy_pages_config *config)
{
	static const char *const names[] = { "DMA", "DMA32", "Normal" };
	uint64_t start = 0;

	config->zone_count = 1 + take8(bytes) % 3;
	for (unsigned i = 0; i < config->zone_count; i++) {
		struct sy_zone_config *zone = &config->zones[i];
		unsigned bits = take8(bytes);

		snprintf(zone->name, sizeof(zone->name), "%s", names[i]);
		zone->start_page = start + (bits & 1) * 1024;
		zone->pages = 1 + take16(bytes) % 4096;
		zone->managed = bits & 2 ? take16(bytes) : 0;
		zone->node = bits >> 2 & 1;
		if (bits & 8)
			zone->min = take8(bytes), zone->low = take8(bytes), zone->high = take8(bytes);
		start = (zone->start_page + zone->pages + 1023) & ~(uint64_t)1023;
	}
}

static void take_config(struct bytes *bytes, struct sy_pages_config *config)
{
	unsigned bits = take8(bytes);

	memset(config, 0, sizeof(*config));
	config->slots = 1 + (bits & 3);
	config->cpu_lists = bits >> 2 & 1;
	config->commit_growth = bits >> 3 & 1;
	config->pageblock_order = 1 + take8(bytes) % SY_MAX_ORDER;
	if (bits >> 4 & 1)
		config->cpu_list_batch = take8(bytes), config->cpu_list_high = take16(bytes);
	take_zones(bytes, config);
}

/* A state as a snapshot gives it, which may contradict itself. */
static void populate(struct bytes *bytes, struct sy_pages *pages)
{
	uint64_t blocks[SY_MIGRATE_TYPES][SY_ORDERS] = { { 0 } }, pageblocks[SY_MIGRATE_TYPES] = { 0 };

	for (unsigned i = take8(bytes) % 16; i; i--) {
		unsigned type = take8(bytes) % SY_MIGRATE_TYPES, order = take8(bytes) % SY_ORDERS;

		blocks[type][order] = take8(bytes);
	}
	for (unsigned type = 0; type < SY_MIGRATE_TYPES; type++)
		pageblocks[type] = take8(bytes);
	sy_pages_populate(pages, take8(bytes) % pages->zone_count, (const uint64_t(*)[SY_ORDERS])blocks, pageblocks);
}

static void mark(struct machine *machine, const struct block *block, uint8_t taken)
{
	for (uint64_t i = 0; i < (uint64_t)1 << block->order; i++) {
		FUZZ_CHECK(block->number + i < MOST_PAGES && machine->taken[block->number + i] != taken);
		machine->taken[block->number + i] = taken;
	}
}

static void get(struct machine *machine, struct bytes *bytes, unsigned slot)
{
	struct block *block = &machine->blocks[machine->count];
	unsigned place = take8(bytes), flags = take8(bytes);

	if (machine->count == MOST_BLOCKS)
		return;
	block->order = place % SY_ORDERS;
	block->page = sy_pages_alloc(machine->pages, slot, block->order, flags, (int)(place >> 4) % 3 - 1);
	if (!block->page)
		return;
	block->number = sy_page_number(machine->pages, block->page);
	FUZZ_CHECK(!(block->number & (((uint64_t)1 << block->order) - 1)));
	mark(machine, block, 1);
	machine->count++;
}

static void put(struct machine *machine, unsigned index, unsigned slot)
{
	mark(machine, &machine->blocks[index], 0);
	sy_pages_free(machine->pages, slot, machine->blocks[index].page);
	machine->blocks[index] = machine->blocks[--machine->count];
}

static void run_op(struct machine *machine, struct bytes *bytes)
{
	unsigned what = take8(bytes), slot = (what >> 5) % machine->config.slots;
	struct sy_pages_counts counts;

	switch (what % 32) {
	case 0:
		fuzz_fine(sy_pages_check(machine->pages));
		break;
	case 1:
		sy_pages_drain(machine->pages, slot);
		break;
	case 2:
		sy_pages_release(machine->pages, take8(bytes) % SY_ORDERS);
		break;
	case 3:
		sy_pages_count(machine->pages, &counts);
		FUZZ_CHECK(counts.failures <= counts.requests);
		break;
	case 4:
		sy_pages_free_pretrace(machine->pages, slot, take8(bytes) % SY_ORDERS, take16(bytes));
		break;
	case 5:
		sy_pages_fail_after(machine->pages, 1 + take8(bytes));
		break;
	default:
		if (what % 2)
			get(machine, bytes, slot);
		else if (machine->count)
			put(machine, take16(bytes) % machine->count, slot);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct machine machine;
	struct bytes bytes = { data, size };

	memset(&machine, 0, sizeof(machine));
	take_config(&bytes, &machine.config);
	machine.pages = sy_pages_create(&machine.config);
	FUZZ_CHECK(!machine.pages == (sy_pages_config_error(&machine.config) != NULL));
	if (!machine.pages)
		return 0;
	for (unsigned i = take8(&bytes) % 4; i; i--)
		populate(&bytes, machine.pages);
	fuzz_fine(sy_pages_check(machine.pages));
	for (unsigned i = 0; i < MOST_OPS && bytes.left; i++)
		run_op(&machine, &bytes);
	fuzz_fine(sy_pages_check(machine.pages));
	while (machine.count)
		put(&machine, machine.count - 1, 0);
	fuzz_fine(sy_pages_check(machine.pages));
	sy_pages_destroy(machine.pages);
	return 0;
}
