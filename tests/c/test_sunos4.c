/*
 * sunos4 by worked examples: trees and places are worked out by hand from the opening comments of sunos4.c and
 * sunos4/tree.h. Most use chunks of one page. Sizes are rounded up to 16 bytes; an object stands at any multiple of
 * that, unless it is aligned.
 */
#include "general_support.h"

#include "core/policies/sunos4/sunos4.h"

enum { LEFTMOST, BETTER };

static struct sy__tree *tree_of(struct world *world)
{
	return &((struct sy__sunos4_heap *)(void *)world->heap)->trees[0];
}

/* A subtree as text: (left offset:bytes right), offsets from the start of a page. */
static void write_tree(const struct sy__tree *tree, uint64_t number, char *text, size_t room)
{
	const struct sy__tree_node *node;
	size_t used = strlen(text);

	if (!number)
		return;
	node = sy__tree_node(tree, number);
	snprintf(text + used, room - used, "(");
	write_tree(tree, sy__tree_at(&node->left), text, room);
	used = strlen(text);
	snprintf(text + used, room - used, "%zu:%u", offset(node), sy__tree_units(tree, number) * 16);
	write_tree(tree, sy__tree_at(&node->right), text, room);
	used = strlen(text);
	snprintf(text + used, room - used, ")");
}

static void check_tree(struct world *world, const char *expected)
{
	char text[1000] = "";

	write_tree(tree_of(world), sy__tree_at(&tree_of(world)->root), text, sizeof(text));
	CHECK_TEXT(text, expected);
	CHECK_FINE(sy_heap_check(world->heap));
}

/* Takes that many bytes, a multiple of 16, at any multiple of 16 that is free. */
static void *take_bytes(struct world *world, uint32_t bytes)
{
	return take(cache_of(world, bytes, 8, 0), 0);
}

/*
 * The page after five blocks were freed. Blocks of 16 bytes keep them apart; the rest of the page behind the last is free:
 *
 *     offset  0    48   64   144  160  224  240  448  464  560  576
 *     bytes   48   16   80   16   64   16   208  16   96   16   3520
 *             free      free      free      free      free      free
 */
struct yard {
	char *page;
	void *blocks[5], *between[5];
};

static const uint32_t yard_sizes[5] = { 48, 80, 64, 208, 96 };

static struct yard make_yard(struct world *world)
{
	static const unsigned order[5] = { 3, 0, 4, 2, 1 };
	struct yard yard;

	for (unsigned i = 0; i < 5; i++) {
		yard.blocks[i] = kget(world, yard_sizes[i] - 1); /* no power of two: at any multiple of 16 */
		yard.between[i] = kget(world, 16);
	}
	yard.page = yard.blocks[0];
	CHECK_EQUAL(offset(yard.page), 0);
	CHECK_EQUAL(offset(yard.between[4]), 560);
	check_tree(world, "(576:3520)");
	for (unsigned i = 0; i < 5; i++)
		kput(world, yard.blocks[order[i]]);
	return yard;
}

static void test_the_tree(void)
{
	struct world world = make_world("sunos4", LEFTMOST, 0, 1);

	make_yard(&world);
	check_tree(&world, "((((0:48)64:80(160:64))240:208(464:96))576:3520)");
	CHECK_EQUAL(world.heap->policy->unused_bytes(world.heap), 4096 - 5 * 16);
	end(&world);
}

static void test_leftmost_fit(void)
{
	struct world world = make_world("sunos4", LEFTMOST, 0, 1);
	struct yard yard = make_yard(&world);

	/* 48 is too small; of the block of 80, 16 are left. */
	CHECK((char *)take_bytes(&world, 64) == yard.page + 64);
	check_tree(&world, "((((0:48(128:16))160:64)240:208(464:96))576:3520)");
	/* The first exactly. */
	CHECK((char *)take_bytes(&world, 48) == yard.page);
	check_tree(&world, "((((128:16)160:64)240:208(464:96))576:3520)");
	/* 16 and 64 are too small, 208 is before 96; what is left of it is still above its sons. */
	CHECK((char *)take_bytes(&world, 96) == yard.page + 240);
	check_tree(&world, "((((128:16)160:64)336:112(464:96))576:3520)");
	/* Now what is left is below them. */
	CHECK((char *)take_bytes(&world, 80) == yard.page + 336);
	check_tree(&world, "((((128:16)160:64(416:32))464:96)576:3520)");
	/* Only the root is large enough. */
	CHECK((char *)take_bytes(&world, 112) == yard.page + 576);
	check_tree(&world, "((((128:16)160:64(416:32))464:96)688:3408)");
	end(&world);
}

