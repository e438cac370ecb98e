/*
 * slabyard-pairs: what an allocation and its free cost, of plain buffers and of objects with a constructed state.
 *
 *   slabyard-pairs --allocator SPEC (--kind NAME [--cached] | --bytes N [--kmem]) [--live N] [--beside N] [--order ORDER] [--rounds N]
 *   slabyard-pairs --list
 *
 * A run is some pieces of as many rounds each. A round makes `live` of a kind and then takes all of them apart, in the order of their
 * making, the reverse, or shuffled. With one alive that is a lone pair; `beside` are made before and stay. Cached objects keep their
 * constructed state from use to use, as their cache has a constructor; others are constructed after each allocation and destroyed
 * before each free. Plain buffers come from a cache, or with --kmem from the general allocation.
 *
 * What is counted. The lab runs this under callgrind, which collects inside of cost_pairs alone; what it calls there is the memory's
 * (sy_...), the construction's (construct_..., destruct_...) or the rest (begin_..., end_...). The first rounds, which bring in
 * memory, are made by another function. The time is that of the quickest of some pieces of the same rounds, as whatever else the
 * machine does can only make a piece slower.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "pairs.h"

#include "programs/options.h"
#include "programs/spec.h"
#include "programs/ticks.h"

#include <string.h>

#define MEMORY_PAGES 16384
#define WARM_ROUNDS 8
#define LOCK_PAIRS 100000u
#define PIECES 20u /* of a timed run */

struct run {
	const struct kind *kind;
	struct sy_heap *heap;
	struct sy_cache *caches[MOST_PARTS];
	bool cached;
	unsigned live, beside;
	unsigned order[MOST_LIVE];
	void *parts[2 * MOST_LIVE][MOST_PARTS + 1];
};

/* ---- A pair --------------------------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) bool make(struct run *run, void **parts)
{
	const struct kind *kind = run->kind;
	unsigned part = 0;

	for (; part < MOST_PARTS && kind->parts[part]; part++) {
		const struct type *type = kind->parts[part];

		parts[part] = sy_cache_alloc(run->caches[part], 0, 0, SY_ANY_NODE);
		if (!parts[part])
			return false;
		if (!run->cached && type->construct)
			type->construct(parts[part], type->size);
	}
	if (kind->buffer) {
		parts[part] = sy_kmalloc(run->heap, 0, kind->buffer, 0, SY_ANY_NODE);
		if (!parts[part])
			return false;
	}
	if (kind->begin)
		kind->begin(parts);
	return true;
}

static inline __attribute__((always_inline)) void unmake(struct run *run, void **parts)
{
	const struct kind *kind = run->kind;
	unsigned part = 0;

	if (kind->end)
		kind->end(parts);
	for (; part < MOST_PARTS && kind->parts[part]; part++) {
		const struct type *type = kind->parts[part];

		if (!run->cached && type->destruct)
			type->destruct(parts[part], type->size);
		sy_cache_free(run->caches[part], 0, parts[part]);
	}
	if (kind->buffer)
		sy_kfree(run->heap, 0, parts[part]);
}

static inline __attribute__((always_inline)) bool run_rounds(struct run *run, uint64_t rounds)
{
	while (rounds--) {
		for (unsigned i = 0; i < run->live; i++)
			if (!make(run, run->parts[i]))
				return false;
		for (unsigned i = 0; i < run->live; i++)
			unmake(run, run->parts[run->order[i]]);
	}
	return true;
}

bool warm_pairs(struct run *, uint64_t rounds);
bool cost_pairs(struct run *, uint64_t rounds);

__attribute__((noinline)) bool warm_pairs(struct run *run, uint64_t rounds)
{
	for (unsigned i = 0; i < run->beside; i++)
		if (!make(run, run->parts[MOST_LIVE + i]))
			return false;
	return run_rounds(run, rounds);
}

__attribute__((noinline)) bool cost_pairs(struct run *run, uint64_t rounds)
{
	return run_rounds(run, rounds);
}

/* ---- The run -------------------------------------------------------------------------------------------------- */

enum order { IN_ORDER, REVERSE, SHUFFLED, ORDERS };
static const char *const orders[ORDERS] = { "in", "reverse", "shuffled" };

