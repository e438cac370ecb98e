/*
 * Random work on malloc, for as long as you like:  slabyard-soak-malloc [SECONDS [SEED [POLICY...]]]
 *
 * Rounds of a few seconds each, the policies in turn, as slabyard-soak has them for heaps. A program's malloc is chosen before
 * its first call, so each round is a process of its own: this program again, with SLABYARD set to tunables that follow from
 * the round's seed. So does whether addresses are limited.
 *
 * In a round, threads get objects in all ways and of all sizes, and pass them to each other through a table. The thread that
 * takes one out verifies it, sometimes after changing its size, and frees it. Now and then one of them trims, asks for
 * figures, or hoards objects until there is no memory. Meanwhile short-lived threads come and go, and the process forks: the
 * child goes on, and verifies everything.
 *
 * Each round is a line on standard output; slabyard-soak-malloc 1 SEED POLICY repeats its settings. Errors go to standard
 * error, and the status is then 1. A round that does not end is killed after two minutes.
 */
#define _GNU_SOURCE /* mallinfo2 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "draw.h"
#include "malloc_support.h"

#define MOST_WORKERS 5
#define CELLS 512
#define ROUND 4.0 /* seconds */
#define STUCK_AFTER 120u
#define SHORT_STEPS 150u
#define CHILDS_STEPS 300u
#define BETWEEN_EVENTS 2000u /* steps, about */
#define HOARD 1000u
#define HOARDED_BITS 22u
#define LEAST_LIMIT 80u /* MiB */
#define LIMITS_RANGE 300u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS false /* a sanitizer needs all addresses there are */
#else
#define LIMITS true
#endif
#ifdef __SANITIZE_THREAD__
#define CHILD_HAS_THREADS false /* the sanitizer knows nothing of such a call */
#else
#define CHILD_HAS_THREADS true
#endif

struct parcel {
	size_t bytes; /* with this */
	uint64_t number;
};

static _Atomic(struct parcel *) cells[CELLS];
static atomic_bool over;
static atomic_ullong steps, refused;

/* ---- Work --------------------------------------------------------------------------------------------------------- */

static size_t draw_bytes(uint64_t *random)
{
	unsigned kind = (unsigned)below(random, 1000);

	return sizeof(struct parcel) + some_size(random, kind < 950 ? 11 : kind < 990 ? 17 : kind < 998 ? 20 : 23);
}

static struct parcel *seal(struct parcel *parcel, size_t bytes, uint64_t *random)
{
	*parcel = (struct parcel){ bytes, check_random(random) };
	fill(parcel + 1, bytes - sizeof(*parcel), parcel->number);
	return parcel;
}

/* Changes the size; what both sizes have room for stays. If there is no memory, the object stays as it is. */
static struct parcel *change(struct parcel *parcel, uint64_t *random)
{
	size_t bytes = draw_bytes(random), kept = bytes < parcel->bytes ? bytes : parcel->bytes;
	struct parcel *changed = realloc(parcel, bytes);

	if (!changed)
		return parcel;
	CHECK(is_filled(changed + 1, kept - sizeof(*changed), changed->number));
	return seal(changed, bytes, random);
}

static void *get_aligned(size_t bytes, uint64_t *random)
{
	size_t align = sizeof(void *) << below(random, 12);
	void *object = NULL;

	if (below(random, 2))
		object = aligned_alloc(align, bytes);
	else if (posix_memalign(&object, align, bytes))
		object = NULL;
	CHECK(is_aligned(object, align));
	return object;
}

static void *get_zeroed(size_t bytes)
{
	void *object = calloc(1, bytes);

	CHECK(!object || is_zero(object, bytes));
	return object;
}

static struct parcel *pack(uint64_t *random)
{
	size_t bytes = draw_bytes(random);
	unsigned way = (unsigned)below(random, 8);
	void *object = way == 0 ? get_aligned(bytes, random) : way == 1 ? get_zeroed(bytes) : malloc(bytes);

	if (!object) {
		atomic_fetch_add(&refused, 1);
		return NULL;
	}
	CHECK(is_aligned(object, way == 0 ? sizeof(void *) : 2 * sizeof(void *)));
	CHECK(malloc_usable_size(object) >= bytes);
	return seal(object, bytes, random);
}

static void verify(const struct parcel *parcel)
{
	CHECK(!parcel || is_filled(parcel + 1, parcel->bytes - sizeof(*parcel), parcel->number));
}

static void open_parcel(struct parcel *parcel, uint64_t *random)
{
	verify(parcel);
	if (parcel && !below(random, 8))
		parcel = change(parcel, random);
	free(parcel);
}

/* Many at once, hardly written to, until there are no more. */
static void hoard(uint64_t *random)
{
	void *objects[HOARD];
	unsigned count = 0, most = (unsigned)below(random, HOARD);

	while (count < most && (objects[count] = malloc(some_size(random, HOARDED_BITS))))
		count++;
	if (count < most)
		atomic_fetch_add(&refused, 1);
	while (count)
		free(objects[--count]);
}

static void write_figures(void)
{
	FILE *nowhere = fopen("/dev/null", "w");

	if (!nowhere)
		return;
	CHECK_EQUAL(malloc_info(0, nowhere), 0);
	fclose(nowhere);
}

