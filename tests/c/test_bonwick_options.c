/*
 * Bonwick's policy beyond the worked examples: what his section 7 proposes (suppliers of pages, per-CPU lists), and what the
 * paper lacks (memory nodes, grace periods, page requests that fail). Then damage, which the invariant checker must see.
 */
#include "bonwick_support.h"

/* ---- 7.1 Other types of memory -------------------------------------------------------------------------------- */

/* Memory that is not the page allocator's: an array, handed out in pages. */
struct arena {
	_Alignas(4096) char memory[64 * 4096];
	size_t used, given; /* bytes */
	unsigned flags; /* of the last request */
	size_t skew; /* added to addresses, to make a mistake */
	char *last_given;
};

static struct arena arena;

static void *arena_get(void *context, size_t bytes, unsigned flags)
{
	struct arena *from = context;
	char *memory = from->memory + from->used;

	from->flags = flags;
	if (from->used + bytes > sizeof(from->memory))
		return NULL;
	from->used += bytes;
	return memory + from->skew;
}

static void arena_free(void *context, void *memory, size_t bytes)
{
	struct arena *to = context;

	CHECK((char *)memory >= to->memory && (char *)memory < to->memory + to->used);
	to->given += bytes;
	to->last_given = memory;
}

static const struct sy_page_supplier supplier = { .get_pages = arena_get, .free_pages = arena_free, .context = &arena };

static struct sy_cache *supplied_cache(struct world *world, size_t size, unsigned flags)
{
	struct sy_cache_config config = { .name = "supplied", .size = size, .flags = flags, .supplier = &supplier };

	memset(&arena, 0, sizeof(arena));
	return sy_cache_create(world->heap, &config);
}

static bool in_arena(const void *object)
{
	return (const char *)object >= arena.memory && (const char *)object < arena.memory + arena.used;
}

/* Buffers and slab data of small objects come from the supplier, and nothing from the page allocator. */
static void test_small_objects_in_supplied_memory(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = supplied_cache(&world, 400, 0);
	void *objects[25];

	get_many(cache, objects, 25);
	for (unsigned i = 0; i < 25; i++)
		CHECK(in_arena(objects[i]));
	CHECK_EQUAL(arena.used, 3 * 4096);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	check(&world);
	free_all(cache, 0, objects, 20);
	check(&world);
	CHECK_EQUAL(sy_cache_shrink(cache), 0); /* pages of the page allocator */
	CHECK_EQUAL(arena.given, 2 * 4096);
	CHECK(arena.last_given == arena.memory + 4096); /* the slab that was complete for longest went first */
	free_all(cache, 0, objects + 20, 5);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(arena.given, arena.used);
	end(&world);
}

