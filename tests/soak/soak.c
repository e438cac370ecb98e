/*
 * Random work on heaps of threads, for as long as you like:  slabyard-soak [SECONDS [SEED [POLICY...]]]
 *
 * Rounds of a few seconds each, the policies in turn, until the time is over (default: 60 seconds; every policy gets a round in
 * any case). All of a round follows from its seed, but for the order in which threads run: tunables, a limit or a buffer or
 * neither, size classes, alignment, how soon memory goes back, how fast the heap's clock runs, how many threads.
 *
 * In a round, worker threads exchange objects through a table (threads_support.h), which are verified to the last byte; now and
 * then one of them trims, shrinks, counts, checks, makes a cache and destroys it, or hoards objects until there is no memory.
 * Meanwhile short-lived threads come and go, and the process forks: the child goes on with the heap, and verifies it. In the end
 * everything is freed, and no page may be left.
 *
 * Each round is a line on standard output; slabyard-soak 1 SEED POLICY repeats its settings. Errors go to standard error, and
 * the status is then 1. A round that does not end is stuck: after two minutes the program ends with status 3.
 */
#include <signal.h>
#include <time.h>

#include "draw.h"
#include "threads_support.h"

#define MOST_WORKERS 6
#define SHORTEST_ROUND 1.0 /* seconds */
#define LONGEST_ROUND 10.0
#define STUCK_AFTER 120u
#define HOARD 3000u
#define BETWEEN_EVENTS 700u /* steps, about */
#define SHORT_STEPS 150u

static char buffer[32 << 20] __attribute__((aligned(4096)));

struct settings {
	char spec[SPEC_BYTES];
	struct sy_heap_options options;
	unsigned workers, speed;
};

struct round {
	struct world world;
	atomic_bool over;
	atomic_ullong steps;
};

struct worker {
	struct round *round;
	pthread_t thread;
	uint64_t random;
};

/* ---- Settings ----------------------------------------------------------------------------------------------------- */

static void draw_memory(struct sy_heap_options *options, uint64_t *random)
{
	switch (below(random, 5)) {
	case 0:
		options->limit = (size_t)(16 + below(random, 16)) << 20; /* fewer pages do not suffice for what a heap has before any object */
		break;
	case 1:
		options->buffer = buffer;
		options->buffer_bytes = sizeof(buffer) - (size_t)below(random, 4000) * 4096;
		break;
	case 2:
		options->huge_pages = true;
		break;
	default:
		break;
	}
}

static void draw(const struct sy_policy *policy, struct settings *settings, uint64_t *random)
{
	struct sy_heap_options *options = &settings->options;

	memset(settings, 0, sizeof(*settings));
	draw_spec(policy, settings->spec, random);
	draw_memory(options, random);
	options->keep = !below(random, 4);
	options->decay_ns = below(random, 2) ? 1 + below(random, 50000000) : 0;
	options->grace_ns = below(random, 2) ? below(random, 2000000) : 0;
	options->sizing.classes = below(random, 2) ? SY_CLASSES_FINE : SY_CLASSES_LINUX;
	options->sizing.align = below(random, 2) ? (uint32_t)(8u << below(random, 5)) : 0;
	options->sizing.exact_runs = below(random, 2);
	settings->speed = 1u << 3 * below(random, 4);
	settings->workers = 2 + (unsigned)below(random, MOST_WORKERS - 1);
}

/* ---- Work --------------------------------------------------------------------------------------------------------- */

/* Takes objects until there is no memory, or very many, and gives them back. */
static void hoard(struct world *world, uint64_t *random)
{
	struct mark *objects[HOARD];
	unsigned count = 0;

	while (count < HOARD && (objects[count] = world_get(world, check_random(random))))
		count++;
	while (count)
		world_free(world, objects[--count]);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct round *round = worker->round;

	while (!atomic_load(&round->over)) {
		uint64_t steps = 1 + below(&worker->random, 2 * BETWEEN_EVENTS);

		for (uint64_t i = 0; i < steps; i++)
			world_step(&round->world, &worker->random);
		atomic_fetch_add(&round->steps, steps);
		if (below(&worker->random, 8))
			world_event(&round->world, check_random(&worker->random));
		else
			hoard(&round->world, &worker->random);
	}
	return NULL;
}

