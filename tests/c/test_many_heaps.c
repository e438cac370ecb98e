/*
 * Heaps of all policies side by side: on one page allocator and on several, thousands of them created and destroyed in
 * random order, many while their objects live. Every object is filled with a byte of its own heap's, which must still be
 * there when it is freed: heaps do not disturb each other. When all are gone, no page is missing anywhere.
 */
#include "pages_support.h"

#define ALLOCATORS 3u /* page allocators: of one node, of two, without per-CPU lists */
#define AT_ONCE 32u   /* heaps that live at a time */
#define LIVES 8000u   /* heaps in all */
#define OBJECTS 48u   /* of a heap, at most */
#define CACHES 3u
#define SLOTS 4u
#define CHECKED 16u   /* one round in this many ends with a check of everything that lives */

static uint64_t now, random_state = 20240229;

static uint64_t clock_of_test(void)
{
	return now;
}

static unsigned below(unsigned bound)
{
	return (unsigned)((random_next(&random_state) >> 32) % bound);
}

struct object {
	unsigned char *memory;
	struct sy_cache *cache; /* NULL: kmalloc */
	size_t bytes;
};

struct home {
	struct sy_heap *heap; /* NULL: vacant */
	struct sy_cache *caches[CACHES];
	struct object objects[OBJECTS];
	unsigned char mark; /* what this heap fills its objects with */
};

/* ---- Page allocators ------------------------------------------------------------------------------------------ */

static struct sy_pages_config configs[ALLOCATORS];
static struct sy_pages *allocators[ALLOCATORS];

static void open_allocators(void)
{
	for (unsigned i = 0; i < ALLOCATORS; i++)
		one_zone(&configs[i], 64 * MIB / SY_PAGE_SIZE, SLOTS);
	configs[1].zone_count = 2;
	configs[1].zones[0].pages /= 2;
	name_zone(&configs[1].zones[1], "Normal", configs[1].zones[0].pages, configs[1].zones[0].pages);
	configs[1].zones[1].node = 1;
	configs[2].cpu_lists = false;
	for (unsigned i = 0; i < ALLOCATORS; i++) {
		allocators[i] = sy_pages_create(&configs[i]);
		CHECK(allocators[i]);
	}
}

static void close_allocators(void)
{
	for (unsigned i = 0; i < ALLOCATORS; i++) {
		check_all_free(allocators[i], &configs[i]);
		sy_pages_destroy(allocators[i]);
	}
}

/* ---- One heap ------------------------------------------------------------------------------------------------- */

static struct sy_heap *heap_on(struct sy_pages *pages, const struct sy_policy *policy)
{
	struct sy_heap_config config;

	sy_heap_defaults(policy, &config);
	config.slots = 1 + below(SLOTS);
	config.grace_ns = 1000;
	return sy_heap_create(pages, &config);
}

static void move_in(struct home *home, struct sy_pages *pages, const struct sy_policy *policy, unsigned number)
{
	static const struct sy_cache_config wanted[CACHES] = {
		{ .name = "small", .size = 40 },
		{ .name = "typesafe", .size = 232, .flags = SY_CACHE_TYPESAFE_BY_RCU },
		{ .name = "line", .size = 1100, .flags = SY_CACHE_HWCACHE_ALIGN },
	};

	memset(home, 0, sizeof *home);
	home->heap = heap_on(pages, policy);
	CHECK(home->heap);
	home->mark = (unsigned char)(number * 31 + 1);
	for (unsigned i = 0; i < CACHES; i++) {
		home->caches[i] = sy_cache_create(home->heap, &wanted[i]);
		CHECK(home->caches[i]);
	}
}

static void alloc(struct home *home, struct object *object, unsigned slot)
{
	unsigned which = below(CACHES + 2);

	object->cache = which < CACHES ? home->caches[which] : NULL;
	object->bytes = object->cache ? 40 : which == CACHES ? 1 + below(600) : 1 + below(40000);
	object->memory = object->cache ? sy_cache_alloc(object->cache, slot, 0, SY_ANY_NODE)
	                               : sy_kmalloc(home->heap, slot, object->bytes, 0, SY_ANY_NODE);
	CHECK(object->memory);
	if (object->memory)
		memset(object->memory, home->mark, object->bytes);
}

static void release(struct home *home, struct object *object, unsigned slot)
{
	size_t same = 0;

	while (same < object->bytes && object->memory[same] == home->mark)
		same++;
	CHECK_EQUAL(same, object->bytes);
	if (object->cache)
		sy_cache_free(object->cache, slot, object->memory);
	else
		sy_kfree(home->heap, slot, object->memory);
	object->memory = NULL;
}

static void live_a_little(struct home *home)
{
	for (unsigned i = 0; i < OBJECTS / 2; i++) {
		struct object *object = &home->objects[below(OBJECTS)];
		unsigned slot = below(home->heap->slots);

		if (object->memory)
			release(home, object, slot);
		else
			alloc(home, object, slot);
	}
	now += below(2000);
	sy_heap_tick(home->heap);
	if (below(8) == 0)
		sy_heap_shrink(home->heap);
}

/* Every other heap is destroyed together with the objects that live in it. */
static void move_out(struct home *home)
{
	for (unsigned i = 0; i < OBJECTS && below(2); i++)
		if (home->objects[i].memory)
			release(home, &home->objects[i], below(home->heap->slots));
	sy_heap_destroy(home->heap);
	home->heap = NULL;
}

/* ---- All of them ---------------------------------------------------------------------------------------------- */

static unsigned count_policies(void)
{
	unsigned count = 0;

	while (sy_policies[count])
		count++;
	return count;
}