static void test_large_objects_in_supplied_memory(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = supplied_cache(&world, 3000, 0);
	void *objects[12];

	get_many(cache, objects, 12);
	CHECK_EQUAL(arena.used, 3 * 16384); /* 5 to a slab of 4 pages */
	CHECK_EQUAL(world.heap->counters.slab_pages, 2); /* slab data and bufctls are the heap's */
	check(&world);
	free_all(cache, 0, objects, 12);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(arena.given, arena.used);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static void test_a_supplier_that_has_no_more(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = supplied_cache(&world, 4096, 0);
	void *objects[65];

	get_many(cache, objects, 64);
	CHECK(sy_cache_alloc(cache, 0, SY_KM_NOSLEEP, SY_ANY_NODE) == NULL);
	CHECK_EQUAL(arena.flags, SY_NO_RECLAIM);
	check(&world);
	sy_cache_free(cache, 0, objects[7]);
	CHECK(get(cache) == objects[7]);
	end(&world); /* with all 64 in use; they go back all the same */
	CHECK_EQUAL(arena.given, arena.used);
}

static void test_memory_that_is_not_aligned_is_none(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = supplied_cache(&world, 400, 0);

	arena.skew = 8;
	CHECK(get(cache) == NULL);
	CHECK_EQUAL(arena.given, 4096);
	check(&world);
	arena.skew = 0;
	CHECK(get(cache) != NULL);
	end(&world);
	CHECK_EQUAL(arena.given, arena.used);
}

static void test_supplied_memory_waits_for_the_grace_period(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = supplied_cache(&world, 2048, SY_CACHE_TYPESAFE_BY_RCU);
	void *object = get(cache);

	sy_cache_free(cache, 0, object);
	sy_cache_shrink(cache);
	CHECK_EQUAL(arena.given, 0);
	check(&world);
	now += 1000;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(arena.given, 4096);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

/* A supplier's memory has no node that a request could insist on. */
static void test_supplied_memory_has_no_node(void)
{
	struct world world = make(2, 2, NULL, 0);
	struct sy_cache *cache = supplied_cache(&world, 400, 0);

	CHECK(in_arena(sy_cache_alloc(cache, 0, SY_THISNODE, 1)));
	CHECK(in_arena(sy_cache_alloc(cache, 0, SY_THISNODE, 0)));
	CHECK_EQUAL(counts_of(cache).slabs, 1);
	end(&world);
}

static void test_other_policies_refuse_a_supplier(void)
{
	struct sy_cache_config config = { .name = "supplied", .size = 400, .supplier = &supplier };
	struct world world = make(1, 1, NULL, 0);
	struct sy_heap_config heap_config;

	for (unsigned i = 0; sy_policies[i]; i++) {
		struct sy_heap *heap;

		sy_heap_defaults(sy_policies[i], &heap_config);
		heap = sy_heap_create(world.pages, &heap_config);
		CHECK_EQUAL(sy_cache_create(heap, &config) != NULL, sy_policies[i]->takes_suppliers);
		sy_heap_destroy(heap);
	}
	end(&world);
}

/* ---- 7.2 Per-processor allocation ----------------------------------------------------------------------------- */

static const struct sy__bonwick_lists *slot_of(struct sy_cache *cache, unsigned slot)
{
	return sy__bonwick_slot(sy__bonwick_cache(cache), slot);
}

static void check_slot(struct sy_cache *cache, unsigned main, unsigned aux)
{
	CHECK_EQUAL(slot_of(cache, 0)->main_count, main);
	CHECK_EQUAL(slot_of(cache, 0)->aux_count, aux);
	CHECK_FINE(sy_heap_check(cache->heap));
}

/* Lists of three: at least N calls lie between two calls that leave the slot. */
static void test_main_and_aux(void)
{
	struct world world = make(1, 1, "percpu", 3);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0);
	void *objects[10];

	get_many(cache, objects, 1); /* three came over, one of them left */
	check_slot(cache, 2, 0);
	CHECK_EQUAL(world.heap->counters.slow_allocs, 1);
	get_many(cache, objects + 1, 2);
	check_slot(cache, 0, 0);
	CHECK_EQUAL(world.heap->counters.slow_allocs, 1);
	get_many(cache, objects + 3, 7);
	CHECK_EQUAL(world.heap->counters.slow_allocs, 4);
	CHECK_EQUAL(counts_of(cache).slabs, 1);
	free_all(cache, 0, objects, 3); /* the tenth buffer of the slab came alone */
	check_slot(cache, 3, 0);
	free_all(cache, 0, objects + 3, 1);
	check_slot(cache, 1, 3);
	free_all(cache, 0, objects + 4, 2);
	check_slot(cache, 3, 3);
	CHECK_EQUAL(world.heap->counters.slow_frees, 0);
	CHECK_TEXT(list_of(cache), "E");
	free_all(cache, 0, objects + 6, 1); /* aux goes back, main becomes aux */
	check_slot(cache, 1, 3);
	CHECK_EQUAL(world.heap->counters.slow_frees, 1);
	CHECK_TEXT(list_of(cache), ">P");
	CHECK(get(cache) == objects[6]);
	check_slot(cache, 0, 3);
	CHECK(get(cache) == objects[5]); /* aux became main */
	check_slot(cache, 2, 0);
	CHECK_EQUAL(counts_of(cache).objects_cached, 2);
	CHECK_EQUAL(counts_of(cache).objects_in_use, 5);
	CHECK_EQUAL(counts_of(cache).allocations, 12);
	end(&world);
}

static void test_draining_a_slot(void)
{
	struct world world = make(2, 1, "percpu", 8);
	struct sy_cache *small = cache_of(&world, 100, 0, 0), *large = cache_of(&world, 1000, 0, 0);
	void *objects[2][40];

	get_many(small, objects[0], 40);
	get_many(large, objects[1], 40);
	for (unsigned i = 0; i < 40; i++) { /* on the other slot */
		sy_cache_free(small, 1, objects[0][i]);
		sy_cache_free(large, 1, objects[1][i]);
	}
	check(&world);
	CHECK(slot_of(small, 1)->aux_count == 8 && slot_of(large, 1)->aux_count == 8);
	CHECK_EQUAL(counts_of(large).objects_in_use, 0);
	world.heap->policy->drain(world.heap, 1);
	world.heap->policy->drain(world.heap, 0);
	check(&world);
	CHECK_EQUAL(counts_of(small).objects_cached + counts_of(large).objects_cached, 0);
	CHECK_EQUAL(counts_of(small).empty_slabs, counts_of(small).slabs);
	CHECK_EQUAL(counts_of(large).empty_slabs, counts_of(large).slabs);
	CHECK_EQUAL(counts_of(large).slabs, 10);
	sy_heap_shrink(world.heap);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static void fill_up(void *object, size_t size)
{
	memset(object, 0x33, size);
}

/* In a slot's list even large objects carry a link, behind what must last. */
static void test_constructed_objects_in_slots(void)
{
	static const size_t sizes[] = { 100, 400, 1000, 4000 };
	struct world world = make(1, 1, "percpu", 4);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct sy_cache_config config = { .name = "constructed", .size = sizes[i], .constructor = fill_up };
		struct sy_cache *cache = sy_cache_create(world.heap, &config);
		void *objects[30];

		CHECK(cache->size >= sizes[i] + sizeof(void *));
		for (unsigned round = 0; round < 3; round++) {
			get_many(cache, objects, 30);
			for (unsigned k = 0; k < 30 * sizes[i]; k++)
				CHECK_EQUAL(((char *)objects[k / sizes[i]])[k % sizes[i]], 0x33);
			check(&world);
			free_all(cache, 0, objects, 30);
		}
	}
	end(&world);
}

/* ---- Magazines: Bonwick and Adams 2001 ------------------------------------------------------------------------ */

static const struct sy__bonwick_loaded *loaded_of(struct sy_cache *cache, unsigned slot)
{
	return sy__bonwick_slot(sy__bonwick_cache(cache), slot);
}

static void check_rounds(struct sy_cache *cache, unsigned slot, unsigned rounds, unsigned previous, unsigned full, unsigned empty)
{
	const struct sy__bonwick_depot *depot = &sy__bonwick_cache(cache)->depot;

	CHECK_EQUAL(loaded_of(cache, slot)->rounds, rounds);
	CHECK_EQUAL(loaded_of(cache, slot)->previous ? loaded_of(cache, slot)->previous->rounds : 0, previous);
	CHECK_EQUAL(depot->full.count, full);
	CHECK_EQUAL(depot->empty.count, empty);
	CHECK_FINE(sy_heap_check(cache->heap));
}

/* Magazines of three rounds: loaded and previous change places, and the depot exchanges full ones for empty ones. */
static void test_magazines_are_exchanged(void)
{
	struct world world = make(2, 1, "magazine", 1);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0);
	void *objects[12];

	get_many(cache, objects, 12);
	CHECK_EQUAL(world.heap->counters.slow_allocs, 12); /* the depot has nothing: from slabs, one by one */
	free_all(cache, 0, objects, 3);
	CHECK_EQUAL(loaded_of(cache, 0)->capacity, 3);
	check_rounds(cache, 0, 3, 0, 0, 0);
	free_all(cache, 0, objects + 3, 3); /* a new magazine; the first one becomes previous */
	check_rounds(cache, 0, 3, 3, 0, 0);
	free_all(cache, 0, objects + 6, 3); /* and goes to the depot for the third */
	check_rounds(cache, 0, 3, 3, 1, 0);
	CHECK_EQUAL(world.heap->counters.slow_frees, 3);
	CHECK_EQUAL(counts_of(cache).objects_cached, 9);
	CHECK_EQUAL(counts_of(cache).objects_in_use, 3);
	CHECK_TEXT(list_of(cache), "E>P");
	for (unsigned i = 0; i < 6; i++)
		CHECK(get(cache) == objects[8 - i]); /* the last freed first; previous takes the place of loaded */
	CHECK_EQUAL(world.heap->counters.slow_allocs, 14); /* one of them the first magazine's own */
	check_rounds(cache, 0, 0, 0, 1, 0);
	CHECK(get(cache) == objects[2]); /* a full one of the depot's, for an empty one */
	check_rounds(cache, 0, 2, 0, 0, 1);
	sy_cache_free(cache, 1, objects[9]); /* the other slot gets the empty one */
	check_rounds(cache, 1, 1, 0, 0, 0);
	CHECK_EQUAL(counts_of(cache).objects_cached, 3);
	end(&world);
}

