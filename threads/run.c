/*
 * One run: threads, clock and memory around a workload.
 *
 *   time        from the moment that the first thread starts its work until the last one ends it. Threads wait for each other
 *               before, and for the main thread afterwards.
 *   CPU time    of the threads that did the work.
 *   memory      resident memory of the process as the system counts it, less what was there before the allocator was opened, and
 *               less the workload's own tables, which are resident from the start. Thread stacks count, under every allocator. The
 *               peak is the system's own (VmHWM). It is reset when the work begins, and read when all was freed, because an
 *               allocator may take memory to give some back. Linux may miss some hundred KiB in its peak, as it does not ask each
 *               CPU; so the peak is never below any other figure of the run.
 *   lock waits  how often a thread found a lock of ours taken, and for how long it slept or yielded until it had it, by the
 *               clock: all waits, none extrapolated. Only our heaps tell; of mallocs only the voluntary context switches of the
 *               threads are known. Where more threads run than there are processors, others run in nearly all of that time.
 *   latencies   see work.h. Ticks become nanoseconds by comparing the counter with the clock over the work.
 *   share       of the allocator in the threads' CPU time: the sampled operations' mean, less the clock's own time, times the
 *               number of all operations, by the CPU time less what the sampling took. What a thread slept or yielded within a
 *               sample is no CPU time and is taken off. If LONG_NS and more are left, the system had taken the processor away, and
 *               the sample is left out. The thread's own clock would tell better, but costs more than most operations do.
 *
 * Which operation of a thread is sampled first is drawn like all others: the first ones of all are dearer (a thread gets its slot,
 * a cache its first slab) and happen while all threads begin, and each sample stands for as many operations.
 */
#define _GNU_SOURCE /* RUSAGE_THREAD, MAP_POPULATE */
#include "run.h"

#include "programs/resident_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define LONG_NS 100000.0

/* ---- Ends ----------------------------------------------------------------------------------------------------- */

_Noreturn void end_for_memory(const struct worker *worker, size_t size)
{
	fprintf(stderr, "slabyard-threads: %s: no memory for %zu bytes, with %" PRIu64 " KiB resident\n",
	        worker->run->workload->name, size, resident_kb(worker->run));
	_exit(2);
}

_Noreturn void end_for_corruption(const struct worker *worker, const void *object, size_t size)
{
	fprintf(stderr, "slabyard-threads: %s: an object of %zu bytes at %p was changed while it lived: the allocator is broken\n",
	        worker->run->workload->name, size, object);
	_exit(1);
}

/* ---- What the system tells ------------------------------------------------------------------------------------ */

static uint64_t base_kb; /* resident before anything was done */

static uint64_t beyond_tables(const struct run *run, uint64_t kb)
{
	uint64_t own = base_kb + run->table_bytes / 1024;

	return kb > own ? kb - own : 0;
}

uint64_t resident_kb(const struct run *run)
{
	return beyond_tables(run, status_kb("VmRSS"));
}

void note_phase(struct worker *worker)
{
	struct run *run = worker->run;
	struct phase *phase = &run->phases[run->phase_count];

	pthread_barrier_wait(&run->among);
	if (worker->index == 0) {
		for (unsigned i = 0; i < run->threads; i++)
			phase->live_bytes += (uint64_t)run->workers[i].live_bytes;
		phase->resident_kb = resident_kb(run);
		run->phase_count++;
	}
	pthread_barrier_wait(&run->among);
}

void *table(struct run *run, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), rounded = (bytes + page) & ~(page - 1);
	void *memory = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED) {
		fprintf(stderr, "slabyard-threads: %s: no memory for %zu bytes of the workload's own\n", run->workload->name, bytes);
		_exit(2);
	}
	run->table_bytes += rounded;
	return memory;
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t thread_switches(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nvcsw : 0;
}

void meter_begin(struct meter *meter)
{
	*meter = (struct meter){ thread_cpu_ns(), sy_platform_lock_waits(), sy_platform_lock_wait_time(), thread_switches() };
}

