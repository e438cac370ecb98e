/*
 * What a thread that ended has left in its slot (core/policies/yard/strays.c): another one that frees its objects, and allocates
 * such itself, takes its slabs over, partial ones by their slot and full ones as it comes upon them, and so does one that needs
 * a slab; not those of a thread that lives. And the memory of servers that hand all they have on to a thread which they create
 * stays what they have in use.
 */
#include "core/policies/yard/yard.h"
#include "threads_heap.h"

#define MOST 200u
#define SIZE 256
#define LARGER 1024
#define BEFORE (SY__YARD_STRAYS_TO_ONE - 1) /* that are kept */

static struct sy_heap *heap;
static struct sy_cache *cache;
static void *own, *objects[MOST];
static unsigned wanted, freed_each; /* of so many objects that are taken, one in so many is freed again; 0: none */
static atomic_bool taken, may_end;

static void open_with(const char *spec, size_t size)
{
	const struct sy_cache_config config = { .name = "left", .size = size, .flags = SY_CACHE_NO_MERGE };

	heap = open_unsettled(spec);
	cache = sy_cache_create(heap, &config);
	CHECK(cache != NULL);
	own = sy_alloc(cache, 0);
}

static void free_one(unsigned at)
{
	sy_free(cache, objects[at]);
	objects[at] = NULL;
	CHECK_TEXT(sy_heap_check(heap), NULL);
}

static void *takes(void *nothing)
{
	for (unsigned i = 0; i < wanted; i++)
		objects[i] = sy_alloc(cache, 0);
	for (unsigned i = 0; freed_each && i < wanted - freed_each; i += freed_each)
		free_one(i);
	taken = true;
	while (!may_end)
		sched_yield();
	return nothing;
}

enum { BEGINS, WAITS, FREES, ENDS };

static atomic_uint third;
static pthread_t third_thread;

/* A third thread, which has a slot before the other one ends, frees a slab's objects if it is told to, and ends. */
static void *frees_a_slab(void *nothing)
{
	unsigned of_a_slab = SY_PAGE_SIZE / SIZE;

	sy_mfree(heap, sy_malloc(heap, 8, 0));
	third = WAITS;
	while (third == WAITS)
		sched_yield();
	for (unsigned i = of_a_slab + 1; third == FREES && i < 2 * of_a_slab; i++)
		free_one(i);
	return nothing;
}

static void end_third(unsigned told)
{
	if (third == WAITS) {
		third = told;
		pthread_join(third_thread, NULL);
	}
}

/* ---- What is seen of it ---------------------------------------------------------------------------------------------- */

struct seen {
	unsigned slot; /* that has the slab of the main thread's own object; SY_THREAD_SLOTS: not seen yet */
	size_t slabs[SY_THREAD_SLOTS], all, empty, strays;
};

static bool see_slab(void *context, const struct sy_slab *slab)
{
	struct seen *seen = context;

	if (slab->cache != cache || slab->owner_kind != SY_OWNER_SLOT)
		return true;
	seen->slabs[slab->owner]++;
	seen->all++;
	seen->empty += !strcmp(slab->list, "empty");
	if ((size_t)((char *)own - slab->address) < slab->bytes)
		seen->slot = slab->owner;
	return true;
}

static bool see_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct seen *seen = context;

	seen->strays += slab->cache == cache && part->list && !strcmp(part->list, "strays");
	return true;
}

static struct seen look(void)
{
	struct seen seen = { .slot = SY_THREAD_SLOTS };
	const struct sy_visitor visitor = { see_slab, see_part, &seen, NULL };

	CHECK(sy_heap_walk(heap, &visitor));
	return seen;
}

static size_t slabs_here(void)
{
	struct seen seen = look();

	CHECK(seen.slot < SY_THREAD_SLOTS);
	return seen.slot < SY_THREAD_SLOTS ? seen.slabs[seen.slot] : 0;
}

/* ---- Slabs that were left -------------------------------------------------------------------------------------------- */

static void run(bool lives, unsigned count, unsigned each, void (*work)(bool lives))
{
	pthread_t thread;

	wanted = count;
	freed_each = each;
	taken = false;
	may_end = !lives;
	third = BEGINS;
	CHECK_EQUAL(pthread_create(&third_thread, NULL, frees_a_slab, NULL), 0);
	while (third != WAITS)
		sched_yield();
	CHECK_EQUAL(pthread_create(&thread, NULL, takes, NULL), 0);
	if (!lives)
		pthread_join(thread, NULL);
	while (!taken)
		sched_yield();
	work(lives);
	for (unsigned i = 0; i < count; i++)
		if (objects[i])
			free_one(i);
	may_end = true;
	if (lives)
		pthread_join(thread, NULL);
	end_third(ENDS);
	sy_free(cache, own);
	sy_heap_trim(heap);
	CHECK(sy_cache_destroy(cache, NULL));
	sy_heap_close(heap);
}

/* A page is a slab of sixteen here, and one object of each is free. */
static void frees_into_partial(bool lives)
{
	unsigned at = 1, slabs = wanted / (SY_PAGE_SIZE / SIZE);

	for (unsigned strays = 0; strays < BEFORE; at++)
		if (objects[at]) {
			free_one(at);
			strays++;
		}
	CHECK_EQUAL(slabs_here(), 1);
	while (!objects[at])
		at++;
	free_one(at++);
	CHECK_EQUAL(slabs_here(), lives ? 1 : 1 + slabs);
	CHECK_EQUAL(look().all, lives ? slabs + 2 : slabs + 1); /* the other one's active slab is its node's */
	for (unsigned more = 0; more < 20; at++)
		if (objects[at]) {
			free_one(at);
			more++;
		}
	CHECK_EQUAL(look().strays, lives ? BEFORE + 20 : BEFORE);
}

