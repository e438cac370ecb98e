/*
 * SLQB by worked examples: where objects and slabs are after each step, by the rules in the opening comments of
 * slqb.c and slqb/slabs.c. Every step ends with the checks of the heap and of the page allocator.
 *
 * Most examples use a cache of 512 bytes, 8 objects to a slab of one page, with small thresholds: a freelist of at
 * most 10 objects (hiwater), and batches of 4.
 */
#include "constructed_support.h"
#include "random_support.h"

#include "core/pages/pages.h"
#include "core/policies/slqb/slqb.h"

#define MANY 1024

/* With a high-water mark and a batch of that many objects (0: the default), and rlists that are `mixed` (1) or of one owner. */
static struct world make_mixed(unsigned slots, unsigned nodes, int64_t hiwater, int64_t batch, int64_t mixed)
{
	struct sy_heap_config config = config_of("slqb", slots, nodes);

	now = 0;
	if (batch) {
		config.tunables[SLQB_HIWATER] = hiwater;
		config.tunables[SLQB_FREEBATCH] = batch;
	}
	config.tunables[SLQB_RLIST] = mixed;
	return make_large(&config);
}

static struct world make(unsigned slots, unsigned nodes, int64_t hiwater, int64_t batch)
{
	return make_mixed(slots, nodes, hiwater, batch, 0);
}

static struct sy__slqb_slot *slot_of(struct sy_cache *cache, unsigned slot)
{
	return sy__slqb_slot(sy__slqb_cache(cache), slot);
}

static struct sy__slqb_list *list_of(struct sy_cache *cache, unsigned slot)
{
	return &slot_of(cache, slot)->list;
}

static struct sy__slqb_slab *slab_of(struct sy_cache *cache, void *object)
{
	return sy__slqb_slab(page_of(cache, object));
}

/* ---- One CPU -------------------------------------------------------------------------------------------------- */

static void test_objects_come_from_a_partial_slab_one_by_one(void)
{
	struct world world = make(1, 1, 10, 4);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	char *objects[8];

	for (unsigned i = 0; i < 8; i++) {
		objects[i] = take(cache, 0);
		CHECK(objects[i] == objects[0] + 512 * i);
		CHECK_EQUAL(list_of(cache, 0)->count, 0);
		CHECK_EQUAL(list_of(cache, 0)->partial_slabs, i < 7);
		check(&world);
	}
	CHECK_EQUAL(world.heap->counters.slow_allocs, 8);
	CHECK_EQUAL(counts_of(cache).full_slabs, 1);
	end(&world);
}

static void test_the_freelist_is_a_stack(void)
{
	struct world world = make(1, 1, 10, 4);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[8];

	take_all(cache, 0, objects, 8);
	sy_cache_free(cache, 0, objects[2]);
	sy_cache_free(cache, 0, objects[5]);
	CHECK_EQUAL(counts_of(cache).objects_cached, 2);
	CHECK(take(cache, 0) == objects[5]);
	CHECK(take(cache, 0) == objects[2]);
	CHECK_EQUAL(world.heap->counters.slow_allocs, 8);
	CHECK_EQUAL(world.heap->counters.slow_frees, 0);
	end(&world);
}

static void test_zeroed_when_asked(void)
{
	struct world world = make(1, 1, 10, 4);

	check_zeroed(cache_of(&world, 512, 0, 0));
	end(&world);
}

/* The eleventh free finds more than 10: the four newest go home. Three are of the second slab, one of the first. */
static void test_beyond_hiwater_a_batch_goes_back_to_its_slabs(void)
{
	struct world world = make(1, 1, 10, 4);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[16];

	take_all(cache, 0, objects, 16);
	free_all(cache, 0, objects, 10);
	CHECK_EQUAL(list_of(cache, 0)->count, 10);
	CHECK_EQUAL(list_of(cache, 0)->partial_slabs, 0);
	CHECK_EQUAL(world.heap->counters.slow_frees, 0);
	sy_cache_free(cache, 0, objects[10]);
	check(&world);
	CHECK_EQUAL(world.heap->counters.slow_frees, 1);
	CHECK_EQUAL(list_of(cache, 0)->count, 7);
	CHECK_EQUAL(list_of(cache, 0)->partial_slabs, 2);
	CHECK_EQUAL(slab_of(cache, objects[8])->out, 5);
	CHECK_EQUAL(slab_of(cache, objects[0])->out, 7);
	CHECK(take(cache, 0) == objects[6]);
	end(&world);
}

/* With a mark of 0 every free goes home at once. The slab that became partial last is used first, and an empty one
 * ends. */