void meter_end(const struct meter *meter, struct worker *worker)
{
	worker->cpu_ns += thread_cpu_ns() - meter->cpu_ns;
	worker->lock_waits += sy_platform_lock_waits() - meter->lock_waits;
	worker->lock_wait_ns += sy_platform_lock_wait_time() - meter->lock_wait_ns;
	worker->switches += thread_switches() - meter->switches;
}

/* ---- Operations that are timed -------------------------------------------------------------------------------- */

static void draw_interval(struct worker *worker)
{
	worker->interval = worker->run->sample ? 1 + draw_below(worker, 2 * worker->run->sample - 1) : UINT32_MAX;
	worker->until_sample = worker->interval;
}

/* away_ns: that the thread had slept or yielded before. */
static void note(struct worker *worker, struct histogram *histogram, uint64_t away_ns, uint64_t start, uint64_t end)
{
	uint64_t ticks = end > start ? end - start : 0;
	uint64_t away = (uint64_t)((double)(sy_platform_lock_wait_time() - away_ns) / worker->run->ns_per_tick);

	histogram_add(histogram, ticks_between(&worker->run->ticks, start, end));
	ticks = ticks > away ? ticks - away : 0;
	if (ticks < worker->run->long_ticks) {
		worker->sampled_ticks += ticks;
		worker->samples += ticks != 0;
	}
	worker->operations += worker->interval;
	draw_interval(worker);
}

void *take_timed(struct worker *worker, const struct kind *kind, size_t size)
{
	uint64_t away_ns = sy_platform_lock_wait_time(), start = ticks_now();
	void *object = target_take(worker->target, kind, size);

	note(worker, &worker->takes, away_ns, start, ticks_now());
	return object;
}

void give_timed(struct worker *worker, const struct kind *kind, void *object)
{
	uint64_t away_ns = sy_platform_lock_wait_time(), start = ticks_now();

	target_give(worker->target, kind, object);
	note(worker, &worker->gives, away_ns, start, ticks_now());
}

/* ---- Threads -------------------------------------------------------------------------------------------------- */

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct run *run = worker->run;
	struct meter meter;

	pthread_barrier_wait(&run->barrier);
	worker->start_ns = monotonic_ns();
	meter_begin(&meter);
	run->workload->work(worker);
	meter_end(&meter, worker);
	worker->end_ns = monotonic_ns();
	worker->operations += worker->interval - worker->until_sample;
	worker->interval = worker->until_sample;
	pthread_barrier_wait(&run->barrier);
	pthread_barrier_wait(&run->barrier); /* memory is looked at in between */
	if (run->workload->leave)
		run->workload->leave(worker);
	pthread_barrier_wait(&run->barrier);
	return NULL;
}

static bool start_thread(struct run *run, unsigned index, struct fault *fault)
{
	int error = pthread_create(&run->workers[index].thread, NULL, work, &run->workers[index]);

	return !error || refuse(fault, "cannot start thread %u of %u: %s; raise a limit (ulimit -v, -u) or ask for fewer", index + 1,
	                        run->threads, strerror(error));
}

/* The processor at this place in the set, beginning anew at its end. */
static unsigned nth_processor(const cpu_set_t *set, unsigned place)
{
	unsigned processor = 0;

	place %= (unsigned)CPU_COUNT(set);
	while (!CPU_ISSET(processor, set) || place--)
		processor++;
	return processor;
}

/* Moves the calling thread alone; the threads that it starts inherit it. */
static bool stay_on(const cpu_set_t *processors, struct fault *fault)
{
	return sched_setaffinity(0, sizeof *processors, processors) == 0 ||
	       refuse(fault, "cannot stay on a processor: %s; leave --pin out", strerror(errno));
}

