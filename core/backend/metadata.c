/*
 * Heap metadata: memory for a heap's own bookkeeping.
 *
 * Caches, per-slot arrays and node lists are few and live long, so this allocator is as small as possible. It rounds a
 * request up to a power of two, from 64 bytes (a cache line, so that two slots never share one) to half a page, and keeps a
 * free list for each of these sizes. It never splits or joins blocks: a heap that once needed memory for caches will need it
 * again. New blocks are cut from a page, from its start on. When the next one does not fit, the rest of the page goes to the
 * free lists. Larger requests take pages of their own, and a free gives these back.
 *
 * Giving back. Some policies keep a map for each block of pages here, which after a peak is much memory. So each page counts its
 * blocks in use; a page without any is idle. A trim gives all idle pages back. Free lists are linked one way, so a trim walks all
 * free blocks once. In heaps of threads a trim runs when more than IDLE_PAGES pages and half of all pages are idle; its cost is
 * then spread over many frees. In other heaps only a call trims: what such a heap holds must depend on its requests alone.
 *
 * Accounting. Every page is taken as SY_USE_METADATA, and the page interface counts it in counters.metadata_pages. All pages are
 * on one list, through the state in their descriptors, so that destroying a heap finds them. The heap structure itself cannot
 * come from here: heap.c takes it.
 *
 * Invariants: a free block is zero except its first word, the link; bump <= bump_end, both in one page; no block is on two lists;
 * `idle` is the number of pages without a block in use.
 *
 * Lock: sy_heap.metadata.lock protects all of struct sy_metadata. Pages are taken and given back without it, since taking pages
 * may ask this very heap for memory.
 */
#include "metadata.h"

#include "../geometry.h"
#include "../list.h"
#include "../page_interface.h"

#define SMALLEST_SHIFT 6
#define IDLE_PAGES 64u
#define LISTS (sizeof((struct sy_metadata *)0)->free_lists / sizeof(void *))

struct page_link {
	struct sy_list link; /* in sy_metadata.pages */
	uint32_t used;       /* blocks in use; 1 if the pages are one large block */
};
SY_ASSERT_SLAB_STATE(struct page_link, link.next);

static size_t largest_listed(void)
{
	size_t largest = (size_t)1 << (SMALLEST_SHIFT + LISTS - 1);

	return largest < SY_PAGE_SIZE / 2 ? largest : SY_PAGE_SIZE / 2;
}

/* Smallest list whose blocks are large enough. */
static unsigned list_of(size_t bytes)
{
	unsigned list = 0;

	while (((size_t)1 << (SMALLEST_SHIFT + list)) < bytes)
		list++;
	return list;
}

static void push(struct sy_metadata *metadata, unsigned list, void *block)
{
	*(void **)block = metadata->free_lists[list];
	metadata->free_lists[list] = block;
}

static void *pop(struct sy_metadata *metadata, unsigned list)
{
	void *block = metadata->free_lists[list];

	if (!block)
		return NULL;
	metadata->free_lists[list] = *(void **)block;
	*(void **)block = NULL;
	return block;
}

static struct page_link *state_of(struct sy_heap *heap, const void *block)
{
	return SY_SLAB_STATE(struct page_link, sy__page_of(heap, block));
}

static struct sy_page *page_of(struct page_link *state)
{
	return sy__entry(state, struct sy_page, state);
}

static void *cut(struct sy_metadata *metadata, unsigned list)
{
	size_t size = (size_t)1 << (SMALLEST_SHIFT + list);
	char *block = metadata->bump;

	if ((size_t)(metadata->bump_end - block) < size)
		return NULL;
	metadata->bump += size;
	return block;
}

/* Puts the rest of the page being cut on the lists, in as few blocks as it divides into. */
static void retire_bump(struct sy_metadata *metadata)
{
	while (metadata->bump < metadata->bump_end) {
		size_t left = (size_t)(metadata->bump_end - metadata->bump);
		unsigned list = list_of(left < largest_listed() ? left : largest_listed());

		if (((size_t)1 << (SMALLEST_SHIFT + list)) > left)
			list--;
		push(metadata, list, cut(metadata, list));
	}
}

