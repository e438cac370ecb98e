/*
 * The model: a list of live objects with their contents, a shadow of memory that tells which bytes they hold, and the state
 * that constructors set up. It calls the library through its public functions and compares.
 *
 * Contents. The client fills each object with one byte of its own, all that it may write, so that comparing an object
 * with itself moved by one byte proves every byte. An object of a constructed cache is put back into constructed state before
 * it is freed, as its client must (Bonwick 1994, section 2.1).
 *
 * The library's clock is replaced by one that only OP_TICK moves. One machine at a time: constructors have no context.
 */
#include "model.h"

#include "core/page_interface.h"
#include "core/pages/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOMY_PAGES 1024 /* of each node; enough to create heaps in */
#define CONSTRUCTED_BYTE 0xc5
#define WALK_EVERY 8 /* checks: a walk looks through the lists of a cache for each of its slabs */

static uint64_t machine_time;
static int64_t constructed_objects;
static const char *constructor_complaint;

static uint64_t machine_clock(void)
{
	return machine_time;
}

static bool filled_with(const unsigned char *memory, size_t bytes, unsigned char byte)
{
	return memory[0] == byte && memcmp(memory, memory + 1, bytes - 1) == 0;
}

static void construct(void *object, size_t size)
{
	memset(object, CONSTRUCTED_BYTE, size);
	constructed_objects++;
}

static void destruct(void *object, size_t size)
{
	if (!filled_with(object, size, CONSTRUCTED_BYTE))
		constructor_complaint = "a destructor got an object that is not in constructed state";
	constructed_objects--;
}

/* ---- The machine ---------------------------------------------------------------------------------------------- */

static struct sy_pages *make_pages(const struct conformance_config *config)
{
	struct sy_pages_config pages = { .zone_count = config->nodes, .slots = config->slots, .pageblock_order = 9,
		                         .cpu_lists = config->cpu_lists };

	for (unsigned i = 0; i < config->nodes; i++) {
		uint64_t stride = (config->pages_per_node + 1023ull) / 1024 * 1024;

		pages.zones[i] = (struct sy_zone_config){ .name = "Normal", .node = i, .start_page = i * stride,
			                                  .pages = stride, .managed = config->pages_per_node };
	}
	return sy_pages_create(&pages);
}

verdict machine_start(struct machine *machine, const struct sy_policy *policy)
{
	const struct conformance_config *config = machine->config;
	struct sy_heap_config heap;
	const struct sy_pages_base *base;

	machine_time = 1000000;
	constructed_objects = 0;
	constructor_complaint = NULL;
	sy_platform_set_clock(machine_clock);
	machine->pages = make_pages(config);
	if (!machine->pages)
		return "the page allocator could not be created";
	sy_heap_defaults(policy, &heap);
	heap.slots = config->slots;
	heap.nodes = config->nodes;
	heap.grace_ns = config->grace_ns;
	memcpy(heap.tunables, config->tunables, sizeof(heap.tunables));
	sy_pages_fail_after(machine->pages, config->fail_first);
	for (unsigned i = 0; i < config->heaps; i++) {
		machine->heaps[i] = sy_heap_create(machine->pages, &heap);
		if (!machine->heaps[i] && !config->fail_first && config->pages_per_node >= ROOMY_PAGES)
			return "a heap could not be created";
	}
	base = (const void *)machine->pages;
	machine->shadow_bytes = (size_t)base->page_count * SY_PAGE_SIZE;
	machine->shadow = calloc(machine->shadow_bytes, 1);
	machine->objects = malloc(MAX_OBJECTS * sizeof(*machine->objects));
	machine->waiting = malloc(MAX_OBJECTS * sizeof(*machine->waiting));
	if (!machine->shadow || !machine->objects || !machine->waiting)
		return "the test itself has no memory";
	return NULL;
}

void machine_free(struct machine *machine)
{
	if (machine->pages)
		sy_pages_destroy(machine->pages);
	free(machine->shadow);
	free(machine->objects);
	free(machine->waiting);
	sy_platform_set_clock(NULL);
}

/* ---- Objects -------------------------------------------------------------------------------------------------- */

static size_t place_of(const struct machine *machine, const unsigned char *memory)
{
	const struct sy_pages_base *base = (const void *)machine->pages;

	return (size_t)(memory - (const unsigned char *)base->memory);
}

