/*
 * svr4 by worked examples: every count below is worked out by hand from the rules in the opening comment of svr4.c. Most
 * use pools of one page, in which the first request of 64 bytes leaves globally free blocks of 64, 128, 256, 512, 1024 and
 * 2048 bytes.
 */
#include "general_support.h"

#include "core/policies/svr4/svr4.h"

/* A class's counts on node 0: blocks, locally free, globally free, and the slack. */
#define CHECK_CLASS(world, bytes, n, l, g, slack) \
	do { \
		const struct sy__svr4_class *is = class_of((world), (bytes)); \
		CHECK_EQUAL(is->blocks, (n)); \
		CHECK_EQUAL(is->locally, (l)); \
		CHECK_EQUAL(is->globally, (g)); \
		CHECK_EQUAL(sy__svr4_slack(is), (slack)); \
	} while (0)

static const struct sy__svr4_class *class_of(struct world *world, uint32_t bytes)
{
	return sy__svr4_class_of((struct sy__svr4_heap *)(void *)world->heap, 0, bytes);
}

static void test_rounding_to_powers_of_two(void)
{
	static const size_t sizes[][2] = {
		{ 0, 16 },    { 1, 16 },      { 16, 16 },     { 17, 32 },     { 65, 128 },     { 300, 512 },
		{ 512, 512 }, { 4097, 8192 }, { 8192, 8192 }, { 8193, 16384 }, { 16385, 32768 },
	};
	struct world world = make_world("svr4", -1, -1, 1);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK_EQUAL(usable(&world, sizes[i][0]), sizes[i][1]);
	CHECK_EQUAL(world.heap->counters.slab_pages + world.heap->counters.large_pages, 0);
	end(&world);
}

static void test_splitting(void)
{
	struct world world = make_world("svr4", 0, -1, 1);
	char *a = kget(&world, 64);

	CHECK_EQUAL(offset(a), 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 1);
	CHECK_CLASS(&world, 64, 2, 0, 1, 1);
	for (uint32_t bytes = 128; bytes <= 2048; bytes *= 2)
		CHECK_CLASS(&world, bytes, 1, 0, 1, 0);
	CHECK_CLASS(&world, 4096, 0, 0, 0, 0);
	CHECK_EQUAL(world.heap->policy->unused_bytes(world.heap), 4096 - 64);
	/* The rest, each in the block that is there for it. */
	CHECK(kget(&world, 2048) == a + 2048);
	CHECK(kget(&world, 1000) == a + 1024);
	CHECK(kget(&world, 64) == a + 64);
	CHECK(kget(&world, 64) == a + 128); /* splits 128 */
	CHECK_CLASS(&world, 64, 4, 0, 1, 3);
	CHECK_CLASS(&world, 128, 0, 0, 0, 0);
	CHECK_CLASS(&world, 256, 1, 0, 1, 0);
	end(&world);
}

