/*
 * sunos4: fast fits.
 *
 * After C. J. Stephenson, "Fast Fits: New Methods for Dynamic Storage Allocation", SOSP 1983, the kernel allocator of SunOS
 * 4.1.3; one of the three that Bonwick (1994, section 5) compared with the slab allocator: the most frugal of them, and by far
 * the slowest. A sequential fit cuts a block of exactly the requested size from a larger free one, and joins a freed block with
 * its free neighbours. Its weak point is the search. Stephenson makes that cheap by keeping free blocks in a Cartesian
 * tree (tree.h): the root is the largest, and addresses ascend from left to right.
 *
 * The tunable fit says which free block serves a request. leftmost takes the one at the lowest address: first fit without the
 * search from the front. better goes down to the smaller child that still fits, which comes near best fit. The object takes the
 * start of the block, and the rest goes back into the tree. A free finds the free neighbours by going down by address.
 *
 * Memory is counted in units of 16 bytes, the size of a tree node, so no rest is too small to be a free block. Memory grows by
 * chunks of pages (tunable chunk_order: 2^chunk_order of them). A chunk that is wholly free goes back to the page allocator at
 * once, or stays where the tunable keep says so. SunOS has one arena and gives back pages of it; here no block crosses chunks, so
 * that a chunk can go back by itself.
 * Requests of more than half a chunk go straight to pages.
 *
 * Alignment. The original aligns to its unit only. Here an object that wants more (by its own size, its cache's alignment or
 * sy_sizing.align) takes the first aligned place in its block, and what lies before it stays free. Leftmost fit tries that in
 * the leftmost TRIES blocks of the object's size, then takes the leftmost block that is large enough in any case. Better fit
 * takes the last block on its way down that has room.
 *
 * A chunk's map (starts.h) tells where blocks start, free ones too, and so the size of a block, which SunOS's kmem_free is told
 * but kfree is not. The map takes 1/128 of the chunk's memory, as metadata. Only the tree says which blocks are free.
 *
 * There is nothing to shrink, as no free memory is retained that could go back. If there are no pages for a chunk, a smaller
 * chunk that holds the request will do. Caches, memory nodes and locks: general.c.
 */
#include "sunos4.h"

#include "../../bug.h"

#define TRIES 8u

enum tunable { FIT, CHUNK_ORDER, KEEP, TUNABLES };

static const char *const fit_names[] = { "leftmost", "better" };

static const struct sy_tunable tunables[TUNABLES] = {
	[FIT] = { "fit", SY__SUNOS4_LEFTMOST, SY__SUNOS4_LEFTMOST, SY__SUNOS4_BETTER, fit_names, false,
	          "which free block serves a request: leftmost or better fit" },
	[CHUNK_ORDER] = { "chunk_order", 2, 0, SY__SUNOS4_MAX_CHUNK_ORDER, NULL, false,
	                  "what memory grows by (pages: 2^order); requests of more than half of it go straight to pages" },
	[KEEP] = { "keep", 0, 0, 1, SY__OFF_ON, false, "a chunk that is wholly free stays for later requests" },
};

SY_ASSERT_SLAB_STATE(struct sy__general_page, map);

/* The chunk around a block. */
struct chunk {
	struct sy_page *page;
	uint32_t *starts;
	uint64_t first; /* number of the block that starts where the chunk does */
	uint32_t units;
};

static inline struct sy__sunos4_heap *sunos4_of(struct sy__general_heap *general)
{
	return (struct sy__sunos4_heap *)(void *)general;
}

static inline struct chunk chunk_of(struct sy__sunos4_heap *sunos4, struct sy_page *page)
{
	void *memory = sy__page_address(&sunos4->general.heap, page);

	return (struct chunk){ page, SY_SLAB_STATE(struct sy__general_page, page)->map,
		               sy__tree_number(&sunos4->trees[sy__page_node(page)], memory), SY__PAGE_UNITS << sy__page_order(page) };
}

