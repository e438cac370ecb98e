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
#include "check.h"

#include <slabyard/slabyard.h>

#include "core/page_interface.h"

#define MOST_OPERATIONS 20000
#define MOST_PAGES 65536
#define NOT_YET UINT32_MAX

struct stream {
	struct sy_cache *cache;
	char *objects[MOST_OPERATIONS]; /* by number of allocation */
	unsigned allocations, same;
	unsigned slab, object;          /* of the kernel's last allocation */
	unsigned start;                 /* bytes from that slab's start to its first object, where the kernel's is new */
	bool begins;                    /* whether it is */
	unsigned freed;                 /* number of the last freed */
};

static struct sy_pages *pages;
static struct sy_heap *heap;
/* By first page of our slab: the kernel's slab, and objects in use. */
static uint32_t stands_for[MOST_PAGES], live[MOST_PAGES];
static struct stream stream;

static size_t page_of(const void *object)
{
	return (size_t)(sy__head_of(heap, object) - ((struct sy_pages_base *)(void *)pages)->table);
}

static void allocate_as_the_kernel(void)
{
	char *object = sy_cache_alloc(stream.cache, 0, 0, SY_ANY_NODE);
	char *start = sy__page_address(heap, sy__head_of(heap, object));
	size_t page = page_of(object);
	unsigned index = (unsigned)((size_t)(object - start) / stream.cache->size); /* a colour is less than the size */

	if (stands_for[page] == NOT_YET || !live[page])
		stands_for[page] = stream.slab;
	live[page]++;
	stream.same += stands_for[page] == stream.slab && index == stream.object;
	if (stream.begins)
		CHECK_EQUAL((size_t)(object - start) % stream.cache->size, stream.start);
	stream.objects[stream.allocations++] = object;
}

static void free_as_the_kernel(void)
{
	char *object = stream.objects[stream.freed];

	live[page_of(object)]--;
	sy_cache_free(stream.cache, 0, object);
}

static void construct(void *object, size_t size)
{
	memset(object, 0, size);
}

static void begin(unsigned size, unsigned constructed)
{
	struct sy_cache_config config = { .name = "kernel", .size = size, .flags = SY_CACHE_NO_MERGE,
		                              .constructor = constructed ? construct : NULL };

	stream = (struct stream){ .cache = sy_cache_create(heap, &config) };
	for (size_t i = 0; i < MOST_PAGES; i++)
		stands_for[i] = NOT_YET;
	memset(live, 0, sizeof(live));
}

static void operate(const char *operation)
{
	if (operation[0] == '-') {
		stream.freed = operation[1] ? (unsigned)strtoul(operation + 1, NULL, 10) : stream.freed + 1;
		free_as_the_kernel();
		return;
	}
	stream.begins = false;
	if (operation[0] == '+')
		stream.object++;
	else if (operation[0] == '~')
		stream.object--;
	else if (sscanf(operation, "%u.%u:%u", &stream.slab, &stream.object, &stream.start) == 3)
		stream.begins = true;
	allocate_as_the_kernel();
}

static void replay(FILE *file, unsigned size, unsigned constructed, unsigned operations)
{
	char operation[32];
	unsigned i;

	CHECK(operations <= MOST_OPERATIONS);
	begin(size, constructed);
	for (i = 0; i < operations && fscanf(file, "%31s", operation) == 1; i++)
		operate(operation);
	CHECK_EQUAL(i, operations);
	CHECK_EQUAL(stream.same, stream.allocations);
	CHECK_TEXT(sy_heap_check(heap), NULL);
}

static void compare_with_slabinfo(unsigned slabs, unsigned active)
{
	struct sy_cache_counts counts;

	sy_cache_count(stream.cache, &counts);
	CHECK_EQUAL(counts.slabs, slabs);
	CHECK_EQUAL(counts.objects_in_use + counts.objects_cached, active);
}

static void skip_comments(FILE *file)
{
	char line[256];
	int c;

	while ((c = getc(file)) == '#')
		CHECK(fgets(line, sizeof(line), file) != NULL);
	ungetc(c, file);
}

int main(void)
{
	struct sy_pages_config pages_config = { .zone_count = 1, .slots = 1, .pageblock_order = 9,
		                                    .zones = { { .name = "Normal", .pages = MOST_PAGES } } };
	FILE *file = fopen(TEST_DATA "/slab-linux-6.1.txt", "r");
	unsigned size, constructed, operations, slabs, active, streams = 0;
	struct sy_heap_config config;

	CHECK(file != NULL);
	if (!file)
		return check_result();
	pages = sy_pages_create(&pages_config);
	sy_heap_defaults(sy_policy_find("slab"), &config);
	heap = sy_heap_create(pages, &config);
	skip_comments(file);
	while (fscanf(file, " cache %u %u %u %u %u", &size, &constructed, &operations, &slabs, &active) == 5) {
		replay(file, size, constructed, operations);
		compare_with_slabinfo(slabs, active);
		streams++;
	}
	CHECK_EQUAL(streams, 6);
	fclose(file);
	sy_heap_destroy(heap);
	sy_pages_destroy(pages);
	return check_result();
}
