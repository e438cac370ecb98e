/*
 * The mapping cache keeps freed mappings for a while and serves the next requests from them.
 *
 * Why. The kernel zeroes each page of a new mapping at its first use, by a fault. A program that allocates and frees large
 * objects would spend more time there than in its own work. So ranges that were freed a moment ago are used again. A range is
 * worth keeping either for its pages or for its size, so the cache has two parts: a table, and bins.
 *
 * The table keeps ranges for their pages. They serve requests of any size, best fit. What the range has beyond the request, from
 * LEAST_REST bytes on, stays in the table as a range of its own, without a system call. If no range suffices, the largest grows
 * by mremap, and others are moved to its end, by mremap too. Moving pages costs a hundredth of what faults would, so only the
 * pages that no range had are faulted in. When fresh pages are mapped all the same, as many cached pages go back to the system
 * (sy__mapping_cache_offset_growth). So caching never adds to the program's peak, except for the pages of sparse ranges.
 *
 * A sparse range has at most one page of SPARSE in memory. The system tells (mincore), at a microsecond a MiB. So it is asked only where a
 * range would be cut, joined or given back, and only about its first `used` bytes: the rest was found sparse before, and has not been
 * written since. A sparse range takes little memory, so it isn't cut. A request gets all of it, if it is up to SLACK times as large as the
 * request and the rest has no more memory than the request, and gives it back whole. A sparse range that is too small grows in one call,
 * without others, and no fresh page displaces sparse ranges. (Cutting and joining took three calls an object, of 7 to 30 microseconds each;
 * a fault takes 1.5.)
 *
 * An object that is going to grow gets the start of the largest range, and the rest stays in the table right behind it. The object
 * then grows into that rest first (sy__mapping_cache_take_behind), without a system call. So a program that builds one array
 * after the other has the pages of the first one for all.
 *
 * Parts. mremap takes nothing that spans two of the kernel's mappings, and moved pages stay a mapping of their own. So the
 * user of a joined range remembers where its parts meet (mapping_parts) and gives it back whole, with its parts. A program that
 * allocates and frees the same large object again and again has it joined once. For a request that is smaller by more than an
 * eighth the range is split into its parts first. Objects that will grow, and so be moved, get no joined range. mremap may refuse
 * all the same, where a program has changed a part of a range (mprotect, madvise). The range is then unmapped, or the object
 * copied (entries.c). Kernels may unmap the target of an mremap before they refuse it. If another thread has mapped something there
 * meanwhile, it is left alone.
 *
 * The bins keep ranges for their size. Hardly a page of these is in memory (mmap_threshold.c finds out). A program that takes
 * thousands of buffers and writes to the ends of each would pay a fault for either end, and two system calls, for every one. Such
 * a range is neither cut nor joined, and serves requests of nearly its size: the pages that its last user has written are mostly
 * those that its next user writes. There is a bin for each number of pages up to a little above 4 MiB. A bin has WAYS words, each
 * a range or NULL. A range goes to its own bin, or to one somewhat below if that is full. A request takes the first range from
 * its own bin upward, at most an eighth above. The range's first page says how large it is and since when it is cached: that page
 * is in memory, as it had the object's header (mapping.c). One range in EMPTIED loses all other pages, so that what users wrote
 * elsewhere doesn't pile up.
 *
 * How much, and how long. The table has at most RANGES ranges, of at most MAPPING_CACHE_MOST bytes each and MOST_BYTES in all. The
 * bins have at most MOST_BINNED bytes of addresses. Both keep a range for MAPPING_CACHE_MS. Any thread that comes by gives old ranges
 * back: mappings that are created and freed, and slow calls of the heap (sy_heap.on_slow_call). malloc_trim gives back all of them, as
 * does running out of addresses or memory.
 *
 * There are no locks, because a program may fork at any moment (tests/model/code/mapping_table.c and mapping_bins.c try all
 * interleavings). In the table, the thread that changes entry.start from anything to BUSY owns the entry. The owner stores a start, or
 * NULL, with release; the words of the entry and the range's pages go along with it. Searchers read sizes of entries that they
 * don't own, and check again when they do. In the bins, a word goes from NULL to a range by compare-and-exchange (release), and
 * from a range to NULL by an exchange (acquire). After that no other thread can find the range, so nothing is read that another thread
 * might unmap. A fork's child loses the ranges that other threads were working on. sy__mapping_cache_forked makes their entries free again
 * and counts anew.
 *
 * The thread sanitizer doesn't know that mremap moves memory, and reports the next user of the old addresses as a second user of
 * the same memory.
 */