static void test_the_depot_is_drained(void)
{
	struct world world = make(2, 1, "magazine", 1);
	struct sy_cache *small = cache_of(&world, 100, 0, 0), *large = cache_of(&world, 1000, 0, 0);
	void *objects[2][200];

	get_many(small, objects[0], 200);
	get_many(large, objects[1], 200);
	for (unsigned i = 0; i < 200; i++) {
		sy_cache_free(small, 1, objects[0][i]);
		sy_cache_free(large, 1, objects[1][i]);
	}
	check(&world);
	CHECK_EQUAL(sy__bonwick_cache(small)->depot.full.count, 200 / 7 - 1); /* and two of the slot's */
	CHECK_EQUAL(counts_of(large).objects_in_use, 0);
	CHECK_EQUAL(counts_of(large).objects_cached, 200);
	world.heap->policy->drain(world.heap, 1);
	check(&world);
	CHECK(loaded_of(large, 1)->loaded == NULL && sy__bonwick_cache(large)->depot.full.count > 0);
	sy_heap_shrink(world.heap);
	check(&world);
	CHECK_EQUAL(counts_of(small).objects_cached + counts_of(large).objects_cached, 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

/* What was not needed for the time of a working set goes. Where the depot's lock is in demand, magazines grow. */
static void test_the_working_set_of_the_depot(void)
{
	struct world world = make(1, 1, "magazine", 1);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0);
	struct sy__bonwick_depot *depot = &sy__bonwick_cache(cache)->depot;
	void *objects[30];

	get_many(cache, objects, 30);
	free_all(cache, 0, objects, 30);
	CHECK_EQUAL(depot->full.count, 8);
	now += 16 * SECOND;
	world.heap->policy->reap(cache); /* the depot began empty, so its smallest count in that time is nothing */
	CHECK_EQUAL(depot->full.count, 8);
	get_many(cache, objects, 12); /* two magazines of the slot's, and two of the depot's */
	free_all(cache, 0, objects, 12);
	CHECK_EQUAL(depot->full.count, 8);
	CHECK_EQUAL(depot->kind, 1);
	depot->contention = 4;
	now += 8 * SECOND;
	world.heap->policy->reap(cache);
	CHECK_EQUAL(depot->full.count, 8);
	now += 8 * SECOND;
	world.heap->policy->reap(cache);
	CHECK_EQUAL(depot->full.count, 2);
	CHECK_EQUAL(depot->kind, 2);
	check(&world);
	get_many(cache, objects, 30);
	free_all(cache, 0, objects, 30); /* magazines of three rounds and of seven, side by side */
	check(&world);
	end(&world);
}

/* Frees that find no memory for a magazine ask for it less and less often, and get one soon after there is memory. */
static void test_magazines_for_which_there_is_no_memory(void)
{
	static void *objects[3000];
	struct world world = make(1, 1, "magazine", 1);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0);
	struct sy_page *pages[64] = { NULL }, *taken;
	uint64_t before;
	unsigned at = 0;

	get_many(cache, objects, 3000);
	while ((taken = sy_pages_alloc(world.pages, 0, 0, SY_NO_RECLAIM, SY_ANY_NODE)))
		pages[at++ % 64] = taken;
	before = world.pages->failures;
	free_all(cache, 0, objects, 1000);
	CHECK_EQUAL(world.pages->failures - before, 9); /* before the frees number 1, 3, 7, ... 511 */
	CHECK(loaded_of(cache, 0)->loaded == NULL);
	check(&world);
	for (at = 0; at < 64; at++)
		sy_pages_free(world.pages, 0, pages[at]);
	free_all(cache, 0, objects + 1000, 2000);
	CHECK(counts_of(cache).objects_cached > 900);
	CHECK_EQUAL(sy__bonwick_cache(cache)->depot.failures, 0);
	check(&world);
	end(&world);
}