/* Whether the pages that hold an address hold objects of the heap. */
static bool in_heap(const struct machine *machine, uint32_t heap, const unsigned char *memory)
{
	const struct sy_page *page;

	if (place_of(machine, memory) >= machine->shadow_bytes)
		return false;
	page = sy__head_of(machine->heaps[heap], memory);
	return page->heap == machine->heaps[heap] && (page->use == SY_USE_SLAB || page->use == SY_USE_LARGE);
}

static verdict check_place(struct machine *machine, const struct model_object *object, size_t align, unsigned flags,
                           int node)
{
	struct sy_heap *heap = machine->heaps[object->heap];
	size_t place = place_of(machine, object->memory);
	const struct sy_page *head;
	const char *end;

	if (!in_heap(machine, object->heap, object->memory))
		return "an object lies outside the pages of its heap";
	head = sy__head_of(heap, object->memory);
	end = (const char *)sy__page_address(heap, head) + (SY_PAGE_SIZE << head->order);
	if ((const char *)object->memory + object->bytes > end)
		return "an object reaches beyond the end of its slab";
	if (place % align)
		return "an object is not aligned as asked";
	if ((flags & SY_THISNODE) && node >= 0 && head->node != node)
		return "an object is not on the node that it must be on";
	if (memchr(machine->shadow + place, 1, object->bytes))
		return "an object overlaps another that is in use";
	return NULL;
}

/* Makes a new object the client's, once it is where and as it should be. */
static verdict adopt(struct machine *machine, struct model_object object, size_t asked, size_t align, unsigned flags,
                     int node)
{
	verdict wrong = check_place(machine, &object, align, flags, node);
	size_t place = place_of(machine, object.memory);
	bool constructed = object.cache != NO_CACHE && machine->caches[object.cache].constructed;

	if (wrong)
		return wrong;
	if (constructed && !filled_with(object.memory, asked, CONSTRUCTED_BYTE))
		return "an object is not in constructed state";
	if ((flags & SY_ZERO) && !filled_with(object.memory, asked, 0))
		return "an object is not zero, as asked";
	object.pattern = (unsigned char)(1 + machine->serial++ % 193); /* neither 0 nor CONSTRUCTED_BYTE */
	memset(object.memory, object.pattern, object.bytes);
	memset(machine->shadow + place, 1, object.bytes);
	machine->objects[machine->object_count++] = object;
	machine->result->allocations++;
	machine->result->hash = (machine->result->hash ^ place) * 0x100000001b3ull;
	return NULL;
}

static verdict refusal(struct machine *machine, const struct sy_heap *heap, uint64_t failures_before, bool *refused)
{
	*refused = true;
	machine->result->refused++;
	if (heap->counters.page_failures == failures_before)
		return "NULL, though no page request failed";
	return NULL;
}

verdict model_alloc(struct machine *machine, uint32_t index, unsigned slot, unsigned flags, int node, bool *refused)
{
	struct model_cache *cache = &machine->caches[index];
	struct sy_heap *heap = machine->heaps[cache->heap];
	uint64_t failures = heap->counters.page_failures;
	struct model_object object = { .bytes = cache->size, .cache = index, .heap = cache->heap };

	if (machine->object_count == MAX_OBJECTS)
		return NULL;
	if (cache->constructed)
		flags &= ~(unsigned)SY_ZERO;
	object.memory = sy_cache_alloc(cache->cache, slot, flags, node);
	if (!object.memory)
		return refusal(machine, heap, failures, refused);
	cache->live++;
	return adopt(machine, object, cache->size, cache->align, flags, node);
}

verdict model_kmalloc(struct machine *machine, uint32_t heap_index, size_t size, unsigned slot, unsigned flags, int node,
                      bool *refused)
{
	struct sy_heap *heap = machine->heaps[heap_index];
	uint64_t failures = heap->counters.page_failures;
	bool power = size && !(size & (size - 1));
	size_t align = power && size > 8 ? size < SY_PAGE_SIZE ? size : SY_PAGE_SIZE : 8;
	struct model_object object = { .cache = NO_CACHE, .heap = heap_index };

	if (machine->object_count == MAX_OBJECTS)
		return NULL;
	object.memory = sy_kmalloc(heap, slot, size, flags, node);
	if (size > SY_PAGE_SIZE << SY_MAX_ORDER) {
		*refused = true;
		return object.memory ? "an allocation beyond the largest block was not refused" : NULL;
	}
	if (!object.memory)
		return refusal(machine, heap, failures, refused);
	if (!in_heap(machine, heap_index, object.memory))
		return "an object lies outside the pages of its heap";
	object.bytes = sy_usable_size(heap, object.memory);
	if (object.bytes < size || !object.bytes)
		return "fewer bytes may be written than were asked for";
	return adopt(machine, object, size ? size : 1, align, flags & ~(size ? 0 : (unsigned)SY_ZERO), node);
}

