/*
 * Heavy loads, one after the other, under every policy:  slabyard-load [OPERATIONS [LIVE-MIB [POLICY...]]]
 *
 *   operations  OPERATIONS, half of them frees, on 16,384 objects of all sizes; all invariants are checked a hundred times
 *   caches      1,000 in one heap, each with objects of its own size, created and destroyed in between
 *   heaps       100 at once, and objects move from one to the next
 *   threads     1,000 at once, which exchange objects
 *   forks       100 children while four threads work; each child has a child of its own
 *   exhausted   small, middle and large objects, each until there is no memory; again after half is freed, and after all is
 *   live        LIVE-MIB MiB at once, one page of each object touched; 0: left out
 *
 * Every object is verified before it is freed. A line on standard output says how long each load took. Errors go to standard
 * error, and the status is then 1. A load that takes longer than it may is stuck: status 3.
 */
#include <signal.h>

#include "draw.h"
#include "threads_support.h"

#define USUAL 100000000u /* operations */
#define OBJECTS 16384u
#define CHECKS 100u
#define CACHES 1000u
#define HEAPS 100u
#define OF_HEAP 64u /* objects */
#define THREADS 1000u
#define STACK ((size_t)64 << 10)
#define CHILDREN 100u
#define CHILDS_STEPS 200u
#define MOST 400000u /* objects until a heap is exhausted */
#define LIMIT ((size_t)64 << 20)
#define LIVE_BYTES ((size_t)1 << 20)
#define STUCK_AFTER 1800u /* seconds */

static const struct sy_heap_options roomy = { .reserve = SMALL_RESERVE }, limited = { .reserve = SMALL_RESERVE, .limit = LIMIT };
static uint64_t operations = USUAL, live_mib;

static struct mark *objects[MOST];

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- Operations --------------------------------------------------------------------------------------------------- */

