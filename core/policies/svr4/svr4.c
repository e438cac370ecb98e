/*
 * svr4: a buddy system that is lazy to join blocks.
 *
 * After T. P. Lee and R. E. Barkley, "A Watermark-based Lazy Buddy System for Kernel Memory Allocation", Summer
 * USENIX 1989, by the rule that the same authors found to do without watermarks ("A Lazy Buddy System Bounded by Two
 * Coalescing Delays", SOSP 1989); the kernel allocator of System V Release 4. One of the three that Bonwick (1994,
 * section 5) compared with the slab allocator.
 *
 * Blocks are powers of two, from 16 bytes to half a pool (tunable pool_order: 2^pool_order pages), aligned to their
 * size. A request takes the smallest block that holds it, of at least sy_sizing.align bytes. If there is none, a larger block
 * is split into two buddies, repeatedly. Two free buddies can be joined again. A plain buddy system joins them at every free,
 * only to split them at the next allocation. Here a class (all blocks of one size) leaves some of its free blocks alone:
 *
 *     locally free    on the class's own list, for the next request of this size; its buddy takes it for in use
 *     globally free   on the other list, and marked in the pool's map; it joins as soon as its buddy is globally free too
 *
 * A class's slack limits the locally free blocks. Of its N blocks, L are locally and G globally free, so N - L - G are in
 * use. Slack is N - 2L - G: by how much the blocks in use exceed the locally free ones. A free depends on the slack before it:
 *
 *     slack >= 2   lazy         the block becomes locally free; no work at all
 *     slack  = 1   reclaiming   the block becomes globally free, and joins its buddy if that is
 *     slack  = 0   accelerated  the same, also for the block that has been locally free for the longest
 *
 * So slack never falls below 0: at most as many blocks are locally free as are in use. A free joins at most two blocks of its
 * class. After the last free all blocks have become one; the pool is wholly free and goes back to the page allocator at
 * once. An allocation takes a locally free block, else a globally free one, else it splits.
 *
 * A pool's map has two bits for each 16 bytes (starts.h): whether a block starts there, which tells kfree the size, and whether
 * that block is globally free. The map takes 1/64 of the pool's memory, as metadata.
 *
 * Shrinking makes all locally free blocks globally free. The same happens when memory has run out, before a request fails, and
 * each second in heaps of threads: after a peak that was freed in random order, each pool has a few locally free blocks. If
 * there are no pages for a pool, a smaller pool that holds the request will do. Larger requests go straight to pages.
 *
 * Caches, memory nodes and locks: general.c.
 */
#include "../../bug.h"
#include "svr4.h"

#include "../../backend/metadata.h"

#define RECENT 16u /* locally free blocks that a second free is told of */

enum tunable { POOL_ORDER, TUNABLES };

static const struct sy_tunable tunables[TUNABLES] = {
	[POOL_ORDER] = { "pool_order", 2, 0, SY__SVR4_MAX_POOL_ORDER, NULL, false,
	                 "size of a pool (pages: 2^order); requests of more than half of it go straight to pages" },
};

SY_ASSERT_SLAB_STATE(struct sy__general_page, map);

/* A block and its pool. */
struct place {
	struct sy_page *pool;
	uint32_t *starts, *global; /* the pool's maps */
	char *memory;              /* of the pool */
	uint32_t unit, units;      /* of the block, and of the pool */
};

static inline struct sy__svr4_heap *svr4_of(struct sy__general_heap *general)
{
	return (struct sy__svr4_heap *)(void *)general;
}

/* The pool that holds an address. */
static inline struct place place_of(const struct sy__svr4_heap *svr4, const void *block)
{
	struct sy_page *pool = sy__head_of(&svr4->general.heap, block);
	uint32_t *map = SY_SLAB_STATE(struct sy__general_page, pool)->map;
	char *memory = sy__page_address(&svr4->general.heap, pool);

	return (struct place){ pool, map, map + ((size_t)SY__STARTS_WORDS << sy__page_order(pool)), memory,
		               (uint32_t)((size_t)((const char *)block - memory) >> SY__UNIT_SHIFT),
		               SY__PAGE_UNITS << sy__page_order(pool) };
}

static inline uint32_t class_units(unsigned class)
{
	return 1u << class;
}

static inline unsigned class_of(size_t bytes)
{
	return (unsigned)__builtin_ctz((uint32_t)bytes) - SY__UNIT_SHIFT;
}

