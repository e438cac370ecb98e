/*
 * Owners of pages, for freeing without knowing the cache.
 *
 * kfree gets an address and nothing else. Through page descriptors the way to the caller's own state of the object's cache is
 * long: the page's descriptor, that of the slab's first page, the cache, its array of slots. And the descriptor is what
 * other CPUs write to when they free into the slab. So heaps of threads keep one more word for each page, which only changes
 * when the page changes hands: the array of slots itself. Eight pages share a cache line, as against one descriptor.
 *
 * Whoever takes pages for objects that kfree may get says whom they belong to, before any such object is handed out; words of
 * other pages are never looked at, so nothing is undone when pages are given back. What has no fast path (a large
 * allocation, an object with its free pointer elsewhere) belongs to an array in which nothing is ever found.
 *
 * The words are reserved for the whole range of pages at once and touched as pages are used. Writes are plain: who frees an
 * object got it from somebody who got it after the word was written.
 */
#include "owners.h"

#include "page_interface.h"

bool sy__owners_create(struct sy__owners *owners, const struct sy_heap *heap)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)heap->pages;

	owners->memory = (uintptr_t)base->memory;
	owners->pages = (size_t)base->page_count;
	owners->words = sy__source_reserve(owners->pages * sizeof(void *));
	if (!owners->words)
		return false;
	if (sy__source_commit(owners->words, owners->pages * sizeof(void *)) != 0) {
		sy__owners_destroy(owners);
		return false;
	}
	owners->origin = (uintptr_t)owners->words - (owners->memory >> SY_PAGE_SHIFT) * sizeof(void *);
	return true;
}

void sy__owners_destroy(struct sy__owners *owners)
{
	if (owners->words)
		sy__source_release(owners->words, owners->pages * sizeof(void *));
	owners->words = NULL;
}

void sy__owners_set(struct sy__owners *owners, const struct sy_heap *heap, const struct sy_page *page, size_t count,
                    void *owner)
{
	size_t first = sy__owners_index(owners, sy__page_address(heap, page));

	for (size_t i = 0; i < count; i++)
		owners->words[first + i] = owner;
}
