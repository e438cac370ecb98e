/*
 * Fragmentation ageing: the sizes that a program asks for drift while it runs, as its data and its users change. Memory freed
 * from yesterday's sizes should serve today's.
 *
 * Every thread keeps about LIVE_BYTES alive. It takes objects whose sizes spread around a centre by some powers of two, and frees
 * random ones. So lifetimes are exponential, and a few objects of old phases stay among the new ones and pin memory. The centre
 * goes from 2^LOWEST up to 2^HIGHEST bytes and back over PHASES phases. In each phase several times the live memory is replaced.
 * At the end of each phase all threads meet, and resident and live memory are noted. The result is their ratio over the phases.
 */
#include <math.h>

#include "work.h"

#define LIVE_BYTES ((int64_t)24 << 20)
#define PHASES 16u
#define LOWEST 5.0
#define HIGHEST 11.0
#define SIZES 4096u
#define MOST_HELD ((size_t)1 << 20) /* of at least 24 bytes each, on average */

struct ageing {
	struct held *held;
	size_t count;
	uint32_t sizes[SIZES]; /* of the present phase, to draw from */
};
_Static_assert(PHASES <= MOST_PHASES, "every phase is noted");

static bool ageing_prepare(struct run *run, struct fault *fault)
{
	(void)fault;
	for (unsigned i = 0; i < run->threads; i++) {
		struct ageing *ageing = table(run, sizeof *ageing);

		ageing->held = table(run, MOST_HELD * sizeof *ageing->held);
		run->workers[i].own = ageing;
	}
	return true;
}

static double even(struct worker *worker)
{
	return (double)draw(worker) / 4294967296.0;
}

/* Exponents are a sum of four even numbers, which is nearly normal. */
static void draw_sizes(struct worker *worker, struct ageing *ageing, unsigned phase)
{
	double way = (double)phase / (PHASES - 1) * 2;
	double centre = LOWEST + (HIGHEST - LOWEST) * (way < 1 ? way : 2 - way);

	for (unsigned i = 0; i < SIZES; i++) {
		double spread = (even(worker) + even(worker) + even(worker) + even(worker) - 2) * 2;

		ageing->sizes[i] = (uint32_t)(exp2(centre + spread) + 8);
	}
}

static void take_one(struct worker *worker, struct ageing *ageing)
{
	struct held *held = &ageing->held[ageing->count++];

	held->size = ageing->sizes[draw_below(worker, SIZES)];
	held->object = take(worker, NULL, held->size);
}

static void give_one(struct worker *worker, struct ageing *ageing)
{
	struct held *held = &ageing->held[draw_below(worker, (uint32_t)ageing->count)];

	give(worker, NULL, held->object, held->size);
	*held = ageing->held[--ageing->count];
}

static void ageing_work(struct worker *worker)
{
	struct ageing *ageing = worker->own;
	uint64_t each = worker->run->operations / PHASES + 1;

	for (unsigned phase = 0; phase < PHASES; phase++) {
		draw_sizes(worker, ageing, phase);
		for (uint64_t i = 0; i < each; i++) {
			while (worker->live_bytes > LIVE_BYTES || ageing->count == MOST_HELD)
				give_one(worker, ageing);
			take_one(worker, ageing);
		}
		note_phase(worker);
	}
}

static void ageing_leave(struct worker *worker)
{
	struct ageing *ageing = worker->own;

	while (ageing->count)
		give_one(worker, ageing);
}

const struct workload workload_ageing = {
	.name = "ageing", .what = "the mix of sizes drifts while as much stays alive",
	.operations = 4000000, .threads_per = 1, .prepare = ageing_prepare, .work = ageing_work, .leave = ageing_leave,
};
