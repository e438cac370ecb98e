/*
 * A policy beside a real kernel, object by object: what the tests of SLAB and SLUB share.
 *
 * A file in tests/data/ holds what a kernel did with some of its caches, each a stream of requests: which slab and which
 * object in it the kernel handed out, and what it freed. The same requests go to a cache of ours, which must hand out the
 * same place in the same slab, where a slab of ours stands for the slab of the kernel's that it began as.
 *
 * An operation that begins with '-' is a free: of the allocation with that number, or without one of the next. All others
 * are allocations, written as each test says.
 */
#ifndef KERNEL_SUPPORT_H
#define KERNEL_SUPPORT_H

#include "core/types.h"

#include "check.h"
#include "core/page_interface.h"

#define MOST_OPERATIONS 20000
#define MOST_PAGES 65536
#define NOT_YET UINT32_MAX

struct stream {
	struct sy_cache *cache;
	char *objects[MOST_OPERATIONS]; /* by number of allocation */
	unsigned allocations, same;
	unsigned slab, object;          /* of the kernel's last allocation */
	unsigned freed;                 /* number of the allocation that was freed last */
};

static struct sy_pages *pages;
static struct sy_heap *heap;
static uint32_t stands_for[MOST_PAGES], live[MOST_PAGES]; /* by first page of our slab: the kernel's slab; objects in use */
static struct stream stream;

static inline size_t page_of(const void *object)
{
	return (size_t)(sy__head_of(heap, object) - ((struct sy_pages_base *)(void *)pages)->table);
}

/* Bytes from the start of its slab. */
static inline size_t offset_of(const char *object)
{
	return (size_t)(object - (char *)sy__page_address(heap, sy__head_of(heap, object)));
}

static inline char *allocate(void)
{
	char *object = sy_cache_alloc(stream.cache, 0, 0, SY_ANY_NODE);

	live[page_of(object)]++;
	return object;
}

/* The next of the stream's allocations got this object. A new slab of ours stands for the kernel's from now on. */
static inline void compare(char *object, bool is_new)
{
	size_t page = page_of(object), index = offset_of(object) / stream.cache->size; /* a colour is less than the size */

	if (stands_for[page] == NOT_YET || is_new)
		stands_for[page] = stream.slab;
	stream.same += stands_for[page] == stream.slab && index == stream.object;
	stream.objects[stream.allocations++] = object;
}

static inline void free_as_the_kernel(void)
{
	char *object = stream.objects[stream.freed];

	live[page_of(object)]--;
	sy_cache_free(stream.cache, 0, object);
}

static inline void begin(unsigned size, void (*constructor)(void *, size_t))
{
	struct sy_cache_config config = { .name = "kernel", .size = size, .flags = SY_CACHE_NO_MERGE,
		                          .constructor = constructor };

	stream = (struct stream){ .cache = sy_cache_create(heap, &config) };
	for (size_t i = 0; i < MOST_PAGES; i++)
		stands_for[i] = NOT_YET;
	memset(live, 0, sizeof(live));
}

/* Does the operations of a stream that has begun. */
static inline void replay(FILE *file, unsigned operations, void (*allocate_as_the_kernel)(const char *operation))
{
	char operation[32];
	unsigned i;

	CHECK(operations <= MOST_OPERATIONS);
	for (i = 0; i < operations && fscanf(file, "%31s", operation) == 1; i++) {
		if (operation[0] == '-') {
			stream.freed = operation[1] ? (unsigned)strtoul(operation + 1, NULL, 10) : stream.freed + 1;
			free_as_the_kernel();
		} else {
			allocate_as_the_kernel(operation);
		}
	}
	CHECK_EQUAL(i, operations);
	CHECK_EQUAL(stream.same, stream.allocations);
	CHECK_FINE(sy_heap_check(heap));
}

static inline void skip_comments(FILE *file)
{
	char line[256];
	int c;

	while ((c = getc(file)) == '#')
		CHECK(fgets(line, sizeof(line), file) != NULL);
	ungetc(c, file);
}

/* Makes a heap of the policy on one CPU, and does what the file's streams do. The file must have that many streams. */
static inline int beside_the_kernel(const char *policy, const char *path, unsigned (*streams)(FILE *), unsigned count)
{
	struct sy_pages_config pages_config = { .zone_count = 1, .slots = 1, .pageblock_order = 9,
		                                .zones = { { .name = "Normal", .pages = MOST_PAGES } } };
	struct sy_heap_config config;
	FILE *file = fopen(path, "r");

	CHECK(file != NULL);
	if (!file)
		return check_result();
	pages = sy_pages_create(&pages_config);
	sy_heap_defaults(sy_policy_find(policy), &config);
	heap = sy_heap_create(pages, &config);
	skip_comments(file);
	CHECK_EQUAL(streams(file), count);
	fclose(file);
	sy_heap_destroy(heap);
	sy_pages_destroy(pages);
	return check_result();
}

#endif
