/*
 * Waiting for memory (SY_KM_SLEEP; Bonwick 1994, section 2.3), under every policy. A waiter is served once another thread has
 * freed enough, not before, however many wait. No wait is without end.
 */
#include "threads_support.h"

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif
#endif

#define LIMIT ((size_t)8 << 20)
#define BYTES ((size_t)1000)
#define MOST (LIMIT / BYTES)
#define WAITERS 3u
#define LONG_NS ((uint64_t)600 * 1000000000u)
#define SHORT_NS ((uint64_t)50 * 1000000u)

struct full {
	struct sy_heap *heap;
	struct sy_cache *cache;
	bool general; /* requests go to sy_malloc */
	void *objects[MOST];
	unsigned count;
	atomic_uint served;
};

static const char *const specs[] = { "yard", "slub", "slab", "slqb", "slob", "bonwick", "bonwick:magazine=on", "bsd44", "svr4", "sunos4" };

static void *get(struct full *full, unsigned flags)
{
	return full->general ? sy_malloc(full->heap, BYTES, flags) : sy_alloc(full->cache, flags);
}

static void put(struct full *full, void *object)
{
	if (full->general)
		sy_mfree(full->heap, object);
	else
		sy_free(full->cache, object);
}

static void fill_up(struct full *full)
{
	void *object;

	while (full->count < MOST && (object = get(full, SY_KM_NOSLEEP)))
		full->objects[full->count++] = object;
	CHECK(full->count > MOST / 4 && full->count < MOST);
}

/* A heap without any memory left. */
static void begin(struct full *full, const char *spec, bool general, uint64_t wait_ns)
{
	const struct sy_heap_options options = { .reserve = SMALL_RESERVE, .limit = LIMIT, .wait_ns = wait_ns };
	const struct sy_cache_config config = { .name = "waited for", .size = BYTES, .flags = SY_CACHE_NO_MERGE };
	const char *error = "";

	memset(full, 0, sizeof(*full));
	full->general = general;
	full->heap = sy_heap_open(spec, &options, &error);
	CHECK_TEXT(error, "");
	full->cache = sy_cache_create(full->heap, &config);
	CHECK(full->cache != NULL);
	fill_up(full);
}

static void drain(struct full *full)
{
	while (full->count)
		put(full, full->objects[--full->count]);
}

static void end(struct full *full)
{
	drain(full);
	CHECK_FINE(sy_heap_check(full->heap));
	sy_heap_close(full->heap);
}

static void *wait_and_give_back(void *argument)
{
	struct full *full = argument;
	unsigned char *object = get(full, SY_KM_SLEEP);

	CHECK(object != NULL);
	memset(object, 7, BYTES);
	atomic_fetch_add(&full->served, 1);
	put(full, object);
	return NULL;
}

static void sleep_ms(long milliseconds)
{
	const struct timespec moment = { .tv_nsec = milliseconds * 1000000 };

	nanosleep(&moment, NULL);
}

static void await_waiters(const struct full *full, size_t count)
{
	while (__atomic_load_n(&full->heap->counters.waiting, __ATOMIC_RELAXED) != count)
		sleep_ms(1);
}

static void wait_under(const char *spec, bool general)
{
	static struct full full;
	pthread_t waiters[WAITERS];

	begin(&full, spec, general, LONG_NS);
	for (unsigned i = 0; i < WAITERS; i++)
		pthread_create(&waiters[i], NULL, wait_and_give_back, &full);
	await_waiters(&full, WAITERS);
	sleep_ms(30);
	CHECK_EQUAL(atomic_load(&full.served), 0);
	drain(&full);
	for (unsigned i = 0; i < WAITERS; i++)
		pthread_join(waiters[i], NULL);
	CHECK_EQUAL(atomic_load(&full.served), WAITERS);
	await_waiters(&full, 0);
	end(&full);
}

/* Waiters get what another thread frees. */
static void test_waiting_until_another_thread_frees(void)
{
	for (unsigned i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		wait_under(specs[i], false);
		wait_under(specs[i], true);
	}
}

static void *wait_for_many(void *argument)
{
	struct full *full = argument;
	void *objects[WAITERS];

	CHECK_EQUAL(sy_alloc_bulk(full->cache, SY_KM_SLEEP, WAITERS, objects), WAITERS);
	sy_free_bulk(full->cache, WAITERS, objects);
	return NULL;
}

static void test_bulk_waits_for_all(void)
{
	static struct full full;
	pthread_t waiter;

	begin(&full, "bonwick", false, LONG_NS);
	pthread_create(&waiter, NULL, wait_for_many, &full);
	await_waiters(&full, 1);
	drain(&full);
	pthread_join(waiter, NULL);
	end(&full);
}

static void *wait_in_vain(void *argument)
{
	struct full *full = argument;
	uint64_t start = world_clock();

	CHECK(get(full, SY_KM_SLEEP) == NULL);
	CHECK(world_clock() - start >= SHORT_NS);
	return NULL;
}

/* Two threads, and neither ever frees. */
static void test_no_wait_is_without_end(void)
{
	static struct full full;
	pthread_t waiter;

	begin(&full, "yard", true, SHORT_NS);
	pthread_create(&waiter, NULL, wait_in_vain, &full);
	wait_in_vain(&full);
	pthread_join(waiter, NULL);
	end(&full);
}

static void *ask_for_the_impossible(void *argument)
{
	struct full *full = argument;

	CHECK(sy_malloc(full->heap, (SY_PAGE_SIZE << SY_MAX_ORDER) + 1, SY_KM_SLEEP) == NULL);
	return NULL;
}

static void test_what_can_never_be_served_is_refused_at_once(void)
{
	static struct full full;
	pthread_t other;

	begin(&full, "yard", true, UINT64_MAX);
	pthread_create(&other, NULL, ask_for_the_impossible, &full);
	pthread_join(other, NULL);
	end(&full);
}

/* To be called before any thread was made. */
static void test_a_thread_that_is_alone_does_not_wait(void)
{
#ifdef _SYS_SINGLE_THREADED_H
	static struct full full;

	if (!__libc_single_threaded)
		return; /* a sanitizer's own thread */
	begin(&full, "yard", true, UINT64_MAX);
	CHECK(get(&full, SY_KM_SLEEP) == NULL);
	end(&full);
#endif
}

int main(void)
{
	test_a_thread_that_is_alone_does_not_wait();
	test_waiting_until_another_thread_frees();
	test_bulk_waits_for_all();
	test_no_wait_is_without_end();
	test_what_can_never_be_served_is_refused_at_once();
	return check_result();
}
