/*
 * Mappings that ended of which hardly a page is in memory, kept for the next of their size.
 *
 * Why. A program that takes thousands of buffers and writes to the ends of each would pay a fault for either end of every one,
 * and two calls of the system; and as runs of the heap's pages they take a descriptor for each page, and leave pages behind
 * wherever they once ended. Here a range stays as it is, neither cut nor joined, and serves requests of nearly its size: what
 * its last user has written is mostly what its next one writes.
 *
 * Where. There is a bin for each number of pages up to 4 MiB and a little, of WAYS words, each a range or NULL. A range goes to
 * its own bin, or to one somewhat below if that is full; a request takes the first from its own bin upward, at most an eighth
 * above. How large a range really is, and since when it is here, its own first page says, which is in memory as the header was
 * in it (mapping.c).
 *
 * Which. To ask the system of all pages would take as long as all the rest. So it is asked of two windows, at places that
 * differ each time, and of all only where there is more than a little in one; and once LEAST_KNOWN in a row were thin, of one
 * object in LOOKED_AT only. Objects of which more was touched are for kept.c.
 *
 * When. Objects of these sizes are the heap's, and of those that it gets back one in LOOKED_AT is looked at likewise; and of
 * those that it hands out, when LATER more have come, as a program may take all that it needs before it writes anything. When
 * LEAST_KNOWN in a row of the ones are thin, or of the others so many that they have LEAST_SEEN pages, it leaves large requests
 * to us (sy_heap.mmap_threshold). When more than MOST_TOUCHED are not, it has them again, as it is better for those; such mappings
 * that end after that are not kept beside what it takes. Each time it takes twice as many to begin anew.
 *
 * How much. Whoever wrote somewhere else leaves pages behind. One range in EMPTIED loses all but its first page when it ends,
 * so that those that go round have a few of them at most. What was not used for THIN_MS goes back to the system.
 *
 * Without locks, as a program may fork at any moment. A word goes from NULL to a range by compare-and-exchange (release: what
 * the range says of itself goes along), and from a range to NULL by an exchange (acquire), after which nobody else knows of the
 * range. Hence nothing is read of one that somebody might unmap. What another thread had in hand at a fork is lost for the
 * child.
 */
#define _GNU_SOURCE /* madvise */
#include "thin.h"

#include "kept.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "core/types.h"

#ifndef BINS /* a model has fewer */
#define LEAST_PAGES 64u
#define BINS 1041u
#define WAYS 8u
#endif
#define ABOVE 8u  /* a request is served by what is larger by up to this share of it */
#define BELOW 16u /* ... where a range is put below its own bin, by up to this share */
#define MOST_BYTES ((size_t)1 << (sizeof(size_t) > 4 ? 33 : 27))
#define WINDOW 16u /* pages */
#define FEW 8u     /* of so many pages one may be in memory */
#define LEAST_KNOWN 16  /* objects in a row of which hardly a page was touched */
#define LEAST_SEEN 16384 /* pages of such in a row, of those that live */
#define LATER 32u       /* objects that have come since */
#define MOST_TOUCHED 3 /* objects of which more was */
#define MOST_DOUBLINGS 8u
#define LOOKED_AT 4u /* one of so many */
#define SELDOM 16u   /* of the heap's, while they are touched */
#define EMPTIED 16u
#define THIN_MS KEPT_MS
#define AGE_MS 100u /* between two looks at all */

struct range {
	size_t bytes, since;
};

static _Alignas(64) struct range *bins[BINS][WAYS];
static int touched; /* of those that were looked at, so many were; or below 0: the last were not. Relaxed */
static int untouched; /* pages of those that live and were not, since one was. Relaxed */
static uintptr_t came[LATER]; /* the last: start and pages. Relaxed */
static size_t begun;
static unsigned mistakes; /* times that the heap was to serve such objects again */
static size_t all_bytes, aged, ended; /* relaxed: a limit, a time, and what differs from one look to the next */

/* ---- Words -------------------------------------------------------------------------------------------------------- */

