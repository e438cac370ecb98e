/*
 * Threads that share a heap: what the tests of heaps of threads have in common.
 *
 * A world is a heap with three caches (constructed, typesafe, plain) and a table of cells. A step gets an object of a random kind,
 * fills it with a byte of its own, and exchanges it for what lies in a random cell, most often another thread's object; that is
 * verified to the last byte and freed. So objects are freed by other threads than those that got them, all the time, and no
 * thread but the holder ever touches one.
 */
#ifndef THREADS_SUPPORT_H
#define THREADS_SUPPORT_H

#include <pthread.h>
#include <sched.h>
#include "core/types.h"
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define WORLD_CELLS 256
#define WORLD_CACHES 3
#define CONSTRUCTED_BYTE 0x3c
#define SMALL_RESERVE ((size_t)256 << 20) /* an emulator takes memory for all that is reserved */

enum { CONSTRUCTED, TYPESAFE, PLAIN, KMALLOC };

static const size_t world_sizes[WORLD_CACHES] = { 72, 200, 1100 };

struct mark {
	uint32_t kind, bytes; /* of all the object */
	unsigned char fill;
};

/* How many times as fast as real time the heap's clock runs. Nobody uses the library while this changes. */
static unsigned world_speed = 1;

static inline uint64_t world_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) * world_speed;
}

struct world {
	struct sy_heap *heap;
	struct sy_cache *caches[WORLD_CACHES];
	struct mark *cells[WORLD_CELLS]; /* exchanged atomically */
	atomic_uint wrong;
	atomic_uint refused; /* requests for which there was no memory */
};

static inline void construct(void *object, size_t size)
{
	memset(object, CONSTRUCTED_BYTE, size);
}

static inline bool filled(const unsigned char *memory, size_t bytes, unsigned char byte)
{
	return !bytes || (memory[0] == byte && !memcmp(memory, memory + 1, bytes - 1));
}

/* Whether the program can go on; a policy that makes no caches with constructors makes one without. */
static inline bool world_open(struct world *world, const char *spec, const struct sy_heap_options *options)
{
	struct sy_cache_config configs[WORLD_CACHES] = {
		{ .name = "constructed", .size = world_sizes[0], .constructor = construct },
		{ .name = "typesafe", .size = world_sizes[1], .flags = SY_CACHE_TYPESAFE_BY_RCU },
		{ .name = "plain", .size = world_sizes[2], .flags = SY_CACHE_NO_MERGE },
	};
	const char *error = "";

	memset(world, 0, sizeof(*world));
	world->heap = sy_heap_open(spec, options, &error);
	if (!world->heap) {
		CHECK_TEXT(error, NULL);
		return false;
	}
	for (unsigned i = 0; i < WORLD_CACHES; i++) {
		world->caches[i] = sy_cache_create(world->heap, &configs[i]);
		CHECK(world->caches[i] != NULL);
		if (!world->caches[i])
			return false;
	}
	return true;
}

static inline void world_free(struct world *world, struct mark *mark)
{
	uint32_t kind = mark->kind, bytes = mark->bytes;
	unsigned char fill = mark->fill;

	if (!filled((unsigned char *)mark + sizeof(*mark), bytes - sizeof(*mark), fill))
		atomic_fetch_add(&world->wrong, 1);
	if (kind == CONSTRUCTED)
		memset(mark, CONSTRUCTED_BYTE, bytes);
	if (kind == KMALLOC)
		sy_mfree(world->heap, mark);
	else
		sy_free(world->caches[kind], mark);
}

static inline uint32_t world_size(uint64_t random)
{
	unsigned shift = (unsigned)(random % 9); /* up to 16 KiB, mostly small; seldom up to 512 KiB */

	if ((random >> 4) % 64 == 0)
		shift += 5;
	return (uint32_t)(sizeof(struct mark) + (random >> 10) % ((uint64_t)64 << shift));
}

static inline struct mark *world_get(struct world *world, uint64_t random)
{
	uint32_t kind = (uint32_t)(random % 6), bytes;
	struct mark *mark;

	if (kind > KMALLOC)
		kind = KMALLOC;
	bytes = kind == KMALLOC ? world_size(random >> 8) : (uint32_t)world_sizes[kind];
	mark = kind == KMALLOC ? sy_malloc(world->heap, bytes, 0) : sy_alloc(world->caches[kind], 0);
	if (!mark) {
		atomic_fetch_add(&world->refused, 1);
		return NULL;
	}
	if (kind == CONSTRUCTED && !filled((unsigned char *)mark, bytes, CONSTRUCTED_BYTE))
		atomic_fetch_add(&world->wrong, 1);
	memset(mark, (unsigned char)(random >> 56), bytes);
	*mark = (struct mark){ kind, bytes, (unsigned char)(random >> 56) };
	return mark;
}

static inline void world_step(struct world *world, uint64_t *random)
{
	struct mark *mark = world_get(world, check_random(random));

	mark = __atomic_exchange_n(&world->cells[check_random(random) % WORLD_CELLS], mark, __ATOMIC_ACQ_REL);
	if (mark)
		world_free(world, mark);
}