static void operate(const char *policy)
{
	uint64_t random = 88172645463325252u, every = operations / CHECKS + 1;
	struct world world;

	if (!world_open(&world, policy, &roomy))
		return;
	for (uint64_t i = 0; i < operations && !world.wrong; i++) {
		struct mark **at = &objects[below(&random, OBJECTS)];

		if (*at) {
			world_free(&world, *at);
			*at = NULL;
		} else {
			*at = world_get(&world, check_random(&random));
		}
		if (i % every == 0) {
			world_event(&world, i / every);
			world_check(&world);
		}
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		if (objects[i])
			world_free(&world, objects[i]);
	CHECK_EQUAL(world.refused, 0);
	world_close(&world);
}

/* ---- Many caches, many heaps --------------------------------------------------------------------------------------- */

static struct sy_cache *one_of(struct sy_heap *heap, unsigned number)
{
	char name[SY_NAME_BYTES];
	const struct sy_cache_config config = { .name = name, .size = 16 + number * 7 % 3000, .flags = SY_CACHE_NO_MERGE };
	struct sy_cache *cache;

	snprintf(name, sizeof(name), "load-%u", number);
	cache = sy_cache_create(heap, &config);
	CHECK(cache != NULL);
	return cache;
}

static void fill_with(struct sy_cache *cache, unsigned number, void **object)
{
	*object = sy_alloc(cache, 0);
	CHECK(*object != NULL);
	if (*object)
		memset(*object, (int)(number & 0xff), 16 + number * 7 % 3000);
}

static void take_back(struct sy_cache *cache, unsigned number, void **object)
{
	if (*object)
		CHECK_BYTES(*object, (unsigned char)number, 16 + number * 7 % 3000);
	sy_free(cache, *object);
	*object = NULL;
}

static void have_caches(const char *policy)
{
	static struct sy_cache *caches[CACHES];
	static void *of_cache[CACHES][4];
	struct sy_heap *heap = sy_heap_open(policy, &roomy, NULL);
	uint64_t random = 362436069;

	CHECK(heap != NULL);
	if (!heap)
		return;
	for (unsigned i = 0; i < CACHES; i++)
		caches[i] = one_of(heap, i);
	for (uint64_t i = 0; i < operations / 10 && !check_failures; i++) {
		unsigned number = (unsigned)below(&random, CACHES);
		void **object = &of_cache[number][below(&random, 4)];

		if (*object)
			take_back(caches[number], number, object);
		else
			fill_with(caches[number], number, object);
		if (i % (operations / 10 / CHECKS + 1) == 0) {
			for (unsigned j = 0; j < 4; j++)
				take_back(caches[number], number, &of_cache[number][j]);
			CHECK(sy_cache_destroy(caches[number], NULL));
			caches[number] = one_of(heap, number);
			CHECK_FINE(sy_heap_check(heap));
		}
	}
	for (unsigned i = 0; i < CACHES; i++) {
		for (unsigned j = 0; j < 4; j++)
			take_back(caches[i], i, &of_cache[i][j]);
		CHECK(sy_cache_destroy(caches[i], NULL));
	}
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

static void have_heaps(const char *policy)
{
	const struct sy_heap_options small = { .reserve = (size_t)8 << 20 };
	static struct world worlds[HEAPS];
	static struct mark *of_heap[HEAPS][OF_HEAP];
	uint64_t random = 521288629;

	for (unsigned i = 0; i < HEAPS; i++)
		if (!world_open(&worlds[i], policy, &small))
			return;
	for (uint64_t i = 0; i < operations / 10; i++) {
		unsigned number = (unsigned)below(&random, HEAPS);
		struct mark **at = &of_heap[number][below(&random, OF_HEAP)];

		if (*at) {
			world_free(&worlds[number], *at);
			*at = NULL;
		} else {
			*at = world_get(&worlds[number], check_random(&random));
		}
		if (i % (operations / 10 / CHECKS + 1) == 0) {
			world_check(&worlds[number]);
			if (!worlds[number].wrong)
				sy_heap_trim(worlds[number].heap);
		}
	}
	for (unsigned i = 0; i < HEAPS; i++) {
		for (unsigned j = 0; j < OF_HEAP; j++) {
			if (of_heap[i][j])
				world_free(&worlds[i], of_heap[i][j]);
			of_heap[i][j] = NULL;
		}
		CHECK_EQUAL(worlds[i].refused, 0);
		world_close(&worlds[i]);
	}
}

/* ---- Threads and forks --------------------------------------------------------------------------------------------- */

struct task {
	struct world *world;
	uint64_t steps, random;
	pthread_t thread;
	atomic_bool *over;            /* NULL: after its steps */
	pthread_barrier_t *all_there; /* or NULL */
};

static void *work(void *argument)
{
	struct task *task = argument;

	if (task->all_there)
		pthread_barrier_wait(task->all_there);
	for (uint64_t i = 0; task->over ? !atomic_load(task->over) : i < task->steps; i++)
		world_step(task->world, &task->random);
	return NULL;
}

/* The end of a thread, or of the program. */
static void begin(struct task *task)
{
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	if (pthread_create(&task->thread, &small, work, task)) {
		fprintf(stderr, "slabyard-load: no thread more can be had\n");
		exit(1);
	}
	pthread_attr_destroy(&small);
}

static void have_threads(const char *policy)
{
	static struct task tasks[THREADS];
	pthread_barrier_t all_there;
	struct world world;

	if (!world_open(&world, policy, &roomy))
		return;
	pthread_barrier_init(&all_there, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++) {
		tasks[i] = (struct task){ .world = &world, .steps = operations / 20 / THREADS, .random = i * 2 + 1, .all_there = &all_there };
		begin(&tasks[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(tasks[i].thread, NULL);
	pthread_barrier_destroy(&all_there);
	world_close(&world);
}

/* In a child: it has a child too, and both go on using the heap. */
static int live_as_child(struct world *world, uint64_t random, unsigned generation)
{
	int status = 0;
	pid_t child = generation ? fork() : 0;

	if (child < 0)
		return 1;
	if (generation && !child)
		_exit(live_as_child(world, random + 1, generation - 1));
	for (unsigned i = 0; i < CHILDS_STEPS; i++)
		world_step(world, &random);
	world_check(world);
	if (generation && (waitpid(child, &status, 0) != child || status))
		return 1;
	return world->wrong != 0;
}

static void storm(const char *policy)
{
	unsigned children = operations < USUAL / 10 ? CHILDREN / 10 : CHILDREN, count = 0;
	struct task tasks[4];
	atomic_bool over = false;
	pid_t pids[CHILDREN];
	struct world world;

	if (!world_open(&world, policy, &roomy))
		return;
	for (unsigned i = 0; i < 4; i++) {
		tasks[i] = (struct task){ .world = &world, .random = i * 2 + 77, .over = &over };
		begin(&tasks[i]);
	}
	for (; count < children; count++) {
		pids[count] = fork();
		if (!pids[count])
			_exit(live_as_child(&world, count * 2 + 1, 1));
		CHECK(pids[count] > 0);
	}
	while (count--) {
		int status = 0;

		CHECK(waitpid(pids[count], &status, 0) == pids[count]);
		CHECK_EQUAL(status, 0);
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(tasks[i].thread, NULL);
	world_close(&world);
}

/* ---- Memory that ends, and much of it ------------------------------------------------------------------------------ */

/* How many objects there is memory for. */
static unsigned take_all(struct world *world, size_t bytes, unsigned count)
{
	for (; count < MOST; count++) {
		objects[count] = sy_malloc(world->heap, bytes, 0);
		if (!objects[count])
			return count;
		*objects[count] = (struct mark){ KMALLOC, count, 0 };
		*((unsigned char *)objects[count] + bytes - 1) = (unsigned char)count;
	}
	return count;
}

/* Keeps one object in `each`; returns how many are left. */
static unsigned drop(struct world *world, size_t bytes, unsigned count, unsigned every)
{
	unsigned left = 0;

	for (unsigned i = 0; i < count; i++) {
		struct mark *object = objects[i];

		objects[i] = NULL;
		if (i % every) {
			objects[left++] = object;
			continue;
		}
		CHECK_EQUAL(((unsigned char *)object)[bytes - 1], object->bytes & 0xff);
		sy_mfree(world->heap, object);
	}
	return left;
}

static void exhaust(const char *policy)
{
	static const size_t sizes[] = { 200, 3000, 70000, (size_t)1 << 20 };
	struct world world;

	if (!world_open(&world, policy, &limited))
		return;
	for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t bytes = sizes[i / 2];
		unsigned first = take_all(&world, bytes, 0), left, second;

		CHECK(first > 0 && first < MOST);
		world_check(&world);
		left = drop(&world, bytes, first, 2);
		second = take_all(&world, bytes, left);
		CHECK(second >= first - first / 8);
		world_check(&world);
		drop(&world, bytes, second, 1);
		if (world.heap->never_reclaims)
			break;
	}
	world_close(&world);
}

static void live(const char *policy)
{
	const struct sy_heap_options large = { .reserve = (size_t)live_mib * 2 << 20 };
	unsigned count = (unsigned)(((uint64_t)live_mib << 20) / LIVE_BYTES);
	struct sy_heap *heap = live_mib ? sy_heap_open(policy, &large, NULL) : NULL;

	CHECK(heap || !live_mib);
	if (!heap)
		return;
	for (unsigned i = 0; i < count && i < MOST; i++) {
		size_t bytes = i % 2 ? LIVE_BYTES : 3 * LIVE_BYTES / 2 - i % 4096;

		objects[i] = sy_malloc(heap, bytes, 0);
		CHECK(objects[i] != NULL);
		if (objects[i])
			*objects[i] = (struct mark){ KMALLOC, i, (unsigned char)i };
	}
	CHECK_FINE(sy_heap_check(heap));
	for (unsigned i = 0; i < count && i < MOST; i++) {
		CHECK(objects[i] && objects[i]->bytes == i);
		sy_mfree(heap, objects[i]);
		objects[i] = NULL;
	}
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

/* ---- The program --------------------------------------------------------------------------------------------------- */

static void stuck(int number)
{
	static const char line[] = "slabyard-load: stuck: it does not end\n";

	(void)number;
	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		_exit(4);
	_exit(3);
}

static void run(const char *policy)
{
	static const struct {
		const char *name;
		void (*run)(const char *policy);
	} loads[] = {
		{ "operations", operate }, { "caches", have_caches }, { "heaps", have_heaps },  { "threads", have_threads },
		{ "forks", storm },        { "exhausted", exhaust },  { "live", live },
	};

	printf("%s:", policy);
	for (unsigned i = 0; i < sizeof(loads) / sizeof(loads[0]) && !check_failures; i++) {
		double began = seconds();

		alarm(STUCK_AFTER);
		loads[i].run(policy);
		printf(" %s %.2f", loads[i].name, seconds() - began);
		fflush(stdout);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	const struct sy_policy *policies[MOST_POLICIES];
	unsigned count = choose_policies(argv + 3, argc > 3 ? (unsigned)argc - 3 : 0, policies);

	if (argc > 1)
		operations = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		live_mib = strtoull(argv[2], NULL, 10);
	signal(SIGALRM, stuck);
	for (unsigned i = 0; i < count && !check_failures; i++)
		run(policies[i]->name);
	return check_result();
}
