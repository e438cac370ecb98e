/*
 * Memory of heaps of threads: where it comes from (a limit, a caller's buffer); that running out of it harms nothing; that
 * free memory is used again before there is more; and that free memory goes back to the operating system after a while.
 */
#include "threads_support.h"

#include <sys/resource.h>

#define MIB ((size_t)1 << 20)
#define WORKERS 3

static uint64_t backed_pages(const struct sy_heap *heap)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return counts.committed_pages;
}

/* ---- Running out -------------------------------------------------------------------------------------------------- */

struct hoard {
	struct world *world;
	pthread_t thread;
	struct mark *first; /* chained by words behind the marks */
	uint64_t random;
};

static void **link_of(struct mark *mark)
{
	return (void **)(void *)((char *)mark + 2 * sizeof(struct mark));
}

/* Gets what it can, then gives half of it back and gets what it can again. */
static void *hoard_all(void *argument)
{
	struct hoard *hoard = argument;
	struct world *world = hoard->world;

	for (unsigned round = 0; round < 4; round++) {
		for (unsigned failures = 0; failures < 3;) {
			size_t bytes = 64 + (size_t)(check_random(&hoard->random) % 1000);
			struct mark *mark = sy_malloc(world->heap, bytes, 0);

			if (!mark) {
				failures++;
				continue;
			}
			memset(mark, (int)round, bytes);
			*mark = (struct mark){ KMALLOC, (uint32_t)bytes, (unsigned char)round };
			*link_of(mark) = hoard->first;
			hoard->first = mark;
		}
		for (void **at = (void **)&hoard->first; *at;) {
			struct mark *mark = *at;
			void *next = *link_of(mark);

			if (round < 3 && check_random(&hoard->random) % 2) {
				at = link_of(mark);
				continue;
			}
			*at = next;
			memset(link_of(mark), mark->fill, sizeof(void *));
			world_free(world, mark);
		}
	}
	return NULL;
}

