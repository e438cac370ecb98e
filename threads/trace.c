/*
 * A recorded trace, replayed in parallel: each recorded CPU is a thread that serves that CPU's events in their order.
 *
 * Between threads only one order holds: the free of an object waits for its allocation. All else is left to chance, as a kernel
 * leaves it. No wait is for ever: it is for something earlier in the trace, and the earliest of these waits for nothing.
 *
 * Every object of the trace gets a number of its own, so nobody waits until a handle is free again. Environment pages, and frees
 * of objects older than the trace, are left out: the heap starts empty.
 *
 * The trace is run again until each thread has had as many operations as were asked for, but at most MOST_ROUNDS times: with a
 * trace of few events one would measure how the threads meet between rounds. What a round leaves is freed before the next.
 */
#include "programs/scratch.h"
#include "work.h"

#define NO_OBJECT UINT32_MAX
#define LARGEST (SY_PAGE_SIZE << SY_MAX_ORDER)
#define PATTERN 0x5a /* what a constructor writes */
#define MOST_ROUNDS 10000
#define GENERAL UINT16_MAX /* a kmalloc, in place of a cache */

struct trace_step {
	uint32_t object;
	uint32_t size;  /* of a take */
	uint16_t cache; /* or GENERAL */
	bool gives, zero;
};

struct track { /* of one worker */
	struct trace_step *steps;
	uint64_t count;
};

struct life {
	void *object; /* NULL: not taken yet, or given. The taker sets it, the giver waits for it. */
	uint32_t size;
	uint16_t cache;
};

struct replayed {
	struct kind *kinds; /* by number of the cache */
	struct life *lives;
	uint32_t life_count;
	uint64_t rounds;
};

static void construct(void *object, size_t size)
{
	memset(object, PATTERN, size);
}

static bool make_kinds(struct run *run, struct replayed *replayed, struct fault *fault)
{
	const struct scratch *scratch = run->scratch;

	replayed->kinds = table(run, (size_t)(scratch->cache_count + 1) * sizeof *replayed->kinds);
	for (uint64_t i = 0; i < scratch->cache_count; i++) {
		const struct scratch_cache *cache = &scratch->caches[i];
		struct sy_cache_config config = {
			.name = cache->name,
			.size = cache->object_size,
			.align = cache->align,
			.flags = cache->flags & ~(unsigned)(SY_CACHE_TYPESAFE_BY_RCU | SY_CACHE_KMALLOC),
			.constructor = cache->constructor ? construct : NULL,
		};

		if (!target_kind(&run->target, &replayed->kinds[i], &config, fault))
			return false;
	}
	return true;
}

/* ---- Steps ---------------------------------------------------------------------------------------------------- */

static bool is_take(const struct scratch_event *event)
{
	return event->kind == EVENT_KMALLOC || event->kind == EVENT_CACHE_ALLOC;
}

static bool is_give(const struct scratch_event *event)
{
	return event->kind == EVENT_KFREE || event->kind == EVENT_CACHE_FREE;
}

/* The object of an event; NO_OBJECT: the event is left out. current: the object that each handle stands for now. */
static uint32_t object_of(const struct scratch_event *event, uint32_t *current, uint32_t *next)
{
	uint32_t object;

	if (is_take(event))
		return event->size > LARGEST ? NO_OBJECT : (current[event->handle] = (*next)++);
	if (!is_give(event))
		return NO_OBJECT;
	object = current[event->handle];
	current[event->handle] = NO_OBJECT;
	return object;
}

static void make_steps(struct run *run, struct replayed *replayed)
{
	const struct scratch *scratch = run->scratch;
	uint32_t *current = table(run, scratch->run->handles * sizeof *current);

	for (unsigned i = 0; i < run->threads; i++) {
		struct track *track = table(run, sizeof *track);

		track->steps = table(run, (size_t)(scratch->event_count + 1) * sizeof *track->steps);
		run->workers[i].own = track;
	}
	memset(current, 0xff, scratch->run->handles * sizeof *current);
	for (uint64_t i = 0; i < scratch->event_count; i++) {
		const struct scratch_event *event = &scratch->events[i];
		struct track *track = run->workers[event->cpu % run->threads].own;
		uint32_t object = object_of(event, current, &replayed->life_count);

		if (object == NO_OBJECT)
			continue;
		track->steps[track->count++] = (struct trace_step){
			.object = object,
			.size = event->kind == EVENT_CACHE_ALLOC ? scratch->caches[event->cache].object_size : event->size,
			.cache = event->kind == EVENT_CACHE_ALLOC || event->kind == EVENT_CACHE_FREE ? event->cache : GENERAL,
			.gives = is_give(event),
			.zero = event->flags & SY_ZERO,
		};
	}
	replayed->lives = table(run, ((size_t)replayed->life_count + 1) * sizeof *replayed->lives);
}

