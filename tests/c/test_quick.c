/*
 * Quick calls (struct sy_quick), for every policy that has them. A program makes the quick call first, and calls the hot
 * function where that did nothing. Both together must do what the hot function alone does.
 *
 * Two worlds get the same random work: one by hot functions, one by quick calls where they serve. After each step both must
 * have the same object, on the same page at the same place. A quick call that does nothing must not have begun either, or the
 * hot function after it would end elsewhere. The test also checks that most calls are quick ones, as it would prove nothing
 * else. A heap whose CPUs have two slots each is laid out as one with one slot each.
 */
#include "policy_support.h"

#define OBJECTS 2000
#define STEPS 60000
#define SLOTS 4

struct held {
	void *objects[2]; /* in each world */
	int cache;        /* -1: kmalloc */
	unsigned fill;
};

struct work {
	struct world worlds[2];
	struct sy_cache *caches[2][3];
	struct held held[OBJECTS];
	unsigned count, quick, asked;
};

static uint64_t state;

static uint32_t below(uint32_t bound)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % bound);
}

/* Where an object lies, the same in both worlds. */
static uint64_t place_of(const struct world *world, const void *object)
{
	return sy_page_number(world->pages, sy__page_of(world->heap, object)) * SY_PAGE_SIZE + offset(object);
}

static void *quick_alloc(struct work *work, int cache, unsigned slot, size_t size, unsigned flags)
{
	const struct sy_quick *quick = work->worlds[1].heap->policy->quick;
	void *object = cache < 0 ? quick->kmalloc(work->worlds[1].heap, slot, size, flags) : quick->cache_alloc(work->caches[1][cache], slot);

	work->asked++;
	work->quick += object != NULL;
	return object;
}

static void *hot_alloc(struct work *work, unsigned which, int cache, unsigned slot, size_t size, unsigned flags)
{
	return cache < 0 ? sy_kmalloc(work->worlds[which].heap, slot, size, flags, SY_ANY_NODE)
	                 : sy_cache_alloc(work->caches[which][cache], slot, flags, SY_ANY_NODE);
}

static bool quick_free(struct work *work, const struct held *held, unsigned slot)
{
	struct sy_heap *heap = work->worlds[1].heap;
	const struct sy_quick *quick = heap->policy->quick;
	void *object = held->objects[1];
	bool done = held->cache < 0 ? quick->kfree(heap, slot, sy__head_of(heap, object), object)
	                            : quick->cache_free(work->caches[1][held->cache], slot, object);

	work->asked++;
	work->quick += done;
	return done;
}

static void hot_free(struct work *work, unsigned which, const struct held *held, unsigned slot)
{
	if (held->cache < 0)
		sy_kfree(work->worlds[which].heap, slot, held->objects[which]);
	else
		sy_cache_free(work->caches[which][held->cache], slot, held->objects[which]);
}

static bool zero(const char *memory, size_t bytes)
{
	size_t same = 0;

	while (same < bytes && !memory[same])
		same++;
	return same == bytes;
}

static void step_alloc(struct work *work, unsigned slot)
{
	struct held *held = &work->held[work->count++];
	size_t size = 1 + below(below(8) ? 700 : 20000);
	unsigned flags = (below(4) ? 0 : SY_ZERO) | (below(64) ? 0 : SY_RECLAIMABLE);

	held->cache = (int)below(5) - 2;
	held->objects[0] = there(hot_alloc(work, 0, held->cache, slot, size, held->cache < 0 ? flags : 0), "memory");
	held->objects[1] = quick_alloc(work, held->cache, slot, size, flags);
	CHECK(!held->objects[1] || held->cache >= 0 || !(flags & SY_RECLAIMABLE));
	if (!held->objects[1])
		held->objects[1] = there(hot_alloc(work, 1, held->cache, slot, size, held->cache < 0 ? flags : 0), "memory");
	CHECK_EQUAL(place_of(&work->worlds[1], held->objects[1]), place_of(&work->worlds[0], held->objects[0]));
	if (held->cache < 0 && flags & SY_ZERO)
		CHECK(zero(held->objects[1], size));
	memset(held->objects[1], 0x5a, 8);
}