static inline void world_check(struct world *world)
{
	const char *wrong = sy_heap_check(world->heap);

	if (wrong && !atomic_fetch_add(&world->wrong, 1))
		fprintf(stderr, "%s\n", wrong);
}

static inline void world_own_cache(struct world *world, uint64_t random)
{
	struct sy_cache_config config = { .name = "own", .size = 64 + random % 512, .flags = SY_CACHE_NO_MERGE };
	struct sy_cache *cache = sy_cache_create(world->heap, &config);
	void *objects[20];
	unsigned count;

	if (!cache)
		return;
	count = sy_alloc_bulk(cache, SY_ZERO, 20, objects);
	for (unsigned i = 0; i < count; i++)
		if (!filled(objects[i], config.size, 0))
			atomic_fetch_add(&world->wrong, 1);
	sy_free_bulk(cache, count, objects);
	if (!sy_cache_destroy(cache, NULL))
		atomic_fetch_add(&world->wrong, 1);
}

/* Many at once, which go to other threads one by one. */
static inline void world_bulk(struct world *world, uint64_t random)
{
	void *objects[40];
	unsigned kind = PLAIN, count = sy_alloc_bulk(world->caches[kind], 0, (unsigned)(random % 40), objects);

	for (unsigned i = 0; i < count; i++) {
		uint32_t bytes = (uint32_t)world_sizes[kind];
		struct mark *mark = objects[i];

		memset(mark, (unsigned char)i, bytes);
		*mark = (struct mark){ kind, bytes, (unsigned char)i };
		objects[i] = __atomic_exchange_n(&world->cells[(random >> 8) % WORLD_CELLS], mark, __ATOMIC_ACQ_REL);
		random = check_random(&random);
	}
	for (unsigned i = 0; i < count; i++)
		if (objects[i])
			world_free(world, objects[i]);
}

struct yard_seen {
	uint64_t bytes; /* of parts */
	bool wrong;
};

static inline bool yard_see_slab(void *context, const struct sy_slab *slab)
{
	struct yard_seen *seen = context;

	(void)slab;
	seen->bytes = 0;
	return true;
}

static inline bool yard_see_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct yard_seen *seen = context;

	(void)slab;
	seen->wrong |= part->offset != seen->bytes;
	seen->bytes += part->bytes;
	return true;
}

static inline void world_walk(struct world *world)
{
	struct yard_seen seen = { 0, false };
	struct sy_visitor visitor = { .slab = yard_see_slab, .part = yard_see_part, .context = &seen };

	if (!sy_heap_walk(world->heap, &visitor) || seen.wrong)
		atomic_fetch_add(&world->wrong, 1);
}

/* What threads do to a heap as a whole, in between. */
static inline void world_event(struct world *world, uint64_t random)
{
	struct sy_cache_counts counts;

	switch (random % 8) {
	case 0:
		sy_heap_trim(world->heap);
		break;
	case 1:
		sy_heap_shrink(world->heap);
		break;
	case 2:
		sy_cache_count(world->caches[(random >> 8) % WORLD_CACHES], &counts);
		break;
	case 3:
		world_own_cache(world, random >> 8);
		break;
	case 4:
		world_bulk(world, random >> 8);
		break;
	case 5:
		sy_cache_shrink(world->caches[(random >> 8) % WORLD_CACHES]);
		break;
	case 6:
		world_walk(world);
		break;
	default:
		world_check(world);
	}
}

/* A child allocates and frees. Its parent's other threads, which it does not have, were doing the same. */
static inline void world_fork(struct world *world, uint64_t *random)
{
	pid_t child = fork();
	int status;

	if (!child) {
		for (unsigned i = 0; i < 300; i++)
			world_step(world, random);
		world_check(world);
		_exit(world->wrong ? 1 : 0);
	}
	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline void world_empty(struct world *world)
{
	for (unsigned i = 0; i < WORLD_CELLS; i++)
		if (world->cells[i])
			world_free(world, world->cells[i]);
	CHECK_EQUAL(world->wrong, 0);
}

/* The heap ends with what slots still have in them. */
static inline void world_abandon(struct world *world)
{
	world_empty(world);
	CHECK_FINE(sy_heap_check(world->heap));
	sy_heap_close(world->heap);
}

/* Everything goes, and nothing may be left or wrong. */
static inline void world_close(struct world *world)
{
	bool reclaims = !world->heap->never_reclaims;

	world_empty(world);
	CHECK_FINE(sy_heap_check(world->heap));
	for (unsigned i = 0; i < WORLD_CACHES; i++)
		CHECK(sy_cache_destroy(world->caches[i], NULL));
	sy_heap_shrink(world->heap);
	CHECK_FINE(sy_heap_check(world->heap));
	if (reclaims)
		CHECK_EQUAL(world->heap->counters.slab_pages, 0);
	CHECK_EQUAL(world->heap->counters.large_pages, 0);
	sy_heap_close(world->heap);
}

#endif
