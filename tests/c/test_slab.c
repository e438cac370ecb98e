/*
 * SLAB by worked examples: where objects and slabs are after each step, by the rules in the opening comments of
 * slab.c and slab/reap.c. Every step ends with the checks of the heap and of the page allocator.
 *
 * Most examples use a cache of 512 bytes: 8 objects to a slab of one page and no byte left, arrays of 54, batches of
 * 27. A node with one CPU then keeps (1 + 1) * 27 + 8 = 62 free objects.
 */
#include "constructed_support.h"
#include "random_support.h"

#include "core/pages/pages.h"
#include "core/policies/slab/slab.h"

#define MANY 1024

static struct world make(unsigned slots, unsigned nodes, const char *tunable, int64_t value)
{
	now = 0;
	return make_tuned("slab", slots, nodes, tunable, value);
}

static struct sy__slab_node *node_of(struct sy_cache *cache, unsigned node)
{
	return &sy__slab_cache(cache)->nodes[node];
}

static struct sy__slab_array *array_of(struct sy_cache *cache, unsigned slot)
{
	return sy__slab_own(sy__slab_cache(cache), slot);
}

static struct sy__slab_slab *slab_of(struct sy_cache *cache, void *object)
{
	return sy__slab_slab(page_of(cache, object));
}

/* The number of an object in its slab. */
static unsigned number_of(struct sy_cache *cache, void *object)
{
	char *first = sy__slab_first_object(sy__slab_cache(cache), slab_of(cache, object));

	return (unsigned)((size_t)((char *)object - first) / cache->size);
}

static void let_pass(struct world *world, uint64_t time)
{
	now = time;
	sy_heap_tick(world->heap);
	check(world);
}

/* ---- Arrays --------------------------------------------------------------------------------------------------- */

/* A batch is taken from a new slab as far as that goes, and the array is a stack: its last object comes first. */
static void test_a_batch_comes_from_a_new_slab_and_goes_out_backwards(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[9];

	take_all(cache, 0, objects, 9);
	check(&world);
	for (unsigned i = 0; i < 8; i++)
		CHECK_EQUAL(number_of(cache, objects[i]), 7 - i);
	CHECK_EQUAL(number_of(cache, objects[8]), 7);
	CHECK_EQUAL(world.heap->counters.slow_allocs, 2);
	CHECK_EQUAL(array_of(cache, 0)->avail, 7);
	CHECK_EQUAL(counts_of(cache).full_slabs, 2); /* what is in the array has left the slab */
	CHECK_EQUAL(counts_of(cache).objects_cached, 7);
	CHECK_EQUAL(counts_of(cache).objects_in_use, 9);
	end(&world);
}

static void test_last_freed_is_first_allocated(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[8];

	take_all(cache, 0, objects, 8);
	sy_cache_free(cache, 0, objects[2]);
	sy_cache_free(cache, 0, objects[5]);
	CHECK(take(cache, 0) == objects[5]);
	CHECK(take(cache, 0) == objects[2]);
	CHECK_EQUAL(world.heap->counters.slow_frees, 0);
	end(&world);
}

static void test_zeroed_when_asked(void)
{
	struct world world = make(1, 1, NULL, 0);

	check_zeroed(cache_of(&world, 512, 0, 0));
	end(&world);
}

/* The first batch of an array is 16, as nobody has used it yet; the next is batchcount. 64 objects of 64 bytes make a slab. */
static void test_an_unused_array_gets_a_small_batch(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 64, 0, 0);
	void *objects[17];

	take_all(cache, 0, objects, 16);
	CHECK_EQUAL(array_of(cache, 0)->avail, 0);
	CHECK_EQUAL(slab_of(cache, objects[0])->active, 16);
	CHECK_EQUAL(number_of(cache, objects[0]), 15);
	objects[16] = take(cache, 0);
	CHECK_EQUAL(array_of(cache, 0)->avail, 47); /* 60 wanted, 48 left in the slab, none taken from pages for the rest */
	CHECK_EQUAL(number_of(cache, objects[16]), 63);
	check(&world);
	end(&world);
}

/* 55 objects freed in the order in which they came: the 55th finds the array full, and the 27 oldest go to their slabs.
 * These are 3 whole slabs, free now, and 3 objects of the fourth. */