/* All are 0 where a thread is in a slow call for long. */
static void check_figures(void)
{
	struct mallinfo2 told = mallinfo2();

	CHECK(told.uordblks > 0 || !told.arena);
}

static void event(uint64_t *random)
{
	switch (below(random, 4)) {
	case 0:
		malloc_trim(0);
		break;
	case 1:
		check_figures();
		break;
	case 2:
		write_figures();
		break;
	default:
		hoard(random);
	}
}

static void step(uint64_t *random)
{
	open_parcel(atomic_exchange(&cells[below(random, CELLS)], pack(random)), random);
	if (!below(random, BETWEEN_EVENTS))
		event(random);
}

static void *work(void *seed)
{
	uint64_t random = (uint64_t)(uintptr_t)seed;
	unsigned long long done = 0;

	for (; !atomic_load_explicit(&over, memory_order_relaxed); done++)
		step(&random);
	atomic_fetch_add(&steps, done);
	return NULL;
}

static void *live_shortly(void *seed)
{
	uint64_t random = (uint64_t)(uintptr_t)seed;

	for (unsigned i = 0; i < SHORT_STEPS; i++)
		step(&random);
	return NULL;
}

static bool start(pthread_t *thread, void *(*body)(void *), uint64_t *random)
{
	return pthread_create(thread, NULL, body, (void *)(uintptr_t)(check_random(random) | 1)) == 0;
}

/* Without addresses there are no threads either. */
static bool live_and_end(uint64_t *random)
{
	pthread_t brief;

	return start(&brief, live_shortly, random) && pthread_join(brief, NULL) == 0;
}

static bool fork_once(uint64_t *random)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return false;
	if (!child) {
		for (unsigned i = 0; i < CHILDS_STEPS; i++)
			step(random);
		for (unsigned i = 0; i < CELLS; i++)
			verify(cells[i]);
		if (CHILD_HAS_THREADS)
			live_and_end(random);
		_exit(check_failures ? 1 : 0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
	return true;
}

/* ---- A round ------------------------------------------------------------------------------------------------------ */

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int run(uint64_t random, double length, size_t limit)
{
	pthread_t workers[MOST_WORKERS];
	unsigned count = 2 + (unsigned)below(&random, MOST_WORKERS - 1), working = 0, lives = 0, forks = 0;
	double end = seconds() + length;

	alarm((unsigned)length + STUCK_AFTER);
	if (limit)
		CHECK_EQUAL(setrlimit(RLIMIT_AS, &(struct rlimit){ limit, limit }), 0);
	while (working < count && start(&workers[working], work, &random))
		working++;
	for (unsigned i = 0; (i == 0 || seconds() < end) && !check_failures; i++) {
		lives += live_and_end(&random);
		forks += i % 8 == 1 && fork_once(&random);
	}
	atomic_store(&over, true);
	while (working--)
		pthread_join(workers[working], NULL);
	for (unsigned i = 0; i < CELLS; i++)
		open_parcel(atomic_exchange(&cells[i], NULL), &random);
	printf("%llu steps of %u threads, %u short lives, %u forks, %llu requests refused\n", (unsigned long long)steps, count, lives,
	       forks, (unsigned long long)refused);
	return check_result();
}

/* ---- The program -------------------------------------------------------------------------------------------------- */

/* Whether all was well. */
static bool run_again(const char *spec, uint64_t seed, double length, size_t limit)
{
	char words[3][32];
	int status;
	pid_t child;

	snprintf(words[0], sizeof(words[0]), "%" PRIu64, seed);
	snprintf(words[1], sizeof(words[1]), "%f", length);
	snprintf(words[2], sizeof(words[2]), "%zu", limit);
	child = fork();
	if (!child) {
		setenv("SLABYARD", spec, 1);
		execl("/proc/self/exe", "slabyard-soak-malloc", "round", words[0], words[1], words[2], (char *)NULL);
		perror("slabyard-soak-malloc");
		_exit(1);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("slabyard-soak-malloc");
		return false;
	}
	if (WIFSIGNALED(status))
		fprintf(stderr, "slabyard-soak-malloc: the round ended by signal %d%s\n", WTERMSIG(status),
		        WTERMSIG(status) == SIGALRM ? ", as it was stuck" : "");
	return status == 0;
}

int main(int argc, char **argv)
{
	double length = argc > 1 ? strtod(argv[1], NULL) : 60, end = seconds() + length;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
	const struct sy_policy *policies[MOST_POLICIES];
	bool well = true;
	unsigned count;

	if (argc == 5 && !strcmp(argv[1], "round"))
		return run(seed, strtod(argv[3], NULL), (size_t)strtoull(argv[4], NULL, 10));
	count = choose_policies(argv + 3, argc > 3 ? (unsigned)argc - 3 : 0, policies);
	for (unsigned i = 0; well && (i < count || seconds() < end); i++, seed++) {
		uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
		size_t limit = LIMITS && !below(&random, 3) ? (LEAST_LIMIT + (size_t)below(&random, LIMITS_RANGE)) << 20 : 0;
		char spec[SPEC_BYTES];

		draw_spec(policies[i % count], spec, &random);
		printf("seed %" PRIu64 ": %s", seed, spec);
		if (limit)
			printf(", limit %zu MiB", limit >> 20);
		printf(": ");
		fflush(stdout);
		well = run_again(spec, random, length / count < ROUND ? length / count : ROUND, limit);
	}
	return well ? 0 : 1;
}
