/*
 * Long random programs for every policy:  conformance-soak [OPERATIONS [SEED]]
 *
 * OPERATIONS per policy, else the environment's SLABYARD_CONFORMANCE_OPS, else 200,000. They are spread over rounds of up
 * to 4,000 operations, each on a machine of its own: slots, nodes, memory, tunables and the mix of operations are drawn at
 * random, so that some rounds run out of memory all the time and others never. A failure names the round's seed; the
 * same seed as second argument, with OPERATIONS 1, runs that round first.
 */
#include "conformance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUND 4000
#define DEFAULT_OPERATIONS 200000

static uint64_t state;

/* SplitMix64. */
static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint32_t below(uint32_t bound)
{
	return (uint32_t)(draw() % bound);
}

static bool one_in(uint32_t n)
{
	return below(n) == 0;
}

/* Between 1 and 2^bits, small ones as likely as large ones; powers of two and their neighbours often. */
static uint32_t size_below(unsigned bits)
{
	uint32_t top = 1u << below(bits + 1);

	return one_in(4) ? top + below(3) - (top > 1) : 1 + below(top);
}

static uint32_t draw_flags(void)
{
	static const uint32_t rare[] = { SY_RECLAIMABLE, SY_ACCOUNT, SY_DMA, SY_DMA32, SY_NO_RECLAIM, SY_HIGHATOMIC };

	return (one_in(4) ? SY_ZERO : 0) | (one_in(8) ? SY_THISNODE : 0) |
	       (one_in(8) ? rare[below(sizeof(rare) / sizeof(rare[0]))] : 0);
}

static void draw_create(struct op *op)
{
	uint32_t align = one_in(2) ? 0 : 1u << below(13);
	uint32_t flags = one_in(2) ? 0 : below(128);

	op->a = size_below(16);
	op->b = align | flags << 16 | (one_in(3) ? OP_CONSTRUCTED : 0);
}

static void draw_kmalloc(struct op *op)
{
	op->a = one_in(50) ? (uint32_t)draw() : one_in(10) ? 0 : size_below(17);
	op->b = op->a < 4096 && one_in(8) ? below(OP_BULK) : 0;
	op->flags = draw_flags();
}

static struct op draw_op(uint32_t fail_one_in, uint32_t pages_share)
{
	int node = one_in(2) ? SY_ANY_NODE : (int)below(8);
	struct op op = { .slot = (uint8_t)draw(), .heap = (uint8_t)draw(), .node = (int8_t)node };
	uint32_t which = below(100 + pages_share);

	op.a = (uint32_t)draw();
	op.b = 0;
	if (which < 4) {
		op.kind = OP_CREATE;
		draw_create(&op);
	} else if (which < 6) {
		op.kind = OP_DESTROY;
	} else if (which < 40) {
		op.kind = OP_ALLOC;
		op.b = one_in(6) ? below(OP_BULK) : 0;
		op.flags = draw_flags();
	} else if (which < 58) {
		op.kind = OP_KMALLOC;
		draw_kmalloc(&op);
	} else if (which < 94) {
		op.kind = OP_FREE;
		op.b = one_in(6) ? below(OP_BULK) : 0;
	} else if (which < 95) {
		op.kind = one_in(4) ? OP_SHRINK : OP_SHRINK_CACHE;
	} else if (which < 97) {
		op.kind = OP_TICK;
		op.a = below(3000);
	} else if (which < 98) {
		op.kind = OP_DRAIN;
		op.b = below(2);
	} else if (which < 99) {
		op.kind = one_in(fail_one_in) ? OP_FAIL : OP_TICK;
		op.a = below(20);
	} else if (which < 100) {
		op.kind = one_in(10) ? OP_RELEASE : OP_TICK;
	} else {
		op.kind = one_in(2) ? OP_PAGES : OP_PAGES_FREE;
		op.flags = one_in(2) ? SY_MOVABLE : draw_flags();
		if (op.kind == OP_PAGES)
			op.a = below(one_in(4) ? SY_ORDERS : 4);
	}
	return op;
}

