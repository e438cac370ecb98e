/*
 * What SLUB and yard have in common: the word of a slab, a memory node's list of partial slabs, and the life and the checks of slabs.
 *
 * A free into a slab that the caller's slot does not allocate from changes three things at once: the slab's list of free objects,
 * the number of its objects in use, and perhaps where the slab belongs. All of it is in one word of 64 bits, changed by
 * compare-and-exchange, where Linux needs one of two machine words:
 *
 *     bit  63      62 … 48    47 … 32   31 … 0
 *          frozen  objects    in use    first
 *
 *   first    the first free object: the lower half of its address; all ones: none. The upper half follows from any other
 *            address in the slab. The objects behind it are linked by ordinary pointers.
 *   in use   objects that are not on that list: clients have them, or slots
 *   objects  room; 0 while the slab waits for a grace period
 *   frozen   the slab is a slot's
 *
 * What may be done to it, and by whom:
 *
 *   push       a caller that holds objects of the slab: puts them in front, and lowers the number in use. SLUB in the same exchange
 *              freezes a slab that was full.
 *   freeze     under the node's lock, a slab on its list, perhaps with taking all; in yard also a full slab that the caller's slot has
 *              filled, by a caller that frees an object of it.
 *   take all   the slot whose slab it is: the whole list, all objects are in use.
 *   unfreeze   the slot whose slab it is: a full one at once, else under the node's lock; perhaps with a push of the slot's objects.
 *
 * Nobody takes a single object, so the word needs no version number. Between reading the word and exchanging it, a free object may have
 * left and come back; but a push only needs the same first object, and taking all takes the whole list. Nor can the slab have ended
 * meanwhile: the caller holds an object of it, has it frozen, or has the lock of the list that it is on.
 *
 * A slab with free objects that is not frozen is on its node's list, and one that becomes empty may leave it. So a push that makes such a
 * slab empty, or a full one partial, is done under the node's lock, which then covers both the word and the list. Under the lock the list
 * agrees with the words, except for slabs that the lock's holder is moving.
 *
 * Memory order. Reading is relaxed: what was read is a guess until the exchange confirms it. The exchange releases and acquires.
 * It releases the object's link and its last client's writes to the slot that takes the list, and so to the next client. And with the
 * frozen bit, the slab's other fields pass from the slot that gave up the full slab (release) to the one that freezes it again (acquire),
 * with no lock in common.
 */
#ifndef SY_NODE_H
#define SY_NODE_H

#include "../geometry.h"
#include "../list.h"
#include "../page_interface.h"

/* ---- The word ----------------------------------------------------------------------------------------------------------- */

#define SY__WORD_MOST_OBJECTS 32767u /* in one slab: 15 bits */
#define SY__WORD_FIRST ((uint64_t)UINT32_MAX)
#define SY__WORD_ONE_IN_USE ((uint64_t)1 << 32)
#define SY__WORD_OBJECTS_SHIFT 48
#define SY__WORD_IN_USE_PART (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 2 : 1) /* of four parts of 16 bits, in memory */
#define SY__WORD_FROZEN ((uint64_t)1 << 63)

_Static_assert((uint64_t)SY_PAGE_SIZE << SY_MAX_ORDER <= INT32_MAX, "the lower half of an address in a slab tells how far it is from another");

static inline uint32_t sy__word_in_use(uint64_t word)
{
	return (uint32_t)(word >> 32) & 0xffffu;
}

static inline uint32_t sy__word_objects(uint64_t word)
{
	return (uint32_t)(word >> SY__WORD_OBJECTS_SHIFT) & SY__WORD_MOST_OBJECTS;
}

static inline bool sy__word_frozen(uint64_t word)
{
	return word & SY__WORD_FROZEN;
}

/* Nothing is on the word's list. */
static inline bool sy__word_full(uint64_t word)
{
	return (uint32_t)word == UINT32_MAX;
}

