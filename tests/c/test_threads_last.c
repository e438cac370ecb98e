/*
 * A thread frees the object that it got last, after anything may have happened: its heap was trimmed, shrunk or checked, by
 * itself or by another thread; or its cache or heap has gone, and another has an object at the same address. A policy that
 * notes what a thread got last must not believe such a note.
 */
#include "core/this_slot.h"
#include "threads_support.h"

#define BUFFER_BYTES ((size_t)64 << 20)
#define MOST_TRIES 20000

static struct world world;
static const struct sy_heap_options small = { .reserve = SMALL_RESERVE };

/* ---- A thread that does what it is told --------------------------------------------------------------------------- */

enum order { GET, GIVE, GET_CONSTRUCTED, GIVE_CONSTRUCTED, WORK, GO };

static struct {
	pthread_barrier_t told, done;
	enum order order;
	void *object; /* the last object that it got, or the one that it is to free */
	void (*work)(void);
} other;

/* By a fast call: a policy does not note what a slow call got. */
static void *get(bool constructed)
{
	struct sy_cache *cache = world.caches[CONSTRUCTED];

	if (constructed) {
		sy_free(cache, sy_alloc(cache, 0));
		return sy_alloc(cache, 0);
	}
	sy_mfree(world.heap, sy_malloc(world.heap, 100, 0));
	return sy_malloc(world.heap, 100, 0);
}

static void *obey(void *argument)
{
	(void)argument;
	for (;;) {
		pthread_barrier_wait(&other.told);
		switch (other.order) {
		case GET:
			other.object = get(false);
			break;
		case GIVE:
			sy_mfree(world.heap, other.object);
			break;
		case GET_CONSTRUCTED:
			other.object = get(true);
			break;
		case GIVE_CONSTRUCTED:
			sy_free(world.caches[CONSTRUCTED], other.object);
			break;
		case WORK:
			other.work();
			break;
		case GO:
			return NULL;
		}
		pthread_barrier_wait(&other.done);
	}
}

static void tell(enum order order)
{
	other.order = order;
	pthread_barrier_wait(&other.told);
	if (order != GO)
		pthread_barrier_wait(&other.done);
}

/* ---- In between --------------------------------------------------------------------------------------------------- */

static void trim(void)
{
	sy_heap_trim(world.heap);
}

static void shrink(void)
{
	sy_heap_shrink(world.heap);
}

static void check_heap(void)
{
	CHECK_FINE(sy_heap_check(world.heap));
}

static void make_and_destroy_a_cache(void)
{
	world_own_cache(&world, 1);
}

static void use_all(void)
{
	uint64_t random = 5;

	for (unsigned i = 0; i < 400; i++)
		world_step(&world, &random);
}

static void (*const events[])(void) = { trim, shrink, check_heap, make_and_destroy_a_cache, use_all };

static void by_oneself(void (*event)(void), bool constructed)
{
	void *object = get(constructed);

	event();
	if (constructed)
		sy_free(world.caches[CONSTRUCTED], object);
	else
		sy_mfree(world.heap, object);
	CHECK_FINE(sy_heap_check(world.heap));
}

static void by_another(void (*event)(void), bool constructed)
{
	tell(constructed ? GET_CONSTRUCTED : GET);
	event();
	tell(constructed ? GIVE_CONSTRUCTED : GIVE);
	CHECK_FINE(sy_heap_check(world.heap));
}

static void in_between(const char *policy)
{
	if (!world_open(&world, policy, &small))
		return;
	for (unsigned i = 0; i < sizeof(events) / sizeof(*events); i++)
		for (unsigned constructed = 0; constructed < 2; constructed++) {
			by_oneself(events[i], constructed);
			by_another(events[i], constructed);
		}
	world_close(&world);
}

/* ---- Another thread's, and by another call ------------------------------------------------------------------------ */

/* What the other thread got last is freed here. Then it comes back to that thread, or to this one. */
static void to_and_fro(const char *policy)
{
	if (!world_open(&world, policy, &small))
		return;
	for (unsigned i = 0; i < 200; i++) {
		tell(GET);
		sy_mfree(world.heap, other.object);
		if (i % 3)
			other.object = sy_malloc(world.heap, 100, 0);
		else
			tell(GET);
		tell(GIVE);
		if (i % 50 == 0)
			CHECK_FINE(sy_heap_check(world.heap));
	}
	world_close(&world);
}

/* An object of a cache with a constructor, freed by kfree under a policy that finds caches by their pages: it stays
 * constructed. */
static void constructed_by_kfree(const char *policy)
{
	unsigned char *object;

	if (strcmp(policy, "yard") && strcmp(policy, "slub") && strcmp(policy, "slab") && strcmp(policy, "slqb"))
		return;
	if (!world_open(&world, policy, &small))
		return;
	for (unsigned i = 0; i < 100; i++) {
		object = sy_alloc(world.caches[CONSTRUCTED], 0);
		CHECK(filled(object, world_sizes[CONSTRUCTED], CONSTRUCTED_BYTE));
		sy_mfree(world.heap, object);
	}
	world_close(&world);
}