#define _GNU_SOURCE /* MREMAP_MAYMOVE */
#include "mapping_cache.h"

#include <stdint.h>

#include "core/platform.h"
#include "core/platform/system_call.h"

#ifndef RANGES /* a model has fewer */
#define RANGES 128u
#endif
#define MOST_BYTES ((size_t)128 << 20)
#define LEAST_REST ((size_t)128 << 10)
#define AGE_MS 25u /* between two looks at all entries */
#define SPARSE 4u  /* at most one page in 4 is in memory */
#define SLACK 8u   /* times the request: the most that may be handed out for it */

#ifndef WAYS
#define WAYS 8u
#endif
#define ABOVE 8u  /* a request is served by what is larger by up to this share of it */
#define BELOW 16u /* ... where a range is put below its own bin, by up to this share */
#define MOST_BINNED ((size_t)1 << (sizeof(size_t) > 4 ? 33 : 27))
#define EMPTIED 16u
#define BINS_AGE_MS 100u /* between two looks at all bins */

struct entry {
	char *start; /* NULL: the entry is free; BUSY: a thread owns it */
	size_t bytes;
	size_t used;  /* from the start: behind them hardly a page is in memory, as far as is known */
	size_t since; /* milliseconds */
	struct mapping_parts parts; /* for the entry's owner alone */
};

struct range {
	char *start;
	size_t bytes, used;
	struct mapping_parts parts;
};

static struct entry entries[RANGES];
static char busy;

struct binned {
	size_t bytes, since; /* milliseconds */
};

static _Alignas(64) struct binned *bins[MAPPING_BINS][WAYS];

/* Relaxed: limits, times and a counter order nothing. */
static size_t table_bytes, table_aged, bins_bytes, bins_aged, bins_given;

#define BUSY (&busy)

/* Adds bytes to a sum. False: the sum would be above `most`, and is as before. */
static bool there_is_room(size_t *sum, size_t bytes, size_t most)
{
	if (__atomic_add_fetch(sum, bytes, __ATOMIC_RELAXED) <= most)
		return true;
	__atomic_fetch_sub(sum, bytes, __ATOMIC_RELAXED);
	return false;
}

/* Whether the next look at all ranges is due. If so, the caller makes it. */
static bool is_due(size_t *aged, size_t now, size_t every)
{
	if (now - __atomic_load_n(aged, __ATOMIC_RELAXED) < every)
		return false;
	__atomic_store_n(aged, now, __ATOMIC_RELAXED);
	return true;
}

/* ---- The table: entries ------------------------------------------------------------------------------------------------------ */

static char *start_of(struct entry *entry)
{
	return __atomic_load_n(&entry->start, __ATOMIC_RELAXED);
}