static inline size_t largest(const struct sy__sunos4_heap *sunos4)
{
	return SY_PAGE_SIZE << sunos4->chunk_order >> 1;
}

static inline uint32_t rounded(size_t bytes)
{
	return bytes ? (uint32_t)sy__align_up(bytes, SY__UNIT) : (uint32_t)SY__UNIT;
}

static inline struct sy__tree_want in_units(const struct sy__general_want *want)
{
	return (struct sy__tree_want){ want->bytes >> SY__UNIT_SHIFT,
		                       (want->align + (uint32_t)SY__UNIT - 1) >> SY__UNIT_SHIFT };
}

/* ---- The fast path. With the heap's lock held ------------------------------------------------------------------ */

static SY__COLD uint64_t *find_aligned(struct sy__tree *tree, const struct sy__tree_want *want, uint64_t *link);

/* The link to the free block that serves the request; NULL: none. */
static inline uint64_t *find(struct sy__sunos4_heap *sunos4, struct sy__tree *tree, const struct sy__tree_want *want)
{
	uint64_t *link;

	if (sy__unlikely(sunos4->fit == SY__SUNOS4_BETTER))
		return sy__tree_better(tree, want);
	link = sy__tree_leftmost(tree, want->units, 0);
	if (sy__likely(!link || sy__tree_fits(tree, sy__tree_at(link), want)))
		return link;
	return find_aligned(tree, want, link);
}

/* Cuts the request from the free block that a link names. */
static inline void *carve(struct sy__sunos4_heap *sunos4, struct sy__tree *tree, uint64_t *link,
                   const struct sy__tree_want *want)
{
	uint64_t number = sy__tree_at(link), start = sy__tree_start(number, want), end = start + want->units;
	uint64_t behind = number + sy__tree_units(tree, number);
	void *block = sy__tree_node(tree, start);
	struct chunk chunk = chunk_of(sunos4, sy__head_of(&sunos4->general.heap, block));

	sy__tree_remove(tree, link);
	if (start > number) {
		sy__tree_insert(tree, link, number, (uint32_t)(start - number));
		sy__starts_set(chunk.starts, (uint32_t)(start - chunk.first));
	}
	if (behind > end) {
		sy__tree_insert(tree, link, end, (uint32_t)(behind - end));
		sy__starts_set(chunk.starts, (uint32_t)(end - chunk.first));
	}
	return block;
}

/* Every call is a slow call, and goes down the tree. Instructions of hot calls (docs/cost.md): kmem_cache_alloc 1138,
 * kmem_cache_free 619, kmalloc 1158, kfree 652; the counted object is alone, and takes a chunk and gives it back. No function is called
 * unless an alignment prolongs the search or a chunk goes back. */
static inline void *pop(struct sy__general_heap *general, unsigned node, const struct sy__general_want *want)
{
	struct sy__sunos4_heap *sunos4 = sunos4_of(general);
	struct sy__tree *tree = &sunos4->trees[node];
	struct sy__tree_want units = in_units(want);
	uint64_t *link = find(sunos4, tree, &units);

	return sy__likely(link) ? carve(sunos4, tree, link, &units) : NULL;
}

/* Takes a free neighbour, which is to be joined, out of the tree. */
static inline void absorb(struct sy__tree *tree, uint64_t neighbour)
{
	sy__tree_remove(tree, sy__tree_find(tree, neighbour));
}

