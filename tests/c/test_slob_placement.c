/*
 * SLOB against a plain search. The policy skips pages by what it knows of them; this model looks at every unit.
 *
 * The model is the opening comment of slob.c in its simplest form. A page is an array that says which of its units of 2 bytes
 * are in use, a free block is a run of units that are not, and the three lists are arrays of pages in order. For each request
 * it finds the place, then the policy is asked and must have chosen the same. Requests are of every kind of alignment: the
 * least, a cache line, kmalloc's powers of two, and others; sizes are few and near each other, so that blocks of just the
 * right size that stand in the wrong place are common. Freeing in random order leaves holes everywhere.
 */
#include "core/types.h"

#include "check.h"
#include "core/page_interface.h"

#define UNITS 2048u
#define MAX_PAGES 256u
#define MAX_OBJECTS 4000u
#define HEADER 4u /* units */
#define LISTS 3u
#define STEPS 30000u

enum { NEXT, FIRST, BEST };

struct model_page {
	uintptr_t address;
	unsigned free_units, list;
	bool used[UNITS];
};

struct object {
	void *address; /* what the client holds */
	struct model_page *page;
	unsigned start, units, kind;
};

struct kind {
	unsigned bytes; /* of the block */
	unsigned align, offset; /* units */
	struct sy_cache *cache; /* NULL: kmalloc */
};

static struct model_page pages[MAX_PAGES];
static struct model_page *lists[LISTS][MAX_PAGES];
static unsigned lengths[LISTS];
static struct object objects[MAX_OBJECTS];
static unsigned object_count;
static int64_t fit;

/* bytes of an object, and its alignment; alignment 0: kmalloc. */
static const unsigned wishes[][2] = { { 40, 8 },   { 72, 8 },   { 136, 8 },  { 216, 64 }, { 224, 64 }, { 192, 32 },
	                              { 128, 64 }, { 144, 16 }, { 264, 8 },  { 520, 8 },  { 256, 256 }, { 1032, 64 },
	                              { 6, 8 },    { 8, 0 },    { 16, 0 },   { 32, 0 },   { 64, 0 },   { 128, 0 },
	                              { 256, 0 },  { 512, 0 },  { 1024, 0 }, { 2048, 0 }, { 30, 0 },   { 100, 0 },
	                              { 250, 0 },  { 600, 0 },  { 3000, 0 }, { 1, 0 } };
#define KINDS (sizeof(wishes) / sizeof(wishes[0]))
static struct kind kinds[KINDS];

static unsigned list_of(unsigned bytes)
{
	return bytes < 256 ? 0 : bytes < 1024 ? 1 : 2;
}

static void insert_first(unsigned list, struct model_page *page)
{
	memmove(&lists[list][1], &lists[list][0], lengths[list]++ * sizeof(lists[0][0]));
	lists[list][0] = page;
	page->list = list;
}

static unsigned index_of(const struct model_page *page)
{
	unsigned index = 0;

	while (lists[page->list][index] != page)
		index++;
	return index;
}

static void take_off(const struct model_page *page)
{
	unsigned index = index_of(page);
	struct model_page **list = lists[page->list];

	memmove(&list[index], &list[index + 1], (--lengths[page->list] - index) * sizeof(list[0]));
}

/* The list now begins at this page. */
static void rotate_to(const struct model_page *page)
{
	struct model_page *rotated[MAX_PAGES];
	unsigned index = index_of(page), length = lengths[page->list];

	for (unsigned i = 0; i < length; i++)
		rotated[i] = lists[page->list][(index + i) % length];
	memcpy(lists[page->list], rotated, length * sizeof(rotated[0]));
}

/* The place by the rules; NULL: a new page. */
static struct model_page *model_search(const struct kind *kind, unsigned *place)
{
	unsigned list = list_of(kind->bytes), units = (kind->bytes + 1) / 2, tightest = UNITS + 1;
	struct model_page *found = NULL;

	for (unsigned i = 0; i < lengths[list]; i++) {
		const bool *used = lists[list][i]->used;

		for (unsigned at = 0, end; at < UNITS; at = end + 1) {
			unsigned start = (at + kind->offset + kind->align - 1) / kind->align * kind->align - kind->offset;

			for (end = at; end < UNITS && !used[end];)
				end++;
			if (start + units > end || end - at >= tightest)
				continue;
			found = lists[list][i];
			*place = start;
			if (fit != BEST)
				return found;
			tightest = end - at;
		}
	}
	return found;
}

