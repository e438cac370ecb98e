/*
 * SLUB by worked examples: where objects and slabs are after each step, by the rules in the opening comment of
 * slub.c. Every step ends with the checks of the heap and of the page allocator.
 *
 * Most examples use a cache of 1024 bytes on one CPU: 8 objects to a slab of 2 pages. With two CPUs it is 16
 * objects and 4 pages, and a slot keeps 24 objects' worth of half-full slabs: 3 of them.
 */
#include "slub_support.h"

/* ---- One CPU -------------------------------------------------------------------------------------------------- */

static void test_objects_come_in_order_of_address_and_go_last_in_first_out(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	char *objects[8];

	for (unsigned i = 0; i < 8; i++) {
		objects[i] = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
		CHECK(objects[i] == objects[0] + 1024 * i);
	}
	check(&world);
	CHECK_EQUAL(world.heap->counters.slow_allocs, 1);
	sy_cache_free(cache, 0, objects[3]);
	sy_cache_free(cache, 0, objects[6]);
	CHECK_EQUAL(world.heap->counters.slow_frees, 0);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == objects[6]);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == objects[3]);
	CHECK_EQUAL(world.heap->counters.slab_pages, 2);
	end(&world);
}

static void test_zeroed_when_asked(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	char *object = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);

	memset(object, 0xa5, 1024);
	sy_cache_free(cache, 0, object);
	CHECK(sy_cache_alloc(cache, 0, SY_ZERO, SY_ANY_NODE) == object);
	for (unsigned i = 0; i < 1024; i++)
		CHECK_EQUAL(object[i], 0);
	end(&world);
}

static void test_full_slab_goes_to_the_tail_at_its_first_free(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	void *objects[MANY];

	fill(cache, objects, 4, 8);
	check(&world);
	CHECK_EQUAL(node_of(cache, 0)->partial_slabs, 0);
	CHECK_EQUAL(counts_of(cache).full_slabs, 4);
	for (unsigned slab = 0; slab < 3; slab++) {
		sy_cache_free(cache, 0, objects[(2 - slab) * 8]);
		check(&world);
	}
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[2 * 8])), 0);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[1 * 8])), 1);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[0])), 2);
	CHECK_EQUAL(world.heap->counters.slow_frees, 3);
	/* The next allocation finds the active slab full, and takes the head of the list. */
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == objects[2 * 8]);
	CHECK(slot_of(cache, 0)->slab == slab_of(cache, objects[2 * 8]));
	check(&world);
	CHECK_EQUAL(counts_of(cache).slabs, 4);
	CHECK_EQUAL(counts_of(cache).objects_in_use, 30);
	end(&world);
}

static void test_empty_slabs_beyond_min_partial_go_back(void)
{
	struct world world = make(1, 1, "min_partial", 2);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	void *objects[MANY];

	fill(cache, objects, 5, 8);
	CHECK_EQUAL(counts_of(cache).slabs, 5);
	free_all(cache, 0, objects, 8); /* alone on the list: stays, though empty */
	CHECK_EQUAL(counts_of(cache).slabs, 5);
	CHECK_EQUAL(counts_of(cache).empty_slabs, 1);
	check(&world);
	free_all(cache, 0, objects + 8, 8); /* the list has 2 slabs when it becomes empty: it goes */
	CHECK_EQUAL(counts_of(cache).slabs, 4);
	free_all(cache, 0, objects + 16, 8);
	CHECK_EQUAL(counts_of(cache).slabs, 3);
	CHECK_EQUAL(world.heap->counters.slab_pages, 6);
	check(&world);
	CHECK_EQUAL(sy_cache_shrink(cache), 2); /* pages of the one that stayed */
	CHECK_EQUAL(counts_of(cache).slabs, 2);
	check(&world);
	free_all(cache, 0, objects + 24, 16);
	check(&world);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static void test_default_min_partial(void)
{
	struct world world = make(1, 1, NULL, 0);

	CHECK_EQUAL(sy__node_cache(cache_of(&world, 64, 0, 0))->min_partial, 5);
	CHECK_EQUAL(sy__node_cache(cache_of(&world, 4096, 0, 0))->min_partial, 6);
	CHECK_EQUAL(sy__node_cache(cache_of(&world, 16384, 0, 0))->min_partial, 7);
	CHECK_EQUAL(sy__node_cache(cache_of(&world, (size_t)4 << 20, 0, 0))->min_partial, 10);
	end(&world);
}

static void test_drain_puts_the_active_slab_at_the_head(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	void *objects[MANY];

	fill(cache, objects, 2, 8);
	sy_cache_free(cache, 0, objects[0]);
	fill(cache, objects + 16, 1, 1); /* takes that one back: the first slab is active and full */
	sy_cache_free(cache, 0, objects[8]);
	sy_cache_free(cache, 0, objects[1]);
	cache->policy->drain(world.heap, 0);
	check(&world);
	CHECK(slot_of(cache, 0)->slab == NULL);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[1])), 0);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[8])), 1);
	CHECK_EQUAL(counts_of(cache).objects_cached, 0);
	end(&world);
}

