/* malloc from many threads: objects that one allocates and another frees, threads that come and go, forks in between. */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 6
#define SHELF 512 /* objects that threads pass to each other */
#define STEPS 20000
#define GENERATIONS 200

struct parcel {
	size_t size;
	uint64_t number;
};

static _Atomic(struct parcel *) shelf[SHELF];

static void open_parcel(struct parcel *parcel)
{
	if (!parcel)
		return;
	CHECK(is_filled(parcel + 1, parcel->size, parcel->number));
	free(parcel);
}

static struct parcel *pack(uint64_t *random)
{
	size_t size = some_size(random, check_random(random) % 100 ? 11 : 20);
	struct parcel *parcel = malloc(sizeof(*parcel) + size);

	if (!parcel)
		return NULL;
	parcel->size = size;
	parcel->number = check_random(random);
	if (check_random(random) % 8 == 0) {
		struct parcel *moved = realloc(parcel, sizeof(*parcel) + size * 2);

		parcel = moved ? moved : parcel;
		parcel->size = moved ? size * 2 : size;
	}
	fill(parcel + 1, parcel->size, parcel->number);
	return parcel;
}

static atomic_bool forks_done;

/* Goes on until the forks are over: a thread that ended unjoined is a leak to a child's thread sanitizer. */
static void *pass_parcels(void *seed)
{
	uint64_t random = (uint64_t)(uintptr_t)seed * 2654435761u + 1;
	unsigned steps = check_times(STEPS);

	for (unsigned i = 0; i < steps || !atomic_load(&forks_done); i++)
		open_parcel(atomic_exchange(&shelf[check_random(&random) % SHELF], pack(&random)));
	return NULL;
}

static void clear_shelf(void)
{
	for (unsigned i = 0; i < SHELF; i++)
		open_parcel(atomic_exchange(&shelf[i], NULL));
}

/* The child has one thread, everything that was allocated, and a malloc that works. */
static void fork_once(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		uint64_t random = 77;

		for (unsigned i = 0; i < 2000; i++)
			open_parcel(atomic_exchange(&shelf[i % SHELF], pack(&random)));
		malloc_trim(0);
		_exit(check_failures ? 1 : 0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

static void test_passing(void)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, pass_parcels, (void *)i), 0);
	for (unsigned i = 0; i < 10; i++) {
		fork_once();
		malloc_trim(0);
	}
	atomic_store(&forks_done, true);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	clear_shelf();
}

static atomic_bool figures_wanted;

static void *take_figures(void *unused)
{
	while (atomic_load(&figures_wanted))
		(void)mallinfo2();
	return unused;
}

/* The child finds no lock held for what another thread asks of malloc while the program forks. */
static void test_figures(void)
{
	unsigned forks = check_times(60);
	pthread_t taker;

	atomic_store(&figures_wanted, true);
	CHECK_EQUAL(pthread_create(&taker, NULL, take_figures, NULL), 0);
	for (unsigned i = 0; i < forks; i++)
		fork_once();
	atomic_store(&figures_wanted, false);
	pthread_join(taker, NULL);
}

static void *live_shortly(void *seed)
{
	uint64_t random = (uint64_t)(uintptr_t)seed + 99;
	struct parcel *parcels[40];

	for (unsigned i = 0; i < 40; i++)
		parcels[i] = pack(&random);
	for (unsigned i = 0; i < 39; i++)
		open_parcel(parcels[i]);
	open_parcel(atomic_exchange(&shelf[check_random(&random) % SHELF], parcels[39]));
	return NULL;
}

static void test_generations(void)
{
	struct mallinfo2 before = { 0 }, after;
	unsigned generations = check_times(GENERATIONS);
	pthread_t threads[THREADS];

	for (unsigned generation = 0; generation < generations; generation++) {
		for (uintptr_t i = 0; i < THREADS; i++)
			CHECK_EQUAL(pthread_create(&threads[i], NULL, live_shortly, (void *)(generation * THREADS + i)), 0);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		if (generation == generations / 2)
			before = mallinfo2();
	}
	after = mallinfo2();
	CHECK(after.arena <= before.arena + before.arena / 2 + ((size_t)4 << 20));
	clear_shelf();
}

static pthread_key_t key;

/* A destructor of thread-specific data, which may run after malloc's own. */
static void allocate_at_end(void *value)
{
	uintptr_t rounds = (uintptr_t)value;
	char *object = malloc(rounds * 100);

	CHECK(object != NULL);
	free(object);
	if (rounds > 1)
		pthread_setspecific(key, (void *)(rounds - 1));
}

static void *end_with_destructor(void *unused)
{
	(void)unused;
	free(malloc(100));
	pthread_setspecific(key, (void *)4);
	return NULL;
}

static void test_destructors(void)
{
	pthread_t thread;

	CHECK_EQUAL(pthread_key_create(&key, allocate_at_end), 0);
	for (unsigned i = 0; i < 100; i++) {
		CHECK_EQUAL(pthread_create(&thread, NULL, end_with_destructor, NULL), 0);
		pthread_join(thread, NULL);
	}
}

int main(void)
{
	free(malloc(1)); /* else pthread_create allocates it, if it calls malloc by that name */
	test_passing();
	test_figures();
	test_generations();
	test_destructors();
	return check_result();
}
