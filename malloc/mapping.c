/*
 * Objects too large for the heap: each is a mapping of its own.
 *
 * The object stands behind a header in the mapping's first page, one cache line after the start of that page. So a mapping is
 * hardly larger than the request. An object with a larger alignment stands further on, and whole pages before its header are
 * unmapped. Addresses tell these objects from the heap's (parts.h). A mark in the header tells them from all that malloc never
 * returned or that was freed before; such an address ends the program (mapping_check.c).
 *
 * Growing. The operating system moves the pages of a mapping, not their contents. A growing mapping gets an eighth more than was
 * asked for. So a program that extends an array little by little calls the system six times for each doubling. Pages that nobody
 * touches take no memory. A mapping that shrinks by more than a quarter gives back its end.
 *
 * Caching. Each page of a new mapping costs a fault, which takes longer than most programs need to use the page. So a freed
 * mapping may go to the mapping cache (mapping_cache.c) for MAPPING_CACHE_MS, and serve the next request of any size. It does so
 * only if the program has shown demand: a request soon after another mapping was freed. After DEMAND_MS without such a request
 * the program has to show it again. So an object that is used once goes back to the system when it is freed, even if the program
 * does nothing more.
 *
 * Zeroed requests. Of a cached mapping only the pages in memory are cleared. That takes a tenth of what fresh pages would, and
 * brings no page into memory that the object's user doesn't touch.
 *
 * Joined mappings. A mapping that the cache has joined of several can't be moved by one mremap, so objects that have grown before
 * never get one. A mapping from the cache may be larger than its object needs, where the rest is hardly in memory. The object
 * grows into that rest first.
 *
 * Protection. Programs may protect or unmap pages of an object and free it so. Before a mapping is cached its pages are made
 * readable and writable again, which takes 0.4 microseconds if nothing was changed. If the system refuses, it is unmapped.
 *
 * No locks: a mapping belongs to the holder of its object, and the counters are relaxed atomics.
 */
#define _GNU_SOURCE /* MREMAP_MAYMOVE */
#include "mapping_header.h"
#include "mmap_threshold.h"
#include "system.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "core/page_interface.h"

#define PAGES_CLEARED 256u /* at once */
#define DEMAND_MS 1000u

static struct mapping_counts counts;
static size_t last_unmapped; /* when a mapping was last freed and not cached, in milliseconds; a hint, relaxed */
static size_t last_demand;   /* when a cached mapping last served a request, or would have; the same */

size_t sy__system_page_bytes(void)
{
	return (size_t)getpagesize();
}

static size_t align_up(size_t value, size_t align)
{
	return (value + align - 1) & ~(align - 1);
}