static void test_constructed_objects_in_magazines(void)
{
	struct world world = make(1, 1, "magazine", 1);
	struct sy_cache_config config = { .name = "constructed", .size = 1000, .constructor = fill_up };
	struct sy_cache *cache = sy_cache_create(world.heap, &config);
	void *objects[30];

	CHECK_EQUAL(cache->size, 1000);
	for (unsigned round = 0; round < 3; round++) {
		get_many(cache, objects, 30);
		for (unsigned k = 0; k < 30 * 1000; k++)
			CHECK_EQUAL(((char *)objects[k / 1000])[k % 1000], 0x33);
		free_all(cache, 0, objects, 30);
		check(&world);
	}
	end(&world);
}

/* ---- Nodes ---------------------------------------------------------------------------------------------------- */

static unsigned node_of(const struct world *world, const void *object)
{
	return sy__head_of(world->heap, object)->node;
}

static void test_nodes(int64_t percpu)
{
	struct world world = make(2, 2, "percpu", percpu);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0);
	void *near[10], *far[10];

	get_many(cache, near, 10);
	for (unsigned i = 0; i < 10; i++)
		far[i] = sy_cache_alloc(cache, 0, 0, 1);
	for (unsigned i = 0; i < 10; i++)
		CHECK(node_of(&world, near[i]) == 0 && (percpu || node_of(&world, far[i]) == 1));
	check(&world);
	free_all(cache, 0, near, 10);
	/* Memory that is there serves every request but one that insists on another node. */
	CHECK_EQUAL(node_of(&world, sy_cache_alloc(cache, 0, 0, 1)), 0);
	CHECK_EQUAL(node_of(&world, sy_cache_alloc(cache, 0, SY_THISNODE, 1)), 1);
	CHECK_EQUAL(node_of(&world, sy_cache_alloc(cache, 0, SY_THISNODE, 0)), 0);
	CHECK_EQUAL(counts_of(cache).allocations, 23);
	CHECK(sy_cache_alloc(cache, 0, SY_THISNODE, 7) == NULL);
	CHECK(sy_cache_alloc(cache, 0, 0, 7) != NULL);
	check(&world);
	end(&world);
}

