/*
 * SLOB by worked examples: every figure below is computed by hand from the rules in the opening comment of slob.c.
 *
 * The arithmetic that most of them share: a page is 4096 bytes. A cache of 248-byte objects puts 16 of them into a page (3968
 * bytes) and leaves 128 bytes at its end. kmalloc's header takes 8 bytes in front of the object. Small requests are those
 * below 256 bytes, header included.
 *
 * Where an object stands is told by its offset in its page, and whether two share a page; never by its address.
 */
#include "policy_support.h"

#define SMALL_OBJECT 248
#define PER_PAGE 16
#define TAIL_OFFSET (PER_PAGE * SMALL_OBJECT)

enum { NEXT, FIRST, BEST };

/* A heap on that many nodes of 1024 pages each. */
static struct world make_world(int64_t fit, int64_t log_every, unsigned nodes)
{
	struct sy_pages_config machine = machine_of(1, nodes, 1024);
	struct sy_heap_config config = config_of("slob", 1, nodes);

	config.tunables[0] = fit;
	config.tunables[1] = log_every;
	return make_on(&machine, &config);
}

static void *get(struct sy_cache *cache)
{
	return sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
}

static void *kget(struct world *world, size_t size)
{
	return sy_kmalloc(world->heap, 0, size, 0, SY_ANY_NODE);
}

/* ---- kmalloc -------------------------------------------------------------------------------------------------- */

