/*
 * The kernel's names in a program: a module written as for the kernel (names.c) does its work in several threads at once, and
 * every function of slabyard/kmem.h keeps what it promises. Run under every policy, by SLABYARD in the environment.
 */
#include "core/types.h"

#include "check.h"
#include "names.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/mempool.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#define THREADS 4
#define NAMES 400

/* ---- The module ------------------------------------------------------------------------------------------------- */

static void name_of(char *text, size_t room, unsigned thread, unsigned i)
{
	snprintf(text, room, "name-%u-%u", thread, i);
}

static void *use_module(void *argument)
{
	unsigned thread = *(unsigned *)argument;
	struct names *names = names_new();
	char text[64], *line;

	CHECK(names != NULL);
	for (unsigned i = 0; i < NAMES; i++) {
		name_of(text, sizeof(text), thread, i);
		CHECK_EQUAL(names_add(names, text), 0);
		CHECK(names_add(names, text) < 0);
		for (unsigned k = 0; k <= i % 9; k++) {
			snprintf(text + 40, 20, "key-%u", k);
			CHECK_EQUAL(names_set(names, text, text + 40, i * 100 + k + 1), 0);
		}
		CHECK_EQUAL(names_journal(names, (size_t)(i + 1) * 300), 0);
	}
	for (unsigned i = 0; i < NAMES; i += 2) {
		name_of(text, sizeof(text), thread, i);
		CHECK_EQUAL(names_remove(names, text), 0);
	}
	for (unsigned i = 0; i < NAMES; i++) {
		name_of(text, sizeof(text), thread, i);
		CHECK_EQUAL(names_get(names, text, "key-0"), i % 2 ? i * 100 + 1 : 0);
	}
	CHECK_EQUAL(names_journal(names, (size_t)5 << 20), 0); /* more than the heap's largest block */
	CHECK(names_journal_whole(names));
	line = names_describe(names);
	CHECK_TEXT(line, "200 names in 256 buckets");
	kfree(line);
	names_free(names);
	return NULL;
}

