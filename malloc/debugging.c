/*
 * What debugging needs of malloc beyond the heap's own checks: objects that are mappings, and the interface that an object is from.
 */
#include "debugging.h"

#include "parts.h"

static struct sy_heap *debugged; /* NULL: there is no debugging */

void sy__debugging_tag(void *object, unsigned by)
{
	if (debugged && object)
		sy__debug_tag(debugged, object, by);
}

bool sy__debugging_expects(const void *object, size_t size, unsigned by)
{
	return !debugged || !object || sy__debug_expect(debugged, object, size, by);
}

void *sy__debugging_map(struct sy_heap *heap, size_t align, size_t size, unsigned flags)
{
	size_t bytes = sy__debug_adopted_bytes(align, size);
	void *memory, *object = sy__debug_guarded(heap, align, size, flags);

	if (object)
		return object;
	memory = bytes > size ? sy__mapping_create(bytes, ALIGNMENT) : NULL;
	if (!memory)
		return NULL;
	object = sy__debug_adopt(heap, memory, sy__mapping_usable(memory), align, size, flags);
	if (!object)
		sy__mapping_end(memory);
	return object;
}

void sy__debugging_start(struct sy_heap *heap)
{
	if (heap->debug)
		debugged = heap;
}
