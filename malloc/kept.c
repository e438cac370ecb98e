/*
 * Mappings that ended, kept for a while for the next to come.
 *
 * Why. The kernel zeroes each page of a new mapping at its first use, by a fault. A program that allocates and frees large
 * objects would spend more time there than in its own work. Hence what it freed a moment ago is used again, whatever the
 * sizes. The smallest kept range that suffices is taken; what it has too much, from
 * LEAST_REST bytes on, stays here as a range of its own, without any system call. If none suffices, the largest grows by mremap,
 * and others are moved to its end, by mremap too: their pages move, at a hundredth of what faults would cost, and only what
 * nobody has will fault. Where fresh pages are mapped all the same, for there is no other way to grow, as many go back of what
 * is kept: keeping never adds to the peak of all memory, but for the pages of sparse ranges.
 *
 * Sparse ranges. Of large objects that programs touch little of, few pages are in memory. The system tells (mincore), at a
 * microsecond a MiB, and is asked only where a range would be cut, joined or given back, and only of what may have changed:
 * behind the `used` bytes of a range nobody has written since it was found sparse there. What is sparse takes little memory, so
 * it isn't cut off: whoever gets the front has all of it, up to SLACK times what was asked for and as much again in memory, and
 * brings it back whole. So ranges become as large as the largest requests, and serve all sizes with the same few pages. A
 * sparse range that is too small grows in one call, without others; and fresh pages don't come in place of sparse ranges. (Cut
 * and joined they took three calls an object, of 7 to 30 microseconds each; a fault takes 1.5.)
 *
 * What is going to grow gets the start of the largest range, whose rest is kept right behind it. When it does grow, it takes from
 * that first (sy__kept_take_behind), without any system call; so a program that builds one array after the other has the pages
 * of the first for all.
 *
 * Joints. mremap takes nothing that spans two mappings of the kernel's, and moved pages stay a mapping of their own. So of
 * what was joined its user keeps, for that time, where the parts meet (kept_joints), and it comes back whole with that: a program
 * that takes and frees the same large object again and again has it joined once. Who wants another size, by more than an eighth,
 * has it fall into its parts first, each a range again. What is going to grow, and be moved for that, is not joined.
 *
 * How much. At most RANGES ranges, of at most KEPT_MOST bytes each and MOST_BYTES in all, for KEPT_MS. Old ones are given back
 * by whoever comes by: mappings that begin and end, and slow calls of the heap (sy_heap.passes). malloc_trim gives back all,
 * and so does running out of addresses or memory.
 *
 * mremap takes a range that lies within one mapping of the kernel's. Most do, as they were cut from one, and joined to what
 * they were cut from. Where that is not so, as what grew took a range behind it that was moved there before, or a program has
 * changed a part of it (mprotect, madvise), mremap refuses, and the range is given up, or the object copied (entries.c).
 * Kernels may unmap what lies where the range was to go before they refuse; whatever is mapped there then is somebody else's.
 *
 * Without locks, as a program may fork at any moment (tests/model/code/kept.c tries all interleavings). Whoever changes
 * entry.start from anything to BUSY owns the entry, and stores a start (release: the words of the entry and the range's pages
 * go along with it) or NULL. Those who look for a range read sizes of entries that they don't own, and check again when they
 * do. A child of a fork that came while another thread owned an entry loses that range; sy__kept_forked makes the entry free
 * again, and counts anew.
 *
 * The thread sanitizer doesn't know that mremap moves memory: it takes who gets those addresses later for a second user of the
 * same.
 */
#define _GNU_SOURCE /* mremap */
#include "kept.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "core/platform.h"

#ifndef RANGES /* a model has fewer */
#define RANGES 128u
#endif
#define MOST_BYTES ((size_t)128 << 20)
#define LEAST_REST ((size_t)128 << 10)
#define AGE_MS 25u /* between two looks at all entries */
#define SPARSE 4u  /* of so many pages at most one is in memory */
#define SLACK 8u   /* times what is asked for: what may be handed out with it */

struct entry {
	char *start; /* NULL: free; &busy: somebody's */
	size_t bytes;
	size_t used;  /* of them, from the start: behind these hardly a page is in memory, as far as that is known */
	size_t since; /* milliseconds */
	struct kept_joints joints; /* its owner's */
};

