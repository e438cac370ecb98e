/*
 * SLUB: sheaves, as Linux has them since 6.18.
 *
 * A sheaf is an array of free objects of one cache, of any slabs. A slot has a main one, from which it allocates and into which it
 * frees, the last freed first, and a spare one, which is full or empty. Each node has a barn with some full and some empty ones. In
 * slabs these objects are in use.
 *
 *   allocating   If the main sheaf is empty, it changes places with the spare one, if that has objects; else with a full one of the
 *                barn. Failing that, and if the caller may wait, an empty one is filled from slabs at once, and the main one becomes the
 *                barn's. Requests for another node than the slot's are for slabs.
 *   freeing      If the main sheaf is full, it changes places with the spare one, if that is not; becomes the spare one, if there is
 *                none, and gives way to an empty one of the barn, or a new one; or becomes the barn's. A barn that has enough full ones
 *                has the spare one emptied into slabs. Objects of other nodes go to their slabs.
 *
 * Which caches have sheaves, and how large, is the version's matter (version.c). In 6.18 a sheaf is filled from, and emptied into, the
 * slabs that slots have as ever. In 7.0 slots have nothing else, and bulk.c fills sheaves from nodes' lists.
 *
 * A sheaf is an object of kmalloc. The heap itself holds it: it is not in use by clients, but counts as what slots keep. A class of
 * kmalloc has sheaves too in 7.0; making one for it never makes another, so this ends.
 *
 * Names of Linux 6.18, and ours:
 *
 *   slub_percpu_sheaves, slab_sheaf, node_barn           sy__slub_slot_sheaves, sy__slub_sheaf, sy__slub_barn
 *   alloc_from_pcs, free_to_pcs                          sy__slub_sheaf_alloc, sy__slub_sheaf_free
 *   __pcs_replace_empty_main, __pcs_replace_full_main    replace_empty, replace_full
 *   barn_replace_empty_sheaf, barn_replace_full_sheaf    trade_empty, trade_full
 *   barn_get_empty_sheaf, barn_put_empty_sheaf           take_empty, put_empty
 *   alloc_empty_sheaf, free_empty_sheaf                  make, end
 *   refill_sheaf, sheaf_flush_unused                     fill, empty_out
 *   pcs_flush_all, barn_shrink                           sy__slub_sheaves_drain, sy__slub_sheaves_shrink
 *
 * Only heaps whose slots one thread drives have sheaves: replays. Locks: a barn's (level 2), held with no other.
 */
#include "slub.h"

#include "../../backend/metadata.h"
#include "../../this_slot.h"
#include "../../walk.h"

static struct sy__slub_barn *barn_of(const struct sy__slub_cache *cache, unsigned slot)
{
	return &cache->sheaves->barns[sy__slot_node(cache->base.cache.heap, slot)];
}

static bool is_full(const struct sy__slub_cache *cache, const struct sy__slub_sheaf *sheaf)
{
	return sheaf->size == cache->sheaves->capacity;
}

/* ---- Calls: of a heap's policy, where sheaves come first ---------------------------------------------------------------- */

extern const struct sy_policy sy__slub;

static void *alloc_object(struct sy_cache *common, unsigned slot, unsigned flags, int node)
{
	struct sy__slub_cache *cache = sy__slub_cache(common);
	void *object = cache->sheaves ? sy__slub_sheaf_alloc(cache, slot, flags, node) : NULL;

	if (!object)
		return sy__slub.cache_alloc(common, slot, flags, node);
	if (flags & SY_ZERO)
		sy__fill(object, 0, common->object_size);
	return object;
}

static void free_object(struct sy_cache *common, unsigned slot, void *object)
{
	struct sy__slub_cache *cache = sy__slub_cache(common);

	if (!cache->sheaves || !sy__slub_sheaf_free(cache, slot, object))
		sy__slub.cache_free(common, slot, object);
}

static void *alloc_general(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	struct sy_cache *cache = sy__kmalloc_cache(&sy__slub_heap(heap)->kmalloc, size, flags);

	return cache ? alloc_object(cache, slot, flags, node) : sy__large_alloc(heap, slot, size, flags, node);
}

static void free_general(struct sy_heap *heap, unsigned slot, void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__page_is_slab(page))
		free_object(&sy__slub_cache_of(page)->base.cache, slot, object);
	else
		sy__large_free(heap, slot, page, object);
}

