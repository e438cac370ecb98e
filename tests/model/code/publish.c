/*
 * The heap behind malloc. The first thread that needs it makes it (malloc/process.c); other threads make none of their own
 * meanwhile, and when they find it, they find it whole.
 *
 * The model was seen to find: a store of the heap without a release, a look for it without an acquire, and a heap made without
 * asking again with the lock.
 */
#define _GNU_SOURCE
#include "schedule.h"

/* All threads of a model are one of the system's: each is known by its slot. */
#include "malloc/parts.h"
static char callers[8];
#define sy__caller() ((const void *)&callers[model_slot()])
#include "malloc/process.c"

#include <stdlib.h>

static struct sy_heap heap;
static unsigned made;
static const struct sy_policy first = { .name = "first" };
const struct sy_policy *const sy_policies[] = { &first, NULL };

struct sy_heap *sy_heap_open(const char *wanted, const struct sy_heap_options *options, const char **error)
{
	(void)wanted;
	(void)options;
	(void)error;
	if (made++)
		model_wrong("two heaps are made");
	heap.slots = 3;
	return &heap;
}

bool sy__debug_parse(struct sy_debug_config *config, const char *text, struct sy_fault *fault)
{
	(void)config;
	(void)text;
	(void)fault;
	return true;
}

bool sy_spec_parse(struct sy_heap_config *config, const char *wanted, struct sy_fault *fault)
{
	(void)config;
	(void)wanted;
	(void)fault;
	return true;
}

const char *sy__setting(const char *name)
{
	(void)name;
	return NULL;
}

size_t sy__setting_bytes(const char *name)
{
	(void)name;
	return 0;
}

bool sy__setting_on(const char *name, bool usually)
{
	(void)name;
	return usually;
}

void sy__setting_tell(const char *name, const char *value, const char *why)
{
	(void)name;
	(void)value;
	(void)why;
}

void sy__setting_refuse(const char *name, const char *value, const char *why)
{
	(void)name;
	(void)value;
	(void)why;
	abort();
}

struct sy_heap *sy__sampled;

void sy__mapping_count(struct mapping_counts *counts)
{
	*counts = (struct mapping_counts){ 0 };
}

void sy__serve(struct sy_heap *served, bool alone)
{
	(void)alone;
	served->cpus = 7;
}

static void set_up(void)
{
	model_share(&the_heap, sizeof(the_heap));
	model_share(&starting, sizeof(starting));
	model_share(&heap, sizeof(heap));
	model_share(&made, sizeof(made));
}

static void uses(void)
{
	struct sy_heap *found = sy__process_heap();

	if (found != &heap || found->slots != 3 || found->cpus != 7)
		model_wrong("a heap is found that is not whole");
}

static const char *verify(void)
{
	return made == 1 ? NULL : "there is no heap";
}

int main(int argc, char **argv)
{
	static const struct model models[] = {
		{ .name = "first heap", .set_up = set_up, .threads = { uses, uses, uses }, .verify = verify },
		{ .name = NULL },
	};
	static const struct mutant mutants[] = {
		/* The heap is published without a release, or found without an acquire. */
		{ "heap_no_release", "first heap", "a race", "sy__process_heap", NULL, STORES, 0, NO_RELEASE, 0 },
		{ "heap_no_acquire", "first heap", "a race", "sy__process_heap", NULL, LOADS, 0, NO_ACQUIRE, 0 },
		{ .name = NULL },
	};

	return model_try(models, mutants, argc, argv);
}