static inline void push(struct sy__general_heap *general, unsigned slot, void *block, size_t bytes)
{
	struct sy__sunos4_heap *sunos4 = sunos4_of(general);
	struct chunk chunk = chunk_of(sunos4, sy__head_of(&general->heap, block));
	struct sy__tree *tree = &sunos4->trees[sy__page_node(chunk.page)];
	uint64_t number = sy__tree_number(tree, block), end = number + (bytes >> SY__UNIT_SHIFT), below, above;

	sy__tree_neighbours(tree, number, &below, &above);
	if (sy__unlikely(above == number || below + sy__tree_units(tree, below) > number)) {
		sy__bug(&general->heap, SY_BUG_DOUBLE_FREE, block);
		return;
	}
	if (below >= chunk.first && below + sy__tree_units(tree, below) == number) {
		absorb(tree, below);
		sy__starts_clear(chunk.starts, (uint32_t)(number - chunk.first));
		number = below;
	}
	if (above == end && end < chunk.first + chunk.units) {
		end += sy__tree_units(tree, above);
		absorb(tree, above);
		sy__starts_clear(chunk.starts, (uint32_t)(above - chunk.first));
	}
	if (sy__unlikely(end - number == chunk.units) && !general->heap.never_reclaims)
		sy__general_give(general, slot, chunk.page);
	else
		sy__tree_insert(tree, &tree->root, number, (uint32_t)(end - number));
}

static inline size_t block_bytes(struct sy__general_heap *general, const void *block)
{
	struct sy__sunos4_heap *sunos4 = sunos4_of(general);
	struct chunk chunk = chunk_of(sunos4, sy__head_of(&sunos4->general.heap, block));
	uint32_t unit = (uint32_t)(sy__tree_number(&sunos4->trees[sy__page_node(chunk.page)], block) - chunk.first);

	return (size_t)(sy__starts_end(chunk.starts, unit, chunk.units) - unit) << SY__UNIT_SHIFT;
}

/* Nothing starts there: it is inside of a block, which may be free. */
static SY__COLD void tell_unused(struct sy__sunos4_heap *sunos4, struct sy_page *page, const void *address)
{
	struct sy__tree *tree = &sunos4->trees[sy__page_node(page)];
	uint64_t number = sy__tree_number(tree, address), below, above;

	sy__tree_neighbours(tree, number, &below, &above);
	sy__bug(&sunos4->general.heap, below + sy__tree_units(tree, below) > number ? SY_BUG_DOUBLE_FREE : SY_BUG_INTERIOR_FREE, address);
}

static inline struct sy_page *page_in(const struct sy_heap *heap, const void *object)
{
	return sy__head_of(heap, object);
}

/* A block in use neither overlaps a free one nor starts where the map says that none does. */
static inline bool in_use(struct sy__general_heap *general, struct sy_page *page, const void *address)
{
	struct sy__sunos4_heap *sunos4 = sunos4_of(general);
	struct chunk chunk = chunk_of(sunos4, page);
	uint64_t unit = sy__tree_number(&sunos4->trees[sy__page_node(page)], address) - chunk.first;

	if (sy__likely(!((uintptr_t)address & (SY__UNIT - 1)) && sy__starts_at(chunk.starts, (uint32_t)unit)))
		return true;
	tell_unused(sunos4, page, address);
	return false;
}

#include "../general_entries.h"

static void *sunos4_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	struct sy__general_heap *general = sy__general_of(heap);
	struct sy__general_want want;

	if (sy__unlikely(size > largest(sunos4_of(general))))
		return sy__general_pages(general, slot, size, flags, node, NULL);
	want.bytes = rounded(size);
	want.align = size & (size - 1) || want.bytes < general->least ? general->least : want.bytes;
	if (want.align > SY_PAGE_SIZE)
		want.align = (uint32_t)SY_PAGE_SIZE;
	return general_take(general, slot, &want, flags, node, &general->live);
}

/* ---- Off the fast path ----------------------------------------------------------------------------------------- */

/* The leftmost block, from the link's on, in which the aligned request fits; after TRIES blocks, one that is large enough in any
 * case. */
static SY__COLD uint64_t *find_aligned(struct sy__tree *tree, const struct sy__tree_want *want, uint64_t *link)
{
	for (unsigned i = 1; i < TRIES && link && !sy__tree_fits(tree, sy__tree_at(link), want); i++)
		link = sy__tree_leftmost(tree, want->units, sy__tree_at(link));
	if (!link || sy__tree_fits(tree, sy__tree_at(link), want))
		return link;
	return sy__tree_leftmost(tree, want->units + want->align - 1, 0);
}