static void test_better_fit(void)
{
	struct world world = make_world("sunos4", BETTER, 0, 1);
	struct yard yard = make_yard(&world);

	/* From 208 to the smaller of 80 and 96, and from 80 to its right son, which fits exactly. */
	CHECK((char *)take_bytes(&world, 64) == yard.page + 160);
	check_tree(&world, "((((0:48)64:80)240:208(464:96))576:3520)");
	/* From 208 to the right, as 80 is too small. */
	CHECK((char *)take_bytes(&world, 96) == yard.page + 464);
	check_tree(&world, "((((0:48)64:80)240:208)576:3520)");
	/* 80 has no son that is large enough: 16 are left of it. */
	CHECK((char *)take_bytes(&world, 64) == yard.page + 64);
	check_tree(&world, "(((0:48(128:16))240:208)576:3520)");
	CHECK((char *)take_bytes(&world, 16) == yard.page + 128);
	check_tree(&world, "(((0:48)240:208)576:3520)");
	end(&world);
}

/* The smaller son on the right: 80 bytes for a request of 80, not the 96 that leftmost fit takes. */
static void test_better_fit_goes_to_the_smaller_son(void)
{
	static const size_t sizes[3] = { 96, 208, 80 };

	for (int64_t fit = LEFTMOST; fit <= BETTER; fit++) {
		struct world world = make_world("sunos4", fit, 0, 1);
		void *objects[3];

		for (unsigned i = 0; i < 3; i++) {
			objects[i] = kget(&world, sizes[i] - 1);
			kget(&world, 16);
		}
		for (unsigned i = 0; i < 3; i++)
			kput(&world, objects[i]);
		check_tree(&world, "(((0:96)112:208(336:80))432:3664)");
		CHECK(take_bytes(&world, 80) == objects[fit == BETTER ? 2 : 0]);
		end(&world);
	}
}

static unsigned depth_of(const struct sy__tree *tree, uint64_t number)
{
	unsigned left, right;

	if (!number)
		return 0;
	left = depth_of(tree, sy__tree_at(&sy__tree_node(tree, number)->left));
	right = depth_of(tree, sy__tree_at(&sy__tree_node(tree, number)->right));
	return 1 + (left > right ? left : right);
}

/* 1000 equal holes, made in order of address or against it: a random tree of as many is 22 deep. Always the same tree. */
static void test_equal_blocks_are_no_list(void)
{
	static void *objects[2000];
	unsigned depths[2];

	for (unsigned backwards = 0; backwards < 2; backwards++) {
		struct world world = make_world("sunos4", LEFTMOST, -1, 1);

		for (unsigned i = 0; i < 2000; i++)
			objects[i] = kget(&world, 100);
		for (unsigned i = 0; i < 1000; i++)
			sy_kfree(world.heap, 0, objects[backwards ? 1998 - 2 * i : 2 * i]);
		CHECK(tree_of(&world)->blocks >= 1000);
		depths[backwards] = depth_of(tree_of(&world), sy__tree_at(&tree_of(&world)->root));
		CHECK(depths[backwards] < 40);
		CHECK(kget(&world, 100) == objects[0]);
		CHECK(kget(&world, 100) == objects[2]);
		end(&world);
	}
	CHECK_EQUAL(depths[0], depths[1]);
}

static void test_joining_on_both_sides(void)
{
	static const unsigned orders[6][3] = {
		{ 1, 2, 3 }, { 3, 2, 1 }, { 1, 3, 2 }, { 2, 1, 3 }, { 2, 3, 1 }, { 3, 1, 2 },
	};

	for (unsigned i = 0; i < 6; i++) {
		struct world world = make_world("sunos4", (int64_t)i % 2, 0, 1);
		void *objects[5];

		for (unsigned k = 0; k < 5; k++)
			objects[k] = kget(&world, 65); /* 80 */
		for (unsigned k = 0; k < 3; k++)
			kput(&world, objects[orders[i][k]]);
		check_tree(&world, "((80:240)400:3696)");
		kput(&world, objects[4]); /* with both sides */
		check_tree(&world, "(80:4016)");
		kput(&world, objects[0]); /* the whole page, which goes back */
		check_tree(&world, "");
		CHECK_EQUAL(world.heap->counters.slab_pages, 0);
		CHECK_EQUAL(world.heap->counters.slow_frees, 1);
		end(&world);
	}
}

