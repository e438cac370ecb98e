/*
 * SLUB under real threads: every slot is driven by a thread of its own, and objects cross between them.
 *
 * Each thread allocates on its slot, marks the object with its address and a stamp, and puts it into a random place
 * of a table that all share; whatever was there before it verifies and frees on its own slot. So about half of all
 * frees reach slabs that another slot owns, keeps, or has left. When all are done the heap must hold exactly what
 * the table holds, and pass its checks. To be run under the thread sanitizer too: -DSLABYARD_SANITIZE=thread.
 */
#include "check.h"

#include <pthread.h>

#include "core/types.h"

#define THREADS 4
#define PLACES 3000
#define STEPS 100000
#define CACHES 3

struct mark {
	struct mark *self;
	uint32_t kind; /* cache, or CACHES for kmalloc */
	uint32_t size;
};

static struct sy_heap *heap;
static struct sy_cache *caches[CACHES];
static struct mark *table[PLACES];

static uint32_t random_below(uint64_t *state, uint32_t bound)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % bound;
}

static struct mark *make(unsigned slot, uint64_t *state)
{
	uint32_t kind = random_below(state, CACHES + 1), size = 16 + random_below(state, 2000);
	int node = random_below(state, 4) ? SY_ANY_NODE : (int)random_below(state, 2);
	struct mark *mark;

	if (kind < CACHES) {
		size = caches[kind]->object_size;
		mark = sy_cache_alloc(caches[kind], slot, 0, node);
	} else {
		mark = sy_kmalloc(heap, slot, size, 0, node);
	}
	if (mark) {
		*mark = (struct mark){ mark, kind, size };
		((unsigned char *)mark)[size - 1] = (unsigned char)(size > sizeof(*mark) ? size : 0);
	}
	return mark;
}

static bool is_whole(const struct mark *mark)
{
	return mark->self == mark && mark->kind <= CACHES &&
	       (mark->size <= sizeof(*mark) || ((const unsigned char *)mark)[mark->size - 1] == (unsigned char)mark->size);
}

static void end(unsigned slot, struct mark *mark)
{
	uint32_t kind = mark->kind;

	mark->self = NULL;
	if (kind < CACHES)
		sy_cache_free(caches[kind], slot, mark);
	else
		sy_kfree(heap, slot, mark);
}

static void *work(void *argument)
{
	unsigned slot = (unsigned)(uintptr_t)argument;
	uint64_t state = slot + 1;
	uintptr_t broken = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		struct mark *mine = make(slot, &state);
		struct mark *other = __atomic_exchange_n(&table[random_below(&state, PLACES)], mine, __ATOMIC_ACQ_REL);

		if (!other)
			continue;
		broken += !is_whole(other);
		end(slot, other);
	}
	return (void *)broken;
}

static void run(unsigned round)
{
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *broken;

		pthread_join(threads[i], &broken);
		CHECK(!broken);
	}
	CHECK_TEXT(sy_heap_check(heap), NULL);
	for (unsigned i = 0; i < PLACES; i++) {
		if (table[i])
			end((i + round) % THREADS, table[i]);
		table[i] = NULL;
	}
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_heap_shrink(heap);
	CHECK_EQUAL(heap->counters.slab_pages, 0);
	CHECK_EQUAL(heap->counters.large_pages, 0);
}

int main(void)
{
	static const size_t sizes[CACHES] = { 40, 320, 1400 };
	struct sy_pages_config pages_config = { .zone_count = 2, .slots = THREADS, .pageblock_order = 9, .cpu_lists = true };
	struct sy_heap_config config;
	struct sy_pages *pages;

	for (unsigned i = 0; i < 2; i++)
		pages_config.zones[i] =
			(struct sy_zone_config){ .name = "Normal", .node = i, .start_page = i * 8192u, .pages = 8192 };
	pages = sy_pages_create(&pages_config);
	sy_heap_defaults(sy_policy_find("slub"), &config);
	config.slots = THREADS;
	heap = sy_heap_create(pages, &config);
	for (unsigned i = 0; i < CACHES; i++) {
		struct sy_cache_config cache_config = { .name = "crossing", .size = sizes[i] };

		caches[i] = sy_cache_create(heap, &cache_config);
	}
	for (unsigned round = 0; round < 2; round++)
		run(round);
	sy_heap_destroy(heap);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_destroy(pages);
	return check_result();
}