/* The first free object of the slab that this address is in; or NULL. */
static inline void *sy__word_first(uint64_t word, void *near)
{
	return sy__word_full(word) ? NULL : (char *)near + (int32_t)((uint32_t)word - (uint32_t)(uintptr_t)near);
}

/* The word after a push of `count` objects that were in use, of which `object` is the first. */
static inline uint64_t sy__word_push(uint64_t word, const void *object, uint32_t count)
{
	return (word >> 32 << 32 | (uint32_t)(uintptr_t)object) - count * SY__WORD_ONE_IN_USE;
}

/* Whether a push of `count` objects leaves the slab where it is: it is frozen, or partial and will not be empty. */
static inline bool sy__word_stays(uint64_t word, uint32_t count)
{
	return sy__word_frozen(word) || (!sy__word_full(word) && sy__word_in_use(word) > count);
}

/* The word of a frozen slab whose slot has all its objects. */
static inline uint64_t sy__word_taken(uint64_t objects)
{
	return SY__WORD_FROZEN | objects << SY__WORD_OBJECTS_SHIFT | objects * SY__WORD_ONE_IN_USE | SY__WORD_FIRST;
}

/* The word after all free objects are taken; the frozen bit is unchanged. */
static inline uint64_t sy__word_take(uint64_t word)
{
	return (sy__word_taken(sy__word_objects(word)) & ~SY__WORD_FROZEN) | (word & SY__WORD_FROZEN);
}

/* Ends a list in a policy that tells lists apart by their end; others end with NULL. */
#define SY__LIST_END ((void *)1)

/* ---- Slabs, nodes, caches ----------------------------------------------------------------------------------------------- */

#define SY__NODE_OWN_BYTES 16

/* The state of a slab, in the descriptor of its first page, begins with this. */
struct sy__node_slab {
	struct sy_cache *cache;
	union {
		struct sy_list link; /* in sy__node.partial; under the node's lock */
		_Alignas(8) unsigned char own[SY__NODE_OWN_BYTES]; /* while a slot has the slab: the policy's data, which only that slot
		 * touches */
		struct sy_deferred deferred; /* no object is left, and a grace period has yet to pass */
	};
	_Alignas(8) uint64_t word;
	union {
		uint32_t emptied_pages; /* of a slab that no slot has: bits of pages without memory, see node_trim.c; 0 if it is full */
		struct {
			uint16_t local_objects; /* yard's, while a slot has the slab: objects on its local freelist */
			uint16_t linked; /* hardened, in every slab: objects at its start that were linked at least once, see links.h */
		};
	};
	uint32_t owner; /* yard's: sy__yard_mark of the owner; with SY__YARD_FULL: of the slot that filled it; or SY__YARD_NOBODY */
};
SY_ASSERT_SLAB_STATE(struct sy__node_slab, cache);

/* What a check has counted, to compare with a node's figures. */
struct sy__node_seen {
	uint64_t slabs, objects, pages, partial, frozen;
#ifdef SY_HARDENED
	uint64_t retired;
#endif
};

/* The slabs of a cache on one memory node. */
struct sy__node {
	sy__lock_t lock;
	struct sy_list partial; /* slabs that no slot has, with free and (mostly) used objects */
	size_t partial_slabs;   /* in partial; written under the lock, read by anyone */
	uint64_t slabs, objects, pages; /* all slabs, wherever they are; room in them; their pages */
	struct sy__node_seen seen; /* scratch of check */
#ifdef SY_HARDENED
	uint64_t random;        /* under the lock */
	struct sy_list retired; /* ended slabs, kept until their cache needs one; under the lock */
	uint64_t retired_slabs, retired_objects, retired_pages; /* as above, of these */
#endif
};

#ifdef SY_HARDENED
#define SY__RING 32u /* objects that a slot keeps are fewer */

/* Ring of freed objects that a slot keeps for a while. All zero: nothing yet. The dummy's stays so. */
struct sy__ring {
	uint32_t room;         /* objects that it takes until it is full, which it is in the middle of a call only; 0: nothing yet */
	uint32_t serves;       /* objects are handed out from it while there is less room than that */
	uint32_t oldest, next; /* their places */
	const struct sy__node_cache *cache;
	uint64_t random;
	void *objects[SY__RING];
};