static struct model_page *new_page(unsigned list, const void *block)
{
	struct model_page *page = pages;

	while (page->address)
		page++;
	*page = (struct model_page){ .address = (uintptr_t)block & ~(uintptr_t)(SY_PAGE_SIZE - 1), .free_units = UNITS };
	insert_first(list, page);
	return page;
}

static void allocate(struct sy_heap *heap, unsigned number)
{
	const struct kind *kind = &kinds[number];
	unsigned units = (kind->bytes + 1) / 2, start = 0;
	bool is_new;
	struct model_page *page = model_search(kind, &start);
	struct object *object = &objects[object_count++];
	char *block;

	object->address = kind->cache ? sy_cache_alloc(kind->cache, 0, 0, SY_ANY_NODE)
	                              : sy_kmalloc(heap, 0, wishes[number][0], 0, SY_ANY_NODE);
	block = (char *)object->address - (kind->cache ? 0 : 2 * HEADER);
	is_new = !page;
	if (is_new) {
		page = new_page(list_of(kind->bytes), block);
		start = (kind->offset + kind->align - 1) / kind->align * kind->align - kind->offset;
	}
	CHECK_EQUAL((uintptr_t)block, page->address + 2 * start);
	object->page = page;
	object->start = start;
	object->units = units;
	object->kind = number;
	memset(page->used + start, 1, units);
	page->free_units -= units;
	if (!page->free_units)
		take_off(page);
	else if (fit == NEXT && !is_new)
		rotate_to(page);
}

static void release(struct sy_heap *heap, unsigned number)
{
	struct object object = objects[number];
	struct model_page *page = object.page;

	objects[number] = objects[--object_count];
	if (kinds[object.kind].cache)
		sy_cache_free(kinds[object.kind].cache, 0, object.address);
	else
		sy_kfree(heap, 0, object.address);
	memset(page->used + object.start, 0, object.units);
	if (!page->free_units)
		insert_first(list_of(kinds[object.kind].bytes), page);
	page->free_units += object.units;
	if (page->free_units == UNITS) {
		take_off(page);
		page->address = 0;
	}
}

static void make_kinds(struct sy_heap *heap)
{
	for (unsigned i = 0; i < KINDS; i++) {
		unsigned bytes = wishes[i][0], align = wishes[i][1];
		struct sy_cache_config config = { .name = "placed", .size = bytes, .align = align };

		kinds[i] = (struct kind){ .bytes = bytes, .align = align / 2 };
		if (align) {
			kinds[i].cache = sy_cache_create(heap, &config);
			continue;
		}
		kinds[i].bytes += 2 * HEADER;
		kinds[i].offset = HEADER;
		kinds[i].align = bytes > 8 && (bytes & (bytes - 1)) == 0 ? bytes / 2 : HEADER;
	}
}

static struct sy_heap *make_heap(struct sy_pages **allocator)
{
	struct sy_pages_config pages_config = { .zone_count = 1, .slots = 1, .pageblock_order = 9 };
	struct sy_heap_config config;

	pages_config.zones[0] = (struct sy_zone_config){ .name = "Normal", .pages = 2048 };
	*allocator = sy_pages_create(&pages_config);
	sy_heap_defaults(sy_policy_find("slob"), &config);
	config.tunables[0] = fit;
	return sy_heap_create(*allocator, &config);
}

/* Grows and shrinks, so that the lists become long and the pages full of holes. */
static void test_placements_are_those_of_a_plain_search(void)
{
	uint64_t random = 1 + (uint64_t)fit;
	struct sy_pages *allocator;
	struct sy_heap *heap = make_heap(&allocator);

	make_kinds(heap);
	for (unsigned step = 0; step < STEPS && !check_failures; step++) {
		unsigned most = step / 2000 % 2 ? 300 : 1200;

		if (object_count < most && (!object_count || check_random(&random) % 8 < 5))
			allocate(heap, (unsigned)(check_random(&random) % KINDS));
		else
			release(heap, (unsigned)(check_random(&random) % object_count));
		if (step % 100 == 0)
			CHECK_FINE(sy_heap_check(heap));
	}
	while (object_count && !check_failures)
		release(heap, object_count - 1);
	CHECK_EQUAL(heap->counters.slab_pages, 0);
	CHECK_FINE(sy_pages_check(allocator));
	sy_heap_destroy(heap);
	sy_pages_destroy(allocator);
}

int main(void)
{
	for (fit = NEXT; fit <= BEST; fit++)
		test_placements_are_those_of_a_plain_search();
	return check_result();
}
