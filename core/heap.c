/*
 * Heaps and caches: what is the same for every policy.
 *
 * A heap is a policy at work on a page allocator; a cache holds objects of one kind (Bonwick 1994, section 2.3).
 * The hot functions jump from here to the policy. This file also creates and destroys heaps and caches, computes
 * alignment, and has heaps give memory back.
 *
 * Where things live. Everything is in pages of the page allocator, counted as metadata. The heap structure has pages of its
 * own, the heap header; caches and per-slot state come from metadata.c. Taking pages needs a heap that counts them. So a heap
 * starts as a draft on the stack, takes the pages for its header through the draft, and is copied there. Destruction copies
 * it back to the stack to give these pages back.
 *
 * Creating a cache. Alignment follows Linux: an object that wants cache lines gets half a line while two of it fit
 * in that, and so on down; no object is aligned to less than a word. Then the policy may name an existing cache to share
 * (merging). A shared cache counts its users, and its objects have as many usable bytes as the largest user asked for.
 *
 * Destroying. A cache with objects in use is not destroyed. A heap is, with everything in it: the policy ends its caches, and a
 * walk over the page allocator finds the pages that only clients could still reach (full slabs, large allocations).
 * Destructors run for the objects of slabs that the policy ends, so neither for objects in use nor for free ones beside
 * them in a slab.
 *
 * Heaps of threads. Work on a whole cache or heap first stops all slots (sy__slots_stop). Creating a cache is a slow call like
 * any other. Both fail inside constructors and destructors.
 *
 * Locks. sy_heap.lock protects the list of caches and their user counts. No page is taken while it is held: the page allocator
 * may then ask this heap to shrink, and shrinking takes the lock. The policy's cache_init and cache_fini run outside it. The
 * caller serialises creation and destruction (slabyard.h); in a heap of threads sy_heap.making and stops do. Destructors may
 * run under sy_heap.lock, so they must not call into a heap.
 */
#include "bug.h"
#include "debug/debug.h"
#include "deferred.h"
#include "geometry.h"
#include "this_slot.h"
#include "backend/large.h"
#include "backend/slot_areas.h"
#include "list.h"
#include "backend/metadata.h"
#include "page_interface.h"
#include "backend/run_cache.h"

static const struct sy__heap_hooks hooks;

/* ---- Calls with slots ----------------------------------------------------------------------------------------- */

void *sy_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	return heap->policy->kmalloc(heap, slot, size, flags, node);
}

void sy_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	if (sy__likely(object))
		heap->policy->kfree(heap, slot, object);
}

void *sy_cache_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node)
{
	return cache->policy->cache_alloc(cache, slot, flags, node);
}

void sy_cache_free(struct sy_cache *cache, unsigned slot, void *object)
{
	cache->policy->cache_free(cache, slot, object);
}

void sy_heap_tick(struct sy_heap *heap)
{
	uint64_t due = sy__time(&heap->tick_due);

	if (sy__unlikely(__atomic_load_n(&heap->deferred_first, __ATOMIC_RELAXED) || (due && sy__now() >= due)))
		sy__heap_tick(heap);
}

/* ---- Heaps ---------------------------------------------------------------------------------------------------- */

static bool tunable_fits(const struct sy_tunable *tunable, int64_t value)
{
	if (value == SY_TUNABLE_AUTO)
		return tunable->default_value == SY_TUNABLE_AUTO;
	return value >= tunable->min && value <= tunable->max;
}

static unsigned at_most(unsigned value, unsigned most)
{
	return value < most ? value : most;
}

static bool config_fits(const struct sy_heap_config *config, unsigned slots, unsigned nodes)
{
	if (!config->policy || (slots > SY_MAX_SLOTS && !config->threads) || nodes > SY_MAX_NODES)
		return false;
	for (unsigned i = 0; config->slot_nodes && i < at_most(slots, SY_MAX_SLOTS); i++)
		if (config->slot_nodes[i] >= nodes)
			return false;
	for (unsigned i = 0; i < config->policy->tunable_count; i++)
		if (!tunable_fits(&config->policy->tunables[i], config->tunables[i]))
			return false;
	if (config->sizing.classes > SY_CLASSES_FINE)
		return false;
	return !(config->sizing.align & (config->sizing.align - 1)) && config->sizing.align <= SY_PAGE_SIZE;
}

