/*
 * Replays the log of a kernel that runs on slabyard: makes every call of the core that the kernel made, one after the other.
 *
 * The kernel was booted with slabyard.log=1. /proc/slabyard_log then has a line for each call (ports/linux/log.c has the format).
 * Unlike in a trace nothing has to be inferred: the log has the creation and destruction of caches, each object of bulk calls,
 * ends of grace periods, ticks, and what was given back under pressure. So the same policy must hold the same pages at the end.
 * Any difference is an error of the port, of the log, or of the core's independence from what is below it.
 *
 * Pages. A `pages` line tells which page frame the kernel's page allocator gave to the CPU's next call. The call gets the same
 * frame here, by a placer of library/lab/replay.h, or none where the kernel got none. Policies that go by addresses then decide as
 * they did in the kernel. A request that the log does not have, or that has another size there, is counted and gets any pages.
 * Bookkeeping has a zone of its own. Old logs have no such lines; all pages are any pages then.
 *
 * Objects are known by their addresses in the kernel; a table maps these to the addresses here.
 *
 * Time. Memory waits for grace periods in the order of its frees, in the kernel and here, so each `grace` line ends the longest
 * wait. The heap never ends one by time. The clock stands at the time of the line. The kernel's own clock is finer than the
 * log's, so a tick sets it forward to where something is due.
 *
 * Slots are the kernel's CPUs. What several CPUs did at once is done here in the order of the log. So two runs agree to the page
 * only on one CPU.
 */
#include "kernel_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "library/lab/replay.h"

#define NODE_PAGES ((uint64_t)1 << 22) /* of every node; address space, not memory */
#define MOST_GIVEN 16u                 /* blocks that one call takes */
#define NOTHING UINT64_MAX             /* no frame: the kernel's page allocator had none */
#define GFP_RECLAIMABLE 0x10u
#define GFP_THISNODE 0x200000u
#define MOST_WORDS 8u

/* ---- A table from the kernel's addresses to ours ------------------------------------------------------------------ */

struct pair {
	uint64_t key; /* 0: none */
	void *value;
};

struct table {
	struct pair *pairs;
	uint64_t room, count; /* room: a power of two, at least twice the count */
};

