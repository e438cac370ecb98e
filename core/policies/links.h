/*
 * Links of free objects, as they are and hardened. For yard and SLUB; docs/hardening.md says what it is for.
 *
 * A policy's sources are compiled twice. As they are, a link is a pointer in a free object, and every function here is one load or
 * store, or nothing. With SY_HARDENED (yard/hardened.c, slub/hardened.c) a heap that asks for it by its tunable `harden` gets the
 * same policy with the following. So a heap that does not ask runs the same instructions as if there were none.
 *
 * The one mechanism. A hardened link is a word that holds where the list goes on, multiplied by an odd secret of the cache, and mixed
 * with a key that depends on the link's own address and on more secrets. What it holds, once decoded, is
 *
 *     bits 63 … 42         41 … 0
 *          0: a link       where the next free object is, in words from the heap's first one; from 1 on, as 0 ends a list
 *          1: a mark       0: the object is in its slot's ring
 *
 * The multiplication carries each bit that a program has changed to the upper bits, or has changed those themselves: all words but one in
 * 2^22 are wrong. To tell takes one multiplication that waits for the word, and one that does not.
 *
 *   - It is written only when an object is freed, and taken away when it is handed out: an object is handed out if and only if its
 *     link is right. So whatever a program writes there, a list leads only where the heap made it lead: a wrong link ends the program,
 *     but for one in 2^22.
 *   - An object that is freed and has a right link or mark is free already, wherever it is, and however long ago that was.
 *   - A slab ends only when all its objects are on its list, each by a right link.
 *
 * What `harden` adds to that, each by itself:
 *
 *   zero        what an object held is cleared when it is freed
 *   random      objects of a new slab are linked in random order among a few neighbours, none behind the one that lies before it; and
 *               slabs without an owner queue first or second in their node's list. A few, as programs use objects in the order in
 *               which they got them: further apart, each would wait for memory that processors fetch ahead otherwise
 *   apart       a slab's addresses stay its cache's: one without an object in use stays in its node's list, behind the others. Each
 *               second, and when memory is short, those are retired: their memory goes back to the system, and their cache uses them
 *               again before it takes new pages. Caches are not merged
 *   quarantine  an object that was freed is handed out again only after some others
 *
 * The ring. A slot keeps the objects that it freed last in a ring of plain pointers, apart from them. They are handed out again, the
 * oldest first, but for half of a ring with `quarantine`. So most pairs need no link. When the ring is full, the older half goes to
 * the slabs. In order, for the same reason as above. Objects in the ring are in use to their slab, as remote ones are, and have a mark
 * in place of a link.
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
#define SY__HARDEN_MOST 0 /* a word has no room for what tells that it is right */
#define SY__HARDENED(policy) NULL
#endif
#define SY__HARDEN_TUNABLE(words)                                                                                  \
	"harden", 0, 0, SY__HARDEN_MOST, words, SY__HARDEN_MOST > 0,                                              \
		"what stops attacks, joined by +; any word includes links"

#ifdef SY_HARDENED

#define SY__IS_HARDENED true
#define SY__DAMAGED ((void *)1) /* where a link leads that is wrong */
#define SY__WORD_RETIRED SY__WORD_ONE_IN_USE /* of a slab that waits for its cache to need one: of no objects, one is in use */
#define SY__LINK_BITS 42 /* of a decoded word, below those that tell whether it is right */
#define SY__RING_IN(slot) offsetof(slot, ring)
#define SY__IN_RING (UINT64_C(1) << SY__LINK_BITS)

/* Mixed with the word at an address. Multiplying by an odd secret spreads each bit to those above it. */
static inline uint64_t sy__link_key(const struct sy__links *links, const void *object)
{
	return ((uintptr_t)object ^ links->secrets[0]) * links->secrets[1];
}

static inline uint64_t *sy__link_at(const void *object, size_t offset)
{
	return (uint64_t *)(uintptr_t)((const char *)object + offset);
}

/* Decoded; what it holds may be wrong. */
static inline uint64_t sy__link_holds(const struct sy__links *links, uint64_t word, uint64_t key)
{
	return (word ^ key) * links->secrets[3];
}

static inline uint64_t sy__link_read(const struct sy__links *links, const void *object, size_t offset)
{
	return sy__link_holds(links, *sy__link_at(object, offset), sy__link_key(links, object));
}

static inline bool sy__link_is_right(uint64_t holds)
{
	return sy__likely(!(holds >> SY__LINK_BITS));
}

/* Whether the object is free: a right link, or a mark. */
static inline bool sy__link_is_there(uint64_t holds)
{
	return sy__unlikely(!(holds >> (SY__LINK_BITS + 1)));
}

/* Where a right link leads; NULL at the end of a list. */
static inline void *sy__link_end(const struct sy__links *links, uint64_t holds)
{
	return holds ? (char *)(uintptr_t)links->origin + holds * sizeof(uint64_t) : NULL;
}

/* The same; or SY__DAMAGED. */
static inline void *sy__link(const struct sy__node_cache *cache, const void *object, size_t offset)
{
	uint64_t holds = sy__link_read(&cache->links, object, offset);

	return sy__link_is_right(holds) ? sy__link_end(&cache->links, holds) : SY__DAMAGED;
}

static inline uint64_t sy__link_to(const struct sy__links *links, uint64_t key, const void *next)
{
	uint64_t holds = next ? (uint64_t)((const char *)next - links->origin) / sizeof(uint64_t) : 0;

	return holds * links->secrets[2] ^ key;
}

