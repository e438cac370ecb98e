/*
 * Heaps in buffers that lie anywhere. Blocks of pages start at multiples of their size from the start of the heap's pages, not
 * of the address space. So slabs lie at odd addresses, and one may lie across a multiple of 4 GiB, where addresses do not
 * share their upper half.
 */
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#include "threads_support.h"

#include <sys/mman.h>

#define THREADS 3u
#define STEPS 40000u
#define EVENT_STEPS 4000u
#define BYTES ((size_t)24 << 20)

static struct world world;

static void *work(void *number)
{
	uint64_t random = 1 + 2 * (uint64_t)(uintptr_t)number;

	for (unsigned step = 1, steps = check_times(STEPS); step <= steps; step++) {
		world_step(&world, &random);
		if (step % EVENT_STEPS == 0)
			world_event(&world, check_random(&random));
	}
	return NULL;
}

static void use(const char *spec, char *buffer, size_t bytes)
{
	const struct sy_heap_options options = { .buffer = buffer, .buffer_bytes = bytes };
	pthread_t threads[THREADS];

	if (!world_open(&world, spec, &options))
		return;
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	world_close(&world);
}

/* Memory with a multiple of 4 GiB in its middle; or NULL, where everything is below the first. */
static char *across(void)
{
	for (unsigned bit = 33; sizeof(void *) == 8 && bit < 47; bit++) {
		void *wanted = (void *)(uintptr_t)(((uint64_t)1 << bit) - BYTES / 2);
		void *there = mmap(wanted, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (there == wanted)
			return there;
		if (there != MAP_FAILED)
			munmap(there, BYTES);
	}
	return NULL;
}

int main(void)
{
	static const char *const specs[] = { "yard", "yard:min_order=4", "yard:min_order=8", "slub", "slab", "slqb", "bonwick", "slob" };
	char *anywhere = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *memory = across();

	CHECK(anywhere != MAP_FAILED);
	CHECK(memory || sizeof(void *) < 8);
	for (unsigned i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		size_t odd = (37 * i + 1) * SY_PAGE_SIZE;

		use(specs[i], anywhere + odd, BYTES - odd);
		if (memory)
			use(specs[i], memory + odd, BYTES - odd);
	}
	return check_result();
}