struct range {
	char *start;
	size_t bytes, used;
	struct kept_joints joints;
};

static struct entry entries[RANGES];
static size_t all_bytes, aged; /* relaxed: a limit and a time, which order nothing */
static char busy;

#define BUSY (&busy)

/* ---- Entries ------------------------------------------------------------------------------------------------------ */

static char *start_of(struct entry *entry)
{
	return __atomic_load_n(&entry->start, __ATOMIC_RELAXED);
}

static bool own(struct entry *entry, char *start)
{
	return __atomic_compare_exchange_n(&entry->start, &start, BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Empties an entry that is the caller's. The release keeps the look at its size before the next owner's write of one. */
static size_t leave(struct entry *entry)
{
	size_t bytes = __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED);

	__atomic_fetch_sub(&all_bytes, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->start, NULL, __ATOMIC_RELEASE);
	return bytes;
}

static bool there_is_room(size_t bytes)
{
	if (bytes > KEPT_MOST)
		return false;
	if (__atomic_add_fetch(&all_bytes, bytes, __ATOMIC_RELAXED) <= MOST_BYTES)
		return true;
	__atomic_fetch_sub(&all_bytes, bytes, __ATOMIC_RELAXED);
	return false;
}

static bool keep(const struct range *range)
{
	if (!there_is_room(range->bytes))
		return false;
	for (struct entry *entry = entries; entry < entries + RANGES; entry++) {
		if (start_of(entry) || !own(entry, NULL))
			continue;
		__atomic_store_n(&entry->bytes, range->bytes, __ATOMIC_RELAXED);
		__atomic_store_n(&entry->used, range->used, __ATOMIC_RELAXED);
		__atomic_store_n(&entry->since, sy__milliseconds(), __ATOMIC_RELAXED);
		entry->joints = range->joints;
		__atomic_store_n(&entry->start, range->start, __ATOMIC_RELEASE);
		return true;
	}
	__atomic_fetch_sub(&all_bytes, range->bytes, __ATOMIC_RELAXED);
	return false;
}

static void keep_or_end(const struct range *range)
{
	sy__kept_age();
	if (!keep(range))
		munmap(range->start, range->bytes);
}

/* Whether hardly a page of so many bytes is in memory, all that there are being among the first `looked` of them. Of what is
 * another thread's by now it may say anything. */
static bool sparse(const char *start, size_t bytes, size_t looked)
{
	size_t page = sy__system_page_bytes();

	return !sy__source_has(start, looked, (bytes / page / SPARSE + 1) * page);
}

/* ---- Taking ------------------------------------------------------------------------------------------------------- */

static bool better(size_t bytes, size_t than, size_t wanted)
{
	if (bytes >= wanted)
		return than < wanted || bytes < than;
	return than < wanted && bytes > than;
}

/* The smallest that suffices, or else the largest; NULL: there is none. */
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

/* The best for so many bytes; of as many as can be, the largest. */
static bool take_best(size_t wanted, struct range *range)
{
	char *start = NULL;
	struct entry *entry = best(wanted, &start);

	if (!entry || !own(entry, start))
		return false;
	range->start = start;
	range->used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);
	range->joints = entry->joints;
	range->bytes = leave(entry);
	return true;
}

/* Whether what was joined before is as good as if it were joined for this. */
static bool is_as_good(const struct range *range, size_t wanted)
{
	return range->bytes >= wanted && range->bytes - wanted <= wanted / 8;
}

static void fall_apart(const struct range *range)
{
	size_t bytes = range->bytes;

	for (uint32_t left = range->joints.count; left--;) {
		struct range part = { .bytes = range->joints.bytes[left], .used = range->joints.bytes[left] };

		bytes -= part.bytes;
		part.start = range->start + bytes;
		keep_or_end(&part);
	}
	keep_or_end(&(struct range){ .start = range->start, .bytes = bytes, .used = range->used < bytes ? range->used : bytes });
}

/* One that is not joined. */
static bool take_single(size_t wanted, struct range *range)
{
	while (take_best(wanted, range)) {
		if (!range->joints.count)
			return true;
		fall_apart(range);
	}
	return false;
}

