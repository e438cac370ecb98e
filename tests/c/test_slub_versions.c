/*
 * SLUB by the version of Linux, and as SLUB_TINY: orders against real kernels' /proc/slabinfo, which caches share slabs with kmalloc's,
 * and what a slot keeps.
 *
 * Each table has every triple of objsize, objperslab and pagesperslab of one kernel (x86-64, 4 KiB pages): `linux_6_12` of a user-mode
 * Linux 6.12.117 with one CPU, `linux_6_18` of a Linux 6.18.44 with two.
 */
#include "slub_support.h"

static const uint16_t linux_6_12[][3] = {
	{ 8, 512, 1 }, { 16, 256, 1 }, { 24, 170, 1 }, { 32, 128, 1 }, { 40, 102, 1 }, { 48, 85, 1 }, { 56, 73, 1 },
	{ 64, 64, 1 }, { 72, 56, 1 }, { 80, 51, 1 }, { 96, 42, 1 }, { 104, 39, 1 }, { 112, 36, 1 }, { 120, 34, 1 },
	{ 128, 32, 1 }, { 136, 30, 1 }, { 152, 26, 1 }, { 168, 24, 1 }, { 184, 22, 1 }, { 192, 21, 1 }, { 200, 20, 1 },
	{ 240, 17, 1 }, { 248, 16, 1 }, { 256, 16, 1 }, { 304, 13, 1 }, { 320, 12, 1 }, { 384, 10, 1 }, { 448, 9, 1 },
	{ 512, 8, 1 }, { 536, 15, 2 }, { 568, 14, 2 }, { 584, 14, 2 }, { 608, 13, 2 }, { 640, 12, 2 }, { 704, 11, 2 },
	{ 824, 19, 4 }, { 896, 9, 2 }, { 960, 8, 2 }, { 968, 8, 2 }, { 1024, 8, 2 }, { 1088, 15, 4 }, { 1152, 14, 4 },
	{ 1216, 13, 4 }, { 2048, 8, 4 }, { 2112, 15, 8 }, { 2304, 14, 8 }, { 2496, 13, 8 }, { 4096, 8, 8 }, { 4800, 6, 8 },
	{ 8192, 4, 8 },
};

static const uint16_t linux_6_18[][3] = {
	{ 8, 512, 1 }, { 16, 256, 1 }, { 24, 170, 1 }, { 32, 128, 1 }, { 40, 102, 1 }, { 48, 85, 1 }, { 56, 73, 1 },
	{ 64, 64, 1 }, { 72, 56, 1 }, { 80, 51, 1 }, { 88, 46, 1 }, { 96, 42, 1 }, { 104, 39, 1 }, { 112, 36, 1 },
	{ 120, 34, 1 }, { 128, 32, 1 }, { 136, 30, 1 }, { 160, 25, 1 }, { 168, 24, 1 }, { 176, 23, 1 }, { 184, 22, 1 },
	{ 192, 21, 1 }, { 200, 20, 1 }, { 208, 19, 1 }, { 216, 18, 1 }, { 232, 17, 1 }, { 240, 17, 1 }, { 248, 16, 1 },
	{ 256, 16, 1 }, { 272, 15, 1 }, { 280, 14, 1 }, { 288, 14, 1 }, { 312, 13, 1 }, { 320, 12, 1 }, { 344, 23, 2 },
	{ 376, 21, 2 }, { 384, 21, 2 }, { 392, 20, 2 }, { 416, 19, 2 }, { 432, 18, 2 }, { 440, 18, 2 }, { 448, 18, 2 },
	{ 456, 17, 2 }, { 480, 17, 2 }, { 488, 16, 2 }, { 512, 16, 2 }, { 560, 14, 2 }, { 576, 14, 2 }, { 584, 14, 2 },
	{ 624, 13, 2 }, { 632, 25, 4 }, { 640, 12, 2 }, { 656, 12, 2 }, { 672, 12, 2 }, { 688, 23, 4 }, { 696, 23, 4 },
	{ 704, 23, 4 }, { 752, 21, 4 }, { 768, 21, 4 }, { 832, 19, 4 }, { 896, 18, 4 }, { 960, 17, 4 }, { 984, 16, 4 },
	{ 1016, 16, 4 }, { 1024, 16, 4 }, { 1128, 14, 4 }, { 1144, 14, 4 }, { 1152, 14, 4 }, { 1232, 13, 4 },
	{ 1280, 12, 4 }, { 1344, 12, 4 }, { 1352, 12, 4 }, { 1472, 22, 8 }, { 1536, 21, 8 }, { 1600, 20, 8 },
	{ 1984, 16, 8 }, { 2048, 16, 8 }, { 2112, 15, 8 }, { 2168, 15, 8 }, { 2240, 14, 8 }, { 2368, 13, 8 },
	{ 2496, 13, 8 }, { 2672, 12, 8 }, { 4096, 8, 8 }, { 4232, 7, 8 }, { 4288, 7, 8 }, { 5888, 5, 8 }, { 8192, 4, 8 },
	{ 51488, 1, 16 },
};

