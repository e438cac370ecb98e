/*
 * Objects that one thread takes and another frees.
 *
 *   pipe       a producer takes batches of objects, its consumer frees them: every free is remote (xmalloc-test). The two share a
 *              ring of batches without a lock.
 *   collect    the same with large batches, each freed in a random order, as when one thread frees what another has built. No
 *              cache holds a batch of some hundred thousand objects any more.
 *   hackbench  the messages of the scheduler benchmark of that name. In a group 20 senders each send to 20 receivers. A message is
 *              a header of 224 bytes (the kernel's sk_buff) and a buffer of 512 with a payload of 100. The sender takes both; the
 *              receiver verifies the payload's sum and frees both. Each receiver has a bounded queue, as a socket has: a full one
 *              makes senders wait, an empty one the receiver.
 *   scratch    false sharing (Berger et al. 2000, "cache-scratch"). One thread takes small objects side by side and hands one to
 *              each thread. Each thread frees it, and from then on takes an object of that size, writes to it many times and frees
 *              it. An allocator makes threads share cache lines if it gives the freed object to the thread that freed it, or
 *              cuts one line up between threads.
 */
#include "work.h"

/* ---- Pipe ----------------------------------------------------------------------------------------------------- */

#define RING 16u /* batches on their way */

struct ring {
	uint64_t sent __attribute__((aligned(128)));
	uint64_t received __attribute__((aligned(128)));
	struct held *batches[RING];
};

static bool pipe_prepare(struct run *run, struct fault *fault)
{
	(void)fault;
	for (unsigned i = 0; i < run->threads; i += 2) {
		struct ring *ring = table(run, sizeof *ring);

		for (unsigned j = 0; j < RING; j++)
			ring->batches[j] = table(run, run->batch * sizeof *ring->batches[j]);
		run->workers[i].own = run->workers[i + 1].own = ring;
	}
	return true;
}

/* Waits until the other side has got so far. */
static void wait_for(const uint64_t *count, uint64_t least)
{
	for (unsigned looks = 0; __atomic_load_n(count, __ATOMIC_ACQUIRE) < least;)
		wait_a_little(&looks);
}

static void produce(struct worker *worker, struct ring *ring, uint64_t rounds)
{
	const struct kind *kind = kind_of(worker);

	for (uint64_t round = 0; round < rounds; round++) {
		struct held *batch = ring->batches[round % RING];

		wait_for(&ring->received, round >= RING ? round - RING + 1 : 0);
		for (size_t i = 0; i < worker->run->batch; i++) {
			batch[i].size = draw_size(worker);
			batch[i].object = take(worker, kind, batch[i].size);
		}
		__atomic_store_n(&ring->sent, round + 1, __ATOMIC_RELEASE);
	}
}

/* A pipe with one random order for all batches. */
static bool collect_prepare(struct run *run, struct fault *fault)
{
	uint32_t *order = table(run, run->batch * sizeof *order);

	draw_order(&run->workers[0], order, run->batch);
	run->shared = order;
	return pipe_prepare(run, fault);
}

static void consume(struct worker *worker, struct ring *ring, uint64_t rounds)
{
	const struct kind *kind = kind_of(worker);
	const uint32_t *order = worker->run->shared;

	for (uint64_t round = 0; round < rounds; round++) {
		struct held *batch = ring->batches[round % RING];

		wait_for(&ring->sent, round + 1);
		for (size_t i = 0; i < worker->run->batch; i++) {
			const struct held *held = &batch[order ? order[i] : i];

			give(worker, kind, held->object, held->size);
		}
		__atomic_store_n(&ring->received, round + 1, __ATOMIC_RELEASE);
	}
}

static void pipe_work(struct worker *worker)
{
	uint64_t rounds = (worker->run->operations + worker->run->batch - 1) / worker->run->batch;

	if (worker->index % 2 == 0)
		produce(worker, worker->own, rounds);
	else
		consume(worker, worker->own, rounds);
}

/* ---- Hackbench ------------------------------------------------------------------------------------------------ */

#define SENDERS 20u
#define RECEIVERS 20u
#define GROUP (SENDERS + RECEIVERS)
#define HEADER_BYTES 224u
#define BUFFER_BYTES 512u
#define PAYLOAD 100u
#define QUEUE 64u /* messages that a receiver's queue holds */

struct message {
	unsigned char *buffer;
	uint64_t sum; /* of the payload's bytes */
	unsigned char rest[HEADER_BYTES - 16];
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	uint64_t sent, received; /* under the lock */
	struct message *messages[QUEUE];
};

static bool hackbench_prepare(struct run *run, struct fault *fault)
{
	struct queue *queues = table(run, run->asked * RECEIVERS * sizeof *queues);

	for (unsigned i = 0; i < run->asked * RECEIVERS; i++) {
		pthread_mutex_init(&queues[i].lock, NULL);
		pthread_cond_init(&queues[i].filled, NULL);
		pthread_cond_init(&queues[i].emptied, NULL);
	}
	run->shared = queues;
	return target_kind(&run->target, &run->kind,
	                   &(struct sy_cache_config){ .name = "header", .size = HEADER_BYTES, .flags = SY_CACHE_HWCACHE_ALIGN }, fault);
}

