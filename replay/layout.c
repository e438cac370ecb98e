/*
 * The layout of memory after a script: what `slabyard layout` draws.
 *
 * A script has one command a line; a # begins a comment. It runs on a machine of its own with 16 MiB for each memory node, whose
 * clock only `tick` moves.
 *
 *     cpus N, nodes N               the machine (1 and 1); before all others
 *     cache NAME SIZE [align=N] [ctor] [hwcache] [rcu] [nomerge]
 *     alloc ID... CACHE [cpu=N] [node=N]
 *     kmalloc ID... SIZE [cpu=N] [node=N]
 *     free ID... [cpu=N]
 *     shrink                        all caches give back what they can
 *     drain CPU                     as if that CPU went offline
 *     tick SECONDS                  time passes, with what is due in it
 *     show [TITLE]                  draws memory as it is now; at the end of the script, too, if anything happened since
 *
 * An ID is a name of up to 15 letters, digits and underscores. a..f stands for a b c d e f, and o1..o9 for nine
 * objects. A name may be used again once its object is freed.
 *
 * Everything is computed into memory first, so a script with a mistake prints the complaint and nothing else. Addresses are never
 * printed: a block of pages is named by its page number, everything in it by offsets.
 */
#include "layout.h"
#include "programs/options.h"

#include "library/lab/replay.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 1024
#define MOST_WORDS 256
#define NODE_PAGES 4096
#define BLANKS " \t\r\n"

/* The words of a line. option() and flag() take out what they find, so only the positional words are left. */
struct words {
	char *at[MOST_WORDS];
	unsigned count;
};

static uint64_t script_time;

static uint64_t script_clock(void)
{
	return script_time;
}

