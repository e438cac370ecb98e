/*
 * Everything at once, under every policy: threads that exchange objects, some of which also trim, shrink, count, make and
 * destroy caches, and fork; threads that live for a few steps; contents verified throughout. The heaps' clock runs fast, so
 * that the work of each second happens in between. The test ends once piece by piece, and once with the heap.
 */
#include "threads_support.h"

#define WORKERS 4
#define SPEED 100
#define STEPS 20000u
#define SHORT_LIVES 25
#define SHORT_STEPS 150u

struct worker {
	struct world *world;
	const atomic_bool *forks_done; /* workers go on until then: one that ended unjoined is a leak to a child's thread sanitizer */
	pthread_t thread;
	uint64_t random;
};

static void *work(void *argument)
{
	struct worker *worker = argument;

	for (unsigned i = 0; i < STEPS || !atomic_load(worker->forks_done); i++) {
		world_step(worker->world, &worker->random);
		if (check_random(&worker->random) % 500 == 0)
			world_event(worker->world, check_random(&worker->random));
	}
	return NULL;
}

static void *live_shortly(void *argument)
{
	struct worker *worker = argument;

	for (unsigned i = 0; i < SHORT_STEPS; i++)
		world_step(worker->world, &worker->random);
	return NULL;
}

static void mix(const char *policy, void (*end)(struct world *))
{
	struct world world;
	struct worker workers[WORKERS], brief;
	atomic_bool forks_done = false;

	if (!world_open(&world, policy, NULL))
		return;
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){ .world = &world, .forks_done = &forks_done, .random = 88172645463325252u + i };
		CHECK(!pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	}
	brief = (struct worker){ .world = &world, .random = 4711 };
	for (unsigned i = 0; i < SHORT_LIVES; i++) {
		CHECK(!pthread_create(&brief.thread, NULL, live_shortly, &brief));
		pthread_join(brief.thread, NULL);
		if (i % 4 == 0)
			world_fork(&world, &brief.random);
	}
	atomic_store(&forks_done, true);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	CHECK_EQUAL(world.refused, 0);
	end(&world);
}

static void under(const char *policy)
{
	mix(policy, world_close);
	mix(policy, world_abandon);
}

int main(void)
{
	sy_platform_set_clock(world_clock);
	world_speed = SPEED;
	CHECK_POLICIES(under);
	return check_result();
}
