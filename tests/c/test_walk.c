/*
 * Walks over heaps, for every policy: they show what the heap counts and what the test's own model knows.
 *
 * The model is the list of objects that the test holds. After some thousand random steps, and at several points on the way,
 * a walk must cover every slab without a gap, show each held object as used and in its place, show no more as used than the
 * policy counts, and have each place of each list exactly once. Small exact cases, policy by policy, are in
 * tests/python/test_layout.py, where a script sets them up.
 */
#include "core/list.h"
#include "policy_support.h"

#define OBJECTS 3000
#define CACHES 5
#define SLOTS 4
#define NODES 2

struct held {
	char *memory;
	size_t bytes;
	struct sy_cache *cache; /* NULL: kmalloc */
};

struct places {
	uint64_t count, sum; /* of a list: 0 + 1 + … if each place is there once */
};

struct seen {
	struct world *world;
	const struct held *held;
	unsigned held_count;
	bool *found; /* by held object */
	uint64_t slab_pages, large_pages, used_objects;
	const char *last; /* where the last slab ended */
	size_t told;      /* bytes of this slab whose parts came */
	size_t slab_bytes;
	struct sy_cache *cache; /* whose objects are counted; NULL: of all */
	uint64_t used, kept;    /* of that cache: in use; free at slots and nodes */
	uint64_t slot_slab_free; /* free in slabs that a slot owns */
	struct places places[8][SLOTS + NODES]; /* of that cache's lists by a hash of their names */
	struct places local; /* of the slab's own list at its owner (yard) */
};

static const size_t sizes[CACHES] = { 24, 100, 400, 1500, 6000 };

static void check_places(const struct places *places)
{
	CHECK_EQUAL(places->sum, places->count ? places->count * (places->count - 1) / 2 : 0);
}

/* All of a slab has been seen. */
static void end_slab(struct seen *seen)
{
	CHECK_EQUAL(seen->told, seen->slab_bytes);
	check_places(&seen->local);
	seen->local = (struct places){ 0, 0 };
}

static bool see_slab(void *context, const struct sy_slab *slab)
{
	struct seen *seen = context;

	end_slab(seen);
	CHECK(slab->address >= seen->last);
	CHECK(slab->list && slab->bytes >= SY_PAGE_SIZE);
	CHECK_EQUAL(slab->node, slab->page->node);
	CHECK_EQUAL(slab->large, slab->page->use == SY_USE_LARGE);
	CHECK(slab->owner_kind == SY_OWNER_NONE || slab->owner < (slab->owner_kind == SY_OWNER_SLOT ? SLOTS : NODES));
	seen->last = slab->address + slab->bytes;
	seen->told = 0;
	seen->slab_bytes = slab->bytes;
	*(slab->large ? &seen->large_pages : &seen->slab_pages) += slab->bytes / SY_PAGE_SIZE;
	return true;
}

/* Marks the held objects of a part in use; how many they are. */
static unsigned find_held(struct seen *seen, const char *start, size_t bytes, bool whole)
{
	unsigned count = 0;

	for (unsigned i = 0; i < seen->held_count; i++) {
		const struct held *held = &seen->held[i];

		if (held->memory < start || held->memory >= start + bytes)
			continue;
		CHECK(held->memory + held->bytes <= start + bytes && !seen->found[i]);
		CHECK(!whole || held->memory == start);
		seen->found[i] = true;
		count++;
	}
	return count;
}

static struct places *places_of(struct seen *seen, const struct sy_part *part)
{
	if (!strcmp(part->list, "local"))
		return &seen->local;
	return &seen->places[part->list[0] % 8][part->owner + (part->state == SY_PART_NODE ? SLOTS : 0)];
}

static void count_of_cache(struct seen *seen, const struct sy_slab *slab, const struct sy_part *part)
{
	bool kept = part->state == SY_PART_SLOT || part->state == SY_PART_NODE;

	seen->used += part->state == SY_PART_USED || part->state == SY_PART_BOOKKEEPING;
	seen->kept += kept;
	seen->slot_slab_free += part->state == SY_PART_FREE && slab->owner_kind == SY_OWNER_SLOT;
	if (kept && strcmp(part->list, "alien array") && strcmp(part->list, "remote_free")) {
		struct places *places = places_of(seen, part);

		places->count++;
		places->sum += part->place;
	}
}