/* Tunables by name, as a spec has them. */
static struct sy_heap_config config_with(const char *spec)
{
	struct sy_heap_config config;
	struct sy_fault fault;

	CHECK(sy_spec_parse(&config, spec, &fault));
	config.grace_ns = 1000;
	return config;
}

static struct world world_with(const char *spec)
{
	struct sy_heap_config config = config_with(spec);

	now = 0;
	return make_large(&config);
}

static struct sy_geometry geometry(const char *spec, unsigned cpus, size_t size)
{
	struct sy_heap_config config = config_with(spec);
	struct sy_geometry result = { .order = SY_ORDERS };

	CHECK(config.policy->geometry(config.tunables, cpus, size, &result));
	return result;
}

static void check_table(const char *spec, unsigned cpus, const uint16_t (*table)[3], size_t rows)
{
	for (size_t i = 0; i < rows; i++) {
		struct sy_geometry is = geometry(spec, cpus, table[i][0]);

		CHECK_EQUAL(is.objects, table[i][1]);
		CHECK_EQUAL(1u << is.order, table[i][2]);
	}
}

static void test_every_size_of_real_kernels(void)
{
	check_table("slub:linux=6.12", 1, linux_6_12, sizeof(linux_6_12) / sizeof(linux_6_12[0]));
	check_table("slub:linux=6.12", 2, linux_6_18, sizeof(linux_6_18) / sizeof(linux_6_18[0]));
}

/* 11000 bytes: two in order 3 waste 10768 of 32768, between a quarter and a half. 6.1 would rather have one object in order 2. */
static void test_since_6_7_a_slab_may_waste_a_half(void)
{
	CHECK_EQUAL(geometry("slub:linux=6.1", 1, 11000).order, 2);
	CHECK_EQUAL(geometry("slub:linux=6.12", 1, 11000).order, 3);
	CHECK_EQUAL(geometry("slub:linux=6.12", 1, 11000).objects, 2);
	CHECK_EQUAL(geometry("slub:linux=6.12", 1, 17000).order, 3); /* wastes 15768 */
	CHECK_EQUAL(geometry("slub:linux=6.12", 1, 40000).order, 4); /* beyond the largest order: what holds one */
	CHECK_EQUAL(geometry("slub", 1, 11000).order, 2);            /* where nothing is known of the workload's kernel, 6.1 */
}

/* Two pages at most. A size that wastes more than half of two pages gets the order that holds one object. */
static void test_tiny_slabs_have_two_pages_at_most(void)
{
	CHECK_EQUAL(geometry("slub:tiny=on", 1, 256).order, 0);
	CHECK_EQUAL(geometry("slub:tiny=on", 1, 584).order, 1);
	CHECK_EQUAL(geometry("slub:tiny=on", 1, 2112).objects, 3);
	CHECK_EQUAL(geometry("slub:tiny=on", 1, 4096).objects, 2);
	CHECK_EQUAL(geometry("slub:tiny=on", 1, 4800).objects, 1);
	CHECK_EQUAL(geometry("slub:tiny=on", 1, 8200).order, 2);
	CHECK_EQUAL(geometry("slub:tiny=on,max_order=3", 1, 4096).order, 3);
}

