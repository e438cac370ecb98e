/*
 * The model: a list of live objects with their contents, a shadow of memory that tells which bytes they hold, and the state
 * that constructors set up. It calls the library's public functions and compares.
 *
 * Contents. The client fills all that it may write of an object with one byte, so that comparing the object with itself moved
 * by one byte proves every byte. It puts an object of a constructed cache back into a constructed state before it frees it, as
 * it must (Bonwick 1994, section 2.1), and into another one each time. That shows whether the state is kept, or made again
 * without running the destructor and the constructor.
 *
 * The library's clock is replaced by one that only OP_TICK moves. One machine at a time: constructors have no context.
 */
#include "model.h"

#include "core/page_interface.h"
#include "core/pages/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONSTRUCTED_BYTE 0xc5 /* how the constructor leaves memory; the client's states are this and those above */
#define CONSTRUCTED_STATES 8
#define PATTERNS 193          /* contents of objects in use: from 1, below the constructed states */

static uint64_t machine_time;
static struct machine *running;

static uint64_t machine_clock(void)
{
	return machine_time;
}

static bool filled_with(const unsigned char *memory, size_t bytes, unsigned char byte)
{
	return memory[0] == byte && memcmp(memory, memory + 1, bytes - 1) == 0;
}

/* Byte of memory, from its start; beyond its end for addresses that aren't in it. */
size_t model_place(const struct machine *machine, const void *memory)
{
	const struct sy_pages_base *base = (const void *)machine->pages;

	return (size_t)((const char *)memory - base->memory);
}

/* Adds to the number of constructed objects of the heap whose page it is; false: it is no page of a heap. */
static bool count_constructed(const void *object, int64_t more)
{
	const struct sy_pages_base *base = (const void *)running->pages;
	size_t place = model_place(running, object);

	for (unsigned i = 0; i < running->config->heaps && place < running->shadow_bytes; i++) {
		if (!running->heaps[i] || base->table[place >> SY_PAGE_SHIFT].heap != running->heaps[i])
			continue;
		running->constructed[i] += more;
		return true;
	}
	running->complaint = "a constructor or destructor got memory that is not its heap's";
	return false;
}

static void construct(void *object, size_t size)
{
	if (!count_constructed(object, 1))
		return;
	memset(object, CONSTRUCTED_BYTE, size);
	running->shadow[model_place(running, object)] = CONSTRUCTED_BYTE;
}