static void test_shrink_sorts_by_use(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	void *objects[MANY];

	fill(cache, objects, 4, 8);
	free_all(cache, 0, objects, 5);
	free_all(cache, 0, objects + 8, 2);
	free_all(cache, 0, objects + 16, 7);
	CHECK_EQUAL(sy_cache_shrink(cache), 0);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[15])), 0);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[7])), 1);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[23])), 2);
	check(&world);
	end(&world);
}

static void test_no_memory_for_a_large_slab_takes_the_smallest(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	void *object;

	sy_pages_fail_after(world.pages, 1);
	object = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
	CHECK(object != NULL);
	CHECK_EQUAL(slab_of(cache, object)->order, 0);
	CHECK_EQUAL(counts_of(cache).objects, 4);
	CHECK_EQUAL(world.heap->counters.page_failures, 1);
	check(&world);
	end(&world);
}

static void test_no_memory_at_all(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 64, 0, 0); /* its slabs are of order 0: there is no smaller one */

	sy_pages_fail_after(world.pages, 1);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == NULL);
	check(&world);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) != NULL);
	check(&world);
	end(&world);
}

static void test_all_memory_can_be_used_and_reclaimed(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 4096, 4096, 0), *other = cache_of(&world, 2048, 0, 0);
	void **last = NULL, *object;
	uint64_t count = 0;

	while ((object = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE)) != NULL) {
		*(void **)object = last;
		last = object;
		count++;
	}
	CHECK(count > 15000);
	CHECK(sy_cache_alloc(other, 0, 0, SY_ANY_NODE) == NULL);
	check(&world);
	while (last) {
		object = last;
		last = *(void **)object;
		sy_cache_free(cache, 0, object);
	}
	check(&world);
	CHECK(counts_of(cache).slabs <= 8);
	CHECK(sy_cache_alloc(other, 0, 0, SY_ANY_NODE) != NULL);
	end(&world);
}

static void test_kept_memory_is_given_up_when_others_need_it(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *keeps = cache_of(&world, 1024, 0, 0), *needs = cache_of(&world, 4096, 4096, 0);
	void *objects[MANY];

	fill(keeps, objects, 6, 8);
	free_all(keeps, 0, objects, 48);
	CHECK_EQUAL(counts_of(keeps).slabs, 5); /* four on the list and the active one, all empty; one went back */
	CHECK_EQUAL(counts_of(keeps).empty_slabs, 5);
	while (sy_cache_alloc(needs, 0, 0, SY_ANY_NODE))
		;
	CHECK_EQUAL(counts_of(keeps).slabs, 0);
	CHECK_EQUAL(world.heap->counters.reclaimed_pages, 10);
	end(&world);
}

/* ---- Several CPUs --------------------------------------------------------------------------------------------- */