static void test_a_full_array_gives_its_oldest_batch_to_the_slabs(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[56];

	take_all(cache, 0, objects, 56);
	CHECK_EQUAL(array_of(cache, 0)->avail, 0);
	free_all(cache, 0, objects, 54);
	CHECK_EQUAL(world.heap->counters.slow_frees, 0);
	CHECK_EQUAL(counts_of(cache).full_slabs, 7);
	sy_cache_free(cache, 0, objects[54]);
	check(&world);
	CHECK_EQUAL(world.heap->counters.slow_frees, 1);
	CHECK_EQUAL(array_of(cache, 0)->avail, 28);
	CHECK_EQUAL(counts_of(cache).empty_slabs, 3);
	CHECK_EQUAL(counts_of(cache).partial_slabs, 1);
	CHECK_EQUAL(slab_of(cache, objects[24])->active, 5);
	CHECK_EQUAL(node_of(cache, 0)->free_objects, 27);
	CHECK(take(cache, 0) == objects[54]);
	end(&world);
}

/* Partial slabs come before free ones, a slab that got an object back is the last of its list, and the object that came
 * back last is the first to go. */
static void test_partial_slabs_are_used_before_free_ones(void)
{
	struct world world = make(1, 1, "limit", 1);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[24];

	take_all(cache, 0, objects, 24); /* each goes through an array of one */
	free_all(cache, 0, objects, 8);  /* the first slab, but for the one object in the array */
	sy_cache_free(cache, 0, objects[17]);
	sy_cache_free(cache, 0, objects[9]);
	sy_cache_free(cache, 0, objects[12]); /* in the array; the others went before it */
	check(&world);
	CHECK_EQUAL(counts_of(cache).empty_slabs, 1);
	CHECK_EQUAL(counts_of(cache).partial_slabs, 2);
	CHECK(take(cache, 0) == objects[12]);
	CHECK(take(cache, 0) == objects[17]);
	CHECK(take(cache, 0) == objects[9]);
	CHECK_EQUAL(counts_of(cache).empty_slabs, 1);
	CHECK(take(cache, 0) == objects[7]);
	CHECK_EQUAL(counts_of(cache).empty_slabs, 0);
	check(&world);
	end(&world);
}

/* 200 objects freed in order: six times 27 go to the slabs. Free objects then are 27, 54, 81: over 62, three slabs
 * end, 57; 84: three, 60; 87: four, 55; 82: three, 58. Of 25 slabs 12 are left. */
static void test_free_objects_beyond_the_limit_end_slabs(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	static const unsigned free_objects[6] = { 27, 54, 57, 60, 55, 58 }, slabs[6] = { 25, 25, 22, 19, 15, 12 };
	void *objects[200];

	CHECK_EQUAL(node_of(cache, 0)->free_limit, 62);
	take_all(cache, 0, objects, 200);
	CHECK_EQUAL(counts_of(cache).slabs, 25);
	for (unsigned i = 0; i < 200; i++) {
		sy_cache_free(cache, 0, objects[i]);
		if (i < 54 || (i - 54) % 27)
			continue;
		CHECK_EQUAL(node_of(cache, 0)->free_objects, free_objects[(i - 54) / 27]);
		CHECK_EQUAL(counts_of(cache).slabs, slabs[(i - 54) / 27]);
		check(&world);
	}
	CHECK_EQUAL(counts_of(cache).slabs, 12);
	CHECK_EQUAL(array_of(cache, 0)->avail, 38);
	CHECK_EQUAL(sy_cache_shrink(cache), 12);
	CHECK(sy_cache_destroy(cache, NULL));
	end(&world);
}

/* ---- Colours -------------------------------------------------------------------------------------------------- */

/* 3 objects of 1216 leave 448 bytes: 7 colours of 64 bytes. The first slab has the second of them. */
static void test_colours_go_round(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1216, 0, 0);
	static const unsigned starts[10] = { 64, 128, 192, 256, 320, 384, 0, 64, 128, 192 };

	for (unsigned i = 0; i < 10; i++) {
		void *objects[3];

		take_all(cache, 0, objects, 3);
		CHECK_EQUAL(slab_of(cache, objects[0])->start, starts[i]);
		CHECK_EQUAL(((size_t)objects[2] & (SY_PAGE_SIZE - 1)) % 1216, starts[i]);
	}
	end(&world);
}

static void test_colours_keep_the_alignment(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 768, 256, SY_CACHE_NO_MERGE);

	CHECK_EQUAL(sy__slab_cache(cache)->colour_step, 256);
	CHECK_EQUAL(sy__slab_cache(cache)->colours, 1); /* 4096 - 5 * 768 = 256 */
	for (unsigned i = 0; i < 20; i++)
		CHECK_EQUAL((size_t)take(cache, 0) % 256, 0);
	end(&world);
}