static bool start_pinned(struct run *run, struct fault *fault)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
		return refuse(fault, "cannot tell which processors there are: %s; leave --pin out", strerror(errno));
	for (unsigned i = 0; i < run->threads; i++) {
		CPU_ZERO(&one);
		CPU_SET(nth_processor(&allowed, i), &one);
		if (!stay_on(&one, fault) || !start_thread(run, i, fault))
			return false;
	}
	return stay_on(&allowed, fault);
}

static bool start_threads(struct run *run, struct fault *fault)
{
	for (unsigned i = 0; i < run->threads; i++)
		if (!start_thread(run, i, fault))
			return false;
	return true;
}

static uint64_t greater(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

static uint64_t peak_kb(const struct run *run, const struct result *result)
{
	uint64_t peak = greater(beyond_tables(run, status_kb("VmHWM")), greater(result->work_kb, result->end_kb));

	for (unsigned i = 0; i < run->phase_count; i++)
		peak = greater(peak, run->phases[i].resident_kb);
	return peak;
}

static void measure(struct run *run, struct result *result)
{
	reset_resident_peak();
	pthread_barrier_wait(&run->barrier); /* begins the work */
	pthread_barrier_wait(&run->barrier); /* it is done */
	result->ns_per_tick = ticks_ns(&run->ticks);
	result->work_kb = resident_kb(run);
	for (unsigned i = 0; i < run->threads; i++)
		result->live_bytes += run->workers[i].live_bytes;
	pthread_barrier_wait(&run->barrier); /* the rest may be freed */
	pthread_barrier_wait(&run->barrier);
	result->end_kb = resident_kb(run);
	result->peak_kb = peak_kb(run, result);
	for (unsigned i = 0; i < run->threads; i++)
		pthread_join(run->workers[i].thread, NULL);
	target_trim(&run->target);
	result->trimmed_kb = resident_kb(run);
}

static void add_up(const struct run *run, struct result *result)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (unsigned i = 0; i < run->threads; i++) {
		const struct worker *worker = &run->workers[i];

		first = worker->start_ns < first ? worker->start_ns : first;
		last = worker->end_ns > last ? worker->end_ns : last;
		result->operations += worker->operations;
		result->cpu_ns += worker->cpu_ns;
		result->lock_waits += worker->lock_waits;
		result->lock_wait_ns += worker->lock_wait_ns;
		result->threads_ns += worker->end_ns - worker->start_ns;
		result->switches += worker->switches;
		result->sampled_ticks += worker->sampled_ticks;
		result->samples += worker->samples;
		histogram_merge(&result->takes, &worker->takes);
		histogram_merge(&result->gives, &worker->gives);
	}
	result->seconds = (double)(last - first) * 1e-9;
}

static bool prepare(struct run *run, struct fault *fault)
{
	run->threads = run->asked * run->workload->threads_per;
	run->workers = table(run, run->threads * sizeof *run->workers);
	for (unsigned i = 0; i < run->threads; i++) {
		run->workers[i].run = run;
		run->workers[i].target = &run->target;
		run->workers[i].index = i;
		run->workers[i].random = (run->seed + 1) * 0x9e3779b97f4a7c15u + i * 0xd1342543de82ef95u + 1;
		draw_interval(&run->workers[i]);
	}
	ticks_calibrate(&run->ticks);
	run->ns_per_tick = ticks_ns(&run->ticks);
	run->long_ticks = (uint64_t)(LONG_NS / run->ns_per_tick);
	pthread_barrier_init(&run->barrier, NULL, run->threads + 1);
	pthread_barrier_init(&run->among, NULL, run->threads);
	if (run->caches && !target_kind(&run->target, &run->kind, &(struct sy_cache_config){ .name = "object", .size = run->size_min }, fault))
		return false;
	return !run->workload->prepare || run->workload->prepare(run, fault);
}

void run_note_start(void)
{
	base_kb = status_kb("VmRSS");
}

bool run_workload(struct run *run, struct result *result, struct fault *fault)
{
	if (!prepare(run, fault) || !(run->pinned ? start_pinned : start_threads)(run, fault))
		return false;
	measure(run, result);
	add_up(run, result);
	return true;
}