static void *live_shortly(void *argument)
{
	struct worker *worker = argument;

	for (unsigned i = 0; i < SHORT_STEPS; i++)
		world_step(&worker->round->world, &worker->random);
	return NULL;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Threads that come and go, and forks, until the round's time is over. */
static void come_and_go(struct round *round, double until, uint64_t *random, unsigned *lives, unsigned *forks)
{
	while (seconds() < until && !round->world.wrong && !check_failures) {
		struct worker brief = { .round = round, .random = check_random(random) | 1 };

		CHECK(!pthread_create(&brief.thread, NULL, live_shortly, &brief));
		pthread_join(brief.thread, NULL);
		++*lives;
		if (*lives % 8 == 1) {
			world_fork(&round->world, random);
			++*forks;
		}
	}
}

static void run(const struct settings *settings, uint64_t seed, double length)
{
	static struct round round;
	struct worker workers[MOST_WORKERS];
	unsigned lives = 0, forks = 0;

	memset(&round, 0, sizeof(round));
	alarm((unsigned)length + STUCK_AFTER);
	world_speed = settings->speed;
	if (!world_open(&round.world, settings->spec, &settings->options))
		return;
	for (unsigned i = 0; i < settings->workers; i++) {
		workers[i] = (struct worker){ .round = &round, .random = seed * 31 + i + 1 };
		CHECK(!pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	}
	come_and_go(&round, seconds() + length, &seed, &lives, &forks);
	atomic_store(&round.over, true);
	for (unsigned i = 0; i < settings->workers; i++)
		pthread_join(workers[i].thread, NULL);
	printf("%llu steps of %u threads, %u short lives, %u forks, %u requests refused\n", (unsigned long long)round.steps,
	       settings->workers, lives, forks, (unsigned)round.world.refused);
	if (check_random(&seed) % 2)
		world_close(&round.world);
	else
		world_abandon(&round.world);
	alarm(0);
}

static void tell(const struct settings *settings, uint64_t seed)
{
	const struct sy_heap_options *options = &settings->options;

	printf("seed %" PRIu64 ": %s", seed, settings->spec);
	if (options->limit)
		printf(", limit %zu MiB", options->limit >> 20);
	printf("%s%s%s%s", options->buffer ? ", buffer" : "", options->huge_pages ? ", huge pages" : "", options->keep ? ", keep" : "",
	       options->sizing.exact_runs ? ", exact runs" : "");
	printf("%s, align %u, clock x %u: ", options->sizing.classes == SY_CLASSES_FINE ? ", fine classes" : "", options->sizing.align,
	       settings->speed);
	fflush(stdout);
}

/* ---- The program -------------------------------------------------------------------------------------------------- */

static void stuck(int number)
{
	static const char line[] = "slabyard-soak: stuck: the round does not end\n";

	(void)number;
	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		_exit(4);
	_exit(3);
}

int main(int argc, char **argv)
{
	double length = argc > 1 ? strtod(argv[1], NULL) : 60, end = seconds() + length, round;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
	const struct sy_policy *policies[MOST_POLICIES];
	unsigned count = choose_policies(argv + 3, argc > 3 ? (unsigned)argc - 3 : 0, policies);

	signal(SIGALRM, stuck);
	sy_platform_set_clock(world_clock);
	round = length / count < SHORTEST_ROUND ? SHORTEST_ROUND : length / count > LONGEST_ROUND ? LONGEST_ROUND : length / count;
	for (unsigned i = 0; i < count || seconds() < end; i++, seed++) {
		uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
		struct settings settings;

		draw(policies[i % count], &settings, &random);
		tell(&settings, seed);
		run(&settings, random, round);
		if (check_failures)
			break;
	}
	return check_result();
}
