/*
 * What every workload is made of: the run, its workers, and how a worker takes (allocates) and gives (frees) objects.
 *
 * A run is one workload on one allocator by a number of threads. All threads start at once and do their work(). When all are done
 * and memory has been measured, each does its leave(), which frees what it still holds. The clock runs over work() alone.
 *
 * take() and give() count operations. They time one of run.sample operations on average, at random; 0: none. A run that measures
 * the speed of the whole times none.
 *
 * take() writes marks into every object, and give() verifies and clears them: the last word, and one word of each cache line
 * before it. A mark follows from the object's address and size, so two owners of one object notice each other. Programs touch
 * what they allocate too, and the marks cost the same under every allocator.
 */
#ifndef THREADS_WORK_H
#define THREADS_WORK_H

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "programs/histogram.h"
#include "programs/likely.h"
#include "programs/ticks.h"
#include "target.h"

struct run;
struct worker;
struct scratch;

/* An object that a workload holds. */
struct held {
	void *object; /* NULL: none */
	size_t size;
};

struct workload {
	const char *name, *what;
	uint64_t operations;       /* objects that each thread takes, where the user doesn't say */
	size_t batch;              /* objects held at once, likewise; 0: has none */
	size_t size_min, size_max; /* likewise; 0: the workload has its own */
	unsigned threads_per;      /* threads for each that the user asks for */
	bool takes_kind; /* objects may come from a cache of their own */
	bool wants_trace;
	void (*arrange)(struct worker *, uint32_t *order, size_t count); /* of batches: the order in which one is freed */
	bool (*prepare)(struct run *, struct fault *); /* or NULL */
	void (*work)(struct worker *);
	void (*leave)(struct worker *); /* or NULL */
};

extern const struct workload *const workloads[]; /* NULL-terminated */

/* Resident memory and what lived in it, at some moment of the work. */
struct phase {
	uint64_t live_bytes, resident_kb;
};

#define MOST_PHASES 64
#define WAIT_SPINS 200u

struct run {
	const struct workload *workload;
	struct target target;
	const struct scratch *scratch; /* or NULL */
	unsigned asked, threads;       /* threads that the user asked for, and that there are */
	uint64_t operations;           /* of each thread */
	size_t batch, size_min, size_max;
	uint64_t seed;
	uint32_t sample; /* operations from one that is timed to the next; 0: none is */
	bool caches;     /* objects of one size come from a cache of their own */
	bool pinned;     /* each thread stays on one processor */
	struct kind kind; /* that cache; of hackbench: the header's */
	struct ticks ticks;
	double ns_per_tick;  /* roughly */
	uint64_t long_ticks; /* in such a sample the system took the processor away */
	struct worker *workers;
	pthread_barrier_t barrier; /* of the workers and the main thread */
	pthread_barrier_t among;   /* of the workers alone */
	void *shared;              /* the workload's own */
	uint64_t table_bytes;      /* that table() took */
	struct phase phases[MOST_PHASES];
	unsigned phase_count;
	unsigned judged; /* the phase whose resident_per_live is the run's; 0: the mean over all */
};

struct worker {
	struct run *run;
	const struct target *target;
	unsigned index;
	uint32_t until_sample; /* counts down; at 0 an operation is timed */
	uint32_t interval;     /* what it began from */
	uint64_t random;
	uint64_t operations; /* done, up to the last sample */
	int64_t live_bytes;  /* taken less given; what another worker took counts too */
	void *own;           /* the workload's */
	uint64_t start_ns, end_ns, cpu_ns, lock_waits, lock_wait_ns, switches;
	uint64_t sampled_ticks, samples; /* of timed operations shorter than long_ticks; with the clock's own, without waits for locks */
	struct histogram takes, gives;
	pthread_t thread;
} __attribute__((aligned(128)));

/* Ends the program: the allocator gave no memory (status 2), or broke an object (status 1). */
_Noreturn void end_for_memory(const struct worker *, size_t size);
_Noreturn void end_for_corruption(const struct worker *, const void *object, size_t size);

/* Zeroed memory for the workload itself, straight from the system and resident from the start. Ends the program if there is none. */
void *table(struct run *, size_t bytes);

/* The same as take_raw() and give_raw(), timed. */
void *take_timed(struct worker *, const struct kind *, size_t size);
void give_timed(struct worker *, const struct kind *, void *object);

/* Adds what the calling thread spends between the two calls to the worker: CPU time, lock waits, their time, context switches. */
struct meter {
	uint64_t cpu_ns, lock_waits, lock_wait_ns, switches;
};
void meter_begin(struct meter *);
void meter_end(const struct meter *, struct worker *);