__attribute__((format(printf, 3, 4))) static bool refuse_line(const struct layout *layout, struct fault *fault,
                                                              const char *format, ...)
{
	char text[300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return refuse(fault, "line %u: %s", layout->line, text);
}

/* ---- The machine ---------------------------------------------------------------------------------------------- */

static bool start(struct layout *layout, struct fault *fault)
{
	struct sy_pages_config pages = { .zone_count = layout->nodes, .slots = layout->cpus, .pageblock_order = 9 };
	struct sy_heap_config heap = spec_heap_config(layout->spec, layout->cpus, layout->nodes);

	if (layout->heap)
		return true;
	for (unsigned i = 0; i < layout->nodes; i++)
		pages.zones[i] = (struct sy_zone_config){ .name = "Normal", .node = i, .start_page = (uint64_t)i * NODE_PAGES,
			                                  .pages = NODE_PAGES };
	layout->pages = sy_pages_create(&pages);
	if (layout->pages)
		layout->heap = sy_heap_create(layout->pages, &heap);
	return layout->heap || refuse(fault, "no memory for the machine of the script");
}

static void stop(struct layout *layout)
{
	if (layout->heap)
		sy_heap_destroy(layout->heap);
	if (layout->pages)
		sy_pages_destroy(layout->pages);
}

/* ---- Words ---------------------------------------------------------------------------------------------------- */

static void remove_word(struct words *words, unsigned at)
{
	words->count--;
	memmove(words->at + at, words->at + at + 1, (words->count - at) * sizeof *words->at);
}

/* Takes name=VALUE out of the words and returns the value; NULL: it is not among them. */
static const char *option(struct words *words, const char *name)
{
	size_t length = strlen(name);

	for (unsigned i = 1; i < words->count; i++) {
		char *word = words->at[i];

		if (strncmp(word, name, length) || word[length] != '=')
			continue;
		remove_word(words, i);
		return word + length + 1;
	}
	return NULL;
}

/* Takes a word out. False: it is not among them. */
static bool flag(struct words *words, const char *name)
{
	for (unsigned i = 3; i < words->count; i++) {
		if (strcmp(words->at[i], name) == 0) {
			remove_word(words, i);
			return true;
		}
	}
	return false;
}

static bool number(const struct layout *layout, const char *what, const char *text, uint64_t min, uint64_t max,
                   uint64_t *value, struct fault *fault)
{
	if (number_whole(text, min, max, value))
		return true;
	return refuse_line(layout, fault, "%s cannot be %s: give a number from %" PRIu64 " to %" PRIu64, what, text, min, max);
}

/* The numbers of cpu= and node=. */
static bool place(const struct layout *layout, struct words *words, unsigned *cpu, int *node, struct fault *fault)
{
	const char *cpu_text = option(words, "cpu"), *node_text = node ? option(words, "node") : NULL;
	uint64_t cpu_number = 0, node_number;

	if (cpu_text && !number(layout, "cpu", cpu_text, 0, layout->cpus - 1, &cpu_number, fault))
		return false;
	if (node_text && !number(layout, "node", node_text, 0, layout->nodes - 1, &node_number, fault))
		return false;
	*cpu = (unsigned)cpu_number;
	if (node)
		*node = node_text ? (int)node_number : SY_ANY_NODE;
	return true;
}

/* ---- Names ---------------------------------------------------------------------------------------------------- */

static bool is_name(const char *text)
{
	size_t length = 0;

	while (isalnum((unsigned char)text[length]) || text[length] == '_')
		length++;
	return length && !text[length] && length < LAYOUT_NAME_BYTES;
}

static struct layout_cache *cache_named(struct layout *layout, const char *name)
{
	for (unsigned i = 0; i < layout->cache_count; i++)
		if (strcmp(layout->caches[i].name, name) == 0)
			return &layout->caches[i];
	return NULL;
}

static struct layout_object *live_object(struct layout *layout, const char *name)
{
	for (unsigned i = 0; i < layout->object_count; i++)
		if (layout->objects[i].live && strcmp(layout->objects[i].name, name) == 0)
			return &layout->objects[i];
	return NULL;
}

/* What is done for each object that a command names. */
struct request {
	struct layout *layout;
	unsigned cpu;
	int node;
	const struct layout_cache *cache; /* NULL: kmalloc, or a free */
	size_t bytes;
	bool (*serve)(const struct request *, const char *name, struct fault *);
};

/* Digits at the end of a name. */
static size_t digits_of(const char *name)
{
	size_t length = strlen(name), digits = 0;

	while (digits < length && isdigit((unsigned char)name[length - 1 - digits]))
		digits++;
	return digits;
}

/* FIRST..LAST: letters, or names that differ in the number at their ends. */
static bool serve_range(const struct request *request, char *first, const char *last, struct fault *fault)
{
	size_t stem = strlen(first) - digits_of(first);
	bool letters = strlen(first) == 1 && strlen(last) == 1 && isalpha((unsigned char)*first) && isalpha((unsigned char)*last);
	uint64_t from = (unsigned char)*first, to = (unsigned char)*last;

	if (!letters && (!is_name(first) || !is_name(last) || strlen(last) - digits_of(last) != stem ||
	                 strncmp(first, last, stem) || !number_whole(first + stem, 0, 999999, &from) ||
	                 !number_whole(last + stem, 0, 999999, &to)))
		return refuse_line(request->layout, fault, "%s..%s is no range: write a..f or x1..x9, up to 999999", first, last);
	if (from > to || to - from >= LAYOUT_OBJECTS)
		return refuse_line(request->layout, fault, "%s..%s is no range: it goes up, by %u objects at most", first, last,
		                   LAYOUT_OBJECTS);
	for (uint64_t i = from; i <= to; i++) {
		char name[2 * LAYOUT_NAME_BYTES];

		if (letters)
			snprintf(name, sizeof name, "%c", (char)i);
		else
			snprintf(name, sizeof name, "%.*s%" PRIu64, (int)stem, first, i);
		if (!request->serve(request, name, fault))
			return false;
	}
	return true;
}

/* Serves all objects that the words from the second up to `end` name. */
static bool serve_all(const struct request *request, const struct words *words, unsigned end, struct fault *fault)
{
	for (unsigned i = 1; i < end; i++) {
		char *dots = strstr(words->at[i], "..");

		if (dots) {
			*dots = '\0';
			if (!serve_range(request, words->at[i], dots + 2, fault))
				return false;
		} else if (!is_name(words->at[i])) {
			return refuse_line(request->layout, fault, "%s is no name of an object: up to %d letters, digits and underscores",
			                   words->at[i], LAYOUT_NAME_BYTES - 1);
		} else if (!request->serve(request, words->at[i], fault)) {
			return false;
		}
	}
	return true;
}

static bool serve_alloc(const struct request *request, const char *name, struct fault *fault)
{
	struct layout *layout = request->layout;
	struct layout_object object = { .bytes = request->bytes, .cache = request->cache, .live = true };

	if (live_object(layout, name))
		return refuse_line(layout, fault, "%s is in use already: free it first, or use another name", name);
	if (layout->object_count == LAYOUT_OBJECTS)
		return refuse_line(layout, fault, "a script has %d allocations at most", LAYOUT_OBJECTS);
	snprintf(object.name, sizeof object.name, "%s", name);
	object.memory = request->cache ? sy_cache_alloc(request->cache->cache, request->cpu, 0, request->node)
	                               : sy_kmalloc(layout->heap, request->cpu, request->bytes, 0, request->node);
	if (!object.memory)
		return refuse_line(layout, fault, "no memory for %s: each node of a script's machine has %u MiB", name,
		                   (unsigned)((NODE_PAGES * SY_PAGE_SIZE) >> 20));
	layout->objects[layout->object_count++] = object;
	return true;
}

static bool serve_free(const struct request *request, const char *name, struct fault *fault)
{
	struct layout *layout = request->layout;
	struct layout_object *object = live_object(layout, name);

	if (!object)
		return refuse_line(layout, fault, "no object in use is named %s", name);
	object->live = false;
	if (object->cache)
		sy_cache_free(object->cache->cache, request->cpu, object->memory);
	else
		sy_kfree(layout->heap, request->cpu, object->memory);
	return true;
}

/* ---- Commands ------------------------------------------------------------------------------------------------- */

static void construct(void *object, size_t size)
{
	memset(object, 0, size);
}

static bool run_machine(struct layout *layout, struct words *words, struct fault *fault)
{
	bool cpus = strcmp(words->at[0], "cpus") == 0;
	uint64_t value;

	if (layout->heap)
		return refuse_line(layout, fault, "%s must stand before all commands that use the machine", words->at[0]);
	if (words->count != 2)
		return refuse_line(layout, fault, "%s takes one number", words->at[0]);
	if (!number(layout, words->at[0], words->at[1], 1, cpus ? SY_MAX_SLOTS : SY_MAX_NODES, &value, fault))
		return false;
	*(cpus ? &layout->cpus : &layout->nodes) = (unsigned)value;
	return true;
}

static unsigned cache_flags(struct words *words)
{
	return (flag(words, "hwcache") ? SY_CACHE_HWCACHE_ALIGN : 0u) | (flag(words, "rcu") ? SY_CACHE_TYPESAFE_BY_RCU : 0u) |
	       (flag(words, "nomerge") ? SY_CACHE_NO_MERGE : 0u);
}

static bool run_cache(struct layout *layout, struct words *words, struct fault *fault)
{
	const char *align_text = option(words, "align");
	struct sy_cache_config config = { .constructor = flag(words, "ctor") ? construct : NULL, .flags = cache_flags(words) };
	struct layout_cache *cache = &layout->caches[layout->cache_count];
	struct sy_cache_description is;
	uint64_t size, align = 0;

	if (words->count != 3)
		return refuse_line(layout, fault, "write: cache NAME SIZE [align=N] [ctor] [hwcache] [rcu] [nomerge]");
	config.name = words->at[1];
	if (cache_named(layout, config.name))
		return refuse_line(layout, fault, "there is a cache %s already: use another name", config.name);
	if (!is_name(config.name))
		return refuse_line(layout, fault, "%s is no name of a cache: up to %d letters, digits and underscores",
		                   config.name, LAYOUT_NAME_BYTES - 1);
	if (layout->cache_count == LAYOUT_CACHES)
		return refuse_line(layout, fault, "a script has %d caches at most", LAYOUT_CACHES);
	if (!number(layout, "the size", words->at[2], 1, SY_PAGE_SIZE << SY_MAX_ORDER, &size, fault) ||
	    (align_text && !number(layout, "align", align_text, 1, SY_PAGE_SIZE, &align, fault)))
		return false;
	config.size = (size_t)size;
	config.align = (size_t)align;
	cache->cache = sy_cache_create(layout->heap, &config);
	if (!cache->cache)
		return refuse_line(layout, fault, "%s has no cache of that size and alignment, which is a power of two",
		                   spec_name(layout->spec));
	sy_cache_describe(cache->cache, &is);
	cache->object_bytes = is.object_size;
	snprintf(cache->name, sizeof cache->name, "%s", config.name);
	layout->cache_count++;
	return true;
}

static bool run_alloc(struct layout *layout, struct words *words, struct fault *fault)
{
	bool general = strcmp(words->at[0], "kmalloc") == 0;
	struct request request = { .layout = layout, .serve = serve_alloc };
	uint64_t size;

	if (!place(layout, words, &request.cpu, &request.node, fault))
		return false;
	if (words->count < 3)
		return refuse_line(layout, fault, "write: %s ID... %s [cpu=N] [node=N]", words->at[0], general ? "SIZE" : "CACHE");
	if (general) {
		if (!number(layout, "the size", words->at[words->count - 1], 0, SY_PAGE_SIZE << SY_MAX_ORDER, &size, fault))
			return false;
		request.bytes = (size_t)size;
	} else {
		request.cache = cache_named(layout, words->at[words->count - 1]);
		if (!request.cache)
			return refuse_line(layout, fault, "there is no cache %s", words->at[words->count - 1]);
		request.bytes = request.cache->object_bytes;
	}
	return serve_all(&request, words, words->count - 1, fault);
}

static bool run_free(struct layout *layout, struct words *words, struct fault *fault)
{
	struct request request = { .layout = layout, .serve = serve_free };

	if (!place(layout, words, &request.cpu, NULL, fault))
		return false;
	if (words->count < 2)
		return refuse_line(layout, fault, "write: free ID... [cpu=N]");
	return serve_all(&request, words, words->count, fault);
}

static bool run_shrink(struct layout *layout, struct words *words, struct fault *fault)
{
	(void)words;
	(void)fault;
	sy_heap_shrink(layout->heap);
	return true;
}

static bool run_drain(struct layout *layout, struct words *words, struct fault *fault)
{
	uint64_t cpu;

	if (!number(layout, "the CPU", words->at[1], 0, layout->cpus - 1, &cpu, fault))
		return false;
	sy_lab_drain(layout->heap, (unsigned)cpu);
	return true;
}

static bool run_tick(struct layout *layout, struct words *words, struct fault *fault)
{
	uint64_t seconds;

	if (!number(layout, "the time", words->at[1], 1, 86400, &seconds, fault))
		return false;
	for (; seconds; seconds--) {
		script_time += 1000000000;
		sy_heap_tick(layout->heap);
	}
	return true;
}

static bool run_words(struct layout *layout, struct words *words, struct fault *fault)
{
	static const struct {
		const char *name, *wrong; /* wrong: what to say of another number of words; NULL: run() says it */
		unsigned words;
		bool (*run)(struct layout *, struct words *, struct fault *);
	} commands[] = {
		{ "cache", NULL, 0, run_cache },       { "alloc", NULL, 0, run_alloc },        { "kmalloc", NULL, 0, run_alloc },
		{ "free", NULL, 0, run_free },         { "shrink", "shrink stands alone", 1, run_shrink },
		{ "drain", "write: drain CPU", 2, run_drain }, { "tick", "write: tick SECONDS", 2, run_tick },
	};

	if (strcmp(words->at[0], "cpus") == 0 || strcmp(words->at[0], "nodes") == 0)
		return run_machine(layout, words, fault);
	for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (strcmp(commands[i].name, words->at[0]) == 0) {
			layout->shown = false;
			if (commands[i].wrong && words->count != commands[i].words)
				return refuse_line(layout, fault, "%s", commands[i].wrong);
			return start(layout, fault) && commands[i].run(layout, words, fault);
		}
	}
	return refuse_line(layout, fault,
	                   "there is no command %s: there are cpus, nodes, cache, alloc, kmalloc, free, shrink, drain, tick, "
	                   "show",
	                   words->at[0]);
}