static uint64_t home_of(const struct table *table, uint64_t key)
{
	return (key >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 20 & (table->room - 1);
}

static uint64_t place_of(const struct table *table, uint64_t key)
{
	uint64_t at = home_of(table, key);

	while (table->pairs[at].key && table->pairs[at].key != key)
		at = (at + 1) & (table->room - 1);
	return at;
}

static bool grow(struct table *table)
{
	struct table larger = { .room = table->room ? 2 * table->room : 1 << 16, .count = table->count };

	larger.pairs = calloc((size_t)larger.room, sizeof(*larger.pairs));
	if (!larger.pairs)
		return false;
	for (uint64_t i = 0; i < table->room; i++)
		if (table->pairs[i].key)
			larger.pairs[place_of(&larger, table->pairs[i].key)] = table->pairs[i];
	free(table->pairs);
	*table = larger;
	return true;
}

/* False: no memory. */
static bool put(struct table *table, uint64_t key, void *value)
{
	struct pair *pair;

	if (2 * table->count >= table->room && !grow(table))
		return false;
	pair = &table->pairs[place_of(table, key)];
	table->count += !pair->key;
	*pair = (struct pair){ key, value };
	return true;
}

static void *get(const struct table *table, uint64_t key)
{
	return table->room ? table->pairs[place_of(table, key)].value : NULL;
}

/* Removes a pair. Linear probing would not find some pairs behind the hole any more; these move up. */
static void *take(struct table *table, uint64_t key)
{
	uint64_t hole = table->room ? place_of(table, key) : 0, at;
	void *value;

	if (!table->room || !table->pairs[hole].key)
		return NULL;
	value = table->pairs[hole].value;
	table->count--;
	for (at = (hole + 1) & (table->room - 1); table->pairs[at].key; at = (at + 1) & (table->room - 1)) {
		uint64_t home = home_of(table, table->pairs[at].key);

		if (((at - home) & (table->room - 1)) >= ((at - hole) & (table->room - 1))) {
			table->pairs[hole] = table->pairs[at];
			hole = at;
		}
	}
	table->pairs[hole] = (struct pair){ 0 };
	return value;
}

/* ---- The machine -------------------------------------------------------------------------------------------------- */

/* The blocks of pages that a CPU's next call gets, in order. */
struct given {
	struct {
		uint64_t frame; /* or NOTHING */
		unsigned order, node;
	} blocks[MOST_GIVEN];
	unsigned count, taken;
};

struct log_replay {
	const struct spec *spec;
	struct sy_pages *pages;
	struct sy_heap *heap;
	struct sy_lab_placer placer;
	struct table objects, caches;
	struct given given[SY_MAX_SLOTS];
	unsigned slots, nodes;
	unsigned slot; /* of the call in progress */
	uint64_t lines, unknown; /* unknown: frees of objects whose allocation is not in the log */
	uint64_t requests;   /* `pages` lines */
	uint64_t mismatched; /* requests for pages in the log alone, here alone, or for a frame that is not free here */
};

static uint64_t now;

static uint64_t clock_of_log(void)
{
	return now;
}

/* The block that the log has for this request; any block if the log has none, or one of another order. */
static struct sy_page *as_given(struct log_replay *replay, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use use)
{
	struct given *given = &replay->given[replay->slot];
	struct sy_page *page = NULL;

	if (given->taken < given->count && given->blocks[given->taken].order == order) {
		uint64_t frame = given->blocks[given->taken].frame;
		unsigned there = given->blocks[given->taken++].node;

		if (frame == NOTHING)
			return NULL;
		if (frame < NODE_PAGES && there < replay->nodes)
			page = sy_lab_take_at(replay->pages, there * NODE_PAGES + frame, order, use);
	}
	if (page)
		return page;
	replay->mismatched += replay->requests != 0;
	return sy_lab_take_any(replay->pages, slot, order, flags, node, use);
}

static struct sy_page *place(void *context, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use use)
{
	struct log_replay *replay = context;

	if (use == SY_USE_METADATA) /* movable requests are served from zone Movable, on the first node */
		return sy_lab_take_any(replay->pages, slot, order, flags | SY_MOVABLE, 0, use);
	return as_given(replay, slot, order, flags, node, use);
}

static void construct(void *object, size_t size)
{
	(void)object;
	(void)size;
}

static bool start(struct log_replay *replay, struct fault *fault)
{
	struct sy_pages_config pages = { .zone_count = replay->nodes + 1, .slots = replay->slots, .pageblock_order = 9 };
	struct sy_heap_config heap = spec_heap_config(replay->spec, replay->slots, replay->nodes);

	for (unsigned i = 0; i < replay->nodes; i++)
		pages.zones[i] = (struct sy_zone_config){ .name = "Normal", .node = i, .start_page = i * NODE_PAGES,
			                                  .pages = NODE_PAGES };
	pages.zones[replay->nodes] = (struct sy_zone_config){ .name = "Movable", .start_page = replay->nodes * NODE_PAGES,
		                                              .pages = NODE_PAGES };
	sy_platform_set_clock(clock_of_log);
	replay->pages = sy_pages_create(&pages);
	replay->placer = (struct sy_lab_placer){ place, replay };
	if (replay->pages) {
		sy_lab_set_placer(replay->pages, &replay->placer);
		replay->heap = sy_heap_create(replay->pages, &heap);
	}
	return replay->heap || refuse(fault, "no memory for the machine of the log");
}

static void stop(struct log_replay *replay)
{
	if (replay->heap)
		sy_heap_destroy(replay->heap);
	if (replay->pages)
		sy_pages_destroy(replay->pages);
	free(replay->objects.pairs);
	free(replay->caches.pairs);
}

/* ---- Lines -------------------------------------------------------------------------------------------------------- */

/* The words of a line behind time and CPU: the verb and its numbers. */
struct line {
	char *words[MOST_WORDS];
	unsigned count, slot;
};

static uint64_t hexadecimal(const char *word)
{
	return strtoull(word, NULL, 16);
}

static unsigned flags_of(const char *gfp)
{
	uint64_t bits = hexadecimal(gfp);

	return (bits & GFP_RECLAIMABLE ? SY_RECLAIMABLE : 0u) | (bits & GFP_THISNODE ? SY_THISNODE : 0u);
}

static bool remember(struct log_replay *replay, struct table *table, const char *address, void *value, struct fault *fault)
{
	if (!value)
		return refuse(fault, "line %" PRIu64 " of the log: there is no memory for what the kernel got", replay->lines);
	return put(table, hexadecimal(address), value) || refuse(fault, "no memory for the objects of the log");
}

static struct sy_cache *cache_of(const struct log_replay *replay, const char *address, struct fault *fault)
{
	struct sy_cache *cache = get(&replay->caches, hexadecimal(address));

	if (!cache)
		refuse(fault, "line %" PRIu64 " of the log: the cache %s was never created", replay->lines, address);
	return cache;
}

static bool create(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	struct sy_cache_config config = { .name = line->count > 6 ? line->words[6] : "", .size = (size_t)strtoull(line->words[2], NULL, 10),
		                          .align = (size_t)strtoull(line->words[3], NULL, 10),
		                          .flags = (unsigned)hexadecimal(line->words[4]),
		                          .constructor = strcmp(line->words[5], "0") ? construct : NULL };

	return remember(replay, &replay->caches, line->words[1], sy_cache_create(replay->heap, &config), fault);
}

static bool destroy(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	struct sy_cache *cache = cache_of(replay, line->words[1], fault);

	if (!cache)
		return false;
	take(&replay->caches, hexadecimal(line->words[1]));
	return sy_cache_destroy(cache, NULL) ||
	       refuse(fault, "line %" PRIu64 " of the log: the cache has objects that the kernel had freed", replay->lines);
}

static bool shrink(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	struct sy_cache *cache = cache_of(replay, line->words[1], fault);

	if (cache)
		sy_cache_shrink(cache);
	return cache;
}

static bool alloc(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	struct sy_cache *cache = cache_of(replay, line->words[1], fault);
	void *object = cache ? sy_cache_alloc(cache, line->slot, flags_of(line->words[3]), atoi(line->words[4])) : NULL;

	if (cache && object && !hexadecimal(line->words[2])) /* the kernel failed for lack of bookkeeping memory, which is not logged */
		sy_cache_free(cache, line->slot, object);
	return cache && (!hexadecimal(line->words[2]) || remember(replay, &replay->objects, line->words[2], object, fault));
}

static bool free_object(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	struct sy_cache *cache = cache_of(replay, line->words[1], fault);
	void *object = take(&replay->objects, hexadecimal(line->words[2]));

	replay->unknown += !object;
	if (cache && object)
		sy_cache_free(cache, line->slot, object);
	return cache;
}

static bool general_alloc(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	size_t bytes = (size_t)strtoull(line->words[1], NULL, 10);
	void *object = sy_kmalloc(replay->heap, line->slot, bytes, flags_of(line->words[3]), atoi(line->words[4]));

	if (hexadecimal(line->words[2]))
		return remember(replay, &replay->objects, line->words[2], object, fault);
	sy_kfree(replay->heap, line->slot, object);
	return true;
}

static bool general_free(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	void *object = take(&replay->objects, hexadecimal(line->words[1]));

	(void)fault;
	replay->unknown += !object;
	sy_kfree(replay->heap, line->slot, object);
	return true;
}

static bool grace(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	(void)line;
	return sy_lab_end_grace(replay->heap) ||
	       refuse(fault, "line %" PRIu64 " of the log: nothing waits for a grace period", replay->lines);
}

static bool tick(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	uint64_t due = sy_lab_tick_due(replay->heap);

	(void)line;
	(void)fault;
	now = now < due ? due : now;
	sy_lab_tick(replay->heap);
	return true;
}

static bool give(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	(void)line;
	(void)fault;
	sy_lab_ask(replay->heap);
	return true;
}

/* No call: notes what the CPU's next call gets. */
static bool pages(struct log_replay *replay, const struct line *line, struct fault *fault)
{
	struct given *given = &replay->given[line->slot];
	uint64_t frame = strcmp(line->words[1], "-") ? strtoull(line->words[1], NULL, 10) : NOTHING;

	if (given->count == MOST_GIVEN)
		return refuse(fault, "line %" PRIu64 " of the log: no call takes so many blocks of pages", replay->lines);
	given->blocks[given->count].frame = frame;
	given->blocks[given->count].order = (unsigned)strtoul(line->words[2], NULL, 10);
	given->blocks[given->count++].node = (unsigned)strtoul(line->words[3], NULL, 10);
	replay->requests++;
	return true;
}

/* Counts the blocks that the kernel's call took and ours did not. */
static void end_call(struct log_replay *replay)
{
	struct given *given = &replay->given[replay->slot];

	replay->mismatched += given->count - given->taken;
	given->count = given->taken = 0;
}

static const struct verb {
	const char *name;
	unsigned words; /* at least, the verb included */
	bool (*run)(struct log_replay *, const struct line *, struct fault *);
} verbs[] = {
	{ "alloc", 5, alloc },     { "free", 3, free_object },  { "kmalloc", 5, general_alloc }, { "kfree", 2, general_free },
	{ "grace", 2, grace },     { "tick", 1, tick },         { "give", 1, give },             { "create", 6, create },
	{ "destroy", 2, destroy }, { "shrink", 2, shrink },     { "pages", 4, pages },
};

static bool run_verb(struct log_replay *replay, const struct verb *verb, const struct line *line, struct fault *fault)
{
	bool good;

	replay->slot = line->slot;
	good = verb->run(replay, line, fault);
	if (verb->run != pages)
		end_call(replay);
	return good;
}

static unsigned split(char *text, char **words)
{
	unsigned count = 0;
	char *rest;

	for (char *word = strtok_r(text, " \n", &rest); word && count < MOST_WORDS + 2; word = strtok_r(NULL, " \n", &rest))
		words[count++] = word;
	return count;
}

static bool run_line(struct log_replay *replay, char *text, struct fault *fault)
{
	char *words[MOST_WORDS + 2];
	unsigned count = split(text, words);
	struct line line = { .count = count > 2 ? count - 2 : 0 };

	replay->lines++;
	if (count < 3)
		return refuse(fault, "line %" PRIu64 " of the log has too few words", replay->lines);
	now = strtoull(words[0], NULL, 10);
	line.slot = (unsigned)strtoul(words[1], NULL, 10);
	if (line.slot >= replay->slots)
		return refuse(fault, "line %" PRIu64 " of the log: CPU %u; --cpus says how many there are", replay->lines, line.slot);
	memcpy(line.words, words + 2, line.count * sizeof *words);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(line.words[0], verbs[i].name) == 0 && line.count >= verbs[i].words)
			return run_verb(replay, &verbs[i], &line, fault);
	return refuse(fault, "line %" PRIu64 " of the log: %s is nothing that a kernel logs so", replay->lines, line.words[0]);
}