static bool see_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct seen *seen = context;
	unsigned held = part->state == SY_PART_USED
	                        ? find_held(seen, slab->address + part->offset, part->bytes, part->is_object) : 0;

	CHECK_EQUAL(part->offset, seen->told);
	CHECK(part->bytes && part->offset + part->bytes <= slab->bytes);
	CHECK(held <= 1 || !part->is_object);
	CHECK((part->list != NULL) == (part->state == SY_PART_FREE || part->state == SY_PART_SLOT || part->state == SY_PART_NODE));
	CHECK_EQUAL(part->lists, part->list ? 1 : 0);
	seen->told += part->bytes;
	seen->used_objects += part->state == SY_PART_USED && part->is_object;
	if (slab->cache == seen->cache && part->is_object && !slab->large)
		count_of_cache(seen, slab, part);
	return true;
}

static struct seen walk(struct world *world, const struct held *held, unsigned count, struct sy_cache *cache)
{
	static bool found[OBJECTS];
	struct seen seen = { .world = world, .held = held, .held_count = count, .found = found, .cache = cache };
	const struct sy_visitor visitor = { see_slab, see_part, &seen, NULL };

	memset(found, 0, sizeof(found));
	CHECK(sy_heap_walk(world->heap, &visitor));
	end_slab(&seen);
	return seen;
}

/* What a walk shows of one cache, beside what its policy counts. */
static void check_cache(struct world *world, struct sy_cache *cache, const struct held *held, unsigned count)
{
	struct seen seen = walk(world, held, count, cache);
	struct sy_cache_counts counts = counts_of(cache);

	CHECK_EQUAL(seen.used, counts.objects_in_use);
	/* SLUB counts all that is free in a slot's slabs as cached. */
	if (counts.objects_cached != seen.kept)
		CHECK_EQUAL(counts.objects_cached, seen.kept + seen.slot_slab_free);
	for (unsigned list = 0; list < 8; list++)
		for (unsigned owner = 0; owner < SLOTS + NODES; owner++)
			check_places(&seen.places[list][owner]);
}

/* Whether each object that a walk shows as used is one that the test holds. slob's objects are not told apart, and some of
 * slab's freelists are objects of its size classes. */
static bool shows_what_is_held(const struct world *world)
{
	const char *policy = world->heap->policy->name;

	return strcmp(policy, "slob") != 0 && strcmp(policy, "slab") != 0;
}

static void check_walk(struct world *world, const struct held *held, unsigned count)
{
	struct seen seen = walk(world, held, count, NULL);

	check(world);
	CHECK_EQUAL(seen.slab_pages, world->heap->counters.slab_pages);
	CHECK_EQUAL(seen.large_pages, world->heap->counters.large_pages);
	for (unsigned i = 0; i < count; i++)
		CHECK(seen.found[i]);
	for (struct sy_list *at = world->heap->caches.next; at != &world->heap->caches; at = at->next) {
		struct sy_cache *cache = sy__entry(at, struct sy_cache, link);

		if (counts_of(cache).slabs)
			check_cache(world, cache, held, count);
	}
	if (shows_what_is_held(world))
		CHECK_EQUAL(seen.used_objects, count);
}

static void free_held(struct world *world, struct held *held, unsigned slot)
{
	if (held->cache)
		sy_cache_free(held->cache, slot, held->memory);
	else
		sy_kfree(world->heap, slot, held->memory);
}

static struct held allocate(struct world *world, struct sy_cache *const *caches, uint64_t random, unsigned slot)
{
	int node = random >> 40 & 3 ? SY_ANY_NODE : (int)(random >> 42 & 1);
	struct held held = { .cache = random & 3 ? caches[(random >> 8) % CACHES] : NULL };

	held.bytes = held.cache ? held.cache->object_size : (size_t)((random >> 8) % (random & 32 ? 20000 : 300)) + 1;
	held.memory = held.cache ? sy_cache_alloc(held.cache, slot, 0, node) : sy_kmalloc(world->heap, slot, held.bytes, 0, node);
	return held;
}

