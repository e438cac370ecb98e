/*
 * The lives of threads. Thousands of short ones leave nothing behind but a little for the next thread, the one on the same
 * stack. Threads beyond the slots are served all the same. What other destructors free after a thread's end is taken back. A
 * constructor that calls back is refused, not harmed.
 */
#include "threads_support.h"

#include "core/this_slot.h"

#define SHORT_LIVES 10000
#define AT_ONCE (SY_THREAD_SLOTS + 40)

static struct world world;

/* ---- Short lives -------------------------------------------------------------------------------------------------- */

static void *live_shortly(void *argument)
{
	void *objects[64];

	(void)argument;
	for (unsigned i = 0; i < 64; i++)
		objects[i] = sy_malloc(world.heap, 16 + 8 * i, 0);
	for (unsigned i = 0; i < 64; i++)
		sy_mfree(world.heap, objects[i]);
	return NULL;
}

static void live_and_end(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		pthread_t thread;

		CHECK(!pthread_create(&thread, NULL, live_shortly, NULL));
		pthread_join(thread, NULL);
	}
}

static void short_lives(const char *policy)
{
	uint64_t before;

	if (!world_open(&world, policy, NULL))
		return;
	live_and_end(50);
	before = world.heap->counters.slab_pages + world.heap->counters.metadata_pages;
	live_and_end(check_times(SHORT_LIVES / 8));
	CHECK(world.heap->counters.slab_pages + world.heap->counters.metadata_pages <= before + 2);
	world_close(&world);
}

/* ---- From one thread to the next ---------------------------------------------------------------------------------- */

static void *use_one(void *kept)
{
	void *object = sy_malloc(world.heap, 48, 0);

	if (kept)
		*(void **)kept = object;
	else
		sy_mfree(world.heap, object);
	return NULL;
}

static void use_and_end(void **kept)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, use_one, (void *)kept));
	pthread_join(thread, NULL);
}

/* A thread that ends gives back what it does not use; the slab of an object that lives on serves the next one. */
static void left_for_the_next(void)
{
	uint64_t pages;
	void *object;

	if (!world_open(&world, "yard", NULL))
		return;
	use_and_end(NULL);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	use_and_end(&object);
	pages = world.heap->counters.slab_pages;
	CHECK(pages > 0);
	use_and_end(NULL);
	CHECK_EQUAL(world.heap->counters.slab_pages, pages);
	sy_mfree(world.heap, object);
	sy_heap_trim(world.heap);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	world_close(&world);
}

#define STACK_BYTES ((size_t)1 << 20)

struct place {
	void *stack; /* as a thread's specific data, at its end */
	pthread_t thread;
	pthread_barrier_t *both; /* of two that live at once */
	unsigned slot;
};

static void *tell_slot(void *argument)
{
	struct place *place = argument;

	sy_mfree(world.heap, sy_malloc(world.heap, 48, 0));
	place->slot = sy__self.slot;
	if (place->both)
		pthread_barrier_wait(place->both);
	return NULL;
}

static void begin_at(struct place *place)
{
	pthread_attr_t attributes;

	CHECK(!pthread_attr_init(&attributes));
	CHECK(!pthread_attr_setstack(&attributes, place->stack, STACK_BYTES));
	CHECK(!pthread_create(&place->thread, &attributes, tell_slot, place));
	pthread_attr_destroy(&attributes);
}

static unsigned slot_at(struct place *place)
{
	place->both = NULL;
	begin_at(place);
	pthread_join(place->thread, NULL);
	return place->slot;
}

/* Two threads have ended. A thread that comes where one of them was gets that one's slot; a thread elsewhere gets the lowest
 * slot. */
static void each_its_own_successor(void)
{
	pthread_barrier_t both;
	struct place places[3];
	unsigned slots[2];

	if (!world_open(&world, "yard", NULL))
		return;
	CHECK(!pthread_barrier_init(&both, NULL, 2));
	for (unsigned i = 0; i < 3; i++)
		places[i] = (struct place){ .stack = aligned_alloc(SY_PAGE_SIZE, STACK_BYTES), .both = &both };
	begin_at(&places[0]);
	begin_at(&places[1]);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(places[i].thread, NULL);
		slots[i] = places[i].slot;
	}
	CHECK(slots[0] != slots[1]);
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQUAL(slot_at(&places[i & 1]), slots[i & 1]);
	CHECK_EQUAL(slot_at(&places[2]), slots[0] < slots[1] ? slots[0] : slots[1]);
	for (unsigned i = 0; i < 3; i++)
		free(places[i].stack);
	pthread_barrier_destroy(&both);
	world_close(&world);
}

