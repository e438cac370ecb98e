/*
 * Bugs with caches and heaps of slabyard.h. The heap is as the environment variable SLABYARD says, and is never closed unless a
 * bug is about that.
 */
#include "planted.h"

#include <slabyard/slabyard.h>

static NO_INLINE struct sy_heap *open_heap(void)
{
	const char *error;
	struct sy_heap *heap = sy_heap_open(getenv("SLABYARD"), NULL, &error);

	need(heap != NULL, error);
	return heap;
}

static struct sy_heap *the_heap, *another_heap;
static struct sy_cache *cache, *another_cache;

static NO_INLINE struct sy_cache *create(struct sy_heap *heap, const char *name, size_t size)
{
	struct sy_cache_config config = {.name = name, .size = size};
	struct sy_cache *made = sy_cache_create(heap, &config);

	need(made != NULL, "no cache");
	return made;
}

/* Opens the heap, with a cache of objects of a size. */
static NO_INLINE void have(size_t size)
{
	the_heap = open_heap();
	cache = create(the_heap, "planted", size);
}

static NO_INLINE unsigned char *cache_allocate_it(void)
{
	unsigned char *object = (unsigned char *)sy_alloc(cache, 0);

	OPAQUE(object);
	need(object != NULL, "no memory");
	return object;
}

static NO_INLINE void cache_free_it(struct sy_cache *from, void *object)
{
	sy_free(from, object);
	NOT_LAST();
}

static NO_INLINE unsigned char *heap_allocate_it(size_t size)
{
	unsigned char *object = (unsigned char *)sy_malloc(the_heap, size, 0);

	OPAQUE(object);
	need(object != NULL, "no memory");
	return object;
}

static NO_INLINE void heap_free_it(struct sy_heap *heap, void *object)
{
	sy_mfree(heap, object);
	NOT_LAST();
}

static NO_INLINE void press_cache(unsigned count)
{
	static void *objects[MOST_PRESSED];

	for (unsigned i = 0; i < count; i++)
		objects[i] = cache_allocate_it();
	for (unsigned i = 0; i < count; i++) {
		cache_free_it(cache, objects[i]);
		objects[i] = NULL;
	}
}

/* ---- Overflows -------------------------------------------------------------------------------------------------- */

static void damage_beside(size_t size, long offset, size_t count)
{
	unsigned char *object;

	have(size);
	object = cache_allocate_it();
	memset(object, 'o', size);
	expect(object + offset);
	damage_it(object + offset, count);
	cache_free_it(cache, object);
}

/* 1 byte past a cache's object of 40. */
BUG(by_1_of_40, PAST_END, "cache_allocate_it")
{
	damage_beside(40, 40, 1);
}

/* 1 byte past a cache's object of 45, an odd size. */
BUG(by_1_of_45, PAST_END, "cache_allocate_it")
{
	damage_beside(45, 45, 1);
}

/* 8 bytes past a cache's object of 256. */
BUG(by_8_of_256, PAST_END, "cache_allocate_it")
{
	damage_beside(256, 256, 8);
}

/* 16 bytes past a cache's object of 3000. */
BUG(by_16_of_3000, PAST_END, "cache_allocate_it")
{
	damage_beside(3000, 3000, 16);
}

/* 8 bytes before a cache's object of 64. */
BUG(before_64_by_8, BEFORE_START, "cache_allocate_it")
{
	damage_beside(64, -8, 8);
}

/* 1 byte past 100 bytes of sy_malloc. */
BUG(by_1_of_sy_malloc, PAST_END, "heap_allocate_it")
{
	unsigned char *object;

	the_heap = open_heap();
	object = heap_allocate_it(100);
	expect(object + 100);
	damage_it(object + 100, 1);
	heap_free_it(the_heap, object);
}

/* 8 bytes past 100,000 of sy_malloc. */
BUG(by_8_of_large_sy_malloc, PAST_END, "heap_allocate_it")
{
	unsigned char *object;

	the_heap = open_heap();
	object = heap_allocate_it(100000);
	expect(object + 100000);
	damage_it(object + 100000, 8);
	heap_free_it(the_heap, object);
}

/* ---- Writes after the free -------------------------------------------------------------------------------------- */

#define USE(id) BUG(id, AFTER_FREE, "cache_allocate_it cache_free_it")

/* A cache's object is written at once after its free. */
USE(written_at_once)
{
	unsigned char *object;

	have(88);
	object = cache_allocate_it();
	cache_free_it(cache, object);
	expect(object + 24);
	damage_it(object + 24, 8);
	press_cache(300);
}

/* A cache's object is written after 400 others were allocated and freed. */
USE(written_after_400_others)
{
	unsigned char *object;

	have(88);
	object = cache_allocate_it();
	cache_free_it(cache, object);
	press_cache(400);
	expect(object + 24);
	damage_it(object + 24, 8);
	press_cache(400);
}

