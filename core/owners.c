/*
 * Owners of pages, for freeing without knowing the cache.
 *
 * kfree gets an address and nothing else. Through page descriptors the way to the caller's own state of the object's cache is
 * long: the page's descriptor, that of the slab's first page, the cache, its array of slots. And the descriptor is what
 * other CPUs write to when they free into the slab. So heaps of threads keep one more word for each page, which only changes
 * when the page changes hands: the array of slots itself. Eight pages share a cache line, as against one descriptor.
 *
 * Beside the word is where the descriptor of the block's first page is. The page's own descriptor says so too, but to ask the
 * descriptors of all pages of a slab, for the way to one of them, is to wait for another cache line in each free.
 *
 * Whoever takes pages for objects that kfree may get says whom they belong to, before any such object is handed out; words of
 * other pages are never looked at, so nothing is undone when pages are given back. What has no fast path (a large
 * allocation, an object with its free pointer elsewhere) belongs to an array in which nothing is ever found.
 *
 * Both are reserved for the whole range of pages at once, and made usable in chunks as pages are used, so that they count
 * against no limit before. A block of pages is within one chunk, as both are aligned. Two threads may make the same chunk usable at
 * once: that is no harm. Whether a chunk is usable is an acquire, against the release of who made it so, that no write to it is made
 * before the word was seen; the mapping itself is changed for all processors at once. Writes are plain: who frees an object got it
 * from somebody who got it after the word was written.
 */
#include "owners.h"

#include "page_interface.h"

#define CHUNK ((size_t)8 << SY_MAX_ORDER) /* pages: their words are as much memory as the largest pages of machines are */
#define WORDS_BYTES (CHUNK * sizeof(void *))
#define HEADS_BYTES (CHUNK * sizeof(struct sy_page *))

static size_t chunks(const struct sy__owners *owners)
{
	return (owners->pages + CHUNK - 1) / CHUNK;
}

/* Words, heads, and a byte for each chunk. */
static size_t reserved(const struct sy__owners *owners)
{
	return chunks(owners) * (WORDS_BYTES + HEADS_BYTES + 1);
}

bool sy__owners_create(struct sy__owners *owners, const struct sy_heap *heap)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)heap->pages;

	owners->memory = (uintptr_t)base->memory;
	owners->pages = (size_t)base->page_count;
	owners->words = sy__source_reserve(reserved(owners));
	if (!owners->words)
		return false;
	owners->heads = (struct sy_page **)(void *)((char *)owners->words + chunks(owners) * WORDS_BYTES);
	owners->there = (uint8_t *)owners->heads + chunks(owners) * HEADS_BYTES;
	if (sy__source_commit(owners->there, chunks(owners)) != 0) {
		sy__owners_destroy(owners);
		return false;
	}
	owners->origin = (uintptr_t)owners->words - (owners->memory >> SY_PAGE_SHIFT) * sizeof(void *);
	return true;
}

void sy__owners_destroy(struct sy__owners *owners)
{
	if (owners->words)
		sy__source_release(owners->words, reserved(owners));
	owners->words = NULL;
}

static bool make_usable(struct sy__owners *owners, size_t chunk)
{
	if (sy__likely(__atomic_load_n(&owners->there[chunk], __ATOMIC_ACQUIRE)))
		return true;
	if (sy__source_commit(owners->words + chunk * CHUNK, WORDS_BYTES) != 0 ||
	    sy__source_commit(owners->heads + chunk * CHUNK, HEADS_BYTES) != 0)
		return false;
	__atomic_store_n(&owners->there[chunk], 1, __ATOMIC_RELEASE);
	return true;
}

bool sy__owners_set(struct sy__owners *owners, const struct sy_heap *heap, struct sy_page *page, size_t count,
                    void *owner)
{
	size_t first = sy__owners_index(owners, sy__page_address(heap, page));

	if (sy__unlikely(!make_usable(owners, first / CHUNK)))
		return false;
	for (size_t i = 0; i < count; i++) {
		owners->words[first + i] = owner;
		owners->heads[first + i] = page;
	}
	return true;
}
