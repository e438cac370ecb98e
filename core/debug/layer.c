/*
 * Where the layer is put over a policy: for a heap as a whole when it is created, or for its first cache with checks.
 *
 * The layer is a copy of the policy's table with other functions for objects. Of a heap as a whole it takes the place of the heap's
 * policy. A cache with checks has it as its own; so in one heap some caches have checks and others none, and those without run as if
 * there were no layer.
 */
#include "layer.h"

#include "../backend/metadata.h"
#include "../bug.h"
#include "../kmalloc.h"
#include "../this_slot.h"

#define FRONT SY__DEBUG_FRONT
#define BACK SY__DEBUG_BACK

/* ---- Caches --------------------------------------------------------------------------------------------------- */

uint32_t sy__debug_checks(const struct sy_heap *heap, const struct sy_cache_config *config, const char *name)
{
	const struct sy__debug *debug = heap->debug;
	uint32_t checks = config->debug;

	if (debug && debug->config.checks && !(config->flags & SY_CACHE_KMALLOC))
		checks |= debug->hooks->checks_of(debug->config.text, name);
	return checks;
}

/* The policy below constructs the objects of an RCU-typesafe cache, so they begin where the policy's own objects do. */
void sy__debug_cache(struct sy_cache *cache, uint32_t checks)
{
	struct sy__own *own = sy__own_of(cache);
	size_t front = sy__align_up(FRONT, cache->align), size = cache->object_size, state;

	own->size = (uint32_t)size;
	cache->flags |= SY_CACHE_NO_MERGE;
	if (cache->flags & SY_CACHE_TYPESAFE_BY_RCU || cache->supplier) {
		own->checks = checks & ~(uint32_t)(SY_DEBUG_RED_ZONES | SY_DEBUG_POISON | SY_DEBUG_STATE | SY_DEBUG_PAGES);
		own->room = (uint32_t)size;
		return;
	}
	own->checks = cache->constructor ? checks : checks & ~(uint32_t)SY_DEBUG_STATE;
	state = own->checks & SY_DEBUG_STATE ? size : 0;
	own->front = (uint32_t)front;
	own->room = (uint32_t)(front + sy__align_up(size + BACK, BACK) + state);
	own->constructor = cache->constructor;
	own->destructor = cache->destructor;
	cache->object_size = own->room;
	cache->constructor = cache->destructor = NULL;
}

/* The policy below does not know a cache's objects that have pages of their own. */
static void counts(struct sy_cache *cache, struct sy_cache_counts *all)
{
	struct sy__debug *debug = cache->heap->debug;
	struct sy__record_walk walk = { .depth = 0 };
	const struct sy__record *record;
	uint64_t guarded = 0;

	debug->below->counts(cache, all);
	sy__lock(&debug->lock);
	while ((record = sy__record_next(debug, &walk)))
		guarded += record->cache == cache && record->guarded && record->state == SY__RECORD_LIVE;
	sy__unlock(&debug->lock);
	all->objects += guarded;
	all->objects_in_use += guarded;
}

/* Nothing may lead to a cache that ends. */
static void cache_fini(struct sy_cache *cache)
{
	struct sy__debug *debug = cache->heap->debug;
	uint64_t used = debug->transactions < debug->config.ring ? debug->transactions : debug->config.ring;
	struct sy__record_walk walk = { .depth = 0 };
	struct sy__record *record;

	sy__lock(&debug->lock);
	while ((record = sy__record_next(debug, &walk)))
		if (record->cache == cache)
			record->cache = NULL;
	for (uint64_t i = 0; debug->ring && i < used; i++)
		if (debug->ring[i].cache == cache)
			debug->ring[i].cache = NULL;
	sy__unlock(&debug->lock);
	debug->below->cache_fini(cache);
}

/* The tables of the audit, for the first cache that wants it, or for the whole heap. */
static bool take_tables(struct sy_heap *heap, struct sy__debug *debug, uint32_t checks)
{
	if (!(checks & SY_DEBUG_AUDIT) || debug->ring)
		return true;
	debug->ring = sy__metadata_take(heap, debug->config.ring * sizeof(*debug->ring));
	debug->stacks = sy__metadata_take(heap, debug->config.stacks * sizeof(*debug->stacks));
	if (debug->ring && debug->stacks)
		return true;
	sy__metadata_give(heap, debug->ring, debug->config.ring * sizeof(*debug->ring));
	sy__metadata_give(heap, debug->stacks, debug->config.stacks * sizeof(*debug->stacks));
	debug->ring = NULL;
	debug->stacks = NULL;
	return false;
}

/* Linux's class of a size, as a number: of those beyond, the two that are no powers of two, and these. */
static unsigned class_of(size_t size)
{
	uint32_t class = sy__kmalloc_linux_size(size);

	return class == 96 ? 1 : class == 192 ? 2 : class ? sy__highest_bit(class) - 1 : 0;
}