/* Waits until all workers have called it, and notes how much is resident and alive then. */
void note_phase(struct worker *);

/* Resident memory of this process beyond its own tables, in KiB. */
uint64_t resident_kb(const struct run *);

/* xorshift64*: Marsaglia 2003, Vigna 2016. */
static inline uint32_t draw(struct worker *worker)
{
	uint64_t x = worker->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	worker->random = x;
	return (uint32_t)((x * 0x2545f4914f6cdd1du) >> 32);
}

/* Evenly from 0 to bound - 1. */
static inline uint32_t draw_below(struct worker *worker, uint32_t bound)
{
	return (uint32_t)((uint64_t)draw(worker) * bound >> 32);
}

/* The numbers below `count` in a random order (Fisher and Yates). */
static inline void draw_order(struct worker *worker, uint32_t *order, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t other = draw_below(worker, (uint32_t)i + 1);

		order[i] = order[other];
		order[other] = (uint32_t)i;
	}
}

static inline size_t draw_size(struct worker *worker)
{
	const struct run *run = worker->run;

	return run->size_min + draw_below(worker, (uint32_t)(run->size_max - run->size_min + 1));
}

/* Waits before the next look at what another thread does. Spins only briefly: there may be more threads than processors. */
static inline void wait_a_little(unsigned *looks)
{
	if (++*looks < WAIT_SPINS)
		return;
	if (*looks < 2 * WAIT_SPINS)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
}

/* ---- Contents ------------------------------------------------------------------------------------------------- */

#define MARK_STRIDE 64u

static inline uint64_t mark_of(const void *object, size_t size, size_t offset)
{
	return ((uint64_t)(uintptr_t)object ^ (uint64_t)size << 48) * 0x9e3779b97f4a7c15u + offset;
}

static inline void write_marks(void *object, size_t size)
{
	uint64_t mark = mark_of(object, size, 0);
	char *bytes = object;

	if (size < sizeof mark) {
		memcpy(bytes, &mark, size);
		return;
	}
	for (size_t offset = 0; offset + 2 * sizeof mark <= size; offset += MARK_STRIDE) {
		uint64_t word = mark + offset;

		memcpy(bytes + offset, &word, sizeof word);
	}
	mark = ~mark;
	memcpy(bytes + size - sizeof mark, &mark, sizeof mark);
}

/* Verifies the marks and destroys them. False: they were not there. */
static inline bool clear_marks(void *object, size_t size)
{
	uint64_t mark = mark_of(object, size, 0), found;
	char *bytes = object;
	bool good;

	if (size < sizeof mark) {
		good = memcmp(bytes, &mark, size) == 0;
		memset(bytes, ~*bytes, size);
		return good;
	}
	memcpy(&found, bytes + size - sizeof found, sizeof found);
	good = found == ~mark;
	memcpy(bytes + size - sizeof mark, &mark, sizeof mark);
	for (size_t offset = 0; offset + 2 * sizeof mark <= size; offset += MARK_STRIDE) {
		memcpy(&found, bytes + offset, sizeof found);
		good &= found == mark + offset;
	}
	return good;
}

/* ---- Operations ----------------------------------------------------------------------------------------------- */

/* An object without marks. */
static inline void *take_raw(struct worker *worker, const struct kind *kind, size_t size)
{
	void *object;

	if (unlikely(--worker->until_sample == 0))
		object = take_timed(worker, kind, size);
	else
		object = target_take(worker->target, kind, size);
	if (unlikely(!object))
		end_for_memory(worker, size);
	return object;
}

static inline void give_raw(struct worker *worker, const struct kind *kind, void *object)
{
	if (unlikely(--worker->until_sample == 0))
		give_timed(worker, kind, object);
	else
		target_give(worker->target, kind, object);
}

static inline void *take(struct worker *worker, const struct kind *kind, size_t size)
{
	void *object = take_raw(worker, kind, size);

	write_marks(object, size);
	worker->live_bytes += (int64_t)size;
	return object;
}

static inline void give(struct worker *worker, const struct kind *kind, void *object, size_t size)
{
	if (unlikely(!clear_marks(object, size)))
		end_for_corruption(worker, object, size);
	worker->live_bytes -= (int64_t)size;
	give_raw(worker, kind, object);
}

/* The kind of objects of the run's one size; NULL: by size. */
static inline const struct kind *kind_of(const struct worker *worker)
{
	return worker->run->caches ? &worker->run->kind : NULL;
}

#endif