/* What links are made with. */
struct sy__links {
	uint64_t secrets[4]; /* the last three are odd, and the very last is the inverse of the one before */
	uint64_t mark;       /* SY__IN_RING, encoded */
	const char *origin;  /* where an object would be that is encoded as 0 */
};
#endif

/* A cache begins with this. */
struct sy__node_cache {
	struct sy_cache cache;
	char *slots;           /* what slot 0 has of the cache; the others' follow, */
	size_t stride;         /* bytes from one slot's to the next; with threads by core/backend/slot_areas.h, the dummy's in front */
	uint32_t offset;       /* bytes from an object's start to its link when it is free */
	uint32_t min_partial;  /* slabs that a node's list keeps even though they are empty */
	uint32_t page_flags;   /* enum sy_flags for its pages */
	uint8_t order, least_order; /* of a slab; when there is no memory for that */
	const char *memory;    /* of the page allocator: address and descriptor of page 0; here as they are nearer so */
	struct sy_page *table;
	struct sy__node *nodes; /* one for each memory node of the heap; where the block of metadata starts that holds */
	size_t state_bytes;     /* them, and the slots unless they are threads' */
	size_t slot_bytes;      /* of what a slot has */
	uint64_t divider;       /* of the size, see sy__divider */
#ifdef SY_HARDENED
	struct sy__links links;
	uint32_t cleared;       /* bytes of an object that are cleared when it is freed, all or none */
	size_t ring;            /* bytes from what a slot has to its ring */
	uint16_t kept;          /* objects with which a slot's ring is full: from then on one less, or half of them */
	uint8_t harden;         /* enum sy__harden */
#endif
};

static inline struct sy__node_cache *sy__node_cache(struct sy_cache *cache)
{
	return (struct sy__node_cache *)(void *)cache;
}

static inline struct sy__node_slab *sy__node_slab(struct sy_page *page)
{
	return SY_SLAB_STATE(struct sy__node_slab, page);
}

/* The slab of a link. */
static inline struct sy_page *sy__node_linked(struct sy_list *link)
{
	return sy__entry(sy__entry(link, struct sy__node_slab, link), struct sy_page, state);
}

static inline struct sy__node *sy__node_of(const struct sy__node_cache *cache, const struct sy_page *page)
{
	return &cache->nodes[sy__page_node(page)];
}

/* As sy__head_of, for an object of the cache. */
static inline struct sy_page *sy__node_head(const struct sy__node_cache *cache, const void *object)
{
	return sy__page_head(sy__page_near(cache->memory, cache->table, object));
}

/* Whether an object of the cache starts `distance` bytes from the start of a slab of `bytes`. */
static inline bool sy__node_is_start(const struct sy__node_cache *cache, size_t distance, size_t bytes)
{
	return sy__starts_in_row(cache->divider, distance, bytes) && distance + cache->cache.size <= bytes;
}

/* Whether the slab with this first page is the cache's, and an object of it starts at the address, which may be any. */
static inline bool sy__node_is_object(const struct sy__node_cache *cache, struct sy_page *head, const void *address)
{
	size_t distance = (size_t)((const char *)address - (const char *)sy__page_address(cache->cache.heap, head));

	return sy__page_is_slab(head) && sy__node_slab(head)->cache == &cache->cache &&
	       sy__node_is_start(cache, distance, SY_PAGE_SIZE << sy__page_order(head));
}

/* State of a slab at this moment; others may be changing it. */
static inline uint64_t sy__node_word(const struct sy_page *page)
{
	return sy__load64(&SY_SLAB_STATE(const struct sy__node_slab, page)->word);
}

static inline void *sy__node_freelist(const struct sy__node_cache *cache, const struct sy_page *page)
{
	return sy__word_first(sy__node_word(page), sy__page_address(cache->cache.heap, page));
}

