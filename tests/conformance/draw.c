/*
 * Random programs for conformance-soak, each made from a seed: machine, tunables and the mix of operations are drawn too, so that
 * some programs run out of memory all the time and others never, some allocate one object at a time and others hundreds.
 *
 * One program in FAILING_SHARE is short, and meant to be run again with each of its page requests failing.
 */
#include "draw.h"

#define FAILING_SHARE 8
#define FAILING_LENGTH 80
#define FAILING_BULK 12
#define FAILING_PAGES 1024
#define LARGEST_BLOCK ((uint32_t)SY_PAGE_SIZE << SY_MAX_ORDER)

/* What a program is like. */
struct mix {
	uint32_t bulk_one_in, bulk; /* how often an operation is of many objects, and of how many at most */
	uint32_t fail_one_in, pages_share, renew_one_in;
};

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
	uint32_t align = one_in(2) ? 0 : one_in(40) ? below(10000) : 1u << below(13);
	uint32_t flags = one_in(2) ? 0 : below(128);

	op->a = one_in(50) ? LARGEST_BLOCK - 2 + below(5) : size_below(16);
	op->b = align | flags << 16 | (one_in(3) ? OP_CONSTRUCTED : 0);
}

static uint32_t draw_times(const struct mix *mix)
{
	return one_in(mix->bulk_one_in) ? below(mix->bulk) : 0;
}

static void draw_kmalloc(struct op *op, const struct mix *mix)
{
	op->a = one_in(50) ? (uint32_t)draw() : one_in(50) ? LARGEST_BLOCK - 2 + below(5) : one_in(10) ? 0 : size_below(17);
	op->b = op->a < 4096 ? draw_times(mix) : 0;
	op->flags = draw_flags();
}

static struct op draw_op(const struct mix *mix)
{
	int node = one_in(2) ? SY_ANY_NODE : (int)below(8);
	struct op op = { .slot = (uint8_t)draw(), .heap = (uint8_t)draw(), .node = (int8_t)node };
	uint32_t which = below(100 + mix->pages_share);

	op.a = (uint32_t)draw();
	op.b = 0;
	if (which < 4) {
		op.kind = OP_CREATE;
		draw_create(&op);
	} else if (which < 6) {
		op.kind = OP_DESTROY;
	} else if (which < 40) {
		op.kind = OP_ALLOC;
		op.b = draw_times(mix);
		op.flags = draw_flags();
	} else if (which < 58) {
		op.kind = OP_KMALLOC;
		draw_kmalloc(&op, mix);
	} else if (which < 94) {
		op.kind = OP_FREE;
		op.b = draw_times(mix);
	} else if (which < 95) {
		op.kind = one_in(4) ? OP_SHRINK : OP_SHRINK_CACHE;
	} else if (which < 97) {
		op.kind = OP_TICK;
		op.a = below(3000);
	} else if (which < 98) {
		op.kind = OP_DRAIN;
		op.b = below(2);
	} else if (which < 99) {
		op.kind = one_in(mix->fail_one_in) ? OP_FAIL : OP_TICK;
		op.a = below(20);
	} else if (which < 100) {
		op.kind = one_in(mix->renew_one_in) ? OP_HEAP : one_in(10) ? OP_RELEASE : OP_TICK;
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

static void draw_mix(struct mix *mix, bool fail_each)
{
	static const uint32_t bulks[] = { 6, 30, 100 };

	mix->bulk_one_in = fail_each ? 6 : bulks[below(3)];
	mix->bulk = fail_each ? FAILING_BULK : OP_BULK;
	mix->fail_one_in = 1 + below(8);
	mix->pages_share = one_in(2) ? 0 : below(60);
	mix->renew_one_in = one_in(3) ? 2 : 20;
}

void sy_conformance_draw(const struct sy_policy *policy, uint64_t seed, struct conformance_program *program)
{
	struct mix mix;

	state = seed;
	draw_config(policy, &program->config);
	program->fail_each = one_in(FAILING_SHARE);
	if (program->fail_each) {
		program->config.pages_per_node = FAILING_PAGES;
		program->config.check_every = 1 + below(20);
		program->config.fail_first = 0;
		program->count = 1 + below(FAILING_LENGTH);
	} else {
		program->count = one_in(3) ? 1 + below(PROGRAM_LENGTH) : PROGRAM_LENGTH;
	}
	draw_mix(&mix, program->fail_each);
	for (uint32_t i = 0; i < program->count; i++)
		program->ops[i] = draw_op(&mix);
}
