/*
 * Objects that another thread frees than the one that got them. Counts, checks and walks show them as free at once, whatever
 * way they go. They go home with shrink and trim, when the thread ends, and after a while, or they serve the thread that freed
 * them. The memory of threads that exchange objects stays near what is in use.
 */
#include "threads_heap.h"

#define SIZE 256
#define TAKEN 512u
#define FEW 20u
#define OTHER 528

static struct sy_heap *heap;
static struct sy_cache *cache;
static void *objects[TAKEN];
static void *others; /* an object of the other thread's */
static struct worker other;

static void take(unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		objects[i] = sy_alloc(cache, 0);
}

static void give(unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		sy_free(cache, objects[i]);
}

static void take_one(void)
{
	others = sy_alloc(cache, 0);
}

static void give_few(void)
{
	give(0, FEW);
}

static void give_all(void)
{
	give(0, TAKEN);
}

/* TAKEN objects of the main thread, and another thread, which has an object too. */
static void begin(const char *spec, size_t size)
{
	heap = open_unscavenged(spec);
	cache = own_cache(heap, size);
	take(0, TAKEN);
	worker_begin(&other);
	worker_does(&other, take_one);
}

static void end(void)
{
	worker_end(&other);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

/* ---- They are free ----------------------------------------------------------------------------------------------------- */

struct seen {
	size_t in_use, twice;
};

static bool see_slab(void *context, const struct sy_slab *slab)
{
	return context && slab;
}

static bool see(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct seen *seen = context;

	if (slab->cache != cache || !part->is_object)
		return true;
	seen->in_use += part->state == SY_PART_USED;
	seen->twice += part->lists > 1;
	return true;
}

static void in_use_are(size_t in_use)
{
	struct seen seen = { 0, 0 };
	const struct sy_visitor visitor = { see_slab, see, &seen, NULL };

	CHECK_EQUAL(count(heap, cache).objects_in_use, in_use);
	CHECK(sy_heap_walk(heap, &visitor));
	CHECK_EQUAL(seen.in_use, in_use);
	CHECK_EQUAL(seen.twice, 0);
}

static void they_are_free(const char *policy)
{
	begin(policy, SIZE);
	in_use_are(TAKEN + 1);
	worker_does(&other, give_few);
	in_use_are(TAKEN + 1 - FEW);
	take(0, FEW);
	in_use_are(TAKEN + 1);
	worker_does(&other, give_all);
	in_use_are(1);
	end();
}

/* ---- They go home ------------------------------------------------------------------------------------------------------ */

static void shrinks_cache(void)
{
	uint64_t before = count(heap, cache).pages, gone = sy_cache_shrink(cache);

	CHECK(gone > 0);
	CHECK_EQUAL(gone, before - count(heap, cache).pages);
}

static void shrinks_heap(void)
{
	sy_heap_shrink(heap);
}

static void trims_heap(void)
{
	sy_heap_trim(heap);
}

static void give_own(void)
{
	sy_free(cache, others);
}

/* All of its objects were freed: no slab is left then. */
static void they_go_with(const char *policy, void (*work)(void))
{
	begin(policy, SIZE);
	worker_does(&other, give_all);
	worker_does(&other, give_own);
	work();
	CHECK_EQUAL(count(heap, cache).slabs, 0);
	end();
}

static void ends(void)
{
	worker_end(&other);
}

static void scavenges(void)
{
	scavenge(heap);
}

static void needs_memory(void)
{
	for (unsigned i = 0; i < 4 * TAKEN; i++)
		CHECK(sy_malloc(heap, OTHER, 0) != NULL);
}

static void needs_memory_there(void)
{
	worker_does(&other, needs_memory);
}

/* Takes a new slab, and all objects in it: then the main thread has nothing free. */
static void use_up(void)
{
	struct sy_cache_counts before = count(heap, cache), after;

	do {
		CHECK(sy_alloc(cache, 0) != NULL);
		sy_cache_count(cache, &after);
	} while (after.slabs == before.slabs);
	for (uint64_t i = 1; i < after.objects - before.objects; i++)
		CHECK(sy_alloc(cache, 0) != NULL);
}

/* A few were freed: they serve the main thread again, which needs no other slab. */
static void few_serve_after(const char *policy, void (*work)(void))
{
	uint64_t slabs;

	begin(policy, SIZE);
	use_up();
	slabs = count(heap, cache).slabs;
	worker_does(&other, give_few);
	work();
	take(0, FEW);
	CHECK_EQUAL(count(heap, cache).slabs, slabs);
	if (work == ends)
		worker_begin(&other);
	end();
}

/* ---- They serve the thread that freed them ------------------------------------------------------------------------------- */

static atomic_uint came_again;

static volatile uintptr_t few[FEW]; /* volatile: a compiler that knows malloc would take no new object for an old one */

static bool is_of_few(const void *object)
{
	for (unsigned i = 0; i < FEW; i++)
		if (few[i] == (uintptr_t)object)
			return true;
	return false;
}

/* How many of the few are among the next objects that the thread gets. */
static void take_after(void)
{
	void *next[TAKEN];

	for (unsigned i = 0; i < TAKEN; i++) {
		next[i] = sy_alloc(cache, 0);
		came_again += is_of_few(next[i]);
	}
	CHECK_FINE(sy_heap_check(heap));
	for (unsigned i = 0; i < TAKEN; i++)
		sy_free(cache, next[i]);
}

/* The freed objects serve that thread, unless they are smaller than a cache line: their neighbours are another thread's. */
static void they_serve(const char *spec, size_t size, unsigned expected)
{
	begin(spec, size);
	came_again = 0;
	for (unsigned i = 0; i < FEW; i++)
		few[i] = (uintptr_t)objects[i];
	worker_does(&other, give_few);
	worker_does(&other, take_after);
	CHECK_EQUAL(came_again, expected);
	end();
}

/* ---- Memory stays near what is in use ------------------------------------------------------------------------------------ */

#define HANDED 400u /* objects at a time */
#define ROUNDS 300u
#define MOST_TIMES 4 /* of what is in use */

static void *handed[HANDED];

static void give_handed(void)
{
	for (unsigned i = 0; i < HANDED; i++)
		sy_mfree(heap, handed[i]);
}

/* One gets, the other one frees. */
static void a_pair(const char *policy)
{
	uint64_t live = HANDED * SIZE / SY_PAGE_SIZE, most = 0;

	heap = open_unscavenged(policy);
	worker_begin(&other);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < HANDED; i++)
			handed[i] = sy_malloc(heap, SIZE, 0);
		most = heap->counters.slab_pages > most ? heap->counters.slab_pages : most;
		worker_does(&other, give_handed);
	}
	CHECK(most <= MOST_TIMES * live);
	end();
}