/* A new chunk is one free block. */
static void *add(struct sy__general_heap *general, struct sy_page *page, const struct sy__general_want *want)
{
	struct sy__sunos4_heap *sunos4 = sunos4_of(general);
	struct sy__tree *tree = &sunos4->trees[sy__page_node(page)];
	struct chunk chunk = chunk_of(sunos4, page);
	struct sy__tree_want units = in_units(want);

	tree->last = tree->last > chunk.first + chunk.units ? tree->last : chunk.first + chunk.units;
	sy__starts_set(chunk.starts, 0);
	sy__tree_insert(tree, &tree->root, chunk.first, chunk.units);
	return carve(sunos4, tree, sy__tree_find(tree, chunk.first), &units);
}

static unsigned order(const struct sy__general_heap *general, const struct sy__general_want *want)
{
	(void)want;
	return ((const struct sy__sunos4_heap *)(const void *)general)->chunk_order;
}

static bool sunos4_cache_init(struct sy_cache *cache)
{
	struct sy__general_cache *own = sy__general_cache_of(cache);
	size_t bytes = sy__general_object_bytes(cache);

	if (!bytes)
		return false;
	cache->size = (uint32_t)bytes;
	if (bytes <= largest(sunos4_of(sy__general_of(cache->heap))))
		own->want = (struct sy__general_want){ cache->size = rounded(bytes), cache->align };
	return true;
}

static uint64_t unused_bytes(struct sy__general_heap *general)
{
	struct sy__sunos4_heap *sunos4 = sunos4_of(general);
	uint64_t units = 0;

	for (unsigned node = 0; node < general->heap.nodes; node++)
		units += sunos4->trees[node].units;
	return units << SY__UNIT_SHIFT;
}

/* ---- Checks --------------------------------------------------------------------------------------------------- */

struct survey {
	struct sy__sunos4_heap *sunos4;
	uint64_t blocks[SY_MAX_NODES], units[SY_MAX_NODES]; /* free */
	uint64_t in_use;
	const char *wrong;
};

/* A child must be smaller, or of lower rank, and on its side by address. */
static const char *check_child(const struct sy_heap *heap, const struct sy__tree *tree, uint64_t number, uint64_t child,
                             bool right_side)
{
	if (!child)
		return NULL;
	if (!sy__sunos4_has(heap, tree, child))
		return "sunos4: a free block has a child that is outside of the heap";
	if (!sy__tree_above(number, sy__tree_units(tree, number), child, sy__tree_units(tree, child)))
		return "sunos4: a free block stands above a larger one";
	return (child > number) == right_side ? NULL : "sunos4: a free block stands on the wrong side of one above it";
}

static const char *check_free(const struct sy_heap *heap, const struct sy__tree *tree, uint64_t number, uint32_t units,
                              const struct chunk *chunk)
{
	const struct sy__tree_node *node = sy__tree_node(tree, number);
	const char *wrong = check_child(heap, tree, number, sy__tree_at(&node->left), false);

	if (wrong)
		return wrong;
	if (sy__tree_units(tree, number) != units)
		return "sunos4: a free block's size in the tree is not that in the map";
	if (units == chunk->units && !heap->never_reclaims)
		return "sunos4: a wholly free chunk was kept";
	return check_child(heap, tree, number, sy__tree_at(&node->right), true);
}

