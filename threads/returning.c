/*
 * How much memory comes back when a program has become small.
 *
 * Every thread takes many small objects and frees all but one in SURVIVORS of them. Then it goes on for a second, taking and
 * freeing a few now and then: just enough for an allocator that has no thread of its own to do its periodic work. Resident
 * memory is noted at the peak, when the last object was freed, a second later, and after a trim. The run's resident_per_live is
 * that of a second later.
 *
 *   together    the survivors were taken one after the other: nearly everything can go back.
 *   scattered   the survivors are drawn at random: each pins its page, or more. The result depends on how small the pieces are
 *               that an allocator gives back.
 *   collapse    as together, but freed in random order, so the last free objects in an allocator's queues each keep a slab. The
 *               program then goes on without a pause with pairs of one size, which never reach an allocator's slow path.
 */
#include "work.h"

#define SURVIVORS 100u
#define SECOND 1000000000u
#define FEW 64u
#define PAUSE 1000000 /* nanoseconds */
#define PAIR 64 /* bytes */

struct crowd {
	struct held *held;
	size_t count;
};

static bool crowd_prepare(struct run *run, struct fault *fault)
{
	if (run->operations > SIZE_MAX / sizeof(struct held) || run->operations > UINT32_MAX)
		return refuse(fault, "--operations is too much here: all these objects live at once");
	for (unsigned i = 0; i < run->threads; i++) {
		struct crowd *crowd = table(run, sizeof *crowd);

		crowd->count = (size_t)run->operations;
		crowd->held = table(run, crowd->count * sizeof *crowd->held);
		run->workers[i].own = crowd;
	}
	run->judged = 2;
	return true;
}

static void give_held(struct worker *worker, struct held *held)
{
	give(worker, NULL, held->object, held->size);
	held->object = NULL;
}

static void gather(struct worker *worker, struct crowd *crowd)
{
	for (size_t i = 0; i < crowd->count; i++) {
		crowd->held[i].size = draw_size(worker);
		crowd->held[i].object = take(worker, NULL, crowd->held[i].size);
	}
	note_phase(worker);
}

static void use_pairs(struct worker *worker)
{
	for (unsigned i = 0; i < FEW; i++)
		give(worker, NULL, take(worker, NULL, PAIR), PAIR);
}

static void use_few(struct worker *worker)
{
	struct held few[FEW];

	for (unsigned i = 0; i < FEW; i++) {
		few[i].size = draw_size(worker);
		few[i].object = take(worker, NULL, few[i].size);
	}
	for (unsigned i = 0; i < FEW; i++)
		give_held(worker, &few[i]);
	nanosleep(&(struct timespec){ .tv_nsec = PAUSE }, NULL);
}

static void go_on(struct worker *worker, void (*use)(struct worker *))
{
	uint64_t start = monotonic_ns();

	note_phase(worker);
	while (monotonic_ns() - start < SECOND)
		use(worker);
	note_phase(worker);
}

static void together_work(struct worker *worker)
{
	struct crowd *crowd = worker->own;
	size_t first = crowd->count / 2, last = first + crowd->count / SURVIVORS;

	gather(worker, crowd);
	for (size_t i = 0; i < crowd->count; i++)
		if (i < first || i > last)
			give_held(worker, &crowd->held[i]);
	go_on(worker, use_few);
}

static void swap_held(struct held *one, struct held *other)
{
	struct held held = *one;

	*one = *other;
	*other = held;
}

static void collapse_work(struct worker *worker)
{
	struct crowd *crowd = worker->own;
	size_t survivors = crowd->count / SURVIVORS;

	gather(worker, crowd);
	for (size_t i = 0; i < survivors; i++)
		swap_held(&crowd->held[i], &crowd->held[crowd->count / 2 + i]);
	for (size_t left = crowd->count - survivors; left; left--) {
		struct held *last = &crowd->held[survivors + left - 1];

		swap_held(last, &crowd->held[survivors + draw_below(worker, (uint32_t)left)]);
		give_held(worker, last);
	}
	go_on(worker, use_pairs);
}

static void scattered_work(struct worker *worker)
{
	struct crowd *crowd = worker->own;

	gather(worker, crowd);
	for (size_t i = 0; i < crowd->count; i++)
		if (i && draw_below(worker, SURVIVORS))
			give_held(worker, &crowd->held[i]);
	go_on(worker, use_few);
}

static void crowd_leave(struct worker *worker)
{
	struct crowd *crowd = worker->own;

	if (!worker->index)
		target_trim(worker->target);
	note_phase(worker);
	for (size_t i = 0; i < crowd->count; i++)
		if (crowd->held[i].object)
			give_held(worker, &crowd->held[i]);
}

const struct workload workload_together = {
	.name = "together", .what = "a peak is freed but for objects that were taken together",
	.operations = 1000000, .size_min = 16, .size_max = 256, .threads_per = 1,
	.prepare = crowd_prepare, .work = together_work, .leave = crowd_leave,
};

const struct workload workload_scattered = {
	.name = "scattered", .what = "a peak is freed but for objects at random",
	.operations = 1000000, .size_min = 16, .size_max = 256, .threads_per = 1,
	.prepare = crowd_prepare, .work = scattered_work, .leave = crowd_leave,
};

const struct workload workload_collapse = {
	.name = "collapse", .what = "a peak is freed in random order but for objects that were taken together; then pairs alone",
	.operations = 1000000, .size_min = 16, .size_max = 256, .threads_per = 1,
	.prepare = crowd_prepare, .work = collapse_work, .leave = crowd_leave,
};