static bool put_at(struct range **word, struct range *range)
{
	struct range *none = NULL;

	return !__atomic_load_n(word, __ATOMIC_RELAXED) &&
	       __atomic_compare_exchange_n(word, &none, range, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static struct range *take_from(struct range **word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED) ? __atomic_exchange_n(word, NULL, __ATOMIC_ACQUIRE) : NULL;
}

static bool put_below(struct range *range, size_t pages)
{
	size_t least = pages - pages / BELOW;

	for (size_t bin = pages; bin >= least && bin >= LEAST_PAGES; bin--)
		for (unsigned way = 0; way < WAYS; way++)
			if (put_at(&bins[bin][way], range))
				return true;
	return false;
}

static struct range *take_fitting(size_t pages)
{
	size_t most = pages + pages / ABOVE;
	struct range *range;

	for (size_t bin = pages; bin <= most && bin < BINS; bin++)
		for (unsigned way = 0; way < WAYS; way++)
			if ((range = take_from(&bins[bin][way])))
				return range;
	return NULL;
}

/* ---- Which are thin ----------------------------------------------------------------------------------------------- */

static bool more_than_few(const char *pages, size_t count, size_t page)
{
	return sy__source_has(pages, count * page, (count / FEW + 1) * page);
}

/* What two windows say of the pages behind the first. */
static bool seems_thin(const char *start, size_t bytes, size_t number)
{
	size_t page = sy__system_page_bytes(), chance = number * (size_t)2654435761u >> 7;
	size_t count = bytes / page - 1, half = count / 2, places = half - WINDOW + 1;
	const char *pages = start + page;

	if (half < WINDOW)
		return !more_than_few(pages, count, page);
	return !more_than_few(pages + chance % places * page, WINDOW, page) &&
	       !more_than_few(pages + (half + (chance >> 8) % places) * page, WINDOW, page);
}

static bool is_thin(const char *start, size_t bytes, size_t number)
{
	size_t page = sy__system_page_bytes();

	return seems_thin(start, bytes, number) || !more_than_few(start + page, bytes / page - 1, page);
}

static bool there_is_room(size_t bytes)
{
	if (__atomic_add_fetch(&all_bytes, bytes, __ATOMIC_RELAXED) <= MOST_BYTES)
		return true;
	__atomic_fetch_sub(&all_bytes, bytes, __ATOMIC_RELAXED);
	return false;
}

/* ---- Giving, taking, ending --------------------------------------------------------------------------------------- */

bool sy__thin_serves(size_t bytes)
{
	return bytes / sy__system_page_bytes() >= LEAST_PAGES && bytes / sy__system_page_bytes() < BINS;
}

char *sy__thin_take(size_t *bytes)
{
	struct range *range = NULL;

	if (__atomic_load_n(&all_bytes, __ATOMIC_RELAXED) && sy__thin_serves(*bytes))
		range = take_fitting(*bytes / sy__system_page_bytes());
	if (!range)
		return NULL;
	*bytes = range->bytes;
	__atomic_fetch_sub(&all_bytes, range->bytes, __ATOMIC_RELAXED);
	return (char *)range;
}

bool sy__thin_was_mistaken(const struct sy_heap *heap)
{
	return !__atomic_load_n(&heap->mmap_threshold, __ATOMIC_RELAXED) && __atomic_load_n(&mistakes, __ATOMIC_RELAXED);
}

bool sy__thin_is_over(struct sy_heap *heap)
{
	if (!__atomic_exchange_n(&heap->mmap_threshold, 0, __ATOMIC_RELAXED))
		return false;
	__atomic_fetch_add(&mistakes, 1, __ATOMIC_RELAXED);
	return true;
}

static void begin(struct sy_heap *heap)
{
	__atomic_store_n(&heap->mmap_threshold, LEAST_PAGES * sy__system_page_bytes(), __ATOMIC_RELAXED);
}

static int doubled(int least)
{
	unsigned shift = __atomic_load_n(&mistakes, __ATOMIC_RELAXED);

	return least * (1 << (shift < MOST_DOUBLINGS ? shift : MOST_DOUBLINGS));
}

/* What was looked at. Relaxed: a guess, which may lose what another thread learns at the same time. */
static void learn(struct sy_heap *heap, bool thin)
{
	int known = __atomic_load_n(&touched, __ATOMIC_RELAXED), least = doubled(LEAST_KNOWN);

	if (!thin)
		__atomic_store_n(&untouched, 0, __ATOMIC_RELAXED);
	known = !thin ? (known < 0 ? 1 : known + 1) : known > -least ? known - 1 : known;
	if (known > MOST_TOUCHED) {
		sy__thin_is_over(heap);
		known = 1;
	} else if (known == -least) {
		begin(heap);
	}
	__atomic_store_n(&touched, known, __ATOMIC_RELAXED);
}

bool sy__thin_is(struct sy_heap *heap, const char *start, size_t used)
{
	size_t number = __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
	bool thin;

	if (__atomic_load_n(&touched, __ATOMIC_RELAXED) <= -LEAST_KNOWN && number % LOOKED_AT)
		return true;
	thin = is_thin(start, used, number);
	learn(heap, thin);
	return thin;
}

/* Of the heap's objects, whether this one is to be looked at. */
static bool comes_up(size_t number)
{
	return number % (__atomic_load_n(&touched, __ATOMIC_RELAXED) > 0 ? SELDOM : LOOKED_AT) == 0;
}

/* Addresses of the heap's may be looked at, whatever has become of the object. */
static void look_later(struct sy_heap *heap, uintptr_t word, size_t number)
{
	const char *start = (const char *)(word & ~(uintptr_t)(SY_PAGE_SIZE - 1));
	size_t pages = (size_t)(word & (SY_PAGE_SIZE - 1));

	if (!seems_thin(start, pages << SY_PAGE_SHIFT, number))
		learn(heap, false);
	else if (__atomic_add_fetch(&untouched, (int)pages, __ATOMIC_RELAXED) >= doubled(LEAST_SEEN))
		begin(heap);
}

void sy__thin_watch(struct sy_heap *heap, const void *pages, size_t bytes)
{
	size_t number;
	uintptr_t word;

	if (!sy__thin_serves(bytes))
		return;
	number = __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
	word = __atomic_exchange_n(&came[number % LATER], (uintptr_t)pages | bytes >> SY_PAGE_SHIFT, __ATOMIC_RELAXED);
	if (word && comes_up(number))
		look_later(heap, word, number);
}

void sy__thin_learn(struct sy_heap *heap, const void *pages, size_t bytes)
{
	size_t number;

	if (!sy__thin_serves(bytes))
		return;
	number = __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
	if (comes_up(number))
		learn(heap, seems_thin(pages, bytes, number));
}

bool sy__thin_give(char *start, size_t bytes)
{
	size_t page = sy__system_page_bytes();
	struct range *range = (struct range *)(void *)start;

	sy__thin_age();
	if (!there_is_room(bytes))
		return false;
	if (__atomic_load_n(&ended, __ATOMIC_RELAXED) % EMPTIED == 0)
		madvise(start + page, bytes - page, MADV_DONTNEED);
	*range = (struct range){ bytes, sy__milliseconds() };
	if (put_below(range, bytes / page))
		return true;
	__atomic_fetch_sub(&all_bytes, bytes, __ATOMIC_RELAXED);
	return false;
}

static size_t end(struct range *range)
{
	size_t bytes = range->bytes;

	__atomic_fetch_sub(&all_bytes, bytes, __ATOMIC_RELAXED);
	munmap(range, bytes);
	return bytes;
}

/* Whether it stays there; bytes that went back. */
static size_t end_older(struct range **word, size_t now, size_t age)
{
	struct range *range = take_from(word);

	if (!range || (now - range->since < age && put_at(word, range)))
		return 0;
	return end(range);
}

static size_t end_all_older(size_t now, size_t age)
{
	size_t bytes = 0;

	for (size_t bin = LEAST_PAGES; bin < BINS; bin++)
		for (unsigned way = 0; way < WAYS; way++)
			bytes += end_older(&bins[bin][way], now, age);
	return bytes;
}

void sy__thin_age(void)
{
	size_t now;

	if (!__atomic_load_n(&all_bytes, __ATOMIC_RELAXED))
		return;
	now = sy__milliseconds();
	if (now - __atomic_load_n(&aged, __ATOMIC_RELAXED) < AGE_MS)
		return;
	__atomic_store_n(&aged, now, __ATOMIC_RELAXED);
	end_all_older(now, THIN_MS);
}

size_t sy__thin_end(void)
{
	return __atomic_load_n(&all_bytes, __ATOMIC_RELAXED) ? end_all_older(sy__milliseconds(), 0) : 0;
}
