/*
 * Heaps with more nodes than there is memory on, under every policy. Any slot that asks, for any node, gets an object from the
 * memory that there is, and the heap's figures stay true.
 */
#include "core/types.h"
#include <string.h>

#include "check.h"

#define SLOTS 4u
#define NODES 4u
#define OBJECTS 3000u
#define ROUNDS 12u
#define SIZE 100u

static void *objects[OBJECTS];
static uint64_t random_state;

static unsigned below(unsigned end)
{
	return (unsigned)(check_random(&random_state) % end);
}

static void get(struct sy_heap *heap, struct sy_cache *cache, void **object)
{
	int node = below(4) ? SY_ANY_NODE : (int)below(NODES);

	*object = cache ? sy_cache_alloc(cache, below(SLOTS), 0, node) : sy_kmalloc(heap, below(SLOTS), SIZE, 0, node);
	CHECK(*object);
	if (*object)
		memset(*object, 0x5a, SIZE);
}

static void give(struct sy_heap *heap, struct sy_cache *cache, void **object)
{
	if (cache)
		sy_cache_free(cache, below(SLOTS), *object);
	else
		sy_kfree(heap, below(SLOTS), *object);
	*object = NULL;
}

static void come_and_go(struct sy_heap *heap, struct sy_cache *cache)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < OBJECTS; i++) {
			if (below(2))
				continue;
			if (objects[i])
				give(heap, cache, &objects[i]);
			else
				get(heap, cache, &objects[i]);
		}
		CHECK_FINE(sy_heap_check(heap));
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		if (objects[i])
			give(heap, cache, &objects[i]);
}

/* Under `slab`, from the slot of a node without memory: slabs are as full as those of others. */
static void fill_slabs(struct sy_heap *heap, struct sy_cache *cache)
{
	struct sy_cache_counts counts;

	for (unsigned i = 0; i < OBJECTS; i++) {
		objects[i] = sy_cache_alloc(cache, SLOTS - 1, 0, SY_ANY_NODE);
		CHECK(objects[i]);
	}
	sy_cache_count(cache, &counts);
	CHECK(!counts.slabs || counts.slabs <= 2 * OBJECTS / counts.slab_objects);
	for (unsigned i = 0; i < OBJECTS; i++)
		give(heap, cache, &objects[i]);
}

static void use_all(struct sy_heap *heap)
{
	struct sy_cache *cache = sy_cache_create(heap, &(struct sy_cache_config){ .name = "objects", .size = SIZE });
	struct sy_cache_counts counts;

	CHECK(cache);
	come_and_go(heap, NULL);
	come_and_go(heap, cache);
	sy_cache_shrink(cache);
	if (!strcmp(heap->policy->name, "slab"))
		fill_slabs(heap, cache);
	sy_cache_shrink(cache);
	sy_cache_count(cache, &counts);
	CHECK_EQUAL(counts.objects_in_use, 0);
	CHECK_EQUAL(counts.slabs, 0);
	CHECK_FINE(sy_heap_check(heap));
	CHECK(sy_cache_destroy(cache, NULL));
}

static void few_nodes(const char *policy)
{
	const struct sy_pages_config wanted = { .zone_count = 1, .zones = { { .name = "Normal", .pages = 8192 } }, .slots = SLOTS,
		                                .pageblock_order = 9 };
	struct sy_pages *pages = sy_pages_create(&wanted);
	struct sy_heap_config config;
	struct sy_heap *heap;

	sy_heap_defaults(sy_policy_find(policy), &config);
	config.slots = SLOTS;
	config.nodes = NODES;
	heap = sy_heap_create(pages, &config);
	CHECK(heap);
	if (!heap)
		return;
	random_state = 1;
	use_all(heap);
	sy_heap_destroy(heap);
	CHECK_FINE(sy_pages_check(pages));
	sy_pages_destroy(pages);
}

int main(void)
{
	CHECK_POLICIES(few_nodes);
	return check_result();
}