/* Four blocks of 64 in use: slack 4. Two frees are lazy, the next two are accelerated; the last empties the pool. */
static void test_lazy_then_accelerated(void)
{
	struct world world = make_world("svr4", 0, -1, 1);
	void *a = kget(&world, 64), *b = kget(&world, 64), *c = kget(&world, 64), *d = kget(&world, 64);

	CHECK_CLASS(&world, 64, 4, 0, 0, 4);
	kput(&world, a); /* lazy */
	CHECK_CLASS(&world, 64, 4, 1, 0, 2);
	kput(&world, b); /* lazy: two buddies are free and stay apart */
	CHECK_CLASS(&world, 64, 4, 2, 0, 0);
	kput(&world, c); /* accelerated: c, and a, which was freed before b; neither has a globally free buddy */
	CHECK_CLASS(&world, 64, 4, 1, 2, 0);
	CHECK_CLASS(&world, 128, 0, 0, 0, 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 1);
	kput(&world, d); /* accelerated: d with c, b with a, and all with all: the pool is free */
	for (uint32_t bytes = 16; bytes <= 4096; bytes *= 2)
		CHECK_CLASS(&world, bytes, 0, 0, 0, 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	CHECK_EQUAL(world.heap->counters.slow_frees, 1);
	end(&world);
}

/* As before up to the third free, which leaves b locally free, and c in front of a among the globally free. */
static void test_the_oldest_is_freed_globally(void)
{
	struct world world = make_world("svr4", 0, -1, 1);
	void *a = kget(&world, 64), *b = kget(&world, 64), *c = kget(&world, 64), *d = kget(&world, 64);

	kput(&world, a);
	kput(&world, b);
	kput(&world, c);
	CHECK(kget(&world, 64) == b);
	CHECK(kget(&world, 64) == a);
	CHECK(kget(&world, 64) == c);
	kput(&world, d);
	end(&world);
}

/* Three in use, one globally free: slack 3, and 1 after a lazy free, where the next free is reclaiming. */
static void test_reclaiming(void)
{
	struct world world = make_world("svr4", 0, -1, 1);
	void *a = kget(&world, 64), *b = kget(&world, 64), *c = kget(&world, 64);

	CHECK_CLASS(&world, 64, 4, 0, 1, 3);
	kput(&world, a); /* lazy */
	CHECK_CLASS(&world, 64, 4, 1, 1, 1);
	kput(&world, b); /* reclaiming: globally free, but its buddy a is only locally so */
	CHECK_CLASS(&world, 64, 4, 1, 2, 0);
	/* The locally free block is taken first, which is worth 2, then the globally free one freed last, worth 1. */
	CHECK(kget(&world, 64) == a);
	CHECK_CLASS(&world, 64, 4, 0, 2, 2);
	CHECK(kget(&world, 64) == b);
	CHECK_CLASS(&world, 64, 4, 0, 1, 3);
	/* c and its buddy, which was never used: c's free is lazy, b's reclaiming, a's accelerated. */
	kput(&world, c);
	CHECK_CLASS(&world, 64, 4, 1, 1, 1);
	kput(&world, b);
	CHECK_CLASS(&world, 64, 4, 1, 2, 0);
	kput(&world, a);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static void test_one_free_joins_two_buddies_of_its_class_at_most(void)
{
	struct world world = make_world("svr4", 0, -1, 1);
	void *objects[64];

	for (unsigned i = 0; i < 64; i++)
		objects[i] = kget(&world, 64);
	for (unsigned i = 0; i < 32; i++) /* every first buddy, lazily */
		sy_kfree(world.heap, 0, objects[2 * i]);
	CHECK_CLASS(&world, 64, 64, 32, 0, 0);
	for (unsigned i = 0; i < 31; i++) {
		uint64_t blocks = class_of(&world, 64)->blocks;

		kput(&world, objects[2 * i + 1]);
		CHECK(blocks - class_of(&world, 64)->blocks <= 4);
		CHECK_EQUAL(sy__svr4_slack(class_of(&world, 64)), 0);
	}
	CHECK_EQUAL(world.heap->counters.slab_pages, 1);
	kput(&world, objects[63]);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

/* A plain buddy system would join and split at every step; here the counts of the blocks never change. */
static void test_steady_state_does_no_work(void)
{
	struct world world = make_world("svr4", 0, -1, 1);
	void *objects[8];
	size_t slow;

	for (unsigned i = 0; i < 8; i++)
		objects[i] = kget(&world, 100);
	slow = world.heap->counters.slow_allocs;
	for (unsigned i = 0; i < 1000; i++) {
		void *object = objects[i * 5 % 8];

		kput(&world, object);
		CHECK_CLASS(&world, 128, 8, 1, 0, 6);
		CHECK(kget(&world, 100) == object);
	}
	CHECK_EQUAL(world.heap->counters.slow_allocs, slow);
	CHECK_EQUAL(world.heap->counters.slow_frees, 0);
	end(&world);
}

static void test_shrinking_joins_all(void)
{
	struct world world = make_world("svr4", 0, -1, 1);
	struct sy_cache *cache = cache_of(&world, 64, 0, 0);
	void *objects[128];

	for (unsigned i = 0; i < 128; i++)
		objects[i] = take(cache, 0);
	for (unsigned i = 64; i < 128; i++) /* the second pool, all of it lazily */
		sy_cache_free(cache, 0, objects[i]);
	CHECK_EQUAL(world.heap->counters.slab_pages, 2);
	CHECK_CLASS(&world, 64, 128, 64, 0, 0);
	CHECK_EQUAL(sy_heap_shrink(world.heap), 1);
	CHECK_EQUAL(world.heap->counters.slab_pages, 1);
	CHECK_CLASS(&world, 64, 64, 0, 0, 64);
	CHECK_EQUAL(sy_heap_shrink(world.heap), 0);
	end(&world);
}

/* Of a heap without a cache too. */
static void test_shrinking_joins_what_general_allocation_left(void)
{
	struct world world = make_world("svr4", 0, -1, 1);
	void *objects[1024];

	for (unsigned i = 0; i < 1024; i++)
		objects[i] = kget(&world, 64);
	CHECK_EQUAL(world.heap->counters.slab_pages, 16);
	for (unsigned i = 0; i < 1024; i += 2)
		sy_kfree(world.heap, 0, objects[i]); /* as many stay in use, so all are locally free */
	CHECK_CLASS(&world, 64, 1024, 512, 0, 0);
	for (unsigned i = 513; i < 1024; i += 2)
		sy_kfree(world.heap, 0, objects[i]); /* those freed first become globally free, the others of the last eight pools don't */
	CHECK_EQUAL(world.heap->counters.slab_pages, 16);
	sy_heap_shrink(world.heap);
	CHECK_EQUAL(world.heap->counters.slab_pages, 8);
	for (unsigned i = 1; i < 512; i += 2)
		sy_kfree(world.heap, 0, objects[i]);
	end(&world);
}

static void test_out_of_memory_joins_all(void)
{
	static void *objects[4 * WORLD_PAGES];
	struct world world = make_world("svr4", 0, -1, 1);
	size_t count = 0;

	while ((objects[count] = sy_kmalloc(world.heap, 0, 1024, 0, SY_ANY_NODE)))
		count++;
	sy_kfree(world.heap, 0, objects[8]);
	sy_kfree(world.heap, 0, objects[9]);
	CHECK_CLASS(&world, 1024, count, 2, 0, count - 4);
	CHECK(kget(&world, 2048) == objects[8]);
	CHECK(!sy_kmalloc(world.heap, 0, 2048, 0, SY_ANY_NODE));
	end(&world);
}

static void test_pools(void)
{
	struct world world = make_world("svr4", 2, -1, 1);
	struct sy_heap_counters *counters = &world.heap->counters;
	char *half = kget(&world, 8192), *other, *large = kget(&world, 8193);

	CHECK_EQUAL(counters->slab_pages, 4);
	CHECK_EQUAL(counters->large_pages, 4);
	other = kget(&world, 4097);
	CHECK(other == half + 8192);
	CHECK_EQUAL(counters->slab_pages, 4);
	kput(&world, half);  /* lazy */
	kput(&world, other); /* accelerated */
	CHECK_EQUAL(counters->slab_pages, 0);
	kput(&world, large);
	CHECK_EQUAL(counters->large_pages, 0);
	end(&world);
}

static void test_alignment_costs_size(void)
{
	struct world world = make_world("svr4", 2, -1, 1);
	struct sy_cache *aligned = cache_of(&world, 24, 1024, 0);

	CHECK_EQUAL(aligned->size, 1024);
	CHECK_EQUAL(cache_of(&world, 300, 0, 0)->size, 512); /* Bonwick's inodes, section 4.1 */
	CHECK_EQUAL(offset(take(aligned, 0)) % 1024, 0);
	end(&world);
}

/* Of the blocks of 64 bytes, the one at 0 is in use, and the one at 64 locally free. All behind them is globally free. */
static void test_the_check_finds_damage(void)
{
	struct world world = make_world("svr4", 0, -1, 1);
	struct sy__general_heap *general = (struct sy__general_heap *)(void *)world.heap;
	struct sy__svr4_class *class = sy__svr4_class_of((struct sy__svr4_heap *)(void *)world.heap, 0, 64);
	char *memory = kget(&world, 64);
	struct sy_list *locally = kget(&world, 64);
	void *third = kget(&world, 64);
	uint32_t *starts = SY_SLAB_STATE(struct sy__general_page, sy__head_of(world.heap, memory))->map;
	uint32_t *global = starts + SY__STARTS_WORDS;

	kput(&world, locally);
	kput(&world, third);
	CHECK_CLASS(&world, 64, 2, 1, 0, 0);
	CHECK_CLASS(&world, 128, 1, 0, 1, 0);
	CHECK_FINDS(&world, class->locally++, class->locally--, "svr4: a list has fewer blocks than its class counts");
	CHECK_FINDS(&world, class->locally--, class->locally++,
	            "svr4: a list has more blocks than its class counts, or runs in a circle");
	CHECK_FINDS(&world, class->blocks++, class->blocks--, "svr4: a class counts other blocks than its pools have");
	CHECK_FINDS(&world, general->live++, general->live--,
	            "svr4: the blocks that are not free are not as many as the objects in use");
	CHECK_FINDS(&world, sy__starts_clear(starts, 0), sy__starts_set(starts, 0),
	            "svr4: no block starts where a pool does");
	CHECK_FINDS(&world, sy__starts_set(starts, 1), sy__starts_clear(starts, 1),
	            "svr4: a block is no power of two, or not aligned to its size");
	CHECK_FINDS(&world, sy__starts_set(global, 1), sy__starts_clear(global, 1),
	            "svr4: the inside of a block is marked as globally free");
	CHECK_FINDS(&world, sy__starts_set(global, 4), sy__starts_clear(global, 4),
	            "svr4: a block's mark as globally free does not agree with its list");
	CHECK_FINDS(&world, sy__starts_set(global, 0), sy__starts_clear(global, 0),
	            "svr4: a block that is marked as globally free is on no list");
	CHECK_FINDS(&world, locally->prev = NULL, locally->prev = &class->local,
	            "svr4: a list of free blocks is not linked both ways");
	end(&world);
}

/* ---- Walks -------------------------------------------------------------------------------------------------------- */

#define MANY 200000u

struct shown {
	uint64_t used, locally, globally, places; /* parts; the sum of their places */
};

static bool show_slab(void *context, const struct sy_slab *slab)
{
	(void)context;
	return slab->bytes > 0;
}

static bool show_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct shown *shown = context;

	(void)slab;
	shown->used += part->state == SY_PART_USED;
	shown->locally += part->list && part->list[0] == 'l';
	shown->globally += part->list && part->list[0] == 'g';
	shown->places += part->place;
	return true;
}

static struct shown show(struct world *world)
{
	struct shown shown = { 0, 0, 0, 0 };
	const struct sy_visitor visitor = { show_slab, show_part, &shown, NULL };

	CHECK(sy_heap_walk(world->heap, &visitor));
	return shown;
}

/* A look at each block's list for each block would take minutes. */
static void test_a_walk_takes_time_by_the_number_of_blocks(void)
{
	static void *objects[MANY];
	struct world world = make_world("svr4", 0, -1, 1);
	struct shown shown;
	const struct sy__svr4_class *class = class_of(&world, 16);

	for (unsigned i = 0; i < MANY; i++)
		objects[i] = kget(&world, 16);
	for (unsigned i = 0; i < MANY; i += 2)
		sy_kfree(world.heap, 0, objects[i]);
	CHECK(class->locally > MANY / 5);
	shown = show(&world);
	CHECK_EQUAL(shown.used, MANY / 2);
	CHECK_EQUAL(shown.locally, class->locally);
	CHECK(shown.globally >= class->globally);
	CHECK(shown.places >= class->locally * (class->locally - 1) / 2 + class->globally * (class->globally - 1) / 2);
	CHECK_FINE(sy_heap_check(world.heap));
	end(&world);
}

/* A walk shows all that can be reached, and changes nothing. */
static void test_a_walk_leaves_a_damaged_list_alone(void)
{
	struct world world = make_world("svr4", 0, -1, 1);
	struct sy_list *blocks[6];
	struct sy_list *next;
	char before[SY_PAGE_SIZE];

	for (unsigned i = 0; i < 6; i++)
		blocks[i] = kget(&world, 64);
	for (unsigned i = 0; i < 3; i++)
		kput(&world, blocks[2 * i]);
	CHECK_CLASS(&world, 64, 6, 3, 0, 0);
	CHECK_EQUAL(show(&world).locally, 3);
	next = blocks[2]->next;
	for (unsigned damage = 0; damage < 4; damage++) {
		blocks[2]->next = (struct sy_list *[]){ NULL, blocks[1], (struct sy_list *)(void *)((char *)next + 8), blocks[4] }[damage];
		memcpy(before, blocks[0], SY_PAGE_SIZE - 64);
		CHECK_EQUAL(show(&world).locally, 2);
		CHECK_EQUAL(memcmp(before, blocks[0], SY_PAGE_SIZE - 64), 0);
	}
	blocks[2]->next = next;
	CHECK_FINE(sy_heap_check(world.heap));
	end(&world);
}

int main(void)
{
	test_rounding_to_powers_of_two();
	test_splitting();
	test_lazy_then_accelerated();
	test_the_oldest_is_freed_globally();
	test_reclaiming();
	test_one_free_joins_two_buddies_of_its_class_at_most();
	test_steady_state_does_no_work();
	test_shrinking_joins_all();
	test_shrinking_joins_what_general_allocation_left();
	test_out_of_memory_joins_all();
	test_pools();
	test_smaller_pools_where_memory_has_crumbled("svr4", 2, -1);
	test_alignment_costs_size();
	test_the_check_finds_damage();
	test_a_walk_takes_time_by_the_number_of_blocks();
	test_a_walk_leaves_a_damaged_list_alone();
	general_tests("svr4");
	return check_result();
}
