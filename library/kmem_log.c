/*
 * Tells what an address is (kmem_valid_obj, kmem_dump_obj). Standard error stands for the kernel's log.
 *
 * The object is found by a walk over all slabs of the heap. That changes nothing and needs no memory, so it also works in a
 * program whose memory is damaged or exhausted. It takes as long as the heap has slabs.
 */
#include <slabyard/kmem.h>

#include <stdio.h>

struct sought {
	const char *address;
	char slab_of[SY_NAME_BYTES];
	size_t slab_offset;
	struct sy_part part;
	bool large, found;
};

static bool look_at_slab(void *context, const struct sy_slab *slab)
{
	(void)slab;
	return !((struct sought *)context)->found;
}

static bool look_at_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct sought *sought = context;
	struct sy_cache_description cache = { .name = "of any cache" };
	size_t offset = (size_t)((uintptr_t)sought->address - (uintptr_t)slab->address);

	if (offset >= slab->bytes || offset - part->offset >= part->bytes)
		return true;
	sought->found = true;
	sought->large = slab->large;
	sought->slab_offset = offset;
	sought->part = *part;
	if (slab->cache)
		sy_cache_describe(slab->cache, &cache);
	snprintf(sought->slab_of, sizeof(sought->slab_of), "%s", cache.name);
	return false;
}

static struct sought seek(const void *address)
{
	struct sought sought = { .address = address };
	const struct sy_visitor visitor = { .slab = look_at_slab, .part = look_at_part, .context = &sought };
	struct sy_heap *heap = sy_kmem_heap();

	if (heap)
		sy_heap_walk(heap, &visitor);
	return sought;
}

bool kmem_valid_obj(void *address)
{
	return seek(address).found;
}

void kmem_dump_obj(void *address)
{
	struct sought sought = seek(address);
	const char *state = sought.part.state == SY_PART_USED ? "in use" : sought.part.is_object ? "free" : "no object";

	if (!sought.found)
		fprintf(stderr, "%p: %s\n", address, ZERO_OR_NULL_PTR(address) ? "NULL or of size 0" : "not in a slab");
	else if (sought.large)
		fprintf(stderr, "%p: large object of %zu bytes, offset %zu, %s\n", address, sought.part.bytes, sought.slab_offset, state);
	else
		fprintf(stderr, "%p: slab %s, start %p, size %zu, offset %zu, %s\n", address, sought.slab_of,
		           (void *)((uintptr_t)address - (sought.slab_offset - sought.part.offset)), sought.part.bytes,
		           sought.slab_offset - sought.part.offset, state);
}
