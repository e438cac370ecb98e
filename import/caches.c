/*
 * Which allocations are of one cache.
 *
 * Kernels from about 6.12 print the cache's name on allocations; then there is nothing to find out. Older ones print it on frees
 * only (6.1), or nowhere. The evidence, strongest first:
 *
 *   1. the name on the allocation;
 *   2. the name on the free of that very object;
 *   3. the slab page. The objects of one slab are of one cache. So a name seen in a page run names all its objects, and allocations
 *      of equal sizes in one run are joined. Not so for SLOB, where all caches share pages;
 *   4. the call sites. Allocations of equal sizes from one place are of one cache, and so are those that are freed at one place.
 *
 * Allocations that print alike form a class; there are a few thousand in any capture. Classes of one cache are joined by
 * union-find. bytes_req is the cache's object size and bytes_alloc its stride, so only classes of equal sizes join. But a cache's
 * object size grows when the kernel merges another cache into it. So classes of one stride and different sizes join if a page run
 * has both. Under SLOB only sizes are left: all classes of equal sizes are one cache.
 *
 * A cache's alignment shows in its objects' addresses. If all are multiples of a cache line and the object size is not, the
 * alignment was asked for (SLAB_HWCACHE_ALIGN). An alignment that follows from the size is no evidence.
 */
#include "import.h"

#include <stdlib.h>

#define CACHE_LINE 64
#define LEAST_PLACES 8 /* different addresses: as many are not all multiples of a cache line by chance */

void caches_init(struct caches *caches, const struct texts *texts)
{
	*caches = (struct caches){.mask = 1023, .free_site_count = texts->call_sites.count, .name_count = texts->names.count};
	caches->slots = zeroed(caches->mask + 1, sizeof *caches->slots);
	caches->free_sites = zeroed(caches->free_site_count, sizeof *caches->free_sites);
	caches->by_name = zeroed(caches->name_count, sizeof *caches->by_name);
	for (uint32_t i = 0; i < caches->free_site_count; i++)
		caches->free_sites[i].class = NONE;
	for (uint32_t i = 0; i < caches->name_count; i++)
		caches->by_name[i] = NO_CACHE;
}

void caches_free(struct caches *caches)
{
	free(caches->classes);
	free(caches->slots);
	free(caches->free_sites);
	free(caches->list);
	free(caches->by_name);
}

/* ---- Classes ---------------------------------------------------------------------------------------------------- */

static uint32_t slot_of(const struct caches *caches, const struct class *wanted)
{
	uint64_t hash = ((uint64_t)wanted->size << 32 | wanted->allocated) * 0x9e3779b97f4a7c15u;
	hash = (hash ^ ((uint64_t)wanted->call_site << 16 | wanted->name)) * 0xff51afd7ed558ccdu;
	uint32_t slot = (uint32_t)(hash >> 32) & caches->mask;
	for (; caches->slots[slot]; slot = (slot + 1) & caches->mask) {
		const struct class *class = &caches->classes[caches->slots[slot] - 1];
		if (class->size == wanted->size && class->allocated == wanted->allocated && class->call_site == wanted->call_site &&
		    class->name == wanted->name)
			break;
	}
	return slot;
}

static void widen(struct caches *caches)
{
	free(caches->slots);
	caches->mask = 2 * caches->mask + 1;
	caches->slots = zeroed((size_t)caches->mask + 1, sizeof *caches->slots);
	for (uint32_t i = 0; i < caches->class_count; i++)
		caches->slots[slot_of(caches, &caches->classes[i])] = i + 1;
}

uint32_t class_of(struct caches *caches, const struct record *record)
{
	struct class wanted = {
		.parent = caches->class_count,
		.size = record->size,
		.allocated = record->allocated,
		.call_site = record->call_site,
		.name = record->name,
		.beside = NONE,
		.free_name = NO_TEXT,
		.cache = NO_CACHE,
	};
	uint32_t slot = slot_of(caches, &wanted);
	if (likely(caches->slots[slot]))
		return caches->slots[slot] - 1;
	if (2 * caches->class_count > caches->mask) {
		widen(caches);
		slot = slot_of(caches, &wanted);
	}
	RESERVE(caches->classes, caches->class_count, caches->class_room);
	caches->classes[caches->class_count] = wanted;
	caches->slots[slot] = ++caches->class_count;
	return wanted.parent;
}

static uint32_t root_of(struct caches *caches, uint32_t class)
{
	while (caches->classes[class].parent != class) {
		caches->classes[class].parent = caches->classes[caches->classes[class].parent].parent;
		class = caches->classes[class].parent;
	}
	return class;
}

