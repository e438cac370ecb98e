/*
 * SLUB beside a real kernel, object by object.
 *
 * tests/data/slub-linux-6.1.txt holds what a kernel did with seven of its caches: some 11,500 allocations, each with the
 * slab and the object in it that the kernel handed out, and the frees between them. The same requests must get the same
 * objects here: same place in the slab, and the same slab, where a slab of ours stands for the slab of the kernel's that
 * it began as. This holds only if freelists, active slabs and the node's list are all used in the kernel's order, and if
 * slabs leave for the page allocator at the same moments.
 */
#include "kernel_support.h"

/* Slab and object; or the next object of the same slab. */
static void allocate_as_the_kernel(const char *operation)
{
	char *object;

	if (operation[0] == '+')
		stream.object++;
	else
		CHECK_EQUAL(sscanf(operation, "%u.%u", &stream.slab, &stream.object), 2);
	object = allocate();
	compare(object, live[page_of(object)] == 1 && offset_of(object) < stream.cache->size);
}

static unsigned replay_all(FILE *file)
{
	unsigned size, older, operations, streams = 0;

	while (fscanf(file, " cache %u %u %u", &size, &older, &operations) == 3) {
		begin(size, NULL);
		for (unsigned i = 0; i < older; i++)
			allocate();
		replay(file, operations, allocate_as_the_kernel);
		streams++;
	}
	return streams;
}

int main(void)
{
	return beside_the_kernel("slub", TEST_DATA "/slub-linux-6.1.txt", replay_all, 7);
}