/* Starts the wait of a freed object's memory. */
static void start_waiting(struct machine *machine, const struct model_object *object)
{
	if (machine->waiting_count < MAX_OBJECTS)
		machine->waiting[machine->waiting_count++] = (struct model_waiting){
			object->memory, machine_time + machine->config->grace_ns, object->cache };
}

static verdict check_contents(const struct model_object *object)
{
	return filled_with(object->memory, object->bytes, object->pattern) ? NULL : "an object's contents changed";
}

/* Frees in the order of allocation stay possible: the objects behind it move up. */
static void forget(struct machine *machine, uint32_t index)
{
	struct model_object *objects = machine->objects;

	memset(machine->shadow + place_of(machine, objects[index].memory), 0, objects[index].bytes);
	machine->object_count--;
	memmove(objects + index, objects + index + 1, (machine->object_count - index) * sizeof(*objects));
	machine->result->frees++;
}

verdict model_free(struct machine *machine, uint32_t index, unsigned slot)
{
	struct model_object object = machine->objects[index];
	verdict wrong = check_contents(&object);

	if (wrong)
		return wrong;
	forget(machine, index);
	if (object.cache == NO_CACHE) {
		sy_kfree(machine->heaps[object.heap], slot, object.memory);
		return NULL;
	}

	struct model_cache *cache = &machine->caches[object.cache];

	if (cache->constructed)
		memset(object.memory, CONSTRUCTED_BYTE, object.bytes);
	if (cache->flags & SY_CACHE_TYPESAFE_BY_RCU)
		start_waiting(machine, &object);
	cache->live--;
	sy_cache_free(cache->cache, slot, object.memory);
	return NULL;
}

/* ---- Caches --------------------------------------------------------------------------------------------------- */

static uint32_t free_entry(const struct machine *machine)
{
	for (uint32_t i = 0; i < machine->cache_count; i++)
		if (!machine->caches[i].exists)
			return i;
	return machine->cache_count;
}

/* At least a word; where cache lines are asked for, a line or the smallest part of it that holds the object. */
static uint32_t promised_alignment(uint32_t size, uint32_t align, uint32_t flags)
{
	uint32_t promised = align > sizeof(void *) ? align : (uint32_t)sizeof(void *), line = SY_CACHE_LINE;

	if (!(flags & SY_CACHE_HWCACHE_ALIGN))
		return promised;
	while (size <= line / 2)
		line /= 2;
	return line > promised ? line : promised;
}

verdict model_create(struct machine *machine, uint32_t heap_index, uint32_t size, uint32_t align, uint32_t flags,
                     bool constructed)
{
	struct sy_heap *heap = machine->heaps[heap_index];
	uint64_t failures = heap->counters.page_failures;
	uint32_t index = free_entry(machine);
	struct sy_cache_config config = { .name = "conformance", .size = size, .align = align, .flags = flags,
		                          .constructor = constructed ? construct : NULL,
		                          .destructor = constructed ? destruct : NULL };
	bool possible = size && size <= SY_PAGE_SIZE << SY_MAX_ORDER && !(align & (align - 1)) && align <= SY_PAGE_SIZE;
	struct sy_cache *cache;

	if (index == MAX_CACHES)
		return NULL;
	cache = sy_cache_create(heap, &config);
	if (!possible)
		return cache ? "an impossible cache was created" : NULL;
	if (!cache)
		return heap->counters.page_failures == failures && size < SY_PAGE_SIZE << (SY_MAX_ORDER - 1)
		               ? "a cache was refused, though no page request failed" : NULL;
	if (cache->object_size < size)
		return "a cache has smaller objects than asked for";
	machine->caches[index] = (struct model_cache){ cache, size, promised_alignment(size, align, flags), flags,
		                                       heap_index, 0, constructed, true };
	if (index == machine->cache_count)
		machine->cache_count++;
	return NULL;
}

/* Over all creations that share a cache: how many there are, and their objects. */
static uint64_t shared_live(const struct machine *machine, const struct sy_cache *cache, unsigned *creations)
{
	uint64_t live = 0;

	*creations = 0;
	for (uint32_t i = 0; i < machine->cache_count; i++) {
		const struct model_cache *other = &machine->caches[i];

		if (other->exists && other->cache == cache) {
			live += other->live;
			++*creations;
		}
	}
	return live;
}

