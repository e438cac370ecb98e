/*
 * Links of free objects, plain and hardened, for yard and SLUB. docs/hardening.md says what hardening is for.
 *
 * A policy's sources are compiled twice. Plain, a link is a pointer in a free object, and every function here is one load or store, or
 * nothing. With SY_HARDENED (yard/hardened.c, slub/hardened.c), for heaps with the tunable `harden`, links are as follows. So hardening
 * costs other heaps no instruction.
 *
 * The one mechanism. A hardened link is a word: the place of the next object, multiplied by an odd secret of the cache, and mixed with a
 * key that depends on the link's own address and on more secrets. The decoded word is
 *
 *     bits 63 … 42         41 … 0
 *          0: a link       where the next free object is, in words from the heap's first one; from 1 on, as 0 ends a list
 *          1: a mark       0: the object is in its slot's ring
 *
 * Decoding carries a change of any bit into the upper bits, which must then be 0 by chance: one word in 2^22 passes. The check takes one
 * multiplication that waits for the word, and one that does not.
 *
 *   - A link is written when an object is freed, and cleared when it is handed out, which needs a right link. So whatever a program writes
 *     there, a list leads only where the heap made it lead: a wrong link ends the program, except for one in 2^22.
 *   - A freed object that has a right link or mark is free already, on whatever list, and however long ago that was.
 *   - A slab ends only when all its objects are on its list, each by a right link; but for those at its end that were never linked. Until
 *     they are, as yard does late, they cannot be freed.
 *
 * What `harden` can add to that:
 *
 *   zero        an object is cleared when it is freed
 *   random      in a new slab, groups of a few neighbouring objects are linked in random order, none right behind the one before it in
 *               memory; and slabs without an owner join their node's list first or second. Groups are small because programs use objects
 *               in the order in which they got them, and processors prefetch only what is near
 *   apart       addresses stay with their cache: a slab without an object in use stays on its node's list, behind the others. Each
 *               second, and when memory is short, those are retired: their memory goes back to the system, and their cache uses them
 *               again before it takes new pages. Caches are not merged
 *   quarantine  an object that was freed is handed out again only after some others
 *
 * The ring. A slot keeps the objects that it freed last in a ring of plain pointers, outside the objects. It hands them out again, the
 * oldest first; with `quarantine` it always retains half a ring. So most pairs need no link. When the ring is full, the older half goes to
 * the slabs, in order, for the same reason as above. A slab counts objects in a ring as in use, as it does remote ones, and they have a
 * mark in place of a link.
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
#define SY__HARDEN_MOST 0 /* a word has no room for check bits */
#define SY__HARDENED(policy) NULL
#endif
#define SY__HARDEN_TUNABLE(words)                                                                                  \
	"harden", 0, 0, SY__HARDEN_MOST, words, SY__HARDEN_MOST > 0,                                              \
		"what stops attacks, joined by +; any word includes links"

#ifdef SY_HARDENED

#define SY__IS_HARDENED true
#define SY__DAMAGED ((void *)1) /* the target of a wrong link */
#define SY__WORD_RETIRED SY__WORD_ONE_IN_USE /* of a retired slab: it has no objects, but one in use */
#define SY__LINK_BITS 42 /* of a decoded word, below the check bits */
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

/* Reports that the program has written into a free object. Returns NULL, so that lists end there. */
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

/* Objects at a slab's end that are on no list, as they were never linked. */
static inline uint32_t sy__node_unlinked(const struct sy_page *page)
{
	return SY__IS_HARDENED ? sy__node_objects(page) - SY_SLAB_STATE(const struct sy__node_slab, page)->linked : 0;
}

/* Whether a heap's slabs stay their caches', which are not merged then. */
static inline bool sy__keeps_apart(const struct sy_heap *heap)
{
	return SY__IS_HARDENED && heap->tunables[heap->policy->harden] & SY__HARDEN_APART;
}

/* The next object of a list that the program may have damaged; hardened, SY__DAMAGED after a damaged object. */
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

/* For a slot that is new to the cache: its ring, and its own random numbers. With several memory nodes it hands out nothing from the ring,
 * which may hold objects of other nodes. */
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

/* Whether an object of the cache that was ever linked starts there, in the slab with this head; it reads only the cache's structure and
 * the slab's. A block starts at a multiple of its size from the first page. A slab that has retired, or waits for a grace period, has no
 * such object. Relaxed: who frees an object knows that it was linked. */
static inline bool sy__node_is_place(const struct sy__node_cache *cache, struct sy_page *head, const void *object)
{
	size_t bytes = SY_PAGE_SIZE << sy__page_order(head), distance = (size_t)((const char *)object - cache->memory) & (bytes - 1);

	return sy__page_is_slab(head) && sy__node_slab(head)->cache == &cache->cache &&
	       distance < __atomic_load_n(&sy__node_slab(head)->linked, __ATOMIC_RELAXED) * cache->cache.size &&
	       sy__divides(cache->divider, distance);
}

/* Whether the object there is free already, as far as its own link tells. */
static inline bool sy__node_looks_free(const struct sy__node_cache *cache, const void *object, size_t offset, uint64_t key)
{
	return sy__link_is_there(sy__link_holds(&cache->links, *sy__link_at(object, offset), key));
}

/* Whether an object in use is freed here. False: it is not one, and that was reported. */
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

/* Takes the oldest object out of the ring, which is not empty, and clears its mark. False: the program has written into it, and the ring is
 * unchanged. */
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

/* The same; NULL: damage was reported, and the object is lost. */
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

/* Begins every free: checks it, clears the object, puts it into the ring, and returns the object to free now; NULL: none. */
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

/* Takes another object out of the ring, to be freed; NULL: none is left. */
void *sy__node_dismiss(struct sy__ring *);

/* Links one or more neighbouring objects, in random order if the cache asks for that, by the slot's random numbers; returns the first.
 * `behind`: what follows the last. */
void *sy__node_link_row(const struct sy__node_cache *, struct sy__ring *, char *first, uint32_t objects, void *behind);

/* Gives the memory of retired slabs back to the system; they keep their addresses. Returns how many pages. */
uint64_t sy__node_empty_retired(struct sy__node_cache *);

#endif

#endif