static void arrange(struct run *run, enum order order)
{
	uint64_t state = 1;

	for (unsigned i = 0; i < run->live; i++)
		run->order[i] = order == REVERSE ? run->live - 1 - i : i;
	for (unsigned i = run->live; order == SHUFFLED && i > 1; i--) {
		unsigned other, last = run->order[i - 1];

		state = state * 6364136223846793005u + 1442695040888963407u;
		other = (unsigned)((state >> 33) % i);
		run->order[i - 1] = run->order[other];
		run->order[other] = last;
	}
}

static bool create(struct run *run, const struct spec *spec, struct fault *fault)
{
	struct sy_pages_config pages = { .zone_count = 1, .slots = 1, .pageblock_order = 9, .cpu_lists = true };
	struct sy_heap_config heap = spec_heap_config(spec, 1, 1);
	struct sy_pages *machine;

	pages.zones[0] = (struct sy_zone_config){ .name = "Normal", .pages = MEMORY_PAGES };
	machine = sy_pages_create(&pages);
	run->heap = machine ? sy_heap_create(machine, &heap) : NULL;
	for (unsigned part = 0; run->heap && part < MOST_PARTS && run->kind->parts[part]; part++) {
		const struct type *type = run->kind->parts[part];
		struct sy_cache_config config = { .name = type->name, .size = type->size, .flags = SY_CACHE_NO_MERGE };

		if (run->cached) {
			config.constructor = type->construct;
			config.destructor = type->destruct;
		}
		run->caches[part] = sy_cache_create(run->heap, &config);
		if (!run->caches[part])
			return refuse(fault, "no cache for objects of %zu bytes", type->size);
	}
	return run->heap || refuse(fault, "no memory for the machine");
}

/* Takes and releases a lock that is free, as the allocators' own locks do it. */
static bool run_locks(struct run *run, uint64_t pairs)
{
	static unsigned held;

	(void)run;
	while (pairs--) {
		while (__atomic_exchange_n(&held, 1u, __ATOMIC_ACQUIRE))
			;
		__atomic_store_n(&held, 0u, __ATOMIC_RELEASE);
	}
	return true;
}

/* Nanoseconds of one of `count` rounds, in the quickest piece; infinite: there was no memory. */
static double quickest(bool (*work)(struct run *, uint64_t), struct run *run, uint64_t count)
{
	double least = INFINITY;

	for (unsigned piece = 0; piece < PIECES; piece++) {
		uint64_t start = monotonic_ns();
		double each;

		if (!work(run, count))
			return INFINITY;
		each = (double)(monotonic_ns() - start) / (double)count;
		least = each < least ? each : least;
	}
	return least;
}

static bool measure(struct run *run, uint64_t rounds, struct fault *fault)
{
	double round;
	struct json json;

	round = warm_pairs(run, WARM_ROUNDS) ? quickest(cost_pairs, run, rounds) : INFINITY;
	if (isinf(round))
		return refuse(fault, "the objects do not fit into %d MiB", MEMORY_PAGES >> (20 - SY_PAGE_SHIFT));
	json_begin(&json, stdout);
	json_object(&json, NULL);
	json_count(&json, "pairs", PIECES * rounds * run->live);
	json_measured(&json, "ns_per_pair", round / run->live, 3);
	json_measured(&json, "lock_pair_ns", quickest(run_locks, run, LOCK_PAIRS), 3);
	json_object_end(&json);
	return json_finish(&json, fault);
}

/* ---- The command line ----------------------------------------------------------------------------------------- */

struct arguments {
	const char *allocator, *kind, *bytes, *live, *beside, *order, *rounds;
	bool cached, kmem, list, help;
};

static bool read_arguments(struct arguments *arguments, int count, char **words, struct fault *fault)
{
	const struct option options[] = {
		{ "--allocator", &arguments->allocator, NULL },
		{ "--kind", &arguments->kind, NULL },
		{ "--bytes", &arguments->bytes, NULL },
		{ "--live", &arguments->live, NULL },
		{ "--beside", &arguments->beside, NULL },
		{ "--order", &arguments->order, NULL },
		{ "--rounds", &arguments->rounds, NULL },
		{ "--cached", NULL, &arguments->cached },
		{ "--kmem", NULL, &arguments->kmem },
		{ "--list", NULL, &arguments->list },
		{ "--help", NULL, &arguments->help },
		{ 0 },
	};
	int first = options_read(options, count, words, fault);

	if (first && first < count)
		return refuse(fault, "unexpected argument %s: see slabyard-pairs --help", words[first]);
	return first > 0;
}