/* ---- Freelists ------------------------------------------------------------------------------------------------ */

static void test_objects_stay_constructed(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = constructed_cache(&world, 504, 0);
	void *objects[100];

	CHECK_EQUAL(sy__slab_cache(cache)->place, SY__SLAB_ON_SLAB);
	take_all(cache, 0, objects, 100);
	CHECK_EQUAL(constructed, 104);
	for (unsigned i = 0; i < 100; i++)
		check_constructed(objects[i], 504);
	free_all(cache, 0, objects, 100);
	check(&world);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(destructed, 104);
	end(&world);
}

/* 8 objects of 512 fill the page; their freelist is an object of kmalloc-32. It goes when the slab goes. */
static void test_freelists_off_slab(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = constructed_cache(&world, 512, 0), *small;
	void *objects[80];

	CHECK_EQUAL(sy__slab_cache(cache)->place, SY__SLAB_OFF_SLAB);
	take_all(cache, 0, objects, 80);
	check(&world);
	small = &slab_of(cache, slab_of(cache, objects[0])->freelist)->cache->cache;
	CHECK_TEXT(small->name, "kmalloc-32");
	CHECK_EQUAL(counts_of(small).objects_in_use, 10);
	free_all(cache, 0, objects, 80);
	check(&world);
	CHECK_EQUAL(counts_of(small).objects_in_use, counts_of(cache).slabs);
	sy_cache_shrink(cache);
	CHECK_EQUAL(counts_of(small).objects_in_use, 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static void test_no_memory_for_a_freelist(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = constructed_cache(&world, 512, 0);

	sy_pages_fail_after(world.pages, 2); /* the slab gets its page, kmalloc-32 none */
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == NULL);
	check(&world);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) != NULL);
	CHECK_EQUAL(world.heap->counters.slab_pages, 2);
	end(&world);
}

static void test_no_memory_at_all(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);

	sy_pages_fail_after(world.pages, 1);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == NULL);
	check(&world);
	take(cache, 0);
	check(&world);
	end(&world);
}

/* An array of 1024 takes pages of its own. Without them objects leave and enter their slab one by one. */
static void test_no_memory_for_an_array(void)
{
	struct world world = make(1, 1, "limit", 1024);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *first, *second;

	sy_pages_fail_after(world.pages, 1);
	first = take(cache, 0);
	check(&world);
	CHECK_EQUAL(array_of(cache, 0)->limit, 0);
	CHECK_EQUAL(number_of(cache, first), 0);
	CHECK_EQUAL(slab_of(cache, first)->active, 1);
	sy_pages_fail_after(world.pages, 1);
	sy_cache_free(cache, 0, first);
	check(&world);
	CHECK_EQUAL(slab_of(cache, first)->active, 0);
	CHECK_EQUAL(counts_of(cache).objects_cached, 0);
	second = take(cache, 0); /* now there is memory */
	CHECK_EQUAL(array_of(cache, 0)->limit, 1024);
	CHECK_EQUAL(array_of(cache, 0)->avail, 7);
	CHECK_EQUAL(number_of(cache, second), 7);
	end(&world);
}

static void test_rcu_typesafe_slabs_wait_for_the_grace_period(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, SY_CACHE_TYPESAFE_BY_RCU);
	void *objects[16];

	take_all(cache, 0, objects, 16);
	memset(objects[3], 0x77, 512);
	free_all(cache, 0, objects, 16);
	CHECK_EQUAL(sy_cache_shrink(cache), 1); /* the page of the freelists */
	check(&world);
	CHECK_EQUAL(counts_of(cache).slabs, 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 2);
	CHECK_EQUAL(((unsigned char *)objects[3])[511], 0x77);
	let_pass(&world, 999);
	CHECK_EQUAL(world.heap->counters.slab_pages, 2);
	let_pass(&world, 1000);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

/* ---- Several CPUs --------------------------------------------------------------------------------------------- */