static bool trace_prepare(struct run *run, struct fault *fault)
{
	struct replayed *replayed = table(run, sizeof *replayed);

	run->shared = replayed;
	if (!make_kinds(run, replayed, fault))
		return false;
	make_steps(run, replayed);
	if (!replayed->life_count)
		return refuse(fault, "this trace has no allocation of an object");
	replayed->rounds = run->operations * run->threads / replayed->life_count + 1;
	if (replayed->rounds > MOST_ROUNDS)
		replayed->rounds = MOST_ROUNDS;
	return true;
}

/* ---- Work ----------------------------------------------------------------------------------------------------- */

static bool constructed(const unsigned char *object, size_t size)
{
	return object[0] == PATTERN && object[size - 1] == PATTERN;
}

static void take_step(struct worker *worker, const struct replayed *replayed, const struct trace_step *step)
{
	const struct kind *kind = step->cache == GENERAL ? NULL : &replayed->kinds[step->cache];
	struct life *life = &replayed->lives[step->object];
	size_t size = step->size ? step->size : 1;
	void *object = take_raw(worker, kind, size);

	if (kind && kind->constructor) {
		if (!constructed(object, size))
			end_for_corruption(worker, object, size);
	} else {
		if (step->zero)
			memset(object, 0, size);
		write_marks(object, size);
	}
	worker->live_bytes += (int64_t)size;
	life->size = (uint32_t)size;
	life->cache = step->cache;
	__atomic_store_n(&life->object, object, __ATOMIC_RELEASE);
}

static void give_life(struct worker *worker, const struct replayed *replayed, struct life *life, void *object)
{
	const struct kind *kind = life->cache == GENERAL ? NULL : &replayed->kinds[life->cache];

	life->object = NULL;
	if (kind && kind->constructor ? !constructed(object, life->size) : !clear_marks(object, life->size))
		end_for_corruption(worker, object, life->size);
	worker->live_bytes -= (int64_t)life->size;
	give_raw(worker, kind, object);
}

static void give_step(struct worker *worker, const struct replayed *replayed, const struct trace_step *step)
{
	struct life *life = &replayed->lives[step->object];
	void *object;

	for (unsigned looks = 0; !(object = __atomic_load_n(&life->object, __ATOMIC_ACQUIRE));)
		wait_a_little(&looks);
	give_life(worker, replayed, life, object);
}

/* Each thread frees its share of what the trace left. */
static void trace_leave(struct worker *worker)
{
	const struct replayed *replayed = worker->run->shared;

	for (uint32_t i = worker->index; i < replayed->life_count; i += worker->run->threads)
		if (replayed->lives[i].object)
			give_life(worker, replayed, &replayed->lives[i], replayed->lives[i].object);
}

static void run_once(struct worker *worker, const struct replayed *replayed)
{
	const struct track *track = worker->own;

	for (const struct trace_step *step = track->steps; step < track->steps + track->count; step++) {
		if (step->gives)
			give_step(worker, replayed, step);
		else
			take_step(worker, replayed, step);
	}
}

static void trace_work(struct worker *worker)
{
	const struct replayed *replayed = worker->run->shared;

	for (uint64_t round = 0; round < replayed->rounds; round++) {
		if (round) {
			pthread_barrier_wait(&worker->run->among);
			trace_leave(worker);
			pthread_barrier_wait(&worker->run->among);
		}
		run_once(worker, replayed);
	}
}

const struct workload workload_trace = {
	.name = "trace", .what = "a recorded trace, a thread for each of its CPUs",
	.operations = 1000000, .threads_per = 1, .wants_trace = true,
	.prepare = trace_prepare, .work = trace_work, .leave = trace_leave,
};