static const struct kind *kind_named(const char *name)
{
	const struct kind *kind = kinds;

	while (kind->name && strcmp(kind->name, name) != 0)
		kind++;
	return kind->name ? kind : NULL;
}

/* The kind of plain buffers. */
static const struct kind *plain(uint64_t bytes, bool kmem)
{
	static struct type type = { .name = "buffer" };
	static struct kind kind = { .name = "buffer" };

	type.size = (size_t)bytes;
	kind.buffer = kmem ? (size_t)bytes : 0;
	kind.parts[0] = kmem ? NULL : &type;
	return &kind;
}

static bool set_up(struct run *run, const struct arguments *arguments, uint64_t *rounds, struct fault *fault)
{
	uint64_t bytes = 64, live = 1, beside = 0;
	unsigned order = 0;

	if (!arguments->allocator || !arguments->kind == !arguments->bytes)
		return refuse(fault, "give --allocator, and --kind or --bytes: see slabyard-pairs --help");
	if (!option_number("--bytes", arguments->bytes, 1, SY_PAGE_SIZE, &bytes, fault) ||
	    !option_number("--live", arguments->live, 1, MOST_LIVE, &live, fault) ||
	    !option_number("--beside", arguments->beside, 0, MOST_LIVE, &beside, fault) ||
	    !option_number("--rounds", arguments->rounds, 1, 100000000, rounds, fault))
		return false;
	while (arguments->order && order < ORDERS && strcmp(orders[order], arguments->order) != 0)
		order++;
	run->kind = arguments->kind ? kind_named(arguments->kind) : plain(bytes, arguments->kmem);
	if (!run->kind || order == ORDERS)
		return refuse(fault, "no such kind or order: see slabyard-pairs --help");
	run->cached = arguments->cached;
	run->live = (unsigned)live;
	run->beside = (unsigned)beside;
	arrange(run, (enum order)order);
	return true;
}

static bool print_help(void)
{
	struct sy_policy_description first;

	sy_policy_describe(sy_policies[0], &first);
	puts("slabyard-pairs --allocator SPEC (--kind NAME [--cached] | --bytes N [--kmem])\n"
	     "               [--live N] [--beside N] [--order in|reverse|shuffled] [--rounds N]\n"
	     "slabyard-pairs --list\n"
	     "\n"
	     "Makes N of a kind and takes them apart, round after round; prints the time of a pair as JSON. Example:");
	printf("  slabyard-pairs --allocator %s --kind shalloc --cached --live 64\n", first.name);
	return true;
}

static bool print_list(struct fault *fault)
{
	struct json json;

	json_begin(&json, stdout);
	json_array(&json, NULL);
	for (const struct kind *kind = kinds; kind->name; kind++) {
		size_t bytes = kind->buffer;

		for (unsigned part = 0; part < MOST_PARTS && kind->parts[part]; part++)
			bytes += kind->parts[part]->size;
		json_object(&json, NULL);
		json_string(&json, "name", kind->name);
		json_string(&json, "what", kind->what);
		json_count(&json, "bytes", bytes);
		json_object_end(&json);
	}
	json_array_end(&json);
	return json_finish(&json, fault);
}

static bool act(int count, char **words, struct fault *fault)
{
	struct arguments arguments = { 0 };
	static struct run run;
	uint64_t rounds = 20;
	struct spec spec;

	if (!read_arguments(&arguments, count, words, fault))
		return false;
	if (arguments.help)
		return print_help();
	if (arguments.list)
		return print_list(fault);
	if (!set_up(&run, &arguments, &rounds, fault) || !spec_parse(&spec, arguments.allocator, fault))
		return false;
	if (!spec.policy)
		return refuse(fault, "a malloc has no caches: give a policy");
	return create(&run, &spec, fault) && measure(&run, rounds, fault); /* the process ends with the heap */
}

int main(int count, char **words)
{
	struct fault fault;

	return program_status("slabyard-pairs", act(count, words, &fault), &fault);
}