/* ---- Crowds ------------------------------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

static void *live_in_a_crowd(void *argument)
{
	uint64_t random = (uintptr_t)argument;

	world_step(&world, &random);
	pthread_barrier_wait(&barrier); /* now every thread that can get a slot has one */
	for (unsigned i = 0; i < 40; i++)
		world_step(&world, &random);
	return NULL;
}

static void crowd(const char *policy)
{
	static pthread_t threads[AT_ONCE];
	pthread_attr_t small;

	if (!world_open(&world, policy, NULL))
		return;
	pthread_barrier_init(&barrier, NULL, AT_ONCE);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	for (unsigned i = 0; i < AT_ONCE; i++)
		CHECK(!pthread_create(&threads[i], &small, live_in_a_crowd, (void *)(uintptr_t)(i + 1)));
	for (unsigned i = 0; i < AT_ONCE; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&small);
	pthread_barrier_destroy(&barrier);
	world_close(&world);
}

/* ---- After the end ------------------------------------------------------------------------------------------------ */

static pthread_key_t last_words;

/* Frees and allocates again, also in rounds after the library has given the slot back. */
static void destroy_late(void *object)
{
	static atomic_uint rounds;

	sy_mfree(world.heap, object);
	if (atomic_fetch_add(&rounds, 1) % 4)
		pthread_setspecific(last_words, sy_malloc(world.heap, 100, 0));
}

static void *say_last_words(void *argument)
{
	(void)argument;
	pthread_setspecific(last_words, sy_malloc(world.heap, 100, 0));
	return NULL;
}

static void after_the_end(const char *policy)
{
	if (!world_open(&world, policy, NULL))
		return;
	for (unsigned i = 0; i < 20; i++) {
		pthread_t thread;

		CHECK(!pthread_create(&thread, NULL, say_last_words, NULL));
		pthread_join(thread, NULL);
	}
	world_close(&world);
}

/* ---- Calls from constructors ---------------------------------------------------------------------------------------- */

static struct sy_cache *other;
static unsigned got;
static const char *refusal;
static void *kept;

static void call_back(void *object, size_t size)
{
	memset(object, 0, size);
	got += sy_alloc(other, 0) != NULL;
	got += sy_malloc(world.heap, 64, 0) != NULL;
	got += sy_heap_trim(world.heap) != 0;
	got += sy_alloc_bulk(other, 0, 1, &object);
	got += sy_cache_create(world.heap, &(struct sy_cache_config){ .size = 24 }) != NULL;
	got += sy_heap_open("yard", NULL, &refusal) != NULL;
	got += sy_heap_destroy(world.heap);
	sy_heap_close(world.heap);
	sy_free(other, kept); /* left alone */
}

static void call_from_constructor(const char *policy)
{
	struct sy_cache_config config = { .name = "calls back", .size = 128, .constructor = call_back };
	struct sy_cache *cache;
	void *object;

	if (!world_open(&world, policy, NULL))
		return;
	got = 0;
	other = world.caches[PLAIN];
	kept = sy_alloc(other, 0);
	sy_free(other, sy_alloc(other, 0)); /* an object would be there, were it not for the constructor */
	cache = sy_cache_create(world.heap, &config);
	object = sy_alloc(cache, 0);
	CHECK(object != NULL);
	CHECK_EQUAL(got, 0);
	CHECK_TEXT(refusal, "a heap cannot be opened from inside a constructor, destructor or visitor: open it before");
	sy_free(other, kept);
	sy_free(cache, object);
	kept = NULL;
	CHECK(sy_cache_destroy(cache, NULL));
	world_close(&world);
}

static void under(const char *policy)
{
	short_lives(policy);
	crowd(policy);
	after_the_end(policy);
	call_from_constructor(policy);
}

int main(void)
{
	CHECK(!pthread_key_create(&last_words, destroy_late));
	left_for_the_next();
	each_its_own_successor();
	CHECK_POLICIES(under);
	return check_result();
}