static inline size_t largest(const struct sy__svr4_heap *svr4)
{
	return SY_PAGE_SIZE << svr4->pool_order >> 1;
}

/* ---- The fast path. With the heap's lock held ------------------------------------------------------------------ */

static void remove_global(struct sy__svr4_class *class, const struct place *place, uint32_t unit);
static uint64_t free_globally(struct sy__svr4_heap *svr4, unsigned slot, struct place place, unsigned at);
static uint64_t free_oldest_globally(struct sy__svr4_heap *svr4, unsigned slot, struct sy__svr4_class *class, unsigned at);
static SY__COLD void split(struct sy__svr4_heap *svr4, const void *block, unsigned at, unsigned wanted);

/*
 * Instructions of hot calls (docs/cost.md): kmem_cache_alloc 1344, kmem_cache_free 1700, kmalloc 1366, kfree 1720. Every call is a slow
 * call, and the counted object is alone: its block is split off a new page, and joined again. If a block is or becomes locally free,
 * only its list is touched and no function is called.
 */

/* Whether a link of a free block leads to one of its class, or to the head of a list. */
static inline bool leads_on(const struct sy__svr4_heap *svr4, const struct sy__svr4_class *class, const struct sy_list *link)
{
	return (sy__likely(sy__holds(&svr4->general.heap, link)) && sy__likely(!((uintptr_t)link & (SY__UNIT - 1)))) || link == &class->local ||
	       link == &class->global;
}

/* Whether a block may be a free one. What an object in use holds may look so, too, so these links are not followed. */
static inline bool looks_linked(const struct sy__svr4_heap *svr4, const struct sy__svr4_class *class, const struct sy_list *block)
{
	return leads_on(svr4, class, block->next) && leads_on(svr4, class, block->prev);
}

/* Whether a block is between two others that lead to it, as free ones are. */
static inline bool is_linked(const struct sy__svr4_heap *svr4, const struct sy__svr4_class *class, const struct sy_list *block)
{
	return looks_linked(svr4, class, block) && block->next->prev == block && block->prev->next == block;
}

/* The same of the first block of a list. */
static inline bool is_first(const struct sy__svr4_heap *svr4, const struct sy__svr4_class *class, const struct sy_list *list)
{
	const struct sy_list *block = list->next;

	return block->prev == list && leads_on(svr4, class, block->next) && block->next->prev == block;
}

/* The program has overwritten the links of a free block: its list ends here, and what was on it is lost. */
static SY__COLD void lose_list(struct sy__svr4_heap *svr4, struct sy_list *list, uint64_t *count, const void *block)
{
	sy__list_init(list);
	*count = 0;
	sy__bug(&svr4->general.heap, SY_BUG_WRITE_AFTER_FREE, block);
}

/* Takes a free block off its list; NULL: the class has none. */
static inline void *take_free(struct sy__svr4_heap *svr4, struct sy__svr4_class *class)
{
	struct sy_list *block = class->local.next;

	if (sy__likely(block != &class->local)) {
		if (sy__unlikely(!is_first(svr4, class, &class->local))) {
			lose_list(svr4, &class->local, &class->locally, block);
			return NULL;
		}
		sy__list_remove(block);
		class->locally--;
		return block;
	}
	block = class->global.next;
	if (block == &class->global)
		return NULL;
	if (sy__unlikely(!is_first(svr4, class, &class->global))) {
		lose_list(svr4, &class->global, &class->globally, block);
		return NULL;
	}

	struct place place = place_of(svr4, block);

	remove_global(class, &place, place.unit);
	return block;
}

static inline void *pop(struct sy__general_heap *general, unsigned node, const struct sy__general_want *want)
{
	struct sy__svr4_heap *svr4 = svr4_of(general);
	struct sy__svr4_class *classes = svr4->classes[node];
	unsigned wanted = class_of(want->bytes), at = wanted;
	void *block = take_free(svr4, &classes[wanted]);

	while (sy__unlikely(!block)) {
		if (++at == SY__SVR4_CLASSES)
			return NULL;
		block = take_free(svr4, &classes[at]);
	}
	if (sy__unlikely(at > wanted))
		split(svr4, block, at, wanted);
	return block;
}