/* A request that insists on a node may break up a complete slab of it while other nodes' slabs are partial. */
static void test_the_list_stays_sorted_when_a_node_is_searched(void)
{
	struct world world = make(2, 2, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0);
	void *near[20], *far;

	get_many(cache, near, 20);
	far = sy_cache_alloc(cache, 0, 0, 1);
	sy_cache_free(cache, 0, far);
	free_all(cache, 0, near, 1);
	sy_cache_free(cache, 0, near[10]);
	CHECK_TEXT(list_of(cache), ">PPC");
	CHECK(sy_cache_alloc(cache, 0, SY_THISNODE, 1) == far);
	CHECK_TEXT(list_of(cache), ">PPP");
	check(&world);
	CHECK(sy_cache_alloc(cache, 0, SY_THISNODE, 0) == near[10]);
	CHECK_TEXT(list_of(cache), "E>PP");
	check(&world);
	end(&world);
}

/* ---- Grace periods -------------------------------------------------------------------------------------------- */

static void test_typesafe_slabs_wait(size_t size)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, size, 0, SY_CACHE_TYPESAFE_BY_RCU);
	unsigned *object = get(cache);

	*object = 0xfeed;
	sy_cache_free(cache, 0, object);
	CHECK_EQUAL(sy_cache_shrink(cache) & ~1ull, 0); /* at most a page of bufctls */
	CHECK_EQUAL(counts_of(cache).slabs, 0);
	CHECK_EQUAL(world.heap->counters.deferred, 1);
	check(&world);
	now += 999;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(sy__head_of(world.heap, object)->use, SY_USE_SLAB);
	CHECK_EQUAL(*object, 0xfeed);
	now += 1;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	check(&world);
	sy_cache_free(cache, 0, get(cache));
	sy_cache_shrink(cache);
	CHECK(sy_cache_destroy(cache, NULL)); /* has waited for its readers */
	CHECK_EQUAL(world.heap->counters.deferred, 0);
	end(&world);
}