void sy_heap_defaults(const struct sy_policy *policy, struct sy_heap_config *config)
{
	*config = (struct sy_heap_config){ .policy = policy, .slots = 1, .nodes = 1 };
	for (unsigned i = 0; i < policy->tunable_count; i++)
		config->tunables[i] = policy->tunables[i].default_value;
}

/* Enters the owner in every page of a heap header. */
static void own_block(struct sy_heap *owner, struct sy_page *head)
{
	for (size_t i = 0; i < (size_t)1 << sy__page_order(head); i++)
		sy__page_set_heap(head + i, owner);
}

/* Takes pages for the heap header and copies the draft there. NULL: no memory. The policy's part is still to be set. */
static struct sy_heap *take_header(struct sy_heap *draft)
{
	size_t bytes = draft->policy->heap_bytes + (draft->threads ? draft->policy->threads_bytes : 0);
	struct sy_page *page = sy__pages_take(draft, 0, sy__order_of(bytes), SY_ZERO, SY_ANY_NODE, SY_USE_METADATA);
	struct sy_heap *heap;

	if (!page)
		return NULL;
	heap = sy__page_address(draft, page);
	*heap = *draft;
	own_block(heap, page);
	sy__list_init(&heap->caches);
	sy__list_init(&heap->link);
	sy__metadata_init(heap);
	heap->slot_areas_lock = (sy__lock_t)SY__LOCK_INIT;
	sy__this_slot_heap(heap);
	return heap;
}

static void give_header(struct sy_heap *heap)
{
	struct sy_page *page = sy__page_of(heap, heap);
	struct sy_heap last = *heap;

	own_block(&last, page);
	sy__pages_give(&last, 0, page);
}

static void free_cache(struct sy_cache *cache)
{
	struct sy_heap *heap = cache->heap;

	sy__lock(&heap->lock);
	sy__list_remove(&cache->link);
	sy__unlock(&heap->lock);
	cache->policy->cache_fini(cache);
	sy__metadata_give(heap, cache, cache->policy->cache_bytes);
}

static void free_caches(struct sy_heap *heap)
{
	while (!sy__list_empty(&heap->caches))
		free_cache(sy__entry(heap->caches.prev, struct sy_cache, link));
}

/* Gives back a block that only clients could reach. */
static bool sweep(void *context, struct sy_page *head)
{
	if (!sy__page_is_metadata(head))
		sy__pages_give(context, 0, head);
	return true;
}

/* Gives back all pages, the heap's own last. */
static void tear_down(struct sy_heap *heap)
{
	free_caches(heap);
	sy__pages_walk(heap, sweep, heap);
	sy__slot_areas_fini(heap);
	sy__metadata_fini(heap);
	give_header(heap);
}

/* Ends a complete heap that nobody else knows any more. */
static void end_heap(struct sy_heap *heap)
{
	free_caches(heap);
	if (heap->policy->heap_fini)
		heap->policy->heap_fini(heap);
	tear_down(heap);
}

static unsigned at_least(unsigned value, unsigned least)
{
	return value > least ? value : least;
}

static unsigned slots_of(const struct sy_heap_config *config)
{
	if (config->threads)
		return SY_THREAD_SLOTS;
	return config->slots ? config->slots : 1;
}

static unsigned cpus_of(const struct sy_heap_config *config, unsigned slots)
{
	if (config->threads)
		return sy__cpus();
	return config->cpus ? config->cpus : slots;
}

/* As it is, or hardened. */
static const struct sy_policy *policy_of(const struct sy_heap_config *config)
{
	const struct sy_policy *policy = config->policy;

	return policy && policy->hardened && config->tunables[policy->harden] ? policy->hardened : policy;
}

const char *sy__heap_refuses(const struct sy_heap_config *config)
{
	return config->policy && config->policy->refuses ? config->policy->refuses(config) : NULL;
}

