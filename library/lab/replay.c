/* The laboratory's interface to a heap, for replays (replay.h). Each function is a step into the core that only replays need. */
#include "replay.h"

#include "core/deferred.h"
#include "core/backend/place.h"
#include "core/this_slot.h"
#include "core/list.h"
#include "core/page_interface.h"

const struct sy_heap_counters *sy_lab_counters(const struct sy_heap *heap)
{
	return &heap->counters;
}

static struct sy_cache *cache_at(struct sy_heap *heap, struct sy_list *link)
{
	return link == &heap->caches ? NULL : sy__entry(link, struct sy_cache, link);
}

struct sy_cache *sy_lab_cache_after(struct sy_heap *heap, const struct sy_cache *cache)
{
	return cache_at(heap, cache ? cache->link.next : heap->caches.next);
}

struct sy_cache *sy_lab_cache_before(struct sy_heap *heap, const struct sy_cache *cache)
{
	return cache_at(heap, cache ? cache->link.prev : heap->caches.prev);
}

struct sy_lab_place sy_lab_place_of(const struct sy_heap *heap, const void *object)
{
	const struct sy_page *head = sy__head_of(heap, object);

	return (struct sy_lab_place){ .head = head, .node = sy__page_node(head), .order = sy__page_order(head),
		                      .large = sy__page_is_large(head) };
}

unsigned sy_lab_page_order(const struct sy_page *page)
{
	return sy__page_order(page);
}

unsigned sy_lab_slot_node(const struct sy_heap *heap, unsigned slot)
{
	return sy__slot_node(heap, slot);
}

bool sy_lab_unused_bytes(struct sy_heap *heap, uint64_t *bytes)
{
	if (heap->policy->unused_bytes)
		*bytes = heap->policy->unused_bytes(heap);
	return heap->policy->unused_bytes;
}

bool sy_lab_has_geometry(const struct sy_policy *policy)
{
	return policy->geometry;
}

bool sy_lab_geometry(const struct sy_policy *policy, const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *geometry)
{
	*geometry = (struct sy_geometry){ 0 };
	return policy->geometry && policy->geometry(tunables, cpus, size, geometry);
}

bool sy_lab_idle(const struct sy_heap_config *config, unsigned tunable)
{
	return config->policy->idle && config->policy->idle(config, tunable);
}

const char *sy_lab_refuses(const struct sy_heap_config *config)
{
	return sy__heap_refuses(config);
}

void sy_lab_log(struct sy_heap *heap, void (*log)(void *, const char *, const uint64_t *, unsigned), void *context)
{
	heap->log = log;
	heap->log_context = context;
}

static struct { const struct sy_heap *heap; uint64_t locks; } watched;

static void count_lock(const sy__lock_t *lock)
{
	watched.locks += (uintptr_t)lock - (uintptr_t)watched.heap->pages >= watched.heap->pages->self_bytes &&
	                 (uintptr_t)lock - (uintptr_t)watched.heap >= sizeof(*watched.heap);
}

const uint64_t *sy_lab_count_locks(const struct sy_heap *heap)
{
	watched.heap = heap;
	sy__locks_watch(heap ? count_lock : NULL);
	return &watched.locks;
}

/* ---- Driving -------------------------------------------------------------------------------------------------- */

void sy_lab_drain(struct sy_heap *heap, unsigned slot)
{
	if (heap->policy->drain)
		heap->policy->drain(heap, slot);
}

uint64_t sy_lab_tick_due(const struct sy_heap *heap)
{
	return sy__time(&heap->tick_due);
}

void sy_lab_tick(struct sy_heap *heap)
{
	if (heap->policy->tick)
		heap->policy->tick(heap);
}

bool sy_lab_as_recorded(struct sy_heap *heap, const struct sy_lab_graces *graces)
{
	static struct sy_grace grace;

	grace = (struct sy_grace){ .wanted = graces->ends, .passed = graces->now };
	if (heap->as_recorded)
		heap->grace = &grace;
	return heap->as_recorded;
}

static bool is_first(const struct sy_deferred *entry, const void *heap)
{
	return entry == ((const struct sy_heap *)heap)->deferred_first;
}

bool sy_lab_end_grace(struct sy_heap *heap)
{
	struct sy_deferred *entry = sy__deferred_extract(heap, is_first, heap);

	if (entry)
		heap->policy->grace_passed(heap, entry);
	return entry;
}

void sy_lab_ask(struct sy_heap *heap)
{
	sy__giver giver = heap->policy->reap ? heap->policy->reap : heap->policy->shrink;

	if (giver)
		sy__heap_give(heap, giver);
}

/* ---- Pages ---------------------------------------------------------------------------------------------------- */

void sy_lab_commit(struct sy_pages *pages, const void *start, size_t bytes)
{
	uintptr_t of_table = (uintptr_t)start - (uintptr_t)pages->base.table, of_memory = (uintptr_t)start - (uintptr_t)pages->base.memory;

	if (of_table / sizeof(struct sy_page) < pages->base.page_count || of_memory >> SY_PAGE_SHIFT < pages->base.page_count)
		sy__source_commit((void *)(uintptr_t)start, bytes);
}

void sy_lab_spans(const struct sy_pages *pages, struct sy_lab_span *table, struct sy_lab_span *rest)
{
	*table = (struct sy_lab_span){ pages->base.table, (size_t)pages->base.page_count * sizeof(struct sy_page), sizeof(struct sy_page) };
	*rest = (struct sy_lab_span){ (void *)(uintptr_t)pages, pages->self_bytes, 1 };
}

void sy_lab_rewind(struct sy_page *page, const struct sy_page *saved)
{
	uint8_t written = page->flags & SY__PAGE_BACKED;

	*page = *saved;
	page->flags |= written;
}

_Static_assert(sizeof(struct sy_lab_placer) == sizeof(struct sy__placer), "a placer is a function and its context");

void sy_lab_set_placer(struct sy_pages *pages, const struct sy_lab_placer *placer)
{
	sy__pages_set_placer(pages, (const struct sy__placer *)(const void *)placer);
}

struct sy_page *sy_lab_take_at(struct sy_pages *pages, uint64_t frame, unsigned order, enum sy_page_use use)
{
	return sy__block_take_at(pages, frame, order, use);
}

struct sy_page *sy_lab_take_any(struct sy_pages *pages, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use use)
{
	return sy__block_take(pages, slot, order, flags, node, use);
}
