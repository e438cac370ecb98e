/* A plugin that contains the library. */
#include <slabyard/slabyard.h>

static struct sy_heap *heap;

__attribute__((constructor)) static void start(void)
{
	heap = sy_heap_open(POLICY, 0, 0);
}

__attribute__((destructor)) static void end(void)
{
	sy_heap_close(heap);
}

int work(void)
{
	void *object = sy_malloc(heap, 100, 0);

	if (object)
		sy_mfree(heap, object);
	return !object;
}
