/*
 * Every policy under real threads:  conformance-threads [OPERATIONS]
 *
 * Each of four threads makes OPERATIONS (default 100,000) random steps on one heap of threads: it allocates an object, writes
 * it, and exchanges it for whatever lies in a random cell of a table that all threads share. It verifies and frees what it
 * gets, most often an object of another thread. So objects are freed all the time where they were not allocated, and no thread
 * but the holder ever touches one: a byte that changed is the allocator's fault.
 *
 * One cache is constructed, one waits for grace periods (the first thread lets time pass), the rest is kmalloc. Memory is
 * ample: what happens when it is short is the business of conformance-soak. In the end all is freed, and no page may be left.
 *
 * Run it under the thread sanitizer (SLABYARD_SANITIZE=thread) to see races that do no visible harm.
 */
#include "core/types.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define CELLS 512
#define DEFAULT_OPERATIONS 100000
#define CONSTRUCTED_BYTE 0x3c

enum { CONSTRUCTED, TYPESAFE, PLAIN, CACHES, KMALLOC = CACHES };

static const size_t cache_sizes[CACHES] = { [CONSTRUCTED] = 72, [TYPESAFE] = 200, [PLAIN] = 1100 };

/* The start of each object; the rest is filled with the seed's lowest byte. */
struct mark {
	uint32_t kind, bytes;
};

struct world {
	struct sy_heap *heap;
	struct sy_cache *caches[CACHES];
	struct mark *cells[CELLS]; /* exchanged atomically */
	uint64_t operations;
	const char *wrong; /* the first complaint of any thread */
};

struct worker {
	struct world *world;
	pthread_t thread;
	unsigned index;
	uint64_t random;
};

static uint32_t below(struct worker *worker, uint32_t bound)
{
	worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(worker->random >> 33) % bound;
}

static bool filled_with(const unsigned char *memory, size_t bytes, unsigned char byte)
{
	return memory[0] == byte && memcmp(memory, memory + 1, bytes - 1) == 0;
}

static unsigned char pattern_of(const struct mark *mark)
{
	return (unsigned char)(mark->kind * 31 + mark->bytes + 1);
}

static void construct(void *object, size_t size)
{
	memset(object, CONSTRUCTED_BYTE, size);
}

static void complain(struct world *world, const char *what)
{
	__atomic_store_n(&world->wrong, what, __ATOMIC_RELAXED);
}

/* NULL: no memory, which is a complaint. */
static struct mark *allocate(struct worker *worker)
{
	struct world *world = worker->world;
	uint32_t kind = below(worker, KMALLOC + 2);
	size_t bytes = kind < CACHES ? cache_sizes[kind] : sizeof(struct mark) + 1 + below(worker, 1u << below(worker, 15));
	struct mark *mark = kind < CACHES ? sy_alloc(world->caches[kind], 0) : sy_malloc(world->heap, bytes, 0);

	if (!mark) {
		complain(world, "NULL, though there is memory");
		return NULL;
	}
	if (kind == CONSTRUCTED && !filled_with((unsigned char *)mark, bytes, CONSTRUCTED_BYTE))
		complain(world, "an object is not in constructed state");
	*mark = (struct mark){ kind, (uint32_t)bytes };
	memset(mark + 1, pattern_of(mark), bytes - sizeof(*mark));
	return mark;
}

static void give_back(struct world *world, struct mark *mark)
{
	uint32_t kind = mark->kind, bytes = mark->bytes;

	if (!filled_with((unsigned char *)(mark + 1), bytes - sizeof(*mark), pattern_of(mark)))
		complain(world, "an object's contents changed");
	if (kind == CONSTRUCTED)
		memset(mark, CONSTRUCTED_BYTE, bytes);
	if (kind < CACHES)
		sy_free(world->caches[kind], mark);
	else
		sy_mfree(world->heap, mark);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct world *world = worker->world;

	for (uint64_t i = 0; i < world->operations && !__atomic_load_n(&world->wrong, __ATOMIC_RELAXED); i++) {
		struct mark *mine = below(worker, 3) ? allocate(worker) : NULL;
		struct mark *theirs = __atomic_exchange_n(&world->cells[below(worker, CELLS)], mine, __ATOMIC_ACQ_REL);

		if (theirs)
			give_back(world, theirs);
		if (worker->index == 0 && i % 64 == 0)
			sy_heap_tick(world->heap);
	}
	return NULL;
}

static bool make_yard(struct world *world, struct sy_pages *pages, const struct sy_policy *policy)
{
	struct sy_heap_config config;

	sy_heap_defaults(policy, &config);
	config.threads = true;
	config.grace_ns = 100000;
	world->heap = sy_heap_create(pages, &config);
	for (unsigned i = 0; world->heap && i < CACHES; i++) {
		struct sy_cache_config cache = { .name = "threads", .size = cache_sizes[i],
			                         .flags = i == TYPESAFE ? SY_CACHE_TYPESAFE_BY_RCU : 0,
			                         .constructor = i == CONSTRUCTED ? construct : NULL };

		world->caches[i] = sy_cache_create(world->heap, &cache);
		if (!world->caches[i])
			return false;
	}
	return world->heap != NULL;
}

static void run_workers(struct world *world)
{
	struct worker workers[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .world = world, .index = i, .random = i + 1 };
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
			fputs("conformance-threads: no thread could be started\n", stderr);
			exit(2);
		}
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
}

/* Frees what still lies in the table and destroys the caches. */
static const char *clean_up(struct world *world)
{
	const char *wrong = sy_heap_check(world->heap);

	for (unsigned i = 0; i < CELLS; i++)
		if (world->cells[i])
			give_back(world, world->cells[i]);
	for (unsigned i = 0; i < CACHES && !wrong; i++)
		if (!sy_cache_destroy(world->caches[i], NULL))
			wrong = "a cache without objects in use could not be destroyed";
	sy_heap_shrink(world->heap);
	if (!wrong && !world->heap->never_reclaims && world->heap->counters.slab_pages)
		wrong = "slabs are left after everything was freed and the heap has shrunk";
	if (!wrong && world->heap->counters.large_pages)
		wrong = "large allocations are left after everything was freed";
	return wrong ? wrong : world->wrong;
}

static bool run(const struct sy_policy *policy, uint64_t operations)
{
	struct sy_pages_config config = { .zone_count = 1, .slots = THREADS + 2, .pageblock_order = 9, .cpu_lists = true };
	struct world world = { .operations = operations };
	struct sy_pages *pages;
	const char *wrong = "no memory for the test itself";

	config.zones[0] = (struct sy_zone_config){ .name = "Normal", .pages = 1u << 16 };
	pages = sy_pages_create(&config);
	if (pages && make_yard(&world, pages, policy)) {
		run_workers(&world);
		wrong = clean_up(&world);
		if (!wrong)
			wrong = sy_heap_check(world.heap);
		sy_heap_destroy(world.heap);
		if (!wrong)
			wrong = sy_pages_check(pages);
		sy_pages_destroy(pages);
	}
	if (wrong)
		printf("%s: %s\n", policy->name, wrong);
	else
		printf("%s: %d threads of %" PRIu64 " operations each\n", policy->name, THREADS, operations);
	return !wrong;
}

int main(int argc, char **argv)
{
	uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : DEFAULT_OPERATIONS;
	bool kept = true;

	for (unsigned i = 0; sy_policies[i]; i++)
		kept = run(sy_policies[i], operations) && kept;
	return !kept;
}