static void test_first_free_of_a_full_slab_freezes_it_for_the_freeing_slot(void)
{
	struct world world = make(2, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	void *objects[MANY];

	CHECK_EQUAL(sy__slub_cache(cache)->slot_limit, 3);
	fill(cache, objects, 5, 16);
	for (unsigned slab = 0; slab < 3; slab++) {
		sy_cache_free(cache, 1, objects[slab * 16]);
		check(&world);
		CHECK(slot_of(cache, 1)->partial == slab_of(cache, objects[slab * 16]));
		CHECK_EQUAL(slot_of(cache, 1)->partial_slabs, slab + 1);
	}
	CHECK_EQUAL(node_of(cache, 0)->partial_slabs, 0);
	CHECK_EQUAL(counts_of(cache).objects_cached, 3);
	/* A fourth overflows the list: the three go to the node, newest first. */
	sy_cache_free(cache, 1, objects[3 * 16]);
	check(&world);
	CHECK_EQUAL(slot_of(cache, 1)->partial_slabs, 1);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[2 * 16])), 0);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[1 * 16])), 1);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[0])), 2);
	/* Frees into a frozen slab only collect, even to the last one. */
	free_all(cache, 0, objects + 3 * 16 + 1, 15);
	check(&world);
	CHECK_EQUAL(slot_of(cache, 1)->partial_slabs, 1);
	CHECK_EQUAL(counts_of(cache).empty_slabs, 1);
	CHECK_EQUAL(node_of(cache, 0)->partial_slabs, 3);
	CHECK_EQUAL(counts_of(cache).slabs, 5);
	end(&world);
}

static void test_allocation_takes_kept_slabs_first_and_then_more_from_the_node(void)
{
	struct world world = make(2, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	void *objects[MANY];

	fill(cache, objects, 7, 16);
	for (unsigned slab = 0; slab < 6; slab++)
		sy_cache_free(cache, 1, objects[slab * 16]);
	check(&world);
	/* Slot 1 keeps slabs 5, 4, 3; the node has 2, 1, 0. */
	for (unsigned slab = 6; slab-- > 3;)
		CHECK(sy_cache_alloc(cache, 1, 0, SY_ANY_NODE) == objects[slab * 16]);
	check(&world);
	CHECK_EQUAL(slot_of(cache, 1)->partial_slabs, 0);
	CHECK_EQUAL(node_of(cache, 0)->partial_slabs, 3);
	/* From the node: one to use, and two to keep, as 2 is more than half of 3. */
	CHECK(sy_cache_alloc(cache, 1, 0, SY_ANY_NODE) == objects[2 * 16]);
	CHECK_EQUAL(slot_of(cache, 1)->partial_slabs, 2);
	CHECK(slot_of(cache, 1)->partial == slab_of(cache, objects[0]));
	CHECK_EQUAL(node_of(cache, 0)->partial_slabs, 0);
	check(&world);
	end(&world);
}

static void test_what_others_free_is_found_when_the_own_list_is_empty(void)
{
	struct world world = make(2, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	void *objects[MANY];

	fill(cache, objects, 1, 16);
	sy_cache_free(cache, 1, objects[4]);
	sy_cache_free(cache, 1, objects[9]);
	check(&world);
	CHECK(slot_of(cache, 0)->freelist == NULL);
	CHECK(slot_of(cache, 1)->partial == NULL); /* frozen: it stays with slot 0 */
	CHECK_EQUAL(counts_of(cache).objects_cached, 2);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == objects[9]);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == objects[4]);
	CHECK_EQUAL(world.heap->counters.slow_allocs, 2);
	check(&world);
	end(&world);
}

static void test_a_slab_that_others_freed_into_goes_to_the_tail(void)
{
	struct world world = make(2, 1, "cpu_partial", 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	void *objects[MANY];

	fill(cache, objects, 2, 16);
	sy_cache_free(cache, 1, objects[0]); /* no slot keeps slabs: straight to the node */
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[0])), 0);
	sy_cache_free(cache, 0, objects[16]);
	sy_cache_free(cache, 1, objects[17]);
	cache->policy->drain(world.heap, 0);
	check(&world);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[0])), 0);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[16])), 1);
	end(&world);
}