static struct message *compose(struct worker *worker)
{
	struct message *message = take_raw(worker, &worker->run->kind, HEADER_BYTES);
	uint32_t word = draw(worker);

	message->buffer = take_raw(worker, NULL, BUFFER_BYTES);
	message->sum = 0;
	for (unsigned i = 0; i < PAYLOAD; i++) {
		message->buffer[i] = (unsigned char)(word >> i % 24);
		message->sum += message->buffer[i];
	}
	memset(message->rest, message->buffer[0], sizeof message->rest);
	worker->live_bytes += HEADER_BYTES + BUFFER_BYTES;
	return message;
}

static void send_message(struct queue *queue, struct message *message)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->sent - queue->received == QUEUE)
		pthread_cond_wait(&queue->emptied, &queue->lock);
	queue->messages[queue->sent++ % QUEUE] = message;
	pthread_cond_signal(&queue->filled);
	pthread_mutex_unlock(&queue->lock);
}

static struct message *receive_message(struct queue *queue)
{
	struct message *message;

	pthread_mutex_lock(&queue->lock);
	while (queue->sent == queue->received)
		pthread_cond_wait(&queue->filled, &queue->lock);
	message = queue->messages[queue->received++ % QUEUE];
	pthread_cond_signal(&queue->emptied);
	pthread_mutex_unlock(&queue->lock);
	return message;
}

static void dispose(struct worker *worker, struct message *message)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PAYLOAD; i++)
		sum += message->buffer[i];
	if (sum != message->sum || message->rest[0] != message->buffer[0] ||
	    memcmp(message->rest, message->rest + 1, sizeof message->rest - 1) != 0)
		end_for_corruption(worker, message->buffer, BUFFER_BYTES);
	worker->live_bytes -= HEADER_BYTES + BUFFER_BYTES;
	give_raw(worker, NULL, message->buffer);
	give_raw(worker, &worker->run->kind, message);
}

/* Each sender sends as many messages to every receiver of its group. */
static void hackbench_work(struct worker *worker)
{
	unsigned group = worker->index / GROUP, place = worker->index % GROUP;
	struct queue *queues = (struct queue *)worker->run->shared + group * RECEIVERS;
	uint64_t rounds = (worker->run->operations + RECEIVERS - 1) / RECEIVERS;

	if (place < SENDERS) {
		for (uint64_t i = 0; i < rounds; i++)
			for (unsigned j = 0; j < RECEIVERS; j++)
				send_message(&queues[j], compose(worker));
		return;
	}
	for (uint64_t i = 0; i < rounds * SENDERS; i++)
		dispose(worker, receive_message(&queues[place - SENDERS]));
}

/* ---- Scratch -------------------------------------------------------------------------------------------------- */

#define WRITES 100u

static void scratch_work(struct worker *worker)
{
	struct held *handed = worker->run->shared;
	const struct kind *kind = kind_of(worker);
	size_t size = worker->run->size_min;

	if (worker->index == 0)
		for (unsigned i = 0; i < worker->run->threads; i++)
			handed[i] = (struct held){ take(worker, kind, size), size };
	pthread_barrier_wait(&worker->run->among);
	give(worker, kind, handed[worker->index].object, size);
	for (uint64_t i = 0; i < worker->run->operations; i++) {
		volatile unsigned char *object = take_raw(worker, kind, size);

		for (unsigned j = 0; j < WRITES; j++)
			object[j % size] = (unsigned char)(object[j % size] + 1);
		give_raw(worker, kind, (void *)(uintptr_t)object);
	}
}

static bool scratch_prepare(struct run *run, struct fault *fault)
{
	(void)fault;
	run->shared = table(run, run->threads * sizeof(struct held));
	return true;
}

const struct workload workload_pipe = {
	.name = "pipe", .what = "producers take, consumers give: all frees are remote",
	.takes_kind = true,
	.operations = 5000000, .batch = 100, .size_min = 16, .size_max = 256, .threads_per = 2,
	.prepare = pipe_prepare, .work = pipe_work,
};

const struct workload workload_collect = {
	.name = "collect", .what = "producers take, consumers give in a random order",
	.takes_kind = true,
	.operations = 4000000, .batch = 20000, .size_min = 16, .size_max = 256, .threads_per = 2,
	.prepare = collect_prepare, .work = pipe_work,
};

const struct workload workload_hackbench = {
	.name = "hackbench", .what = "groups of 20 senders and 20 receivers of messages",
	.operations = 20000, .threads_per = GROUP, .prepare = hackbench_prepare, .work = hackbench_work,
};

const struct workload workload_scratch = {
	.name = "scratch", .what = "false sharing: threads write to small objects",
	.takes_kind = true,
	.operations = 1000000, .size_min = 8, .size_max = 8, .threads_per = 1,
	.prepare = scratch_prepare, .work = scratch_work,
};
