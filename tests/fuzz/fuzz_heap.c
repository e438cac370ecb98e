/* Heaps of threads, as a program opens them: limits, buffers, checks of debugging, caches, bulk, trims. One thread. */
#include "fuzz.h"
#include "objects.h"
#include "core/types.h"

#define MOST_CACHES 8u
#define MOST_OPS 1500
#define MIB ((size_t)1 << 20)

struct machine {
	struct sy_heap *heap;
	struct {
		struct sy_cache *cache;
		size_t size;
		unsigned objects;
	} caches[MOST_CACHES];
};

static unsigned char buffer[16 << 20] __attribute__((aligned(4096)));

static void take_spec(struct bytes *bytes, char *spec, size_t room)
{
	static const char *const checks[] = { "", "F", "Z", "P", "U", "FZPU", "C", "G" };
	unsigned count = 0, bits = take8(bytes);
	const struct sy_policy *policy;
	int used;

	while (sy_policies[count])
		count++;
	policy = sy_policies[bits % count];
	used = snprintf(spec, room, "%s", policy->name);
	for (unsigned more = bits >> 5; more && policy->tunable_count; more--) {
		const struct sy_tunable *tunable = &policy->tunables[take8(bytes) % policy->tunable_count];
		unsigned value = take16(bytes);
		char before = strchr(spec, ':') ? ',' : ':';

		if (!strncmp(tunable->name, "log_", 4))
			continue;
		if (tunable->choices)
			used += snprintf(spec + used, room - (size_t)used, "%c%s=%s", before, tunable->name,
			                 tunable->choices[(int64_t)value % (tunable->max + 1)]);
		else
			used += snprintf(spec + used, room - (size_t)used, "%c%s=%u", before, tunable->name, value);
	}
	bits = take8(bytes);
	if (bits % 16 < 8 && bits % 8)
		snprintf(spec + used, room - (size_t)used, "%cdebug=%s", strchr(spec, ':') ? ',' : ':', checks[bits % 8]);
}

static void take_options(struct bytes *bytes, struct sy_heap_options *options)
{
	unsigned bits = take8(bytes);

	memset(options, 0, sizeof(*options));
	options->reserve = 256 * MIB;
	if (bits & 1)
		options->limit = take8(bytes) * MIB / 2;
	if (bits & 2)
		options->buffer = buffer, options->buffer_bytes = sizeof(buffer) - (size_t)take16(bytes) % 4000 * 4096;
	options->keep = bits >> 2 & 1;
	options->huge_pages = bits >> 3 & 1;
	options->sizing.classes = bits & 16 ? SY_CLASSES_FINE : SY_CLASSES_LINUX;
	options->sizing.align = bits & 32 ? 8u << take8(bytes) % 10 : 0;
	options->sizing.exact_runs = bits >> 6 & 1;
	options->wait_ns = 1;
}

static void make_cache(struct machine *machine, struct bytes *bytes)
{
	unsigned index = take8(bytes) % MOST_CACHES;
	struct sy_cache_config config = { .name = "fuzz", .size = take_scaled(bytes) % 100000 };
	unsigned align = take8(bytes);

	config.flags = take8(bytes) & 0x7f & ~(unsigned)SY_CACHE_TYPESAFE_BY_RCU;
	config.align = align & 16 ? (size_t)1 << align % 16 : 0;
	if (machine->caches[index].cache)
		return;
	machine->caches[index].cache = sy_cache_create(machine->heap, &config);
	machine->caches[index].size = config.size;
}

static void end_cache(struct machine *machine, unsigned index)
{
	uint64_t alive = 0;

	if (!machine->caches[index].cache)
		return;
	if (sy_cache_destroy(machine->caches[index].cache, &alive)) {
		FUZZ_CHECK(!machine->caches[index].objects);
		machine->caches[index].cache = NULL;
	} else {
		FUZZ_CHECK(alive == machine->caches[index].objects);
	}
}

static void get(struct machine *machine, struct bytes *bytes, bool from_cache)
{
	unsigned bits = take8(bytes), index = bits >> 4 & (MOST_CACHES - 1), flags = bits & 1 ? SY_ZERO : 0;
	struct sy_cache *cache = machine->caches[index].cache;
	size_t size = from_cache ? machine->caches[index].size : take_scaled(bytes);
	void *object;

	if (held_full() || (from_cache && !cache))
		return;
	object = from_cache ? sy_alloc(cache, flags) : sy_malloc(machine->heap, size, flags);
	if (flags)
		must_be_zero(object, size < FILLED ? size : FILLED);
	FUZZ_CHECK(!object || from_cache || sy_usable_size(machine->heap, object) >= size);
	held_add(object, size, bits, from_cache ? &machine->caches[index] : NULL);
	machine->caches[index].objects += from_cache && object;
}

static void put(struct machine *machine, unsigned index)
{
	struct held one = held_take(index);

	if (!one.from) {
		sy_mfree(machine->heap, one.object);
		return;
	}
	for (unsigned i = 0; i < MOST_CACHES; i++)
		if (one.from == &machine->caches[i]) {
			sy_free(machine->caches[i].cache, one.object);
			machine->caches[i].objects--;
		}
}

static void bulk(struct machine *machine, struct bytes *bytes)
{
	void *objects[64];
	unsigned bits = take8(bytes);
	struct sy_cache *cache = machine->caches[bits & (MOST_CACHES - 1)].cache;

	if (cache)
		sy_free_bulk(cache, sy_alloc_bulk(cache, 0, bits >> 3, objects), objects);
}

static void run_op(struct machine *machine, struct bytes *bytes)
{
	unsigned what = take8(bytes);

	switch (what % 32) {
	case 0:
		fuzz_fine(sy_heap_check(machine->heap));
		break;
	case 1:
		make_cache(machine, bytes);
		break;
	case 2:
		end_cache(machine, take8(bytes) % MOST_CACHES);
		break;
	case 3:
		what & 32 ? sy_heap_trim(machine->heap) : sy_heap_shrink(machine->heap);
		break;
	case 4:
		sy_heap_tick(machine->heap);
		break;
	case 5:
		bulk(machine, bytes);
		break;
	default:
		if (what % 2)
			get(machine, bytes, what & 64);
		else if (held_count)
			put(machine, take8(bytes) % held_count);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	struct machine machine = { 0 };
	bool check = take8(&bytes) % 4 == 0; /* it looks at every slot, which takes its time */
	struct sy_heap_options options;
	const char *error = NULL;
	char spec[400];

	take_spec(&bytes, spec, sizeof(spec));
	take_options(&bytes, &options);
	machine.heap = sy_heap_open(spec, &options, &error);
	FUZZ_CHECK(machine.heap || (error && *error));
	for (unsigned i = 0; machine.heap && i < MOST_OPS && bytes.left; i++)
		run_op(&machine, &bytes);
	while (held_count)
		put(&machine, held_count - 1);
	if (machine.heap && check)
		fuzz_fine(sy_heap_check(machine.heap));
	sy_heap_close(machine.heap);
	return 0;
}