static void test_slot_limits_by_size(void)
{
	struct world world = make(2, 1, NULL, 0);
	static const uint32_t expected[][2] = { { 64, 4 }, { 248, 15 }, { 256, 7 }, { 512, 7 }, { 1024, 3 }, { 4096, 2 } };

	/* 120 objects * 2 / 64; 240 / 16; 104 / 16; 104 / 16; 48 / 16; 12 / 8: all rounded up. */
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		CHECK_EQUAL(sy__slub_cache(cache_of(&world, expected[i][0], 0, SY_CACHE_NO_MERGE))->slot_limit, expected[i][1]);
	end(&world);
}

/* ---- Nodes ---------------------------------------------------------------------------------------------------- */

static void test_memory_of_the_node_that_is_asked_for(void)
{
	struct world world = make(2, 2, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	void *near = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE), *far, *again;

	CHECK_EQUAL(slab_of(cache, near)->node, 0);
	far = sy_cache_alloc(cache, 0, 0, 1);
	CHECK_EQUAL(slab_of(cache, far)->node, 1);
	check(&world);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, near)), 0); /* deactivated */
	CHECK_EQUAL(world.heap->counters.slow_allocs, 2);
	again = sy_cache_alloc(cache, 0, 0, 1);
	CHECK(slab_of(cache, again) == slab_of(cache, far));
	CHECK_EQUAL(world.heap->counters.slow_allocs, 2); /* the right node is no reason to leave the fast path */
	again = sy_cache_alloc(cache, 0, SY_THISNODE, 0);
	CHECK(slab_of(cache, again) == slab_of(cache, near));
	CHECK(sy_cache_alloc(cache, 0, SY_THISNODE, 7) == NULL);
	CHECK(sy_cache_alloc(cache, 0, 0, 7) != NULL);
	check(&world);
	end(&world);
}

static void test_other_nodes_give_only_beyond_min_partial(void)
{
	struct world world = make(2, 2, "min_partial", 1);
	struct sy_cache *cache = cache_of(&world, 1024, 0, SY_CACHE_NO_MERGE);
	void *objects[MANY], *object;

	sy__slub_cache(cache)->slot_limit = 0; /* as with cpu_partial=0, so that slabs go to the nodes at once */
	fill(cache, objects, 3, 16);           /* node 0 */
	sy_cache_free(cache, 1, objects[0]);
	object = sy_cache_alloc(cache, 1, 0, SY_ANY_NODE);
	CHECK_EQUAL(slab_of(cache, object)->node, 1); /* node 0 has one partial slab, and needs it */
	sy_cache_free(cache, 1, objects[16]);
	cache->policy->drain(world.heap, 1);
	sy_cache_free(cache, 1, object);
	sy_cache_shrink(cache);
	check(&world);
	object = sy_cache_alloc(cache, 1, 0, SY_ANY_NODE);
	CHECK_EQUAL(slab_of(cache, object)->node, 0); /* now it has two */
	check(&world);
	end(&world);
}

/* ---- Random programs ------------------------------------------------------------------------------------------ */

#define LIVE 4000
#define CACHES 6

static uint64_t random_state;

static uint32_t random_below(uint32_t bound)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % bound;
}

struct live {
	unsigned char *object;
	struct sy_cache *cache; /* NULL: kmalloc */
	size_t size;
	unsigned char fill;
};

static void random_alloc(struct world *world, struct live *live, struct sy_cache **caches)
{
	unsigned slot = random_below(world->heap->slots);
	int node = random_below(4) ? SY_ANY_NODE : (int)random_below(world->heap->nodes);

	live->cache = random_below(2) ? caches[random_below(CACHES)] : NULL;
	live->fill = (unsigned char)random_below(256);
	if (live->cache) {
		live->size = live->cache->object_size;
		live->object = sy_cache_alloc(live->cache, slot, 0, node);
	} else {
		live->size = random_below(50) ? random_below(600) : random_below(30000);
		live->object = sy_kmalloc(world->heap, slot, live->size, random_below(8) ? 0 : SY_RECLAIMABLE, node);
	}
	if (live->object)
		memset(live->object, live->fill, live->size);
}