#define THREADS 3u
#define CELLS 3000u
#define STEPS 60000u
#define MOST_BYTES 1000u

static void *_Atomic cells[CELLS];

static void *exchange(void *seed)
{
	uint64_t random = *(const uint64_t *)seed;

	for (unsigned i = 0; i < STEPS; i++) {
		size_t bytes = 8 + (size_t)(check_random(&random) % MOST_BYTES);
		void *object = sy_malloc(heap, bytes, 0);

		memset(object, 1, bytes);
		sy_mfree(heap, atomic_exchange(&cells[check_random(&random) % CELLS], object));
	}
	return NULL;
}

/* Each frees at random what any of them got. */
static void at_random(const char *policy)
{
	uint64_t seeds[THREADS], live = CELLS * MOST_BYTES / 2 / SY_PAGE_SIZE;
	pthread_t threads[THREADS];

	heap = open_small(policy);
	for (unsigned i = 0; i < THREADS; i++) {
		seeds[i] = i + 1;
		CHECK_EQUAL(pthread_create(&threads[i], NULL, exchange, &seeds[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(heap->counters.slab_pages <= MOST_TIMES * live);
	for (unsigned i = 0; i < CELLS; i++)
		sy_mfree(heap, atomic_exchange(&cells[i], NULL));
	sy_heap_shrink(heap);
	CHECK_FINE(sy_heap_check(heap));
	CHECK_EQUAL(heap->counters.slab_pages, 0);
	sy_heap_close(heap);
}

/* ---- A list that a program has written over ------------------------------------------------------------------------------- */

struct link {
	void *next;
};

/* A loop in the list is noticed, and counts and walks come to an end. */
static void written_over(void)
{
	const char *wrong = "yard: remote objects of a slot are no objects in use of their cache, or too many";
	struct sy_cache *elsewhere;
	struct link *link, before, *strange;
	struct sy_cache_counts counts;

	begin("yard", SIZE);
	elsewhere = own_cache(heap, SIZE);
	strange = sy_alloc(elsewhere, 0);
	worker_does(&other, give_few);
	link = objects[FEW - 1];
	before = *link;
	CHECK(before.next == objects[FEW - 2]);
	link->next = link;
	CHECK_TEXT(sy_heap_check(heap), wrong);
	sy_cache_count(cache, &counts);
	CHECK(sy_heap_walk(heap, &(struct sy_visitor){ see_slab, see_no_part, &counts, NULL }));
	link->next = strange;
	strange->next = before.next;
	CHECK_TEXT(sy_heap_check(heap), wrong);
	*link = before;
	in_use_are(TAKEN + 1 - FEW);
	end();
}

static void try_any(const char *policy)
{
	they_are_free(policy);
	they_go_with(policy, shrinks_cache);
	they_go_with(policy, shrinks_heap);
	they_go_with(policy, trims_heap);
	a_pair(policy);
	at_random(policy);
}

int main(void)
{
	static const char *const policies[] = { "yard", "slub", "slab", "slqb", "bonwick" };

	for (unsigned i = 0; i < sizeof(policies) / sizeof(*policies); i++)
		check_under(policies[i], try_any);
	check_under("yard:max_order=0", try_any);
	few_serve_after("yard", ends);
	few_serve_after("yard", trims_heap);
	few_serve_after("yard", scavenges);
	few_serve_after("yard", needs_memory_there);
	few_serve_after("slub", ends);
	few_serve_after("slub", trims_heap);
	they_serve("yard", SIZE, FEW);
	they_serve("yard", 48, 0);
	written_over();
	return check_result();
}