static inline void push(struct sy__general_heap *general, unsigned slot, void *block, size_t bytes)
{
	struct sy__svr4_heap *svr4 = svr4_of(general);
	struct sy_page *pool = sy__head_of(&general->heap, block);
	unsigned at = class_of(bytes);
	struct sy__svr4_class *class = &svr4->classes[sy__page_node(pool)][at];
	uint64_t slack = sy__svr4_slack(class);

	if (sy__likely(slack >= 2)) {
		sy__list_add_head(&class->local, block);
		class->locally++;
		return;
	}
	free_globally(svr4, slot, place_of(svr4, block), at);
	if (slack == 0)
		free_oldest_globally(svr4, slot, class, at);
}

/* The map tells. */
static inline size_t block_bytes(struct sy__general_heap *general, const void *block)
{
	struct place place = place_of(svr4_of(general), block);

	return (size_t)(sy__starts_end(place.starts, place.unit, place.units) - place.unit) << SY__UNIT_SHIFT;
}

/* Nothing in use starts there: it is free, or inside of a block, which may be free. */
static SY__COLD void tell_unused(struct sy__svr4_heap *svr4, const struct place *place, const void *address)
{
	uint32_t unit = place->unit;

	while (unit && !sy__starts_at(place->starts, unit))
		unit--;
	sy__bug(&svr4->general.heap, sy__starts_at(place->global, unit) || unit == place->unit ? SY_BUG_DOUBLE_FREE : SY_BUG_INTERIOR_FREE, address);
}

/* Whether a block is among those that became locally free last. A program's objects may be linked in the same way, so its neighbours
 * alone do not tell. */
static SY__COLD bool is_recent(const struct sy__svr4_class *class, const struct sy_list *block)
{
	const struct sy_list *at = class->local.next;

	for (unsigned i = 0; i < RECENT && at != &class->local; i++, at = at->next)
		if (at == block)
			return true;
	return false;
}

/* The maps tell, but of locally free blocks. */
static inline bool in_use(struct sy__general_heap *general, struct sy_page *page, void *address)
{
	struct sy__svr4_heap *svr4 = svr4_of(general);
	struct place place = place_of(svr4, address);
	struct sy__svr4_class *class;

	if (sy__unlikely((uintptr_t)address & (SY__UNIT - 1))) {
		sy__bug(&general->heap, SY_BUG_INTERIOR_FREE, address);
		return false;
	}
	if (sy__likely(sy__starts_at(place.starts, place.unit) && !sy__starts_at(place.global, place.unit))) {
		class = sy__svr4_class_of(svr4, sy__page_node(page), (uint32_t)block_bytes(general, address));
		if (sy__likely(!looks_linked(svr4, class, address)) || !is_recent(class, address))
			return true;
	}
	tell_unused(svr4, &place, address);
	return false;
}

static inline struct sy_page *page_in(const struct sy_heap *heap, const void *object)
{
	return sy__head_of(heap, object);
}

#include "../general_entries.h"

static void *svr4_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	struct sy__general_heap *general = sy__general_of(heap);
	struct sy__general_want want;
	size_t bytes = size > general->least ? size : general->least;

	if (sy__unlikely(bytes > largest(svr4_of(general))))
		return sy__general_pages(general, slot, bytes, flags, node, NULL);
	want.bytes = want.align = sy__general_power(bytes, (uint32_t)SY__UNIT);
	return general_take(general, slot, &want, flags, node, &general->live);
}

/* ---- Globally free blocks ------------------------------------------------------------------------------------- */

static void add_global(struct sy__svr4_class *class, const struct place *place, uint32_t unit)
{
	sy__starts_set(place->global, unit);
	sy__list_add_head(&class->global, (struct sy_list *)(void *)(place->memory + ((size_t)unit << SY__UNIT_SHIFT)));
	class->globally++;
}

static void remove_global(struct sy__svr4_class *class, const struct place *place, uint32_t unit)
{
	sy__starts_clear(place->global, unit);
	sy__list_remove((struct sy_list *)(void *)(place->memory + ((size_t)unit << SY__UNIT_SHIFT)));
	class->globally--;
}

/* Whether the block that starts at this unit, if one does, is globally free and has `units`. */
static bool is_global(const struct place *place, uint32_t unit, uint32_t units)
{
	return sy__starts_at(place->global, unit) && sy__starts_end(place->starts, unit, place->units) == unit + units;
}