/* Checks all blocks of a chunk, in order of address. */
static const char *survey_blocks(struct survey *survey, const struct chunk *chunk)
{
	unsigned node = sy__page_node(chunk->page);
	const struct sy__tree *tree = &survey->sunos4->trees[node];
	const struct sy_heap *heap = &survey->sunos4->general.heap;
	bool free_before = false;
	uint64_t depth;

	for (uint32_t unit = 0, end; unit < chunk->units; unit = end) {
		bool is_free = sy__sunos4_is_free(heap, tree, chunk->first + unit, &depth);
		const char *wrong = NULL;

		end = sy__starts_end(chunk->starts, unit, chunk->units);
		if (is_free) {
			survey->blocks[node]++;
			survey->units[node] += end - unit;
			wrong = check_free(heap, tree, chunk->first + unit, end - unit, chunk);
		}
		survey->in_use += !is_free;
		if (is_free && free_before)
			wrong = "sunos4: two free blocks touch: freeing did not join them";
		if (wrong)
			return wrong;
		free_before = is_free;
	}
	return NULL;
}

static bool survey_chunk(void *context, struct sy_page *page)
{
	struct survey *survey = context;
	struct chunk chunk;

	if (!sy__page_is_slab(page))
		return true;
	chunk = chunk_of(survey->sunos4, page);
	survey->wrong = sy__starts_at(chunk.starts, 0) ? survey_blocks(survey, &chunk)
	                                               : "sunos4: no block starts where a chunk does";
	return !survey->wrong;
}

static const char *check_trees(struct sy__general_heap *general)
{
	struct sy__sunos4_heap *sunos4 = sunos4_of(general);
	struct survey survey = { .sunos4 = sunos4 };

	sy__pages_walk(&sunos4->general.heap, survey_chunk, &survey);
	for (unsigned node = 0; node < sunos4->general.heap.nodes && !survey.wrong; node++)
		if (survey.blocks[node] != sunos4->trees[node].blocks || survey.units[node] != sunos4->trees[node].units)
			survey.wrong = "sunos4: a tree counts other blocks than going down by address finds";
	if (!survey.wrong && survey.in_use != sy__general_in_use(&sunos4->general))
		survey.wrong = "sunos4: the blocks that are not free are not as many as the objects in use";
	return survey.wrong;
}

/* ---- The policy ----------------------------------------------------------------------------------------------- */

static const struct sy__general_ops ops = {
	.pop = pop,
	.push = push,
	.add = add,
	.order = order,
	.block_bytes = block_bytes,
	.unused_bytes = unused_bytes,
	.check = check_trees,
	.map_bytes = SY__STARTS_WORDS * sizeof(uint32_t),
};

static bool sunos4_heap_init(struct sy_heap *heap)
{
	struct sy__sunos4_heap *sunos4 = sunos4_of(sy__general_of(heap));

	for (unsigned node = 0; node < heap->nodes; node++) {
		sunos4->trees[node].heap = heap;
		sunos4->trees[node].memory = ((const struct sy_pages_base *)(const void *)heap->pages)->memory;
	}
	sunos4->fit = (enum sy__sunos4_fit)heap->tunables[FIT];
	sunos4->chunk_order = (unsigned)heap->tunables[CHUNK_ORDER];
	heap->never_reclaims = heap->tunables[KEEP];
	sy__general_init(heap, &ops, (uint32_t)SY__UNIT);
	return true;
}

const struct sy_policy sy__sunos4 = {
	.name = "sunos4",
	.summary = "SunOS 4.1.3: fast fits, free blocks of any size in a Cartesian tree",
	.paper = "Stephenson, Fast Fits: New Methods for Dynamic Storage Allocation, SOSP 1983",
	.tunables = tunables,
	.tunable_count = TUNABLES,
	.heap_bytes = sizeof(struct sy__sunos4_heap),
	.cache_bytes = sizeof(struct sy__general_cache),
	.cache_alloc = entry_alloc,
	.cache_free = entry_free,
	.kmalloc = sunos4_kmalloc,
	.kfree = entry_kfree,
	.heap_init = sunos4_heap_init,
	.cache_init = sunos4_cache_init,
	.cache_fini = sy__general_cache_fini,
	.usable_size = sy__general_usable_size,
	.grace_passed = sy__general_grace_passed,
	.counts = sy__general_counts,
	.check = sy__general_check,
	.unused_bytes = sy__general_unused_bytes,
	.walk = sy__sunos4_walk,
};