void sy__slub_sheaves_policy(struct sy_heap *heap)
{
	struct sy_policy *sheafed = &sy__slub_heap(heap)->sheafed;

	*sheafed = *heap->policy;
	sheafed->cache_alloc = alloc_object;
	sheafed->cache_free = free_object;
	sheafed->kmalloc = alloc_general;
	sheafed->kfree = free_general;
	if (sy__slub_has_sheaves(sy__slub_rules(heap)) && sy__slub_rules(heap).version >= SLUB_7_0 && !heap->tunables[SLUB_HARDEN])
		heap->policy = sheafed;
}

/* ---- Their memory ------------------------------------------------------------------------------------------------- */

/* Memory for a sheaf of the cache. */
static void *take_memory(const struct sy__slub_cache *cache, struct sy__slub_cache *class, unsigned slot, unsigned flags)
{
	struct sy__slub_sheaf *main = class->sheaves ? class->sheaves->slots[slot].main : NULL;
	void *object = NULL;

	if (main && !(cache->base.cache.flags & SY_CACHE_KMALLOC))
		object = sy__slub_sheaf_alloc(class, slot, flags, SY_ANY_NODE);
	else if (main && main->size)
		object = main->objects[--main->size];
	return object ? object : sy__slub_alloc_of_slabs(class, slot, flags, SY_ANY_NODE);
}

struct sy__slub_cache *sy__slub_sheaves_class(const struct sy__slub_cache *cache)
{
	size_t bytes = sizeof(struct sy__slub_sheaf) + cache->sheaves->capacity * sizeof(void *);
	struct sy_cache *class = sy__kmalloc_untyped(&sy__slub_heap(cache->base.cache.heap)->kmalloc, bytes);

	return class ? sy__slub_cache(class) : NULL;
}

/* NULL: no memory, or the classes are not there yet. */
static struct sy__slub_sheaf *make(struct sy__slub_cache *cache, unsigned slot, unsigned flags)
{
	struct sy__slub_cache *class = sy__slub_sheaves_class(cache);
	struct sy__slub_sheaf *sheaf = class ? take_memory(cache, class, slot, flags) : NULL;

	if (!sheaf)
		return NULL;
	class->own_objects++;
	sheaf->cache = cache;
	sheaf->size = 0;
	return sheaf;
}

/* At the end of a heap, kmalloc's classes end before the caches whose sheaves are in them; all pages go with the heap then. */
static void end(unsigned slot, struct sy__slub_sheaf *sheaf)
{
	struct sy_heap *heap = sheaf->cache->base.cache.heap;
	struct sy__slub_cache *class = sy__slub_cache_of(sy__head_of(heap, sheaf));

	if (!sy__slub_heap(heap)->classes_end) {
		class->own_objects--;
		sy__slub_free_to_slab(class, slot, sheaf);
	}
}

/* ---- Filling and emptying ----------------------------------------------------------------------------------------- */

static void fill(struct sy__slub_cache *cache, unsigned slot, unsigned flags, struct sy__slub_sheaf *sheaf)
{
	uint32_t capacity = cache->sheaves->capacity;
	void *object;

	if (cache->by_node)
		sheaf->size += sy__slub_take(cache, slot, flags, SY_ANY_NODE, sheaf->objects + sheaf->size, capacity - sheaf->size);
	else
		while (sheaf->size < capacity && (object = sy__slub_alloc_of_slabs(cache, slot, flags, SY_ANY_NODE)))
			sheaf->objects[sheaf->size++] = object;
}

static void empty_out(struct sy__slub_cache *cache, unsigned slot, struct sy__slub_sheaf *sheaf)
{
	for (uint32_t i = 0; i < sheaf->size; i++)
		sy__slub_free_to_slab(cache, slot, sheaf->objects[i]);
	sheaf->size = 0;
}

/* ---- Barns -------------------------------------------------------------------------------------------------------- */

static struct sy__slub_sheaf *take_first(struct sy_list *list, uint32_t *count)
{
	struct sy_list *link = list->next;

	if (link == list)
		return NULL;
	sy__list_remove(link);
	--*count;
	return sy__entry(link, struct sy__slub_sheaf, link);
}

static void put_first(struct sy_list *list, uint32_t *count, struct sy__slub_sheaf *sheaf)
{
	sy__list_add_head(list, &sheaf->link);
	++*count;
}

/* As in Linux, each of these looks before it takes the lock, and takes it once. */

static struct sy__slub_sheaf *take_empty(struct sy__slub_barn *barn)
{
	struct sy__slub_sheaf *sheaf;

	if (!barn->empties)
		return NULL;
	sy__lock(&barn->lock);
	sheaf = take_first(&barn->empty, &barn->empties);
	sy__unlock(&barn->lock);
	return sheaf;
}

