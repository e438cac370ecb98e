/* The interpreter: programs of operations for the simulated machine. See conformance.h. */
#include "core/pages/pages.h"
#include "model.h"

#include <stdio.h>
#include <string.h>

#define CACHE_FLAGS 0x7fu /* flags that a client may give */

static unsigned slot_of(const struct machine *machine, const struct op *op)
{
	return op->slot % machine->config->slots;
}

static uint32_t heap_of(const struct machine *machine, const struct op *op)
{
	return op->heap % machine->config->heaps;
}

/* SY_ANY_NODE, or a node that exists. */
static int node_of(const struct machine *machine, const struct op *op)
{
	return op->node < 0 ? SY_ANY_NODE : op->node % (int)machine->config->nodes;
}

static uint32_t times(const struct op *op)
{
	return op->b % OP_BULK + 1;
}

/* The cache that an operation means; NO_CACHE: there is none. */
static uint32_t cache_of(const struct machine *machine, const struct op *op)
{
	uint32_t existing = 0, wanted;

	for (uint32_t i = 0; i < machine->cache_count; i++)
		existing += machine->caches[i].exists;
	if (!existing)
		return NO_CACHE;
	wanted = op->a % existing;
	for (uint32_t i = 0;; i++)
		if (machine->caches[i].exists && wanted-- == 0)
			return i;
}

static verdict run_create(struct machine *machine, const struct op *op)
{
	return model_create(machine, heap_of(machine, op), op->a, op->b & 0xffffu, op->b >> 16 & CACHE_FLAGS,
	                    (op->b & OP_CONSTRUCTED) != 0);
}

static verdict run_alloc(struct machine *machine, const struct op *op)
{
	uint32_t cache = cache_of(machine, op);
	bool refused = false;
	verdict wrong = NULL;

	for (uint32_t i = 0; i < times(op) && cache != NO_CACHE && !refused && !wrong; i++)
		wrong = model_alloc(machine, cache, slot_of(machine, op), op->flags, node_of(machine, op), &refused);
	return wrong;
}

static verdict run_kmalloc(struct machine *machine, const struct op *op)
{
	bool refused = false;
	verdict wrong = NULL;

	for (uint32_t i = 0; i < times(op) && !refused && !wrong; i++)
		wrong = model_kmalloc(machine, heap_of(machine, op), op->a, slot_of(machine, op), op->flags,
		                      node_of(machine, op), &refused);
	return wrong;
}

static verdict run_free(struct machine *machine, const struct op *op)
{
	verdict wrong = NULL;

	for (uint32_t i = 0; i < times(op) && machine->object_count && !wrong; i++)
		wrong = model_free(machine, op->a % machine->object_count, slot_of(machine, op));
	return wrong;
}

static verdict run_shrink(struct machine *machine, const struct op *op)
{
	sy_heap_shrink(machine->heaps[heap_of(machine, op)]);
	return NULL;
}

static verdict run_drain(struct machine *machine, const struct op *op)
{
	struct sy_heap *heap = machine->heaps[heap_of(machine, op)];

	if (heap->policy->drain)
		heap->policy->drain(heap, slot_of(machine, op));
	if (op->b & 1)
		sy_pages_drain(machine->pages, slot_of(machine, op));
	return NULL;
}

static verdict run_pages(struct machine *machine, const struct op *op)
{
	struct sy_page *block;

	if (machine->block_count == MAX_BLOCKS)
		return NULL;
	block = sy_pages_alloc(machine->pages, slot_of(machine, op), op->a % SY_ORDERS, op->flags, node_of(machine, op));
	if (block)
		machine->blocks[machine->block_count++] = block;
	return NULL;
}

static verdict run_pages_free(struct machine *machine, const struct op *op)
{
	uint32_t index;

	if (!machine->block_count)
		return NULL;
	index = op->a % machine->block_count;
	sy_pages_free(machine->pages, slot_of(machine, op), machine->blocks[index]);
	machine->blocks[index] = machine->blocks[--machine->block_count];
	return NULL;
}

/* Makes the request fail that comes `requests` page requests from now. */
static void arm(struct machine *machine, uint64_t requests)
{
	sy_pages_fail_after(machine->pages, requests);
	machine->armed = true;
}