/* ---- The script ----------------------------------------------------------------------------------------------- */

static bool show(struct layout *layout, const char *title, struct fault *fault)
{
	if (!start(layout, fault))
		return false;
	layout_snapshot(layout, title);
	layout->shown = true;
	return true;
}

static bool run_line(struct layout *layout, char *line, struct fault *fault)
{
	struct words words = { .count = 0 };
	char *rest = line + strspn(line, BLANKS);

	rest[strcspn(rest, "#")] = '\0';
	for (size_t length = strlen(rest); length && strchr(BLANKS, rest[length - 1]); length--)
		rest[length - 1] = '\0';
	if (strncmp(rest, "show", 4) == 0 && (!rest[4] || strchr(BLANKS, rest[4])))
		return show(layout, rest + 4 + strspn(rest + 4, BLANKS), fault);
	for (char *word = strtok_r(rest, BLANKS, &rest); word; word = strtok_r(NULL, BLANKS, &rest)) {
		if (words.count == MOST_WORDS)
			return refuse_line(layout, fault, "more than %d words", MOST_WORDS);
		words.at[words.count++] = word;
	}
	return !words.count || run_words(layout, &words, fault);
}

static bool run_script(struct layout *layout, FILE *script, struct fault *fault)
{
	char line[LINE_BYTES];

	while (fgets(line, sizeof line, script)) {
		layout->line++;
		if (!strchr(line, '\n') && !feof(script))
			return refuse_line(layout, fault, "longer than %d characters", LINE_BYTES - 2);
		if (!run_line(layout, line, fault))
			return false;
	}
	if (ferror(script))
		return refuse(fault, "cannot read the script: %s", strerror(errno));
	return layout->shown || show(layout, "", fault);
}

