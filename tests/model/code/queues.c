/*
 * Policies with queues in heaps of threads, at all interleavings. SLQB's slots send objects home in batches, and say by a word
 * without a lock that there are some. SLAB's arrays are the slots' own. Stoppers drain both.
 */
#include "world.h"

extern const struct sy_policy sy__slab, sy__slqb;

static void fill(const struct sy_policy *policy, const struct setting *settings)
{
	world_open(policy, true, settings);
	model_on_slot(1);
	for (unsigned i = 0; i < 4; i++)
		take(i);
	model_on_slot(2);
	for (unsigned i = 4; i < 6; i++)
		take(i);
}

static void on_slqb(void)
{
	static const struct setting settings[] = { { "hiwater", 1 }, { "flushbatch", 1 }, { "freebatch", 1 }, { "remote_free_check", 1 },
	                                           { NULL, 0 } };

	fill(&sy__slqb, settings);
}

static void on_slab(void)
{
	static const struct setting settings[] = { { "limit", 1 }, { "batchcount", 1 }, { "shared", 1 }, { NULL, 0 } };

	fill(&sy__slab, settings);
}

static void first(void)
{
	give(0);
	give(4);
	give(1);
	take(6);
	take(7);
}

static void second(void)
{
	give(2);
	give(5);
	give(3);
	take(8);
}

static void less(void)
{
	give(2);
	give(3);
}

static void stops(void)
{
	sy_cache_shrink(world.cache);
}

#define WORK .threads = { first, second }, .verify = world_verify
#define STOP .threads = { less, stops }, .stops = true, .verify = world_verify

int main(int argc, char **argv)
{
	static const struct model models[] = {
		{ .name = "slqb", .set_up = on_slqb, WORK },
		{ .name = "slqb, stop", .set_up = on_slqb, STOP },
		{ .name = "slab", .set_up = on_slab, WORK },
		{ .name = "slab, stop", .set_up = on_slab, STOP },
		{ .name = NULL },
	};
	static const struct mutant mutants[] = {
		/* SLQB sends objects without the lock of the slot that they are for. */
		{ "sent_unlocked", "slqb", "a race", "send", NULL, LOCKS, 0, NOT_DONE, 0 },
		{ .name = NULL },
	};

	return model_try(models, mutants, argc, argv);
}