/* The class that was seen first becomes the root, so caches are numbered in order of first appearance. */
static void unite(struct caches *caches, uint32_t a, uint32_t b)
{
	a = root_of(caches, a);
	b = root_of(caches, b);
	if (a < b)
		caches->classes[b].parent = a;
	else
		caches->classes[a].parent = b;
}

void class_join(struct caches *caches, uint32_t a, uint32_t b)
{
	if (likely(a == b))
		return;
	const struct class *one = &caches->classes[a], *other = &caches->classes[b];
	if (one->size == other->size && one->allocated == other->allocated && one->name == other->name)
		unite(caches, a, b);
}

void class_beside(struct caches *caches, uint32_t a, uint32_t b)
{
	if (likely(a == b))
		return;
	const struct class *one = &caches->classes[a];
	struct class *other = &caches->classes[b];
	if (one->size == other->size)
		class_join(caches, a, b);
	else if (one->allocated == other->allocated && one->name == other->name)
		other->beside = a;
}

void class_seen(struct caches *caches, uint32_t number, uint64_t address)
{
	caches->classes[number].address_bits |= address;
	caches->classes[number].places |= (uint64_t)1 << ((address >> 3) * 0x9e3779b97f4a7c15u >> 58);
}

void class_named(struct caches *caches, uint32_t number, uint16_t name)
{
	struct class *class = &caches->classes[number]; /* majority vote as Boyer and Moore's */
	if (class->free_name == name) {
		class->free_votes++;
	} else if (class->free_votes) {
		class->free_votes--;
	} else {
		class->free_name = name;
		class->free_votes = 1;
	}
}

/* ---- Caches ----------------------------------------------------------------------------------------------------- */

uint32_t cache_alignment(const struct cache *cache)
{
	bool many = __builtin_popcountll(cache->places) >= LEAST_PLACES;
	return many && cache->address_bits % CACHE_LINE == 0 ? CACHE_LINE : 0;
}

static uint16_t add(struct caches *caches, uint16_t name)
{
	if (caches->count == NO_CACHE)
		die("more than 65,535 caches: the lines of the capture are damaged");
	RESERVE(caches->list, caches->count, caches->room);
	caches->list[caches->count] = (struct cache){.name = name};
	return (uint16_t)caches->count++;
}

uint16_t cache_named(struct caches *caches, uint16_t name)
{
	if (caches->by_name[name] == NO_CACHE)
		caches->by_name[name] = add(caches, name);
	return caches->by_name[name];
}

static int by_sizes(const void *a, const void *b)
{
	const struct class *one = *(const struct class *const *)a, *other = *(const struct class *const *)b;
	if (one->size != other->size)
		return one->size < other->size ? -1 : 1;
	if (one->allocated != other->allocated)
		return one->allocated < other->allocated ? -1 : 1;
	return (one > other) - (one < other);
}

void caches_join_equal_sizes(struct caches *caches)
{
	struct class **sorted = zeroed(caches->class_count, sizeof *sorted);
	for (uint32_t i = 0; i < caches->class_count; i++)
		sorted[i] = &caches->classes[i];
	qsort(sorted, caches->class_count, sizeof *sorted, by_sizes);
	for (uint32_t i = 1; i < caches->class_count; i++)
		class_join(caches, (uint32_t)(sorted[i - 1] - caches->classes), (uint32_t)(sorted[i] - caches->classes));
	free(sorted);
}

void caches_join_grown(struct caches *caches)
{
	for (uint32_t i = 0; i < caches->class_count; i++)
		if (caches->classes[i].beside != NONE)
			unite(caches, i, caches->classes[i].beside);
}

/* Gives the root of each cache the name that has the most votes among its classes. */
static void collect_names(struct caches *caches)
{
	for (uint32_t i = 0; i < caches->class_count; i++) {
		struct class *class = &caches->classes[i], *root = &caches->classes[root_of(caches, i)];
		if (class->free_votes > root->free_votes) {
			root->free_votes = class->free_votes;
			root->free_name = class->free_name;
		}
	}
}

void cache_holds(struct cache *cache, const struct class *class)
{
	if (class->size > cache->size)
		cache->size = class->size;
	if (class->allocated > cache->allocated)
		cache->allocated = class->allocated;
}

void caches_resolve(struct caches *caches)
{
	collect_names(caches);
	for (uint32_t i = 0; i < caches->class_count; i++) {
		struct class *class = &caches->classes[i], *root = &caches->classes[root_of(caches, i)];
		uint16_t name = root->name != NO_TEXT ? root->name : root->free_name;
		if (root->cache == NO_CACHE)
			root->cache = name != NO_TEXT ? cache_named(caches, name) : add(caches, NO_TEXT);
		class->cache = root->cache;
		cache_holds(&caches->list[class->cache], class);
		caches->list[class->cache].address_bits |= class->address_bits;
		caches->list[class->cache].places |= class->places;
	}
}