/* Whole ranges for choices and small numbers; of large ones what is small. */
static int64_t draw_tunable(int64_t default_value, int64_t min, int64_t max)
{
	if (one_in(2))
		return default_value;
	return min + (int64_t)(draw() % (uint64_t)(max - min > 64 ? 64 : max - min + 1));
}

static void draw_config(const struct sy_policy *policy, struct conformance_config *config)
{
	sy_conformance_defaults(policy, config);
	config->slots = one_in(3) ? 1 : 1 + below(one_in(4) ? 64 : 8);
	config->nodes = one_in(2) ? 1 : 1 + below(4);
	config->heaps = one_in(4) ? 2 : 1;
	config->pages_per_node = one_in(4) ? 256 + below(1024) : 1024 * (1 + below(4));
	config->grace_ns = one_in(4) ? 0 : below(10000);
	config->check_every = 50 + below(500);
	config->fail_first = one_in(4) ? 1 + below(60) : 0;
	config->cpu_lists = (uint8_t)below(2);
	config->leave_objects = one_in(4);
	for (unsigned i = 0; i < policy->tunable_count; i++)
		config->tunables[i] = draw_tunable(policy->tunables[i].default_value, policy->tunables[i].min,
		                                   policy->tunables[i].max);
}

/* One round; false: it failed, and said so. */
static bool soak_round(const struct sy_policy *policy, uint64_t seed, struct conformance_result *result)
{
	static struct op ops[ROUND];
	struct conformance_config config;
	uint32_t count, fail_one_in, pages_share;

	state = seed;
	draw_config(policy, &config);
	count = one_in(3) ? 1 + below(ROUND) : ROUND;
	fail_one_in = 1 + below(8);
	pages_share = one_in(2) ? 0 : below(60);
	for (uint32_t i = 0; i < count; i++)
		ops[i] = draw_op(fail_one_in, pages_share);
	if (sy_conformance_run(policy, &config, ops, count, result))
		return true;
	printf("%s: %s\n  at operation %" PRIu64 " of %" PRIu32 "; again: conformance-soak 1 %" PRIu64 "\n", policy->name,
	       result->message, result->failed_at, count, seed);
	printf("  slots %u nodes %u heaps %u pages_per_node %u grace_ns %u check_every %u fail_first %u cpu_lists %u"
	       " leave_objects %u tunables", config.slots, config.nodes, config.heaps, config.pages_per_node, config.grace_ns,
	       config.check_every, config.fail_first, config.cpu_lists, config.leave_objects);
	for (unsigned i = 0; i < policy->tunable_count; i++)
		printf(" %s=%" PRId64, policy->tunables[i].name, config.tunables[i]);
	puts("");
	return false;
}

static bool soak(const struct sy_policy *policy, uint64_t operations, uint64_t seed)
{
	struct conformance_result result, sum = { 0 };
	uint64_t rounds = 0;

	for (; sum.operations < operations; rounds++) {
		if (!soak_round(policy, seed + rounds, &result))
			return false;
		sum.operations += result.operations;
		sum.allocations += result.allocations;
		sum.frees += result.frees;
		sum.refused += result.refused;
	}
	printf("%s: %" PRIu64 " operations in %" PRIu64 " rounds: %" PRIu64 " allocations, %" PRIu64 " frees, %" PRIu64
	       " refused for want of memory\n", policy->name, sum.operations, rounds, sum.allocations, sum.frees, sum.refused);
	return true;
}

/* A number from the command line or the environment; exits with 2 when it is none. */
static uint64_t number(const char *text, const char *what)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end) {
		fprintf(stderr, "conformance-soak: %s must be a number, not '%s'\n", what, text);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	const char *environment = getenv("SLABYARD_CONFORMANCE_OPS");
	uint64_t operations = DEFAULT_OPERATIONS, seed = 1;
	bool kept = true;

	if (argc > 1)
		operations = number(argv[1], "OPERATIONS");
	else if (environment && *environment)
		operations = number(environment, "SLABYARD_CONFORMANCE_OPS");
	if (argc > 2)
		seed = number(argv[2], "SEED");
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; sy_policies[i]; i++)
		kept = soak(sy_policies[i], operations, seed) && kept;
	return !kept;
}
