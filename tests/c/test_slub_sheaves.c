/*
 * SLUB's sheaves by worked examples: who has them and how large they are, how they change places with the spare sheaf and the
 * barn's sheaves, what goes to slabs, and what memory they take. Every step ends with the checks of the heap and of the page
 * allocator.
 */
#include "slub_support.h"

/* Objects of 1000 bytes, four to a slab of a page, four to a sheaf. */
#define SMALL "slub:linux=7.0,max_order=0,sheaf_capacity=4"

static struct world world_with(const char *spec, unsigned slots, unsigned nodes)
{
	struct sy_heap_config config;
	struct sy_fault fault;

	CHECK(sy_spec_parse(&config, spec, &fault));
	config.slots = slots;
	config.nodes = nodes;
	config.grace_ns = 1000;
	now = 0;
	return make_large(&config);
}

static struct sy_cache *asking(struct world *world, size_t size, uint16_t capacity)
{
	struct sy_cache_config config = { .name = "asking", .size = size, .sheaf_capacity = capacity };

	return there(sy_cache_create(world->heap, &config), "cache");
}

static struct sy__slub_sheaves *sheaves_of(struct sy_cache *cache)
{
	return sy__slub_cache(cache)->sheaves;
}

static uint32_t capacity(struct sy_cache *cache)
{
	return sheaves_of(cache) ? sheaves_of(cache)->capacity : 0;
}

static void take_many(struct sy_cache *cache, unsigned slot, void **objects, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		CHECK((objects[i] = sy_cache_alloc(cache, slot, 0, SY_ANY_NODE)) != NULL);
}

/* ---- Who has them --------------------------------------------------------------------------------------------- */

static void test_since_6_18_caches_may_ask(void)
{
	struct world world = world_with("slub:linux=6.18", 1, 1);
	struct sy_cache *asks = asking(&world, 256, 32);

	CHECK_EQUAL(capacity(asks), 32);
	CHECK_EQUAL(capacity(cache_of(&world, 256, 0, 0)), 0);
	CHECK(cache_of(&world, 256, 0, 0) != asks);
	CHECK(asking(&world, 256, 32) != asks);
	end(&world);
	world = world_with("slub:linux=6.18,sheaf_capacity=8", 1, 1);
	CHECK_EQUAL(capacity(asking(&world, 256, 32)), 8);
	end(&world);
	world = world_with("slub:linux=6.18,sheaf_capacity=0", 1, 1);
	CHECK_EQUAL(capacity(asking(&world, 256, 32)), 0);
	end(&world);
	world = world_with("slub:linux=6.12", 1, 1);
	CHECK_EQUAL(capacity(asking(&world, 256, 32)), 0);
	end(&world);
}

/* A sheaf of 26 takes 32 + 26 * 8 = 240 bytes, so kmalloc-256, which has room for two more. */
static void test_in_7_0_the_size_decides(void)
{
	static const struct { uint32_t size, capacity; } cases[] = { { 8, 60 }, { 248, 60 }, { 256, 28 }, { 1016, 28 }, { 1024, 12 },
		                                                     { 4088, 12 }, { 4096, 4 }, { 20000, 4 } };
	struct world world = world_with("slub:linux=7.0", 1, 1);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_EQUAL(capacity(cache_of(&world, cases[i].size, 0, 0)), cases[i].capacity);
	CHECK_EQUAL(capacity(asking(&world, 256, 32)), 32);
	CHECK_EQUAL(capacity(asking(&world, 256, 16)), 28);
	CHECK_EQUAL(capacity(asking(&world, 256, SY_NO_SHEAVES)), 0);
	CHECK_EQUAL(capacity(slab_of(cache_of(&world, 8, 0, 0), sy_kmalloc(world.heap, 0, 100, 0, SY_ANY_NODE)) ?
	                             sy__node_slab(sy__head_of(world.heap, sy_kmalloc(world.heap, 0, 100, 0, SY_ANY_NODE)))->cache : NULL), 60);
	end(&world);
	world = world_with("slub:linux=7.0,tiny=on", 1, 1);
	CHECK_EQUAL(capacity(asking(&world, 256, 32)), 0);
	end(&world);
}

static void test_heaps_of_threads_have_none(void)
{
	const char *error = NULL;

	CHECK(sy_heap_open("slub:linux=6.18", NULL, &error) == NULL);
	CHECK(strstr(there((void *)(uintptr_t)error, "error"), "sheaves") != NULL);
}

/* ---- Places ------------------------------------------------------------------------------------------------------- */