/* Replays begin with a recorded kernel's slabs as they lay where a heap follows its rules. */
static void test_whose_rules_are_the_workloads(void)
{
	static const struct { const char *spec; uint16_t kernel; bool same; } cases[] = {
		{ "slub", 0x612, true }, { "slub", 0x700, true }, { "slub:linux=6.18", 0x613, true }, { "slub:cpu_partial=0", 0x612, true },
		{ "slub", 0x60c, false }, { "slub", 0, false }, { "slub:linux=6.12", 0x612, false }, { "slub:linux=7.0", 0x612, false },
		{ "slub:tiny=on", 0x612, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sy_heap_config config = config_with(cases[i].spec);
		struct world world;

		config.kernel.version = cases[i].kernel;
		world = make_large(&config);
		CHECK_EQUAL(world.heap->as_recorded, cases[i].same);
		end(&world);
	}
}

static void test_the_workloads_kernel_decides(void)
{
	static const struct { uint16_t kernel; unsigned order; } cases[] = { { 0, 2 }, { 0x601, 2 }, { 0x606, 2 }, { 0x607, 3 }, { 0x60c, 3 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sy_heap_config config = config_with("slub");
		struct world world;

		config.kernel.version = cases[i].kernel;
		world = make_large(&config);
		CHECK_EQUAL(sy__page_order(slab_of(cache_of(&world, 11000, 0, 0), sy_cache_alloc(cache_of(&world, 11000, 0, 0), 0, 0, SY_ANY_NODE))),
		            cases[i].order);
		end(&world);
	}
}

/* ---- Sharing with kmalloc ----------------------------------------------------------------------------------------- */

static void test_unchecked_copies_let_caches_share_kmallocs_slabs(void)
{
	struct world world = world_with("slub:linux=6.12,usercopy=off");
	struct sy_cache *cache = cache_of(&world, 192, 0, 0), *reclaimable = cache_of(&world, 192, 0, SY_CACHE_RECLAIMABLE);

	CHECK(!strcmp(cache->name, "kmalloc-192"));
	CHECK(!strcmp(reclaimable->name, "kmalloc-rcl-192"));
	CHECK(!strcmp(cache_of(&world, 60, 64, 0)->name, "kmalloc-64"));
	CHECK(!strcmp(cache_of(&world, 200, 0, 0)->name, "test"));
	CHECK(!strcmp(cache_of(&world, 192, 0, SY_CACHE_NO_MERGE)->name, "test"));
	CHECK(!strcmp(cache_of(&world, 192, 0, SY_CACHE_TYPESAFE_BY_RCU)->name, "test"));
	CHECK(slab_of(cache, sy_cache_alloc(cache, 0, 0, SY_ANY_NODE)) == slab_of(cache, sy_kmalloc(world.heap, 0, 150, 0, SY_ANY_NODE)));
	CHECK(sy_cache_destroy(reclaimable, NULL)); /* which takes one user off the class */
	CHECK(sy_kmalloc(world.heap, 0, 192, SY_RECLAIMABLE, SY_ANY_NODE) != NULL);
	end(&world);
}

static void check_apart(const char *spec)
{
	struct world world = world_with(spec);

	CHECK(!strcmp(cache_of(&world, 192, 0, 0)->name, "test"));
	end(&world);
}

static void test_checked_copies_keep_them_apart(void)
{
	struct sy_heap_config config = config_with("slub:linux=6.12");
	struct world world;

	check_apart("slub:linux=6.12");
	check_apart("slub:linux=6.1,usercopy=off");
	check_apart("slub:tiny=on,usercopy=on");
	config.kernel.merges_classes = true;
	world = make_large(&config);
	CHECK(!strcmp(cache_of(&world, 192, 0, 0)->name, "kmalloc-192"));
	end(&world);
}

/* ---- SLUB_TINY ---------------------------------------------------------------------------------------------------- */

static void test_tiny_knows_no_reclaimable_objects(void)
{
	struct world world = world_with("slub:tiny=on");
	struct sy_cache *cache = cache_of(&world, 1000, 0, SY_CACHE_RECLAIMABLE);
	void *small = sy_kmalloc(world.heap, 0, 64, 0, SY_ANY_NODE);

	CHECK(cache_of(&world, 1000, 0, 0) == cache);
	CHECK_EQUAL(slab_of(cache, sy_cache_alloc(cache, 0, 0, SY_ANY_NODE))->migrate, SY_UNMOVABLE);
	CHECK(slab_of(cache, small) == slab_of(cache, sy_kmalloc(world.heap, 0, 64, SY_RECLAIMABLE, SY_ANY_NODE)));
	CHECK(slab_of(cache, small) == slab_of(cache, sy_kmalloc(world.heap, 0, 64, SY_ACCOUNT, SY_ANY_NODE)));
	CHECK(slab_of(cache, small) != slab_of(cache, sy_kmalloc(world.heap, 0, 64, SY_DMA, SY_ANY_NODE)));
	end(&world);
}

/* Four objects of 1000 bytes in a page. */
static void test_tiny_fills_one_slab_after_the_other(void)
{
	struct world world = world_with("slub:tiny=on,max_order=0");
	struct sy_cache *cache = cache_of(&world, 1000, 0, 0);
	void *objects[MANY], *again;

	fill(cache, objects, 3, 4);
	CHECK(slot_of(cache, 0)->slab == NULL && slot_of(cache, 0)->freelist == NULL);
	CHECK_EQUAL(counts_of(cache).objects_cached, 0);
	CHECK_EQUAL(node_of(cache, 0)->partial_slabs, 0); /* all are full */
	sy_cache_free(cache, 0, objects[4]);
	sy_cache_free(cache, 0, objects[1]);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[5])), 0);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[0])), 1);
	check(&world);
	again = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
	CHECK(again == objects[4]);
	CHECK_EQUAL(position(cache, 0, slab_of(cache, objects[5])), -1);
	CHECK(sy_cache_alloc(cache, 0, 0, SY_ANY_NODE) == objects[1]);
	check(&world);
	free_all(cache, 0, objects, 4); /* a slab without an object in use goes at once */
	CHECK_EQUAL(counts_of(cache).slabs, 2);
	free_all(cache, 0, objects + 4, 8);
	CHECK_EQUAL(counts_of(cache).slabs, 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static void test_tiny_on_other_nodes(void)
{
	struct sy_heap_config config = config_with("slub:tiny=on,max_order=0");
	struct sy_cache *cache;
	struct world world;
	void *here, *there;

	config.slots = config.nodes = 2;
	now = 0;
	world = make_large(&config);
	cache = cache_of(&world, 1000, 0, 0);
	here = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
	there = sy_cache_alloc(cache, 0, 0, 1);
	CHECK_EQUAL(sy__page_node(slab_of(cache, here)), 0);
	CHECK_EQUAL(sy__page_node(slab_of(cache, there)), 1);
	CHECK_EQUAL(sy__page_node(slab_of(cache, sy_cache_alloc(cache, 1, 0, SY_ANY_NODE))), 1);
	sy_cache_free(cache, 0, there); /* by a slot of the other node */
	check(&world);
	end(&world);
}

int main(void)
{
	test_every_size_of_real_kernels();
	test_since_6_7_a_slab_may_waste_a_half();
	test_tiny_slabs_have_two_pages_at_most();
	test_the_workloads_kernel_decides();
	test_whose_rules_are_the_workloads();
	test_unchecked_copies_let_caches_share_kmallocs_slabs();
	test_checked_copies_keep_them_apart();
	test_tiny_knows_no_reclaimable_objects();
	test_tiny_fills_one_slab_after_the_other();
	test_tiny_on_other_nodes();
	return check_result();
}
