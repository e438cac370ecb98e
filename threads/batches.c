/*
 * Threads that free what they took themselves, and threads that share one table.
 *
 *   hot       takes an object and frees it at once: the least that a pair of operations costs
 *   lifo      takes a batch of objects and frees the last one first, as nested calls do (sh6bench's way, and many a program's)
 *   fifo      takes a batch and frees the first one first, as queues do
 *   shuffled  takes a batch and frees it in an order drawn once. This is what a free list looks like after hours of use: each
 *             object lies far from those that are freed before and after it.
 *   exchange  threads share a table of objects. Each puts a new object in a random place and frees the one that was there,
 *             whichever thread took it, as shared caches and indexes do (rptest, glibc's own thread benchmark).
 */
#include "work.h"

#define ORDERS 4u /* so that two batches in a row are freed in different orders */

struct batch {
	struct held *held;
	uint32_t *orders[ORDERS];
};

static void hot_work(struct worker *worker)
{
	const struct kind *kind = kind_of(worker);
	uint64_t count = worker->run->operations;
	size_t size = worker->run->size_min;

	if (worker->run->size_max == size) {
		while (count--)
			give(worker, kind, take(worker, kind, size), size);
		return;
	}
	while (count--) {
		size = draw_size(worker);
		give(worker, kind, take(worker, kind, size), size);
	}
}

/* ---- Batches -------------------------------------------------------------------------------------------------- */

static void in_order(struct worker *worker, uint32_t *order, size_t count)
{
	(void)worker;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
}

static void backwards(struct worker *worker, uint32_t *order, size_t count)
{
	(void)worker;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)(count - 1 - i);
}

static bool batch_prepare(struct run *run, struct fault *fault)
{
	(void)fault;
	for (unsigned i = 0; i < run->threads; i++) {
		struct batch *batch = table(run, sizeof *batch);

		batch->held = table(run, run->batch * sizeof *batch->held);
		for (unsigned j = 0; j < ORDERS; j++) {
			batch->orders[j] = table(run, run->batch * sizeof *batch->orders[j]);
			run->workload->arrange(&run->workers[i], batch->orders[j], run->batch);
		}
		run->workers[i].own = batch;
	}
	return true;
}

static void batch_work(struct worker *worker)
{
	const struct kind *kind = kind_of(worker);
	const struct batch *batch = worker->own;
	struct held *held = batch->held;
	size_t count = worker->run->batch;
	uint64_t rounds = (worker->run->operations + count - 1) / count;

	for (uint64_t round = 0; round < rounds; round++) {
		const uint32_t *order = batch->orders[round % ORDERS];

		for (size_t i = 0; i < count; i++) {
			held[i].size = draw_size(worker);
			held[i].object = take(worker, kind, held[i].size);
		}
		for (size_t i = 0; i < count; i++)
			give(worker, kind, held[order[i]].object, held[order[i]].size);
	}
}

/* ---- Exchange ------------------------------------------------------------------------------------------------- */

/* The size stands in the object's first word, because object and size cannot be exchanged at once. Marks follow it. */
static void *take_sized(struct worker *worker, size_t size)
{
	char *object = take_raw(worker, NULL, size);

	memcpy(object, &size, sizeof size);
	write_marks(object + sizeof size, size - sizeof size);
	worker->live_bytes += (int64_t)size;
	return object;
}

static void give_sized(struct worker *worker, char *object)
{
	size_t size;

	memcpy(&size, object, sizeof size);
	if (size < worker->run->size_min || size > worker->run->size_max || !clear_marks(object + sizeof size, size - sizeof size))
		end_for_corruption(worker, object, size);
	worker->live_bytes -= (int64_t)size;
	give_raw(worker, NULL, object);
}

static bool exchange_prepare(struct run *run, struct fault *fault)
{
	if (run->size_min < 2 * sizeof(size_t))
		return refuse(fault, "exchange needs objects of %zu bytes or more: give a larger --size", 2 * sizeof(size_t));
	run->shared = table(run, run->batch * sizeof(void *));
	return true;
}

static void exchange_work(struct worker *worker)
{
	void **places = worker->run->shared;
	uint32_t count = (uint32_t)worker->run->batch;

	for (uint64_t i = 0; i < worker->run->operations; i++) {
		void *fresh = take_sized(worker, draw_size(worker));
		void *old = __atomic_exchange_n(&places[draw_below(worker, count)], fresh, __ATOMIC_ACQ_REL);

		if (old)
			give_sized(worker, old);
	}
}

static void exchange_leave(struct worker *worker)
{
	void **places = worker->run->shared;

	for (size_t i = worker->index; i < worker->run->batch; i += worker->run->threads)
		if (places[i])
			give_sized(worker, places[i]);
}

const struct workload workload_hot = {
	.name = "hot", .what = "takes an object, gives it at once",
	.takes_kind = true, .operations = 20000000, .size_min = 64, .size_max = 64, .threads_per = 1, .work = hot_work,
};

const struct workload workload_lifo = {
	.name = "lifo", .what = "takes a batch, gives the last first",
	.takes_kind = true, .operations = 10000000, .batch = 1000, .size_min = 16, .size_max = 256, .threads_per = 1,
	.arrange = backwards, .prepare = batch_prepare, .work = batch_work,
};

const struct workload workload_fifo = {
	.name = "fifo", .what = "takes a batch, gives the first first",
	.takes_kind = true, .operations = 10000000, .batch = 1000, .size_min = 16, .size_max = 256, .threads_per = 1,
	.arrange = in_order, .prepare = batch_prepare, .work = batch_work,
};

const struct workload workload_shuffled = {
	.name = "shuffled", .what = "takes a batch, gives it in a random order",
	.takes_kind = true, .operations = 10000000, .batch = 10000, .size_min = 64, .size_max = 64, .threads_per = 1,
	.arrange = draw_order, .prepare = batch_prepare, .work = batch_work,
};

const struct workload workload_exchange = {
	.name = "exchange", .what = "threads replace objects of all in one table",
	.operations = 5000000, .batch = 20000, .size_min = 16, .size_max = 1024, .threads_per = 1,
	.prepare = exchange_prepare, .work = exchange_work, .leave = exchange_leave,
};