static void test_empty_slabs_go_back_at_once(void)
{
	struct world world = make(1, 1, 0, 1);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[24];

	take_all(cache, 0, objects, 24);
	sy_cache_free(cache, 0, objects[0]);
	sy_cache_free(cache, 0, objects[17]);
	sy_cache_free(cache, 0, objects[9]);
	sy_cache_free(cache, 0, objects[18]);
	check(&world);
	CHECK(take(cache, 0) == objects[9]);
	CHECK(take(cache, 0) == objects[18]);
	CHECK(take(cache, 0) == objects[17]);
	CHECK(take(cache, 0) == objects[0]);
	free_all(cache, 0, objects + 8, 8);
	check(&world);
	CHECK_EQUAL(counts_of(cache).slabs, 2);
	CHECK_EQUAL(world.heap->counters.slab_pages, 2);
	end(&world);
}

/* 3 objects of 1152 leave 640 bytes: ten colours of 64 bytes. */
static void test_colours_go_round(void)
{
	struct world world = make(1, 1, 10, 4);
	struct sy_cache *cache = cache_of(&world, 1152, 0, 0);

	for (unsigned i = 0; i < 12; i++) {
		void *objects[3];

		take_all(cache, 0, objects, 3);
		CHECK_EQUAL(slab_of(cache, objects[0])->start, i % 10 * 64);
	}
	end(&world);
}

static void test_no_memory_at_all(void)
{
	struct world world = make(1, 1, 10, 4);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);

	sy_pages_fail_after(world.pages, 1);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == NULL);
	check(&world);
	take(cache, 0);
	check(&world);
	end(&world);
}

/* ---- Contents ------------------------------------------------------------------------------------------------- */

/* 500 bytes are rounded to words, and a free pointer follows: 504 and 512 with words of 8 bytes, 500 and 504 with 4. */
static void test_objects_stay_constructed(void)
{
	struct world world = make(1, 1, 10, 4);
	struct sy_cache *cache = constructed_cache(&world, 500, 0);
	void *objects[100];

	CHECK_EQUAL(sy__slqb_cache(cache)->offset, sizeof(void *) == 8 ? 504 : 500);
	CHECK_EQUAL(cache->size, sizeof(void *) == 8 ? 512 : 504);
	take_all(cache, 0, objects, 100);
	CHECK_EQUAL(constructed, 104);
	for (unsigned i = 0; i < 100; i++)
		check_constructed(objects[i], 500);
	free_all(cache, 0, objects, 100);
	check(&world);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(destructed, 104);
	end(&world);
}