/* Sizes in units of 16 bytes; nothing is ever left that is too small. */
static void test_rounding(void)
{
	static const size_t sizes[][2] = {
		{ 0, 16 },      { 1, 16 },      { 16, 16 },     { 17, 32 },      { 65, 80 },       { 300, 304 },
		{ 4097, 4112 }, { 8191, 8192 }, { 8192, 8192 }, { 8193, 16384 }, { 16385, 32768 },
	};
	struct world world = make_world("sunos4", -1, 2, 1);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK_EQUAL(usable(&world, sizes[i][0]), sizes[i][1]);
	CHECK_EQUAL(world.heap->counters.slab_pages + world.heap->counters.large_pages, 0);
	end(&world);
}

static void test_alignment_leaves_what_it_skips(void)
{
	for (int64_t fit = LEFTMOST; fit <= BETTER; fit++) {
		struct world world = make_world("sunos4", fit, 0, 1);

		CHECK_EQUAL(offset(kget(&world, 1)), 0);
		CHECK_EQUAL(offset(kget(&world, 64)), 64);
		check_tree(&world, "((16:48)128:3968)");
		CHECK_EQUAL(offset(kget(&world, 2048)), 2048);
		check_tree(&world, "((16:48)128:1920)");
		CHECK_EQUAL(offset(kget(&world, 33)), 16);
		check_tree(&world, "(128:1920)");
		end(&world);
	}
}

/* A hole of 64 bytes from 48 on has no room for an aligned 64; the one behind it, from 128 on, has. */
static void test_alignment_looks_at_the_next_blocks(void)
{
	struct world world = make_world("sunos4", LEFTMOST, 0, 1);
	void *first, *second;

	take_bytes(&world, 48);
	first = kget(&world, 63);
	take_bytes(&world, 16);
	second = kget(&world, 64);
	take_bytes(&world, 16);
	CHECK_EQUAL(offset(first), 48);
	CHECK_EQUAL(offset(second), 128);
	kput(&world, first);
	kput(&world, second);
	CHECK_EQUAL(tree_of(&world)->blocks, 3);
	CHECK(kget(&world, 64) == second);
	CHECK(kget(&world, 63) == first);
	end(&world);
}

static void test_chunks(void)
{
	struct world world = make_world("sunos4", LEFTMOST, 2, 1);
	struct sy_heap_counters *counters = &world.heap->counters;
	char *five, *two, *large;

	five = kget(&world, 5000); /* 5008: across a page's end */
	CHECK_EQUAL(counters->slab_pages, 4);
	two = kget(&world, 2000);
	CHECK(two == five + 5008);
	large = kget(&world, 8193);
	CHECK_EQUAL(counters->large_pages, 4);
	kget(&world, 8000);
	CHECK_EQUAL(counters->slab_pages, 4);
	kget(&world, 8000);
	CHECK_EQUAL(counters->slab_pages, 8);
	kput(&world, five);
	kput(&world, two);
	kput(&world, large);
	CHECK_EQUAL(counters->slab_pages, 8);
	CHECK_EQUAL(sy_heap_shrink(world.heap), 0);
	end(&world);
}

/* Chunks side by side in memory: their free blocks touch, and stay apart, whichever was freed first. */
static void test_chunks_are_not_joined(void)
{
	for (unsigned first = 0; first <= 15; first += 15) {
		struct world world = make_world("sunos4", LEFTMOST, 0, 1);
		void *objects[4 * 16];
		unsigned neighbours = 0;

		for (unsigned i = 0; i < 4 * 16; i++)
			objects[i] = kget(&world, 256);
		CHECK_EQUAL(world.heap->counters.slab_pages, 4);
		for (unsigned i = 0; i < 4; i++) {
			for (unsigned k = 0; k < 4; k++)
				neighbours += (char *)objects[i * 16] + SY_PAGE_SIZE == (char *)objects[k * 16];
			kput(&world, objects[i * 16 + first]);
		}
		CHECK(neighbours > 0);
		for (unsigned i = 0; i < 4; i++)
			kput(&world, objects[i * 16 + 15 - first]);
		CHECK_EQUAL(tree_of(&world)->blocks, 8);
		for (unsigned i = 0; i < 4; i++)
			for (unsigned k = 1; k < 15; k++)
				kput(&world, objects[i * 16 + k]);
		CHECK_EQUAL(world.heap->counters.slab_pages, 0);
		end(&world);
	}
}