static struct sy_page *take_pages(struct sy_heap *heap, unsigned order, unsigned flags)
{
	struct sy_page *page = sy__pages_take(heap, 0, order, flags | SY_ZERO, SY_ANY_NODE, SY_USE_METADATA);

	if (!page)
		return NULL;
	SY_SLAB_STATE(struct page_link, page)->used = 1;
	sy__lock(&heap->metadata.lock);
	sy__list_add_tail(&heap->metadata.pages, &SY_SLAB_STATE(struct page_link, page)->link);
	sy__unlock(&heap->metadata.lock);
	return page;
}

/* Counts a block as used, unless it is NULL. With the lock held. */
static void *use(struct sy_heap *heap, void *block)
{
	if (block && state_of(heap, block)->used++ == 0)
		heap->metadata.idle--;
	return block;
}

static void *take_listed(struct sy_heap *heap, unsigned list, unsigned flags)
{
	struct sy_metadata *metadata = &heap->metadata;
	struct sy_page *page;
	void *block;

	sy__lock(&metadata->lock);
	block = pop(metadata, list);
	if (!block)
		block = cut(metadata, list);
	use(heap, block);
	sy__unlock(&metadata->lock);
	if (block)
		return block;

	page = take_pages(heap, 0, flags);
	if (!page)
		return NULL;
	sy__lock(&metadata->lock);
	metadata->cut++;
	retire_bump(metadata);
	metadata->bump = sy__page_address(heap, page);
	metadata->bump_end = metadata->bump + SY_PAGE_SIZE;
	block = cut(metadata, list);
	sy__unlock(&metadata->lock);
	return block;
}

static void *take(struct sy_heap *heap, size_t bytes, unsigned flags)
{
	struct sy_page *page;

	if (bytes <= largest_listed())
		return take_listed(heap, list_of(bytes), flags);
	if (sy__order_of(bytes) > SY_MAX_ORDER)
		return NULL;
	page = take_pages(heap, sy__order_of(bytes), flags);
	return page ? sy__page_address(heap, page) : NULL;
}

void *sy__metadata_take(struct sy_heap *heap, size_t bytes)
{
	return take(heap, bytes, 0);
}

void *sy__metadata_try(struct sy_heap *heap, size_t bytes)
{
	return take(heap, bytes, SY_NO_RECLAIM);
}

/* ---- Giving back idle pages ----------------------------------------------------------------------------------- */

/* Takes the blocks of idle pages off a list. */
static void drop_idle(struct sy_heap *heap, unsigned list)
{
	void **at = &heap->metadata.free_lists[list];

	while (*at) {
		if (state_of(heap, *at)->used)
			at = *at;
		else
			*at = *(void **)*at;
	}
}

/* Moves idle pages to a list of their own. */
static void move_idle(struct sy_heap *heap, struct sy_list *to)
{
	struct sy_list *pages = &heap->metadata.pages, *next;

	for (struct sy_list *at = pages->next; at != pages; at = next) {
		next = at->next;
		if (sy__entry(at, struct page_link, link)->used)
			continue;
		sy__list_remove(at);
		sy__list_add_tail(to, at);
	}
}

/* Moves idle pages to a list, and their blocks off the free lists. With the lock held. */
static void take_idle(struct sy_heap *heap, struct sy_list *to)
{
	struct sy_metadata *metadata = &heap->metadata;

	if (!metadata->idle)
		return;
	for (unsigned list = 0; list < LISTS; list++)
		drop_idle(heap, list);
	if (metadata->bump < metadata->bump_end && !state_of(heap, metadata->bump)->used)
		metadata->bump = metadata->bump_end = NULL;
	move_idle(heap, to);
	metadata->cut -= metadata->idle;
	metadata->idle = 0;
}

static void give_all(struct sy_heap *heap, struct sy_list *pages)
{
	while (!sy__list_empty(pages)) {
		struct page_link *state = sy__entry(pages->next, struct page_link, link);

		sy__list_remove(&state->link);
		sy__pages_give(heap, 0, page_of(state));
	}
}