/* From now on the caller drives all slots that were ever used. */
static void drive_alone(struct sy_heap *heap)
{
	heap->slots = sy__slots_used(heap);
	heap->threads = heap->concurrent = false;
}

struct sy_heap *sy_heap_create(struct sy_pages *pages, const struct sy_heap_config *config)
{
	const struct sy_policy *policy = policy_of(config);
	unsigned slots = slots_of(config), nodes = at_least(config->nodes, sy__pages_nodes(pages));
	struct sy_heap draft = { .policy = policy, .pages = pages, .hooks = &hooks, .slots = slots, .nodes = nodes,
	                         .cpus = cpus_of(config, slots), .threads = config->threads,
	                         .concurrent = config->concurrent || config->threads, .sizing = config->sizing, .grace_ns = config->grace_ns,
	                         .kernel = config->kernel,
	                         .debug_hooks = config->debug.hooks };
	struct sy_heap *heap;

	if (!config_fits(config, slots, nodes) || sy__heap_refuses(config))
		return NULL;
	for (unsigned i = 0, count = at_most(slots, SY_MAX_SLOTS); i < count; i++)
		draft.slot_node[i] = (uint8_t)(config->slot_nodes ? config->slot_nodes[i] : i * nodes / count);
	for (unsigned i = 0; i < config->policy->tunable_count; i++)
		draft.tunables[i] = config->tunables[i];

	heap = take_header(&draft);
	if (!heap)
		return NULL;
	heap->never_reclaims = heap->policy->never_reclaims;
	if ((heap->threads && !sy__run_cache_create(heap)) || (heap->policy->heap_init && !heap->policy->heap_init(heap))) {
		drive_alone(heap);
		tear_down(heap);
		return NULL;
	}
	if ((config->debug.checks && !sy__debug_attach(heap, &config->debug, true)) || (heap->threads && !sy__this_slot_attach(heap))) {
		drive_alone(heap);
		end_heap(heap);
		return NULL;
	}
	sy__pages_attach(pages, heap);
	return heap;
}

bool sy_heap_destroy(struct sy_heap *heap)
{
	bool threads = heap->threads;
	unsigned slot;

	sy__debug_verify(heap); /* nobody looks later */
	if (threads && !sy__stop_enter(&slot)) /* which also drops the notes that threads have of its objects */
		return false;
	if (threads)
		sy__this_slot_detach(heap);
	drive_alone(heap);
	sy__pages_detach(heap->pages, heap);
	sy__debug_detach(heap);
	end_heap(heap);
	if (threads)
		sy__stop_leave();
	return true;
}

/* ---- Caches --------------------------------------------------------------------------------------------------- */

static uint32_t alignment(const struct sy_cache_config *config)
{
	size_t align = config->align;

	if (config->flags & SY_CACHE_HWCACHE_ALIGN) {
		size_t line = SY_CACHE_LINE;

		while (config->size <= line / 2)
			line /= 2;
		align = align > line ? align : line;
	}
	return (uint32_t)(align > sizeof(void *) ? align : sizeof(void *));
}

static bool possible(const struct sy_policy *policy, const struct sy_cache_config *config)
{
	return (!config->supplier || policy->takes_suppliers) && config->size && config->size <= SY_PAGE_SIZE << SY_MAX_ORDER &&
	       !(config->align & (config->align - 1)) && config->align <= SY_PAGE_SIZE;
}

static void copy_name(char *to, const char *from)
{
	size_t i = 0;

	for (; from && from[i] && i < SY_NAME_BYTES - 1; i++)
		to[i] = from[i];
	to[i] = '\0';
}

/* Adds a user to an existing cache that can serve this one; NULL: there is none. */
static struct sy_cache *share(const struct sy_cache *wanted)
{
	struct sy_heap *heap = wanted->heap;
	struct sy_cache *cache;

	if (!sy__debug_below(heap)->cache_merge)
		return NULL;
	sy__lock(&heap->lock);
	cache = sy__debug_below(heap)->cache_merge(heap, wanted);
	if (cache) {
		cache->users++;
		if (cache->object_size < wanted->object_size)
			cache->object_size = wanted->object_size;
	}
	sy__unlock(&heap->lock);
	return cache;
}