static void test_the_last_freed_comes_first(void)
{
	struct world world = world_with("slub:linux=6.18", 1, 1);
	struct sy_cache *cache = asking(&world, 256, 32);
	void *objects[MANY];

	take_many(cache, 0, objects, 3);
	CHECK_EQUAL(counts_of(cache).objects_in_use, 3);
	CHECK_EQUAL(counts_of(cache).objects_cached, 29); /* two slabs of 16 filled the sheaf */
	for (unsigned i = 0; i < 3; i++)
		sy_cache_free(cache, 0, objects[i]);
	for (unsigned i = 3; i--;)
		CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == objects[i]);
	check(&world);
	end(&world);
}

/* Capacity 4. What 20 objects and their frees do to the sheaves of one slot. */
static void test_places_of_sheaves(void)
{
	struct world world = world_with(SMALL ",barn_full=2", 1, 1);
	struct sy_cache *cache = cache_of(&world, 1000, 0, 0);
	struct sy__slub_sheaves *sheaves = sheaves_of(cache);
	struct sy__slub_slot_sheaves *own = &sheaves->slots[0];
	void *objects[MANY];

	take_many(cache, 0, objects, 20); /* five times a sheaf was filled, and the empty main one went to the barn and came back */
	CHECK_EQUAL(own->main->size, 0);
	CHECK(own->spare == NULL);
	CHECK_EQUAL(sheaves->barns[0].empties, 1);
	CHECK_EQUAL(counts_of(cache).slabs, 5);
	free_all(cache, 0, objects, 4);
	CHECK_EQUAL(own->main->size, 4);
	free_all(cache, 0, objects + 4, 1); /* the main one becomes the spare one, the barn's takes its place */
	CHECK_EQUAL(own->main->size, 1);
	CHECK_EQUAL(own->spare->size, 4);
	CHECK_EQUAL(sheaves->barns[0].empties, 0);
	free_all(cache, 0, objects + 5, 4); /* both were full: one is the barn's, and a new one is there */
	CHECK_EQUAL(own->main->size, 1);
	CHECK_EQUAL(sheaves->barns[0].fulls, 1);
	check(&world);
	free_all(cache, 0, objects + 9, 4);
	CHECK_EQUAL(sheaves->barns[0].fulls, 2);
	CHECK_EQUAL(counts_of(cache).objects_cached, 13);
	CHECK_EQUAL(counts_of(cache).slabs, 5); /* in slabs nothing is free yet */
	CHECK_EQUAL(node_of(cache, 0)->partial_slabs, 0);
	free_all(cache, 0, objects + 13, 4); /* the barn has enough: the spare one is emptied */
	CHECK_EQUAL(sheaves->barns[0].fulls, 2);
	CHECK_EQUAL(own->main->size, 1);
	CHECK_EQUAL(own->spare->size, 4);
	CHECK_EQUAL(node_of(cache, 0)->partial_slabs, 1);
	CHECK_EQUAL(counts_of(cache).objects_in_use, 3);
	check(&world);
	take_many(cache, 0, objects, 13); /* main, spare, and both of the barn */
	CHECK_EQUAL(own->main->size, 0);
	CHECK_EQUAL(sheaves->barns[0].fulls, 0);
	CHECK_EQUAL(counts_of(cache).objects_cached, 0);
	check(&world);
	end(&world);
}

static void test_who_may_not_wait_gets_from_slabs(void)
{
	struct world world = world_with("slub:linux=6.18", 1, 1);
	struct sy_cache *cache = asking(&world, 256, 32);

	CHECK(sy_cache_alloc(cache, 0, SY_HIGHATOMIC, SY_ANY_NODE) != NULL);
	CHECK_EQUAL(sheaves_of(cache)->slots[0].main->size, 0);
	CHECK(slot_of(cache, 0)->slab != NULL);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) != NULL);
	CHECK_EQUAL(sheaves_of(cache)->slots[0].main->size, 31);
	check(&world);
	end(&world);
}

static void test_objects_of_other_nodes_go_to_their_slabs(void)
{
	struct world world = world_with(SMALL, 2, 2);
	struct sy_cache *cache = cache_of(&world, 1000, 0, 0);
	void *objects[2] = { sy_cache_alloc(cache, 0, 0, 1), sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) };
	uint32_t held = sheaves_of(cache)->slots[0].main->size;

	CHECK_EQUAL(sy__page_node(slab_of(cache, objects[0])), 1);
	CHECK_EQUAL(held, 3);
	sy_cache_free(cache, 0, objects[0]);
	CHECK_EQUAL(sheaves_of(cache)->slots[0].main->size, held);
	sy_cache_free(cache, 0, objects[1]);
	CHECK_EQUAL(sheaves_of(cache)->slots[0].main->size, held + 1);
	check(&world);
	end(&world);
}