static void module_in_threads(void)
{
	pthread_t threads[THREADS];
	unsigned numbers[THREADS];

	CHECK_EQUAL(names_init(), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CHECK_EQUAL(pthread_create(&threads[i], NULL, use_module, &numbers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	names_exit();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
}

/* ---- The functions ---------------------------------------------------------------------------------------------- */

static bool all_zero(const void *memory, size_t bytes)
{
	const unsigned char *at = memory;

	while (bytes && !*at) {
		at++;
		bytes--;
	}
	return !bytes;
}

static void sizes(void)
{
	for (size_t size = 1; size <= KMALLOC_MAX_SIZE; size = size * 3 + 1) {
		void *object = kmalloc(size, GFP_KERNEL);

		CHECK(object != NULL && ksize(object) >= size);
		memset(object, 0x5a, ksize(object));
		kfree(object);
		object = kzalloc(size, GFP_ATOMIC);
		CHECK(object != NULL && all_zero(object, size));
		kfree(object);
	}
	kfree(NULL);
	kfree(ZERO_SIZE_PTR);
	CHECK_EQUAL(ksize(NULL), 0);
	CHECK(kcalloc(SIZE_MAX / 2, 3, GFP_KERNEL) == NULL);
	CHECK(kmalloc_array(SIZE_MAX / 8, 16, GFP_KERNEL) == NULL);
	CHECK(kmalloc(KMALLOC_MAX_SIZE + 1, GFP_KERNEL) == NULL);
	CHECK(kvmalloc(SIZE_MAX, GFP_KERNEL) == NULL);
}

static void resizing(void)
{
	char *text = krealloc(NULL, 10, GFP_KERNEL);

	memcpy(text, "as it was", 10);
	text = krealloc(text, 5000, GFP_KERNEL);
	CHECK_TEXT(text, "as it was");
	CHECK(krealloc(text, KMALLOC_MAX_SIZE * 2, GFP_KERNEL) == NULL);
	CHECK_TEXT(text, "as it was");
	CHECK(krealloc(text, 0, GFP_KERNEL) == ZERO_SIZE_PTR);
	CHECK(krealloc_array(NULL, SIZE_MAX / 4, 8, GFP_KERNEL) == NULL);
}

static void growing_zeroed(void)
{
	unsigned char *row = kvmalloc(64, GFP_KERNEL);

	memset(row, 0xaa, 64);
	row = kvrealloc(row, 10, 60, GFP_KERNEL | __GFP_ZERO); /* there is room where it is */
	CHECK_EQUAL(row[9], 0xaa);
	CHECK(all_zero(row + 10, 50));
	kvfree(row);
}

static void flags(void)
{
	CHECK(gfpflags_allow_blocking(GFP_KERNEL) && gfpflags_allow_blocking(GFP_NOIO) && gfpflags_allow_blocking(GFP_NOFS | __GFP_ZERO));
	CHECK(!gfpflags_allow_blocking(GFP_ATOMIC) && !gfpflags_allow_blocking(GFP_NOWAIT) && !gfpflags_allow_blocking(__GFP_NOWARN));
	CHECK(!gfpflags_allow_blocking(GFP_KERNEL & ~__GFP_DIRECT_RECLAIM) && !gfpflags_allow_blocking(GFP_TRANSHUGE_LIGHT));
}

static void copies(void)
{
	char *text = kstrndup("Bonwick 1994", 7, GFP_KERNEL), *other = kmemdup(text, 8, GFP_KERNEL);

	CHECK_TEXT(text, "Bonwick");
	CHECK_TEXT(other, "Bonwick");
	kfree(other);
	other = kmemdup_nul("SLUB and more", 4, GFP_KERNEL);
	CHECK_TEXT(other, "SLUB");
	kfree(other);
	kfree(text);
	CHECK(kstrdup(NULL, GFP_KERNEL) == NULL && kstrndup(NULL, 3, GFP_KERNEL) == NULL);
	CHECK(kmemdup(NULL, 3, GFP_KERNEL) == NULL && kmemdup_nul(NULL, 3, GFP_KERNEL) == NULL);
}

struct aligned {
	_Alignas(32) unsigned char bytes[40];
};

static void caches(void)
{
	struct kmem_cache *cache = KMEM_CACHE(aligned, SLAB_RED_ZONE | SLAB_PANIC);
	void *objects[100];

	CHECK_EQUAL(kmem_cache_alloc_bulk(cache, GFP_KERNEL | __GFP_ZERO, 100, objects), 100);
	for (unsigned i = 0; i < 100; i++) {
		CHECK_EQUAL((uintptr_t)objects[i] % 32, 0);
		CHECK(all_zero(objects[i], sizeof(struct aligned)));
		memset(objects[i], 1, sizeof(struct aligned));
	}
	CHECK(kmem_cache_size(cache) >= sizeof(struct aligned));
	kmem_cache_free_bulk(cache, 100, objects);
	CHECK_EQUAL(kmem_cache_shrink(cache), 0);
	for (unsigned i = 0; i < 100; i++)
		objects[i] = kmalloc(i * 50, GFP_KERNEL_ACCOUNT);
	kfree_bulk(100, objects);
	kmem_cache_destroy(cache);
	kmem_cache_destroy(NULL);
	CHECK(kmem_cache_create("too large", UINT_MAX, 0, 0, NULL) == NULL);
	CHECK(gfpflags_allow_blocking(GFP_KERNEL) && !gfpflags_allow_blocking(GFP_ATOMIC));
}

/* Where kfree takes a cache's objects too. */
static void freed_without_cache(void)
{
	const char *policy = sy_kmem_heap()->policy->name;
	struct kmem_cache *cache = kmem_cache_create("nameless", 100, 0, SLAB_NO_MERGE, NULL);
	struct sy_cache_counts counts;

	for (unsigned i = 0; i < 100 && !strstr("slob bsd44 svr4 sunos4", policy); i++)
		kfree(kmem_cache_alloc(cache, GFP_KERNEL));
	sy_cache_count((struct sy_cache *)(void *)cache, &counts);
	CHECK_EQUAL(counts.objects_in_use, 0);
	kmem_cache_destroy(cache);
}

/* ---- Caches beside forks ------------------------------------------------------------------------------------------ */

static bool forked;

static void make_and_destroy(void)
{
	struct kmem_cache *cache = kmem_cache_create("short", 40, 0, SLAB_NO_MERGE, NULL);

	CHECK(cache != NULL);
	kmem_cache_destroy(cache);
}

static void *make_and_destroy_on(void *nothing)
{
	while (!__atomic_load_n(&forked, __ATOMIC_RELAXED))
		make_and_destroy();
	return nothing;
}

/* The child has no other thread that could finish what it was doing. */
static void forks(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, make_and_destroy_on, NULL));
	for (unsigned i = 0; i < 40; i++) {
		pid_t child;
		int status = 1;

		make_and_destroy();
		child = fork();
		if (!child) {
			alarm(60);
			make_and_destroy();
			_exit(check_failures != 0);
		}
		CHECK(waitpid(child, &status, 0) == child);
		CHECK_EQUAL(status, 0);
		if (status)
			break;
	}
	__atomic_store_n(&forked, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* ---- Sums of sizes, pages ---------------------------------------------------------------------------------------- */

struct row {
	size_t count;
	uint32_t cells[];
};

static void sums(void)
{
	struct row *row;

	CHECK_EQUAL(struct_size(row, cells, 10), sizeof(*row) + 40);
	CHECK_EQUAL(struct_size(row, cells, SIZE_MAX / 2), SIZE_MAX);
	CHECK_EQUAL(array3_size(3, SIZE_MAX / 2, 1), SIZE_MAX);
	CHECK_EQUAL(size_sub(size_add(SIZE_MAX, 1), 5), SIZE_MAX);
	CHECK(kmalloc(struct_size(row, cells, SIZE_MAX / 2), GFP_KERNEL) == NULL);
	row = kzalloc(struct_size(row, cells, 10), GFP_KERNEL);
	CHECK(row && all_zero(row, struct_size(row, cells, 10)));
	kfree(row);
	CHECK(vmalloc(array_size(SIZE_MAX, 2)) == NULL && vmalloc(0) == NULL);
}

static void pages(void)
{
	for (unsigned order = 0; order <= 3; order++) {
		unsigned long address = __get_free_pages(GFP_KERNEL | __GFP_ZERO, order);

		CHECK(address && address % (SY_PAGE_SIZE << order) == 0);
		CHECK(all_zero((void *)address, SY_PAGE_SIZE << order));
		memset((void *)address, 1, SY_PAGE_SIZE << order);
		free_pages(address, order);
	}
	CHECK_EQUAL(__get_free_pages(GFP_KERNEL, 40), 0);
	CHECK(alloc_pages_exact(SIZE_MAX, GFP_KERNEL) == NULL && alloc_pages_exact(SIZE_MAX - SY_PAGE_SIZE, GFP_KERNEL) == NULL);
	free_page(0);
	for (size_t size = 1; size < 50000; size += 3001) {
		void *exact = alloc_pages_exact(size, GFP_KERNEL), *mapped = vzalloc(size);

		CHECK(exact && (uintptr_t)exact % SY_PAGE_SIZE == 0);
		CHECK(mapped && (uintptr_t)mapped % SY_PAGE_SIZE == 0 && all_zero(mapped, size));
		free_pages_exact(exact, size);
		vfree(mapped);
	}
}

/* ---- Elements kept aside ----------------------------------------------------------------------------------------- */

#define KEPT 4

static bool dry; /* there is no memory for an element, except those kept aside */
static int made;

static void *make(gfp_t flags, void *cache)
{
	void *element = __atomic_load_n(&dry, __ATOMIC_ACQUIRE) ? NULL : mempool_alloc_slab(flags, cache);

	made += element != NULL;
	return element;
}

static void unmake(void *element, void *cache)
{
	made--;
	mempool_free_slab(element, cache);
}

static int few; /* there is memory for that many elements */

static void *make_few(gfp_t flags, void *cache)
{
	return few-- > 0 ? make(flags, cache) : NULL;
}

/* A pool that could not be filled leaves nothing behind. */
static void refused_pools(struct kmem_cache *cache)
{
	const struct sy_heap *heap = sy_kmem_heap();
	uint64_t held = 0;

	for (unsigned i = 0; i < 3000; i++) {
		few = KEPT - 1;
		CHECK(mempool_create(KEPT, make_few, unmake, cache) == NULL);
		CHECK_EQUAL(made, 0);
		held = i ? held : heap->counters.slab_pages;
	}
	CHECK(heap->counters.slab_pages <= held + 16);
	CHECK(mempool_create(-1, make, unmake, cache) == NULL);
}

static void *wait_for_one(void *pool)
{
	return mempool_alloc(pool, GFP_NOIO);
}

static void elements(void)
{
	struct kmem_cache *cache = kmem_cache_create("element", 72, 0, 0, NULL);
	mempool_t *pool = mempool_create(KEPT, make, unmake, cache);
	void *taken[KEPT + 1], *late;
	pthread_t waiter;

	CHECK_EQUAL(made, KEPT);
	taken[KEPT] = mempool_alloc(pool, GFP_KERNEL);
	CHECK_EQUAL(made, KEPT + 1);
	__atomic_store_n(&dry, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < KEPT; i++)
		CHECK((taken[i] = mempool_alloc(pool, GFP_ATOMIC)) != NULL);
	CHECK(mempool_alloc(pool, GFP_NOWAIT) == NULL && mempool_alloc(pool, GFP_KERNEL & ~__GFP_DIRECT_RECLAIM) == NULL);
	CHECK(!pthread_create(&waiter, NULL, wait_for_one, pool));
	mempool_free(taken[0], pool);
	pthread_join(waiter, &late);
	CHECK(late == taken[0]);
	for (unsigned i = 0; i <= KEPT; i++)
		mempool_free(taken[i], pool);
	mempool_free(NULL, pool);
	CHECK_EQUAL(made, KEPT); /* the pool is full again, the one too many was freed */
	CHECK_EQUAL(mempool_resize(pool, KEPT + 1), -ENOMEM);
	CHECK_EQUAL(mempool_resize(pool, 1), 0);
	CHECK_EQUAL(made, 1);
	__atomic_store_n(&dry, false, __ATOMIC_RELEASE);
	CHECK_EQUAL(mempool_resize(pool, KEPT + 1), 0);
	mempool_destroy(pool);
	mempool_destroy(NULL);
	CHECK_EQUAL(made, 0);
	refused_pools(cache);
	kmem_cache_destroy(cache);
	pool = mempool_create_kmalloc_pool(KEPT, 300);
	late = mempool_alloc(pool, GFP_KERNEL);
	CHECK(ksize(late) >= 300);
	mempool_free(late, pool);
	mempool_destroy(pool);
}

/* ---- Pools that are resized in use -------------------------------------------------------------------------------- */

#define RESIZES 12000
#define MANY 100

static struct {
	mempool_t pool;
	int out;   /* elements of the pool, or of a thread */
	bool over;
} busy;

/* Of a thread that doesn't wait, two of three requests are refused, so that its elements come from those kept aside. */
static void *make_seldom(gfp_t flags, void *refused)
{
	bool refuse = !gfpflags_allow_blocking(flags) && __atomic_fetch_add((unsigned *)refused, 1, __ATOMIC_RELAXED) % 3;
	void *element = refuse ? NULL : kmalloc(64, flags);

	if (element)
		__atomic_fetch_add(&busy.out, 1, __ATOMIC_RELAXED);
	return element;
}

static void unmake_one(void *element, void *refused)
{
	(void)refused;
	CHECK(element != NULL);
	kfree(element);
	__atomic_fetch_sub(&busy.out, 1, __ATOMIC_RELAXED);
}

static void *use_busy_pool(void *none)
{
	while (!__atomic_load_n(&busy.over, __ATOMIC_RELAXED)) {
		void *taken[40];

		for (unsigned i = 0; i < 40; i++)
			taken[i] = mempool_alloc(&busy.pool, GFP_NOWAIT);
		for (unsigned i = 0; i < 40; i++) {
			if (taken[i])
				memset(taken[i], 0x55, 64);
			mempool_free(taken[i], &busy.pool);
		}
	}
	return none;
}

static void resized_in_use(void)
{
	unsigned refused = 0;
	pthread_t users[THREADS];

	CHECK_EQUAL(mempool_init(&busy.pool, 1, make_seldom, unmake_one, &refused), 0);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_create(&users[i], NULL, use_busy_pool, NULL), 0);
	for (int i = 0; i < RESIZES; i++)
		mempool_resize(&busy.pool, i % 2 ? 1 : MANY + i % 50);
	__atomic_store_n(&busy.over, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(users[i], NULL);
	CHECK_EQUAL(busy.out, busy.pool.curr_nr);
	mempool_exit(&busy.pool);
	CHECK_EQUAL(busy.out, 0);
}

int main(void)
{
	module_in_threads();
	sums();
	pages();
	elements();
	resized_in_use();
	sizes();
	resizing();
	growing_zeroed();
	flags();
	copies();
	caches();
	freed_without_cache();
	forks();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