static inline void sy__link_set(const struct sy__node_cache *cache, void *object, size_t offset, const void *next)
{
	*sy__link_at(object, offset) = sy__link_to(&cache->links, sy__link_key(&cache->links, object), next);
}

static inline uint64_t sy__link_mark(const struct sy__links *links, uint64_t key)
{
	return links->mark ^ key;
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
#define SY__RING_IN(slot) 0

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

/* Of a slot that is new to the cache: its ring, and random numbers of its own. Objects of other memory nodes are not handed out from
 * it, so where there are several, none is. */
static inline void sy__ring_begin(const struct sy__node_cache *cache, struct sy__ring *own)
{
	if (sy__likely(own->cache))
		return;
	own->cache = cache;
	own->random = cache->links.secrets[0] + (uintptr_t)own * cache->links.secrets[1];
	own->room = cache->kept;
	own->serves = cache->cache.heap->nodes > 1 ? 0 : cache->harden & SY__HARDEN_QUARANTINE ? (cache->kept + 1u) / 2 : cache->kept;
}

/* How many objects there are. */
static inline uint32_t sy__ring_held(const struct sy__ring *own)
{
	return own->cache ? own->cache->kept - own->room : 0;
}

/* Whether an object of the cache starts there, in the slab with this head; by what is in the cache's own lines. A block starts at a
 * multiple of its size from the first page. A slab that has retired, or waits for a grace period, is said to have no objects. */
static inline bool sy__node_is_place(const struct sy__node_cache *cache, struct sy_page *head, const void *object)
{
	size_t bytes = SY_PAGE_SIZE << sy__page_order(head), distance = (size_t)((const char *)object - cache->memory) & (bytes - 1);

	return sy__page_is_slab(head) && sy__node_slab(head)->cache == &cache->cache &&
	       distance <= bytes - cache->cache.size && sy__divides(cache->divider, distance) &&
	       sy__word_objects(sy__node_word(head));
}

/* Whether what is at such a place is free already, as far as can be told at once. */
static inline bool sy__node_looks_free(const struct sy__node_cache *cache, const void *object, size_t offset, uint64_t key)
{
	return sy__link_is_there(sy__link_holds(&cache->links, *sy__link_at(object, offset), key));
}

/* Tells what is wrong with an object that is freed, if it is no object in use after all. */
SY__COLD bool sy__node_may_be_freed(const struct sy__node_cache *, struct sy_page *head, const void *object);

/* Puts an object into the ring, which is not full. True: now it is. */
static inline bool sy__ring_put(const struct sy__node_cache *cache, struct sy__ring *own, void *object, size_t offset, uint64_t key)
{
	uint32_t room = own->room - 1, at = own->next;

	own->room = room;
	own->next = (at + 1) % SY__RING;
	own->objects[at] = object;
	*sy__link_at(object, offset) = sy__link_mark(&cache->links, key);
	return sy__unlikely(!room);
}

/* So many of the oldest objects have left the ring. */
static inline void sy__ring_left(struct sy__ring *own, uint32_t count)
{
	own->oldest = (own->oldest + count) % SY__RING;
	own->room += count;
}

/* Takes the object that came first out of the ring, which is not empty, and its mark away. False: the program has written there, and
 * the ring is as it was. */
static inline bool sy__ring_take(struct sy__ring *own, size_t offset, void **object)
{
	const struct sy__links *links = &own->cache->links;

	*object = own->objects[own->oldest];
	if (sy__unlikely(*sy__link_at(*object, offset) != sy__link_mark(links, sy__link_key(links, *object))))
		return false;
	*sy__link_at(*object, offset) = 0;
	sy__ring_left(own, 1);
	return true;
}

/* The same; NULL: it was told, and the object is lost. */
SY__COLD void *sy__ring_lose(struct sy__ring *);
static inline void *sy__ring_pop(struct sy__ring *own)
{
	void *object;

	return sy__likely(sy__ring_take(own, own->cache->offset, &object)) ? object : sy__ring_lose(own);
}

/* Whether an object has been in the ring for long enough to be handed out. */
static inline bool sy__ring_serves(const struct sy__ring *own)
{
	return own->room < own->serves;
}

/* What every free begins with: looks whether it is right, clears the object, and returns the one to be freed now; NULL: none. */
static inline void *sy__node_admit(const struct sy__node_cache *cache, struct sy__ring *own, struct sy_page *head, void *object)
{
	uint64_t key = sy__link_key(&cache->links, object);

	if (sy__unlikely(!sy__node_is_place(cache, head, object) || sy__node_looks_free(cache, object, cache->offset, key)) &&
	    !sy__node_may_be_freed(cache, head, object))
		return NULL;
	if (cache->cleared)
		sy__fill(object, 0, cache->cleared);
	return sy__ring_put(cache, own, object, cache->offset, key) ? sy__ring_pop(own) : NULL;
}

/* Another object out of the ring, to be freed; NULL: none is left. */
void *sy__node_dismiss(struct sy__ring *);

/* Links objects side by side, at least one, in random order if the cache's are, by the slot's random numbers; returns the first. `behind`:
 * what comes after the last. */
void *sy__node_link_row(const struct sy__node_cache *, struct sy__ring *, char *first, uint32_t objects, void *behind);

/* Gives the memory of retired slabs back to the system, while they keep their addresses; how many pages. */
uint64_t sy__node_empty_retired(struct sy__node_cache *);

#endif

#endif
