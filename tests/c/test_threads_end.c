/*
 * Heaps of threads that end in the middle of use, with full, partial and empty slabs on the slots that own them: of a thread
 * that lives, and of one that has left objects behind. Whatever a slot holds then, destructors run for every constructed
 * object, once, and closing touches nothing that is not the heap's.
 */
#include "threads_support.h"

#define OBJECTS 1000
#define SIZE 200

static atomic_uint constructed, destructed;

static void count_constructed(void *object, size_t size)
{
	(void)object, (void)size;
	constructed++;
}

static void count_destructed(void *object, size_t size)
{
	(void)object, (void)size;
	destructed++;
}

struct use {
	struct sy_heap *heap;
	struct sy_cache *plain, *counted;
	unsigned step; /* one object in this many is freed */
};

static void *use(void *argument)
{
	const struct use *use = argument;
	void *plain[OBJECTS], *counted[OBJECTS], *general[OBJECTS];

	for (unsigned i = 0; i < OBJECTS; i++) {
		plain[i] = sy_alloc(use->plain, 0);
		counted[i] = sy_alloc(use->counted, 0);
		general[i] = sy_malloc(use->heap, SIZE, 0);
	}
	for (unsigned i = 0; i < OBJECTS; i++) {
		sy_free(use->counted, counted[i]);
		if (i % use->step)
			continue;
		sy_free(use->plain, plain[i]);
		sy_mfree(use->heap, general[i]);
	}
	return NULL;
}

static void end_after(const char *policy, unsigned step)
{
	struct sy_cache_config plain = { .name = "plain", .size = SIZE };
	struct sy_cache_config counted = { .name = "counted", .size = SIZE, .constructor = count_constructed, .destructor = count_destructed };
	struct sy_heap_options small = { .reserve = SMALL_RESERVE };
	const char *error = "";
	struct use one = { .heap = sy_heap_open(policy, &small, &error), .step = step };
	pthread_t thread;

	CHECK(one.heap);
	if (!one.heap)
		return;
	constructed = destructed = 0;
	one.plain = sy_cache_create(one.heap, &plain);
	one.counted = sy_cache_create(one.heap, &counted);
	CHECK(one.plain && one.counted);
	use(&one);
	CHECK(!pthread_create(&thread, NULL, use, &one));
	pthread_join(thread, NULL);
	CHECK(!sy_heap_check(one.heap));
	sy_heap_close(one.heap);
	CHECK(constructed && constructed == destructed);
}

static void under(const char *policy)
{
	static const unsigned steps[] = { 1, 2, 3, 50, OBJECTS };

	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		end_after(policy, steps[i]);
}

int main(void)
{
	CHECK_POLICIES(under);
	return check_result();
}