/* A cache's object is written after its free, and the cache then destroyed. */
USE(written_before_the_cache_goes)
{
	unsigned char *object;

	have(200);
	object = cache_allocate_it();
	cache_free_it(cache, object);
	expect(object + 100);
	damage_it(object + 100, 4);
	need(sy_cache_destroy(cache, NULL), "the cache has objects");
}

/* ---- Frees ------------------------------------------------------------------------------------------------------ */

#define TWICE(id) BUG(id, DOUBLE_FREE, "cache_allocate_it cache_free_it")

/* A cache's object is freed twice in a row. */
TWICE(freed_twice)
{
	unsigned char *object;

	have(48);
	object = cache_allocate_it();
	cache_free_it(cache, object);
	expect(object);
	cache_free_it(cache, object);
}

/* A cache's object is freed twice, with hundreds between. */
TWICE(freed_twice_with_300_between)
{
	unsigned char *object;

	have(48);
	object = cache_allocate_it();
	cache_free_it(cache, object);
	press_cache(300);
	expect(object);
	cache_free_it(cache, object);
}

static void *free_in_thread(void *object)
{
	cache_free_it(cache, object);
	return NULL;
}

/* A cache's object is freed by two threads, one after the other. */
TWICE(freed_by_two_threads)
{
	unsigned char *object;

	have(136);
	object = cache_allocate_it();
	in_a_thread(free_in_thread, object);
	expect(object);
	in_a_thread(free_in_thread, object);
}

static NO_INLINE void bulk_free_it(unsigned count, void **objects)
{
	sy_free_bulk(cache, count, objects);
	NOT_LAST();
}

/* An array of sy_free_bulk has an object twice. */
BUG(twice_in_an_array, DOUBLE_FREE, "cache_allocate_it bulk_free_it")
{
	void *objects[4];

	have(72);
	for (unsigned i = 0; i < 3; i++)
		objects[i] = cache_allocate_it();
	objects[3] = objects[1];
	expect(objects[1]);
	bulk_free_it(4, objects);
}

/* An object of sy_malloc is freed twice. */
BUG(mfreed_twice, DOUBLE_FREE, "heap_allocate_it heap_free_it")
{
	unsigned char *object;

	the_heap = open_heap();
	object = heap_allocate_it(300);
	heap_free_it(the_heap, object);
	expect(object);
	heap_free_it(the_heap, object);
}

/* The middle of a cache's object is freed. */
BUG(freed_within, INTERIOR, "cache_allocate_it cache_free_it")
{
	unsigned char *object;

	have(64);
	object = cache_allocate_it();
	expect(object + 32);
	cache_free_it(cache, object + 32);
}

static long static_object[32];

/* Static data is freed to a cache. */
BUG(freed_static_data, FOREIGN, "cache_free_it")
{
	have(256);
	cache_free_it(cache, cache_allocate_it());
	expect(static_object);
	cache_free_it(cache, static_object);
}

/* An array on the stack is freed by sy_mfree. */
BUG(mfreed_the_stack, FOREIGN, "heap_free_it")
{
	long array[8] = {0};

	the_heap = open_heap();
	heap_free_it(the_heap, heap_allocate_it(64));
	expect(array);
	heap_free_it(the_heap, array);
}

/* What malloc gave is freed to a cache. */
BUG(freed_what_malloc_gave, FOREIGN, "cache_free_it")
{
	unsigned char *object = allocate_it(128);

	have(128);
	expect(object);
	cache_free_it(cache, object);
}

/* ---- To the wrong cache ----------------------------------------------------------------------------------------- */

#define WRONG(id) BUG(id, WRONG_CACHE, "cache_allocate_it cache_free_it")

/* An object is freed to another cache of the same size. */
WRONG(to_another_cache_of_the_size)
{
	unsigned char *object;

	have(96);
	another_cache = create(the_heap, "another", 96);
	cache_free_it(another_cache, sy_alloc(another_cache, 0));
	object = cache_allocate_it();
	expect(object);
	cache_free_it(another_cache, object);
}

/* An object is freed to a cache of larger ones. */
WRONG(to_a_cache_of_larger_ones)
{
	unsigned char *object;

	have(96);
	another_cache = create(the_heap, "another", 1000);
	object = cache_allocate_it();
	expect(object);
	cache_free_it(another_cache, object);
}

/* An object is freed to a cache of another heap. */
BUG(to_a_cache_of_another_heap, WRONG_CACHE, "cache_free_it")
{
	unsigned char *object;

	have(96);
	another_heap = open_heap();
	another_cache = create(another_heap, "another", 96);
	cache_free_it(another_cache, sy_alloc(another_cache, 0));
	object = cache_allocate_it();
	expect(object);
	expect_kind(FOREIGN, object);
	cache_free_it(another_cache, object);
}

/* An object of sy_malloc is freed to a cache of its size. */
BUG(of_sy_malloc_to_a_cache, WRONG_CACHE, "heap_allocate_it cache_free_it")
{
	unsigned char *object;

	have(128);
	cache_free_it(cache, cache_allocate_it());
	object = heap_allocate_it(128);
	expect(object);
	cache_free_it(cache, object);
}