static void test_rcu_typesafe_slabs_wait_for_the_grace_period(void)
{
	struct world world = make(1, 1, 10, 4);
	struct sy_cache *cache = cache_of(&world, 504, 0, SY_CACHE_TYPESAFE_BY_RCU);
	void *objects[16];

	take_all(cache, 0, objects, 16);
	memset(objects[3], 0x77, 504);
	free_all(cache, 0, objects, 16);
	CHECK_EQUAL(sy_cache_shrink(cache), 0);
	check(&world);
	CHECK_EQUAL(counts_of(cache).slabs, 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 2);
	CHECK_EQUAL(((unsigned char *)objects[3])[503], 0x77);
	now = 999;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(world.heap->counters.slab_pages, 2);
	now = 1000;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

/* ---- Several CPUs --------------------------------------------------------------------------------------------- */

/* Another CPU frees objects 0 to 10 into its own freelist. The batch that it flushes is not of its own slabs, and four fill
 * an rlist: they are sent, and the owner is told. The owner takes them over when its freelist is empty, newest first. */
static void test_objects_freed_elsewhere_come_back_in_batches(void)
{
	struct world world = make(2, 1, 10, 4);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[16];

	take_all(cache, 0, objects, 16);
	free_all(cache, 1, objects, 10);
	CHECK_EQUAL(list_of(cache, 1)->count, 10);
	CHECK_EQUAL(list_of(cache, 0)->remote_free.count, 0);
	sy_cache_free(cache, 1, objects[10]);
	check(&world);
	CHECK_EQUAL(list_of(cache, 1)->count, 7);
	CHECK_EQUAL(slot_of(cache, 1)->rlist.count, 0);
	CHECK_EQUAL(list_of(cache, 0)->remote_free.count, 4);
	CHECK_EQUAL(list_of(cache, 0)->remote_free_check, 1);
	CHECK_EQUAL(counts_of(cache).objects_in_use, 5);
	CHECK_EQUAL(counts_of(cache).objects_cached, 11);
	for (unsigned i = 10; i >= 7; i--)
		CHECK(take(cache, 0) == objects[i]);
	CHECK_EQUAL(list_of(cache, 0)->remote_free_check, 0);
	CHECK_EQUAL(list_of(cache, 0)->count, 0);
	CHECK(take(cache, 1) == objects[6]); /* other slots' objects serve as well as one's own */
	check(&world);
	end(&world);
}

/* Until there are remote_free_check of them, the owner does not look. */
static void test_few_objects_from_elsewhere_wait(void)
{
	const struct sy_policy *slqb = sy_policy_find("slqb");
	struct world world = make(2, 1, 0, 1);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[16];

	CHECK_TEXT(slqb->tunables[SLQB_REMOTE_FREE_CHECK].name, "remote_free_check");
	sy__slqb_cache(cache)->remote_free_check = 3;
	take_all(cache, 0, objects, 8);
	sy_cache_free(cache, 1, objects[3]);
	sy_cache_free(cache, 1, objects[4]);
	CHECK_EQUAL(list_of(cache, 0)->remote_free.count, 2);
	CHECK_EQUAL(list_of(cache, 0)->remote_free_check, 0);
	objects[8] = take(cache, 0);
	CHECK(page_of(cache, objects[8]) != page_of(cache, objects[0]));
	sy_cache_free(cache, 1, objects[5]);
	CHECK_EQUAL(list_of(cache, 0)->remote_free_check, 1);
	check(&world);
	CHECK(take(cache, 0) == objects[4]); /* three are more than the mark of 0: a batch of one goes home first */
	CHECK_EQUAL(list_of(cache, 0)->count, 1);
	CHECK_EQUAL(slab_of(cache, objects[3])->out, 7);
	check(&world);
	end(&world);
}

/* An rlist has one owner's objects only: the next owner's send it off. */
static void test_an_rlist_is_for_one_owner(void)
{
	struct world world = make(3, 1, 0, 4);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *first[4], *second[4];

	take_all(cache, 0, first, 4);
	take_all(cache, 1, second, 4);
	sy_cache_free(cache, 2, first[0]);
	sy_cache_free(cache, 2, first[1]);
	CHECK_EQUAL(slot_of(cache, 2)->rlist.count, 2);
	CHECK(slot_of(cache, 2)->rlist_to == list_of(cache, 0));
	sy_cache_free(cache, 2, second[0]);
	check(&world);
	CHECK_EQUAL(slot_of(cache, 2)->rlist.count, 1);
	CHECK(slot_of(cache, 2)->rlist_to == list_of(cache, 1));
	CHECK_EQUAL(list_of(cache, 0)->remote_free.count, 2);
	cache->policy->drain(world.heap, 2);
	CHECK_EQUAL(slot_of(cache, 2)->rlist.count, 0);
	CHECK_EQUAL(list_of(cache, 1)->remote_free.count, 1);
	check(&world);
	end(&world);
}

/* With rlist=mixed it gathers all that it sends, whoever owns it; then each object goes to its owner. */
static void test_a_mixed_rlist_is_for_all_owners(void)
{
	struct world world = make_mixed(3, 1, 0, 4, 1);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *first[4], *second[4];

	take_all(cache, 0, first, 4);
	take_all(cache, 1, second, 4);
	sy_cache_free(cache, 2, first[0]);
	sy_cache_free(cache, 2, first[1]);
	sy_cache_free(cache, 2, second[0]);
	check(&world);
	CHECK_EQUAL(slot_of(cache, 2)->rlist.count, 3);
	CHECK_EQUAL(list_of(cache, 0)->remote_free.count, 0);
	sy_cache_free(cache, 2, first[2]);
	check(&world);
	CHECK_EQUAL(slot_of(cache, 2)->rlist.count, 0);
	CHECK_EQUAL(list_of(cache, 0)->remote_free.count, 3);
	CHECK_EQUAL(list_of(cache, 1)->remote_free.count, 1);
	CHECK(list_of(cache, 0)->remote_free.first == first[0] && list_of(cache, 0)->remote_free.last == first[2]);
	sy_cache_free(cache, 2, second[1]);
	cache->policy->drain(world.heap, 2);
	CHECK_EQUAL(list_of(cache, 1)->remote_free.count, 2);
	check(&world);
	end(&world);
}

static void test_shrink_brings_everything_home(void)
{
	struct world world = make(3, 1, 1000, 100);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[90];

	for (unsigned i = 0; i < 90; i++)
		objects[i] = take(cache, i % 3);
	for (unsigned i = 0; i < 90; i++)
		sy_cache_free(cache, i / 30, objects[i]);
	CHECK_EQUAL(counts_of(cache).slabs, 12);
	CHECK_EQUAL(counts_of(cache).objects_cached, 90);
	CHECK_EQUAL(sy_cache_shrink(cache), 12);
	CHECK_EQUAL(counts_of(cache).slabs, 0);
	check(&world);
	end(&world);
}

/* ---- Several nodes -------------------------------------------------------------------------------------------- */

static void test_objects_of_another_node_leave_at_once(void)
{
	struct world world = make(2, 2, 10, 4);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[8];

	take_all(cache, 0, objects, 8);
	free_all(cache, 1, objects, 3);
	CHECK_EQUAL(list_of(cache, 1)->count, 0);
	CHECK_EQUAL(slot_of(cache, 1)->rlist.count, 3);
	sy_cache_free(cache, 1, objects[3]);
	CHECK_EQUAL(slot_of(cache, 1)->rlist.count, 0);
	CHECK_EQUAL(list_of(cache, 0)->remote_free.count, 4);
	CHECK(take(cache, 0) == objects[0]);
	check(&world);
	end(&world);
}

/* Slot 0 asks for memory of node 1: of a slab that the node itself owns. Slot 1, which is on that node, frees into
 * its own freelist; what it flushes goes back to the node's list. */
static void test_a_node_owns_what_is_asked_for_from_elsewhere(void)
{
	struct world world = make(2, 2, 3, 4);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	struct sy__slqb_list *node = &sy__slqb_cache(cache)->nodes[1].list;
	void *objects[8];

	for (unsigned i = 0; i < 8; i++) {
		objects[i] = sy_cache_alloc(cache, 0, 0, 1);
		CHECK_EQUAL(page_of(cache, objects[i])->node, 1);
		CHECK(slab_of(cache, objects[i])->list == node);
	}
	CHECK_EQUAL(list_of(cache, 0)->slabs, 0);
	free_all(cache, 1, objects, 4);
	check(&world);
	CHECK_EQUAL(list_of(cache, 1)->count, 0);
	CHECK_EQUAL(node->remote_free.count, 4);
	CHECK(sy_cache_alloc(cache, 0, 0, 1) == objects[0]); /* four are more than the mark: all went home, this one last */
	CHECK_EQUAL(node->count, 0);
	CHECK_EQUAL(slab_of(cache, objects[0])->out, 5);
	check(&world);
	CHECK_EQUAL(page_of(cache, sy_cache_alloc(cache, 0, 0, 0))->node, 0);
	CHECK_EQUAL(page_of(cache, sy_cache_alloc(cache, 0, 0, 7))->node, 0); /* there is no node 7 */
	CHECK(sy_cache_alloc(cache, 0, SY_THISNODE, 7) == NULL);
	end(&world);
}

static void test_other_nodes_help_out(void)
{
	struct world world = make(2, 2, 10, 4);
	struct sy_cache *cache = cache_of(&world, 4096, 4096, 0);
	uint64_t here = 0;
	void *object;

	while ((object = sy_cache_alloc(cache, 0, SY_THISNODE, 0)) != NULL) {
		CHECK_EQUAL(page_of(cache, object)->node, 0);
		here++;
	}
	CHECK(here > 15000);
	check(&world);
	object = take(cache, 0);
	CHECK_EQUAL(page_of(cache, object)->node, 1);
	CHECK(slab_of(cache, object)->list == &sy__slqb_cache(cache)->nodes[1].list);
	check(&world);
	end(&world);
}

/* ---- Thresholds, layout and time ------------------------------------------------------------------------------ */

static void test_default_thresholds(void)
{
	static const uint32_t batches[][2] = { { 8, 512 * 4 }, { 64, 256 }, { 1024, 256 }, { 2048, 128 }, { 4096, 64 },
		                                   { 8192, 32 }, { 65536, 4 }, { 1048576, 1 } };
	struct world world = make(1, 1, 0, 0);

	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
		struct sy_cache *cache = cache_of(&world, batches[i][0], 0, 0);

		CHECK_EQUAL(sy__slqb_cache(cache)->freebatch, batches[i][1]);
		CHECK_EQUAL(sy__slqb_cache(cache)->flushbatch, batches[i][1]);
		CHECK_EQUAL(sy__slqb_cache(cache)->remote_free_check, batches[i][1]);
		CHECK_EQUAL(list_of(cache, 0)->hiwater, 4 * batches[i][1]);
	}
	end(&world);
}