/* Writes to a stream in memory, so that nothing is printed of a script that has a mistake. */
static bool run_into(struct layout *layout, const char *allocator, FILE *script, FILE *out, struct fault *fault)
{
	bool good;

	json_begin(&layout->json, out);
	json_object(&layout->json, NULL);
	json_string(&layout->json, "allocator", allocator);
	json_count(&layout->json, "page_bytes", SY_PAGE_SIZE);
	json_array(&layout->json, "snapshots");
	sy_platform_set_clock(script_clock);
	good = run_script(layout, script, fault);
	if (good) {
		json_array_end(&layout->json);
		json_count(&layout->json, "cpus", layout->cpus);
		json_count(&layout->json, "nodes", layout->nodes);
		json_object_end(&layout->json);
		good = json_end(&layout->json) || refuse(fault, "out of memory: draw less");
	}
	stop(layout);
	sy_platform_set_clock(NULL);
	return good;
}

static bool print_run(struct layout *layout, const char *allocator, FILE *script, FILE *out, struct fault *fault)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *memory = open_memstream(&text, &bytes);
	bool good;

	if (!memory)
		return refuse(fault, "out of memory");
	good = run_into(layout, allocator, script, memory, fault);
	if (fclose(memory) && good)
		good = refuse(fault, "out of memory: draw less");
	if (good && (fwrite(text, 1, bytes, out) != bytes || fflush(out)))
		good = refuse_output(fault);
	free(text);
	return good;
}

bool layout_print(const struct spec *spec, const char *allocator, const char *script_name, FILE *out, struct fault *fault)
{
	bool standard = strcmp(script_name, "-") == 0;
	FILE *script = standard ? stdin : fopen(script_name, "r");
	struct layout *layout = calloc(1, sizeof *layout);
	bool good;

	if (!spec->policy)
		good = refuse(fault, "malloc shows nothing of its inside: name a policy");
	else if (!script)
		good = refuse(fault, "cannot read %s: %s", script_name, strerror(errno));
	else if (!layout)
		good = refuse(fault, "out of memory");
	else {
		*layout = (struct layout){ .spec = spec, .cpus = 1, .nodes = 1 };
		good = print_run(layout, allocator, script, out, fault);
	}
	if (script && !standard)
		fclose(script);
	free(layout);
	return good;
}
