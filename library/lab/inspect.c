/* The laboratory's interface for slabyard-inspect (inspect.h). Each function is a step into the core that only inspection needs. */
#include "inspect.h"

#include "core/backend/slot_areas.h"
#include "core/debug/layer.h"
#include "core/list.h"
#include "core/page_interface.h"
#include "core/pages/pages.h"
#include "core/this_slot.h"
#include "core/walk.h"
#include "library/debug/anchor.h"
#include "library/debug/spec.h"
#include "library/debug/symbols.h"
#include "library/debug/text.h"
#include "library/spec.h"

/* ---- Anchors ------------------------------------------------------------------------------------------------------ */

_Static_assert(SY_INSPECT_BUILD_BYTES == sizeof(sy__anchor.build), "a build's name");

const size_t sy_inspect_anchor_bytes = sizeof(struct sy__anchor), sy_inspect_anchor_align = _Alignof(struct sy__anchor);

const char *sy_inspect_build(void)
{
	return sy__anchor.build;
}

enum sy_inspect_anchor sy_inspect_anchor(const void *copy, uintptr_t address, char build[SY_INSPECT_BUILD_BYTES], const void **sample_rate)
{
	struct sy__anchor is;

	if (memcmp(copy, SY__ANCHOR_MARK, sizeof(is.mark)) != 0)
		return SY_INSPECT_NO_ANCHOR;
	memcpy(&is, copy, sizeof(is));
	if (!is.self && is.bytes == sizeof(is))
		return SY_INSPECT_UNUSED;
	if ((uintptr_t)is.self != address)
		return SY_INSPECT_NO_ANCHOR;
	if (is.sample_rate)
		*sample_rate = is.sample_rate;
	if (is.bytes == sizeof(is) && strncmp(is.build, sy__anchor.build, sizeof(is.build)) == 0)
		return SY_INSPECT_ANCHOR;
	snprintf(build, SY_INSPECT_BUILD_BYTES, "%.*s", (int)sizeof(is.build) - 1, is.build);
	return SY_INSPECT_OTHER_BUILD;
}

struct sy_heap *sy_inspect_next_heap(const struct sy__anchor *anchor, const struct sy_heap *heap)
{
	struct sy_list *link = heap ? heap->threads_link.next : anchor->heaps->next;

	return link == anchor->heaps ? NULL : sy__entry(link, struct sy_heap, threads_link);
}

bool sy_inspect_mappings(const struct sy__anchor *anchor, size_t *objects, size_t *bytes)
{
	if (!anchor->mappings)
		return false;
	*objects = anchor->mappings[0];
	*bytes = anchor->mappings[1];
	return true;
}

bool sy_inspect_mapping_at(const void *page, struct sy_inspect_mapping *mapping)
{
	const struct sy__mapping *header = page;

	if (header->mark != sy__mapping_mark(header))
		return false;
	*mapping = (struct sy_inspect_mapping){ header->start, header->bytes, (const char *)page + SY__MAPPING_HEADER_BYTES };
	return true;
}

/* ---- Memory and code ---------------------------------------------------------------------------------------------- */

unsigned sy_inspect_adopt_slots(const struct sy__anchor *anchor, bool (*is_there)(const void *, size_t))
{
	return sy__slots_adopt(anchor->slots, is_there);
}

struct want {
	const struct sy_heap *heap;
	void (*want)(const void *, size_t);
	bool all;
};

/* Nothing reads what a large allocation holds. */
static bool want_block(void *context, struct sy_page *page)
{
	const struct want *want = context;

	if (sy__page_is_metadata(page) || (want->all && sy__page_is_slab(page)))
		want->want(sy__page_address(want->heap, page), SY_PAGE_SIZE << sy__page_order(page) % SY_ORDERS);
	return true;
}

void sy_inspect_want(const struct sy_heap *heap, bool all, void (*need)(const void *, size_t))
{
	struct want want = { heap, need, all };
	const struct sy__slot_area *area = NULL;
	const char *pages;

	need(sy__pages_base(heap)->table, sy__known_pages(heap) * sizeof(struct sy_page));
	while (sy__slot_areas_next(heap, &area, &pages))
		need(pages, (sy__slots_high() + (size_t)1) * SY_SLOT_STRIDE);
	sy__pages_find(heap, heap); /* reads what the walk below does not: which pages have memory */
	sy__pages_walk((struct sy_heap *)(uintptr_t)heap, want_block, &want);
}