static void random_free(struct world *world, struct live *live)
{
	unsigned slot = random_below(world->heap->slots);
	size_t changed = 0;

	for (size_t i = 0; i < live->size; i++)
		changed += live->object[i] != live->fill;
	CHECK_EQUAL(changed, 0);
	if (live->cache)
		sy_cache_free(live->cache, slot, live->object);
	else
		sy_kfree(world->heap, slot, live->object);
	live->object = NULL;
}

static void test_random_programs(unsigned slots, unsigned nodes, uint64_t seed, const char *tunable, int64_t value)
{
	static const size_t sizes[CACHES] = { 24, 200, 640, 1500, 4096, 10000 };
	static struct live live[LIVE];
	struct world world = make(slots, nodes, tunable, value);
	struct sy_cache *caches[CACHES];

	random_state = seed;
	for (unsigned i = 0; i < CACHES; i++)
		caches[i] = cache_of(&world, sizes[i], 0, i == 1 ? SY_CACHE_TYPESAFE_BY_RCU : 0);
	for (unsigned step = 0; step < 60000; step++) {
		/* The number of live objects swells and shrinks, so that slabs fill and empty. */
		struct live *at = &live[random_below(step / 10000 % 2 ? LIVE / 8 : LIVE)];

		if (at->object)
			random_free(&world, at);
		else
			random_alloc(&world, at, caches);
		if (step % 10000 == 9999)
			for (unsigned i = LIVE / 8; i < LIVE; i++)
				if (live[i].object)
					random_free(&world, &live[i]);
		if (random_below(2000) == 0)
			sy_heap_shrink(world.heap);
		if (random_below(2000) == 0)
			world.heap->policy->drain(world.heap, random_below(slots));
		if (random_below(500) == 0)
			sy_pages_fail_after(world.pages, 1 + random_below(3));
		if (random_below(500) == 0)
			check(&world);
		now += random_below(20);
		sy_heap_tick(world.heap);
	}
	for (unsigned i = 0; i < LIVE; i++)
		if (live[i].object)
			random_free(&world, &live[i]);
	check(&world);
	for (unsigned i = 0; i < CACHES; i++) {
		CHECK_EQUAL(counts_of(caches[i]).objects_in_use, 0);
		CHECK(sy_cache_destroy(caches[i], NULL));
	}
	sy_heap_shrink(world.heap);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	CHECK_EQUAL(world.heap->counters.large_pages, 0);
	end(&world);
}

int main(void)
{
	test_objects_come_in_order_of_address_and_go_last_in_first_out();
	test_zeroed_when_asked();
	test_full_slab_goes_to_the_tail_at_its_first_free();
	test_empty_slabs_beyond_min_partial_go_back();
	test_default_min_partial();
	test_drain_puts_the_active_slab_at_the_head();
	test_shrink_sorts_by_use();
	test_no_memory_for_a_large_slab_takes_the_smallest();
	test_no_memory_at_all();
	test_all_memory_can_be_used_and_reclaimed();
	test_kept_memory_is_given_up_when_others_need_it();
	test_first_free_of_a_full_slab_freezes_it_for_the_freeing_slot();
	test_allocation_takes_kept_slabs_first_and_then_more_from_the_node();
	test_what_others_free_is_found_when_the_own_list_is_empty();
	test_a_slab_that_others_freed_into_goes_to_the_tail();
	test_slot_limits_by_size();
	test_memory_of_the_node_that_is_asked_for();
	test_other_nodes_give_only_beyond_min_partial();
	test_random_programs(1, 1, 1, NULL, 0);
	test_random_programs(4, 1, 2, NULL, 0);
	test_random_programs(8, 3, 3, NULL, 0);
	test_random_programs(3, 2, 4, "cpu_partial", 1);
	test_random_programs(4, 2, 5, "min_partial", 0);
	return check_result();
}