static void check_everything(struct home *homes)
{
	for (unsigned i = 0; i < AT_ONCE; i++)
		if (homes[i].heap)
			CHECK_FINE(sy_heap_check(homes[i].heap));
	for (unsigned i = 0; i < ALLOCATORS; i++)
		CHECK_FINE(sy_pages_check(allocators[i]));
}

/* Heap by heap, the next policy each time; `choices` page allocators are in use. */
static void run_lives(unsigned lives, unsigned choices)
{
	static struct home homes[AT_ONCE];
	unsigned policies = count_policies(), born = 0, rounds = 0;

	open_allocators();
	while (born < lives && !check_failures) {
		struct home *home = &homes[below(AT_ONCE)];

		if (!home->heap) {
			move_in(home, allocators[below(choices)], sy_policies[born % policies], born);
			born++;
		} else if (below(3) == 0) {
			move_out(home);
		} else {
			live_a_little(home);
		}
		if (++rounds % (CHECKED * AT_ONCE) == 0)
			check_everything(homes);
	}
	CHECK_EQUAL(born, lives);
	for (unsigned i = 0; i < AT_ONCE; i++)
		if (homes[i].heap)
			move_out(&homes[i]);
	close_allocators();
}

static void test_on_one_page_allocator(void)
{
	run_lives(LIVES / 2, 1);
}

static void test_on_several_page_allocators(void)
{
	run_lives(LIVES / 2, ALLOCATORS);
}

/* A heap takes the same pages whatever heaps there were before it: they leave nothing behind. */
static void test_nothing_is_left(void)
{
	open_allocators();
	for (unsigned i = 0; sy_policies[i]; i++) {
		uint64_t first = 0;

		for (unsigned turn = 0; turn < 20; turn++) {
			struct sy_pages_counts counts;
			struct home home;
			uint64_t used = 0;

			random_state = 7;
			move_in(&home, allocators[0], sy_policies[i], turn);
			live_a_little(&home);
			sy_pages_count(allocators[0], &counts);
			for (unsigned use = SY_USE_SLAB; use < SY_USES; use++)
				used += counts.zones[0].used[use];
			first = turn ? first : used;
			CHECK(used > 0);
			CHECK_EQUAL(used, first);
			move_out(&home);
		}
	}
	close_allocators();
}

/* With no object alive and every grace period over, a shrink leaves no slab, except under a policy that keeps its slabs
 * until the heap goes. Slabs may hold freelists of other slabs, so what a first shrink frees lets a second give back more. */
static void test_shrink_gives_all_back(void)
{
	open_allocators();
	for (unsigned i = 0; sy_policies[i]; i++)
		for (unsigned turn = 0; turn < 10; turn++) {
			struct home home;
			uint64_t before, given;

			move_in(&home, allocators[turn % ALLOCATORS], sy_policies[i], turn);
			for (unsigned round = 0; round < 6; round++)
				live_a_little(&home);
			for (unsigned j = 0; j < OBJECTS; j++)
				if (home.objects[j].memory)
					release(&home, &home.objects[j], below(home.heap->slots));
			sy_heap_shrink(home.heap);
			now += 5000;
			sy_heap_tick(home.heap);
			before = home.heap->counters.slab_pages;
			given = sy_heap_shrink(home.heap);
			CHECK_EQUAL(home.heap->counters.large_pages, 0);
			CHECK_EQUAL(home.heap->counters.slab_pages, before - given);
			if (sy_policies[i]->never_reclaims)
				CHECK(home.heap->counters.slab_pages > 0 && !given);
			else
				CHECK_EQUAL(home.heap->counters.slab_pages, 0);
			CHECK_FINE(sy_heap_check(home.heap));
			move_out(&home);
		}
	close_allocators();
}

/* A cache is not destroyed while objects of it live. It says how many there are; nothing happens to them or to other heaps. */
static void test_destroy_with_objects_alive(void)
{
	struct sy_heap *heaps[16];
	struct sy_cache *caches[16];
	void *objects[16][3];
	unsigned policies = count_policies();

	open_allocators();
	for (unsigned i = 0; i < policies; i++) {
		struct sy_cache_config config = { .name = "alive", .size = 200 };

		heaps[i] = heap_on(allocators[0], sy_policies[i]);
		caches[i] = sy_cache_create(heaps[i], &config);
		CHECK(caches[i]);
		for (unsigned j = 0; j < 3; j++) {
			objects[i][j] = sy_cache_alloc(caches[i], 0, 0, SY_ANY_NODE);
			memset(objects[i][j], (int)(i + 1), 200);
		}
	}
	for (unsigned i = 0; i < policies; i++)
		for (unsigned left = 3; left; left--) {
			uint64_t alive = 0;

			CHECK(!sy_cache_destroy(caches[i], &alive));
			CHECK_EQUAL(alive, left);
			CHECK_TEXT(caches[i]->name, "alive");
			CHECK_FINE(sy_heap_check(heaps[i]));
			for (unsigned j = 0; j < 200; j++)
				CHECK_EQUAL(((unsigned char *)objects[i][left - 1])[j], i + 1);
			sy_cache_free(caches[i], 0, objects[i][left - 1]);
		}
	for (unsigned i = 0; i < policies; i++) {
		uint64_t alive = 99;

		CHECK(sy_cache_destroy(caches[i], &alive));
		CHECK_EQUAL(alive, 99);
		CHECK_FINE(sy_heap_check(heaps[i]));
		sy_heap_destroy(heaps[i]);
	}
	close_allocators();
}

int main(void)
{
	sy_platform_set_clock(clock_of_test);
	test_on_one_page_allocator();
	test_on_several_page_allocators();
	test_nothing_is_left();
	test_shrink_gives_all_back();
	test_destroy_with_objects_alive();
	return check_result();
}