/* ---- Page requests that fail ---------------------------------------------------------------------------------- */

/* A slab of large objects needs its pages, one for slab data and one for bufctls, and a hash table. */
static void test_growth_fails_at_every_request(void)
{
	for (unsigned number = 1; number < 60; number++) {
		struct world world = make(1, 1, NULL, 0);
		struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
		void *objects[200];
		unsigned count = 0, refused = 0;

		sy_pages_fail_after(world.pages, number);
		while (count < 200 && refused < 2) {
			objects[count] = get(cache);
			if (objects[count])
				count++;
			else
				refused++;
		}
		CHECK_EQUAL(count, 200);
		check(&world);
		free_all(cache, 0, objects, 200);
		sy_heap_shrink(world.heap);
		CHECK_EQUAL(world.heap->counters.slab_pages, 0);
		end(&world);
	}
}

/* One page is left: enough for a slab, not for the larger hash table that it calls for, so the old table serves on. Asking
 * heaps for the table's memory must not end the new slab, or the allocation might never finish. */
static void test_no_memory_for_a_larger_table(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	struct sy_page *last = NULL, *page;
	void *objects[513];

	get_many(cache, objects, 512);
	CHECK_EQUAL(sy__bonwick_cache(cache)->hash.size, 256);
	while ((page = sy_pages_alloc(world.pages, 0, 0, 0, SY_ANY_NODE)) != NULL)
		last = page;
	sy_pages_free(world.pages, 0, last);
	get_many(cache, objects + 512, 1);
	CHECK_EQUAL(sy__bonwick_cache(cache)->hash.size, 256);
	check(&world);
	end(&world);
}

/* ---- Damage that a check must see ----------------------------------------------------------------------------- */

/* Two slabs of ten small objects, the second partial: its last buffer and one more are free. */
struct damaged {
	struct world world;
	struct sy_cache *common;
	struct sy__bonwick_cache *cache;
	struct sy__bonwick_slab *partial;
	char *objects[19];
};

static struct damaged undamaged(size_t size)
{
	struct damaged it = { .world = make(1, 1, NULL, 0) };

	it.common = cache_of(&it.world, size, 0, 0);
	it.cache = sy__bonwick_cache(it.common);
	get_many(it.common, (void **)it.objects, 19);
	it.partial = sy__bonwick_linked(it.cache->freelist);
	check(&it.world);
	return it;
}