/* Whether a globally free buddy can be taken off its list. */
static bool buddy_is_sound(struct sy__svr4_heap *svr4, struct sy__svr4_class *class, const struct place *place, uint32_t unit)
{
	const struct sy_list *buddy = (const struct sy_list *)(const void *)(place->memory + ((size_t)unit << SY__UNIT_SHIFT));

	if (sy__likely(is_linked(svr4, class, buddy)))
		return true;
	lose_list(svr4, &class->global, &class->globally, buddy);
	return false;
}

/* Makes a block that is on no list globally free: joins it with its buddy while that is globally free. Returns pages given back. */
static uint64_t free_globally(struct sy__svr4_heap *svr4, unsigned slot, struct place place, unsigned at)
{
	struct sy__svr4_class *classes = svr4->classes[sy__page_node(place.pool)];
	uint64_t pages = (uint64_t)1 << sy__page_order(place.pool);

	while (class_units(at) < place.units && is_global(&place, place.unit ^ class_units(at), class_units(at)) &&
	       buddy_is_sound(svr4, &classes[at], &place, place.unit ^ class_units(at))) {
		remove_global(&classes[at], &place, place.unit ^ class_units(at));
		sy__starts_clear(place.starts, place.unit | class_units(at));
		place.unit &= ~class_units(at);
		classes[at++].blocks -= 2;
		classes[at].blocks++;
	}
	if (class_units(at) < place.units) {
		add_global(&classes[at], &place, place.unit);
		return 0;
	}
	classes[at].blocks--;
	sy__general_give(&svr4->general, slot, place.pool);
	return pages;
}

/* Makes the block that has been locally free for the longest globally free. Returns pages given back. */
static uint64_t free_oldest_globally(struct sy__svr4_heap *svr4, unsigned slot, struct sy__svr4_class *class, unsigned at)
{
	struct sy_list *oldest = class->local.prev;

	if (sy__unlikely(!is_linked(svr4, class, oldest))) {
		lose_list(svr4, &class->local, &class->locally, oldest);
		return 0;
	}
	sy__list_remove(oldest);
	class->locally--;
	return free_globally(svr4, slot, place_of(svr4, oldest), at);
}

/* Makes every locally free block globally free. Returns pages given back. */
static uint64_t free_all_globally(struct sy__general_heap *general, unsigned slot)
{
	struct sy__svr4_heap *svr4 = svr4_of(general);
	uint64_t pages = 0;

	for (unsigned node = 0; node < general->heap.nodes; node++)
		for (unsigned at = 0; at < SY__SVR4_CLASSES; at++)
			while (svr4->classes[node][at].locally)
				pages += free_oldest_globally(svr4, slot, &svr4->classes[node][at], at);
	return pages;
}

/* ---- Blocks --------------------------------------------------------------------------------------------------- */

/* Splits a block of class `at` that is on no list until its first part is of the wanted class. */
static SY__COLD void split(struct sy__svr4_heap *svr4, const void *block, unsigned at, unsigned wanted)
{
	struct place place = place_of(svr4, block);
	struct sy__svr4_class *classes = svr4->classes[sy__page_node(place.pool)];

	while (at > wanted) {
		classes[at--].blocks--;
		classes[at].blocks += 2;
		sy__starts_set(place.starts, place.unit + class_units(at));
		add_global(&classes[at], &place, place.unit + class_units(at));
	}
}

/* A new pool is one block, which is split at once. Not by pop: that might serve the request from other pools, and keep this one
 * although it is wholly free. */
static void *add(struct sy__general_heap *general, struct sy_page *page, const struct sy__general_want *want)
{
	struct sy__svr4_heap *svr4 = svr4_of(general);
	void *memory = sy__page_address(&general->heap, page);
	unsigned whole = class_of(SY_PAGE_SIZE << sy__page_order(page));

	sy__starts_set(SY_SLAB_STATE(struct sy__general_page, page)->map, 0);
	svr4->classes[sy__page_node(page)][whole].blocks++;
	split(svr4, memory, whole, class_of(want->bytes));
	return memory;
}

static unsigned order(const struct sy__general_heap *general, const struct sy__general_want *want)
{
	(void)want;
	return ((const struct sy__svr4_heap *)(const void *)general)->pool_order;
}

/* ---- Caches, and what they share ------------------------------------------------------------------------------- */

