/*
 * SLAB beside a real kernel, object by object.
 *
 * tests/data/slab-linux-6.1.txt holds what a kernel did with six of its caches: some 15,000 allocations, each with
 * the slab and the object in it that the kernel handed out, and the frees between them. The same requests must get
 * the same objects here: same place in the slab, and the same slab and colour, where a slab of ours stands for the
 * slab of the kernel's that it began as. This holds only if arrays, freelists and the three lists are all used in the
 * kernel's order, and if slabs leave for the page allocator at the same moments. At the end the slabs and the objects
 * that left them are as many as slabinfo says.
 */
#include "kernel_support.h"

/* Slab, object, and where the kernel's slab is new the bytes from its start to its first object; or the next object of the
 * same slab, or the one before. */
static void allocate_as_the_kernel(const char *operation)
{
	unsigned start;
	bool begins = false;
	char *object;

	if (operation[0] == '+')
		stream.object++;
	else if (operation[0] == '~')
		stream.object--;
	else
		begins = sscanf(operation, "%u.%u:%u", &stream.slab, &stream.object, &start) == 3;
	object = allocate();
	compare(object, live[page_of(object)] == 1);
	if (begins)
		CHECK_EQUAL(offset_of(object) % stream.cache->size, start);
}

static void construct(void *object, size_t size)
{
	memset(object, 0, size);
}

static void compare_with_slabinfo(unsigned slabs, unsigned active)
{
	struct sy_cache_counts counts;

	sy_cache_count(stream.cache, &counts);
	CHECK_EQUAL(counts.slabs, slabs);
	CHECK_EQUAL(counts.objects_in_use + counts.objects_cached, active);
}

static unsigned replay_all(FILE *file)
{
	unsigned size, constructed, operations, slabs, active, streams = 0;

	while (fscanf(file, " cache %u %u %u %u %u", &size, &constructed, &operations, &slabs, &active) == 5) {
		begin(size, constructed ? construct : NULL);
		replay(file, operations, allocate_as_the_kernel);
		compare_with_slabinfo(slabs, active);
		streams++;
	}
	return streams;
}

int main(void)
{
	return beside_the_kernel("slab", TEST_DATA "/slab-linux-6.1.txt", replay_all, 6);
}
