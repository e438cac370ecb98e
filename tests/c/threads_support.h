/*
 * Threads that share a heap: what the tests of heaps of threads have in common.
 *
 * A yard is a heap with three caches (constructed, typesafe, plain) and a table of cells. A step gets an object of a random kind,
 * fills it with a byte of its own, and exchanges it for what lies in a random cell, most often another thread's object; that is
 * verified to the last byte and freed. So objects are freed by other threads than those that got them, all the time, and no
 * thread but the holder ever touches one.
 */
#ifndef THREADS_SUPPORT_H
#define THREADS_SUPPORT_H

#include <pthread.h>
#include <sched.h>
#include <slabyard/slabyard.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define YARD_CELLS 256
#define YARD_CACHES 3
#define CONSTRUCTED_BYTE 0x3c
#define SMALL_RESERVE ((size_t)256 << 20) /* an emulator takes memory for all that is reserved */

enum { CONSTRUCTED, TYPESAFE, PLAIN, KMALLOC };

static const size_t yard_sizes[YARD_CACHES] = { 72, 200, 1100 };

struct mark {
	uint32_t kind, bytes; /* of all the object */
	unsigned char fill;
};

/* The heap's clock, so many times as fast as it is; nobody uses the library when that changes. */
static unsigned yard_speed = 1;

static inline uint64_t yard_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) * yard_speed;
}

