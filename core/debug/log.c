/*
 * The audit: a ring of transactions, and a table of stacks (Bonwick 1994, section 6.1).
 *
 * The ring holds the last SY__DEBUG_RING allocations and frees, each with object, thread, time and the number of a stack. Programs have
 * few different stacks, so each is kept once: a table with open addressing, from which nothing is ever removed. When it is seven
 * eighths full, new stacks get number 0, and are counted as lost.
 */
#include "debug.h"

static uint32_t hash_of(const uintptr_t *frames, unsigned depth)
{
	uint64_t hash = depth;

	for (unsigned i = 0; i < depth; i++)
		hash = (hash ^ frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(hash >> 32);
}

uint32_t sy__stack_number(struct sy__debug *debug, const uintptr_t *frames, unsigned depth)
{
	uint32_t hash = hash_of(frames, depth), most = debug->config.stacks;

	if (!debug->stacks || !depth)
		return 0;
	for (uint32_t at = hash % most;; at = (at + 1) % most) {
		struct sy__stack *stack = &debug->stacks[at];

		if (stack->depth == depth && stack->hash == hash && sy__same(stack->frames, frames, depth * sizeof(*frames)))
			return at + 1;
		if (stack->depth)
			continue;
		if (debug->stacks_used >= most - most / 8) {
			debug->stacks_lost++;
			return 0;
		}
		stack->depth = depth;
		stack->hash = hash;
		sy__copy(stack->frames, frames, depth * sizeof(*frames));
		debug->stacks_used++;
		return at + 1;
	}
}

void sy__transaction_add(struct sy__debug *debug, const struct sy__record *record, bool free)
{
	struct sy__transaction *transaction;

	if (!debug->ring)
		return;
	transaction = &debug->ring[debug->transactions++ % debug->config.ring];
	*transaction = (struct sy__transaction){
		.object = record->object,
		.size = record->size,
		.cache = record->cache,
		.time = free ? record->freed : record->allocated,
		.thread = free ? record->freer : record->allocator,
		.stack = free ? record->free_stack : record->allocation_stack,
		.free = free,
	};
	if (free)
		sy__copy(transaction->contents, record->object,
		         record->size < SY__DEBUG_CONTENTS ? record->size : SY__DEBUG_CONTENTS);
}

uint64_t sy__transaction_before(const struct sy__debug *debug, const struct sy__record *record, uint64_t before)
{
	uint64_t oldest = debug->transactions > debug->config.ring ? debug->transactions - debug->config.ring : 0;

	for (uint64_t number = debug->ring ? before - 1 : 0; number > oldest; number--) {
		const struct sy__transaction *at = &debug->ring[(number - 1) % debug->config.ring];

		if (at->object < record->base + record->room && at->object + at->size > record->base)
			return number;
	}
	return 0;
}
