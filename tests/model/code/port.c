/*
 * Slots that the processors of a kernel drive, at all interleavings: quick calls, which interrupts break into, and slow ones.
 *
 * The calls are those of ports/linux/adapter.c. A quick call runs with interrupts on, on the CPU's first slot, and says
 * meanwhile that it is `within`. A slow call runs with interrupts off, on the second slot if it has interrupted a quick one.
 * One of two CPUs is interrupted, at any access to memory that it makes. The model runs every policy that has quick calls.
 *
 * It was seen to find, for each policy: a quick call that does not say that it is within, and an interrupt that takes the same
 * slot.
 */
#include "world.h"

extern const struct sy_policy sy__slab, sy__slqb, sy__slub;

/* ---- Calls of the port ---------------------------------------------------------------------------------------------- */

static bool enter(unsigned cpu)
{
	if (world.within[cpu])
		return false;
	world.within[cpu] = true;
	return true;
}

static void leave(unsigned cpu)
{
	world.within[cpu] = false;
}

static unsigned begin(unsigned cpu)
{
	model_interrupts(false);
	return cpu + (world.within[cpu] ? WORLD_CPUS : 0);
}

static void end(void)
{
	model_interrupts(true);
}

static void take_on(unsigned cpu, unsigned at)
{
	void *object = NULL;

	if (enter(cpu)) {
		object = world.cache->policy->quick->cache_alloc(world.cache, cpu);
		leave(cpu);
	}
	if (!object) {
		object = world.cache->policy->cache_alloc(world.cache, begin(cpu), 0, SY_ANY_NODE);
		end();
	}
	world.objects[at] = world_got(object);
}

static void give_on(unsigned cpu, unsigned at)
{
	void *object = world_gone(world.objects[at]);
	bool done = false;

	world.objects[at] = NULL;
	if (enter(cpu)) {
		done = world.cache->policy->quick->cache_free(world.cache, cpu, object);
		leave(cpu);
	}
	if (done)
		return;
	world.cache->policy->cache_free(world.cache, begin(cpu), object);
	end();
}

/* ---- What processors do --------------------------------------------------------------------------------------------- */

static const struct setting slub_settings[] = { { "min_order", 0 }, { "max_order", 0 }, { "min_partial", 0 }, { "cpu_partial", 1 }, { NULL, 0 } };
static const struct setting slqb_settings[] = { { "hiwater", 1 }, { "flushbatch", 1 }, { "freebatch", 1 }, { "remote_free_check", 1 }, { NULL, 0 } };
static const struct setting slab_settings[] = { { "limit", 1 }, { "batchcount", 1 }, { "shared", 0 }, { NULL, 0 } };

static void fill(const struct sy_policy *policy, const struct setting *settings)
{
	world_open(policy, false, settings);
	for (unsigned i = 0; i < 4; i++)
		take_on(0, i);
	for (unsigned i = 4; i < 6; i++)
		take_on(1, i);
	give_on(0, 3);
}

static void on_slub(void)
{
	fill(&sy__slub, slub_settings);
}

static void on_slqb(void)
{
	fill(&sy__slqb, slqb_settings);
}

static void on_slab(void)
{
	fill(&sy__slab, slab_settings);
}

/* The first CPU has one object that it may hand out at once: both CPUs and the interrupt allocate, and free into its slabs. */
static void task(void)
{
	take_on(0, 6);
	give_on(0, 0);
}

static void interrupt(void)
{
	give_on(0, 1);
	give_on(0, 5);
	take_on(0, 7);
}

static void other_cpu(void)
{
	give_on(1, 2);
	give_on(1, 4);
	take_on(1, 8);
}

static void longer_task(void)
{
	give_on(0, 0);
	give_on(0, 4);
	take_on(0, 6);
	take_on(0, 7);
	take_on(0, 9);
}

static void longer_other_cpu(void)
{
	give_on(1, 1);
	give_on(1, 2);
	give_on(1, 5);
	take_on(1, 8);
}

/* Slots empty, and everything freed: no slab is left. */
static const char *verify(void)
{
	const char *wrong = sy_heap_check(world.heap);
	struct sy_cache_counts counts;

	for (unsigned i = 0; i < WORLD_OBJECTS && !wrong; i++)
		if (world.objects[i])
			give_on(0, i);
	sy_cache_shrink(world.cache);
	sy_cache_count(world.cache, &counts);
	wrong = wrong ? wrong : sy_heap_check(world.heap);
	return wrong ? wrong : counts.slabs ? "a slab is left though nothing is in use" : NULL;
}

#define INTERRUPTED .threads = { task, interrupt, other_cpu }, .interrupts = { 0, 1 }, .verify = verify
#define TWO_CPUS .threads = { longer_task, longer_other_cpu }, .verify = verify

int main(int argc, char **argv)
{
	static const struct model models[] = {
		{ .name = "slub, interrupted", .set_up = on_slub, INTERRUPTED },
		{ .name = "slub, two CPUs", .set_up = on_slub, TWO_CPUS },
		{ .name = "slqb, interrupted", .set_up = on_slqb, INTERRUPTED },
		{ .name = "slqb, two CPUs", .set_up = on_slqb, TWO_CPUS },
		{ .name = "slab, interrupted", .set_up = on_slab, INTERRUPTED },
		{ .name = "slab, two CPUs", .set_up = on_slab, TWO_CPUS },
		{ .name = NULL },
	};
	static const struct mutant mutants[] = {
		/* A quick push is tried again with the old link, or is a store. A full slab is given up by a store. */
		{ "quick_stale", "slub, two CPUs", "", "push_remote", "sy__link_set", STORES, 0, STALE, 0 },
		{ "quick_by_store", "slub, two CPUs", "", "push_remote", NULL, SWAPS, 0, BY_STORE, 0 },
		{ "rest_by_store", "slub, two CPUs", "", "take_rest", NULL, SWAPS, 0, BY_STORE, 0 },
		{ .name = NULL },
	};

	return model_try(models, mutants, argc, argv);
}
