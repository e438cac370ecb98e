/*
 * What is checked between operations, whatever the last one was: the library's own invariants, every object's contents, the
 * counts against what the client holds, what walks show, and that memory of RCU-typesafe caches stays for its grace period.
 *
 * A walk looks through the lists of a cache for each of its slabs, so only every WALK_EVERY-th check has one.
 */
#include "model.h"

#include "core/page_interface.h"

#include <string.h>

#define WALK_EVERY 8

static verdict check_counts(struct machine *machine, const struct model_cache *cache)
{
	struct sy_cache_counts counts;
	unsigned creations;
	uint64_t live = model_shared_live(machine, cache->cache, &creations);

	sy_cache_count(cache->cache, &counts);
	if (counts.objects_in_use < live || (counts.objects_in_use > live && !(cache->cache->flags & SY_CACHE_KMALLOC)))
		return "a cache's objects in use are not those that the client holds";
	if (counts.partial_slabs + counts.full_slabs + counts.empty_slabs != counts.slabs)
		return "a cache's partial, full and empty slabs don't add up to its slabs";
	if (counts.objects_in_use + counts.objects_cached > counts.objects)
		return "a cache has more objects than room for them";
	return NULL;
}

/* The unused bytes of a heap's slabs and what clients hold of them don't exceed them. */
static verdict check_unused(struct machine *machine, uint32_t heap_index)
{
	struct sy_heap *heap = machine->heaps[heap_index];
	uint64_t bytes;

	if (!heap->policy->unused_bytes)
		return NULL;
	bytes = heap->policy->unused_bytes(heap);
	for (uint32_t i = 0; i < machine->object_count; i++) {
		const struct model_object *object = &machine->objects[i];

		if (object->heap == heap_index && sy__head_of(heap, object->memory)->use == SY_USE_SLAB)
			bytes += object->bytes;
	}
	return bytes <= heap->counters.slab_pages * SY_PAGE_SIZE ? NULL : "more bytes are unused than objects leave of the slabs";
}

/* ---- What walks show -------------------------------------------------------------------------------------------- */

struct walked {
	struct machine *machine;
	size_t told, bytes; /* of this slab */
	uint64_t pages;
	verdict wrong;
};

static bool see_slab(void *context, const struct sy_slab *slab)
{
	struct walked *walked = context;

	if (walked->told != walked->bytes)
		walked->wrong = "a walk does not show all of a slab";
	walked->told = 0;
	walked->bytes = slab->bytes;
	walked->pages += slab->bytes / SY_PAGE_SIZE;
	return !walked->wrong;
}

static bool see_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct walked *walked = context;
	const unsigned char *start = (const unsigned char *)slab->address + part->offset;

	if (part->offset != walked->told)
		walked->wrong = "a walk shows parts of a slab out of order, or not all";
	if (part->lists > 1)
		walked->wrong = "a free object is on two lists";
	if (part->state != SY_PART_USED && !slab->large && memchr(walked->machine->shadow + model_place(walked->machine, start), SHADOW_HELD, part->bytes))
		walked->wrong = "a walk shows memory as free that a client holds";
	walked->told += part->bytes;
	return !walked->wrong;
}

static verdict check_walk(struct machine *machine, struct sy_heap *heap)
{
	struct walked walked = { .machine = machine };
	const struct sy_visitor visitor = { see_slab, see_part, &walked, NULL };

	sy_heap_walk(heap, &visitor);
	if (!walked.wrong && walked.told != walked.bytes)
		walked.wrong = "a walk does not show all of a slab";
	if (!walked.wrong && walked.pages != heap->counters.slab_pages + heap->counters.large_pages)
		walked.wrong = "a walk shows other slabs than the heap has";
	return walked.wrong;
}

verdict model_check(struct machine *machine)
{
	verdict wrong = machine->complaint;

	for (unsigned i = 0; i < machine->config->heaps && !wrong; i++)
		if (machine->heaps[i])
			wrong = sy_heap_check(machine->heaps[i]);
	for (unsigned i = 0; i < machine->config->heaps && !wrong; i++)
		if (machine->heaps[i])
			wrong = check_unused(machine, i);
	for (unsigned i = 0; machine->result->checks % WALK_EVERY == 0 && i < machine->config->heaps && !wrong; i++)
		if (machine->heaps[i])
			wrong = check_walk(machine, machine->heaps[i]);
	if (!wrong)
		wrong = sy_pages_check(machine->pages);
	for (uint32_t i = 0; i < machine->object_count && !wrong; i++)
		wrong = model_contents(&machine->objects[i]);
	for (uint32_t i = 0; i < machine->cache_count && !wrong; i++)
		if (machine->caches[i].exists)
			wrong = check_counts(machine, &machine->caches[i]);
	for (uint32_t i = 0; i < machine->waiting_count && !wrong; i++) {
		const struct model_waiting *waiting = &machine->waiting[i];

		if (!model_in_heap(machine, machine->caches[waiting->cache].heap, waiting->memory))
			wrong = "memory of an RCU-typesafe cache was given back before the grace period was over";
	}
	machine->result->checks++;
	return wrong;
}