static void expect_wrong(struct damaged *it, const char *wrong)
{
	CHECK_TEXT(sy_heap_check(it->world.heap), wrong);
}

static void test_damage_to_small_slabs(void)
{
	struct damaged it = undamaged(400);
	char *free = it.partial->free;

	it.partial->refs--;
	expect_wrong(&it, "bonwick: references and free buffers of a slab do not add up");
	it.partial->refs++;
	it.partial->free = free + 8;
	expect_wrong(&it, "bonwick: a slab's freelist leaves the slab or runs in a circle");
	it.partial->free = free;
	*sy__bonwick_next(it.cache, free) = free;
	expect_wrong(&it, "bonwick: a slab's freelist leaves the slab or runs in a circle");
	*sy__bonwick_next(it.cache, free) = NULL;
	it.partial->colour = 99;
	expect_wrong(&it, "bonwick: a slab has a colour that its cache has no room for");
	it.partial->colour = 1;
	end(&it.world);
}

static void test_damage_to_the_list(void)
{
	struct damaged it = undamaged(400);
	struct sy_list *freelist = it.cache->freelist;

	it.cache->freelist = &it.cache->slabs;
	expect_wrong(&it, "bonwick: a cache's freelist is not its first slab with a free buffer");
	it.cache->freelist = freelist;
	sy__list_remove(freelist);
	sy__list_add_head(&it.cache->slabs, freelist);
	expect_wrong(&it, "bonwick: a cache's list is not sorted into empty, partial and complete slabs");
	sy__list_remove(freelist);
	expect_wrong(&it, "bonwick: a cache's freelist is not its first slab with a free buffer");
	sy__list_add_tail(&it.cache->slabs, freelist);
	it.cache->allocated++;
	expect_wrong(&it, "bonwick: slabs, complete slabs or buffers of a cache are not as many as counted");
	it.cache->allocated--;
	it.cache->waiting++;
	expect_wrong(&it, "bonwick: slabs of a cache are not those that the page allocator knows");
	it.cache->waiting--;
	end(&it.world);
}

static void test_damage_to_large_slabs(void)
{
	struct damaged it = undamaged(1000);
	struct sy__bonwick_bufctl *free = it.partial->free, *out;

	free->buffer += 8;
	expect_wrong(&it, "bonwick: a slab's freelist holds a bufctl that is not its own, or runs in a circle");
	free->buffer -= 8;
	out = sy__bonwick_hash_remove(&it.cache->hash, it.objects[0]);
	expect_wrong(&it, "bonwick: a buffer is neither free nor in the hash table, or both");
	out->slab = it.partial;
	sy__bonwick_hash_insert(&it.cache->hash, out);
	expect_wrong(&it, "bonwick: a bufctl in the hash table leads to another slab");
	out->slab = sy__bonwick_linked(it.cache->slabs.next);
	end(&it.world);
}

int main(void)
{
	test_small_objects_in_supplied_memory();
	test_large_objects_in_supplied_memory();
	test_a_supplier_that_has_no_more();
	test_memory_that_is_not_aligned_is_none();
	test_supplied_memory_waits_for_the_grace_period();
	test_supplied_memory_has_no_node();
	test_other_policies_refuse_a_supplier();
	test_main_and_aux();
	test_draining_a_slot();
	test_constructed_objects_in_slots();
	test_magazines_are_exchanged();
	test_the_depot_is_drained();
	test_the_working_set_of_the_depot();
	test_magazines_for_which_there_is_no_memory();
	test_constructed_objects_in_magazines();
	test_nodes(0);
	test_nodes(1);
	test_the_list_stays_sorted_when_a_node_is_searched();
	test_typesafe_slabs_wait(400);
	test_typesafe_slabs_wait(2048);
	test_growth_fails_at_every_request();
	test_no_memory_for_a_larger_table();
	test_damage_to_small_slabs();
	test_damage_to_the_list();
	test_damage_to_large_slabs();
	return check_result();
}
