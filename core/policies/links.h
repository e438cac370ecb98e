/*
 * Links of free objects, as they are and hardened. For yard and SLUB; docs/hardening.md says what it is for.
 *
 * A policy's sources are compiled twice. As they are, a link is a pointer in a free object, and every function here is one load or
 * store, or nothing. With SY_HARDENED (yard/hardened.c, slub/hardened.c) a heap that asks for it by its tunable `harden` gets the
 * same policy with the following. So a heap that does not ask runs the same instructions as if there were none.
 *
 * The one mechanism. A hardened link is a word of two parts, encoded with the link's own address and the cache's secrets:
 *
 *     bit  63 … 22                     21 … 0
 *          way to the next free one    tag: a keyed hash of that, and of the address
 *
 *   - It is written only when an object is freed, and taken away when it is handed out: an object is handed out if and only if its
 *     link is right. So whatever a program writes there, a list leads only where the heap made it lead: a wrong link ends the program,
 *     but for one in 2^22.
 *   - An object that is freed and has a right link is free already, wherever it is, and however long ago that was.
 *   - A slab ends only when all its objects are on its list, each by a right link.
 *
 * What `harden` adds to that, each by itself:
 *
 *   zero        what an object held is cleared when it is freed
 *   random      objects of a new slab are linked in random order, and slabs without an owner queue at either end of their node's list
 *   apart       a slab's addresses stay its cache's: one that would go to the page allocator is retired, and used again by its cache
 *               before others. Its memory goes back to the system, each second and when memory is short. Caches are not merged
 *   quarantine  a freed object takes the place of a random one of those that its slot keeps, and that one is freed
 *
 * Free objects in quarantine are in use to their slab, as remote ones are, and have a mark of their own in place of a link.
 *
 * Secrets and the order of objects are random in heaps of threads and in kernels. In a replay they follow from the objects' size, so
 * that every run has the same result.
 */
#ifndef SY_LINKS_H
#define SY_LINKS_H

#include "node.h"

enum sy__harden {
	SY__HARDEN_LINKS = 1u << 0, /* in any case */
	SY__HARDEN_ZERO = 1u << 1,
	SY__HARDEN_RANDOM = 1u << 2,
	SY__HARDEN_APART = 1u << 3,
	SY__HARDEN_QUARANTINE = 1u << 4,
};
#define SY__HARDEN_ALL 31

/* The tunable of a policy that can be hardened: words of enum sy__harden joined by +. */
#define SY__HARDEN_WORDS { "off", "links", "zero", "random", "apart", "quarantine", "all" }
#if __SIZEOF_POINTER__ > 4
#define SY__HARDEN_MOST SY__HARDEN_ALL
#define SY__HARDENED(policy) (&(policy))
#else
#define SY__HARDEN_MOST 0 /* a word has no room for a tag */
#define SY__HARDENED(policy) NULL
#endif
#define SY__HARDEN_TUNABLE(words)                                                                                  \
	"harden", 0, 0, SY__HARDEN_MOST, words, SY__HARDEN_MOST > 0,                                              \
		"what stops attacks, joined by +; any word includes links"

#ifdef SY_HARDENED

#define SY__IS_HARDENED true
#define SY__DAMAGED ((void *)1) /* where a link leads that is wrong */
#define SY__WORD_RETIRED SY__WORD_ONE_IN_USE /* of a slab that waits for its cache to need one: of no objects, one is in use */
#define SY__TAG_BITS 22
#define SY__TAG ((UINT64_C(1) << SY__TAG_BITS) - 1)
#define SY__IN_QUARANTINE (-((int64_t)1 << 41)) /* in place of a way, in words: as far as no heap is long */

/* All that is secret of a link, by its address. Multiplying by an odd secret spreads each bit to those above it. */
static inline uint64_t sy__link_key(const struct sy__node_cache *cache, uintptr_t at)
{
	return (at ^ cache->secrets[0]) * cache->secrets[1];
}

