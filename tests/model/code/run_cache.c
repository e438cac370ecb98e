/*
 * Runs of pages that slots keep whole (core/backend/run_cache.c), at all interleavings of their owners with threads that take
 * them away: when memory runs short, for a shrink, or as a slot ends. A check, a walk and a sum of live bytes run beside.
 *
 * The heap is as a program's. Every page has an owner or none. A thread that gets a run writes to its first and last page, and
 * finds that again when it frees the run. In the end the live bytes that slots count are true; if a run is kept, that is
 * known; and with everything freed and given back the heap holds no large page.
 */
#include "core/types.h"
#include <string.h>

#include "core/this_slot.h"
#include "core/backend/large.h"
#include "core/backend/run_cache.h"
#include "schedule.h"

#define PAGES 4096u
#define RUNS 16u
#define BYTES ((size_t)32 * SY_PAGE_SIZE) /* a block */
#define SMALLER ((size_t)29 * SY_PAGE_SIZE) /* is served by one of these, too */
#define ROW ((size_t)40 * SY_PAGE_SIZE) /* two blocks, searched for by best_fit.c */

extern const struct sy_policy sy__slub;

static struct {
	struct sy_heap *heap;
	char *runs[RUNS];
	size_t bytes[RUNS];
	unsigned there;
	uint8_t held[PAGES];
} world;

static void become(const char *run, size_t bytes, uint8_t from, const char *wrong)
{
	size_t first = (size_t)(run - world.heap->run_cache_memory) / SY_PAGE_SIZE;

	for (size_t i = first; i < first + (bytes + SY_PAGE_SIZE - 1) / SY_PAGE_SIZE; i++) {
		if (world.held[i] != from)
			model_wrong(wrong);
		world.held[i] = !from;
	}
}

static uint64_t *last_word(unsigned at)
{
	return (uint64_t *)(void *)(world.runs[at] + world.bytes[at]) - 1;
}

static void take(unsigned at, size_t bytes)
{
	world.runs[at] = world.heap->malloc_this_slot(bytes, world.heap);
	world.bytes[at] = bytes;
	if (!world.runs[at])
		model_wrong("there is no memory");
	become(world.runs[at], bytes, 0, "a run is had twice");
	*(uint64_t *)(void *)world.runs[at] = at;
	*last_word(at) = at;
}

static void give(unsigned at)
{
	if (*(uint64_t *)(void *)world.runs[at] != at || *last_word(at) != at)
		model_wrong("a run has been written to");
	become(world.runs[at], world.bytes[at], 1, "a run is nobody's");
	world.heap->kfree_this_slot(world.runs[at], world.heap);
	world.bytes[at] = 0;
}

/* ---- What there is at first: so many runs of the first slot's, of which it keeps the last few; and some of the second's ---- */

/* A run is given twice in one of the models. */
static void ignore_bug(struct sy_heap *heap, enum sy_bug kind, const void *address)
{
	(void)heap;
	(void)kind;
	(void)address;
}

static void open_heap(void)
{
	const struct sy_pages_config machine = { .zone_count = 1, .zones = { { .name = "Normal", .pages = PAGES, .min = 1, .low = 2, .high = 2 } },
	                                         .slots = MODEL_THREADS + 1, .pageblock_order = 9, .commit_growth = true };
	struct sy_heap_config config;

	model_share(&world, sizeof(world));
	sy_heap_defaults(&sy__slub, &config);
	config.threads = true;
	config.sizing.exact_runs = true;
	world.heap = sy_heap_create(sy_pages_create(&machine), &config);
	if (!world.heap)
		model_wrong("there is no heap");
	world.heap->on_bug = ignore_bug;
}

static void fill(unsigned first, unsigned kept)
{
	open_heap();
	model_on_slot(2);
	take(RUNS - 1, BYTES);
	model_on_slot(1);
	for (unsigned i = 0; i < first; i++)
		take(i, BYTES);
	for (unsigned i = first - kept; i < first; i++)
		give(i);
}

static void one_kept(void)
{
	fill(2, 1);
}

static void two_kept(void)
{
	fill(3, 2);
}

static void all_kept(void)
{
	fill(SY__RUN_CACHE_RUNS + 1, SY__RUN_CACHE_RUNS);
}

static void none_kept(void)
{
	fill(1, 0);
}

/* ---- Owners ----------------------------------------------------------------------------------------------------------- */

static void takes(void)
{
	take(10, BYTES);
}

static void gives_and_takes(void)
{
	give(0);
	take(10, SMALLER);
	give(10);
}

static void takes_and_gives(void)
{
	take(10, BYTES);
	give(0);
	take(11, BYTES);
}

static void gives(void)
{
	give(0);
}

/* Does nothing, as other slots don't have the run. */
static void gives_twice(void)
{
	give(0);
	world.heap->kfree_this_slot(world.runs[0], world.heap);
	take(10, BYTES);
	take(11, BYTES);
}

static void ends_slot(void)
{
	unsigned slot;

	give(0);
	if (sy__call_enter(&slot)) {
		sy__run_cache_flush_slot(world.heap, slot);
		sy__call_leave();
	}
}

static void hands_over(void)
{
	take(10, BYTES);
	__atomic_store_n(&world.there, 1, __ATOMIC_RELEASE);
}

/* ---- Others ----------------------------------------------------------------------------------------------------------- */

static void gives_what_comes(void)
{
	model_wait_for(&world.there);
	give(10);
	take(12, BYTES);
}