/* With keep=on a chunk that is wholly free stays, and serves the next request. */
static void test_a_chunk_that_is_kept(void)
{
	struct sy_pages_config machine = machine_of(1, 1, WORLD_PAGES);
	struct sy_heap_config config = config_of("sunos4", 1, 1);
	struct world world;
	void *object;

	config.tunables[2] = 1;
	world = make_on(&machine, &config);
	object = kget(&world, 100);
	kput(&world, object);
	CHECK_EQUAL(world.heap->counters.slab_pages, 4);
	CHECK_EQUAL(sy_heap_shrink(world.heap), 0);
	check_tree(&world, "(0:16384)");
	CHECK(kget(&world, 8000) == object);
	end(&world);
}

/* Free blocks that get larger with their address: the tree is a list, as deep as it has blocks. */
static void test_a_tree_as_deep_as_it_can_be(void)
{
	struct world world = make_world("sunos4", LEFTMOST, 5, 1);
	void *objects[60];

	for (unsigned i = 0; i < 60; i++) {
		objects[i] = kget(&world, 16 * (i + 2) - 1);
		kget(&world, 16);
	}
	for (unsigned i = 0; i < 60; i++)
		kput(&world, objects[i]);
	CHECK_EQUAL(tree_of(&world)->blocks, 61);
	for (unsigned i = 60; i-- > 0;)
		CHECK(kget(&world, 16 * (i + 2) - 1) == objects[i]);
	CHECK_EQUAL(tree_of(&world)->blocks, 1);
	end(&world);
}

static void test_the_check_finds_damage(void)
{
	struct world world = make_world("sunos4", LEFTMOST, 0, 1);
	struct yard yard = make_yard(&world);
	struct sy__general_heap *general = (struct sy__general_heap *)(void *)world.heap;
	struct sy__tree *tree = tree_of(&world);
	uint32_t *starts = SY_SLAB_STATE(struct sy__general_page, sy__head_of(world.heap, yard.page))->map;
	struct sy__tree_node *of_208 = yard.blocks[3], *of_96 = yard.blocks[4], was = *of_208;
	uint64_t right = of_96->right;

	CHECK_FINDS(&world, tree->blocks++, tree->blocks--,
	            "sunos4: a tree counts other blocks than going down by address finds");
	CHECK_FINDS(&world, tree->units--, tree->units++,
	            "sunos4: a tree counts other blocks than going down by address finds");
	CHECK_FINDS(&world, general->live++, general->live--,
	            "sunos4: the blocks that are not free are not as many as the objects in use");
	CHECK_FINDS(&world, sy__starts_clear(starts, 0), sy__starts_set(starts, 0),
	            "sunos4: no block starts where a chunk does");
	CHECK_FINDS(&world, sy__starts_clear(starts, 3), sy__starts_set(starts, 3),
	            "sunos4: a free block's size in the tree is not that in the map");
	CHECK_FINDS(&world, of_96->right += 20, of_96->right = right, "sunos4: a free block stands above a larger one");
	CHECK_FINDS(&world, sy__tree_set(&of_208->left, sy__tree_at(&of_208->right)), *of_208 = was,
	            "sunos4: a free block stands on the wrong side of one above it");
	end(&world);
}

int main(void)
{
	test_the_tree();
	test_leftmost_fit();
	test_better_fit();
	test_better_fit_goes_to_the_smaller_son();
	test_equal_blocks_are_no_list();
	test_joining_on_both_sides();
	test_rounding();
	test_alignment_leaves_what_it_skips();
	test_alignment_looks_at_the_next_blocks();
	test_chunks();
	test_chunks_are_not_joined();
	test_a_chunk_that_is_kept();
	test_smaller_pools_where_memory_has_crumbled("sunos4", LEFTMOST, 2);
	test_a_tree_as_deep_as_it_can_be();
	test_the_check_finds_damage();
	general_tests("sunos4");
	return check_result();
}