static void put_empty(struct sy__slub_barn *barn, struct sy__slub_sheaf *sheaf)
{
	sy__lock(&barn->lock);
	put_first(&barn->empty, &barn->empties, sheaf);
	sy__unlock(&barn->lock);
}

/* A full sheaf for an empty one, or for NULL, if there is none; false: the barn has enough. */
static bool trade_full(const struct sy__slub_cache *cache, struct sy__slub_barn *barn, struct sy__slub_sheaf *full,
                       struct sy__slub_sheaf **empty)
{
	if (barn->fulls >= cache->sheaves->most_full)
		return false;
	sy__lock(&barn->lock);
	put_first(&barn->full, &barn->fulls, full);
	*empty = take_first(&barn->empty, &barn->empties);
	sy__unlock(&barn->lock);
	return true;
}

/* A full sheaf for an empty one; NULL: there is none. */
static struct sy__slub_sheaf *trade_empty(struct sy__slub_barn *barn, struct sy__slub_sheaf *empty)
{
	struct sy__slub_sheaf *full;

	if (!barn->fulls)
		return NULL;
	sy__lock(&barn->lock);
	full = take_first(&barn->full, &barn->fulls);
	if (full)
		put_first(&barn->empty, &barn->empties, empty);
	sy__unlock(&barn->lock);
	return full;
}

/* ---- Allocating --------------------------------------------------------------------------------------------------- */

static void change_places(struct sy__slub_slot_sheaves *own)
{
	struct sy__slub_sheaf *main = own->main;

	own->main = own->spare;
	own->spare = main;
}

/* Gives the slot a main sheaf with objects; false: there is none. */
static bool replace_empty(struct sy__slub_cache *cache, unsigned slot, unsigned flags)
{
	struct sy__slub_slot_sheaves *own = &cache->sheaves->slots[slot];
	struct sy__slub_barn *barn = barn_of(cache, slot);
	struct sy__slub_sheaf *sheaf;

	if (own->spare && own->spare->size) {
		change_places(own);
		return true;
	}
	sheaf = trade_empty(barn, own->main);
	if (sheaf) {
		own->main = sheaf;
		return true;
	}
	if (flags & (SY_HIGHATOMIC | SY_NO_RECLAIM))
		return false;
	sheaf = own->spare ? own->spare : take_empty(barn);
	own->spare = NULL;
	if (!sheaf)
		sheaf = make(cache, slot, 0);
	if (!sheaf)
		return false;
	fill(cache, slot, flags & SY__INHERITED_FLAGS, sheaf);
	put_empty(barn, own->main);
	own->main = sheaf;
	return sheaf->size;
}

void *sy__slub_sheaf_alloc(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node)
{
	const struct sy_heap *heap = cache->base.cache.heap;
	struct sy__slub_slot_sheaves *own = &cache->sheaves->slots[slot];

	if (!own->main || (node != SY_ANY_NODE && node != sy__slot_node(heap, slot)))
		return NULL;
	if (sy__unlikely(!own->main->size)) {
		if (!replace_empty(cache, slot, flags))
			return NULL;
		sy__count_slow(heap, &cache->base.cache.heap->counters.slow_allocs);
	}
	return own->main->objects[--own->main->size];
}

/* ---- Freeing ------------------------------------------------------------------------------------------------------ */

/* Gives the slot a main sheaf with room. */
static void replace_full(struct sy__slub_cache *cache, unsigned slot)
{
	struct sy__slub_slot_sheaves *own = &cache->sheaves->slots[slot];
	struct sy__slub_sheaf *spare = own->spare, *sheaf = NULL;
	struct sy__slub_barn *barn = barn_of(cache, slot);

	if (!spare)
		sheaf = take_empty(barn);
	else if (is_full(cache, spare) && !trade_full(cache, barn, own->main, &sheaf))
		empty_out(cache, slot, spare);
	if (spare && !is_full(cache, spare)) {
		change_places(own);
		return;
	}
	/* There is no spare one, or the main one is the barn's now; then the memory of a sheaf may not be taken from that. */
	if (spare)
		own->main = spare;
	if (!sheaf)
		sheaf = make(cache, slot, SY_NO_RECLAIM);
	if (!sheaf) {
		sheaf = spare ? spare : own->main;
		empty_out(cache, slot, sheaf);
		own->spare = NULL;
	} else if (!spare) {
		own->spare = own->main;
	}
	own->main = sheaf;
}