static void step_free(struct work *work, unsigned slot)
{
	unsigned which = below(work->count);
	struct held held = work->held[which];

	work->held[which] = work->held[--work->count];
	hot_free(work, 0, &held, slot);
	if (!quick_free(work, &held, slot))
		hot_free(work, 1, &held, slot);
}

static void make_world(struct work *work, unsigned which, const struct sy_policy *policy, unsigned nodes)
{
	static const size_t sizes[] = { 40, 512, 3000 };
	struct sy_heap_config config = config_of(policy->name, SLOTS, nodes);

	work->worlds[which] = make_large(&config);
	for (unsigned i = 0; i < 3; i++)
		work->caches[which][i] = cache_of(&work->worlds[which], sizes[i], 0, i == 1 ? SY_CACHE_TYPESAFE_BY_RCU : 0);
}

static void test_quick_is_hot(const struct sy_policy *policy, unsigned nodes)
{
	static struct work work;

	work.count = work.quick = work.asked = 0;
	make_world(&work, 0, policy, nodes);
	make_world(&work, 1, policy, nodes);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned phase = step / 4000 % 2 ? 3 : 6, slot = below(8) ? 0 : below(SLOTS);

		if (work.count && (work.count == OBJECTS || below(9) >= phase))
			step_free(&work, slot);
		else
			step_alloc(&work, slot);
		if (step % 5000 == 0)
			check(&work.worlds[1]);
	}
	CHECK(work.quick * 2 > work.asked);
	CHECK_EQUAL(work.worlds[1].heap->counters.slab_pages, work.worlds[0].heap->counters.slab_pages);
	while (work.count)
		step_free(&work, 0);
	end(&work.worlds[0]);
	end(&work.worlds[1]);
}

/* On slots that were never used. */
static void test_nothing_at_hand(const struct sy_policy *policy)
{
	struct world world = make_tuned(policy->name, 2, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 64, 0, 0);
	const struct sy_quick *quick = policy->quick;
	void *object;

	CHECK(!quick->cache_alloc(cache, 0));
	CHECK(!quick->kmalloc(world.heap, 0, 64, 0));
	object = take(cache, 0);
	CHECK(!quick->cache_alloc(cache, 1));
	check(&world);
	sy_cache_free(cache, 0, object);
	object = there(sy_kmalloc(world.heap, 0, 100000, 0, SY_ANY_NODE), "memory");
	CHECK(!quick->kmalloc(world.heap, 0, 100000, 0));
	CHECK(!quick->kfree(world.heap, 0, sy__head_of(world.heap, object), object));
	sy_kfree(world.heap, 0, object);
	end(&world);
}

/* Figures that depend on the number of CPUs do not depend on the number of slots. */
static void test_two_slots_of_a_cpu(const struct sy_policy *policy)
{
	static const uint8_t nodes[] = { 0, 1, 0, 1 };
	struct sy_heap_config one = config_of(policy->name, 2, 2), two = config_of(policy->name, 4, 2);
	struct sy_cache_counts counts[2];
	struct world worlds[2];

	one.slot_nodes = two.slot_nodes = nodes;
	two.cpus = 2;
	worlds[0] = make_large(&one);
	worlds[1] = make_large(&two);
	for (unsigned i = 0; i < 2; i++) {
		struct sy_cache *cache = cache_of(&worlds[i], 200, 0, 0);
		void *objects[300];

		take_all(cache, 0, objects, 300);
		free_all(cache, 0, objects, 300);
		counts[i] = counts_of(cache);
		CHECK_EQUAL(worlds[i].heap->cpus, 2);
		end(&worlds[i]);
	}
	CHECK_EQUAL(counts[1].slab_pages, counts[0].slab_pages);
	CHECK_EQUAL(counts[1].pages, counts[0].pages);
	CHECK_EQUAL(counts[1].shared, counts[0].shared);
}

int main(void)
{
	unsigned policies = 0;

	for (const struct sy_policy *const *at = sy_policies; *at; at++) {
		if (!(*at)->quick)
			continue;
		policies++;
		test_quick_is_hot(*at, 1);
		test_quick_is_hot(*at, 2);
		test_nothing_at_hand(*at);
		test_two_slots_of_a_cpu(*at);
	}
	CHECK_EQUAL(policies, 4);
	return check_result();
}