static void stop_waiting(struct machine *machine, uint32_t cache)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < machine->waiting_count; i++)
		if (machine->waiting[i].cache != cache)
			machine->waiting[kept++] = machine->waiting[i];
	machine->waiting_count = kept;
}

verdict model_destroy(struct machine *machine, uint32_t index)
{
	struct model_cache *cache = &machine->caches[index];
	unsigned creations;
	uint64_t live = shared_live(machine, cache->cache, &creations), alive = 0;
	bool alone = creations == 1;

	if (!alone && cache->live)
		return NULL; /* whoever leaves a shared cache has freed its objects: nobody could tell whose they are */
	if (sy_cache_destroy(cache->cache, &alive)) {
		if (alone && live)
			return "a cache was destroyed with objects in use";
		cache->exists = false;
		stop_waiting(machine, index);
		return NULL;
	}
	if (!alone || !live)
		return "a cache without objects in use could not be destroyed";
	return alive == live ? NULL : "a refusal to destroy states a wrong number of objects in use";
}

/* ---- Time and checks ------------------------------------------------------------------------------------------ */

verdict model_tick(struct machine *machine, uint64_t nanoseconds)
{
	uint32_t kept = 0;

	machine_time += nanoseconds;
	for (uint32_t i = 0; i < machine->waiting_count; i++)
		if (machine->waiting[i].due > machine_time)
			machine->waiting[kept++] = machine->waiting[i];
	machine->waiting_count = kept;
	for (unsigned i = 0; i < machine->config->heaps; i++)
		if (machine->heaps[i])
			sy_heap_tick(machine->heaps[i]);
	return NULL;
}

static verdict check_counts(struct machine *machine, const struct model_cache *cache)
{
	struct sy_cache_counts counts;
	unsigned creations;

	sy_cache_count(cache->cache, &counts);
	if (counts.objects_in_use != shared_live(machine, cache->cache, &creations))
		return "a cache's objects in use are not those that the client holds";
	if (counts.partial_slabs + counts.full_slabs + counts.empty_slabs != counts.slabs)
		return "a cache's partial, full and empty slabs don't add up to its slabs";
	if (counts.objects_in_use + counts.objects_cached > counts.objects)
		return "a cache has more objects than room for them";
	return NULL;
}

/* What is unused and what clients hold of a heap's slabs don't exceed them. */
static verdict check_unused(struct machine *machine, uint32_t heap_index)
{
	struct sy_heap *heap = machine->heaps[heap_index];
	uint64_t bytes;

	if (!heap->policy->unused_bytes)
		return NULL;
	bytes = heap->policy->unused_bytes(heap);
	for (uint32_t i = 0; i < machine->object_count; i++) {
		const struct model_object *object = &machine->objects[i];

		if (object->heap == heap_index && sy__head_of(heap, object->memory)->use == SY_USE_SLAB)
			bytes += object->bytes;
	}
	return bytes <= heap->counters.slab_pages * SY_PAGE_SIZE ? NULL : "more bytes are unused than objects leave of the slabs";
}

/* ---- What walks show -------------------------------------------------------------------------------------------- */

struct walked {
	struct machine *machine;
	size_t told, bytes; /* of this slab */
	uint64_t pages;
	verdict wrong;
};

static bool see_slab(void *context, const struct sy_slab *slab)
{
	struct walked *walked = context;

	if (walked->told != walked->bytes)
		walked->wrong = "a walk does not show all of a slab";
	walked->told = 0;
	walked->bytes = slab->bytes;
	walked->pages += slab->bytes / SY_PAGE_SIZE;
	return !walked->wrong;
}

static bool see_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct walked *walked = context;
	const unsigned char *start = (const unsigned char *)slab->address + part->offset;

	if (part->offset != walked->told)
		walked->wrong = "a walk shows parts of a slab out of order, or not all";
	if (part->lists > 1)
		walked->wrong = "a free object is on two lists";
	if (part->state != SY_PART_USED && !slab->large && memchr(walked->machine->shadow + place_of(walked->machine, start), 1, part->bytes))
		walked->wrong = "a walk shows memory as free that a client holds";
	walked->told += part->bytes;
	return !walked->wrong;
}

static verdict check_walk(struct machine *machine, struct sy_heap *heap)
{
	struct walked walked = { .machine = machine };
	const struct sy_visitor visitor = { see_slab, see_part, &walked };

	sy_heap_walk(heap, &visitor);
	if (!walked.wrong && walked.told != walked.bytes)
		walked.wrong = "a walk does not show all of a slab";
	if (!walked.wrong && walked.pages != heap->counters.slab_pages + heap->counters.large_pages)
		walked.wrong = "a walk shows other slabs than the heap has";
	return walked.wrong;
}