/* A page is a slab of four, all in use. */
static void frees_into_full(bool lives)
{
	unsigned of_a_slab = SY_PAGE_SIZE / LARGER, at = 0;

	for (unsigned i = 0; i < BEFORE; i++)
		free_one(at += of_a_slab);
	CHECK_EQUAL(slabs_here(), 1);
	CHECK_EQUAL(look().strays, BEFORE);
	free_one(at += of_a_slab);
	CHECK_EQUAL(slabs_here(), lives ? 1 : 2);
	CHECK_EQUAL(look().strays, BEFORE);
}

/* A third one frees all that is in use of a partial slab, and nobody notices; what it kept of it has gone home at its end. */
static void frees_beside_empty(bool lives)
{
	unsigned at = 2 * SY_PAGE_SIZE / SIZE;

	end_third(FREES);
	CHECK_EQUAL(look().strays, 0);
	for (unsigned freed = 0; freed <= BEFORE; at++)
		if (objects[at]) {
			free_one(at);
			freed++;
		}
	CHECK_EQUAL(look().empty, !lives);
}

static bool in_slab_of_theirs(const void *object)
{
	bool found = false;

	for (unsigned i = 0; i < wanted; i++)
		found |= objects[i] && (uintptr_t)objects[i] / SY_PAGE_SIZE == (uintptr_t)object / SY_PAGE_SIZE;
	return found;
}

static uint64_t slabs(void)
{
	struct sy_cache_counts counts;

	sy_cache_count(cache, &counts);
	return counts.slabs;
}

/* One more slab is needed, and of what ended threads have left there are some with a free object. */
static void needs_a_slab(bool lives)
{
	void *more[SY_PAGE_SIZE / SIZE];
	const unsigned count = sizeof(more) / sizeof(more[0]);
	uint64_t before = slabs();

	for (unsigned i = 0; i < count; i++)
		more[i] = sy_alloc(cache, 0);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	CHECK_EQUAL(slabs(), before + lives);
	CHECK_EQUAL(in_slab_of_theirs(more[count - 1]), !lives);
	for (unsigned i = 0; i < count; i++)
		sy_free(cache, more[i]);
}

/* ---- A server (Larson and Krishnan 1998) ------------------------------------------------------------------------------ */

#define SERVED 2000u
#define GENERATIONS 40u
#define LANES 2u

struct lane {
	char *served[SERVED];
	unsigned generation;
	uint32_t random;
	atomic_bool over;
};

static struct lane lanes[LANES];

static uint32_t draw(struct lane *lane, uint32_t below)
{
	lane->random = lane->random * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)lane->random * below >> 32);
}

static void *serves(void *);

static void begin(struct lane *lane)
{
	pthread_t thread;
	int failed = pthread_create(&thread, NULL, serves, lane);

	CHECK_EQUAL(failed, 0);
	if (failed)
		lane->over = true;
	else
		pthread_detach(thread);
}

/* Creates the next one, and ends. */
static void *serves(void *argument)
{
	struct lane *lane = argument;

	for (unsigned i = 0; i < 10 * SERVED; i++) {
		unsigned at = draw(lane, SERVED);
		size_t size = 8 + draw(lane, 992);

		if (lane->served[at])
			CHECK_EQUAL(*lane->served[at], (char)at);
		sy_mfree(heap, lane->served[at]);
		lane->served[at] = sy_malloc(heap, size, 0);
		*lane->served[at] = (char)at;
	}
	if (++lane->generation == GENERATIONS)
		lane->over = true;
	else
		begin(lane);
	return NULL;
}

static void serve(void)
{
	heap = open_unsettled("yard");
	for (unsigned i = 0; i < LANES; i++) {
		lanes[i].random = i + 1;
		begin(&lanes[i]);
	}
	for (unsigned i = 0; i < LANES; i++)
		while (!lanes[i].over)
			sched_yield();
	CHECK_TEXT(sy_heap_check(heap), NULL);
	for (unsigned i = 0; i < LANES; i++)
		for (unsigned at = 0; at < SERVED; at++)
			sy_mfree(heap, lanes[i].served[at]);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_heap_close(heap);
}

int main(void)
{
	for (unsigned lives = 0; lives < 2; lives++) {
		open_with("yard:max_order=0", SIZE);
		run(lives, 6 * SY_PAGE_SIZE / SIZE + 1, SY_PAGE_SIZE / SIZE, frees_into_partial);
		open_with("yard:max_order=0", LARGER);
		run(lives, 40 * SY_PAGE_SIZE / LARGER, 0, frees_into_full);
		open_with("yard:max_order=0", SIZE);
		run(lives, 6 * SY_PAGE_SIZE / SIZE + 1, SY_PAGE_SIZE / SIZE, frees_beside_empty);
		open_with("yard:max_order=0", SIZE);
		run(lives, 6 * SY_PAGE_SIZE / SIZE + 1, SY_PAGE_SIZE / SIZE, needs_a_slab);
	}
	serve();
	return check_result();
}