/* Runs the first `records` lines. The kernel may have logged more since. */
static bool run_log(struct log_replay *replay, FILE *log, uint64_t records, struct fault *fault)
{
	char *text = NULL;
	size_t room = 0;
	bool good = true;

	while (good && replay->lines < records && getline(&text, &room, log) >= 0)
		good = run_line(replay, text, fault);
	free(text);
	if (good && replay->lines < records)
		return refuse(fault, "the log has %" PRIu64 " lines, not %" PRIu64 ": it was cut off", replay->lines, records);
	return good;
}

/* ---- The whole ---------------------------------------------------------------------------------------------------- */

static bool print(const struct log_replay *replay, FILE *out, struct fault *fault)
{
	const struct sy_heap_counters *counters = sy_lab_counters(replay->heap);
	struct json json;

	json_begin(&json, out);
	json_object(&json, NULL);
	json_count(&json, "unknown_frees", replay->unknown);
	json_count(&json, "page_requests", replay->requests);
	json_count(&json, "page_requests_apart", replay->mismatched);
	json_count(&json, "slab_pages", counters->slab_pages);
	json_count(&json, "large_pages", counters->large_pages);
	json_object_end(&json);
	return json_finish(&json, fault);
}

bool kernel_log_print(const struct spec *spec, const struct kernel_log_options *options, FILE *out, struct fault *fault)
{
	struct log_replay replay = { .spec = spec, .slots = options->cpus, .nodes = options->nodes };
	FILE *log;
	bool good;

	if (!spec->policy)
		return refuse(fault, "a kernel's log is of a policy, not of a malloc");
	log = fopen(options->path, "re");
	if (!log)
		return refuse(fault, "cannot read the log %s: %s", options->path, strerror(errno));
	good = start(&replay, fault) && run_log(&replay, log, options->records, fault) && print(&replay, out, fault);
	fclose(log);
	stop(&replay);
	return good;
}