uint32_t sy__debug_checks_of_size(const struct sy__debug *debug, size_t size)
{
	return debug->config.checks ? debug->kmalloc_checks[class_of(size)] : 0;
}

static void set_kmalloc_checks(struct sy__debug *debug)
{
	static const char *const names[SY__DEBUG_CLASSES] = {
		"kmalloc-large", "kmalloc-96", "kmalloc-192", "kmalloc-8",  "kmalloc-16", "kmalloc-32", "kmalloc-64",
		"kmalloc-128",   "kmalloc-256", "kmalloc-512", "kmalloc-1k", "kmalloc-2k", "kmalloc-4k", "kmalloc-8k",
	};

	debug->knows_all = true;
	for (unsigned i = 0; i < SY__DEBUG_CLASSES; i++) {
		debug->kmalloc_checks[i] = debug->hooks->checks_of(debug->config.text, names[i]);
		debug->knows_all = debug->knows_all && debug->kmalloc_checks[i];
	}
}

bool sy__debug_ready(struct sy_heap *heap, uint32_t checks)
{
	struct sy_debug_config config = sy__debug_usual(heap->debug_hooks);

	if (!checks)
		return true;
	if (heap->debug)
		return take_tables(heap, heap->debug, checks);
	config.checks = checks;
	if (!sy__debug_attach(heap, &config, false))
		return false;
	if (heap->debug->hooks->attached)
		heap->debug->hooks->attached(heap);
	return true;
}

uint32_t sy__debug_object_size(const struct sy_cache *cache)
{
	const struct sy__debug *debug = cache->heap->debug;

	return debug && cache->policy == &debug->policy ? sy__own_of(cache)->size : cache->object_size;
}

/* ---- Without a platform's own ------------------------------------------------------------------------------------- */

static unsigned no_stack(uintptr_t *frames, unsigned most)
{
	(void)frames;
	(void)most;
	return 0;
}

static uint64_t any_thread(void)
{
	return (uint64_t)(uintptr_t)sy__caller();
}

static void tell(struct sy_heap *heap, const struct sy__finding *finding)
{
	sy__bug(heap, finding->kind, finding->address);
}

static uint32_t heap_checks(const char *text, const char *name)
{
	(void)text;
	(void)name;
	return SY_DEBUG_ALL;
}

static const struct sy__debug_hooks plain = { no_stack, any_thread, tell, heap_checks, NULL };

/* free of any address: of guarded and adopted objects, too, which are outside of the heap's pages. */
static void free_any(void *object, struct sy_heap *heap)
{
	if (object)
		sy__this_slot_kfree(object, heap);
}

/* ---- Attaching ---------------------------------------------------------------------------------------------------- */

void sy__debug_over(struct sy__debug *debug, const struct sy_policy *below)
{
	debug->below = below;
	debug->policy = *below;
	debug->policy.cache_bytes = sy__own_offset(below) + sizeof(struct sy__own);
	debug->policy.cache_alloc = sy__debug_cache_alloc;
	debug->policy.cache_free = sy__debug_cache_free;
	debug->policy.kmalloc = sy__debug_kmalloc;
	debug->policy.kfree = sy__debug_kfree;
	debug->policy.usable_size = sy__debug_usable_size;
	debug->policy.cache_fini = cache_fini;
	debug->policy.counts = counts;
	debug->policy.cache_merge = NULL;
	debug->policy.this_slot = NULL;
	debug->policy.quick = NULL;
}

bool sy__debug_attach(struct sy_heap *heap, const struct sy_debug_config *config, bool whole)
{
	struct sy__debug *debug = sy__metadata_take(heap, sizeof(*debug));

	if (!debug)
		return false;
	*debug = (struct sy__debug){ .config = *config, .hooks = config->hooks ? config->hooks : &plain, .lock = SY__LOCK_INIT };
	sy__debug_over(debug, heap->policy);
	debug->quarantine_end = &debug->quarantine;
	debug->gone_end = &debug->gone;
	if (!take_tables(heap, debug, config->checks)) {
		sy__metadata_give(heap, debug, sizeof(*debug));
		return false;
	}
	heap->debug = debug;
	if (!whole)
		return true;
	set_kmalloc_checks(debug);
	heap->policy = &debug->policy;
	sy__this_slot_heap(heap);
	if (heap->threads)
		heap->free_this_slot = free_any;
	return true;
}

void sy__debug_detach(struct sy_heap *heap)
{
	struct sy__debug *debug = heap->debug;
	struct sy__record_walk walk = { .depth = 0 };
	const struct sy__record *record;

	if (!debug)
		return;
	while ((record = sy__record_next(debug, &walk)))
		if (record->guarded && record->state != SY__RECORD_GONE) /* others may have its addresses by now */
			sy__guard_release(record);
	debug->root = NULL;
	debug->records = 0;
	heap->policy = debug->below; /* whose functions end the caches */
}