static bool own(struct entry *entry, char *start)
{
	return __atomic_compare_exchange_n(&entry->start, &start, BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Frees an entry that the caller owns; returns the bytes of its range. The release keeps the read of the size before the next
 * owner's write. */
static size_t leave(struct entry *entry)
{
	size_t bytes = __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED);

	__atomic_fetch_sub(&table_bytes, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->start, NULL, __ATOMIC_RELEASE);
	return bytes;
}

static bool keep(const struct range *range)
{
	if (range->bytes > MAPPING_CACHE_MOST || !there_is_room(&table_bytes, range->bytes, MOST_BYTES))
		return false;
	for (struct entry *entry = entries; entry < entries + RANGES; entry++) {
		if (start_of(entry) || !own(entry, NULL))
			continue;
		__atomic_store_n(&entry->bytes, range->bytes, __ATOMIC_RELAXED);
		__atomic_store_n(&entry->used, range->used, __ATOMIC_RELAXED);
		__atomic_store_n(&entry->since, sy__milliseconds(), __ATOMIC_RELAXED);
		entry->parts = range->parts;
		__atomic_store_n(&entry->start, range->start, __ATOMIC_RELEASE);
		return true;
	}
	__atomic_fetch_sub(&table_bytes, range->bytes, __ATOMIC_RELAXED);
	return false;
}

static void keep_or_end(const struct range *range)
{
	sy__mapping_cache_age();
	if (!keep(range))
		sy__system_unmap(range->start, range->bytes);
}

/* Whether hardly a page of a range is in memory. Asks about its first `looked` bytes; behind them none is. The answer is wrong if
 * another thread has the range by now. */
static bool sparse(const char *start, size_t bytes, size_t looked)
{
	size_t page = sy__system_page_bytes();

	return !sy__source_has(start, looked, (bytes / page / SPARSE + 1) * page);
}

/* ---- The table: taking ------------------------------------------------------------------------------------------------------- */

static bool better(size_t bytes, size_t than, size_t wanted)
{
	if (bytes >= wanted)
		return than < wanted || bytes < than;
	return than < wanted && bytes > than;
}

/* The smallest range that suffices, or else the largest; NULL: there is none. */
static struct entry *best(size_t wanted, char **start)
{
	struct entry *found = NULL;
	size_t found_bytes = 0;

	for (struct entry *entry = entries; entry < entries + RANGES; entry++) {
		char *at = start_of(entry);
		size_t bytes = __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED);

		if (!at || at == BUSY || !better(bytes, found_bytes, wanted))
			continue;
		found = entry;
		found_bytes = bytes;
		*start = at;
	}
	return found;
}

/* Takes the best range for this many bytes. SIZE_MAX: the largest. */
static bool take_best(size_t wanted, struct range *range)
{
	char *start = NULL;
	struct entry *entry = best(wanted, &start);

	if (!entry || !own(entry, start))
		return false;
	range->start = start;
	range->used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);
	range->parts = entry->parts;
	range->bytes = leave(entry);
	return true;
}

/* Whether a joined range fits a request as if it had been joined for it. */
static bool is_as_good(const struct range *range, size_t wanted)
{
	return range->bytes >= wanted && range->bytes - wanted <= wanted / 8;
}

/* Puts the parts of a joined range into the table. */
static void split_joined(const struct range *range)
{
	size_t bytes = range->bytes;

	for (uint32_t left = range->parts.count; left--;) {
		struct range part = { .bytes = range->parts.bytes[left], .used = range->parts.bytes[left] };

		bytes -= part.bytes;
		part.start = range->start + bytes;
		keep_or_end(&part);
	}
	keep_or_end(&(struct range){ .start = range->start, .bytes = bytes, .used = range->used < bytes ? range->used : bytes });
}

/* Takes the best range that is not joined. */
static bool take_single(size_t wanted, struct range *range)
{
	while (take_best(wanted, range)) {
		if (!range->parts.count)
			return true;
		split_joined(range);
	}
	return false;
}

/* Leaves what the range has beyond this many bytes in the table. */
static void cut(struct range *range, size_t bytes)
{
	if (range->bytes < bytes + LEAST_REST)
		return;
	sy__mapping_cache_give(range->start + bytes, range->bytes - bytes, range->used > bytes ? range->used - bytes : 0, NULL);
	range->bytes = bytes;
}

static void end(const struct range *ranges, uint32_t count)
{
	for (uint32_t each = 0; each < count; each++)
		sy__system_unmap(ranges[each].start, ranges[each].bytes);
}