/* Pages whose memory isn't there: before it comes, all kept runs go. */
static void grows(void)
{
	take(13, ROW);
}

/* The same without the search for a run. */
static void ends_all(void)
{
	unsigned slot;

	if (sy__call_enter(&slot)) {
		sy__run_cache_flush(world.heap);
		sy__call_leave();
	}
}

static void works_too(void)
{
	give(RUNS - 1);
	take(13, BYTES);
}

static void asks_what_lives(void)
{
	sy__large_live(world.heap);
}

static void shrinks(void)
{
	sy_heap_shrink(world.heap);
}

static bool sees_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	if (slab->large && part->state == SY_PART_USED)
		*(size_t *)context += part->bytes;
	return true;
}

static bool sees_slab(void *context, const struct sy_slab *slab)
{
	(void)context;
	(void)slab;
	return true;
}

/* A kept run is no object. */
static void looks(void)
{
	const char *wrong = sy_heap_check(world.heap);
	size_t seen = 0;
	const struct sy_visitor visitor = { .context = &seen, .slab = sees_slab, .part = sees_part };

	if (wrong)
		model_wrong(wrong);
	if (sy_heap_walk(world.heap, &visitor) && seen != BYTES && seen != 2 * BYTES && seen != BYTES + SMALLER)
		model_wrong("a walk sees what nobody has");
}

/* ---- The end ---------------------------------------------------------------------------------------------------------- */

static bool any_kept(void)
{
	for (unsigned slot = 0; slot < sy__slots_high(); slot++)
		for (unsigned place = 0; place < SY__RUN_CACHE_RUNS; place++)
			if (sy__run_cache_of(world.heap, slot)->first[place])
				return true;
	return false;
}

static const char *verify(void)
{
	const char *wrong = sy_heap_check(world.heap);
	size_t live = 0;

	for (unsigned i = 0; i < RUNS; i++)
		live += world.bytes[i];
	if (wrong)
		return wrong;
	if (live != sy__large_live(world.heap))
		return "what lives is not what slots count";
	if (any_kept() && !sy__run_cache_any(world.heap))
		return "a run is kept, and nobody would look for it";
	model_on_slot(1);
	for (unsigned i = 0; i < RUNS; i++)
		if (world.bytes[i])
			give(i);
	sy_heap_shrink(world.heap);
	if (world.heap->counters.large_pages)
		return "a run is lost";
	return sy_heap_check(world.heap);
}

#define MODEL(title, start, ...) { .name = title, .set_up = start, .threads = { __VA_ARGS__ }, .verify = verify }
#define STOP(title, start, ...) { .name = title, .set_up = start, .threads = { __VA_ARGS__ }, .stops = true, .verify = verify }

int main(int argc, char **argv)
{
	static const struct model models[] = {
		MODEL("grows, one taken", one_kept, takes, grows),
		MODEL("grows, one given", one_kept, gives, grows),
		MODEL("ends", two_kept, takes_and_gives, ends_all),
		MODEL("ends twice", one_kept, gives, ends_all, ends_all),
		MODEL("room", all_kept, gives, ends_all),
		MODEL("slot ends", one_kept, ends_slot, ends_all),
		MODEL("hand over", one_kept, hands_over, gives_what_comes, ends_all),
		MODEL("given twice", none_kept, gives_twice, works_too),
		MODEL("counts", one_kept, takes, asks_what_lives),
		STOP("shrink", one_kept, gives_and_takes, shrinks),
		STOP("looks", one_kept, gives_and_takes, looks),
		{ .name = NULL },
	};
	static const struct mutant mutants[] = {
		/* A kept run is put there without a release; its owner takes it by a load and a store. Other slots take it
		 * so, too, or without an acquire. */
		{ "runs_no_release", "ends", "a race", "sy__run_cache_put", NULL, STORES, 0, NO_RELEASE, 0 },
		{ "runs_taken_by_store", "ends", "", "sy__run_cache_take", NULL, SWAPS, 0, BY_STORE, 0 },
		{ "runs_no_acquire", "ends", "a race", "flush_one", "sy__run_cache_take_out", SWAPS, 0, NO_ACQUIRE, 0 },
		{ "runs_ended_by_store", "ends twice", "", "flush_one", "sy__run_cache_take_out", SWAPS, 0, BY_STORE, 0 },
		/* A thread that takes a run away leaves its number. A slot's end forgets its runs, and so does one that
		 * makes room for another run. */
		{ "runs_left", "ends", "", "flush_one", "sy__run_cache_take_out", SWAPS, 0, NOT_DONE, 0 },
		{ "runs_forgotten", "slot ends", "", "sy__run_cache_flush_slot", "sy__run_cache_take_out", SWAPS, 0, READS, 0 },
		{ "runs_room_lost", "room", "", "sy__run_cache_make_room", "sy__run_cache_take_out", SWAPS, 0, READS, 0 },
		/* The mark says after the look, not before it, that nothing is kept. A plain sum counts live bytes. A run is
		 * kept twice. */
		{ "runs_said_late", "ends twice", "nobody would look", "sy__run_cache_flush", "sy__run_cache_flush", STORES, 1, LATE, 0 },
		{ "runs_plain_sum", "counts", "a race", "count_in_slot", NULL, STORES, 0, PLAIN, 0 },
		{ "runs_kept_twice", "given twice", "", "is_cached", NULL, LOADS, 0, READS, 1 },
		{ .name = NULL },
	};

	return model_try(models, mutants, argc, argv);
}