/* ---- Another cache, another heap, and the same address -------------------------------------------------------------- */

/* Gets objects until one is at that address, and keeps it; frees the others. Whether there was one. */
static bool get_at(const void *address)
{
	static void *objects[MOST_TRIES];
	unsigned count = 0;
	bool found = false;

	while (!found && count < MOST_TRIES && (objects[count] = sy_malloc(world.heap, 100, 0)))
		found = objects[count++] == address;
	for (unsigned i = 0; i < count; i++)
		if (objects[i] != address)
			sy_mfree(world.heap, objects[i]);
	return found;
}

static void other_heap(const char *policy)
{
	static char *buffer;
	struct sy_heap_options options = { .buffer_bytes = BUFFER_BYTES };
	void *before;

	if (!buffer)
		buffer = malloc(BUFFER_BYTES);
	options.buffer = buffer;
	if (!world_open(&world, policy, &options))
		return;
	tell(GET);
	before = other.object;
	sy_heap_close(world.heap); /* with all that is in it */
	if (!world_open(&world, policy, &options))
		return;
	CHECK(get_at(before));
	other.object = before;
	tell(GIVE);
	CHECK_FINE(sy_heap_check(world.heap));
	world_close(&world);
}

/* ---- Another size, and the same address ------------------------------------------------------------------------------ */

#define SIZE 256
#define LARGER 512
#define OF_A_SLAB (SY_PAGE_SIZE / SIZE)
#define SLABS 4

static void *objects[SLABS * OF_A_SLAB];
static volatile uintptr_t last; /* volatile, as a compiler takes no new object for an old one */

static bool is_of_first_slab(const void *object)
{
	return (uintptr_t)object / SY_PAGE_SIZE == (uintptr_t)objects[0] / SY_PAGE_SIZE;
}

static void get_one(void)
{
	CHECK(sy_malloc(world.heap, SIZE, 0) != NULL);
}

/* Frees this thread's objects of its first slab, and gets all of them again. */
static void free_and_get(void)
{
	unsigned again = 0;

	for (unsigned i = 0; i < OF_A_SLAB; i++)
		sy_mfree(world.heap, objects[i]);
	for (unsigned tries = 0; again < OF_A_SLAB && tries < 4 * OF_A_SLAB; tries++) {
		void *object = sy_malloc(world.heap, SIZE, 0);

		if (!is_of_first_slab(object))
			continue;
		last = (uintptr_t)object;
		again++;
	}
	CHECK_EQUAL(again, OF_A_SLAB);
}

/* Frees the object of the other size; it must not come back for this one. */
static void give_larger(void)
{
	sy_mfree(world.heap, other.object);
	CHECK_FINE(sy_heap_check(world.heap));
	CHECK((uintptr_t)sy_malloc(world.heap, SIZE, 0) != last);
}

/* yard: nothing holds the slab of an object that came from the remote list. Here the other thread gives such an object away,
 * the slab ends, an object of another size stands there, and the other thread frees that. */
static void slab_ended(void)
{
	if (!world_open(&world, "yard:max_order=0", &small))
		return;
	sy__time_set(&world.heap->scavenge_due, UINT64_MAX); /* else the gathered objects may go home */
	other.work = get_one;
	tell(WORK);
	for (unsigned i = 0; i < SLABS * OF_A_SLAB; i++)
		objects[i] = sy_malloc(world.heap, SIZE, 0);
	other.work = free_and_get;
	tell(WORK);
	for (unsigned i = SLABS * OF_A_SLAB; i-- > 0;)
		sy_mfree(world.heap, objects[i]);
	other.object = NULL;
	for (unsigned tries = 0; !other.object && tries < MOST_TRIES; tries++) {
		void *object = sy_malloc(world.heap, LARGER, 0);

		if ((uintptr_t)object == last)
			other.object = object;
	}
	CHECK(other.object != NULL);
	other.work = give_larger;
	tell(WORK);
	CHECK_FINE(sy_heap_check(world.heap));
	sy_heap_close(world.heap);
}

static void under(const char *policy)
{
	in_between(policy);
	to_and_fro(policy);
	constructed_by_kfree(policy);
	other_heap(policy);
}

int main(void)
{
	pthread_t thread;

	pthread_barrier_init(&other.told, NULL, 2);
	pthread_barrier_init(&other.done, NULL, 2);
	CHECK(!pthread_create(&thread, NULL, obey, NULL));
	CHECK_POLICIES(under);
	slab_ended();
	tell(GO);
	pthread_join(thread, NULL);
	return check_result();
}