/* 2176: one in a page wastes 1920 of 4096 bytes, more than a quarter; three in two pages waste 1664 of 8192. 3000:
 * neither one in a page nor two in two are good enough, so the page it is. */
static void test_geometry(void)
{
	static const uint32_t sizes[][3] = { { 512, 8, 0 }, { 1152, 3, 0 }, { 2176, 3, 1 }, { 3000, 1, 0 }, { 5000, 1, 1 },
		                                 { 8192, 1, 1 }, { 9000, 1, 2 } };
	const struct sy_policy *slqb = sy_policy_find("slqb");
	struct sy_heap_config config;
	struct sy_geometry is;

	sy_heap_defaults(slqb, &config);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		CHECK(slqb->geometry(config.tunables, 1, sizes[i][0], &is));
		CHECK_EQUAL(is.objects, sizes[i][1]);
		CHECK_EQUAL(is.order, sizes[i][2]);
	}
	CHECK(slqb->geometry(config.tunables, 1, (size_t)4 << 20, &is));
	CHECK(!slqb->geometry(config.tunables, 1, ((size_t)4 << 20) + 8, &is));
	CHECK(!slqb->geometry(config.tunables, 1, 0, &is));
}

/* Visits are due after 1 second, and every 3 seconds from then on. Each flushes a batch of 4, and brings home what other
 * slots sent. */