/* Takes ranges for missing bytes, as far as there are any; returns their number. */
static uint32_t collect(struct range *ranges, size_t missing)
{
	uint32_t count = 0;

	while (missing >= LEAST_REST && count < MAPPING_JOINED && take_single(missing, &ranges[count])) {
		cut(&ranges[count], missing);
		missing -= ranges[count].bytes < missing ? ranges[count].bytes : missing;
		count++;
	}
	return count;
}

/* Moves ranges to an address, one behind the other; returns how many the kernel has moved. */
static uint32_t move_there(char *to, const struct range *ranges, uint32_t count)
{
	for (uint32_t each = 0; each < count; each++) {
		size_t bytes = ranges[each].bytes;

		if (!sy__system_remap(ranges[each].start, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to))
			return each;
		to += bytes;
	}
	return count;
}

/* Unmaps a grown range, but not the place for others[moved], where the kernel has refused to move it. */
static void give_up(char *grown, size_t bytes, const struct range *others, uint32_t moved, size_t joined)
{
	size_t before = bytes - joined, behind;

	for (uint32_t each = 0; each < moved; each++)
		before += others[each].bytes;
	behind = before + others[moved].bytes;
	sy__system_unmap(grown, before);
	if (behind < bytes)
		sy__system_unmap(grown + behind, bytes - behind);
}

/* Grows a range to `bytes` bytes, of which the last `joined` are the other ranges. NULL: the kernel refuses, and all are unmapped. */
static char *grow(const struct range *range, size_t bytes, const struct range *others, uint32_t count, size_t joined)
{
	char *grown = sy__system_remap(range->start, range->bytes, bytes, MREMAP_MAYMOVE, NULL);
	uint32_t moved = grown ? move_there(grown + bytes - joined, others, count) : 0;

	if (grown && moved == count)
		return grown;
	if (moved < count) /* alone it has no others, and the pointer is NULL */
		end(others + moved, count - moved);
	if (!grown)
		end(range, 1);
	else
		give_up(grown, bytes, others, moved, joined);
	return NULL;
}

static char *grow_alone(const struct range *range, size_t bytes)
{
	char *grown = grow(range, bytes, NULL, 0, 0);

	if (grown)
		sy__mapping_cache_offset_growth(bytes - range->bytes);
	return grown;
}

static char *join(const struct range *range, size_t *bytes, struct mapping_parts *parts)
{
	struct range others[MAPPING_JOINED];
	size_t joined = 0;
	char *grown;

	parts->count = collect(others, *bytes - range->bytes);
	for (uint32_t each = 0; each < parts->count; each++)
		joined += parts->bytes[each] = (uint32_t)others[each].bytes;
	if (*bytes < range->bytes + joined)
		*bytes = range->bytes + joined;
	grown = grow(range, *bytes, others, parts->count, joined);
	if (grown)
		sy__mapping_cache_offset_growth(*bytes - range->bytes - joined);
	return grown;
}

/* Whether hardly a page of the range behind these bytes is in memory, and at most `most` bytes of it are. */
static bool sparse_behind(const struct range *range, size_t bytes, size_t most)
{
	size_t behind = range->bytes - bytes, few = behind / SPARSE < most ? behind : most * SPARSE;

	return range->used <= bytes || sparse(range->start + bytes, few, range->used - bytes);
}

static char *take_from_table(size_t *bytes, struct mapping_parts *parts)
{
	size_t wanted = parts ? *bytes : SIZE_MAX;
	struct range range;

	if (!__atomic_load_n(&table_bytes, __ATOMIC_RELAXED) || !take_best(wanted, &range))
		return NULL;
	if (range.parts.count && parts && is_as_good(&range, *bytes)) {
		*parts = range.parts;
		*bytes = range.bytes;
		return range.start;
	}
	if (range.parts.count) {
		split_joined(&range);
		if (!take_single(wanted, &range))
			return NULL;
	}
	if (range.bytes < *bytes)
		return parts && !sparse_behind(&range, 0, range.bytes) ? join(&range, bytes, parts) : grow_alone(&range, *bytes);
	if (!parts || range.bytes / SLACK > *bytes || !sparse_behind(&range, *bytes, *bytes))
		cut(&range, *bytes);
	*bytes = range.bytes;
	return range.start;
}

