/*
 * Everything at once, under every policy: threads that exchange objects, some of them trimming, shrinking, counting, making and
 * destroying caches in between, and forking; threads that live for a few steps; contents verified throughout.
 */
#include <sys/wait.h>

#include "threads_support.h"

#define WORKERS 4
#define STEPS 30000u
#define SHORT_LIVES 40
#define SHORT_STEPS 150u

struct worker {
	struct yard *yard;
	pthread_t thread;
	uint64_t random;
};

static void own_cache(struct yard *yard, uint64_t random)
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

static void now_and_then(struct yard *yard, uint64_t random)
{
	struct sy_cache_counts counts;

	switch (random % 5) {
	case 0:
		sy_heap_trim(yard->heap);
		break;
	case 1:
		sy_heap_shrink(yard->heap);
		break;
	case 2:
		sy_cache_count(yard->caches[random % YARD_CACHES], &counts);
		break;
	case 3:
		own_cache(yard, random >> 8);
		break;
	default:
		if (sy_heap_check(yard->heap))
			atomic_fetch_add(&yard->wrong, 1);
	}
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	for (unsigned i = 0; i < STEPS; i++) {
		yard_step(worker->yard, &worker->random);
		if (check_random(&worker->random) % 500 == 0)
			now_and_then(worker->yard, check_random(&worker->random));
	}
	return NULL;
}

static void *live_shortly(void *argument)
{
	struct worker *worker = argument;

	for (unsigned i = 0; i < SHORT_STEPS; i++)
		yard_step(worker->yard, &worker->random);
	return NULL;
}

/* A child allocates and frees while its parent's other threads, which it does not have, were at it. */
static void fork_and_use(struct yard *yard, uint64_t *random)
{
	pid_t child = fork();
	int status;

	if (!child) {
		for (unsigned i = 0; i < 300; i++)
			yard_step(yard, random);
		_exit(yard->wrong || sy_heap_check(yard->heap) ? 1 : 0);
	}
	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void mix(const char *policy)
{
	struct yard yard;
	struct worker workers[WORKERS], brief;

	if (!yard_open(&yard, policy, NULL))
		return;
	for (unsigned i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){ .yard = &yard, .random = 88172645463325252u + i };
		CHECK(!pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	}
	brief = (struct worker){ .yard = &yard, .random = 4711 };
	for (unsigned i = 0; i < SHORT_LIVES; i++) {
		CHECK(!pthread_create(&brief.thread, NULL, live_shortly, &brief));
		pthread_join(brief.thread, NULL);
		if (i % 4 == 0)
			fork_and_use(&yard, &brief.random);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	CHECK_EQUAL(yard.refused, 0);
	yard_close(&yard);
}

int main(void)
{
	for (const struct sy_policy *const *at = sy_policies; *at; at++) {
		unsigned before = check_failures;

		mix((*at)->name);
		if (check_failures != before)
			fprintf(stderr, "that was %s\n", (*at)->name);
	}
	return check_result();
}