/* With two CPUs a node shares 8 batches of 27 = 216 objects. What one flushes is what another finds first. */
static void test_cpus_pass_objects_by_the_shared_array(void)
{
	struct world world = make(2, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[80];

	take_all(cache, 0, objects, 80);
	free_all(cache, 0, objects, 55);
	check(&world);
	CHECK_EQUAL(node_of(cache, 0)->shared->avail, 27);
	CHECK_EQUAL(node_of(cache, 0)->shared->limit, 216);
	CHECK_EQUAL(counts_of(cache).empty_slabs, 0);
	/* Slot 1 never had anything: it gets 16, those that came last. */
	CHECK(take(cache, 1) == objects[26]);
	CHECK_EQUAL(array_of(cache, 1)->avail, 15);
	CHECK_EQUAL(node_of(cache, 0)->shared->avail, 11);
	for (unsigned i = 25; i >= 11; i--)
		CHECK(take(cache, 1) == objects[i]);
	CHECK(take(cache, 1) == objects[10]);
	CHECK_EQUAL(node_of(cache, 0)->shared->avail, 0);
	CHECK_EQUAL(array_of(cache, 1)->avail, 10);
	check(&world);
	end(&world);
}

/* A shared array that is nearly full takes what it can, and only then do objects go to slabs. */
static void test_a_full_shared_array_sends_objects_to_slabs(void)
{
	struct world world = make(2, 1, "shared", 1);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[200];

	take_all(cache, 0, objects, 200);
	free_all(cache, 0, objects, 55);
	CHECK_EQUAL(node_of(cache, 0)->shared->avail, 27);
	CHECK_EQUAL(node_of(cache, 0)->free_objects, 0);
	free_all(cache, 0, objects + 55, 27);
	CHECK_EQUAL(node_of(cache, 0)->free_objects, 27);
	check(&world);
	take_all(cache, 1, objects, 5); /* 16 out of the shared array */
	free_all(cache, 0, objects + 82, 27);
	CHECK_EQUAL(node_of(cache, 0)->shared->avail, 27); /* 16 go in, the array has room for 11 again */
	CHECK_EQUAL(array_of(cache, 0)->avail, 55 - 27 + 27 - 16);
	check(&world);
	end(&world);
}

static void test_drain_empties_one_slot(void)
{
	struct world world = make(2, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[40];

	take_all(cache, 0, objects, 20);
	take_all(cache, 1, objects + 20, 20);
	free_all(cache, 0, objects, 20);
	free_all(cache, 1, objects + 20, 20);
	cache->policy->drain(world.heap, 0);
	check(&world);
	CHECK_EQUAL(array_of(cache, 0)->avail, 0);
	CHECK_EQUAL(array_of(cache, 1)->avail, 24);
	end(&world);
}

/* ---- Several nodes -------------------------------------------------------------------------------------------- */

/* Two slots, each on a node of its own. Twelve objects wait for the way home, the thirteenth sends them there. */
static void test_objects_of_another_node_go_home_by_twelves(void)
{
	struct world world = make(2, 2, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	struct sy__slab_array *alien;
	void *objects[16];

	take_all(cache, 0, objects, 16);
	alien = node_of(cache, 1)->aliens[0].array;
	free_all(cache, 1, objects, 12);
	check(&world);
	CHECK_EQUAL(alien->avail, 12);
	CHECK_EQUAL(array_of(cache, 1)->avail, 0);
	CHECK_EQUAL(counts_of(cache).objects_in_use, 4);
	CHECK_EQUAL(counts_of(cache).objects_cached, 12);
	sy_cache_free(cache, 1, objects[12]);
	check(&world);
	CHECK_EQUAL(alien->avail, 1);
	CHECK_EQUAL(node_of(cache, 0)->shared->avail, 12);
	CHECK(take(cache, 0) == objects[11]);
	CHECK_EQUAL(page_of(cache, take(cache, 1))->node, 1);
	check(&world);
	end(&world);
}

static void test_without_alien_arrays_objects_go_to_their_slabs(void)
{
	struct world world = make(2, 2, "alien", 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[16];

	take_all(cache, 0, objects, 16);
	CHECK(node_of(cache, 1)->aliens == NULL);
	free_all(cache, 1, objects, 9);
	check(&world);
	CHECK_EQUAL(node_of(cache, 0)->free_objects, 9);
	CHECK_EQUAL(counts_of(cache).objects_cached, 0);
	CHECK_EQUAL(counts_of(cache).empty_slabs, 1);
	end(&world);
}

static void test_memory_of_the_node_that_is_asked_for(void)
{
	struct world world = make(2, 2, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *object = sy_cache_alloc(cache, 0, 0, 1);

	CHECK_EQUAL(page_of(cache, object)->node, 1);
	CHECK_EQUAL(array_of(cache, 0)->avail, 0); /* one object, no batch */
	CHECK_EQUAL(slab_of(cache, object)->active, 1);
	object = sy_cache_alloc(cache, 0, 0, 0); /* the slot's own: by its array */
	CHECK_EQUAL(page_of(cache, object)->node, 0);
	CHECK_EQUAL(array_of(cache, 0)->avail, 7);
	CHECK(sy_cache_alloc(cache, 0, 0, 7) != NULL); /* there is no node 7 */
	CHECK(sy_cache_alloc(cache, 0, SY_THISNODE, 7) == NULL);
	check(&world);
	end(&world);
}

static void test_other_nodes_help_out(void)
{
	struct world world = make(2, 2, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 4096, 4096, 0);
	uint64_t here = 0;
	void *object;

	do {
		object = take(cache, 0);
		here++;
	} while (page_of(cache, object)->node == 0);
	CHECK(here > 15000);
	check(&world);
	CHECK(sy_cache_alloc(cache, 0, SY_THISNODE, 0) == NULL);
	CHECK_EQUAL(page_of(cache, take(cache, 0))->node, 1);
	check(&world);
	end(&world);
}

/* ---- The reaper ----------------------------------------------------------------------------------------------- */

/* 24 objects in an array of 54. The visit after 1 second finds that it was used; then at most (54 + 4) / 5 = 11 go
 * every 2 seconds, and half of what is left where that is less: 13, 2, 1, 0. */
static void test_the_reaper_empties_unused_arrays(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	static const unsigned left[5] = { 24, 13, 2, 1, 0 };
	void *objects[24];

	take_all(cache, 0, objects, 24);
	free_all(cache, 0, objects, 24);
	let_pass(&world, SECOND - 1);
	CHECK_EQUAL(array_of(cache, 0)->touched, 1);
	for (unsigned i = 0; i < 5; i++) {
		let_pass(&world, (1 + 2 * i) * SECOND);
		CHECK_EQUAL(array_of(cache, 0)->avail, left[i]);
		let_pass(&world, (2 + 2 * i) * SECOND);
		CHECK_EQUAL(array_of(cache, 0)->avail, left[i]);
	}
	end(&world);
}

static void test_visits_are_not_lost_when_ticks_come_late(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[24];

	take_all(cache, 0, objects, 24);
	free_all(cache, 0, objects, 24);
	let_pass(&world, 5 * SECOND);
	CHECK_EQUAL(array_of(cache, 0)->avail, 2);
	let_pass(&world, 100000 * SECOND);
	CHECK_EQUAL(array_of(cache, 0)->avail, 0);
	CHECK_EQUAL(counts_of(cache).slabs, 0);
	CHECK_EQUAL(sy__time(&world.heap->tick_due), 100001 * SECOND);
	end(&world);
}

/* Seven slabs are free, 56 objects. A visit to the node ends (62 + 39) / 40 = 2 of them, unless somebody has looked for free
 * slabs since the visit before. */
static void test_the_reaper_ends_free_slabs(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[56];
	uint64_t due;

	take_all(cache, 0, objects, 56);
	free_all(cache, 0, objects, 56);
	cache->policy->drain(world.heap, 0);
	CHECK_EQUAL(counts_of(cache).empty_slabs, 7);
	due = node_of(cache, 0)->next_reap;
	CHECK(due >= 4 * SECOND && due < 8 * SECOND);
	due += SECOND - due % SECOND; /* visits of the slot are at odd seconds */
	due += due / SECOND % 2 ? 0 : SECOND;
	node_of(cache, 0)->free_touched = 1;
	let_pass(&world, due);
	CHECK_EQUAL(counts_of(cache).slabs, 7);
	let_pass(&world, due + 2 * SECOND);
	CHECK_EQUAL(counts_of(cache).slabs, 7);
	let_pass(&world, due + 4 * SECOND);
	CHECK_EQUAL(counts_of(cache).slabs, 5);
	let_pass(&world, due + 8 * SECOND);
	CHECK_EQUAL(counts_of(cache).slabs, 3);
	take(cache, 0); /* the array is empty, and there is no partial slab */
	let_pass(&world, due + 12 * SECOND);
	CHECK_EQUAL(counts_of(cache).slabs, 3);
	end(&world);
}

static void test_the_reaper_visits_every_slot_and_sends_objects_home(void)
{
	struct world world = make(2, 2, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 512, 0, 0);
	void *objects[16];

	take_all(cache, 0, objects, 16);
	free_all(cache, 1, objects, 8);
	free_all(cache, 0, objects + 8, 8);
	CHECK_EQUAL(node_of(cache, 1)->aliens[0].array->avail, 8);
	let_pass(&world, SECOND); /* slot 0 */
	CHECK_EQUAL(array_of(cache, 0)->touched, 0);
	CHECK_EQUAL(node_of(cache, 1)->aliens[0].array->avail, 8);
	let_pass(&world, 2 * SECOND); /* slot 1: next node after its own */
	CHECK_EQUAL(node_of(cache, 1)->aliens[0].array->avail, 0);
	CHECK_EQUAL(node_of(cache, 0)->shared->avail, 8);
	let_pass(&world, 200 * SECOND);
	CHECK_EQUAL(counts_of(cache).slabs, 0);
	end(&world);
}

/* ---- Merging -------------------------------------------------------------------------------------------------- */

static void test_alike_caches_are_one(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *first = cache_of(&world, 61, 0, 0);

	CHECK(cache_of(&world, 64, sizeof(void *), 0) == first);
	CHECK_EQUAL(first->users, 2);
	CHECK(cache_of(&world, 64, 64, 0) != first); /* a colour might start its slabs at less */
	CHECK(cache_of(&world, 64, 0, SY_CACHE_RECLAIMABLE) != first);
	CHECK(sy_cache_destroy(first, NULL));
	take(first, 0);
	CHECK(!sy_cache_destroy(first, NULL));
	end(&world);
}

static void test_merging_can_be_off(void)
{
	struct world world = make(1, 1, "merge", 0);

	CHECK(cache_of(&world, 64, 0, 0) != cache_of(&world, 64, 0, 0));
	end(&world);
}

/* ---- Everything at once --------------------------------------------------------------------------------------- */

/* Phases of growth and of decay, with seconds passing, so that the reaper always has something to do. */
static void test_random_programs(unsigned slots, unsigned nodes, uint64_t seed, const char *tunable, int64_t value)
{
	struct world world = make(slots, nodes, tunable, value);
	struct sy_cache *caches[RANDOM_CACHES];

	random_program(&world, caches, seed);
	let_pass(&world, now + 1000 * SECOND);
	let_pass(&world, now + SECOND); /* what the reaper ended may have had to wait for a grace period */
	CHECK_EQUAL(world.heap->counters.slab_pages, 0); /* the reaper alone gives everything back */
	CHECK_EQUAL(world.heap->counters.large_pages, 0);
	for (unsigned i = 0; i < RANDOM_CACHES; i++)
		CHECK_EQUAL(counts_of(caches[i]).objects_in_use, 0);
	end(&world);
}

int main(void)
{
	test_a_batch_comes_from_a_new_slab_and_goes_out_backwards();
	test_last_freed_is_first_allocated();
	test_zeroed_when_asked();
	test_an_unused_array_gets_a_small_batch();
	test_a_full_array_gives_its_oldest_batch_to_the_slabs();
	test_partial_slabs_are_used_before_free_ones();
	test_free_objects_beyond_the_limit_end_slabs();
	test_colours_go_round();
	test_colours_keep_the_alignment();
	test_objects_stay_constructed();
	test_freelists_off_slab();
	test_no_memory_for_a_freelist();
	test_no_memory_at_all();
	test_no_memory_for_an_array();
	test_rcu_typesafe_slabs_wait_for_the_grace_period();
	test_cpus_pass_objects_by_the_shared_array();
	test_a_full_shared_array_sends_objects_to_slabs();
	test_drain_empties_one_slot();
	test_objects_of_another_node_go_home_by_twelves();
	test_without_alien_arrays_objects_go_to_their_slabs();
	test_memory_of_the_node_that_is_asked_for();
	test_other_nodes_help_out();
	test_the_reaper_empties_unused_arrays();
	test_visits_are_not_lost_when_ticks_come_late();
	test_the_reaper_ends_free_slabs();
	test_the_reaper_visits_every_slot_and_sends_objects_home();
	test_alike_caches_are_one();
	test_merging_can_be_off();
	test_random_programs(1, 1, 1, NULL, 0);
	test_random_programs(4, 1, 2, NULL, 0);
	test_random_programs(8, 3, 3, NULL, 0);
	test_random_programs(3, 2, 4, "alien", 0);
	test_random_programs(4, 2, 5, "limit", 1);
	return check_result();
}