/* A heap's structures lead to functions in one place, its policy. That is found again by its name; a hardened one (core/policies/links.h)
 * by way of the policy that it is a form of. */
static const struct sy_policy *policy_of(const struct sy__anchor *const *anchors, unsigned count, const struct sy_policy *theirs)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < SY__ANCHOR_POLICIES; j++) {
			const struct sy_policy *policy = sy_policy_find(anchors[i]->policies[j].name);

			if (policy && theirs == anchors[i]->policies[j].policy)
				return policy;
			if (policy && policy->hardened && theirs == anchors[i]->policies[j].hardened)
				return policy->hardened;
		}
	return NULL;
}

bool sy_inspect_adopt(struct sy_heap *heap, const struct sy__anchor *const *anchors, unsigned count)
{
	struct sy__debug *debug = heap->debug;
	const struct sy_policy *policy = policy_of(anchors, count, debug ? debug->below : heap->policy);

	if (!policy)
		return false;
	if (!debug || heap->policy != &debug->policy)
		heap->policy = policy;
	if (debug)
		sy__debug_over(debug, policy);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy_cache *cache = sy__entry(at, struct sy_cache, link);

		if (!debug || cache->policy != &debug->policy)
			cache->policy = policy;
	}
	return true;
}

/* ---- A heap ------------------------------------------------------------------------------------------------------- */

static void tell_checks(const struct sy__debug *debug, char *letters)
{
	for (unsigned i = 0; sy__debug_letters[i]; i++)
		if (debug->config.checks >> i & 1)
			*letters++ = sy__debug_letters[i];
}

void sy_inspect_heap(const struct sy_heap *heap, struct sy_inspect_heap *told)
{
	const struct sy__debug *debug = heap->debug;

	const struct sy_policy *policy = sy__debug_below(heap);

	*told = (struct sy_inspect_heap){ .policy = policy->name, .tunables = policy->tunables, .values = heap->tunables,
		                          .tunable_count = policy->tunable_count, .counters = &heap->counters,
		                          .free_backed_bytes = (uint64_t)sy__free_and_backed(heap->pages) * SY_PAGE_SIZE };
	if (!debug)
		return;
	tell_checks(debug, told->checks);
	told->records = true;
	told->stacks = debug->stacks;
	told->records_count = debug->records;
	told->log = debug->ring;
	told->youngest = debug->transactions;
	told->oldest = debug->transactions > debug->config.ring ? debug->transactions - debug->config.ring + 1 : 1;
	told->one_in = debug->one_in;
	told->missed = debug->missed;
	told->stacks_lost = debug->stacks_lost;
}

_Static_assert(SY_INSPECT_VALUE_BYTES == SY__SPEC_SHOWN, "a value's text");

void sy_inspect_value(char *text, const struct sy_tunable *tunable, int64_t value)
{
	sy__spec_value(text, SY_INSPECT_VALUE_BYTES, tunable, value);
}

const char *sy_inspect_cache_name(const struct sy_cache *cache)
{
	return cache->name;
}

uint32_t sy_inspect_cache_size(const struct sy_cache *cache, uint32_t *object_size)
{
	*object_size = sy__debug_object_size(cache);
	return cache->size;
}

/* ---- Pages -------------------------------------------------------------------------------------------------------- */

enum sy_inspect_place sy_inspect_place_of(const struct sy_heap *heap, const void *address)
{
	struct sy_page *page = sy__pages_find(heap, address);

	if (page)
		return sy__page_is_metadata(page) ? SY_INSPECT_BOOKKEEPING : sy__page_is_slab(page) ? SY_INSPECT_SLAB : SY_INSPECT_LARGE;
	if (!sy__holds(heap, address))
		return SY_INSPECT_OUTSIDE;
	return sy__pages_were_used(heap, address) ? SY_INSPECT_FREE_PAGE : SY_INSPECT_UNUSED_PAGE;
}

