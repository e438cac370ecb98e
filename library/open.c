/*
 * Opens and closes heaps of threads.
 *
 * Such a heap has a page allocator of its own with one zone. Its address space is generous, because addresses cost nothing: the
 * memory behind them comes block by block. The size of the range bounds what the heap can ever hold, unless a limit does. Where
 * the system refuses so much, because of a limit to addresses, half is tried, and so on, down to the heap's limit. That may be less than
 * a maximal block: then there are addresses for some of its pages only.
 *
 * Watermarks are lower than Linux's, which reserve megabytes for interrupts. Nothing here may dig into a reserve, so all pages but
 * one may be used. Caches are asked for memory when 1/128 is left. Per-CPU lists are short, as there may be many threads.
 *
 * In a caller's buffer there are no per-CPU lists: their heads alone would fill a small buffer.
 */
#include "core/debug/debug.h"
#include "core/types.h"
#include "debug/anchor.h"
#include "debug/report.h"
#include "debug/spec.h"
#include "debug/leaks.h"
#include "wait.h"

#include "core/platform/system_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#define MOST_USUAL ((uint64_t)1 << 43) /* bytes */
#define LEAST_RESERVE ((size_t)512 << 10)
#define BLOCK (SY_PAGE_SIZE << SY_MAX_ORDER)
#define MOST_RESERVE (SY_HEAP_ADDRESSES - BLOCK)
#define PAGEBLOCK_ORDER 9
#define LIST_BATCH 8
#define LIST_HIGH 32 /* pages on the lists of one thread */
#define LOW_MOST 4096 /* pages */
#define DECAY_NS UINT64_C(100000000)

static struct sy_fault fault;

static struct sy_heap *refuse(const char **error, const char *why)
{
	if (why)
		snprintf(fault.text, sizeof(fault.text), "%s", why);
	if (error)
		*error = fault.text;
	return NULL;
}

/* Asked once: by the time of another heap a filter may forbid the question. Relaxed, as all threads get the same answer. */
static size_t machine_memory(void)
{
	static uint64_t known;
	struct sysinfo info;
	uint64_t bytes = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!bytes && !sy__system_is_shut_in() && sy__system(SYS_sysinfo, sy__system_word(&info), 0, 0, 0) == 0)
		__atomic_store_n(&known, bytes = (uint64_t)info.totalram * info.mem_unit, __ATOMIC_RELAXED);
	return bytes && bytes < SIZE_MAX / 8 ? (size_t)bytes : SIZE_MAX / 16;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* From a maximal block on, whole ones. */
static size_t whole_blocks(uint64_t bytes)
{
	size_t unit = bytes < BLOCK ? SY_PAGE_SIZE : BLOCK;

	return (size_t)(least(bytes, MOST_RESERVE) + unit - 1) & ~(unit - 1);
}

/* In bytes; 0: none, or one that no heap could reach. */
static uint64_t limit_of(const struct sy_heap_options *options)
{
	return options->limit < SY_HEAP_ADDRESSES ? options->limit : 0;
}

static size_t to_reserve(const struct sy_heap_options *options)
{
	uint64_t usual = least(2 * (uint64_t)machine_memory(), MOST_USUAL);

	return whole_blocks(options->reserve ? options->reserve : most(usual, limit_of(options)));
}

static struct sy_pages_config pages_config(const struct sy_heap_options *options, size_t reserve)
{
	uint64_t pages = most(reserve, BLOCK) >> SY_PAGE_SHIFT, limit = limit_of(options) ? most(limit_of(options) >> SY_PAGE_SHIFT, 1) : pages;
	uint64_t managed = least(limit, pages), low = least(1 + managed / 128, LOW_MOST);

	return (struct sy_pages_config){
		.zone_count = 1,
		.zones = { { .name = "Normal", .pages = pages, .managed = managed, .min = 1, .low = low, .high = low } },
		.slots = (unsigned)least(SY_MAX_SLOTS, sy__thread_slots()),
		.pageblock_order = PAGEBLOCK_ORDER,
		.cpu_lists = !options->buffer,
		.cpu_list_batch = LIST_BATCH,
		.cpu_list_high = LIST_HIGH,
		.decay_ns = options->keep ? 0 : options->decay_ns ? options->decay_ns : DECAY_NS,
		.commit_growth = true,
		.addresses = managed < pages ? 0 : reserve,
		.huge_pages = options->huge_pages,
		.buffer = options->buffer,
		.buffer_bytes = options->buffer_bytes,
	};
}