size_t sy__mapping_cache_take_behind(char *end, size_t bytes)
{
	struct range range = { .start = end };

	if (!__atomic_load_n(&table_bytes, __ATOMIC_RELAXED))
		return 0;
	for (struct entry *entry = entries; entry < entries + RANGES; entry++) {
		if (start_of(entry) != end || !own(entry, end))
			continue;
		range.used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);
		range.parts = entry->parts;
		range.bytes = leave(entry);
		if (range.parts.count) {
			keep_or_end(&range);
			return 0;
		}
		cut(&range, bytes);
		return range.bytes;
	}
	return 0;
}

/* ---- The table: giving ------------------------------------------------------------------------------------------------------- */

void sy__mapping_cache_give(char *start, size_t bytes, size_t used, const struct mapping_parts *parts)
{
	struct range range = { .start = start, .bytes = bytes, .used = used };

	if (parts)
		range.parts = *parts;
	keep_or_end(&range);
}

/* Unmaps ranges of at least this age; returns their bytes. */
static size_t end_entries(size_t now, size_t age)
{
	size_t given = 0;

	for (struct entry *entry = entries; entry < entries + RANGES; entry++) {
		char *start = start_of(entry);
		size_t bytes;

		if (!start || start == BUSY || now - __atomic_load_n(&entry->since, __ATOMIC_RELAXED) < age ||
		    !own(entry, start))
			continue;
		bytes = leave(entry);
		sy__system_unmap(start, bytes);
		given += bytes;
	}
	return given;
}

/* Unmaps up to `most` bytes from the end of a range, or all of a joined one; returns how many. */
static size_t end_part(struct entry *entry, char *start, size_t most)
{
	size_t used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED), joined = entry->parts.count, bytes = leave(entry);
	size_t part = joined || bytes < most + LEAST_REST ? bytes : most, rest = bytes - part;

	sy__system_unmap(start + rest, part);
	if (rest && !keep(&(struct range){ .start = start, .bytes = rest, .used = used < rest ? used : rest }))
		sy__system_unmap(start, rest);
	return part;
}

void sy__mapping_cache_offset_growth(size_t bytes)
{
	size_t given;

	for (struct entry *entry = entries; entry < entries + RANGES && bytes; entry++) {
		char *start = __atomic_load_n(&table_bytes, __ATOMIC_RELAXED) ? start_of(entry) : NULL;
		size_t used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);

		if (!start || start == BUSY)
			continue;
		if (sparse(start, __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED), used) || !own(entry, start))
			continue;
		given = end_part(entry, start, bytes);
		bytes -= given < bytes ? given : bytes;
	}
}

/* ---- The bins ----------------------------------------------------------------------------------------------------- */

