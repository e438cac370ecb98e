/*
 * The mmap threshold: which large objects are mappings of their own, and which of these are cached by their size.
 *
 * Why. Objects of 256 KiB to 4 MiB come from the heap, which serves them faster from runs of pages than mappings could. But a
 * program may take thousands of buffers and touch only the ends of each. In the heap that leaves a descriptor for every page, and
 * pages in memory wherever a buffer once ended. Such buffers are better mappings, which the cache keeps whole (mapping_cache.c,
 * the bins). So the threshold is off at first (sy_heap.mmap_threshold). It is set when large objects turn out to be untouched,
 * and is off again when they are touched.
 *
 * An object is untouched if, behind the first page, at most one page of FEW is in memory. Asking the system about all pages would
 * take as long as all the rest. So it is asked about two windows, at places that differ each time, and about all pages only where
 * one window has more than a few in memory. Once LEAST_KNOWN objects in a row were untouched, it is asked about one object in
 * LOOKED_AT only.
 *
 * When. One in LOOKED_AT of the heap's freed objects is looked at. So is one in LOOKED_AT of its allocated ones, when LATER more
 * have been allocated: a program may allocate all that it needs before it writes anything. The threshold is set when LEAST_KNOWN
 * freed objects in a row are untouched, or allocated ones in a row with LEAST_SEEN pages. It is off when more than MOST_TOUCHED
 * mappings are touched, because the heap is better for those. Mappings that are freed after that are not cached, as the heap needs memory
 * now. Each time that the threshold was a mistake it takes twice as many objects to set it again.
 *
 * All of it is guesswork from samples. The counters are relaxed atomics and may lose what another thread learns at the same time.
 */
#include "mmap_threshold.h"

#include "mapping_cache.h"

#include "core/types.h"

#define WINDOW 16u /* pages */
#define FEW 8u     /* one page in 8 may be in memory */
#define LEAST_KNOWN 16   /* freed objects in a row that are untouched */
#define LEAST_SEEN 16384 /* pages of live objects in a row that are untouched */
#define LATER 32u      /* allocations until a live object is looked at */
#define MOST_TOUCHED 3 /* objects that are touched */
#define MOST_DOUBLINGS 8u
#define LOOKED_AT 4u /* one object in 4 is looked at */
#define SELDOM 16u   /* the same of the heap's objects, while they are touched */

static int touched; /* above 0: number of objects touched; below 0: number in a row that were not */
static int untouched; /* pages of live objects that were not touched, since one was */
static uintptr_t recent[LATER]; /* the last allocations: start and number of pages */
static size_t begun, ended; /* allocations and frees: numbers that place the windows */
static unsigned mistakes; /* how often the threshold was set and ended again */

static bool more_than_few(const char *pages, size_t count, size_t page)
{
	return sy__source_has(pages, count * page, (count / FEW + 1) * page);
}

/* Whether two windows behind the first page look untouched. */
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

static bool looks_untouched(const char *start, size_t bytes, size_t number)
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

/* Takes note of an object that was looked at, and sets or ends the threshold. */
static void learn(struct sy_heap *heap, bool is_untouched)
{
	int known = __atomic_load_n(&touched, __ATOMIC_RELAXED), least = doubled(LEAST_KNOWN);

	if (!is_untouched)
		__atomic_store_n(&untouched, 0, __ATOMIC_RELAXED);
	known = !is_untouched ? (known < 0 ? 1 : known + 1) : known > -least ? known - 1 : known;
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
	bool untouched_now;

	if (__atomic_load_n(&touched, __ATOMIC_RELAXED) <= -LEAST_KNOWN && number % LOOKED_AT)
		return true;
	untouched_now = looks_untouched(start, used, number);
	learn(heap, untouched_now);
	return untouched_now;
}

/* Whether this one of the heap's objects is looked at. */
static bool is_sampled(size_t number)
{
	return number % (__atomic_load_n(&touched, __ATOMIC_RELAXED) > 0 ? SELDOM : LOOKED_AT) == 0;
}

/* Looks at an object of a while ago. The heap's addresses may be looked at whatever has become of the object. */
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
	word = __atomic_exchange_n(&recent[number % LATER], (uintptr_t)pages | bytes >> SY_PAGE_SHIFT, __ATOMIC_RELAXED);
	if (word && is_sampled(number))
		look_later(heap, word, number);
}

void sy__mmap_threshold_learn(struct sy_heap *heap, const void *pages, size_t bytes)
{
	size_t number;

	if (!sy__mapping_cache_has_bin(bytes))
		return;
	number = __atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
	if (is_sampled(number))
		learn(heap, seems_untouched(pages, bytes, number));
}