/* Blocks are aligned to their size, so an object of larger alignment takes a larger block, or pages. */
static bool svr4_cache_init(struct sy_cache *cache)
{
	struct sy__general_cache *own = sy__general_cache_of(cache);
	size_t bytes = sy__general_object_bytes(cache), least = bytes > cache->align ? bytes : cache->align;

	if (!bytes)
		return false;
	cache->size = (uint32_t)bytes;
	if (least <= largest(svr4_of(sy__general_of(cache->heap))))
		cache->size = own->want.bytes = own->want.align = sy__general_power(least, (uint32_t)SY__UNIT);
	return true;
}

/* All caches share the blocks. */
static uint64_t svr4_shrink(struct sy_cache *cache)
{
	struct sy__general_heap *general = sy__general_of(cache->heap);
	uint64_t pages;

	sy__lock(&general->lock);
	pages = free_all_globally(general, 0);
	sy__unlock(&general->lock);
	return pages;
}

static uint64_t unused_bytes(struct sy__general_heap *general)
{
	struct sy__svr4_heap *svr4 = svr4_of(general);
	uint64_t units = 0;

	for (unsigned node = 0; node < general->heap.nodes; node++)
		for (unsigned at = 0; at < SY__SVR4_CLASSES; at++)
			units += (svr4->classes[node][at].locally + svr4->classes[node][at].globally) * class_units(at);
	return units << SY__UNIT_SHIFT;
}

/* ---- Checks --------------------------------------------------------------------------------------------------- */

struct survey {
	struct sy__svr4_heap *svr4;
	const char *wrong;
};

static const char *survey_block(struct sy__svr4_heap *svr4, const struct place *place)
{
	uint32_t units = sy__starts_end(place->starts, place->unit, place->units) - place->unit;
	struct sy__svr4_class *class;

	if (units & (units - 1) || place->unit & (units - 1))
		return "svr4: a block is no power of two, or not aligned to its size";
	class = sy__svr4_class_of(svr4, sy__page_node(place->pool), units << SY__UNIT_SHIFT);
	class->seen_blocks++;
	if (!sy__starts_at(place->global, place->unit))
		return NULL;
	class->seen_globally++;
	if (units == place->units)
		return "svr4: a wholly free pool was kept";
	if (is_global(place, place->unit ^ units, units))
		return "svr4: two globally free buddies were not joined";
	return NULL;
}

/* Checks every unit of a pool. */
static bool survey_pool(void *context, struct sy_page *pool)
{
	struct survey *survey = context;
	struct place place;

	if (!sy__page_is_slab(pool))
		return true;
	place = place_of(survey->svr4, sy__page_address(&survey->svr4->general.heap, pool));
	if (!sy__starts_at(place.starts, 0))
		survey->wrong = "svr4: no block starts where a pool does";
	for (; place.unit < place.units && !survey->wrong; place.unit++) {
		if (sy__starts_at(place.starts, place.unit))
			survey->wrong = survey_block(survey->svr4, &place);
		else if (sy__starts_at(place.global, place.unit))
			survey->wrong = "svr4: the inside of a block is marked as globally free";
	}
	return !survey->wrong;
}

/* Checks a list of `count` free blocks. */
static const char *check_list(struct sy__svr4_heap *svr4, const struct sy_list *list, uint64_t count, bool global,
                              unsigned node, unsigned at)
{
	const struct sy_list *before = list;

	for (const struct sy_list *link = list->next; link != list; before = link, link = link->next) {
		struct sy_page *pool = sy__pages_find(&svr4->general.heap, link);
		struct place place;

		if (!count--)
			return "svr4: a list has more blocks than its class counts, or runs in a circle";
		if (!pool || !sy__page_is_slab(pool) || sy__page_node(pool) != node)
			return "svr4: a free block is in no pool of its heap and node";
		if (link->prev != before)
			return "svr4: a list of free blocks is not linked both ways";
		place = place_of(svr4, link);
		if (!sy__starts_at(place.starts, place.unit) ||
		    sy__starts_end(place.starts, place.unit, place.units) != place.unit + class_units(at))
			return "svr4: a block is on the list of another class";
		if (sy__starts_at(place.global, place.unit) != global)
			return "svr4: a block's mark as globally free does not agree with its list";
	}
	return count ? "svr4: a list has fewer blocks than its class counts" : NULL;
}