void sy_inspect_walk_slab(struct sy_heap *heap, const void *address, const struct sy_visitor *visitor)
{
	sy__walk_skips_places = false;
	sy__walk_one(heap, sy__pages_find(heap, address), visitor);
}

void sy_inspect_skip_places(void)
{
	sy__walk_skips_places = true;
}

bool sy_inspect_is_first_block(const struct sy_slab *slab)
{
	return sy__page_bytes(slab->page);
}

/* ---- What debugging recorded ------------------------------------------------------------------------------------------ */

static struct sy_inspect_record told_of(const struct sy__record *record)
{
	static const enum sy_inspect_state states[] = { [SY__RECORD_LIVE] = SY_INSPECT_LIVE,
		                                        [SY__RECORD_ENDING] = SY_INSPECT_QUARANTINED,
		                                        [SY__RECORD_QUARANTINED] = SY_INSPECT_QUARANTINED,
		                                        [SY__RECORD_GONE] = SY_INSPECT_GONE };

	return (struct sy_inspect_record){
		.object = record->object,
		.size = record->size,
		.state = states[record->state % (sizeof(states) / sizeof(*states))], /* which may be damaged */
		.cache = record->cache,
		.guarded = record->guarded,
		.allocated = { record->allocator, record->allocated, record->allocation_stack },
		.freed = { record->freer, record->freed, record->free_stack },
	};
}

void sy_inspect_records(const struct sy_heap *heap, void (*see)(void *context, const struct sy_inspect_record *), void *context)
{
	struct sy__record_walk walk = { .depth = 0 };
	const struct sy__record *record;

	while (heap->debug && (record = sy__record_next(heap->debug, &walk))) {
		struct sy_inspect_record told = told_of(record);

		see(context, &told);
	}
}

bool sy_inspect_record_of(const struct sy_heap *heap, const void *address, struct sy_inspect_record *told)
{
	const struct sy__record *record = heap->debug && address ? sy__record_of(heap->debug, address) : NULL;

	if (record)
		*told = told_of(record);
	return record;
}

bool sy_inspect_record_of_part(const struct sy_heap *heap, const struct sy_slab *slab, const struct sy_part *part,
                               struct sy_inspect_record *told)
{
	return sy_inspect_record_of(heap, slab->address + part->offset + (heap->debug && part->is_object ? SY__DEBUG_FRONT : 0), told);
}

void sy_inspect_transaction(const struct sy_heap *heap, uint64_t number, struct sy_inspect_transaction *told)
{
	const struct sy__transaction *is = &heap->debug->ring[(number - 1) % heap->debug->config.ring];

	*told = (struct sy_inspect_transaction){ is->free, is->object, is->size, is->cache, { is->thread, is->time, is->stack } };
}

_Static_assert(SY_INSPECT_FRAMES == SY__DEBUG_FRAMES, "a stack");

unsigned sy_inspect_stack(const struct sy_heap *heap, uint32_t number, uintptr_t frames[SY_INSPECT_FRAMES])
{
	const struct sy__debug *debug = heap->debug;
	const struct sy__stack *stack;
	unsigned depth;

	if (!debug || !debug->stacks || !number || number > debug->config.stacks)
		return 0;
	stack = &debug->stacks[number - 1];
	depth = stack->depth < SY__DEBUG_FRAMES ? stack->depth : SY__DEBUG_FRAMES;
	memcpy(frames, stack->frames, depth * sizeof(*frames));
	return depth;
}

/* ---- Names of code ------------------------------------------------------------------------------------------------ */

void sy_inspect_look_up(const uintptr_t *addresses, size_t count, bool (*locate)(uintptr_t, const char **, uintptr_t *))
{
	sy__symbols_locate = locate;
	sy__symbols_look_up(addresses, count);
}

const char *sy_inspect_name_of(uintptr_t address)
{
	const char *name = sy__symbol_of(address);

	return *name == '?' ? NULL : name;
}

bool sy_inspect_is_own(uintptr_t address)
{
	return sy__symbol_is_own(address);
}