static void note_injection(struct machine *machine)
{
	if (!machine->armed || machine->pages->fail_after)
		return;
	machine->armed = false;
	machine->result->injected++;
}

static verdict run_op(struct machine *machine, const struct op *op)
{
	uint32_t cache;

	if (!machine->heaps[heap_of(machine, op)] && op->kind != OP_HEAP)
		return NULL;
	switch (op->kind) {
	case OP_CREATE:
		return run_create(machine, op);
	case OP_DESTROY:
		cache = cache_of(machine, op);
		return cache == NO_CACHE ? NULL : model_destroy(machine, cache);
	case OP_ALLOC:
		return run_alloc(machine, op);
	case OP_KMALLOC:
		return run_kmalloc(machine, op);
	case OP_FREE:
		return run_free(machine, op);
	case OP_SHRINK:
		return run_shrink(machine, op);
	case OP_SHRINK_CACHE:
		cache = cache_of(machine, op);
		if (cache != NO_CACHE)
			sy_cache_shrink(machine->caches[cache].cache);
		return NULL;
	case OP_TICK:
		return model_tick(machine, op->a);
	case OP_DRAIN:
		return run_drain(machine, op);
	case OP_FAIL:
		if (!machine->pages->fail_after)
			arm(machine, (uint64_t)op->a + 1);
		return NULL;
	case OP_PAGES:
		return run_pages(machine, op);
	case OP_PAGES_FREE:
		return run_pages_free(machine, op);
	case OP_RELEASE:
		sy_pages_release(machine->pages, op->a % SY_ORDERS);
		return NULL;
	case OP_HEAP:
		return model_renew_heap(machine, heap_of(machine, op));
	default:
		return NULL;
	}
}

static verdict run_all(struct machine *machine, const struct sy_policy *policy, const struct op *ops, uint64_t count)
{
	verdict wrong;

	machine->armed = machine->config->fail_first != 0;
	wrong = machine_start(machine, policy);
	note_injection(machine);
	for (uint64_t i = 0; i < count && !wrong; i++) {
		machine->result->failed_at = i;
		wrong = run_op(machine, &ops[i]);
		note_injection(machine);
		if (!wrong && (i + 1) % machine->config->check_every == 0)
			wrong = model_check(machine);
		machine->result->operations++;
	}
	if (wrong)
		return wrong;
	machine->result->failed_at = count;
	wrong = machine_end(machine);
	note_injection(machine);
	return wrong;
}

static bool config_makes_sense(const struct conformance_config *config)
{
	return config->slots && config->slots <= SY_MAX_SLOTS && config->nodes && config->nodes <= SY_MAX_NODES &&
	       config->heaps && config->heaps <= MAX_HEAPS && config->check_every;
}

bool sy_conformance_run(const struct sy_policy *policy, const struct conformance_config *config, const struct op *ops,
                        uint64_t count, struct conformance_result *result)
{
	static struct machine machine;
	verdict wrong;

	*result = (struct conformance_result){ 0 };
	memset(&machine, 0, sizeof(machine));
	machine.config = config;
	machine.result = result;
	wrong = config_makes_sense(config) ? run_all(&machine, policy, ops, count) : "the configuration makes no sense";
	machine_free(&machine);
	if (wrong)
		snprintf(result->message, sizeof(result->message), "%s", wrong);
	return !wrong;
}

void sy_conformance_defaults(const struct sy_policy *policy, struct conformance_config *config)
{
	struct sy_heap_config heap;

	sy_heap_defaults(policy, &heap);
	*config = (struct conformance_config){ .slots = 1, .nodes = 1, .heaps = 1, .pages_per_node = 1024, .check_every = 1 };
	memcpy(config->tunables, heap.tunables, sizeof(heap.tunables));
}

bool sy_conformance_tunable(const struct sy_policy *policy, unsigned index, const char **name, int64_t *default_value,
                            int64_t *min, int64_t *max)
{
	const struct sy_tunable *tunable = &policy->tunables[index];

	if (index >= policy->tunable_count)
		return false;
	*name = tunable->name;
	*default_value = tunable->default_value;
	*min = tunable->min;
	*max = tunable->max;
	return true;
}