/* What the range has too much stays here. */
static void cut(struct range *range, size_t bytes)
{
	if (range->bytes < bytes + LEAST_REST)
		return;
	sy__kept_give(range->start + bytes, range->bytes - bytes, range->used > bytes ? range->used - bytes : 0);
	range->bytes = bytes;
}

static void end(const struct range *ranges, uint32_t count)
{
	for (uint32_t each = 0; each < count; each++)
		munmap(ranges[each].start, ranges[each].bytes);
}

/* Ranges that make up for missing bytes, as far as there are any; how many. */
static uint32_t collect(struct range *ranges, size_t missing)
{
	uint32_t count = 0;

	while (missing >= LEAST_REST && count < KEPT_JOINED && take_single(missing, &ranges[count])) {
		cut(&ranges[count], missing);
		missing -= ranges[count].bytes < missing ? ranges[count].bytes : missing;
		count++;
	}
	return count;
}

/* Moves ranges to where there is room for them, one behind the other; how many of them the kernel has moved. */
static uint32_t move_there(char *to, const struct range *ranges, uint32_t count)
{
	for (uint32_t each = 0; each < count; each++) {
		size_t bytes = ranges[each].bytes;

		if (mremap(ranges[each].start, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
			return each;
		to += bytes;
	}
	return count;
}

/* A grown range, but for where the first of these ranges that was not moved was to go. */
static void give_up(char *grown, size_t bytes, const struct range *others, uint32_t moved, size_t joined)
{
	size_t before = bytes - joined, behind;

	for (uint32_t each = 0; each < moved; each++)
		before += others[each].bytes;
	behind = before + others[moved].bytes;
	munmap(grown, before);
	if (behind < bytes)
		munmap(grown + behind, bytes - behind);
}

/* A range with new pages at its end and, of so many bytes, others behind them. NULL: the kernel refuses, and all are given up. */
static char *grow(const struct range *range, size_t bytes, const struct range *others, uint32_t count, size_t joined)
{
	char *grown = mremap(range->start, range->bytes, bytes, MREMAP_MAYMOVE);
	uint32_t moved = grown == MAP_FAILED ? 0 : move_there(grown + bytes - joined, others, count);

	if (grown != MAP_FAILED && moved == count)
		return grown;
	end(others + moved, count - moved);
	if (grown == MAP_FAILED)
		end(range, 1);
	else
		give_up(grown, bytes, others, moved, joined);
	return NULL;
}

static char *grow_alone(const struct range *range, size_t bytes)
{
	char *grown = grow(range, bytes, NULL, 0, 0);

	if (grown)
		sy__kept_make_up(bytes - range->bytes);
	return grown;
}

static char *join(const struct range *range, size_t *bytes, struct kept_joints *joints)
{
	struct range others[KEPT_JOINED];
	size_t joined = 0;
	char *grown;

	joints->count = collect(others, *bytes - range->bytes);
	for (uint32_t each = 0; each < joints->count; each++)
		joined += joints->bytes[each] = (uint32_t)others[each].bytes;
	if (*bytes < range->bytes + joined)
		*bytes = range->bytes + joined;
	grown = grow(range, *bytes, others, joints->count, joined);
	if (grown)
		sy__kept_make_up(*bytes - range->bytes - joined);
	return grown;
}

/* Whether hardly a page behind so many bytes of it is in memory, and no more than so many bytes. */
static bool sparse_behind(const struct range *range, size_t bytes, size_t most)
{
	size_t behind = range->bytes - bytes, few = behind / SPARSE < most ? behind : most * SPARSE;

	return range->used <= bytes || sparse(range->start + bytes, few, range->used - bytes);
}

char *sy__kept_take(size_t *bytes, struct kept_joints *joints)
{
	size_t wanted = joints ? *bytes : SIZE_MAX;
	struct range range;

	if (joints)
		joints->count = 0;
	if (!__atomic_load_n(&all_bytes, __ATOMIC_RELAXED) || !take_best(wanted, &range))
		return NULL;
	if (range.joints.count && joints && is_as_good(&range, *bytes)) {
		*joints = range.joints;
		*bytes = range.bytes;
		return range.start;
	}
	if (range.joints.count) {
		fall_apart(&range);
		if (!take_single(wanted, &range))
			return NULL;
	}
	if (range.bytes < *bytes)
		return joints && !sparse_behind(&range, 0, range.bytes) ? join(&range, bytes, joints) : grow_alone(&range, *bytes);
	if (!joints || range.bytes / SLACK > *bytes || !sparse_behind(&range, *bytes, *bytes))
		cut(&range, *bytes);
	*bytes = range.bytes;
	return range.start;
}

size_t sy__kept_take_behind(char *end, size_t bytes)
{
	struct range range = { .start = end };

	if (!__atomic_load_n(&all_bytes, __ATOMIC_RELAXED))
		return 0;
	for (struct entry *entry = entries; entry < entries + RANGES; entry++) {
		if (start_of(entry) != end || !own(entry, end))
			continue;
		range.used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);
		range.joints = entry->joints;
		range.bytes = leave(entry);
		if (range.joints.count) {
			keep_or_end(&range);
			return 0;
		}
		cut(&range, bytes);
		return range.bytes;
	}
	return 0;
}

/* ---- Giving ------------------------------------------------------------------------------------------------------- */

void sy__kept_give(char *start, size_t bytes, size_t used)
{
	keep_or_end(&(struct range){ .start = start, .bytes = bytes, .used = used });
}

void sy__kept_give_joined(char *start, size_t bytes, size_t used, const struct kept_joints *joints)
{
	keep_or_end(&(struct range){ .start = start, .bytes = bytes, .used = used, .joints = *joints });
}

/* Gives back what has been here for so long; bytes. */
static size_t end_older(size_t age)
{
	size_t now = sy__milliseconds(), given = 0;

	for (struct entry *entry = entries; entry < entries + RANGES; entry++) {
		char *start = start_of(entry);
		size_t bytes;

		if (!start || start == BUSY || now - __atomic_load_n(&entry->since, __ATOMIC_RELAXED) < age ||
		    !own(entry, start))
			continue;
		bytes = leave(entry);
		munmap(start, bytes);
		given += bytes;
	}
	return given;
}

/* So many bytes of a range at most, from its end; of a joined one all. */
static size_t end_part(struct entry *entry, char *start, size_t most)
{
	size_t used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED), joined = entry->joints.count, bytes = leave(entry);
	size_t part = joined || bytes < most + LEAST_REST ? bytes : most, rest = bytes - part;

	munmap(start + rest, part);
	if (rest && !keep(&(struct range){ .start = start, .bytes = rest, .used = used < rest ? used : rest }))
		munmap(start, rest);
	return part;
}