static inline uint64_t sy__link_tag(const struct sy__node_cache *cache, int64_t way, uint64_t key)
{
	return ((uint64_t)way + key) * cache->secrets[2] >> (64 - SY__TAG_BITS);
}

static inline uint64_t *sy__link_at(const void *object, size_t offset)
{
	return (uint64_t *)(uintptr_t)((const char *)object + offset);
}

static inline void sy__link_write(const struct sy__node_cache *cache, void *object, size_t offset, int64_t way)
{
	uint64_t key = sy__link_key(cache, (uintptr_t)object);

	*sy__link_at(object, offset) = ((uint64_t)way << SY__TAG_BITS | sy__link_tag(cache, way, key)) ^ key;
}

/* False: the link is wrong. */
static inline bool sy__link_read(const struct sy__node_cache *cache, const void *object, size_t offset, int64_t *way)
{
	uint64_t key = sy__link_key(cache, (uintptr_t)object), word = *sy__link_at(object, offset) ^ key;

	*way = (int64_t)word >> SY__TAG_BITS;
	return sy__likely(!((sy__link_tag(cache, *way, key) ^ word) & SY__TAG));
}

static inline void *sy__link_end(const void *object, int64_t way)
{
	return way ? (char *)(uintptr_t)object + way * (int64_t)sizeof(uint64_t) : NULL;
}

/* Where the link leads, NULL at the end of a list; or SY__DAMAGED. */
static inline void *sy__link(const struct sy__node_cache *cache, const void *object, size_t offset)
{
	int64_t way;

	return sy__link_read(cache, object, offset, &way) && way != SY__IN_QUARANTINE ? sy__link_end(object, way) : SY__DAMAGED;
}

static inline void sy__link_set(const struct sy__node_cache *cache, void *object, size_t offset, const void *next)
{
	sy__link_write(cache, object, offset, next ? ((const char *)next - (const char *)object) / (ptrdiff_t)sizeof(uint64_t) : 0);
}

/* Takes the link away from an object that is handed out. */
static inline void *sy__link_take(const struct sy__node_cache *cache, void *object, size_t offset)
{
	void *next = sy__link(cache, object, offset);

	*sy__link_at(object, offset) = 0;
	return next;
}

static inline bool sy__link_is_wrong(const void *next)
{
	return sy__unlikely(next == SY__DAMAGED);
}

/* Tells the program that it has written into a free object. NULL, for lists to end there. */
SY__COLD void *sy__node_damaged(const struct sy__node_cache *, const void *object);

#else

#define SY__IS_HARDENED false

static inline void *sy__link(const struct sy__node_cache *cache, const void *object, size_t offset)
{
	(void)cache;
	return *(void *const *)(const void *)((const char *)object + offset);
}

static inline void sy__link_set(const struct sy__node_cache *cache, void *object, size_t offset, void *next)
{
	(void)cache;
	*(void **)(void *)((char *)object + offset) = next;
}

static inline void *sy__link_take(const struct sy__node_cache *cache, void *object, size_t offset)
{
	return sy__link(cache, object, offset);
}

static inline bool sy__link_is_wrong(const void *next)
{
	(void)next;
	return false;
}

static inline void *sy__node_damaged(const struct sy__node_cache *cache, const void *object)
{
	(void)cache;
	(void)object;
	return NULL;
}

#endif

/* Whether a heap's slabs stay their caches', which are not merged then. */
static inline bool sy__keeps_apart(const struct sy_heap *heap)
{
	return SY__IS_HARDENED && heap->tunables[heap->policy->harden] & SY__HARDEN_APART;
}

/* Of a list that a program may have written into; hardened, SY__DAMAGED behind such an object. */
static inline void *sy__node_peek(const struct sy__node_cache *cache, const void *object)
{
	return sy__link(cache, object, cache->offset);
}

/* The next object of a list. */
static inline void *sy__node_next(const struct sy__node_cache *cache, const void *object)
{
	void *next = sy__link(cache, object, cache->offset);

	return sy__link_is_wrong(next) ? sy__node_damaged(cache, object) : next;
}

