/*
 * The mmap threshold: which large objects are mappings of their own, and which of these are kept by their size.
 *
 * Why. Objects of 256 KiB to 4 MiB are the heap's, which serves them from runs of pages faster than mappings can. But a program
 * that takes thousands of buffers and touches the ends of each leaves a descriptor for every page, and pages with memory
 * wherever a buffer once ended. Such buffers are better mappings, which the cache keeps whole (mapping_cache.c, the bins). So
 * the threshold is off at first (sy_heap.mmap_threshold), is set when large objects turn out to be untouched, and is off again
 * when they are touched.
 *
 * Untouched is an object of which, behind the first page, at most one page of FEW is in memory. To ask the system of all pages
 * would take as long as all the rest. So it is asked of two windows, at places that differ each time, and of all pages only
 * where there is more than a little in one; and once LEAST_KNOWN in a row were untouched, of one object in LOOKED_AT only.
 *
 * When. Of the objects that the heap gets back one in LOOKED_AT is looked at; and of those that it hands out, when LATER more
 * have come, as a program may take all that it needs before it writes anything. When LEAST_KNOWN in a row of the ones are
 * untouched, or of the others so many that they have LEAST_SEEN pages, the threshold is set. When more than MOST_TOUCHED mappings
 * are touched, it is off, as the heap is better for those; such mappings that end after that are not kept beside what the heap
 * takes. Each time it takes twice as many to begin anew.
 *
 * All of it is guesses from samples, kept by relaxed atomics that may lose what another thread learns at the same time.
 */
#include "mmap_threshold.h"

#include "mapping_cache.h"

#include "core/types.h"

#define WINDOW 16u /* pages */
#define FEW 8u     /* of so many pages one may be in memory */
#define LEAST_KNOWN 16  /* objects in a row of which hardly a page was touched */
#define LEAST_SEEN 16384 /* pages of such in a row, of those that live */
#define LATER 32u       /* objects that have come since */
#define MOST_TOUCHED 3 /* objects of which more was */
#define MOST_DOUBLINGS 8u
#define LOOKED_AT 4u /* one of so many */
#define SELDOM 16u   /* of the heap's, while they are touched */

static int touched; /* of those that were looked at, so many were; or below 0: the last were not */
static int untouched; /* pages of those that live and were not, since one was */
static uintptr_t came[LATER]; /* the last: start and pages */
static size_t begun, ended; /* what differs from one look to the next */
static unsigned mistakes; /* times that the heap was to serve such objects again */

static bool more_than_few(const char *pages, size_t count, size_t page)
{
	return sy__source_has(pages, count * page, (count / FEW + 1) * page);
}

/* What two windows say of the pages behind the first. */
static bool seems_untouched(const char *start, size_t bytes, size_t number)
{
	size_t page = sy__system_page_bytes(), chance = number * (size_t)2654435761u >> 7;
	size_t count = bytes / page - 1, half = count / 2, places = half - WINDOW + 1;
	const char *pages = start + page;

	if (half < WINDOW)
		return !more_than_few(pages, count, page);
	return !more_than_few(pages + chance % places * page, WINDOW, page) &&
	       !more_than_few(pages + (half + (chance >> 8) % places) * page, WINDOW, page);
}

static bool is_untouched(const char *start, size_t bytes, size_t number)
{
	size_t page = sy__system_page_bytes();

	return seems_untouched(start, bytes, number) || !more_than_few(start + page, bytes / page - 1, page);
}

bool sy__mmap_threshold_was_mistaken(const struct sy_heap *heap)
{
	return !__atomic_load_n(&heap->mmap_threshold, __ATOMIC_RELAXED) && __atomic_load_n(&mistakes, __ATOMIC_RELAXED);
}

bool sy__mmap_threshold_end(struct sy_heap *heap)
{
	if (!__atomic_exchange_n(&heap->mmap_threshold, 0, __ATOMIC_RELAXED))
		return false;
	__atomic_fetch_add(&mistakes, 1, __ATOMIC_RELAXED);
	return true;
}

static void begin(struct sy_heap *heap)
{
	__atomic_store_n(&heap->mmap_threshold, MAPPING_BIN_LEAST * sy__system_page_bytes(), __ATOMIC_RELAXED);
}

static int doubled(int least)
{
	unsigned shift = __atomic_load_n(&mistakes, __ATOMIC_RELAXED);

	return least * (1 << (shift < MOST_DOUBLINGS ? shift : MOST_DOUBLINGS));
}

/* An object was looked at: whether hardly a page of it was touched. */
static void learn(struct sy_heap *heap, bool hardly)
{
	int known = __atomic_load_n(&touched, __ATOMIC_RELAXED), least = doubled(LEAST_KNOWN);

	if (!hardly)
		__atomic_store_n(&untouched, 0, __ATOMIC_RELAXED);
	known = !hardly ? (known < 0 ? 1 : known + 1) : known > -least ? known - 1 : known;
	if (known > MOST_TOUCHED) {
		sy__mmap_threshold_end(heap);
		known = 1;
	} else if (known == -least) {
		begin(heap);
	}
	__atomic_store_n(&touched, known, __ATOMIC_RELAXED);
}

bool sy__mmap_threshold_is_untouched(struct sy_heap *heap, const char *start, size_t used)
{
	size_t number = __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
	bool hardly;

	if (__atomic_load_n(&touched, __ATOMIC_RELAXED) <= -LEAST_KNOWN && number % LOOKED_AT)
		return true;
	hardly = is_untouched(start, used, number);
	learn(heap, hardly);
	return hardly;
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

	if (!seems_untouched(start, pages << SY_PAGE_SHIFT, number))
		learn(heap, false);
	else if (__atomic_add_fetch(&untouched, (int)pages, __ATOMIC_RELAXED) >= doubled(LEAST_SEEN))
		begin(heap);
}

void sy__mmap_threshold_watch(struct sy_heap *heap, const void *pages, size_t bytes)
{
	size_t number;
	uintptr_t word;

	if (!sy__mapping_cache_has_bin(bytes))
		return;
	number = __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
	word = __atomic_exchange_n(&came[number % LATER], (uintptr_t)pages | bytes >> SY_PAGE_SHIFT, __ATOMIC_RELAXED);
	if (word && comes_up(number))
		look_later(heap, word, number);
}

void sy__mmap_threshold_learn(struct sy_heap *heap, const void *pages, size_t bytes)
{
	size_t number;

	if (!sy__mapping_cache_has_bin(bytes))
		return;
	number = __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
	if (comes_up(number))
		learn(heap, seems_untouched(pages, bytes, number));
}