/* Each of three slabs of four has free objects. A sheaf takes four of them; a slab with objects left goes to the tail of the
 * list. */
static void test_a_sheaf_is_filled_from_the_nodes_list(void)
{
	struct world world = world_with(SMALL ",barn_full=0", 1, 1);
	struct sy_cache *cache = cache_of(&world, 1000, 0, 0);
	void *objects[MANY];
	struct sy_page *second;

	take_many(cache, 0, objects, 12);
	CHECK(slot_of(cache, 0)->slab == NULL);
	second = slab_of(cache, objects[4]);
	for (unsigned i = 0; i < 12; i += 4)
		free_all(cache, 0, objects + i, 3); /* nine: one sheaf was emptied, and one and one object are with the slot */
	CHECK_EQUAL(counts_of(cache).objects_in_use, 3);
	sy_cache_shrink(cache);
	CHECK_EQUAL(counts_of(cache).objects_cached, 0);
	CHECK_EQUAL(node_of(cache, 0)->partial_slabs, 3);
	take_many(cache, 0, objects, 4);
	CHECK_EQUAL(node_of(cache, 0)->partial_slabs, 2);
	CHECK_EQUAL(position(cache, 0, second), 1);
	check(&world);
	end(&world);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------- */

static struct sy_cache *class_of_sheaf(struct sy_cache *cache)
{
	return sy__node_slab(sy__head_of(cache->heap, sheaves_of(cache)->slots[0].main))->cache;
}

/* 32 + 32 * 8 = 288 bytes, with pointers of 4 bytes half as many. */
static void test_sheaves_are_objects_of_kmalloc(void)
{
	struct world world = world_with("slub:linux=6.18", 2, 1);
	struct sy_cache *cache = asking(&world, 256, 32), *class = class_of_sheaf(cache);

	CHECK(!strcmp(class->name, sizeof(void *) > 4 ? "kmalloc-512" : "kmalloc-192"));
	CHECK_EQUAL(sy__slub_cache(class)->own_objects, 2); /* a main one for each slot */
	CHECK_EQUAL(counts_of(class).objects_in_use, 0);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) != NULL);
	CHECK_EQUAL(sy__slub_cache(class)->own_objects, 3);
	check(&world);
	end(&world);
}

static void test_a_cache_ends_with_its_sheaves(void)
{
	struct world world = world_with("slub:linux=7.0", 2, 1);
	struct sy_cache *cache = cache_of(&world, 1000, 0, SY_CACHE_TYPESAFE_BY_RCU), *class = class_of_sheaf(cache);
	uint64_t own = sy__slub_cache(class)->own_objects, alive;
	void *objects[MANY];

	take_many(cache, 0, objects, 100);
	free_all(cache, 1, objects, 99);
	CHECK(sy__slub_cache(class)->own_objects > own);
	CHECK(!sy_cache_destroy(cache, &alive));
	CHECK_EQUAL(alive, 1);
	sy_cache_free(cache, 0, objects[99]);
	check(&world);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(sy__slub_cache(class)->own_objects, own - 2);
	check(&world);
	end(&world);
}

static void test_a_slot_that_goes_away_keeps_no_object(void)
{
	struct world world = world_with("slub:linux=6.18", 2, 1);
	struct sy_cache *cache = asking(&world, 256, 32);
	void *objects[MANY];

	take_many(cache, 1, objects, 40);
	free_all(cache, 1, objects, 40);
	world.heap->policy->drain(world.heap, 1);
	CHECK_EQUAL(sheaves_of(cache)->slots[1].main->size, 0);
	CHECK(sheaves_of(cache)->slots[1].spare == NULL);
	check(&world);
	end(&world);
}

int main(void)
{
	test_since_6_18_caches_may_ask();
	test_in_7_0_the_size_decides();
	test_heaps_of_threads_have_none();
	test_the_last_freed_comes_first();
	test_places_of_sheaves();
	test_who_may_not_wait_gets_from_slabs();
	test_objects_of_other_nodes_go_to_their_slabs();
	test_a_sheaf_is_filled_from_the_nodes_list();
	test_sheaves_are_objects_of_kmalloc();
	test_a_cache_ends_with_its_sheaves();
	test_a_slot_that_goes_away_keeps_no_object();
	return check_result();
}