static inline void sy__node_link(const struct sy__node_cache *cache, void *object, void *next)
{
	sy__link_set(cache, object, cache->offset, next);
}

#ifdef SY_HARDENED

/* ---- Frees ---------------------------------------------------------------------------------------------------------------- */

static inline uint32_t sy__random_below(uint64_t *random, uint32_t below)
{
	*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((*random >> 32) * below >> 32);
}

/* A slot that is new to the cache gets random numbers of its own. */
static inline void sy__quarantine_begin(const struct sy__node_cache *cache, struct sy__quarantine *own)
{
	if (sy__unlikely(!own->random))
		own->random = (cache->secrets[0] + (uintptr_t)own * cache->secrets[1]) | 1;
}

/* Whether an object of the cache starts there, in the slab with this head; by what is in the cache's own lines. */
static inline bool sy__node_is_place(const struct sy__node_cache *cache, struct sy_page *head, const void *object)
{
	size_t pages = (size_t)(sy__page_near(cache->memory, cache->table, object) - head);
	size_t distance = (pages << SY_PAGE_SHIFT) + ((uintptr_t)object & (SY_PAGE_SIZE - 1));

	return sy__page_is_slab(head) && sy__node_slab(head)->cache == &cache->cache &&
	       sy__node_is_start(cache, distance, SY_PAGE_SIZE << sy__page_order(head));
}

/* Tells what is wrong with an object that is freed, if it is no object in use after all. */
SY__COLD bool sy__node_may_be_freed(const struct sy__node_cache *, struct sy_page *head, const void *object);

/* Of what leaves the quarantine: takes its mark away. False: the program has written there. */
static inline bool sy__node_unmark(const struct sy__node_cache *cache, void *object)
{
	int64_t way;

	if (sy__unlikely(!sy__link_read(cache, object, cache->offset, &way) || way != SY__IN_QUARANTINE))
		return false;
	*sy__link_at(object, cache->offset) = 0;
	return true;
}

/* What every free begins with: looks whether it is right, clears the object, and returns the one to be freed now; NULL: none. */
static inline void *sy__node_admit(struct sy__node_cache *cache, struct sy__quarantine *own, struct sy_page *head, void *object)
{
	int64_t way;
	void **place, *old;

	if (sy__unlikely(!sy__node_is_place(cache, head, object) || sy__node_word(head) == SY__WORD_RETIRED ||
	                 sy__link_read(cache, object, cache->offset, &way)) &&
	    !sy__node_may_be_freed(cache, head, object))
		return NULL;
	if (cache->zeroes)
		sy__fill(object, 0, cache->cache.object_size);
	if (!cache->quarantined)
		return object;
	place = &own->objects[sy__random_below(&own->random, cache->quarantined)];
	old = *place;
	*place = object;
	sy__link_write(cache, object, cache->offset, SY__IN_QUARANTINE);
	own->held += !old;
	if (old && sy__unlikely(!sy__node_unmark(cache, old)))
		return sy__node_damaged(cache, old);
	return old;
}

/* Another object out of the quarantine, to be freed; NULL: none is left. */
void *sy__node_dismiss(const struct sy__node_cache *, struct sy__quarantine *);

/* Whether what is in quarantine is in use to its slabs, and marked. */
bool sy__node_quarantine_is_sound(const struct sy__node_cache *, const struct sy__quarantine *);

void sy__node_walk_quarantine(struct sy__walk *, const struct sy__quarantine *, unsigned slot);

/* Links objects side by side, at least one, in random order if the cache's are, by the slot's random numbers; returns the first. `behind`:
 * what comes after the last. */
void *sy__node_link_row(const struct sy__node_cache *, struct sy__quarantine *, char *first, uint32_t objects, void *behind);

/* Gives the memory of retired slabs back to the system, while they keep their addresses; how many pages. */
uint64_t sy__node_empty_retired(struct sy__node_cache *);

#endif

#endif
