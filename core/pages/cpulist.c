/*
 * Per-CPU lists: blocks of orders 0 to 3 that one CPU slot keeps free of each zone. The fast path of the page allocator.
 *
 * A request takes the first block of the list of its order and type. An empty list is refilled with a batch from the zone,
 * in the order in which the zone hands blocks out; for higher orders the batch is that many pages, but at least two blocks.
 * A freed block goes to the front of the list of its pageblock's type. Blocks of the HighAtomic reserve wait on the
 * movable list, and return to the reserve's lists.
 *
 * When the lists hold `high` pages, a batch returns to the zone: oldest first, starting with the list just used and
 * passing on to the next list when one is empty. While a slot only frees, the batch doubles each time (free_factor); each
 * allocation halves it again. Blocks of order 1 and more freed during such a run return at once, with everything else, as
 * they would only keep their buddies apart.
 *
 * Sizes follow Linux 6.1: a batch is a quarter of 1/1024 of the zone, of 1 MiB at most, made one and a half times as large
 * and rounded down to a power of two, less one (odd batches share cache colours less); `high` splits the zone's low
 * watermark over the CPUs of its node, at least four batches.
 *
 * The lock lets other slots drain the lists; the owner seldom finds it taken.
 */
#include "pages.h"

static inline struct sy__cpu_list *cpu_list(struct sy__zone *zone, unsigned slot)
{
	unsigned slots = zone->pages->slots;

	return &zone->cpu[sy__likely(slot < slots) ? slot : slot % slots];
}

static inline unsigned list_index(unsigned order, unsigned migrate)
{
	return order * SY__CPU_TYPES + (migrate < SY__CPU_TYPES ? migrate : (unsigned)SY_MOVABLE_TYPE);
}

static void account(struct sy__cpu_list *cpu, unsigned from_use, unsigned to_use, unsigned order)
{
	cpu->used[from_use] -= (int64_t)1 << order;
	cpu->used[to_use] += (int64_t)1 << order;
}

static SY__COLD void refill(struct sy__zone *zone, struct sy__cpu_list *cpu, const struct sy__request *request)
{
	struct sy__blocks *list = &cpu->lists[list_index(request->order, request->migrate)];
	unsigned batch = zone->batch, taken = 0;

	if (batch > 1)
		batch = batch >> request->order > 2 ? batch >> request->order : 2;
	sy__lock(&zone->lock);
	while (taken < batch && request->events->count < SY__EVENTS) {
		struct sy_page *page = sy__zone_take(zone, request);

		if (!page)
			break;
		sy__set_use(page, SY_USE_CPU_LIST);
		sy__set_migrate(page, request->migrate);
		sy__blocks_add_last(list, page);
		taken++;
	}
	sy__unlock(&zone->lock);
	cpu->pages += taken << request->order;
	cpu->used[SY_USE_FREE] -= (int64_t)taken << request->order;
	cpu->used[SY_USE_CPU_LIST] += (int64_t)taken << request->order;
}

struct sy_page *sy__cpu_take(struct sy__zone *zone, const struct sy__request *request)
{
	struct sy__cpu_list *cpu = cpu_list(zone, request->slot);
	struct sy__blocks *list = &cpu->lists[list_index(request->order, request->migrate)];
	struct sy_page *page;

	sy__lock(&cpu->lock);
	cpu->free_factor >>= 1;
	if (sy__unlikely(!list->first))
		refill(zone, cpu, request);
	page = list->first;
	if (sy__likely(page)) {
		sy__blocks_remove(list, page);
		sy__set_use(page, request->use);
		cpu->pages -= 1u << request->order;
		cpu->served++;
		account(cpu, SY_USE_CPU_LIST, request->use, request->order);
	}
	sy__unlock(&cpu->lock);
	return page;
}

