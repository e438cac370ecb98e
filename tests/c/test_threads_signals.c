/*
 * Signals and slow calls. From its first lock on a slow call blocks signals, as a handler might keep the thread, and with it
 * the lock. Signals that the thread itself causes come in. A thread that alone has a slot stops nobody.
 *
 * A constructor runs in a slow call that has taken pages, hence locks.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "threads_heap.h"

static volatile sig_atomic_t usual, own; /* handled so far */
static int usual_within, own_within;     /* the same when the constructor ended */

static void handle(int number)
{
	if (number == SIGBUS)
		own++;
	else
		usual++;
}

static void construct_and_raise(void *object, size_t bytes)
{
	memset(object, 0, bytes);
	if (usual_within >= 0)
		return;
	raise(SIGUSR1);
	raise(SIGBUS);
	usual_within = usual;
	own_within = own;
}

static struct sy_cache *constructed_cache(struct sy_heap *heap)
{
	const struct sy_cache_config config = { .name = "constructed", .size = 256, .constructor = construct_and_raise };
	struct sy_cache *cache = sy_cache_create(heap, &config);

	CHECK(cache != NULL);
	return cache;
}

static bool same_mask(const sigset_t *before)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	for (int number = 1; number < 32; number++)
		if (sigismember(&now, number) != sigismember(before, number))
			return false;
	return true;
}

static void first_object(struct sy_heap *heap, bool held)
{
	struct sy_cache *cache = constructed_cache(heap);
	sigset_t before;
	void *object;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	usual = own = 0;
	usual_within = own_within = -1;
	object = sy_alloc(cache, 0);
	CHECK(object != NULL);
	CHECK_EQUAL(usual_within, held ? 0 : 1);
	CHECK_EQUAL(own_within, 1);
	CHECK(same_mask(&before));
	CHECK_EQUAL(usual, 1);
	sy_free(cache, object);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK(same_mask(&before));
}

/* Stops, and a fork with its two ends. */
static void masks_stay(struct sy_heap *heap)
{
	sigset_t before;
	int status = 0;
	pid_t child;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_trim(heap);
	CHECK(same_mask(&before));
	child = fork();
	if (!child)
		_exit(same_mask(&before) ? 0 : 1);
	waitpid(child, &status, 0);
	CHECK_EQUAL(status, 0);
	CHECK(same_mask(&before));
}

static struct sy_heap *heap;

static void get_and_put(void)
{
	sy_mfree(heap, sy_malloc(heap, 64, 0));
}

int main(void)
{
	const struct sigaction action = { .sa_handler = handle };
	static const char *const policies[] = { "yard", "slub", "slab", "slqb" };
	struct worker worker;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	heap = open_small("yard");
	first_object(heap, false);
	sy_heap_destroy(heap);
	for (unsigned i = 0; i < sizeof(policies) / sizeof(*policies); i++) {
		heap = open_small(policies[i]);
		worker_begin(&worker);
		worker_does(&worker, get_and_put);
		first_object(heap, true);
		masks_stay(heap);
		worker_end(&worker);
		sy_heap_destroy(heap);
	}
	return check_result();
}