/* Whether the object may be in one of the slot's sheaves. */
static bool is_near(const struct sy__slub_cache *cache, unsigned slot, const void *object)
{
	struct sy_page *page = sy__node_head(&cache->base, object);

	return cache->sheaves->slots[slot].main && sy__page_node(page) == sy__slot_node(cache->base.cache.heap, slot) &&
	       sy__node_is_object(&cache->base, page, object);
}

bool sy__slub_sheaf_free(struct sy__slub_cache *cache, unsigned slot, void *object)
{
	struct sy__slub_slot_sheaves *own = &cache->sheaves->slots[slot];

	if (!is_near(cache, slot, object))
		return false;
	if (sy__unlikely(is_full(cache, own->main))) {
		sy__count_slow(cache->base.cache.heap, &cache->base.cache.heap->counters.slow_frees);
		replace_full(cache, slot);
	}
	own->main->objects[own->main->size++] = object;
	return true;
}

/* ---- A slot, a cache begins and ends -------------------------------------------------------------------------------- */

void sy__slub_sheaves_drain(struct sy__slub_cache *cache, unsigned slot)
{
	struct sy__slub_slot_sheaves *own = &cache->sheaves->slots[slot];

	if (own->main)
		empty_out(cache, slot, own->main);
	if (own->spare) {
		empty_out(cache, slot, own->spare);
		end(slot, own->spare);
	}
	own->spare = NULL;
}

static void end_all(struct sy__slub_cache *cache, struct sy_list *list, uint32_t *count)
{
	struct sy__slub_sheaf *sheaf;

	while ((sheaf = take_first(list, count))) {
		empty_out(cache, 0, sheaf);
		end(0, sheaf);
	}
}

void sy__slub_sheaves_shrink(struct sy__slub_cache *cache)
{
	for (unsigned node = 0; node < cache->base.cache.heap->nodes; node++) {
		struct sy__slub_barn *barn = &cache->sheaves->barns[node];

		end_all(cache, &barn->full, &barn->fulls);
		end_all(cache, &barn->empty, &barn->empties);
	}
}

bool sy__slub_sheaves_begin(struct sy__slub_cache *cache)
{
	for (unsigned slot = 0; slot < cache->base.cache.heap->slots; slot++) {
		struct sy__slub_slot_sheaves *own = &cache->sheaves->slots[slot];

		own->main = make(cache, slot, 0);
		if (!own->main)
			return false;
	}
	return true;
}

bool sy__slub_sheaves_init(struct sy__slub_cache *cache, uint32_t capacity)
{
	struct sy_heap *heap = cache->base.cache.heap;
	size_t slots_bytes = heap->slots * sizeof(struct sy__slub_slot_sheaves);
	size_t bytes = sizeof(struct sy__slub_sheaves) + slots_bytes + heap->nodes * sizeof(struct sy__slub_barn);
	struct sy__slub_sheaves *sheaves = sy__metadata_take(heap, bytes);

	if (!sheaves)
		return false;
	sheaves->bytes = bytes;
	sheaves->capacity = capacity;
	sheaves->most_full = (uint32_t)heap->tunables[SLUB_BARN_FULL];
	sheaves->slots = (struct sy__slub_slot_sheaves *)(void *)(sheaves + 1);
	sheaves->barns = (struct sy__slub_barn *)(void *)((char *)sheaves->slots + slots_bytes);
	for (unsigned node = 0; node < heap->nodes; node++) {
		sheaves->barns[node].lock = (sy__lock_t)SY__LOCK_INIT;
		sy__list_init(&sheaves->barns[node].full);
		sy__list_init(&sheaves->barns[node].empty);
	}
	cache->sheaves = sheaves;
	return true;
}

void sy__slub_sheaves_fini(struct sy__slub_cache *cache)
{
	struct sy_heap *heap = cache->base.cache.heap;

	for (unsigned slot = 0; slot < heap->slots; slot++)
		sy__slub_sheaves_drain(cache, slot);
	sy__slub_sheaves_shrink(cache);
	for (unsigned slot = 0; slot < heap->slots; slot++) {
		if (cache->sheaves->slots[slot].main)
			end(slot, cache->sheaves->slots[slot].main);
		cache->sheaves->slots[slot].main = NULL;
	}
	sy__metadata_give(heap, cache->sheaves, cache->sheaves->bytes);
	cache->sheaves = NULL;
}

bool sy__slub_classes_begin(struct sy_heap *heap)
{
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy__slub_cache *cache = sy__slub_cache(sy__entry(at, struct sy_cache, link));

		if (cache->sheaves && !sy__slub_sheaves_begin(cache))
			return false;
	}
	return true;
}