static void destruct(void *object, size_t size)
{
	if (count_constructed(object, -1) && !filled_with(object, size, running->shadow[model_place(running, object)]))
		running->complaint = "a destructor got an object that is not in the constructed state that it was left in";
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

static uint64_t refused_pages(const struct machine *machine)
{
	struct sy_pages_counts counts;

	sy_pages_count(machine->pages, &counts);
	return counts.failures;
}

/* A heap may be missing afterwards, if it found no memory. */
static verdict make_heap(struct machine *machine, uint32_t index)
{
	const struct conformance_config *config = machine->config;
	uint64_t refused = refused_pages(machine);
	struct sy_heap_config heap;
	int64_t own[SY_MAX_TUNABLES];

	sy_heap_defaults(machine->policy, &heap);
	memcpy(own, heap.tunables, sizeof(own));
	heap.slots = config->slots;
	heap.nodes = config->nodes;
	heap.grace_ns = config->grace_ns;
	memcpy(heap.tunables, config->tunables, sizeof(heap.tunables));
	if (sy__heap_refuses(&heap)) { /* settings that do not go together: then the policy's own */
		if (sy_heap_create(machine->pages, &heap))
			return "a heap was made with settings that its policy refuses";
		memcpy(heap.tunables, own, sizeof(heap.tunables));
	}
	machine->heaps[index] = sy_heap_create(machine->pages, &heap);
	if (!machine->heaps[index] && refused_pages(machine) == refused)
		return "a heap was refused, though no page request failed";
	return NULL;
}

verdict machine_start(struct machine *machine, const struct sy_policy *policy)
{
	const struct conformance_config *config = machine->config;
	const struct sy_pages_base *base;
	verdict wrong = NULL;

	machine_time = 1000000;
	running = machine;
	machine->policy = policy;
	sy_platform_set_clock(machine_clock);
	machine->pages = make_pages(config);
	if (!machine->pages)
		return "the page allocator could not be created";
	sy_pages_fail_after(machine->pages, config->fail_first);
	for (unsigned i = 0; i < config->heaps && !wrong; i++)
		wrong = make_heap(machine, i);
	base = (const void *)machine->pages;
	machine->shadow_bytes = (size_t)base->page_count * SY_PAGE_SIZE;
	machine->shadow = calloc(machine->shadow_bytes, 1);
	machine->objects = malloc(MAX_OBJECTS * sizeof(*machine->objects));
	machine->waiting = malloc(MAX_OBJECTS * sizeof(*machine->waiting));
	if (!machine->shadow || !machine->objects || !machine->waiting)
		return "the test itself has no memory";
	return wrong;
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

/* Whether the pages that hold an address hold objects of the heap. */
bool model_in_heap(const struct machine *machine, uint32_t heap, const unsigned char *memory)
{
	const struct sy_page *page;

	if (model_place(machine, memory) >= machine->shadow_bytes)
		return false;
	page = sy__head_of(machine->heaps[heap], memory);
	return page->heap == machine->heaps[heap] && (page->use == SY_USE_SLAB || page->use == SY_USE_LARGE);
}

static verdict check_place(struct machine *machine, const struct model_object *object, size_t align, unsigned flags,
                           int node)
{
	struct sy_heap *heap = machine->heaps[object->heap];
	size_t place = model_place(machine, object->memory);
	const struct sy_page *head;
	const char *end;

	if (!model_in_heap(machine, object->heap, object->memory))
		return "an object lies outside the pages of its heap";
	head = sy__head_of(heap, object->memory);
	end = (const char *)sy__page_address(heap, head) + (SY_PAGE_SIZE << head->order);
	if ((const char *)object->memory + object->bytes > end)
		return "an object reaches beyond the end of its slab";
	if (place % align)
		return "an object is not aligned as asked";
	if ((flags & SY_THISNODE) && node >= 0 && head->node != node)
		return "an object is not on the node that it must be on";
	if (memchr(machine->shadow + place, SHADOW_HELD, object->bytes))
		return "an object overlaps another that is in use";
	return NULL;
}

/* Makes a new object the client's, once it has been checked. */
static verdict adopt(struct machine *machine, struct model_object object, size_t asked, size_t align, unsigned flags,
                     int node)
{
	verdict wrong = check_place(machine, &object, align, flags, node);
	size_t place = model_place(machine, object.memory);
	bool constructed = object.cache != NO_CACHE && machine->caches[object.cache].constructed;

	if (wrong)
		return wrong;
	if (constructed && (machine->shadow[place] < CONSTRUCTED_BYTE || !filled_with(object.memory, asked, machine->shadow[place])))
		return "an object is not in the constructed state that it was left in";
	if ((flags & SY_ZERO) && !filled_with(object.memory, asked, 0))
		return "an object is not zero, as asked";
	object.pattern = (unsigned char)(1 + machine->serial++ % PATTERNS);
	memset(object.memory, object.pattern, object.bytes);
	memset(machine->shadow + place, SHADOW_HELD, object.bytes);
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
	if (!model_in_heap(machine, heap_index, object.memory))
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

/* Puts an object into another of its constructed states. */
static void leave_constructed(struct machine *machine, const struct model_object *object)
{
	unsigned char state = (unsigned char)(CONSTRUCTED_BYTE + machine->serial % CONSTRUCTED_STATES);

	memset(object->memory, state, object->bytes);
	machine->shadow[model_place(machine, object->memory)] = state;
}

verdict model_contents(const struct model_object *object)
{
	return filled_with(object->memory, object->bytes, object->pattern) ? NULL : "an object's contents changed";
}

/* Frees in the order of allocation stay possible: the objects behind it move up. */
static void forget(struct machine *machine, uint32_t index)
{
	struct model_object *objects = machine->objects;

	memset(machine->shadow + model_place(machine, objects[index].memory), 0, objects[index].bytes);
	machine->object_count--;
	memmove(objects + index, objects + index + 1, (machine->object_count - index) * sizeof(*objects));
	machine->result->frees++;
}

verdict model_free(struct machine *machine, uint32_t index, unsigned slot)
{
	struct model_object object = machine->objects[index];
	verdict wrong = model_contents(&object);

	if (wrong)
		return wrong;
	forget(machine, index);
	if (object.cache == NO_CACHE) {
		sy_kfree(machine->heaps[object.heap], slot, object.memory);
		return NULL;
	}

	struct model_cache *cache = &machine->caches[object.cache];

	if (cache->constructed)
		leave_constructed(machine, &object);
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

/* At least a word. With cache-line alignment: a line, or the smallest part of a line that holds the object. */
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

/* Counts all creations that share a cache, and their objects. */
uint64_t model_shared_live(const struct machine *machine, const struct sy_cache *cache, unsigned *creations)
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
	uint64_t live = model_shared_live(machine, cache->cache, &creations), alive = 0;
	bool alone = creations == 1 && !(cache->cache->flags & SY_CACHE_KMALLOC); /* a class of kmalloc is the heap's, too */

	if (!alone && cache->live)
		return NULL; /* a client that leaves a shared cache has freed its objects, as nobody could tell whose they are */
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

/* ---- Heaps ---------------------------------------------------------------------------------------------------- */

static verdict check_constructed(const struct machine *machine, uint32_t heap)
{
	if (!machine->constructed[heap])
		return NULL;
	return machine->constructed[heap] > 0 ? "an object was constructed and never destroyed"
	                                      : "an object was destroyed more often than constructed";
}

/* The heap is about to be destroyed; true: with objects in it. */
static bool forget_heap(struct machine *machine, uint32_t heap)
{
	uint32_t kept = 0, before = machine->object_count;

	for (uint32_t i = 0; i < machine->cache_count; i++) {
		struct model_cache *cache = &machine->caches[i];

		if (!cache->exists || cache->heap != heap)
			continue;
		cache->exists = false;
		stop_waiting(machine, i);
	}
	for (uint32_t i = 0; i < before; i++) {
		const struct model_object object = machine->objects[i];

		if (object.heap == heap)
			memset(machine->shadow + model_place(machine, object.memory), 0, object.bytes);
		else
			machine->objects[kept++] = object;
	}
	machine->object_count = kept;
	return kept < before;
}

static verdict destroy_heap(struct machine *machine, uint32_t index)
{
	struct sy_heap *heap = machine->heaps[index];
	uint64_t peak = heap->counters.held_peak;
	bool left = forget_heap(machine, index);
	verdict wrong;

	if (peak > machine->result->peak_pages)
		machine->result->peak_pages = peak;
	sy_heap_destroy(heap);
	machine->heaps[index] = NULL;
	wrong = left ? NULL : check_constructed(machine, index);
	machine->constructed[index] = 0; /* objects in use at the end of a heap end without a destructor */
	return wrong ? wrong : machine->complaint;
}

/* Every page in use belongs to a living heap or to the environment. */
static verdict check_owners(const struct machine *machine)
{
	struct sy_pages_counts counts;
	uint64_t used = 0, owned = 0;

	sy_pages_count(machine->pages, &counts);
	for (unsigned i = 0; i < counts.zone_count; i++) {
		const uint64_t *by_use = counts.zones[i].used;

		used += by_use[SY_USE_SLAB] + by_use[SY_USE_LARGE] + by_use[SY_USE_METADATA];
	}
	for (unsigned i = 0; i < machine->config->heaps; i++) {
		const struct sy_heap *heap = machine->heaps[i];

		if (heap)
			owned += heap->counters.slab_pages + heap->counters.large_pages + heap->counters.metadata_pages;
	}
	return used == owned ? NULL : "pages of a heap outlive it";
}

verdict model_renew_heap(struct machine *machine, uint32_t index)
{
	verdict wrong = machine->heaps[index] ? destroy_heap(machine, index) : NULL;

	if (!wrong)
		wrong = check_owners(machine);
	return wrong ? wrong : make_heap(machine, index);
}

/* ---- Time ----------------------------------------------------------------------------------------------------- */

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

/* ---- The end -------------------------------------------------------------------------------------------------- */

/* Whether each slab of a heap holds an object that the heap itself uses. A policy that uses none has no slab. */
static bool has_own_objects_only(struct sy_heap *heap)
{
	uint64_t pages = 0;

	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy_cache_counts counts;

		sy_cache_count(sy__entry(at, struct sy_cache, link), &counts);
		if (counts.slabs && (counts.empty_slabs || !counts.objects_cached))
			return false;
		pages += counts.pages;
	}
	return pages == heap->counters.slab_pages;
}

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
		if ((heap->counters.slab_pages && !heap->never_reclaims && !has_own_objects_only(heap)) || heap->counters.large_pages)
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

	machine->armed = machine->armed && !machine->pages->fail_after;
	sy_pages_fail_after(machine->pages, 0);
	for (unsigned slot = 0; slot < machine->config->slots; slot++)
		sy_pages_drain(machine->pages, slot);
	sy_pages_count(machine->pages, &counts);
	machine->result->page_requests = counts.requests;
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
	for (unsigned i = 0; i < machine->config->heaps && !wrong; i++)
		if (machine->heaps[i])
			wrong = destroy_heap(machine, i);
	for (uint32_t i = 0; i < machine->block_count; i++)
		sy_pages_free(machine->pages, 0, machine->blocks[i]);
	return wrong ? wrong : check_all_free(machine);
}