/* An object of sy_malloc is freed to another heap. */
BUG(mfreed_to_another_heap, WRONG_CACHE, "heap_free_it")
{
	unsigned char *object;

	the_heap = open_heap();
	another_heap = open_heap();
	object = heap_allocate_it(128);
	expect(object);
	expect_kind(FOREIGN, object);
	heap_free_it(another_heap, object);
}

/* ---- Leaks ------------------------------------------------------------------------------------------------------ */

/* A cache's object is lost. */
BUG(lost_object, LEAK, "cache_allocate_it")
{
	unsigned char *object;

	have(104);
	object = cache_allocate_it();
	expect_leak(object, 104);
}

/* An object of sy_malloc is lost. */
BUG(lost_memory, LEAK, "heap_allocate_it")
{
	unsigned char *object;

	the_heap = open_heap();
	object = heap_allocate_it(2222);
	expect_leak(object, 2222);
}

/* ---- No bug ----------------------------------------------------------------------------------------------------- */

/* Objects of several caches, written to the last byte and freed in another order. */
SILENT(caches_used_well)
{
	struct sy_cache *caches[4];
	unsigned char *objects[4][50];
	static const size_t sizes[4] = {8, 45, 520, 5000};

	the_heap = open_heap();
	for (unsigned c = 0; c < 4; c++) {
		caches[c] = create(the_heap, "used well", sizes[c]);
		for (unsigned i = 0; i < 50; i++) {
			objects[c][i] = (unsigned char *)sy_alloc(caches[c], i % 2 ? SY_ZERO : 0);
			need(objects[c][i] && (i % 2 == 0 || objects[c][i][sizes[c] - 1] == 0), "an object is not zero");
			memset(objects[c][i], (int)i, sizes[c]);
		}
	}
	for (unsigned i = 0; i < 50; i++)
		for (unsigned c = 0; c < 4; c++) {
			need(objects[c][i * 7 % 50][sizes[c] - 1] == i * 7 % 50, "an object was changed");
			sy_free(caches[c], objects[c][i * 7 % 50]);
		}
	for (unsigned c = 0; c < 4; c++)
		need(sy_cache_destroy(caches[c], NULL), "a cache has objects");
	need(sy_heap_check(the_heap) == NULL, "the heap is damaged");
	sy_heap_close(the_heap);
}

/* A heap is closed with objects in it, which is allowed. */
SILENT(heap_closed_with_objects)
{
	have(80);
	for (unsigned i = 0; i < 20; i++) {
		memset(cache_allocate_it(), 1, 80);
		memset(heap_allocate_it(500 * i), 1, 500 * i);
	}
	sy_heap_close(the_heap);
}

/* A cache that still has objects is not destroyed, and goes on. */
SILENT(cache_that_is_not_destroyed)
{
	unsigned char *object;
	uint64_t alive = 0;

	have(80);
	object = cache_allocate_it();
	need(!sy_cache_destroy(cache, &alive) && alive == 1, "the cache was destroyed");
	memset(object, 1, 80);
	cache_free_it(cache, object);
	need(sy_cache_destroy(cache, NULL), "the cache has objects");
}

/* All of sy_usable_size is used. */
SILENT(usable_size_used)
{
	the_heap = open_heap();
	for (size_t size = 1; size < 20000; size += 1 + size / 2) {
		unsigned char *object = heap_allocate_it(size);
		size_t usable = sy_usable_size(the_heap, object);

		need(usable >= size, "less is usable than was asked for");
		memset(object, 'u', usable);
		heap_free_it(the_heap, object);
	}
}

static void *use_cache(void *unused)
{
	void *objects[64];

	for (unsigned round = 0; round < 30; round++) {
		unsigned count = sy_alloc_bulk(cache, 0, 64, objects);

		for (unsigned i = 0; i < count; i++)
			memset(objects[i], (int)i, 112);
		sy_free_bulk(cache, count, objects);
	}
	return unused;
}

/* Four threads allocate and free many objects at a time. */
SILENT(threads_with_arrays)
{
	pthread_t threads[4];

	have(112);
	for (unsigned i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, use_cache, NULL);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	need(sy_cache_destroy(cache, NULL), "the cache has objects");
}

static void *volatile kept_object, *volatile kept_memory;

/* Objects that static data points to when the program ends. */
SILENT(kept_to_the_end)
{
	have(56);
	kept_object = cache_allocate_it();
	kept_memory = heap_allocate_it(900);
}

/* Only an object of another cache points to it. */
SILENT(kept_by_another_object)
{
	void **holder;

	have(56);
	another_cache = create(the_heap, "holders", 24);
	holder = (void **)sy_alloc(another_cache, SY_ZERO);
	need(holder != NULL, "no memory");
	holder[1] = cache_allocate_it() + 8;
	kept_object = holder;
}

/* Only memory of malloc points to it. */
SILENT(kept_by_memory_of_malloc)
{
	have(56);
	kept_memory = callocate_it(8, 8);
	((void **)kept_memory)[3] = cache_allocate_it();
}