static inline uint32_t sy__node_in_use(const struct sy_page *page)
{
	return sy__word_in_use(sy__node_word(page));
}

static inline uint32_t sy__node_objects(const struct sy_page *page)
{
	return sy__word_objects(sy__node_word(page));
}

/* Counts one slab more or fewer on the node's list. With its lock held, as the next function. */
static inline void sy__node_count_partial(struct sy__node *node, int change)
{
	__atomic_store_n(&node->partial_slabs, node->partial_slabs + (size_t)change, __ATOMIC_RELAXED);
}

/* Freezes the slab and takes all its free objects in one exchange; returns the word before. */
static inline uint64_t sy__node_freeze(struct sy__node_slab *slab)
{
	uint64_t old = sy__load64(&slab->word);

	while (!sy__swap64(&slab->word, &old, sy__word_take(old) | SY__WORD_FROZEN))
		;
	return old;
}

#include "links.h"

/* Whether a slab without an object in use stays with its node. */
static inline bool sy__node_keeps(const struct sy__node_cache *cache, const struct sy__node *node)
{
	return node->partial_slabs < cache->min_partial || sy__keeps_apart(cache->cache.heap);
}

/* ---- The life of a slab (node.c); those that return pages say how many went back ------------------------------------------- */

/* Lays out a new cache's objects: a free object's link is in it at `link`, a multiple of a word, or `behind` it. */
void sy__node_lay_out(struct sy__node_cache *, uint32_t link, bool behind);

/* Makes nodes and slots of a new cache, in which order to page_flags are set; false: no memory. `ring`: SY__RING_IN(the slot's type). The
 * other function ends them. */
bool sy__node_cache_init(struct sy__node_cache *, size_t slot_bytes, size_t ring);
void sy__node_cache_fini(struct sy__node_cache *);

/* Pages for a slab of that order, or of the least; NULL: no memory. */
struct sy_page *sy__node_take_pages(struct sy__node_cache *, unsigned slot, unsigned order, unsigned flags, int node);

/* Makes these pages a slab: constructed, frozen, all objects taken, counted in the node's figures. */
void sy__node_make_slab(struct sy__node_cache *, struct sy_page *);

/* Moves a slab that no slot has to where its new word says: onto the node's list, or off it; `listed`: it was there. True: the slab is
 * empty, the node keeps no more, and the caller must discard it. With the node's lock held. */
bool sy__node_place(struct sy__node_cache *, struct sy__node *, struct sy_page *, bool listed, uint64_t word, bool at_head);

/* Ends an empty slab that is on no list, and frees it, at once or when a grace period has passed (the second function). */
uint64_t sy__node_discard(struct sy__node_cache *, unsigned slot, struct sy_page *);
void sy__node_grace_passed(struct sy_heap *, struct sy_deferred *);

/* Bytes that may be written to an object in a slab, or to a large allocation. */
size_t sy__node_usable_size(struct sy_heap *, const void *object);

/* Trimming (node_trim.c). Gives back the memory of pages in which no object is in use, not in a hardened heap; how many. */
uint64_t sy__node_trim(struct sy_cache *);

/* A slab leaves its node's list for a slot, with the node's lock held: gives its pages memory again, and links all free objects. */
void sy__node_refill_emptied(const struct sy__node_cache *, struct sy_page *);
static inline void sy__node_refill(const struct sy__node_cache *cache, struct sy_page *page)
{
	if (!SY__IS_HARDENED && sy__unlikely(sy__node_slab(page)->emptied_pages))
		sy__node_refill_emptied(cache, page);
}

/* Takes the first slab off a node's list, with the node's lock held. */
static inline struct sy_page *sy__node_first_partial(const struct sy__node_cache *cache, struct sy__node *node)
{
	struct sy_page *page = sy__node_linked(node->partial.next);

	sy__list_remove(&sy__node_slab(page)->link);
	sy__node_count_partial(node, -1);
	sy__node_refill(cache, page);
	return page;
}