static void test_header_and_natural_alignment(void)
{
	struct world world = make_world(NEXT, 0, 1);
	char *a = kget(&world, 100); /* 108 bytes from 0 */
	char *b = kget(&world, 7);   /* behind a at 108 the object would be at 116: the block starts at 112, up to 128 */
	char *c = kget(&world, 64);  /* a power of two: the object is at 192 */
	char *d = kget(&world, 1);   /* the 4 bytes at 108 are too few; the first fit is the gap before c */
	char *e = kget(&world, 48);  /* no power of two: 56 bytes don't fit between d and c's header; behind c */

	CHECK_EQUAL(offset(a), 8);
	CHECK_EQUAL(offset(b), 120);
	CHECK_EQUAL(offset(c), 192);
	CHECK_EQUAL(offset(d), 136);
	CHECK_EQUAL(offset(e), 264);
	CHECK(same_page(a, e));
	CHECK_EQUAL(*(uint32_t *)(void *)(a - 8), 100);
	CHECK_EQUAL(sy_usable_size(world.heap, a), 100);
	CHECK_EQUAL(sy_usable_size(world.heap, b), 8);
	CHECK_EQUAL(sy_usable_size(world.heap, d), 2);
	sy_kfree(world.heap, 0, a);
	sy_kfree(world.heap, 0, b);
	sy_kfree(world.heap, 0, c);
	sy_kfree(world.heap, 0, d);
	CHECK_EQUAL(world.heap->counters.slab_pages, 1);
	sy_kfree(world.heap, 0, e);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static void test_every_power_of_two_is_aligned(void)
{
	struct world world = make_world(NEXT, 0, 1);

	for (size_t size = 8; size <= 8192; size *= 2)
		for (unsigned i = 0; i < 5; i++)
			CHECK_EQUAL((uintptr_t)kget(&world, size) % (size < SY_PAGE_SIZE ? size : SY_PAGE_SIZE), 0);
	end(&world);
}

/* A heap may want more alignment than its sizes have. A page's note of a request that it refused then also holds for other
 * requests. Sizes are random, and every page is looked through. */
static void test_a_heap_that_is_aligned_more(int64_t fit, uint32_t align)
{
	struct sy_pages_config machine = machine_of(1, 1, 1024);
	struct sy_heap_config config = config_of("slob", 1, 1);
	void *objects[200] = { NULL };
	uint64_t random = 7;
	struct world world;

	config.tunables[0] = fit;
	config.sizing.align = align;
	world = make_on(&machine, &config);
	for (unsigned i = 0; i < 4000; i++) {
		void **object = &objects[check_random(&random) % 200];

		sy_kfree(world.heap, 0, *object);
		*object = kget(&world, 1 + (size_t)(check_random(&random) % (check_random(&random) % 4 ? 200 : 2000)));
		CHECK_EQUAL((uintptr_t)*object % align, 0);
		if (i % 8 == 0)
			CHECK_FINE(sy_heap_check(world.heap));
	}
	for (unsigned i = 0; i < 200; i++)
		sy_kfree(world.heap, 0, objects[i]);
	end(&world);
}

static void test_break_points(void)
{
	struct world world = make_world(NEXT, 0, 1);
	void *small = kget(&world, 247);   /* 255 bytes with its header: small */
	void *medium = kget(&world, 248);  /* 256: medium */
	void *medium2 = kget(&world, 1015);/* 1023: medium */
	void *large = kget(&world, 1016);  /* 1024: large */

	CHECK(!same_page(small, medium));
	CHECK(same_page(medium, medium2));
	CHECK(!same_page(large, small) && !same_page(large, medium));
	CHECK(same_page(small, kget(&world, 1)));
	CHECK(same_page(large, kget(&world, 3000)));
	CHECK(same_page(small, get(cache_of(&world, 254, 0, 0))));
	CHECK(same_page(medium, get(cache_of(&world, 255, 0, 0)))); /* 256 in whole units */
	end(&world);
}

static void test_from_a_page_less_the_header_straight_to_pages(void)
{
	struct world world = make_world(NEXT, 0, 1);
	struct sy_heap_counters *counters = &world.heap->counters;
	void *last = kget(&world, 4087), *first = kget(&world, 4088), *three = kget(&world, 3 * 4096);

	CHECK_EQUAL(offset(last), 8);
	CHECK_EQUAL(counters->slab_pages, 1);
	CHECK_EQUAL(counters->large_pages, 1 + 4);
	CHECK_EQUAL(counters->large_live_bytes, 4088 + 3 * 4096);
	CHECK_EQUAL(sy_usable_size(world.heap, first), 4096);
	CHECK_EQUAL(sy_usable_size(world.heap, three), 4 * 4096);
	CHECK(!kget(&world, (SY_PAGE_SIZE << SY_MAX_ORDER) + 1));
	CHECK(!kget(&world, SIZE_MAX));
	sy_kfree(world.heap, 0, last);
	sy_kfree(world.heap, 0, first);
	sy_kfree(world.heap, 0, three);
	CHECK_EQUAL(counters->slab_pages + counters->large_pages, 0);
	CHECK_EQUAL(counters->slow_allocs, 3);
	CHECK_EQUAL(counters->slow_frees, 3);
	end(&world);
}

static void test_zero_size_is_unique_and_stays_in_its_page(void)
{
	struct world world = make_world(NEXT, 0, 1);
	void *a = kget(&world, 0), *b = kget(&world, 0);

	CHECK(a && b && a != b);
	CHECK_EQUAL(offset(a), 8);
	CHECK_EQUAL(offset(b), 24); /* a ends at 10; 10 + 8 rounds up to 24 */
	sy_kfree(world.heap, 0, a);
	sy_kfree(world.heap, 0, b);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static void test_zero_flag(void)
{
	struct world world = make_world(NEXT, 0, 1);
	unsigned char *object = kget(&world, 333);
	unsigned sum = 0;

	memset(object, 0xff, 333);
	void *keep = kget(&world, 333);
	sy_kfree(world.heap, 0, object);
	object = sy_kmalloc(world.heap, 0, 333, SY_ZERO, SY_ANY_NODE);
	CHECK(same_page(object, keep) && offset(object) == 8);
	for (size_t i = 0; i < sy_usable_size(world.heap, object); i++)
		sum += object[i];
	CHECK_EQUAL(sum, 0);
	end(&world);
}

/* ---- Which block ---------------------------------------------------------------------------------------------- */

/*
 * Three full pages of 248-byte objects, A, B and C in order of age: the list of small requests is C, B, A, each with the
 * 128 bytes at its end. Then A's and B's objects number 5 are freed.
 */
static struct sy_cache *three_pages(struct world *world, void *objects[3][PER_PAGE])
{
	struct sy_cache *cache = cache_of(world, SMALL_OBJECT, 8, 0);

	for (unsigned page = 0; page < 3; page++)
		for (unsigned i = 0; i < PER_PAGE; i++)
			objects[page][i] = get(cache);
	for (unsigned page = 0; page < 3; page++) {
		CHECK(same_page(objects[page][0], objects[page][PER_PAGE - 1]));
		CHECK_EQUAL(offset(objects[page][5]), 5 * SMALL_OBJECT);
	}
	CHECK_EQUAL(world->heap->counters.slab_pages, 3);
	sy_cache_free(cache, 0, objects[0][5]);
	sy_cache_free(cache, 0, objects[1][5]);
	return cache;
}

enum { A, B, C };

static void test_next_fit_begins_where_it_last_served(void)
{
	struct world world = make_world(NEXT, 0, 1);
	void *objects[3][PER_PAGE];
	struct sy_cache *cache = three_pages(&world, objects), *tails = cache_of(&world, 120, 8, 0);

	/* C has too little room; B serves, and the list becomes B, A, C. */
	void *one = get(cache);
	CHECK(same_page(one, objects[B][0]));
	CHECK_EQUAL(offset(one), 5 * SMALL_OBJECT);
	/* B's end, then A's hole of 248 (first fit inside the page), the rest of that hole (128), A's end, C's end. */
	void *two = get(tails), *three = get(tails), *four = get(tails), *five = get(tails), *six = get(tails);
	CHECK(same_page(two, objects[B][0]) && offset(two) == TAIL_OFFSET);
	CHECK(same_page(three, objects[A][0]) && offset(three) == 5 * SMALL_OBJECT);
	CHECK(same_page(four, objects[A][0]) && offset(four) == 5 * SMALL_OBJECT + 120);
	CHECK(same_page(five, objects[A][0]) && offset(five) == TAIL_OFFSET);
	CHECK(same_page(six, objects[C][0]) && offset(six) == TAIL_OFFSET);
	/* Now the list is C, B, A, and only the last 8 bytes of each are free. */
	void *seven = get(cache_of(&world, 8, 8, 0));
	CHECK(same_page(seven, objects[C][0]) && offset(seven) == TAIL_OFFSET + 120);
	end(&world);
}

static void test_first_fit_begins_at_the_front(void)
{
	struct world world = make_world(FIRST, 0, 1);
	void *objects[3][PER_PAGE];
	struct sy_cache *cache = three_pages(&world, objects), *tails = cache_of(&world, 120, 8, 0);
	void *one = get(cache), *two = get(tails), *three = get(tails), *four = get(tails);

	CHECK(same_page(one, objects[B][0]) && offset(one) == 5 * SMALL_OBJECT);
	CHECK(same_page(two, objects[C][0]) && offset(two) == TAIL_OFFSET);
	CHECK(same_page(three, objects[B][0]) && offset(three) == TAIL_OFFSET);
	CHECK(same_page(four, objects[A][0]) && offset(four) == 5 * SMALL_OBJECT);
	end(&world);
}

static void test_best_fit_takes_the_tightest_block(void)
{
	struct world world = make_world(BEST, 0, 1);
	void *objects[3][PER_PAGE];
	struct sy_cache *cache = three_pages(&world, objects), *tails = cache_of(&world, 120, 8, 0);

	CHECK_EQUAL(world.heap->policy->unused_bytes(world.heap), 3 * 128 + 2 * 248);
	sy_cache_free(cache, 0, objects[C][5]);
	/* C's hole of 248 stands before its end of 128, which is tighter; then B's end, A's end, and the holes last. */
	void *one = get(tails), *two = get(tails), *three = get(tails), *four = get(tails), *five = get(tails);
	CHECK(same_page(one, objects[C][0]) && offset(one) == TAIL_OFFSET);
	CHECK(same_page(two, objects[B][0]) && offset(two) == TAIL_OFFSET);
	CHECK(same_page(three, objects[A][0]) && offset(three) == TAIL_OFFSET);
	CHECK(same_page(four, objects[C][0]) && offset(four) == 5 * SMALL_OBJECT);
	/* The 128 bytes that four left are tighter than the holes of B and A. */
	CHECK(same_page(five, objects[C][0]) && offset(five) == 5 * SMALL_OBJECT + 120);
	/* An exact fit in the last page wins over a looser one in the first. */
	void *six = get(cache);
	CHECK(same_page(six, objects[B][0]) && offset(six) == 5 * SMALL_OBJECT);
	end(&world);
}

static void test_best_fit_honours_alignment(void)
{
	struct world world = make_world(BEST, 0, 1);
	struct sy_cache *filler = cache_of(&world, 72, 8, 0), *aligned = cache_of(&world, 64, 64, 0);
	void *fillers[4];

	for (unsigned i = 0; i < 4; i++) /* at 0, 72, 144, 216 */
		fillers[i] = get(filler);
	sy_cache_free(filler, 0, fillers[1]);
	/* The hole of 72 bytes at 72 has no room for 64 bytes at 128; the rest of the page, from 288 on, has room at 320. */
	CHECK_EQUAL(offset(get(aligned)), 320);
	end(&world);
}

static void test_freed_page_joins_the_list_of_the_freed_size(void)
{
	struct world world = make_world(NEXT, 0, 1);
	struct sy_cache *quarter = cache_of(&world, 1024, 8, 0), *small = cache_of(&world, 64, 8, 0);
	void *objects[4], *other = get(small);

	for (unsigned i = 0; i < 4; i++)
		objects[i] = get(quarter); /* exactly a page, full */
	/* The freed size is of the list of large requests: small ones don't see it, large ones do. */
	sy_cache_free(quarter, 0, objects[1]);
	CHECK(same_page(get(small), other));
	CHECK(get(quarter) == objects[1]);
	end(&world);
}

static void test_freed_full_page_is_searched_first(void)
{
	struct world world = make_world(FIRST, 0, 1);
	struct sy_cache *half = cache_of(&world, 2048, 8, 0);
	void *a = get(half), *b = get(half), *c = get(half);

	/* a and b fill a page; c's page has room. Freeing a puts its page before c's. */
	CHECK(same_page(a, b) && !same_page(a, c));
	sy_cache_free(half, 0, a);
	CHECK(get(half) == a);
	CHECK(same_page(get(half), c));
	end(&world);
}

/* ---- Freeing -------------------------------------------------------------------------------------------------- */

static void test_coalescing_on_both_sides(void)
{
	static const unsigned orders[][3] = { { 1, 2, 3 }, { 3, 2, 1 }, { 1, 3, 2 }, { 2, 1, 3 }, { 2, 3, 1 }, { 3, 1, 2 } };

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct world world = make_world(FIRST, 0, 1);
		struct sy_cache *cache = cache_of(&world, 40, 8, 0), *joined = cache_of(&world, 120, 8, 0);
		void *objects[5];

		for (unsigned k = 0; k < 5; k++)
			objects[k] = get(cache);
		for (unsigned k = 0; k < 3; k++) {
			sy_cache_free(cache, 0, objects[orders[i][k]]);
			CHECK_TEXT(sy_heap_check(world.heap), NULL);
		}
		CHECK(get(joined) == objects[1]);
		end(&world);
	}
}

static void test_blocks_of_one_unit(void)
{
	struct world world = make_world(FIRST, 0, 1);
	struct sy_cache *six = cache_of(&world, 6, 8, 0);
	void *a = get(six), *b = get(six), *c = get(six);

	/* 6 bytes at 0, 8 and 16: what alignment skips between them are free blocks of one unit. */
	CHECK_EQUAL(offset(a), 0);
	CHECK_EQUAL(offset(b), 8);
	CHECK_EQUAL(offset(c), 16);
	CHECK_TEXT(sy_heap_check(world.heap), NULL);
	sy_cache_free(six, 0, b); /* joins the blocks on both sides: 10 bytes from 6 */
	CHECK_TEXT(sy_heap_check(world.heap), NULL);
	CHECK(get(six) == b);
	CHECK_TEXT(sy_heap_check(world.heap), NULL);
	end(&world);
}

static void test_page_goes_back_when_free(void)
{
	struct world world = make_world(NEXT, 0, 1);
	void *objects[3][PER_PAGE];
	struct sy_cache *cache = three_pages(&world, objects);

	for (unsigned page = 0; page < 3; page++) {
		for (unsigned i = 0; i < PER_PAGE; i++)
			if (page == C || i != 5)
				sy_cache_free(cache, 0, objects[page][i]);
		CHECK_EQUAL(world.heap->counters.slab_pages, 2 - page);
	}
	CHECK_EQUAL(world.heap->counters.slow_frees, 3);
	CHECK(sy_cache_destroy(cache, NULL));
	end(&world);
}

static void test_wait_for_the_grace_period(void)
{
	struct world world = make_world(NEXT, 0, 1);
	struct sy_cache *cache = cache_of(&world, 100, 0, SY_CACHE_TYPESAFE_BY_RCU);
	uint64_t alive = 0;
	char *object;

	now = 5000;
	CHECK_EQUAL(cache->size, 104 + 3 * sizeof(uint64_t)); /* the object in whole words, and the footer */
	object = get(cache);
	memset(object, 'x', 100);
	CHECK(!sy_cache_destroy(cache, &alive));
	CHECK_EQUAL(alive, 1);
	sy_cache_free(cache, 0, object);
	CHECK_EQUAL(world.heap->counters.deferred, 1);
	now = 5999;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(world.heap->counters.slab_pages, 1);
	for (unsigned i = 0; i < 100; i++)
		CHECK(object[i] == 'x');
	now = 6000;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(world.heap->counters.deferred, 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);

	/* A cache that is destroyed frees its own waiting objects; those of other caches go on waiting. */
	struct sy_cache *other = cache_of(&world, 40, 0, SY_CACHE_TYPESAFE_BY_RCU);
	sy_cache_free(cache, 0, get(cache));
	sy_cache_free(other, 0, get(other));
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(world.heap->counters.deferred, 1);
	CHECK_TEXT(sy_heap_check(world.heap), NULL);
	end(&world);
}

/* ---- Caches --------------------------------------------------------------------------------------------------- */

static unsigned constructed, destroyed;

static void construct(void *object, size_t size)
{
	memset(object, 7, size);
	constructed++;
}

static void destroy(void *object, size_t size)
{
	(void)object;
	(void)size;
	destroyed++;
}

static void test_constructed_at_every_allocation(void)
{
	struct world world = make_world(NEXT, 0, 1);
	struct sy_cache_config config = { .name = "constructed", .size = 100, .constructor = construct, .destructor = destroy };
	struct sy_cache *cache = sy_cache_create(world.heap, &config);

	for (unsigned i = 1; i <= 3; i++) {
		unsigned char *object = get(cache);

		CHECK_EQUAL(constructed, i);
		CHECK(object[0] == 7 && object[99] == 7);
		memset(object, 0, 100);
		sy_cache_free(cache, 0, object);
		CHECK_EQUAL(destroyed, i);
	}
	end(&world);
}

static void test_cache_objects_of_a_page_and_more(void)
{
	struct world world = make_world(NEXT, 0, 1);
	struct sy_cache *below = cache_of(&world, 4094, 0, 0), *page = cache_of(&world, 4096, 0, 0);
	struct sy_cache *more = cache_of(&world, 4097, 4096, 0);
	struct sy_cache_counts counts;
	uint64_t alive;
	void *a = get(below), *b = get(page), *c = get(more);

	CHECK_EQUAL(world.heap->counters.slab_pages, 1);
	CHECK_EQUAL(world.heap->counters.large_pages, 1 + 2);
	CHECK_EQUAL(offset(c), 0);
	sy_cache_count(more, &counts);
	CHECK_EQUAL(counts.objects_in_use, 1);
	CHECK(!sy_cache_destroy(more, &alive));
	sy_cache_free(below, 0, a);
	sy_cache_free(page, 0, b);
	sy_cache_free(more, 0, c);
	CHECK(sy_cache_destroy(more, &alive));
	CHECK_EQUAL(world.heap->counters.slab_pages + world.heap->counters.large_pages, 0);
	end(&world);
}

/* With a header of 8 bytes as kmalloc's: objects of 248 take 256 bytes, which is no small request any more. */
static void test_objects_of_caches_that_kfree_frees(void)
{
	struct world world = make_world(NEXT, 0, 1);
	struct sy_cache *cache = cache_of(&world, SMALL_OBJECT, 0, SY_CACHE_KFREE), *lined = cache_of(&world, 100, 64, SY_CACHE_KFREE);
	struct sy_cache *nearly = cache_of(&world, 4090, 0, SY_CACHE_KFREE), *aligned = cache_of(&world, 4000, 128, SY_CACHE_KFREE);
	struct sy_cache *typesafe = cache_of(&world, 100, 0, SY_CACHE_KFREE | SY_CACHE_TYPESAFE_BY_RCU);
	char *a = get(cache), *b = get(cache), *c = get(cache), *d = get(lined), *e = get(nearly), *f = get(typesafe);

	CHECK_EQUAL(offset(a), 8);
	CHECK_EQUAL(offset(b), 264);
	CHECK_EQUAL(offset(c), 520);
	CHECK_EQUAL(offset(d), 64); /* in a page of small requests; the header is at 56 */
	CHECK_EQUAL(world.heap->counters.large_pages, 1); /* 4090 and a header are no block any more */
	CHECK_EQUAL(offset(f), 168); /* behind d, with no header */
	CHECK_EQUAL(sy_usable_size(world.heap, a), SMALL_OBJECT);
	CHECK(!sy_heap_check(world.heap));
	sy_kfree(world.heap, 0, b);
	CHECK(get(cache) == b);
	sy_kfree(world.heap, 0, a);
	sy_cache_free(cache, 0, b);
	sy_cache_free(cache, 0, c);
	sy_kfree(world.heap, 0, d);
	sy_kfree(world.heap, 0, e);
	CHECK(!sy_heap_check(world.heap));
	sy_cache_free(typesafe, 0, f);
	CHECK_EQUAL(offset(a = get(aligned)), 0); /* at 128 behind a header it would not fit */
	sy_kfree(world.heap, 0, a);
	end(&world);
}

static void test_nodes(void)
{
	struct world world = make_world(NEXT, 0, 2);
	struct sy_cache *cache = cache_of(&world, 64, 0, 0);
	void *here = sy_cache_alloc(cache, 0, 0, 0), *there = sy_cache_alloc(cache, 0, 0, 1);
	void *here2 = sy_cache_alloc(cache, 0, 0, 0);

	CHECK_EQUAL(sy__page_of(world.heap, here)->node, 0);
	CHECK_EQUAL(sy__page_of(world.heap, there)->node, 1);
	CHECK(same_page(here, here2));
	end(&world);
}

/* A search for one node stops early, and other searches find what it has not looked at: 16 pages of node 1 are a segment,
 * whose rest suits best. */
static void test_best_fit_beyond_a_node(void)
{
	struct world world = make_world(BEST, 0, 2);
	struct sy_cache *large = cache_of(&world, 1500, 0, 0), *rest = cache_of(&world, 1040, 0, 0);

	for (unsigned i = 0; i < 32; i++)
		CHECK_EQUAL(sy__page_of(world.heap, sy_cache_alloc(large, 0, 0, 1))->node, 1);
	CHECK_EQUAL(sy__page_of(world.heap, sy_cache_alloc(rest, 0, 0, 0))->node, 0);
	CHECK_EQUAL(sy__page_of(world.heap, get(rest))->node, 1);
	CHECK_TEXT(sy_heap_check(world.heap), NULL);
	end(&world);
}

/* More pages than a heap has segments for, until they are divided anew. */
static void test_best_fit_in_many_pages(void)
{
	struct world world = make_world(BEST, 0, 3);
	struct sy_cache *cache = cache_of(&world, 3000, 0, 0);
	static void *objects[3 * 1024 + 1];
	size_t count = 0;

	while ((objects[count] = get(cache)))
		count++;
	CHECK(count > 2500);
	CHECK_TEXT(sy_heap_check(world.heap), NULL);
	for (size_t i = 0; i < count; i += 2)
		sy_cache_free(cache, 0, objects[i]);
	CHECK_TEXT(sy_heap_check(world.heap), NULL);
	for (size_t i = 0; i < count; i += 2)
		CHECK((objects[i] = kget(&world, 3000)));
	CHECK_TEXT(sy_heap_check(world.heap), NULL);
	end(&world);
}

/* ---- Running out ---------------------------------------------------------------------------------------------- */

static void test_out_of_memory(void)
{
	for (int64_t fit = NEXT; fit <= BEST; fit++) {
		struct world world = make_world(fit, 0, 1);
		struct sy_cache *cache = cache_of(&world, 2048, 0, 0);
		static void *objects[2 * 1024 + 1];
		size_t count = 0;

		while ((objects[count] = get(cache)))
			count++;
		CHECK(count > 1000 && count <= 2 * 1024);
		CHECK(!kget(&world, 2048));
		CHECK(!kget(&world, 3 * 4096));
		CHECK_TEXT(sy_heap_check(world.heap), NULL);
		CHECK(world.heap->counters.page_failures > 0);
		sy_cache_free(cache, 0, objects[count / 2]);
		CHECK(get(cache) == objects[count / 2]);
		while (count)
			sy_cache_free(cache, 0, objects[--count]);
		CHECK_EQUAL(world.heap->counters.slab_pages, 0);
		end(&world);
	}
}

/* ---- The log -------------------------------------------------------------------------------------------------- */

static char log_text[1000];

static void record_log(void *context, const char *event, const uint64_t *values, unsigned count)
{
	char *text = context;
	size_t used = strlen(text);

	used += (size_t)snprintf(text + used, sizeof(log_text) - used, "%s", event);
	for (unsigned i = 0; i < count; i++)
		used += (size_t)snprintf(text + used, sizeof(log_text) - used, " %llu", (unsigned long long)values[i]);
	snprintf(text + used, sizeof(log_text) - used, "\n");
}

static void expect_log(const char *expected)
{
	CHECK_TEXT(log_text, expected);
	log_text[0] = '\0';
}

static void test_log_of_best_fit(void)
{
	struct world world = make_world(BEST, 1, 1);
	void *objects[3][PER_PAGE];
	struct sy_cache *cache = three_pages(&world, objects), *tails = cache_of(&world, 120, 8, 0);

	world.heap->log = record_log;
	world.heap->log_context = log_text;
	get(tails);
	expect_log("slob_request 120\nslob_candidates 128 248 128 248 128\nslob_chosen 128\n");
	/* Pages with too few free units are not looked at, and the exact fit ends the search. */
	get(cache);
	expect_log("slob_request 248\nslob_candidates 248\nslob_chosen 248\n");
	kget(&world, 500);
	expect_log("slob_request 508\nslob_candidates\nslob_chosen 0\n");
	end(&world);
}

static void test_log_every_third(void)
{
	struct world world = make_world(NEXT, 3, 1);
	struct sy_cache *cache = cache_of(&world, 1000, 8, 0);

	world.heap->log = record_log;
	world.heap->log_context = log_text;
	get(cache);
	get(cache);
	expect_log("");
	get(cache);
	expect_log("slob_request 1000\nslob_candidates 2096\nslob_chosen 2096\n");
	for (unsigned i = 0; i < 2; i++)
		get(cache);
	expect_log("");
	get(cache);
	expect_log("slob_request 1000\nslob_candidates 3096\nslob_chosen 3096\n");
	end(&world);
}

int main(void)
{
	test_header_and_natural_alignment();
	test_every_power_of_two_is_aligned();
	for (int64_t fit = NEXT; fit <= BEST; fit++)
		for (uint32_t align = 16; align <= 256; align *= 4)
			test_a_heap_that_is_aligned_more(fit, align);
	test_break_points();
	test_from_a_page_less_the_header_straight_to_pages();
	test_zero_size_is_unique_and_stays_in_its_page();
	test_zero_flag();
	test_next_fit_begins_where_it_last_served();
	test_first_fit_begins_at_the_front();
	test_best_fit_takes_the_tightest_block();
	test_best_fit_honours_alignment();
	test_freed_page_joins_the_list_of_the_freed_size();
	test_freed_full_page_is_searched_first();
	test_coalescing_on_both_sides();
	test_blocks_of_one_unit();
	test_page_goes_back_when_free();
	test_wait_for_the_grace_period();
	test_constructed_at_every_allocation();
	test_cache_objects_of_a_page_and_more();
	test_objects_of_caches_that_kfree_frees();
	test_nodes();
	test_best_fit_beyond_a_node();
	test_best_fit_in_many_pages();
	test_out_of_memory();
	test_log_of_best_fit();
	test_log_every_third();
	return check_result();
}
