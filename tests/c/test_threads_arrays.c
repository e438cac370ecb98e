/*
 * What hundreds of threads leave behind when they are there at once, use every size class a little, and end. Under each policy
 * that is little, the same as when the first hundreds had ended, however often others come. There is room for as many objects
 * as before, under a limit too. (The arrays of `slab` once stayed, and for good took a heap that was small.) The last test
 * ends a heap whose array was made short after as many objects had been freed: slabs that end put their freelists into it.
 */
#include "core/policies/slab/slab.h"
#include "threads_support.h"

#define MOST_THREADS 300u
#define FEW_THREADS 60u
#define ROUNDS 3u
#define LIMIT ((size_t)8 << 20)
#define LARGEST_CLASS 8192u
#define FILL_BYTES 64u

static struct sy_heap *heap;
static struct sy_cache *cache; /* whose freelists are objects of size classes, under `slab` */
static pthread_barrier_t all;

/* Size after size, so that what threads keep for good lies among what they keep for a while. The freelists of other threads'
 * slabs end on this slot as well. */
static void *work(void *unused)
{
	void *object;

	(void)unused;
	for (size_t size = 8; size <= LARGEST_CLASS; size *= 2) {
		pthread_barrier_wait(&all);
		sy_mfree(heap, sy_malloc(heap, size, 0));
	}
	object = sy_alloc(cache, 0);
	sy_free(cache, object);
	pthread_barrier_wait(&all);
	return NULL;
}

static void come_and_go(unsigned count)
{
	pthread_t threads[MOST_THREADS];

	CHECK(!pthread_barrier_init(&all, NULL, count));
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			abort();
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_trim(heap);
}

static uint64_t metadata_pages(void)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return counts.zones[0].used[SY_USE_METADATA];
}

/* How many objects there is memory for. */
static unsigned fill(void)
{
	unsigned count = 0;
	void *first = NULL, *object;

	for (; (object = sy_malloc(heap, FILL_BYTES, 0)); count++) {
		*(void **)object = first;
		first = object;
	}
	for (; first; first = object) {
		object = *(void **)first;
		sy_mfree(heap, first);
	}
	sy_heap_trim(heap);
	return count;
}

/* Threads of bsd44 wait for one lock: with 300 that takes twenty times as long as with 60, and shows no more, as they have no
 * arrays. */
static unsigned threads_of(const char *policy)
{
	return check_slow() || !strcmp(policy, "bsd44") ? FEW_THREADS : MOST_THREADS;
}

static void leave_nothing(const char *policy)
{
	const unsigned count = threads_of(policy);
	const struct sy_heap_options options = { .limit = LIMIT, .reserve = SMALL_RESERVE };
	const struct sy_cache_config config = { .name = "with freelists", .size = 1500, .constructor = construct };
	const char *error = "";
	unsigned before;
	uint64_t pages;

	heap = sy_heap_open(policy, &options, &error);
	CHECK_TEXT(error, "");
	if (!heap)
		return;
	cache = sy_cache_create(heap, &config);
	CHECK(cache);
	before = fill();
	pages = metadata_pages();
	for (unsigned round = 0; round < ROUNDS; round++) {
		come_and_go(count);
		CHECK(metadata_pages() <= pages + 24);
		CHECK(fill() >= before - before / 20);
	}
	sy_heap_close(heap);
}

#define PAGE_OBJECTS 1000u
#define SMALL 32u
#define SMALLS 100000u

static void construct_page(void *object, size_t size)
{
	memset(object, 0, size);
}

/* The slot's array for SMALL bytes. */
static const struct sy__slab_array *small_array(void)
{
	const struct sy__slab_heap *slab = (const struct sy__slab_heap *)(const void *)heap;
	const struct sy_cache *small = sy__kmalloc_cache(&slab->kmalloc, SMALL, 0);

	return sy__slab_own((const struct sy__slab_cache *)(const void *)small, sy__self.slot);
}

static bool is_short_and_full(void)
{
	return small_array()->limit < SMALL && small_array()->avail == small_array()->limit;
}

/* Slabs of one object each, with freelists in the size class whose array is short. */
static void end_short(void)
{
	static void *objects[SMALLS];
	const struct sy_cache_config pages = { .name = "pages", .size = SY_PAGE_SIZE, .constructor = construct_page };
	unsigned freed = 0;

	heap = sy_heap_open("slab", NULL, NULL);
	cache = sy_cache_create(heap, &pages);
	for (unsigned count = PAGE_OBJECTS; count; count /= 2) {
		for (unsigned i = 0; i < count; i++)
			objects[i] = sy_alloc(cache, 0);
		for (unsigned i = 0; i < count; i++)
			sy_free(cache, objects[i]);
	}
	for (unsigned i = 0; i < SMALLS; i++)
		objects[i] = sy_malloc(heap, SMALL, 0);
	while (freed < SMALLS && !is_short_and_full())
		sy_mfree(heap, objects[freed++]);
	CHECK(is_short_and_full());
	sy_heap_close(heap);
}

int main(void)
{
	end_short();
	CHECK_POLICIES(leave_nothing);
	return check_result();
}