static void run(struct world *world, struct sy_cache *const *caches)
{
	static struct held held[OBJECTS];
	uint64_t random = 88172645463325252u;
	unsigned count = 0;

	for (unsigned step = 0; step < 6000; step++) {
		uint64_t draw = check_random(&random);
		unsigned slot = (unsigned)(draw >> 50) % SLOTS;

		if (count && (draw >> 32) % 100 < (step / 1500 % 2 ? 60u : 35u)) {
			unsigned at = (unsigned)(draw >> 8) % count;

			free_held(world, &held[at], slot);
			held[at] = held[--count];
		} else if (count < OBJECTS) {
			held[count] = allocate(world, caches, draw, slot);
			count += held[count].memory != NULL;
		}
		if (step % 1499 == 1498)
			check_walk(world, held, count);
	}
	while (count) {
		count--;
		free_held(world, &held[count], count % SLOTS);
		if (count % 700 == 0)
			check_walk(world, held, count);
	}
}

static void test_walks_agree_with_counts(const struct sy_policy *policy, const char *tunable, int64_t value)
{
	struct world world = make_tuned(policy->name, SLOTS, NODES, tunable, value);
	struct sy_cache *caches[CACHES];

	for (unsigned i = 0; i < CACHES; i++)
		caches[i] = cache_of(&world, sizes[i], 0, 0);
	run(&world, caches);
	end(&world);
}

/* ---- Slabs that wait, corruption, and visitors that have had enough -------------------------------------------- */

struct states {
	uint64_t bytes[SY_PART_STATES];
	unsigned on_two_lists, calls, most;
};

static bool see_any_slab(void *context, const struct sy_slab *slab)
{
	(void)context;
	return slab->bytes > 0;
}

static bool see_state(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct states *states = context;

	(void)slab;
	states->bytes[part->state] += part->bytes;
	states->on_two_lists += part->lists > 1;
	return ++states->calls != states->most;
}

static struct states states_of(struct world *world, unsigned most, bool whole)
{
	struct states states = { .most = most };
	const struct sy_visitor visitor = { see_any_slab, see_state, &states, NULL };

	CHECK_EQUAL(sy_heap_walk(world->heap, &visitor), whole);
	return states;
}

/* A slab in its grace period is shown as that, by policies that free slabs of such caches whole. */
static void test_waiting_slabs(const struct sy_policy *policy)
{
	struct world world = make_tuned(policy->name, 1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 200, 0, SY_CACHE_TYPESAFE_BY_RCU);
	void *objects[200];
	struct states states;

	take_all(cache, 0, objects, 200);
	free_all(cache, 0, objects, 200);
	sy_heap_shrink(world.heap);
	states = states_of(&world, 0, true);
	if (world.heap->counters.deferred && world.heap->counters.deferred < 200)
		CHECK(states.bytes[SY_PART_WAITING] >= world.heap->counters.deferred * SY_PAGE_SIZE);
	else
		CHECK_EQUAL(states.bytes[SY_PART_WAITING], 0);
	now += SECOND;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(states_of(&world, 0, true).bytes[SY_PART_WAITING], 0);
	end(&world);
}

static void test_a_visitor_may_end_the_walk(const struct sy_policy *policy)
{
	struct world world = make_tuned(policy->name, 1, 1, NULL, 0);
	void *a = there(sy_kmalloc(world.heap, 0, 100, 0, SY_ANY_NODE), "object");
	void *b = there(sy_kmalloc(world.heap, 0, 3000, 0, SY_ANY_NODE), "object");

	CHECK_EQUAL(states_of(&world, 2, false).calls, 2);
	CHECK_EQUAL(states_of(&world, 1, false).calls, 1);
	sy_kfree(world.heap, 0, a);
	sy_kfree(world.heap, 0, b);
	end(&world);
}

struct cached {
	const struct sy_cache *caches[3];
	unsigned count, most, slabs;
};

static bool see_cache(void *context, const struct sy_cache *cache)
{
	struct cached *cached = context;

	CHECK_EQUAL(cached->slabs, 0);
	for (unsigned i = 0; i < 3; i++)
		if (cached->caches[i] == cache)
			CHECK_EQUAL(i, cached->count++);
	return cached->count < cached->most;
}