/* Relaxed: figures order nothing. */
static void count(size_t objects, size_t bytes)
{
	size_t now = __atomic_add_fetch(&counts.bytes, bytes, __ATOMIC_RELAXED);
	size_t peak = __atomic_load_n(&counts.peak_bytes, __ATOMIC_RELAXED);

	__atomic_fetch_add(&counts.live, objects, __ATOMIC_RELAXED);
	while ((ptrdiff_t)bytes > 0 && peak < now &&
	       !__atomic_compare_exchange_n(&counts.peak_bytes, &peak, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void sy__mapping_count(struct mapping_counts *result)
{
	result->live = __atomic_load_n(&counts.live, __ATOMIC_RELAXED);
	result->bytes = __atomic_load_n(&counts.bytes, __ATOMIC_RELAXED);
	result->peak_bytes = __atomic_load_n(&counts.peak_bytes, __ATOMIC_RELAXED);
}

const size_t *sy__mapping_figures(void)
{
	return &counts.live;
}

/* Where the object stands in a mapping whose start is aligned to a page. */
static char *place(char *start, size_t align)
{
	return (char *)align_up((uintptr_t)start + sizeof(struct mapping_header), align);
}

/* The object behind a header at the start of its mapping. */
static void *begin(char *start, size_t bytes, size_t used, const struct mapping_parts *parts)
{
	struct mapping_header *header = (struct mapping_header *)(void *)start;

	*header = (struct mapping_header){ sy__mapping_mark(header), start, bytes, used, *parts };
	count(1, used);
	return header + 1;
}

static char *map_once(size_t bytes)
{
	char *start = sy__system_map(NULL, bytes, PROT_READ | PROT_WRITE, 0);

	if (start && sy__process_small_pages)
		sy__source_prefer_small(start, bytes);
	return start;
}

static char *map(size_t bytes)
{
	char *start;

	if (!sy__process_may_hold(bytes))
		return NULL;
	start = map_once(bytes);
	if (!start && sy__mapping_cache_end())
		start = map_once(bytes);
	if (!start && sy__process_make_room(bytes))
		start = map_once(bytes);
	return start;
}

/* ---- Whether to cache ------------------------------------------------------------------------------------------- */

static void note_demand(void)
{
	__atomic_store_n(&last_demand, sy__milliseconds(), __ATOMIC_RELAXED);
}

/* The program has got fresh pages from the system: as many of those that it has freed go back. */
static void offset_growth(size_t bytes)
{
	struct sy_heap *heap = __atomic_load_n(&sy__service.heap, __ATOMIC_ACQUIRE);

	sy__mapping_cache_offset_growth(bytes);
	if (heap)
		sy__pages_offset_growth(heap->pages, bytes >> SY_PAGE_SHIFT);
}

/* A mapping has come from the system. One that was freed shortly before might have served instead: that shows demand. */
static void note_fresh(size_t bytes)
{
	size_t before = __atomic_load_n(&last_unmapped, __ATOMIC_RELAXED);

	if (bytes <= MAPPING_CACHE_MOST && sy__milliseconds() - before < MAPPING_CACHE_MS)
		note_demand();
	offset_growth(bytes);
}

/* Reads the time last, so no time that another thread has noted is later than it. */
static bool should_cache(size_t bytes)
{
	size_t before = __atomic_load_n(&last_demand, __ATOMIC_RELAXED), now;

	if (bytes > MAPPING_CACHE_MOST)
		return false;
	now = sy__milliseconds();
	if (now - before < DEMAND_MS)
		return true;
	__atomic_store_n(&last_unmapped, now, __ATOMIC_RELAXED);
	return false;
}

/* ---- Mappings ------------------------------------------------------------------------------------------------------ */

static void *reuse(size_t size, struct mapping_parts *parts)
{
	static const struct mapping_parts none;
	size_t used, bytes;
	char *start;

	if (size > MAPPING_CACHE_MOST)
		return NULL;
	used = bytes = align_up(size + sizeof(struct mapping_header), sy__system_page_bytes());
	start = sy__mapping_cache_take(&bytes, parts);
	if (start)
		note_demand();
	return start ? begin(start, bytes, used, parts ? parts : &none) : NULL;
}

void *sy__mapping_reuse(size_t size)
{
	struct mapping_parts parts;

	return reuse(size, &parts);
}

void *sy__mapping_reuse_to_grow(size_t size)
{
	return reuse(size, NULL);
}

/* Zeroes pages. It clears those known to be in memory, and lets the system drop the others. */
static void clear_pages(char *pages, size_t count, size_t page)
{
	unsigned char there[PAGES_CLEARED];
	size_t from, to;

	if (!sy__source_tells())
		memset(there, 0, count);
	else if (sy__system(SYS_mincore, sy__system_word(pages), (long)(count * page), sy__system_word(there), 0))
		memset(there, 1, count);
	for (from = 0; from < count; from = to) {
		for (to = from + 1; to < count && (there[to] & 1) == (there[from] & 1); to++)
			;
		if ((there[from] & 1) || !sy__system_advise(pages + from * page, (to - from) * page, MADV_DONTNEED))
			memset(pages + from * page, 0, (to - from) * page);
	}
}

static void clear(char *start, const char *end)
{
	size_t page = sy__system_page_bytes(), count;
	char *pages = (char *)align_up((uintptr_t)start, page);

	memset(start, 0, (size_t)(pages - start));
	for (; pages < end; pages += count * page) {
		count = (size_t)(end - pages) / page;
		count = count < PAGES_CLEARED ? count : PAGES_CLEARED;
		clear_pages(pages, count, page);
	}
}

void *sy__mapping_reuse_zeroed(size_t size)
{
	char *object = sy__mapping_reuse(size);

	if (object)
		clear(object, object + sy__mapping_usable(object));
	return object;
}

void *sy__mapping_create(size_t size, size_t align)
{
	size_t page = sy__system_page_bytes(), slack = align > sizeof(struct mapping_header) ? align : 0, bytes, before;
	struct mapping_header *header;
	char *start, *object;

	if (slack > PTRDIFF_MAX - 2 * page || size > PTRDIFF_MAX - 2 * page - slack)
		return NULL;
	bytes = align_up(size + slack + sizeof(struct mapping_header), page);
	start = map(bytes);
	if (!start)
		return NULL;
	object = place(start, align > sizeof(struct mapping_header) ? align : sizeof(struct mapping_header));
	header = (struct mapping_header *)(void *)(object - sizeof(struct mapping_header));
	before = (size_t)((char *)header - start) & ~(page - 1);
	if (before)
		sy__system_unmap(start, before);
	note_fresh(bytes - before);
	*header = (struct mapping_header){ sy__mapping_mark(header), start + before, bytes - before, bytes - before, { 0 } };
	count(1, header->used);
	return object;
}

/* Puts a mapping into the bins for its size, if hardly a page of it is in memory. False: it is still there to be dealt with. */
static bool cache_by_size(const struct mapping_header *ended)
{
	if (ended->parts.count || !sy__mapping_cache_has_bin(ended->bytes))
		return false;
	if (sy__mmap_threshold_is_untouched(sy__service.heap, ended->start, ended->used))
		return sy__mapping_cache_give_bin(ended->start, ended->bytes);
	return sy__mmap_threshold_was_mistaken(sy__service.heap) && sy__system_unmap(ended->start, ended->bytes);
}

static void cache_or_unmap(const struct mapping_header *ended)
{
	if (should_cache(ended->bytes))
		sy__mapping_cache_give(ended->start, ended->bytes, ended->used, &ended->parts);
	else
		sy__system_unmap(ended->start, ended->bytes);
}

void sy__mapping_end(void *object)
{
	struct mapping_header *header = sy__mapping_header_checked(object);
	struct mapping_header ended = *header;

	count((size_t)-1, (size_t)-ended.used);
	header->mark = sy__mapping_end_mark(header);
	sy__mapping_note_end(object);
	if (!sy__system_protect(ended.start, ended.bytes, PROT_READ | PROT_WRITE))
		sy__system_unmap(ended.start, ended.bytes);
	else if (!cache_by_size(&ended))
		cache_or_unmap(&ended);
}

size_t sy__mapping_usable(const void *object)
{
	const struct mapping_header *header = sy__mapping_header_checked(object);

	return header->used - (size_t)((const char *)object - header->start);
}

bool sy__mapping_resizes(const void *object)
{
	return !sy__mapping_header(object)->parts.count;
}

static void use(struct mapping_header *header, size_t bytes)
{
	count(0, bytes - header->used);
	header->used = bytes;
}

static char *move(const struct mapping_header *header, size_t bytes)
{
	char *start;

	if (bytes > header->bytes && !sy__process_may_hold(bytes - header->bytes))
		return NULL;
	start = sy__system_remap(header->start, header->bytes, bytes, MREMAP_MAYMOVE, NULL);
	if (!start && bytes > header->bytes && sy__process_make_room(bytes - header->bytes))
		start = sy__system_remap(header->start, header->bytes, bytes, MREMAP_MAYMOVE, NULL);
	return start;
}

void *sy__mapping_resize(void *object, size_t size)
{
	struct mapping_header *header = sy__mapping_header(object);
	size_t offset = (size_t)((char *)object - header->start), room = header->used - offset, bytes;
	char *start;

	if (size <= room && size >= room - room / 4)
		return object;
	if (size > PTRDIFF_MAX / 2)
		return NULL;
	bytes = align_up(offset + size + (size > room ? size / 8 : 0), sy__system_page_bytes());
	if (bytes > header->bytes)
		header->bytes += sy__mapping_cache_take_behind(header->start + header->bytes, bytes - header->bytes);
	if (size > room && offset + size <= header->bytes) {
		use(header, bytes < header->bytes ? bytes : header->bytes);
		return object;
	}
	start = move(header, bytes);
	if (!start && size > room) {
		bytes = align_up(offset + size, sy__system_page_bytes());
		start = move(header, bytes);
	}
	if (!start)
		return NULL;
	header = (struct mapping_header *)(void *)(start + offset - sizeof(struct mapping_header));
	if (bytes > header->bytes)
		offset_growth(bytes - header->bytes);
	header->mark = sy__mapping_mark(header);
	header->start = start;
	header->bytes = bytes;
	use(header, bytes);
	return start + offset;
}

static void forked(void)
{
	sy__mapping_cache_forked();
	sy__process_forked();
	sy__background_forked();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}