/* Returns at least `count` pages to the zone, or all, from list `index` on. */
static SY__COLD void give_back(struct sy__zone *zone, struct sy__cpu_list *cpu, unsigned count, unsigned index)
{
	unsigned given = 0;

	if (count > cpu->pages)
		count = cpu->pages;
	sy__lock(&zone->lock);
	for (; given < count; index = (index + 1) % SY__CPU_LISTS) {
		struct sy__blocks *list = &cpu->lists[index];
		unsigned order = index / SY__CPU_TYPES;

		while (given < count && list->last) {
			struct sy_page *page = list->last;

			sy__blocks_remove(list, page);
			sy__zone_free(zone, page, order, sy__migrate(page));
			given += 1u << order;
		}
	}
	sy__unlock(&zone->lock);
	cpu->pages -= given;
	cpu->used[SY_USE_CPU_LIST] -= given;
	cpu->used[SY_USE_FREE] += given;
}

/* How many pages to return when the lists have reached `high`, which is at least a batch. */
static unsigned batch_to_free(struct sy__cpu_list *cpu, unsigned high, unsigned batch)
{
	unsigned most = high - batch;
	uint64_t wanted = (uint64_t)batch << cpu->free_factor;

	if (wanted < most)
		cpu->free_factor++;
	if (wanted > most)
		wanted = most;
	return wanted < batch ? batch : (unsigned)wanted;
}

bool sy__cpu_give(struct sy__zone *zone, unsigned slot, struct sy_page *page, unsigned order, unsigned from_use)
{
	struct sy__cpu_list *cpu = cpu_list(zone, slot);
	unsigned migrate = sy__pageblock_type(zone->pages, sy__number(zone->pages, page));
	unsigned index = list_index(order, migrate), given;

	sy__lock(&cpu->lock);
	sy__set_migrate(page, migrate);
	sy__set_use(page, SY_USE_CPU_LIST);
	__atomic_store_n(&page->order, (uint8_t)order, __ATOMIC_RELAXED); /* unchanged; the map of free pages may be reading it */
	account(cpu, from_use, SY_USE_CPU_LIST, order);
	sy__blocks_add_first(&cpu->lists[index], page);
	given = cpu->pages += 1u << order;
	if (sy__unlikely(order && cpu->free_factor))
		give_back(zone, cpu, cpu->pages, index);
	else if (sy__unlikely(cpu->pages >= zone->cpu_high))
		give_back(zone, cpu, zone->cpu_high < zone->batch ? 1 : batch_to_free(cpu, zone->cpu_high, zone->batch), index);
	given -= cpu->pages;
	sy__unlock(&cpu->lock);
	return given;
}

void sy__cpu_drain(struct sy__zone *zone, unsigned slot)
{
	struct sy__cpu_list *cpu = cpu_list(zone, slot);

	sy__lock(&cpu->lock);
	if (cpu->pages)
		give_back(zone, cpu, cpu->pages, 0);
	sy__unlock(&cpu->lock);
}

static unsigned linux_batch(uint64_t managed)
{
	uint64_t pages = managed >> 10, most = ((uint64_t)1 << 20) / SY_PAGE_SIZE;
	unsigned rounded = 1;

	pages = (pages < most ? pages : most) / 4;
	if (pages < 1)
		pages = 1;
	pages += pages / 2;
	while ((uint64_t)rounded * 2 <= pages)
		rounded *= 2;
	return rounded > 1 ? rounded - 1 : 1;
}

void sy__cpu_size(struct sy__zone *zone, unsigned local_slots, const struct sy_pages_config *config)
{
	uint64_t high = zone->marks[SY__WMARK_LOW] / (local_slots ? local_slots : config->slots);

	zone->batch = config->cpu_list_batch ? config->cpu_list_batch : linux_batch(zone->managed);
	if (high < (uint64_t)zone->batch * 4)
		high = (uint64_t)zone->batch * 4;
	if (high > INT32_MAX)
		high = INT32_MAX;
	zone->cpu_high = config->cpu_list_high ? config->cpu_list_high : (unsigned)high;
}