verdict model_check(struct machine *machine)
{
	verdict wrong = constructor_complaint;

	for (unsigned i = 0; i < machine->config->heaps && !wrong; i++)
		if (machine->heaps[i])
			wrong = sy_heap_check(machine->heaps[i]);
	for (unsigned i = 0; i < machine->config->heaps && !wrong; i++)
		if (machine->heaps[i])
			wrong = check_unused(machine, i);
	for (unsigned i = 0; machine->checks % WALK_EVERY == 0 && i < machine->config->heaps && !wrong; i++)
		if (machine->heaps[i])
			wrong = check_walk(machine, machine->heaps[i]);
	machine->checks++;
	if (!wrong)
		wrong = sy_pages_check(machine->pages);
	for (uint32_t i = 0; i < machine->object_count && !wrong; i++)
		wrong = check_contents(&machine->objects[i]);
	for (uint32_t i = 0; i < machine->cache_count && !wrong; i++)
		if (machine->caches[i].exists)
			wrong = check_counts(machine, &machine->caches[i]);
	for (uint32_t i = 0; i < machine->waiting_count && !wrong; i++) {
		const struct model_waiting *waiting = &machine->waiting[i];

		if (!in_heap(machine, machine->caches[waiting->cache].heap, waiting->memory))
			wrong = "memory of an RCU-typesafe cache was given back before the grace period was over";
	}
	return wrong;
}

/* ---- The end -------------------------------------------------------------------------------------------------- */

/* Frees everything, in an order that is neither that of allocation nor its reverse, and destroys the caches. */
static verdict empty_heaps(struct machine *machine)
{
	verdict wrong = NULL;
	uint32_t step = 0;

	while (machine->object_count && !wrong) {
		wrong = model_free(machine, (step * 7919u) % machine->object_count, step % machine->config->slots);
		step++;
	}
	if (!wrong)
		wrong = model_check(machine);
	model_tick(machine, (uint64_t)machine->config->grace_ns + 1);
	for (unsigned i = 0; i < machine->config->heaps && !wrong; i++) {
		struct sy_heap *heap = machine->heaps[i];

		if (!heap)
			continue;
		sy_heap_shrink(heap);
		model_tick(machine, (uint64_t)machine->config->grace_ns + 1);
		if ((heap->counters.slab_pages && !heap->policy->never_reclaims) || heap->counters.large_pages)
			wrong = "slabs are left after everything was freed and the heap has shrunk";
	}
	for (uint32_t i = 0; i < machine->cache_count && !wrong; i++)
		if (machine->caches[i].exists)
			wrong = model_destroy(machine, i);
	return wrong ? wrong : model_check(machine);
}

static verdict check_all_free(struct machine *machine)
{
	struct sy_pages_counts counts;
	verdict wrong = sy_pages_check(machine->pages);

	sy_pages_fail_after(machine->pages, 0);
	for (unsigned slot = 0; slot < machine->config->slots; slot++)
		sy_pages_drain(machine->pages, slot);
	sy_pages_count(machine->pages, &counts);
	for (unsigned i = 0; i < counts.zone_count && !wrong; i++) {
		const struct sy_zone_counts *zone = &counts.zones[i];

		if (zone->used[SY_USE_SLAB] || zone->used[SY_USE_LARGE] || zone->used[SY_USE_METADATA])
			wrong = "pages of a heap outlive it";
		else if (zone->used[SY_USE_FREE] + zone->ungrown != zone->managed)
			wrong = "not every page is free at the end";
	}
	return wrong ? wrong : sy_pages_check(machine->pages);
}

verdict machine_end(struct machine *machine)
{
	verdict wrong = machine->config->leave_objects ? model_check(machine) : empty_heaps(machine);

	if (wrong)
		return wrong;
	for (unsigned i = 0; i < machine->config->heaps; i++)
		if (machine->heaps[i])
			sy_heap_destroy(machine->heaps[i]);
	for (uint32_t i = 0; i < machine->block_count; i++)
		sy_pages_free(machine->pages, 0, machine->blocks[i]);
	if (!wrong)
		wrong = constructor_complaint;
	if (!wrong && !machine->config->leave_objects && constructed_objects)
		wrong = constructed_objects > 0 ? "an object was constructed and never destroyed"
		                                : "an object was destroyed more often than constructed";
	return wrong ? wrong : check_all_free(machine);
}