void sy__kept_make_up(size_t bytes)
{
	size_t given;

	for (struct entry *entry = entries; entry < entries + RANGES && bytes; entry++) {
		char *start = __atomic_load_n(&all_bytes, __ATOMIC_RELAXED) ? start_of(entry) : NULL;
		size_t used = __atomic_load_n(&entry->used, __ATOMIC_RELAXED);

		if (!start || start == BUSY)
			continue;
		if (sparse(start, __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED), used) || !own(entry, start))
			continue;
		given = end_part(entry, start, bytes);
		bytes -= given < bytes ? given : bytes;
	}
}

void sy__kept_age(void)
{
	size_t now;

	if (!__atomic_load_n(&all_bytes, __ATOMIC_RELAXED))
		return;
	now = sy__milliseconds();
	if (now - __atomic_load_n(&aged, __ATOMIC_RELAXED) < AGE_MS)
		return;
	__atomic_store_n(&aged, now, __ATOMIC_RELAXED);
	end_older(KEPT_MS);
}

size_t sy__kept_end(void)
{
	return __atomic_load_n(&all_bytes, __ATOMIC_RELAXED) ? end_older(0) : 0;
}

void sy__kept_forked(void)
{
	size_t bytes = 0;

	for (struct entry *entry = entries; entry < entries + RANGES; entry++) {
		if (start_of(entry) == BUSY)
			__atomic_store_n(&entry->start, NULL, __ATOMIC_RELAXED);
		else if (start_of(entry))
			bytes += __atomic_load_n(&entry->bytes, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&all_bytes, bytes, __ATOMIC_RELAXED);
}