static void run_out(const char *policy)
{
	struct sy_heap_options options = { .limit = 12 * MIB };
	struct hoard hoards[WORKERS];
	struct world world;

	if (!world_open(&world, policy, &options))
		return;
	for (unsigned i = 0; i < WORKERS; i++) {
		hoards[i] = (struct hoard){ .world = &world, .random = i + 1 };
		CHECK(!pthread_create(&hoards[i].thread, NULL, hoard_all, &hoards[i]));
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(hoards[i].thread, NULL);
	CHECK(world.heap->counters.held_peak >= 4 * MIB / SY_PAGE_SIZE);
	CHECK(world.heap->counters.held_peak <= 12 * MIB / SY_PAGE_SIZE);
	CHECK(world.heap->counters.page_failures > 0);
	world_close(&world);
}

/* ---- A buffer ----------------------------------------------------------------------------------------------------- */

static _Alignas(16) char buffer[9 * MIB + 123];

static void use_buffer(const char *policy, size_t offset, size_t bytes)
{
	struct sy_heap_options options = { .buffer = buffer + offset, .buffer_bytes = bytes };
	struct sy_heap *heap;
	const char *error = NULL;
	void *objects[1000];
	unsigned count = 0;

	memset(buffer, 0xa5, sizeof(buffer));
	heap = sy_heap_open(policy, &options, &error);
	if (!heap) {
		CHECK_TEXT(error, NULL);
		return;
	}
	while (count < 1000 && (objects[count] = sy_malloc(heap, 3000, SY_ZERO))) {
		CHECK((char *)objects[count] >= buffer + offset && (char *)objects[count] + 3000 <= buffer + offset + bytes);
		CHECK(filled(objects[count], 3000, 0));
		memset(objects[count++], 1, 3000);
	}
	CHECK(count > 100);
	while (count)
		sy_mfree(heap, objects[--count]);
	CHECK_FINE(sy_heap_check(heap));
	CHECK_EQUAL(sy_heap_trim(heap), 0);
	sy_heap_close(heap);
	for (size_t i = offset + bytes; i < sizeof(buffer); i++)
		if (buffer[i] != (char)0xa5) {
			CHECK(false && "nothing is written behind the buffer");
			break;
		}
}

static void refuse_buffers(void)
{
	struct sy_heap_options small = { .buffer = buffer, .buffer_bytes = 1000 };
	const char *error = NULL;

	CHECK(!sy_heap_open("yard", &small, &error));
	CHECK_TEXT(error, "the buffer is too small for a heap: give it some megabytes, or raise the heap's limit");
}

/* ---- A shrink where nothing is left ------------------------------------------------------------------------------- */

#define HELD 1000u

static void clear_object(void *object, size_t size)
{
	memset(object, 0, size);
}

/* Slabs with freelists outside of them end while there is no page for anything that this may need. */
static void shrink_full(const char *policy)
{
	const struct sy_heap_options options = { .limit = 8 * MIB };
	const struct sy_cache_config config = { .name = "constructed", .size = 512, .constructor = clear_object };
	const size_t sizes[] = { 65536, 16384, 4096, 512, 32 };
	struct sy_heap *heap = sy_heap_open(policy, &options, NULL);
	struct sy_cache *cache = sy_cache_create(heap, &config);
	void *objects[HELD];
	unsigned count = 0;

	while (count < HELD && (objects[count] = sy_alloc(cache, 0)))
		count++;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		while (sy_malloc(heap, sizes[i], 0))
			;
	for (unsigned i = 0; i < count; i++)
		sy_free(cache, objects[i]);
	sy_heap_shrink(heap);
	CHECK_FINE(sy_heap_check(heap));
	CHECK(sy_alloc(cache, 0));
	sy_heap_close(heap);
}

/* ---- Going back --------------------------------------------------------------------------------------------------- */

#define PEAK (64 * MIB)
#define KEPT (2 * MIB)
#define SIZE 256

/* Time passes as the test says, so that no machine is too slow or too busy for it. */
static uint64_t now = 1000000000;

static uint64_t clock_of_test(void)
{
	return now;
}

#define AN_OPERATION 500  /* nanoseconds */
#define A_MOMENT 50000    /* 14,000 of them are 0.7 seconds */

/* Of objects allocated together, only the first stay. */
static void **peak(struct sy_heap *heap, size_t *count)
{
	void **objects = malloc(PEAK / SIZE * sizeof(*objects));

	for (*count = 0; *count < PEAK / SIZE; ++*count) {
		objects[*count] = sy_malloc(heap, SIZE, 0);
		CHECK(objects[*count] != NULL);
		memset(objects[*count], 1, SIZE);
		now += AN_OPERATION;
	}
	while (*count > KEPT / SIZE) {
		sy_mfree(heap, objects[--*count]);
		now += AN_OPERATION;
	}
	return objects;
}

static void give_up(struct sy_heap *heap, void **objects, size_t count)
{
	while (count)
		sy_mfree(heap, objects[--count]);
	free(objects);
}

static void decay(const char *policy)
{
	struct sy_heap *heap = sy_heap_open(policy, NULL, NULL);
	size_t count;
	void **objects = peak(heap, &count);

	/* A program that goes on using memory, a little. */
	for (unsigned passed = 0; passed < 14000; passed++) {
		void *some[100];

		for (unsigned i = 0; i < 100; i++)
			some[i] = sy_malloc(heap, SIZE, 0);
		for (unsigned i = 0; i < 100; i++)
			sy_mfree(heap, some[i]);
		now += A_MOMENT;
	}
	CHECK(backed_pages(heap) <= 10 * MIB / SY_PAGE_SIZE);
	CHECK_FINE(sy_heap_check(heap));
	give_up(heap, objects, count);
	sy_heap_close(heap);
}

/* Nothing happens after the peak: most of it has gone back all the same. */
static void silence(const char *policy)
{
	struct sy_heap *heap = sy_heap_open(policy, NULL, NULL);
	size_t count;
	void **objects = peak(heap, &count);

	CHECK(backed_pages(heap) <= 30 * MIB / SY_PAGE_SIZE);
	give_up(heap, objects, count);
	sy_heap_close(heap);
}

static void trim(const char *policy)
{
	struct sy_heap_options options = { .keep = true };
	struct sy_heap *heap = sy_heap_open(policy, &options, NULL);
	size_t count;
	void **objects = peak(heap, &count);
	uint64_t before = backed_pages(heap), given = sy_heap_trim(heap);

	CHECK(before >= PEAK / SY_PAGE_SIZE);
	CHECK_EQUAL(given, (before - backed_pages(heap)) << SY_PAGE_SHIFT);
	CHECK(backed_pages(heap) <= 10 * MIB / SY_PAGE_SIZE);
	for (size_t i = 0; i < count; i++)
		if (!filled(objects[i], SIZE, 1)) {
			CHECK(false && "what is in use stays as it is");
			break;
		}
	give_up(heap, objects, count);
	sy_heap_close(heap);
}

enum { NEVER, ASKED, UNASKED };

/* Whether a policy gives empty slabs back by itself, when it is asked to, or never. */
static int gives_back(const char *policy)
{
	struct sy_heap *heap = sy_heap_open(policy, NULL, NULL);
	uint64_t used, before, asked;
	void *objects[20000];

	for (unsigned i = 0; i < 20000; i++)
		objects[i] = sy_malloc(heap, SIZE, 0);
	used = heap->counters.slab_pages;
	for (unsigned i = 0; i < 20000; i++)
		sy_mfree(heap, objects[i]);
	before = heap->counters.slab_pages;
	sy_heap_shrink(heap);
	asked = heap->counters.slab_pages;
	sy_heap_close(heap);
	if (before < used / 4)
		return UNASKED;
	return asked < used / 4 ? ASKED : NEVER;
}

static void giving_back(const char *policy)
{
	int gives = gives_back(policy);

	CHECK((gives == NEVER) == sy_policy_find(policy)->never_reclaims);
	if (gives == UNASKED) {
		sy_platform_set_clock(clock_of_test);
		decay(policy);
		silence(policy);
		sy_platform_set_clock(NULL);
	}
	if (gives != NEVER)
		trim(policy);
}

/* ---- Again --------------------------------------------------------------------------------------------------------- */

#define NODES 39500u /* somewhat more than a maximal block */
#define NODE_BYTES 104u

/* Takes some of the nodes, each round another number, and frees them in another order. */
static uint64_t breathe(struct sy_heap *heap, void **nodes, unsigned count)
{
	uint64_t held;

	for (unsigned i = 0; i < count; i++)
		nodes[i] = sy_malloc(heap, NODE_BYTES, 0);
	held = heap->counters.slab_pages;
	for (unsigned i = 0; i < count; i++)
		sy_mfree(heap, nodes[(uint64_t)i * 7919 % count]);
	return held;
}

/* A program of phases needs as much as in its largest phase. Something of each phase's end stays, beside memory that was
 * never used; it goes, and joins with that. */
static void use_again(void)
{
	struct sy_heap *heap = sy_heap_open("yard", NULL, NULL);
	void **nodes = malloc((NODES + 1) * sizeof(*nodes));
	uint64_t most = 0, held;

	for (unsigned phase = 0; phase < 3; phase++) {
		for (unsigned i = 0; i <= NODES; i++)
			nodes[i] = sy_malloc(heap, NODE_BYTES, 0);
		for (unsigned i = 0; i < NODES; i++)
			sy_mfree(heap, nodes[i]);
		for (unsigned round = 0; round < 10; round++) {
			held = breathe(heap, nodes, NODES - round % 7 * 512);
			most = held > most ? held : most;
		}
		sy_mfree(heap, nodes[NODES]);
	}
	CHECK(backed_pages(heap) <= most + most / 20);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
	free(nodes);
}

/* A limit beyond the reserve, or beyond any heap, is none. */
static void limit_beyond(void)
{
	const struct sy_heap_options options[] = {
		{ .limit = SIZE_MAX, .reserve = 16 * MIB }, { .limit = 64 * MIB, .reserve = 16 * MIB }, { .limit = SIZE_MAX },
	};

	for (unsigned i = 0; i < sizeof(options) / sizeof(*options); i++) {
		const char *error = "";
		struct sy_heap *heap = sy_heap_open("slab", &options[i], &error);

		CHECK_TEXT(error, "");
		if (!heap)
			continue;
		CHECK(sy_malloc(heap, MIB, 0) != NULL);
		CHECK(!options[i].reserve || !sy_malloc(heap, 20 * MIB, 0));
		sy_heap_close(heap);
	}
}

static void open_wrongly(void)
{
	const struct sy_heap_options vast = { .reserve = SIZE_MAX / 2 };
	const char *error = NULL;
	struct sy_heap *by_default;

	CHECK(!sy_heap_open("slbu", NULL, &error));
	CHECK_TEXT(error, "no allocator is named slbu: did you mean slub?");
	CHECK(!sy_heap_open("yard:min_objects=x", NULL, &error));
	CHECK_TEXT(error, "yard: min_objects cannot be x: it can be 0 to 32767");
	CHECK(!sy_heap_open("", NULL, &error));
	CHECK_TEXT(error, "the allocator has no name: write policy or policy:tunable=value");
	CHECK(!sy_heap_open("nobody knows this one", NULL, &error));
	CHECK(error && strstr(error, "svr4 and sunos4"));
	CHECK(!sy_heap_open("yard", &vast, &error));
	CHECK_TEXT(error, "a heap cannot have so many addresses: reserve can be less than 16 TiB, or, of 32-bit addresses, a quarter");
	CHECK(!sy_heap_open("yard", &vast, NULL));
	by_default = sy_heap_open(NULL, NULL, &error); /* a variable of the environment that is not set */
	CHECK(by_default && by_default->policy == sy_policies[0]);
	sy_heap_close(by_default);
	CHECK(!sy_heap_open("yard", &(struct sy_heap_options){ .limit = 1 }, &error));
	CHECK_TEXT(error, "there is no memory for a heap: raise its limit, or the process's (ulimit -v, ulimit -d)");
	for (uint32_t align = 3; align <= 2 * SY_PAGE_SIZE; align = 2 * SY_PAGE_SIZE + (align == 2 * SY_PAGE_SIZE)) {
		CHECK(!sy_heap_open("yard", &(struct sy_heap_options){ .sizing = { .align = align } }, &error));
		CHECK_TEXT(error, "objects cannot be aligned so: sizing.align can be 0 or a power of two up to a page");
	}
	CHECK(!sy_heap_open("yard", &(struct sy_heap_options){ .sizing = { .classes = SY_CLASSES_FINE + 1 } }, &error));
	CHECK_TEXT(error, "there are no such size classes: sizing.classes can be SY_CLASSES_LINUX or SY_CLASSES_FINE");
	CHECK(!sy_heap_open("yard", &(struct sy_heap_options){ .buffer = &error, .buffer_bytes = SIZE_MAX }, &error));
	CHECK_TEXT(error, "the buffer would end beyond the last address: buffer_bytes can be what there is of it");
	sy_heap_close(NULL);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BOUNDED_ADDRESSES false /* sanitizers need more of them than anybody would allow */
#else
#define BOUNDED_ADDRESSES true
#endif

static rlim_t addresses_in_use(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	CHECK(file && fscanf(file, "%lu", &pages) == 1);
	if (file)
		fclose(file);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* The reserve is halved until the heap's tables have room as well, whatever the limit is. */
static void open_within(const char *policy, const struct sy_heap_options *options, rlim_t more)
{
	pid_t child = fork();
	int status = 0;

	CHECK(child >= 0);
	if (!child) {
		rlim_t limit = addresses_in_use() + more;

		if (setrlimit(RLIMIT_AS, &(struct rlimit){ limit, limit }))
			_exit(2);
		_exit(sy_heap_open(policy, options, NULL) ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CHECK_EQUAL(status, 0);
}

static void under(const char *policy)
{
	run_out(policy);
	use_buffer(policy, 0, 9 * MIB);
	use_buffer(policy, 77, 8 * MIB + 46);
	shrink_full(policy);
	giving_back(policy);
}

int main(void)
{
	open_wrongly();
	limit_beyond();
	for (rlim_t more = 40 * MIB; BOUNDED_ADDRESSES && more < 800 * MIB; more += 6 * MIB)
		for (unsigned bounded = 0; bounded < 2; bounded++)
			open_within("slqb", bounded ? &(struct sy_heap_options){ .limit = 8 * MIB } : NULL, more);
	refuse_buffers();
	use_again();
	CHECK_POLICIES(under);
	return check_result();
}
