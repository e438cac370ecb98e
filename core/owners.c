/*
 * Slabs of pages, for freeing without knowing the cache.
 *
 * kfree gets an address and nothing else, and every free needs the slab's state, in the descriptor of its first page. The page's
 * own descriptor says which that is, but to ask the descriptors of all pages of a slab, for the way to one of them, is to
 * wait for another cache line in each free; and such a descriptor is what other CPUs may write to. So heaps of threads keep one
 * word for each page, which only changes when the page changes hands: where the descriptor of its block's first page is. Eight
 * pages share a cache line.
 *
 * Whoever takes pages for objects that kfree may get says so before any such object is handed out; words of
 * other pages are never looked at, so nothing is undone when pages are given back.
 *
 * They are reserved for the whole range of pages at once, and made usable in chunks as pages are used, so that they count
 * against no limit before. A block of pages is within one chunk, as both are aligned. Two threads may make the same chunk usable at
 * once: that is no harm. Whether a chunk is usable is an acquire, against the release of who made it so, that no write to it is made
 * before the word was seen; the mapping itself is changed for all processors at once. Writes are plain: who frees an object got it
 * from somebody who got it after the word was written.
 */
#include "owners.h"

#include "page_interface.h"

#define CHUNK ((size_t)8 << SY_MAX_ORDER) /* pages: their heads are as much memory as the largest pages of machines are */
#define CHUNK_BYTES (CHUNK * sizeof(struct sy_page *))

static size_t chunks(const struct sy__owners *owners)
{
	return (owners->pages + CHUNK - 1) / CHUNK;
}

/* Heads, and a byte for each chunk. */
static size_t reserved(const struct sy__owners *owners)
{
	return chunks(owners) * (CHUNK_BYTES + 1);
}

bool sy__owners_create(struct sy__owners *owners, const struct sy_heap *heap)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)heap->pages;

	owners->memory = (uintptr_t)base->memory;
	owners->pages = (size_t)base->page_count;
	owners->heads = sy__source_reserve(reserved(owners));
	if (!owners->heads)
		return false;
	owners->there = (uint8_t *)owners->heads + chunks(owners) * CHUNK_BYTES;
	if (sy__source_commit(owners->there, chunks(owners)) != 0) {
		sy__owners_destroy(owners);
		return false;
	}
	return true;
}

void sy__owners_destroy(struct sy__owners *owners)
{
	if (owners->heads)
		sy__source_release(owners->heads, reserved(owners));
	owners->heads = NULL;
}

static bool make_usable(struct sy__owners *owners, size_t chunk)
{
	if (sy__likely(__atomic_load_n(&owners->there[chunk], __ATOMIC_ACQUIRE)))
		return true;
	if (sy__source_commit(owners->heads + chunk * CHUNK, CHUNK_BYTES) != 0)
		return false;
	__atomic_store_n(&owners->there[chunk], 1, __ATOMIC_RELEASE);
	return true;
}

bool sy__owners_set(struct sy__owners *owners, const struct sy_heap *heap, struct sy_page *page, size_t count)
{
	size_t first = sy__owners_index(owners, sy__page_address(heap, page));

	if (sy__unlikely(!make_usable(owners, first / CHUNK)))
		return false;
	for (size_t i = 0; i < count; i++)
		owners->heads[first + i] = page;
	return true;
}