/* ---- Counting, checking, walking ---------------------------------------------------------------------------------- */

static const char *check_sheaf(const struct sy__slub_cache *cache, const struct sy__slub_sheaf *sheaf)
{
	if (sheaf->cache != cache || sheaf->size > cache->sheaves->capacity)
		return "slub: a sheaf is another cache's, or has more objects than it has room for";
	for (uint32_t i = 0; i < sheaf->size; i++) {
		struct sy_page *page = sy__node_head(&cache->base, sheaf->objects[i]);

		if (!sy__node_is_object(&cache->base, page, sheaf->objects[i]))
			return "slub: a sheaf has what is no object of its cache";
		for (uint32_t j = 0; j < i; j++)
			if (sheaf->objects[j] == sheaf->objects[i])
				return "slub: a sheaf has an object twice";
	}
	return NULL;
}

static const char *check_list(const struct sy__slub_cache *cache, const struct sy_list *list, uint32_t count, uint32_t size)
{
	const char *wrong = NULL;
	uint32_t seen = 0;

	for (const struct sy_list *at = list->next; !wrong && at != list && seen <= count; at = at->next, seen++) {
		const struct sy__slub_sheaf *sheaf = sy__entry(at, struct sy__slub_sheaf, link);

		wrong = sheaf->size == size ? check_sheaf(cache, sheaf) : "slub: a barn's list has a sheaf that is not full, or not empty";
	}
	return wrong || seen == count ? wrong : "slub: a barn's list is not as long as counted";
}

const char *sy__slub_sheaves_check(const struct sy__slub_cache *cache)
{
	const struct sy__slub_sheaves *sheaves = cache->sheaves;
	const char *wrong = NULL;

	for (unsigned slot = 0; !wrong && slot < cache->base.cache.heap->slots; slot++) {
		const struct sy__slub_slot_sheaves *own = &sheaves->slots[slot];

		if (own->main)
			wrong = check_sheaf(cache, own->main);
		if (!wrong && own->spare)
			wrong = check_sheaf(cache, own->spare);
	}
	for (unsigned node = 0; !wrong && node < cache->base.cache.heap->nodes; node++) {
		wrong = check_list(cache, &sheaves->barns[node].full, sheaves->barns[node].fulls, sheaves->capacity);
		if (!wrong)
			wrong = check_list(cache, &sheaves->barns[node].empty, sheaves->barns[node].empties, 0);
		if (!wrong && sheaves->barns[node].fulls > sheaves->most_full)
			wrong = "slub: a barn has more full sheaves than it may";
	}
	return wrong;
}

static uint32_t held(const struct sy__slub_sheaf *sheaf)
{
	return sheaf ? sheaf->size : 0;
}

uint64_t sy__slub_sheaves_objects(const struct sy__slub_cache *cache)
{
	const struct sy__slub_sheaves *sheaves = cache->sheaves;
	uint64_t objects = 0;

	for (unsigned slot = 0; slot < cache->base.cache.heap->slots; slot++)
		objects += held(sheaves->slots[slot].main) + held(sheaves->slots[slot].spare);
	for (unsigned node = 0; node < cache->base.cache.heap->nodes; node++)
		objects += (uint64_t)sheaves->barns[node].fulls * sheaves->capacity;
	return objects;
}

static void mark_sheaf(struct sy__walk *walk, const struct sy__slub_sheaf *sheaf, enum sy_part_state state, const char *list,
                       unsigned owner)
{
	for (uint32_t i = held(sheaf); i; i--)
		sy__walk_mark(walk, sheaf->objects[i - 1], state, list, owner, sheaf->size - i);
}

void sy__slub_sheaves_mark(struct sy__walk *walk, const struct sy__slub_cache *cache)
{
	for (unsigned slot = 0; slot < cache->base.cache.heap->slots; slot++) {
		const struct sy__slub_slot_sheaves *own = &cache->sheaves->slots[slot];

		mark_sheaf(walk, own->main, SY_PART_SLOT, "main sheaf", slot);
		mark_sheaf(walk, own->spare, SY_PART_SLOT, "spare sheaf", slot);
	}
	for (unsigned node = 0; node < cache->base.cache.heap->nodes; node++) {
		const struct sy_list *full = &cache->sheaves->barns[node].full;

		for (const struct sy_list *at = full->next; at != full; at = at->next)
			mark_sheaf(walk, sy__entry(at, struct sy__slub_sheaf, link), SY_PART_NODE, "barn", node);
	}
}
