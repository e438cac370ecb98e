/*
 * The bleeding server (Larson and Krishnan 1998). A server's threads replace objects of many sizes at random. Now and then a
 * thread ends and a new one takes over its objects. So one thread frees what another has allocated: memory bleeds from one
 * thread's caches to the next one's.
 *
 * A generation is a thread that replaces REPLACED_EACH times as many objects as the worker has. Then it starts the next
 * generation and ends. For a moment there are two, so the new one is at work before an allocator can give it what the old one
 * cached. The worker's own thread only waits: CPU time and lock waits are those of the generations.
 */
#include <semaphore.h>

#include "work.h"

#define REPLACED_EACH 100u

struct server {
	struct held *held;
	uint64_t left; /* objects to take */
	sem_t over;
};

static bool larson_prepare(struct run *run, struct fault *fault)
{
	(void)fault;
	for (unsigned i = 0; i < run->threads; i++) {
		struct server *server = table(run, sizeof *server);

		server->held = table(run, run->batch * sizeof *server->held);
		server->left = run->operations;
		sem_init(&server->over, 0, 0);
		run->workers[i].own = server;
	}
	return true;
}

static void replace(struct worker *worker, struct held *held)
{
	if (held->object)
		give(worker, NULL, held->object, held->size);
	held->size = draw_size(worker);
	held->object = take(worker, NULL, held->size);
}

static void *generation(void *);

static void begin_generation(struct worker *worker)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, generation, worker) != 0)
		end_for_memory(worker, 0);
	pthread_detach(thread);
}

static void *generation(void *argument)
{
	struct worker *worker = argument;
	struct server *server = worker->own;
	uint32_t count = (uint32_t)worker->run->batch;
	uint64_t todo = (uint64_t)count * REPLACED_EACH;
	struct meter meter;

	meter_begin(&meter);
	if (todo > server->left)
		todo = server->left;
	server->left -= todo;
	while (todo--)
		replace(worker, &server->held[draw_below(worker, count)]);
	meter_end(&meter, worker);
	if (server->left)
		begin_generation(worker);
	else
		sem_post(&server->over);
	return NULL;
}

static void larson_work(struct worker *worker)
{
	struct server *server = worker->own;

	begin_generation(worker);
	while (sem_wait(&server->over) != 0)
		;
}

static void larson_leave(struct worker *worker)
{
	const struct server *server = worker->own;

	for (size_t i = 0; i < worker->run->batch; i++)
		if (server->held[i].object)
			give(worker, NULL, server->held[i].object, server->held[i].size);
}

const struct workload workload_larson = {
	.name = "larson", .what = "bleeding server: threads end, others take over their objects",
	.operations = 5000000, .batch = 1000, .size_min = 8, .size_max = 1000, .threads_per = 1,
	.prepare = larson_prepare, .work = larson_work, .leave = larson_leave,
};