struct yard {
	struct sy_heap *heap;
	struct sy_cache *caches[YARD_CACHES];
	struct mark *cells[YARD_CELLS]; /* exchanged atomically */
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
static inline bool yard_open(struct yard *yard, const char *spec, const struct sy_heap_options *options)
{
	struct sy_cache_config configs[YARD_CACHES] = {
		{ .name = "constructed", .size = yard_sizes[0], .constructor = construct },
		{ .name = "typesafe", .size = yard_sizes[1], .flags = SY_CACHE_TYPESAFE_BY_RCU },
		{ .name = "plain", .size = yard_sizes[2], .flags = SY_CACHE_NO_MERGE },
	};
	const char *error = "";

	memset(yard, 0, sizeof(*yard));
	yard->heap = sy_heap_open(spec, options, &error);
	if (!yard->heap) {
		CHECK_TEXT(error, NULL);
		return false;
	}
	for (unsigned i = 0; i < YARD_CACHES; i++) {
		yard->caches[i] = sy_cache_create(yard->heap, &configs[i]);
		CHECK(yard->caches[i] != NULL);
		if (!yard->caches[i])
			return false;
	}
	return true;
}

static inline void yard_free(struct yard *yard, struct mark *mark)
{
	uint32_t kind = mark->kind, bytes = mark->bytes;
	unsigned char fill = mark->fill;

	if (!filled((unsigned char *)mark + sizeof(*mark), bytes - sizeof(*mark), fill))
		atomic_fetch_add(&yard->wrong, 1);
	if (kind == CONSTRUCTED)
		memset(mark, CONSTRUCTED_BYTE, bytes);
	if (kind == KMALLOC)
		sy_mfree(yard->heap, mark);
	else
		sy_free(yard->caches[kind], mark);
}

static inline uint32_t yard_size(uint64_t random)
{
	unsigned shift = (unsigned)(random % 9); /* up to 16 KiB, mostly small; seldom up to 512 KiB */

	if ((random >> 4) % 64 == 0)
		shift += 5;
	return (uint32_t)(sizeof(struct mark) + (random >> 10) % ((uint64_t)64 << shift));
}

static inline struct mark *yard_get(struct yard *yard, uint64_t random)
{
	uint32_t kind = (uint32_t)(random % 6), bytes;
	struct mark *mark;

	if (kind > KMALLOC)
		kind = KMALLOC;
	bytes = kind == KMALLOC ? yard_size(random >> 8) : (uint32_t)yard_sizes[kind];
	mark = kind == KMALLOC ? sy_malloc(yard->heap, bytes, 0) : sy_alloc(yard->caches[kind], 0);
	if (!mark) {
		atomic_fetch_add(&yard->refused, 1);
		return NULL;
	}
	if (kind == CONSTRUCTED && !filled((unsigned char *)mark, bytes, CONSTRUCTED_BYTE))
		atomic_fetch_add(&yard->wrong, 1);
	memset(mark, (unsigned char)(random >> 56), bytes);
	*mark = (struct mark){ kind, bytes, (unsigned char)(random >> 56) };
	return mark;
}

static inline void yard_step(struct yard *yard, uint64_t *random)
{
	struct mark *mark = yard_get(yard, check_random(random));

	mark = __atomic_exchange_n(&yard->cells[check_random(random) % YARD_CELLS], mark, __ATOMIC_ACQ_REL);
	if (mark)
		yard_free(yard, mark);
}

static inline void yard_check(struct yard *yard)
{
	const char *wrong = sy_heap_check(yard->heap);

	if (wrong && !atomic_fetch_add(&yard->wrong, 1))
		fprintf(stderr, "%s\n", wrong);
}

static inline void yard_own_cache(struct yard *yard, uint64_t random)
{
	struct sy_cache_config config = { .name = "own", .size = 64 + random % 512, .flags = SY_CACHE_NO_MERGE };
	struct sy_cache *cache = sy_cache_create(yard->heap, &config);
	void *objects[20];
	unsigned count;

	if (!cache)
		return;
	count = sy_alloc_bulk(cache, SY_ZERO, 20, objects);
	for (unsigned i = 0; i < count; i++)
		if (!filled(objects[i], config.size, 0))
			atomic_fetch_add(&yard->wrong, 1);
	sy_free_bulk(cache, count, objects);
	if (!sy_cache_destroy(cache, NULL))
		atomic_fetch_add(&yard->wrong, 1);
}

/* Many at once, which go to other threads one by one. */
static inline void yard_bulk(struct yard *yard, uint64_t random)
{
	void *objects[40];
	unsigned kind = PLAIN, count = sy_alloc_bulk(yard->caches[kind], 0, (unsigned)(random % 40), objects);

	for (unsigned i = 0; i < count; i++) {
		uint32_t bytes = (uint32_t)yard_sizes[kind];
		struct mark *mark = objects[i];

		memset(mark, (unsigned char)i, bytes);
		*mark = (struct mark){ kind, bytes, (unsigned char)i };
		objects[i] = __atomic_exchange_n(&yard->cells[(random >> 8) % YARD_CELLS], mark, __ATOMIC_ACQ_REL);
		random = check_random(&random);
	}
	for (unsigned i = 0; i < count; i++)
		if (objects[i])
			yard_free(yard, objects[i]);
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

static inline void yard_walk(struct yard *yard)
{
	struct yard_seen seen = { 0, false };
	struct sy_visitor visitor = { .slab = yard_see_slab, .part = yard_see_part, .context = &seen };

	if (!sy_heap_walk(yard->heap, &visitor) || seen.wrong)
		atomic_fetch_add(&yard->wrong, 1);
}

/* What threads do to a heap as a whole, in between. */
static inline void yard_event(struct yard *yard, uint64_t random)
{
	struct sy_cache_counts counts;

	switch (random % 8) {
	case 0:
		sy_heap_trim(yard->heap);
		break;
	case 1:
		sy_heap_shrink(yard->heap);
		break;
	case 2:
		sy_cache_count(yard->caches[(random >> 8) % YARD_CACHES], &counts);
		break;
	case 3:
		yard_own_cache(yard, random >> 8);
		break;
	case 4:
		yard_bulk(yard, random >> 8);
		break;
	case 5:
		sy_cache_shrink(yard->caches[(random >> 8) % YARD_CACHES]);
		break;
	case 6:
		yard_walk(yard);
		break;
	default:
		yard_check(yard);
	}
}

/* A child allocates and frees while its parent's other threads, which it does not have, were at it. */
static inline void yard_fork(struct yard *yard, uint64_t *random)
{
	pid_t child = fork();
	int status;

	if (!child) {
		for (unsigned i = 0; i < 300; i++)
			yard_step(yard, random);
		yard_check(yard);
		_exit(yard->wrong ? 1 : 0);
	}
	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static inline void yard_empty(struct yard *yard)
{
	for (unsigned i = 0; i < YARD_CELLS; i++)
		if (yard->cells[i])
			yard_free(yard, yard->cells[i]);
	CHECK_EQUAL(yard->wrong, 0);
}

/* The heap ends with what slots still have in them. */
static inline void yard_abandon(struct yard *yard)
{
	yard_empty(yard);
	CHECK_FINE(sy_heap_check(yard->heap));
	sy_heap_close(yard->heap);
}

/* Everything goes, and nothing may be left or wrong. */
static inline void yard_close(struct yard *yard)
{
	bool reclaims = !yard->heap->policy->never_reclaims;

	yard_empty(yard);
	CHECK_FINE(sy_heap_check(yard->heap));
	for (unsigned i = 0; i < YARD_CACHES; i++)
		CHECK(sy_cache_destroy(yard->caches[i], NULL));
	sy_heap_shrink(yard->heap);
	CHECK_FINE(sy_heap_check(yard->heap));
	if (reclaims)
		CHECK_EQUAL(yard->heap->counters.slab_pages, 0);
	CHECK_EQUAL(yard->heap->counters.large_pages, 0);
	sy_heap_close(yard->heap);
}

#endif