static const char *check_class(struct sy__svr4_heap *svr4, unsigned node, unsigned at)
{
	struct sy__svr4_class *class = &svr4->classes[node][at];
	const char *wrong = check_list(svr4, &class->local, class->locally, false, node, at);

	if (!wrong)
		wrong = check_list(svr4, &class->global, class->globally, true, node, at);
	if (wrong)
		return wrong;
	if (class->seen_blocks != class->blocks)
		return "svr4: a class counts other blocks than its pools have";
	if (class->seen_globally != class->globally)
		return "svr4: a block that is marked as globally free is on no list";
	if (2 * class->locally + class->globally > class->blocks)
		return "svr4: more blocks of a class are locally free than are in use: its slack is below 0";
	return NULL;
}

static const char *check_classes(struct sy__general_heap *general)
{
	struct sy__svr4_heap *svr4 = svr4_of(general);
	struct survey survey = { .svr4 = svr4 };
	uint64_t in_use = 0;

	for (unsigned node = 0; node < svr4->general.heap.nodes; node++)
		for (unsigned at = 0; at < SY__SVR4_CLASSES; at++)
			svr4->classes[node][at].seen_blocks = svr4->classes[node][at].seen_globally = 0;
	sy__pages_walk(&svr4->general.heap, survey_pool, &survey);
	for (unsigned node = 0; node < svr4->general.heap.nodes; node++) {
		for (unsigned at = 0; at < SY__SVR4_CLASSES && !survey.wrong; at++) {
			const struct sy__svr4_class *class = &svr4->classes[node][at];

			survey.wrong = check_class(svr4, node, at);
			in_use += class->blocks - class->locally - class->globally;
		}
	}
	if (!survey.wrong && in_use != sy__general_in_use(&svr4->general))
		survey.wrong = "svr4: the blocks that are not free are not as many as the objects in use";
	return survey.wrong;
}

/* ---- The policy ----------------------------------------------------------------------------------------------- */

static const struct sy__general_ops ops = {
	.pop = pop,
	.push = push,
	.add = add,
	.order = order,
	.coalesce = free_all_globally,
	.block_bytes = block_bytes,
	.unused_bytes = unused_bytes,
	.check = check_classes,
	.map_bytes = 2 * SY__STARTS_WORDS * sizeof(uint32_t),
};

static bool svr4_heap_init(struct sy_heap *heap)
{
	struct sy__svr4_heap *svr4 = svr4_of(sy__general_of(heap));

	svr4->classes = sy__metadata_take(heap, heap->nodes * sizeof(*svr4->classes));
	if (!svr4->classes)
		return false;
	for (unsigned node = 0; node < heap->nodes; node++) {
		for (unsigned at = 0; at < SY__SVR4_CLASSES; at++) {
			sy__list_init(&svr4->classes[node][at].local);
			sy__list_init(&svr4->classes[node][at].global);
		}
	}
	svr4->pool_order = (unsigned)heap->tunables[POOL_ORDER];
	sy__general_init(heap, &ops, (uint32_t)SY__UNIT);
	return true;
}

const struct sy_policy sy__svr4 = {
	.name = "svr4",
	.summary = "System V Release 4: a buddy system that is lazy to join freed blocks",
	.paper = "Lee and Barkley, A Watermark-based Lazy Buddy System for Kernel Memory Allocation, Summer USENIX 1989",
	.tunables = tunables,
	.tunable_count = TUNABLES,
	.heap_bytes = sizeof(struct sy__svr4_heap),
	.cache_bytes = sizeof(struct sy__general_cache),
	.cache_alloc = entry_alloc,
	.cache_free = entry_free,
	.kmalloc = svr4_kmalloc,
	.kfree = entry_kfree,
	.heap_init = svr4_heap_init,
	.cache_init = svr4_cache_init,
	.cache_fini = sy__general_cache_fini,
	.usable_size = sy__general_usable_size,
	.shrink = svr4_shrink,
	.scavenge = svr4_shrink,
	.shares_all = true,
	.grace_passed = sy__general_grace_passed,
	.counts = sy__general_counts,
	.check = sy__general_check,
	.unused_bytes = sy__general_unused_bytes,
	.walk = sy__svr4_walk,
	.walk_begin = sy__svr4_walk_begin,
	.walk_end = sy__svr4_walk_end,
};