/* A heap with this many bytes of addresses. NULL: no memory, for the heap (*had_pages) or for its page allocator. */
static struct sy_heap *open_within(const struct sy_heap_config *config, const struct sy_heap_options *options, size_t reserve,
                                   bool *had_pages)
{
	const struct sy_pages_config wanted = pages_config(options, reserve);
	struct sy_pages *pages = sy_pages_create(&wanted);
	struct sy_heap *heap = pages ? sy_heap_create(pages, config) : NULL;

	*had_pages = pages != NULL;
	if (pages && !heap)
		sy_pages_destroy(pages);
	return heap;
}

/* Tries with fewer addresses where as many are refused, or leave no room for the heap's own tables. What the caller has chosen is
 * not reduced. */
static struct sy_heap *open_where_it_fits(const struct sy_heap_config *config, const struct sy_heap_options *options,
                                          bool *had_pages)
{
	size_t reserve = to_reserve(options), least = whole_blocks(most(limit_of(options), LEAST_RESERVE));
	struct sy_heap *heap = open_within(config, options, reserve, had_pages);

	while (!heap && !options->reserve && reserve > least) {
		reserve = reserve / 2 > least ? whole_blocks(reserve / 2) : least;
		heap = open_within(config, options, reserve, had_pages);
	}
	return heap;
}

/* Whether the thread is inside a call. Opening a heap takes calls of its own, so it is not possible then. */
static bool is_in_call(void)
{
	unsigned slot;

	if (!sy__call_enter(&slot))
		return true;
	sy__call_leave();
	return false;
}

/* What is impossible in the options; NULL: nothing. */
static const char *options_error(const struct sy_heap_options *options)
{
	if (options->reserve >= SY_HEAP_ADDRESSES)
		return "a heap cannot have so many addresses: reserve can be less than 16 TiB, or, of 32-bit addresses, a quarter";
	if (options->sizing.align & (options->sizing.align - 1) || options->sizing.align > SY_PAGE_SIZE)
		return "objects cannot be aligned so: sizing.align can be 0 or a power of two up to a page";
	if (options->sizing.classes > SY_CLASSES_FINE)
		return "there are no such size classes: sizing.classes can be SY_CLASSES_LINUX or SY_CLASSES_FINE";
	if (options->buffer && options->buffer_bytes > SIZE_MAX - (uintptr_t)options->buffer)
		return "the buffer would end beyond the last address: buffer_bytes can be what there is of it";
	return NULL;
}

/* Settings of the environment replace those of the spec. */
static bool add_debugging(struct sy_heap_config *config)
{
	const char *text = secure_getenv("SLABYARD_DEBUG");

	return !text || !*text || sy__debug_parse(&config->debug, text, &fault);
}

struct sy_heap *sy_heap_open(const char *spec, const struct sy_heap_options *options, const char **error)
{
	static const struct sy_heap_options defaults;
	struct sy_heap_config config;
	struct sy_heap *heap;
	const char *wrong;
	bool had_pages;

	if (!options)
		options = &defaults;
	if (!sy_spec_parse(&config, spec ? spec : sy_policies[0]->name, &fault))
		return refuse(error, NULL);
	if (!add_debugging(&config))
		return refuse(error, NULL);
	wrong = options_error(options);
	if (wrong)
		return refuse(error, wrong);
	if (is_in_call())
		return refuse(error, "a heap cannot be opened from inside a constructor, destructor or visitor: open it before");
	config.threads = true;
	config.grace_ns = options->grace_ns;
	config.sizing = options->sizing;
	wrong = sy__heap_refuses(&config);
	if (wrong)
		return refuse(error, wrong);
	heap = open_where_it_fits(&config, options, &had_pages);
	if (heap) {
		heap->wait_ns = options->wait_ns;
		heap->on_bug = sy__bug_report;
		heap->on_failure = sy__wait_kmalloc;
		heap->on_cache_failure = sy__wait_cache_alloc;
		if (heap->debug)
			heap->debug->hooks->attached(heap);
		sy__anchor_drop();
		return heap;
	}
	if (options->buffer)
		return refuse(error, "the buffer is too small for a heap: give it some megabytes, or raise the heap's limit");
	if (had_pages)
		return refuse(error, "there is no memory for a heap: raise its limit, or the process's (ulimit -v, ulimit -d)");
	return refuse(error, "the operating system has no address space for a heap: reserve less, or raise the limit (ulimit -v)");
}

void sy_heap_close(struct sy_heap *heap)
{
	struct sy_pages *pages;

	if (!heap)
		return;
	pages = heap->pages;
	sy__debug_unwatch(heap);
	if (sy_heap_destroy(heap))
		sy_pages_destroy(pages);
}