static struct sy_cache *make_cache(const struct sy_cache *wanted, uint32_t checks)
{
	const struct sy_policy *policy = checks ? &wanted->heap->debug->policy : sy__debug_below(wanted->heap);
	struct sy_heap *heap = wanted->heap;
	struct sy_cache *cache = checks ? NULL : share(wanted);

	if (cache)
		return cache;
	cache = sy__metadata_take(heap, policy->cache_bytes);
	if (!cache)
		return NULL;
	*cache = *wanted;
	cache->policy = policy;
	if (checks)
		sy__debug_cache(cache, checks);
	sy__this_slot_cache(cache);
	if (!policy->cache_init(cache)) {
		sy__metadata_give(heap, cache, policy->cache_bytes);
		return NULL;
	}
	if (checks)
		sy__this_slot_cache(cache); /* whatever entries the policy below has chosen */
	sy__lock(&heap->lock);
	sy__list_add_tail(&heap->caches, &cache->link);
	sy__unlock(&heap->lock);
	return cache;
}

/* Threads may create caches at once; policies see one creation at a time. */
static struct sy_cache *make_cache_in_turn(const struct sy_cache *wanted, uint32_t checks)
{
	struct sy_cache *cache;
	unsigned slot;

	if (!sy__call_enter(&slot))
		return NULL;
	sy__lock(&wanted->heap->making);
	cache = sy__debug_ready(wanted->heap, checks) ? make_cache(wanted, checks) : NULL;
	sy__unlock(&wanted->heap->making);
	sy__call_leave();
	return cache;
}

struct sy_cache *sy_cache_create(struct sy_heap *heap, const struct sy_cache_config *config)
{
	struct sy_cache wanted;
	uint32_t checks;

	if (!possible(heap->policy, config))
		return NULL;
	wanted = (struct sy_cache){
		.heap = heap,
		.object_size = (uint32_t)config->size,
		.align = alignment(config),
		.flags = config->flags,
		.constructor = config->constructor,
		.destructor = config->destructor,
		.supplier = config->supplier,
		.sheaf_capacity = config->sheaf_capacity,
		.users = 1,
	};
	copy_name(wanted.name, config->name);
	checks = sy__debug_checks(heap, config, wanted.name);
	if (heap->threads)
		return make_cache_in_turn(&wanted, checks);
	return sy__debug_ready(heap, checks) ? make_cache(&wanted, checks) : NULL;
}

/* Takes one user off a cache that has more; false: this is the last one. */
static bool leave_shared(struct sy_cache *cache)
{
	struct sy_heap *heap = cache->heap;
	bool shared;

	sy__lock(&heap->lock);
	shared = cache->users > 1;
	if (shared)
		cache->users--;
	sy__unlock(&heap->lock);
	return shared;
}

/* Destroys the cache, unless objects are in use; how many are. */
static uint64_t end_cache(struct sy_cache *cache)
{
	struct sy_cache_counts counts = { 0 };

	if (leave_shared(cache))
		return 0;
	cache->ending = true;
	cache->policy->counts(cache, &counts);
	if (counts.objects_in_use)
		cache->ending = false;
	else
		free_cache(cache);
	return counts.objects_in_use;
}

bool sy_cache_destroy(struct sy_cache *cache, uint64_t *alive)
{
	struct sy_heap *heap = cache->heap;
	uint64_t objects;

	sy__debug_flush(heap, cache);
	if (!sy__slots_stop(heap))
		return false;
	objects = end_cache(cache);
	sy__slots_resume(heap);
	if (objects && alive)
		*alive = objects;
	return !objects;
}

void sy_cache_count(struct sy_cache *cache, struct sy_cache_counts *counts)
{
	struct sy_heap *heap = cache->heap;

	*counts = (struct sy_cache_counts){ 0 };
	sy__debug_flush(heap, cache);
	if (!sy__slots_stop_soon(heap))
		return;
	cache->policy->counts(cache, counts);
	sy__slots_resume(heap);
}