static void test_idle_queues_are_trimmed(void)
{
	struct world world = make(1, 1, 100, 4);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[10];

	take_all(cache, 0, objects, 10);
	free_all(cache, 0, objects, 10);
	for (unsigned i = 0; i < 4; i++) {
		static const unsigned left[4] = { 6, 2, 0, 0 };

		now = SY__SECOND * (1 + 3 * i) - 1;
		sy_heap_tick(world.heap);
		CHECK_EQUAL(list_of(cache, 0)->count, i ? left[i - 1] : 10);
		now++;
		sy_heap_tick(world.heap);
		CHECK_EQUAL(list_of(cache, 0)->count, left[i]);
		check(&world);
	}
	CHECK_EQUAL(counts_of(cache).slabs, 0);
	end(&world);
}

/* ---- Everything at once --------------------------------------------------------------------------------------- */

/* Phases of growth and of decay, with seconds passing. */
static void test_random_programs(unsigned slots, unsigned nodes, uint64_t seed, int64_t hiwater, int64_t batch, int64_t mixed)
{
	struct world world = make_mixed(slots, nodes, hiwater, batch, mixed);
	struct sy_cache *caches[RANDOM_CACHES];

	random_program(&world, caches, seed);
	for (unsigned i = 0; i < 2; i++) { /* what trimming ended may have had to wait for a grace period */
		now += 2000 * SY__SECOND;
		sy_heap_tick(world.heap);
		check(&world);
	}
	CHECK_EQUAL(world.heap->counters.slab_pages, 0); /* trimming alone gives everything back */
	CHECK_EQUAL(world.heap->counters.large_pages, 0);
	for (unsigned i = 0; i < RANDOM_CACHES; i++)
		CHECK_EQUAL(counts_of(caches[i]).objects_in_use, 0);
	end(&world);
}

int main(void)
{
	test_objects_come_from_a_partial_slab_one_by_one();
	test_the_freelist_is_a_stack();
	test_zeroed_when_asked();
	test_beyond_hiwater_a_batch_goes_back_to_its_slabs();
	test_empty_slabs_go_back_at_once();
	test_colours_go_round();
	test_no_memory_at_all();
	test_objects_stay_constructed();
	test_rcu_typesafe_slabs_wait_for_the_grace_period();
	test_objects_freed_elsewhere_come_back_in_batches();
	test_few_objects_from_elsewhere_wait();
	test_an_rlist_is_for_one_owner();
	test_a_mixed_rlist_is_for_all_owners();
	test_shrink_brings_everything_home();
	test_objects_of_another_node_leave_at_once();
	test_a_node_owns_what_is_asked_for_from_elsewhere();
	test_other_nodes_help_out();
	test_default_thresholds();
	test_geometry();
	test_idle_queues_are_trimmed();
	test_random_programs(1, 1, 1, 0, 0, 0);
	test_random_programs(4, 1, 2, 0, 0, 0);
	test_random_programs(8, 3, 3, 20, 5, 0);
	test_random_programs(3, 2, 4, 0, 1, 0);
	test_random_programs(4, 2, 5, 100, 30, 0);
	test_random_programs(8, 3, 6, 20, 5, 1);
	return check_result();
}
