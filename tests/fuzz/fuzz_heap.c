/* Heaps of threads, as a program opens them: limits, buffers, checks of debugging, caches, bulk, trims. One thread. */
#include "fuzz.h"
#include "objects.h"
#include "core/types.h"
#include "spec_support.h"

#define MOST_CACHES 8u
#define MOST_OPS 1500
#define MIB ((size_t)1 << 20)

struct cache {
	struct sy_cache *cache; /* NULL: there is none */
	size_t size;
	unsigned objects;
};

struct machine {
	struct sy_heap *heap;
	struct cache caches[MOST_CACHES];
};

static unsigned char buffer[16 << 20] __attribute__((aligned(4096)));

static void take_spec(struct bytes *bytes, char *spec, size_t room)
{
	static const char *const checks[] = { "", "F", "Z", "P", "U", "FZPU", "C", "G" };
	unsigned bits = take8(bytes);
	const struct sy_policy *policy = policy_of(bits);

	snprintf(spec, room, "%s", policy->name);
	for (unsigned more = bits >> 5; more && policy->tunable_count; more--) {
		const struct sy_tunable *tunable = &policy->tunables[take8(bytes) % policy->tunable_count];
		unsigned value = take16(bytes);

		if (strncmp(tunable->name, "log_", 4))
			spec_tune(spec, room, tunable, tunable->choices ? value % sy_tunable_choices(tunable) : value);
	}
	bits = take8(bytes);
	if (bits % 16 < 8 && bits % 8)
		spec_add(spec, room, "debug", checks[bits % 8]);
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
	struct cache *cache = &machine->caches[take8(bytes) % MOST_CACHES];
	struct sy_cache_config config = { .name = "fuzz", .size = take_scaled(bytes) % 100000 };
	unsigned align = take8(bytes);

	config.flags = take8(bytes) & 0x7f & ~(unsigned)SY_CACHE_TYPESAFE_BY_RCU;
	config.align = align & 16 ? (size_t)1 << align % 16 : 0;
	if (cache->cache)
		return;
	cache->cache = sy_cache_create(machine->heap, &config);
	cache->size = config.size;
}

static void end_cache(struct cache *cache)
{
	struct sy_cache_description described;
	uint64_t alive = 0;

	if (!cache->cache)
		return;
	sy_cache_describe(cache->cache, &described);
	if (described.users > 1 && cache->objects) /* a client's mistake that nobody notices */
		return;
	if (sy_cache_destroy(cache->cache, &alive)) {
		FUZZ_CHECK(!cache->objects);
		cache->cache = NULL;
	} else {
		FUZZ_CHECK(alive == cache->objects);
	}
}

static void get(struct machine *machine, struct bytes *bytes, bool from_cache)
{
	unsigned bits = take8(bytes), flags = bits & 1 ? SY_ZERO : 0;
	struct cache *cache = from_cache ? &machine->caches[bits >> 4 & (MOST_CACHES - 1)] : NULL;
	size_t size = cache ? cache->size : take_scaled(bytes);
	void *object;

	if (held_full() || (cache && !cache->cache))
		return;
	object = cache ? sy_alloc(cache->cache, flags) : sy_malloc(machine->heap, size, flags);
	if (flags)
		must_be_zero(object, size < FILLED ? size : FILLED);
	FUZZ_CHECK(!object || cache || sy_usable_size(machine->heap, object) >= size);
	held_add(object, size, bits, cache);
	if (cache && object)
		cache->objects++;
}

static void put(struct machine *machine, unsigned index)
{
	struct held one = held_take(index);
	struct cache *cache = one.from;

	if (cache) {
		sy_free(cache->cache, one.object);
		cache->objects--;
	} else {
		sy_mfree(machine->heap, one.object);
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
		end_cache(&machine->caches[take8(bytes) % MOST_CACHES]);
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