static bool see_no_slab(void *context, const struct sy_slab *slab)
{
	(void)slab;
	((struct cached *)context)->slabs++;
	return false;
}

/* Those without slabs too, in order of creation, and before all slabs. */
static void test_caches_are_shown(const struct sy_policy *policy)
{
	struct world world = make_tuned(policy->name, 1, 1, NULL, 0);
	struct cached cached = { .most = 4 };
	const struct sy_visitor visitor = { .slab = see_no_slab, .context = &cached, .cache = see_cache };
	void *object;

	for (unsigned i = 0; i < 3; i++) {
		struct sy_cache_config config = { .name = "one", .size = 100 + 50 * i, .flags = SY_CACHE_NO_MERGE };

		cached.caches[i] = there(sy_cache_create(world.heap, &config), "cache");
	}
	object = there(sy_kmalloc(world.heap, 0, 3000, 0, SY_ANY_NODE), "object");
	CHECK(!sy_heap_walk(world.heap, &visitor));
	CHECK_EQUAL(cached.count, 3);
	CHECK_EQUAL(cached.slabs, 1);
	cached.count = cached.slabs = 0;
	cached.most = 2;
	CHECK(!sy_heap_walk(world.heap, &visitor));
	CHECK_EQUAL(cached.count, 2);
	CHECK_EQUAL(cached.slabs, 0);
	sy_kfree(world.heap, 0, object);
	end(&world);
}

/* An object that is freed twice is on a list twice. A walk says so, as the list itself does not show it. */
static void test_a_double_free_shows(void)
{
	struct world world = make_tuned("slab", 2, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 64, 0, 0);
	void *object = take(cache, 0);
	struct states states;

	sy_cache_free(cache, 0, object);
	CHECK_EQUAL(states_of(&world, 0, true).on_two_lists, 0);
	sy_cache_free(cache, 1, object);
	states = states_of(&world, 0, true);
	CHECK_EQUAL(states.on_two_lists, 1);
	CHECK(take(cache, 1) == object);
	end(&world);
}

/* ---- Pages of a supplier ---------------------------------------------------------------------------------------- */

static _Alignas(1 << 16) char supply[16 * 4096];
static unsigned supplied;

static void *get_pages(void *context, size_t bytes, unsigned flags)
{
	(void)context;
	(void)flags;
	return supplied + bytes / 4096 <= 16 ? supply + 4096 * (size_t)((supplied += (unsigned)(bytes / 4096)) - bytes / 4096) : NULL;
}

static void free_pages(void *context, void *memory, size_t bytes)
{
	(void)context;
	(void)memory;
	(void)bytes;
}

static void test_slabs_of_a_supplier(void)
{
	static const struct sy_page_supplier supplier = { get_pages, free_pages, NULL };
	struct sy_cache_config config = { .name = "supplied", .size = 400, .supplier = &supplier };
	struct world world = make_tuned("bonwick", 1, 1, NULL, 0);
	struct sy_cache *cache = there(sy_cache_create(world.heap, &config), "cache");
	void *objects[12];
	struct states states;

	take_all(cache, 0, objects, 12);
	states = states_of(&world, 0, true);
	CHECK_EQUAL(states.bytes[SY_PART_USED], 12 * 400);
	CHECK_EQUAL(states.bytes[SY_PART_FREE], 8 * 400);
	CHECK_EQUAL(states.bytes[SY_PART_BOOKKEEPING], 2 * 32);
	free_all(cache, 0, objects, 12);
	end(&world);
}

int main(void)
{
	for (const struct sy_policy *const *at = sy_policies; *at; at++) {
		test_walks_agree_with_counts(*at, NULL, 0);
		test_waiting_slabs(*at);
		test_a_visitor_may_end_the_walk(*at);
		test_caches_are_shown(*at);
	}
	test_walks_agree_with_counts(sy_policy_find("bonwick"), "percpu", 7);
	test_walks_agree_with_counts(sy_policy_find("bonwick"), "magazine", 1);
	test_walks_agree_with_counts(sy_policy_find("slqb"), "freebatch", 3);
	test_walks_agree_with_counts(sy_policy_find("slab"), "alien", 0);
	test_a_double_free_shows();
	test_slabs_of_a_supplier();
	return check_result();
}