static bool put_at(struct binned **word, struct binned *range)
{
	struct binned *none = NULL;

	return !__atomic_load_n(word, __ATOMIC_RELAXED) &&
	       __atomic_compare_exchange_n(word, &none, range, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static struct binned *take_from(struct binned **word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED) ? __atomic_exchange_n(word, NULL, __ATOMIC_ACQUIRE) : NULL;
}

static bool put_below(struct binned *range, size_t pages)
{
	size_t least = pages - pages / BELOW;

	for (size_t bin = pages; bin >= least && bin >= MAPPING_BIN_LEAST; bin--)
		for (unsigned way = 0; way < WAYS; way++)
			if (put_at(&bins[bin][way], range))
				return true;
	return false;
}

static struct binned *take_fitting(size_t pages)
{
	size_t most = pages + pages / ABOVE;
	struct binned *range;

	for (size_t bin = pages; bin <= most && bin < MAPPING_BINS; bin++)
		for (unsigned way = 0; way < WAYS; way++)
			if ((range = take_from(&bins[bin][way])))
				return range;
	return NULL;
}

bool sy__mapping_cache_has_bin(size_t bytes)
{
	return bytes / sy__system_page_bytes() >= MAPPING_BIN_LEAST && bytes / sy__system_page_bytes() < MAPPING_BINS;
}

static char *take_from_bins(size_t *bytes)
{
	struct binned *range = NULL;

	if (__atomic_load_n(&bins_bytes, __ATOMIC_RELAXED) && sy__mapping_cache_has_bin(*bytes))
		range = take_fitting(*bytes / sy__system_page_bytes());
	if (!range)
		return NULL;
	*bytes = range->bytes;
	__atomic_fetch_sub(&bins_bytes, range->bytes, __ATOMIC_RELAXED);
	return (char *)range;
}

bool sy__mapping_cache_give_bin(char *start, size_t bytes)
{
	size_t page = sy__system_page_bytes();
	struct binned *range = (struct binned *)(void *)start;

	sy__mapping_cache_age();
	if (!there_is_room(&bins_bytes, bytes, MOST_BINNED))
		return false;
	if (__atomic_fetch_add(&bins_given, 1, __ATOMIC_RELAXED) % EMPTIED == 0)
		sy__system_advise(start + page, bytes - page, MADV_DONTNEED);
	*range = (struct binned){ bytes, sy__milliseconds() };
	if (put_below(range, bytes / page))
		return true;
	__atomic_fetch_sub(&bins_bytes, bytes, __ATOMIC_RELAXED);
	return false;
}

/* Unmaps the range at a word if it is of at least this age; returns its bytes. */
static size_t end_binned(struct binned **word, size_t now, size_t age)
{
	struct binned *range = take_from(word);
	size_t bytes;

	if (!range || (now - range->since < age && put_at(word, range)))
		return 0;
	bytes = range->bytes;
	__atomic_fetch_sub(&bins_bytes, bytes, __ATOMIC_RELAXED);
	sy__system_unmap(range, bytes);
	return bytes;
}

static size_t end_bins(size_t now, size_t age)
{
	size_t bytes = 0;

	for (size_t bin = MAPPING_BIN_LEAST; bin < MAPPING_BINS; bin++)
		for (unsigned way = 0; way < WAYS; way++)
			bytes += end_binned(&bins[bin][way], now, age);
	return bytes;
}

/* ---- Both --------------------------------------------------------------------------------------------------------- */

char *sy__mapping_cache_take(size_t *bytes, struct mapping_parts *parts)
{
	char *start = NULL;

	if (parts) {
		parts->count = 0;
		start = take_from_bins(bytes);
	}
	return start ? start : take_from_table(bytes, parts);
}

void sy__mapping_cache_age(void)
{
	bool table = __atomic_load_n(&table_bytes, __ATOMIC_RELAXED), binned = __atomic_load_n(&bins_bytes, __ATOMIC_RELAXED);
	size_t now = table || binned ? sy__milliseconds() : 0;

	if (table && is_due(&table_aged, now, AGE_MS))
		end_entries(now, MAPPING_CACHE_MS);
	if (binned && is_due(&bins_aged, now, BINS_AGE_MS))
		end_bins(now, MAPPING_CACHE_MS);
}

size_t sy__mapping_cache_end(void)
{
	size_t ended = __atomic_load_n(&table_bytes, __ATOMIC_RELAXED) ? end_entries(sy__milliseconds(), 0) : 0;

	return ended + (__atomic_load_n(&bins_bytes, __ATOMIC_RELAXED) ? end_bins(sy__milliseconds(), 0) : 0);
}

void sy__mapping_cache_forked(void)
{
	size_t bytes = 0;

	for (struct entry *entry = entries; entry < entries + RANGES; entry++) {
		if (start_of(entry) == BUSY)
			__atomic_store_n(&entry->start, NULL, __ATOMIC_RELAXED);
		else if (start_of(entry))
			bytes += __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&table_bytes, bytes, __ATOMIC_RELAXED);
}