void sy__metadata_trim(struct sy_heap *heap)
{
	struct sy_list idle;

	sy__list_init(&idle);
	sy__lock(&heap->metadata.lock);
	take_idle(heap, &idle);
	sy__unlock(&heap->metadata.lock);
	give_all(heap, &idle);
}

/* Puts a block back on its free list. True: enough pages are idle now for a trim. */
static bool give_listed(struct sy_heap *heap, void *block, unsigned list)
{
	struct sy_metadata *metadata = &heap->metadata;
	bool much;

	sy__fill(block, 0, (size_t)1 << (SMALLEST_SHIFT + list));
	sy__lock(&metadata->lock);
	push(metadata, list, block);
	if (--state_of(heap, block)->used == 0)
		metadata->idle++;
	much = heap->threads && metadata->idle > IDLE_PAGES && metadata->idle > metadata->cut / 2;
	sy__unlock(&metadata->lock);
	return much;
}

static void give_pages(struct sy_heap *heap, void *block)
{
	struct sy_page *page = sy__page_of(heap, block);

	sy__lock(&heap->metadata.lock);
	sy__list_remove(&SY_SLAB_STATE(struct page_link, page)->link);
	sy__unlock(&heap->metadata.lock);
	sy__pages_give(heap, 0, page);
}

void sy__metadata_give(struct sy_heap *heap, void *block, size_t bytes)
{
	if (!block)
		return;
	if (bytes > largest_listed())
		give_pages(heap, block);
	else if (give_listed(heap, block, list_of(bytes)))
		sy__metadata_trim(heap);
}

/* ---- Beginning, end and checks -------------------------------------------------------------------------------- */

void sy__metadata_init(struct sy_heap *heap)
{
	heap->metadata = (struct sy_metadata){ .lock = SY__LOCK_INIT };
	sy__list_init(&heap->metadata.pages);
}

void sy__metadata_fini(struct sy_heap *heap)
{
	give_all(heap, &heap->metadata.pages);
	sy__metadata_init(heap);
}

/* Pages on the list, and in *idle how many of them are idle; SIZE_MAX: the list is broken. */
static size_t listed_pages(struct sy_heap *heap, size_t *idle)
{
	size_t pages = 0;

	*idle = 0;
	for (struct sy_list *at = heap->metadata.pages.next; at != &heap->metadata.pages; at = at->next) {
		struct page_link *state = sy__entry(at, struct page_link, link);
		struct sy_page *page = page_of(state);

		if (sy__page_heap(page) != heap || !sy__page_is_metadata(page) || at->next->prev != at)
			return SIZE_MAX;
		pages += (size_t)1 << sy__page_order(page);
		*idle += !state->used;
	}
	return pages;
}

static bool free_list_sound(struct sy_heap *heap, unsigned list, size_t pages)
{
	size_t size = (size_t)1 << (SMALLEST_SHIFT + list), blocks = pages * (SY_PAGE_SIZE / size);

	for (void *block = heap->metadata.free_lists[list]; block; block = *(void **)block) {
		if (((uintptr_t)block & (SY_CACHE_LINE - 1)) || sy__page_heap(sy__page_of(heap, block)) != heap || blocks-- == 0)
			return false;
	}
	return true;
}

const char *sy__metadata_check(struct sy_heap *heap)
{
	struct sy_metadata *metadata = &heap->metadata;
	const char *wrong = NULL;
	size_t pages, idle;

	sy__lock(&metadata->lock);
	pages = listed_pages(heap, &idle);
	if (pages == SIZE_MAX)
		wrong = "heap metadata: the list of pages holds a page that is not metadata of this heap";
	else if (idle != metadata->idle)
		wrong = "heap metadata: other pages than those counted have no block in use";
	for (unsigned list = 0; !wrong && list < LISTS; list++)
		if (!free_list_sound(heap, list, pages))
			wrong = "heap metadata: a free list holds a foreign block or runs in a circle";
	if (!wrong && metadata->bump > metadata->bump_end)
		wrong = "heap metadata: cut beyond the end of a page";
	sy__unlock(&metadata->lock);
	return wrong;
}
