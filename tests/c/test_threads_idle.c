/*
 * Threads that have freed all they had, and wait. What they keep goes by itself after a second. Long before that it serves
 * others, before the heap grows far. The slabs that such threads allocate from are given up, too.
 */
#include "threads_heap.h"

#define WORKERS 64u
#define LEAST 32u
#define STEP 64u
#define SIZES 30u
#define OBJECTS 2000u /* of a worker, about 2 MiB */
#define MOST ((size_t)96 << 20)

static struct sy_heap *heap;

static void take_and_free(void)
{
	static void *objects[OBJECTS];

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < OBJECTS; i++)
			CHECK((objects[i] = sy_malloc(heap, LEAST + i % SIZES * STEP, 0)) != NULL);
		for (unsigned i = 0; i < OBJECTS; i++)
			sy_mfree(heap, objects[i]);
	}
}

int main(void)
{
	static struct worker workers[WORKERS];

	heap = open_unscavenged("yard");
	for (unsigned i = 0; i < WORKERS; i++) {
		worker_begin(&workers[i]);
		worker_does(&workers[i], take_and_free);
	}
	CHECK(committed_pages(heap) * SY_PAGE_SIZE < MOST);
	for (unsigned i = 0; i < WORKERS; i++)
		worker_end(&workers[i]);
	sy_heap_destroy(heap);
	return check_result();
}