/* Whether a free object lies in a page without memory; how many of a slab's objects do. */
bool sy__node_is_emptied(const struct sy__node_cache *, const struct sy_page *, const void *object);
uint32_t sy__node_emptied_objects(const struct sy__node_cache *, const struct sy_page *);

/* Gives up what a slot has of a cache. */
typedef uint64_t (*sy__node_drain)(struct sy__node_cache *, unsigned slot);

/* The same for all caches, when a CPU goes offline or a thread ends; and for all reachable slots of a cache, and its nodes' empty slabs. */
void sy__node_drain_all(struct sy_heap *, unsigned slot, sy__node_drain);
uint64_t sy__node_shrink(struct sy__node_cache *, sy__node_drain);

/* ---- Counting, checking, walking (node.c) ---------------------------------------------------------------------------------- */

/* Whether an object of the slab begins at an address. The slab of an object of the cache, or NULL; the address may be any. */
bool sy__node_in_slab(const struct sy__node_cache *, struct sy_page *, const void *object);
struct sy_page *sy__node_slab_of(const struct sy__node_cache *, const void *object);

/* Length of a list of objects of one slab. A damaged list ends where it leaves the slab, or begins to repeat. The second function also
 * returns the last object, and UINT32_MAX for a damaged list. */
uint32_t sy__node_length(const struct sy__node_cache *, struct sy_page *, void *list);
uint32_t sy__node_sound_length(const struct sy__node_cache *, struct sy_page *, void *list, void **last);

/* Whether an object is among the first `count` of a list of objects of one slab, as far as the list is sound. */
bool sy__node_is_among(const struct sy__node_cache *, struct sy_page *, void *list, uint32_t count, const void *object);

/* Whether a list has `count` objects, each where an object of the slab starts, and then ends with `end` or NULL; *last is then the last
 * one. If not, the program has made a wrong free, or has written into a free object: that is reported. In a long list only the first eight
 * are looked at, and *last is NULL: to look at all would wait for the cache line of each in turn. */
bool sy__node_list_is_sound(const struct sy__node_cache *, struct sy_page *, void *list, uint32_t count, const void *end, void **last);

/* Counts all slabs; `slot` counts those of each reachable slot. The second function counts one slab with `free` free objects. */
void sy__node_counts(struct sy__node_cache *, struct sy_cache_counts *,
                     void (*slot)(struct sy_cache_counts *, const struct sy__node_cache *, unsigned slot));
void sy__node_count_slab(struct sy_cache_counts *, uint32_t objects, uint32_t free);

/* NULL, or what is wrong with a heap whose caches begin with struct sy__node_cache. `slab` checks each slab further; `slots` checks the
 * slots of each cache, and takes each frozen slab that it finds off node.seen.frozen. */
const char *sy__node_check(struct sy_heap *, const char *(*slab)(struct sy__node_cache *, struct sy_page *),
                           const char *(*slots)(struct sy__node_cache *));

/* As sy__walk_chain, of the cache's objects. */
void sy__node_walk_chain(struct sy__walk *, const struct sy__node_cache *, void *first, uint64_t most, enum sy_part_state, const char *list,
                         unsigned owner);

/* Shows what is in a slab. The caller has named the list of one in its grace period. `locate` fills in the slot that has the slab, and its
 * list; false: no slot has it. `mark` marks the free objects that are not on the list of the slab's word, by sy__node_walk_list, which
 * takes a list of objects that are all in the slab. */
struct sy__node_view {
	struct sy__node_cache *cache;
	struct sy_page *page;
	void (*mark)(struct sy__walk *, const struct sy__node_view *);
};
void sy__node_walk(struct sy__walk *, struct sy_page *, bool (*locate)(struct sy__node_cache *, struct sy_page *, struct sy_slab *),
                   void (*mark)(struct sy__walk *, const struct sy__node_view *));
void sy__node_walk_list(struct sy__walk *, const struct sy__node_view *, void *first, enum sy_part_state, const char *list, unsigned owner);

#endif
