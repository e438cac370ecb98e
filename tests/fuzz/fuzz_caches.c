/* Caches, kmalloc and pages on a simulated machine, beside the model of tests/conformance/, which checks every promise. */
#include "fuzz.h"
#include "tests/conformance/conformance.h"

#define MOST_OPS 400

static void take_tunables(struct bytes *bytes, const struct sy_policy *policy, struct conformance_config *config)
{
	for (unsigned changed = take8(bytes) % 8; changed; changed--) {
		unsigned index = take8(bytes) % policy->tunable_count;
		const struct sy_tunable *tunable = &policy->tunables[index];
		uint64_t range = (uint64_t)(tunable->max - tunable->min), more = take16(bytes);

		config->tunables[index] = tunable->min + (int64_t)(range == UINT64_MAX ? more : more % (range + 1));
	}
}

static void take_config(struct bytes *bytes, const struct sy_policy *policy, struct conformance_config *config)
{
	unsigned bits = take8(bytes);

	sy_conformance_defaults(policy, config);
	config->slots = 1 + bits % 4;
	config->nodes = 1 + (bits >> 2) % 2;
	config->heaps = 1 + (bits >> 3) % 2;
	config->cpu_lists = bits >> 4 & 1;
	config->leave_objects = bits >> 5 & 1;
	config->grace_ns = bits >> 6 & 1 ? 1000 : 0;
	config->pages_per_node = bits >> 7 ? 1024 : 256 + 4 * take8(bytes);
	config->check_every = 1 + take8(bytes) % 32;
	config->fail_first = take8(bytes) % 64;
	if (policy->tunable_count)
		take_tunables(bytes, policy, config);
}

static struct op take_op(struct bytes *bytes)
{
	struct op op = { .kind = (uint8_t)(take8(bytes) % OP_KINDS) };
	unsigned place = take8(bytes), flags = take8(bytes);

	op.slot = place & 3;
	op.heap = place >> 2 & 1;
	op.node = (int8_t)((place >> 3) % 3 - 1);
	op.flags = flags | (place & 64 ? 1u << 8 : 0);
	op.a = take_scaled(bytes);
	op.b = take16(bytes);
	if (op.kind == OP_CREATE)
		op.b |= flags << 16 | (place & 128 ? OP_CONSTRUCTED : 0);
	else if (op.kind == OP_ALLOC || op.kind == OP_FREE || op.kind == OP_KMALLOC)
		op.b %= op.a < 4096 || op.kind == OP_FREE ? 64 : 2;
	return op;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct op ops[MOST_OPS];
	struct bytes bytes = { data, size };
	const struct sy_policy *policy = policy_of(take8(&bytes));
	struct conformance_config config;
	struct conformance_result result;
	uint64_t count = 0;

	take_config(&bytes, policy, &config);
	while (bytes.left && count < MOST_OPS)
		ops[count++] = take_op(&bytes);
	if (!sy_conformance_run(policy, &config, ops, count, &result)) {
		fprintf(stderr, "%s, at operation %u\n", policy->name, (unsigned)result.failed_at);
		fuzz_fine(result.message);
	}
	return 0;
}