/* ---- Giving memory back --------------------------------------------------------------------------------------- */

uint64_t sy_cache_shrink(struct sy_cache *cache)
{
	struct sy_heap *heap = cache->heap;
	uint64_t pages = 0;

	sy__debug_flush(heap, cache);
	if (!cache->policy->shrink || !sy__slots_stop_soon(heap))
		return 0;
	pages = cache->policy->shrink(cache);
	sy__slots_resume(heap);
	return pages;
}

static uint64_t give_by_cache(struct sy_heap *heap, sy__giver giver)
{
	uint64_t pages = 0;

	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		pages += giver(sy__entry(at, struct sy_cache, link));
	return pages;
}

static uint64_t give(struct sy_heap *heap, sy__giver giver)
{
	struct sy_cache any = { .heap = heap, .policy = heap->policy };
	uint64_t pages = heap->run_cache ? sy__run_cache_flush(heap) : 0;

	if (!giver)
		return pages;
	sy__lock(&heap->lock);
	pages += heap->policy->shares_all ? giver(&any) : give_by_cache(heap, giver);
	sy__unlock(&heap->lock);
	return pages;
}

uint64_t sy__heap_give(struct sy_heap *heap, sy__giver giver)
{
	bool stopped = heap->threads && sy__stop_try();
	uint64_t pages = give(heap, giver);

	if (stopped)
		sy__stop_end();
	return pages;
}

static uint64_t reclaim(struct sy_heap *heap, bool urgent)
{
	return sy__heap_give(heap, heap->policy->reap && !urgent ? heap->policy->reap : heap->policy->shrink);
}

static const struct sy__heap_hooks hooks = {
	.reclaim = reclaim,
	.before_growth = sy__run_cache_before_growth,
	.release_retained = sy__retained_release,
	.release_run = sy__large_release,
};

uint64_t sy_heap_shrink(struct sy_heap *heap)
{
	uint64_t pages;

	sy__debug_flush(heap, NULL);
	if (!sy__slots_stop_soon(heap))
		return 0;
	pages = give(heap, heap->policy->shrink);
	sy__slots_resume(heap);
	return pages;
}

/* Some policies defer objects, which may then empty slabs; others defer empty slabs. So ends of grace periods come before and after. */
static void shrink_past_grace(struct sy_heap *heap)
{
	sy__deferred_poll(heap);
	give(heap, heap->policy->shrink);
	sy__deferred_poll(heap);
}

uint64_t sy_heap_trim(struct sy_heap *heap)
{
	uint64_t pages;

	sy__debug_verify(heap);
	sy__debug_flush(heap, NULL);
	if (!sy__slots_stop_soon(heap))
		return 0;
	shrink_past_grace(heap);
	sy__metadata_trim(heap);
	for (unsigned slot = 0; slot < sy__slots_used(heap); slot++)
		sy_pages_drain(heap->pages, slot);
	pages = sy_pages_release(heap->pages, 0) + give(heap, heap->policy->trim);
	sy__slots_resume(heap);
	return pages << SY_PAGE_SHIFT;
}

/* Of any address, but one inside an object in a slab may pass for the object. */
static size_t usable_size(struct sy_heap *heap, const void *object)
{
	struct sy_page *head;

	if (heap->debug)
		return sy__debug_usable_size(heap, object);
	head = sy__pages_find(heap, object);
	if (sy__likely(head && (sy__page_is_slab(head) || sy__large_in_use(heap, head, object))))
		return heap->policy->usable_size(heap, object);
	sy__bug_free(heap, object);
	return 0;
}

size_t sy_usable_size(struct sy_heap *heap, const void *object)
{
	unsigned slot;
	size_t bytes;

	if (!heap->threads)
		return usable_size(heap, object);
	if (sy__call_begin() != SY__DUMMY_OFFSET) {
		bytes = usable_size(heap, object);
		sy__call_end();
		return bytes;
	}
	if (!sy__call_enter(&slot))
		return 0;
	bytes = usable_size(heap, object);
	sy__call_leave();
	return bytes;
}
