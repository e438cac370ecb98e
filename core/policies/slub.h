/* What the files of the SLUB policy share. The theory and the locks are in slub.c. */
#ifndef SY_SLUB_H
#define SY_SLUB_H

#include "../backend/page_map.h"
#include "../kmalloc.h"
#include "../backend/slot_areas.h"
#include "../list.h"
#include "../page_interface.h"
#include "../backend/run_cache.h"
#include "slub_word.h"

enum sy__slub_tunable {
	SLUB_MIN_ORDER,
	SLUB_MAX_ORDER,
	SLUB_MIN_OBJECTS,
	SLUB_CPU_PARTIAL,
	SLUB_MIN_PARTIAL,
	SLUB_MERGE,
	SLUB_STRAYS,
	SLUB_SHEAF,
	SLUB_CLASSES
};

/* What the slot that owns a slab keeps in it, in heaps of threads; the slot's own. See slub_owned.c. */
struct sy__slub_held {
	void *freelist;      /* free objects that no word tells of */
	uint32_t next, prev; /* slabs on the slot's list, as sy__slub_number; next of the last: 0; prev of the first: the last */
};

/* State of a slab, in the descriptor of its first page. */
struct sy__slub_slab {
	struct sy__slub_cache *cache;
	union {
		struct sy_list link; /* in sy__slub_node.partial; under the node's lock */
		struct sy_page *next; /* in sy__slub_slot.partial; the slot's own; not in heaps of threads, which have */
		struct sy__slub_held held;
		struct sy_deferred deferred; /* no object is left, and a grace period has yet to pass */
	};
	_Alignas(8) uint64_t word; /* free objects, how many are in use, whether a slot owns the slab; see slub_word.h */
	/* Of heaps of threads, see slub_owned.c: */
	uint32_t owner;        /* sy__slub_mark of the slot that owns it; SY__SLUB_NOBODY: no slot does */
	union {
		uint16_t held_objects;  /* on held.freelist */
		uint16_t emptied_pages; /* of a slab that is nobody's: bits of pages without memory, see slub_trim.c */
	};
	uint16_t filler;       /* the slot that handed out its last free object; a hint */
};
SY_ASSERT_SLAB_STATE(struct sy__slub_slab, cache);

#define SY__SLUB_NOBODY 0u
#define SY__SLUB_MOST_STRAYS 65534u /* that can be asked for: what a slot counts, and one more */
#define SY__SLUB_ROW 16u /* strays that a slot keeps which has no active slab, of small objects */
#define SY__SLUB_STRAYS_TO_SLAB 8u /* allocations that find strays and no active slab, to one that gets such; a power of two */
#define SY__SLUB_STRAYS_TO_ONE 32u /* strays that come to one that is looked at, a power of two */
#define SY__SLUB_STRAYS_NEW 2048u /* that come to a slot since its thread began, before fewer are looked at of exchanged slabs: */
#define SY__SLUB_STRAYS_TO_RARE 256u /* a power of two; see slub_strays.c */
#define SY__SLUB_EXCHANGED 64u /* in a page's mark, beside the number of the class: its slab's objects are exchanged, see slub_strays.c */
#define SY__SLUB_CLASS (SY__SLUB_EXCHANGED - 1)
#define SY__SLUB_ENOUGH 16u /* a slab is taken up for such a part of its objects; see slub_owned.c */
#define SY__SLUB_WAITING 3u /* slabs that a slot has, but for its active one, from which on it takes any up */
#define SY__SLUB_HELD_AT_ONCE 8u /* objects of the active slab that a slot which gathers takes onto its freelist; fewer it takes one by one */

/* What one CPU slot has of a cache; on a cache line of its own, touched by the slot alone. */
struct sy__slub_slot {
	_Alignas(SY_CACHE_LINE) void *freelist; /* objects of the active slab, to be handed out next */
	union {
		char *start;         /* of the active slab; in heaps of threads there is instead: */
		struct {
			uint8_t spare;   /* how many empty slabs it keeps beyond the cache's empty_limit; */
			uint8_t missed;  /* how many it gave back for want of such, and has not taken again: see slub_owned.c; */
			uint16_t came;   /* strays that came since its thread began, and allocations that found them and no slab; */
			uint16_t sheaf;  /* how many strays the freelist may grow to: see slub_strays.c; 0: kfree puts none there, or not yet; */
			uint16_t stray_count; /* in strays */
		};
	};
	union {
		uint32_t bytes;      /* of the active slab: what lies within is freed here; 0: there is none; or, in heaps of threads: */
		uint32_t stray_limit; /* the cache's, so that kfree and malloc need not look there; 0 before the slot's first active slab */
	};
	uint32_t newest;         /* in heaps of threads: of `partial` the last, as sy__slub_number */
	struct sy_page *slab;    /* the active slab, or NULL */
	struct sy_page *partial; /* frozen slabs with free objects, newest first; in heaps of threads oldest first */
	uint32_t partial_slabs;  /* in partial */
	/* Of heaps of threads, see slub_owned.c: */
	uint32_t empty;          /* more of them, without an object in use: sy__slub_number of the newest */
	uint8_t empty_slabs;     /* in empty */
	bool astray;             /* what is on freelist are strays, of any slabs */
	uint16_t foreign_slabs;  /* in partial, which other slots have filled */
	uint16_t uncarved;       /* objects at the end of the active slab that are on no list yet */
	int16_t node;            /* of the active slab */
	void *strays;            /* free objects of slabs that are not the slot's, see slub_strays.c; struct sy__slub_stray */
};
_Static_assert(sizeof(struct sy__slub_slot) == SY_CACHE_LINE, "slots are found by their distance in bytes");

/* Free objects of one slab, linked. */
struct sy__slub_chain {
	void *first; /* NULL: there are none */
	void *last;  /* NULL: nobody has looked yet */
	uint32_t count;
};

/* What a check counts, to be compared with what a node counts. */
struct sy__slub_seen {
	uint64_t slabs, objects, pages, partial, frozen;
};

/* The slabs of a cache on one memory node. */
struct sy__slub_node {
	sy__lock_t lock;
	struct sy_list partial; /* slabs that no slot owns, with free and (mostly) used objects */
	size_t partial_slabs;   /* in partial; written under the lock, read by anyone */
	uint64_t slabs, objects, pages; /* all slabs, full and frozen ones too; room in them; their pages */
	/* Of heaps of threads, see slub_nodes.c; under the lock: */
	uint32_t spare;  /* how many slabs there are on the list, beyond min_partial, before empty ones go; read by anyone */
	uint32_t missed; /* how many went, and have not been taken again */
	struct sy__slub_seen seen; /* scratch of check */
};

struct sy__slub_cache {
	struct sy_cache cache;
	struct sy__slub_slot *slots; /* slot 0's; the others' follow, */
	size_t stride;         /* so many bytes apart; in a heap of threads by core/backend/slot_areas.h, with the dummy's in front */
	uint32_t offset;       /* bytes from an object's start to its free pointer */
	uint32_t slot_limit;   /* slabs on a slot's partial list at most; 0: slots have none, and in heaps of threads own no full
	                        * slab that they free into; there of other slabs: */
	uint32_t foreign_limit; /* of the slabs on a slot's list, those that others filled and the slot made its own */
	uint32_t empty_limit;  /* slabs on a slot's list of empty ones, in heaps of threads; beside those that it has found to be needed (spare) */
	uint32_t stray_limit;  /* strays of a slot; 0: it keeps none */
	uint16_t sheaf_limit;  /* strays that kfree gathers on a slot's freelist; 0: it does not */
	uint8_t sheaf_mark;    /* if it does, of all pages (core/backend/page_map.h): the number of the class; else 0 */
	uint8_t exchanged_mark; /* else, of pages of slabs whose objects are exchanged; 0: it has no such */
	uint8_t row;           /* strays that slots keep which have no active slab; 0: none */
	uint32_t min_partial;  /* slabs that a node's list keeps even though they are empty */
	uint32_t page_flags;   /* enum sy_flags for its pages */
	uint8_t order, least_order; /* of a slab; when there is no memory for that */
	uint8_t first_order;   /* of the first slabs, in heaps of threads */
	uint8_t next_order;    /* of the next slab, from there to `order`; read by anyone */
	const char *memory;    /* of the page allocator: address and descriptor of page 0; here as they are nearer so */
	struct sy_page *table;
	struct sy__slub_node *nodes; /* one for each memory node of the heap; where the block of metadata starts that holds */
	size_t state_bytes;          /* them, and the slots of a heap without threads */
};

/* The slots of the normal class for sizes up to 8, 16, 24, … bytes; and of each class, with nowhere behind the largest. */
struct sy__slub_sizes {
	struct sy__slub_slot *small[SY__KMALLOC_SMALL / 8];
	struct sy__slub_slot *classes[SY__KMALLOC_MOST_CLASSES];
};

struct sy__slub_heap {
	struct sy_heap heap;
	struct sy__kmalloc kmalloc;
	/* Of heaps of threads: */
	struct sy__page_map heads;        /* the first page of the block that a page is of */
	unsigned looked_at;            /* counts looks at classes (slub_slabs.c); anybody's, relaxed: a hint */
	size_t sparing;                /* nodes of caches that keep empty slabs as they are needed again and again (slub_nodes.c); the same */
	struct sy__slub_slot *nowhere; /* slots in which nothing is ever found; NULL: classes serve all sizes up to SY__KMALLOC_LARGEST */
	struct sy__slub_sizes sizes[]; /* one */
};

_Static_assert(sizeof(struct sy__slub_heap) <= 4096, "a heap is one page: replays count it");

static inline struct sy__slub_heap *sy__slub_heap(struct sy_heap *heap)
{
	return (struct sy__slub_heap *)(void *)heap;
}

static inline struct sy__slub_cache *sy__slub_cache(struct sy_cache *cache)
{
	return (struct sy__slub_cache *)(void *)cache;
}

static inline struct sy__slub_slab *sy__slub_slab(struct sy_page *page)
{
	return SY_SLAB_STATE(struct sy__slub_slab, page);
}

static inline struct sy_page *sy__slub_page(struct sy__slub_slab *slab)
{
	return sy__entry(slab, struct sy_page, state);
}

static inline struct sy_page *sy__slub_linked(struct sy_list *link)
{
	return sy__slub_page(sy__entry(link, struct sy__slub_slab, link));
}

static inline struct sy__slub_slot *sy__slub_slot(const struct sy__slub_cache *cache, unsigned slot)
{
	return (struct sy__slub_slot *)(void *)((char *)cache->slots + slot * cache->stride);
}

/* Of a heap of threads. */
static inline struct sy__slub_slot *sy__slub_dummy(struct sy__slub_slot *slots)
{
	return (struct sy__slub_slot *)(void *)((char *)slots + SY__DUMMY_HERE);
}

/* As sy__head_of, of one of the cache's objects. */
static inline struct sy_page *sy__slub_head(const struct sy__slub_cache *cache, const void *object)
{
	return sy__page_head(sy__page_near(cache->memory, cache->table, object));
}

/* The free pointer of a free object: where the next free object is. */
static inline void **sy__slub_next(const struct sy__slub_cache *cache, void *object)
{
	return (void **)(void *)((char *)object + cache->offset);
}

/* What is known of a slab at this moment; others may work on it. The first of the free objects that are not on a slot's
 * freelist; the objects in use, among them those on a slot's freelist; room; whether a slot owns it. */
static inline uint64_t sy__slub_look(const struct sy_page *page)
{
	return sy__load64(&SY_SLAB_STATE(const struct sy__slub_slab, page)->word);
}

static inline void *sy__slub_freelist(const struct sy_heap *heap, const struct sy_page *page)
{
	return sy__slub_word_first(sy__slub_look(page), sy__page_address(heap, page));
}

static inline uint32_t sy__slub_in_use(const struct sy_page *page)
{
	return sy__slub_word_in_use(sy__slub_look(page));
}

static inline uint32_t sy__slub_objects(const struct sy_page *page)
{
	return sy__slub_word_objects(sy__slub_look(page));
}

static inline bool sy__slub_frozen(const struct sy_page *page)
{
	return sy__slub_word_frozen(sy__slub_look(page));
}

/* One slab more or fewer is on the node's list. With its lock held. */
static inline void sy__slub_count_partial(struct sy__slub_node *node, int change)
{
	__atomic_store_n(&node->partial_slabs, node->partial_slabs + (size_t)change, __ATOMIC_RELAXED);
}

/* Whether a slab without an object in use stays with its node. With the node's lock held. */
static inline bool sy__slub_node_keeps(const struct sy__slub_cache *cache, const struct sy__slub_node *node)
{
	return node->partial_slabs < cache->min_partial + node->spare;
}

/* Whether slots own slabs: in a heap of threads, to its end, when it has no threads any more. */
static inline bool sy__slub_slots_own(const struct sy__slub_cache *cache)
{
	return cache->stride == SY_SLOT_STRIDE;
}

/* Of such a slot: as sy__call_begin has it. */
static inline ptrdiff_t sy__slub_here_of(const struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	return (const char *)own - (const char *)cache->slots;
}

/* How many empty slabs it keeps now. */
static inline uint32_t sy__slub_empties(const struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	return cache->empty_limit + (own->spare && sy__spares_wanted(cache->cache.heap, sy__slub_here_of(cache, own)) ? own->spare : 0u);
}

/* Of the active slab, which a slot that owns slabs has otherwise. */
static inline void sy__slub_set_range(const struct sy__slub_cache *cache, struct sy__slub_slot *own, char *start, uint32_t bytes)
{
	if (sy__slub_slots_own(cache))
		return;
	own->start = start;
	own->bytes = bytes;
}

/* From now on the slot has no active slab. */
static inline void sy__slub_forget(const struct sy__slub_cache *cache, struct sy__slub_slot *own)
{
	own->slab = NULL;
	sy__slub_set_range(cache, own, NULL, 0);
	own->freelist = NULL;
	own->uncarved = 0;
}

/* From now on it has this one, of which no object is on its freelist yet. */
static inline void sy__slub_activate(const struct sy__slub_cache *cache, struct sy__slub_slot *own, struct sy_page *page)
{
	own->slab = page;
	sy__slub_set_range(cache, own, sy__page_address(cache->cache.heap, page), (uint32_t)(SY_PAGE_SIZE << sy__page_order(page)));
	own->node = (int16_t)sy__page_node(page);
	own->freelist = NULL;
	own->uncarved = 0;
}

/* The next object of a slot that has one on its freelist. */
static inline void *sy__slub_pop(const struct sy__slub_cache *cache, struct sy__slub_slot *own)
{
	void *object = own->freelist;

	own->freelist = *sy__slub_next(cache, object);
	return object;
}

/* Whether an object is in the slot's active slab. Never in heaps of threads, where slots own it and others. */
static inline bool sy__slub_is_active(const struct sy__slub_slot *own, const void *object)
{
	return (uintptr_t)object - (uintptr_t)own->start < own->bytes;
}

/* Puts a frozen slab on the slot's partial list. In its local section. */
static inline void sy__slub_hold(struct sy__slub_slot *own, struct sy_page *page)
{
	sy__slub_slab(page)->next = own->partial;
	own->partial = page;
	own->partial_slabs++;
}

/* Of an owned slab: whom it belongs to. Made of where the slot is (sy__call_begin), as the fast path has that at hand; and of
 * where links are, so that a path which knows links at the start of objects takes the slabs of others for a stranger's. Others
 * may read it at any time, but nobody finds the own mark but who has set it: hence relaxed. */
static inline uint32_t sy__slub_mark_here(ptrdiff_t here, size_t offset)
{
	return (uint32_t)here + (offset ? 3u : 1u);
}

static inline uint32_t sy__slub_mark(const struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	return sy__slub_mark_here(sy__slub_here_of(cache, own), cache->offset);
}

static inline uint32_t sy__slub_owner(const struct sy__slub_slab *slab)
{
	return __atomic_load_n(&slab->owner, __ATOMIC_RELAXED);
}

static inline void sy__slub_set_owner(struct sy__slub_slab *slab, uint32_t mark)
{
	__atomic_store_n(&slab->owner, mark, __ATOMIC_RELAXED);
}

/* Free objects that a slab's owner keeps in it. */
static inline uint32_t sy__slub_held_objects(const struct sy__slub_cache *cache, const struct sy_page *page)
{
	return sy__slub_slots_own(cache) ? SY_SLAB_STATE(const struct sy__slub_slab, page)->held_objects : 0;
}

/* A slab by a number, as two pointers are more than there is room for. */
static inline uint32_t sy__slub_number(const struct sy__slub_cache *cache, const struct sy_page *page)
{
	return page ? (uint32_t)(page - cache->table) + 1 : 0;
}

static inline struct sy_page *sy__slub_numbered(const struct sy__slub_cache *cache, uint32_t number)
{
	return number ? cache->table + (number - 1) : NULL;
}

/* The first of a slot's empty slabs. */
static inline struct sy_page *sy__slub_first_empty(const struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	return sy__slub_numbered(cache, own->empty);
}

/* Behind a slab on a slot's list. */
static inline struct sy_page *sy__slub_behind(const struct sy__slub_cache *cache, struct sy_page *page)
{
	const struct sy__slub_slab *slab = sy__slub_slab(page);

	return sy__slub_slots_own(cache) ? sy__slub_numbered(cache, slab->held.next) : slab->next;
}

/* Of the word, its number of objects in use alone. Relaxed, as it may lead to no more than a place on the slot's list of empty
 * slabs: before such a slab goes, an exchange of the word acquires what others did to the objects they gave back. */
static inline uint16_t sy__slub_in_use_now(const struct sy__slub_slab *slab)
{
	typedef uint16_t __attribute__((may_alias)) part;

	return __atomic_load_n((const part *)(const void *)&slab->word + SY__SLUB_IN_USE_PART, __ATOMIC_RELAXED);
}

/* Whether so many free objects of a slab are worth taking it up. */
static inline bool sy__slub_is_enough(uint64_t word, uint32_t objects)
{
	return objects >= sy__slub_word_objects(word) / SY__SLUB_ENOUGH;
}

/* The same of what others gave back. */
static inline bool sy__slub_word_has_enough(uint64_t word)
{
	return !sy__slub_word_full(word) && sy__slub_is_enough(word, sy__slub_word_objects(word) - sy__slub_word_in_use(word));
}

/* Whether the slot takes slabs up for any number of objects, as it has so many that what they keep might add up. */
static inline bool sy__slub_takes_any(const struct sy__slub_slot *own)
{
	return own->partial_slabs >= SY__SLUB_WAITING;
}

/* Takes all that the owner gave back of its active slab onto its freelist, which is empty, but for the first object; if it is to
 * gather strays there, and these are few, only that. NULL: there is nothing, or not enough where not any number will do. */
static inline void *sy__slub_pop_held(struct sy__slub_slot *own, size_t offset, bool any)
{
	struct sy__slub_slab *slab = sy__slub_slab(own->slab);
	void *object = slab->held.freelist, *next;

	if (!object || (!any && !sy__slub_is_enough(sy__load64(&slab->word), slab->held_objects)))
		return NULL;
	next = *(void **)(void *)((char *)object + offset);
	if (sy__unlikely(own->sheaf && slab->held_objects < SY__SLUB_HELD_AT_ONCE)) {
		slab->held.freelist = next;
		slab->held_objects--;
		return object;
	}
	slab->held.freelist = NULL;
	slab->held_objects = 0;
	own->freelist = next;
	return object;
}

/* Whether what was never used is what a slot takes next of its active slab, of which it has just taken nothing that is held.
 * False where it has none. */
static inline bool sy__slub_is_next_uncarved(const struct sy__slub_slot *own)
{
	const struct sy__slub_slab *slab;

	if (!own->uncarved)
		return false;
	slab = SY_SLAB_STATE(const struct sy__slub_slab, own->slab);
	return !sy__slub_word_has_enough(sy__load64(&slab->word));
}

/* Counts one more of what one free after the other counts. In memory, and only then reads it: where a processor hands what was
 * stored on to the instruction that needs it next, it need not wait for the cache; but not to a load that widens it. */
static inline uint16_t sy__slub_one_more(uint16_t *counter)
{
	++*counter;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return *counter;
}

/* Gives an object of a slab that is the slot's back, active or not. Whether nothing of the slab is in use any more. The word
 * counts what others gave back, and may be about to say more; that is then noticed later. */
static inline bool sy__slub_push_owned(struct sy_page *page, void *object, size_t offset)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);

	*(void **)(void *)((char *)object + offset) = slab->held.freelist;
	slab->held.freelist = object;
	return sy__slub_one_more(&slab->held_objects) == sy__slub_in_use_now(slab);
}

/* The list of partial slabs: prev of the first one, and own->newest where there is none, mean nothing. */

static inline void sy__slub_append(const struct sy__slub_cache *cache, struct sy__slub_slot *own, struct sy_page *page)
{
	struct sy__slub_held *held = &sy__slub_slab(page)->held;
	uint32_t number = sy__slub_number(cache, page);

	held->next = 0;
	held->prev = own->newest;
	if (own->partial)
		sy__slub_slab(cache->table + (own->newest - 1))->held.next = number;
	else
		own->partial = page;
	own->newest = number;
}

/* What slab.filler says of a slot: the number of its page in the address space, as far as there is room for it. */
static inline uint16_t sy__slub_tag(const struct sy__slub_slot *own)
{
	return (uint16_t)((uintptr_t)own / SY_SLOT_STRIDE);
}

/* Relaxed: a hint, on which no memory depends. */
static inline bool sy__slub_is_foreign(const struct sy__slub_slot *own, const struct sy__slub_slab *slab)
{
	return __atomic_load_n(&slab->filler, __ATOMIC_RELAXED) != sy__slub_tag(own);
}

static inline void sy__slub_set_filler(struct sy__slub_slab *slab, const struct sy__slub_slot *own)
{
	__atomic_store_n(&slab->filler, sy__slub_tag(own), __ATOMIC_RELAXED);
}

/* A slab that is the slot's, and on none of its lists. */
static inline void sy__slub_hold_owned(const struct sy__slub_cache *cache, struct sy__slub_slot *own, struct sy_page *page)
{
	sy__slub_append(cache, own, page);
	own->partial_slabs++;
	own->foreign_slabs += sy__slub_is_foreign(own, sy__slub_slab(page));
}

/* A slab that the slot has just frozen, with so many objects on its own list. */
static inline void sy__slub_hold_frozen(const struct sy__slub_cache *cache, struct sy__slub_slot *own, struct sy_page *page, void *objects,
                                        uint32_t count)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);

	sy__slub_set_owner(slab, sy__slub_mark(cache, own));
	slab->held.freelist = objects;
	slab->held_objects = (uint16_t)count;
	sy__slub_hold_owned(cache, own, page);
}

/* A free object that a slot keeps of a slab which is not its own, see slub_strays.c. */
struct sy__slub_stray {
	struct sy__slub_stray *next;
	size_t left; /* of one on the freelist: strays from this one on */
};

/* Onto the slot's list, in a call, not of the dummy: how many there are with this one. Reads nothing of the one before: that was
 * stored a moment ago, to memory which may be long in coming. */
static inline uint16_t sy__slub_push_stray(struct sy__slub_slot *own, void *object)
{
	((struct sy__slub_stray *)object)->next = own->strays;
	own->strays = object;
	return sy__slub_one_more(&own->stray_count);
}

/* Whether a slot's strays may be handed out: who gets one shares no cache line with its neighbours' owners by that. */
static inline bool sy__slub_serves_strays(const struct sy__slub_cache *cache)
{
	return cache->cache.size >= SY_CACHE_LINE;
}

/* Whether strays serve within a fast call: if the slot has an active slab. Without one see serving in slub_owned.c. */
static inline bool sy__slub_serving(const struct sy__slub_slot *own)
{
	return own->slab && own->stray_limit;
}

/* The stray that was kept last, of a slot whose freelist is empty, if there is one, and it may serve; or NULL. Writes nothing to a
 * slot that has none. */
static inline void *sy__slub_pop_stray(bool serving, struct sy__slub_slot *own)
{
	struct sy__slub_stray *stray = own->strays;

	if (sy__likely(!stray) || !serving) {
		if (sy__unlikely(own->astray))
			own->astray = false;
		return NULL;
	}
	own->strays = stray->next;
	own->stray_count--;
	return stray;
}

/* slub.c. In a slow call: an allocation that the slot's freelist can't serve; a free that may change the slab's place, and the
 * pages that went back by that. */
void *sy__slub_alloc_slow(struct sy__slub_cache *, unsigned slot, unsigned flags, int node);
uint64_t sy__slub_free_moving(struct sy__slub_cache *, unsigned slot, struct sy_page *, void *first, void *last, uint32_t count);
SY__COLD void *sy__slub_zeroed(const struct sy__slub_cache *, void *object);

/* slub_here.c, for heaps of threads: entries, for a cache whose layout is known; what a new slab's pages belong to. */
extern const struct sy_here sy__slub_here;
bool sy__slub_here_init(struct sy__slub_heap *);
void sy__slub_here_fini(struct sy_heap *);
bool sy__slub_reservation(struct sy_heap *, size_t pages);
void sy__slub_choose_here(struct sy__slub_cache *);
bool sy__slub_set_page_map(const struct sy__slub_cache *, struct sy_page *, unsigned mark);

/* slub_owned.c, for heaps of threads: what slots own. */
void *sy__slub_refill(struct sy__slub_cache *, struct sy__slub_slot *);
void sy__slub_carve(const struct sy__slub_cache *, struct sy__slub_slot *);
void *sy__slub_alloc_owned(struct sy__slub_cache *, unsigned slot, int node, bool any);
void sy__slub_own_active(struct sy__slub_cache *, struct sy__slub_slot *, bool empty);
void sy__slub_end_carving(const struct sy__slub_cache *, struct sy__slub_slot *);
void sy__slub_taken(struct sy__slub_slot *, const struct sy_page *);
struct sy_page *sy__slub_next_owned(const struct sy__slub_cache *, struct sy__slub_slot *);
struct sy_page *sy__slub_next_empty(const struct sy__slub_cache *, struct sy__slub_slot *);
uint32_t sy__slub_emptied(struct sy__slub_cache *, struct sy__slub_slot *, struct sy_page *);
bool sy__slub_free_foreign(struct sy__slub_cache *, struct sy__slub_slot *, struct sy_page *, void *first, void *last, uint32_t count);
void sy__slub_free_owned(struct sy__slub_cache *, unsigned slot, struct sy_page *, void *object);

/* slub_strays.c, for heaps of threads: objects that slots keep of slabs which are not theirs; pages that went back as they went
 * home. */
uint64_t sy__slub_give_strays(struct sy__slub_cache *, unsigned slot);
uint64_t sy__slub_end_strays(struct sy__slub_cache *, unsigned slot);
bool sy__slub_give_rows(struct sy__slub_cache *, struct sy__slub_slot *);
bool sy__slub_take_over(struct sy__slub_cache *, unsigned slot, unsigned from);
void sy__slub_look_at_stray(struct sy__slub_cache *, unsigned slot, struct sy_page *, void *object);
size_t sy__slub_count_strays(const struct sy__slub_cache *, const struct sy__slub_slot *);
const char *sy__slub_check_strays(const struct sy__slub_cache *, const struct sy__slub_slot *);
void sy__slub_mark_strays(struct sy__walk *, const struct sy__slub_cache *, unsigned slot);

/* slub_slabs.c. Functions that return pages say how many went back to the page allocator. */
struct sy_page *sy__slub_new_slab(struct sy__slub_cache *, unsigned slot, unsigned flags, int node);
uint64_t sy__slub_deactivate(struct sy__slub_cache *, unsigned slot, struct sy__slub_slot *);
void sy__slub_keep(struct sy__slub_cache *, unsigned slot, struct sy_page *);
void sy__slub_count_out(struct sy__slub_cache *, struct sy__slub_node *, struct sy_page *);
uint64_t sy__slub_discard(struct sy__slub_cache *, unsigned slot, struct sy_page *);
void sy__slub_link_row(const struct sy__slub_cache *, char *first, uint32_t objects);
uint64_t sy__slub_give_empties(struct sy__slub_cache *, unsigned slot, uint32_t keep);
void sy__slub_end_spares(struct sy_heap *, unsigned slot);
uint64_t sy__slub_settle(struct sy_cache *);
void sy__slub_look_around(struct sy__slub_heap *, unsigned slot);
void sy__slub_grace_passed(struct sy_heap *, struct sy_deferred *);
void sy__slub_drain(struct sy_heap *, unsigned slot);
uint64_t sy__slub_shrink(struct sy_cache *);
void sy__slub_cache_fini(struct sy_cache *);

/* slub_nodes.c: what nodes keep. In heaps of threads empty slabs too. */
void sy__slub_node_misses(const struct sy__slub_cache *, struct sy__slub_node *);
void sy__slub_node_took(struct sy__slub_cache *, unsigned slot, struct sy__slub_node *, const struct sy_page *);
bool sy__slub_has_spares(const struct sy__slub_cache *);
void sy__slub_nodes_end(struct sy__slub_cache *);
uint64_t sy__slub_give_unused(struct sy__slub_cache *, unsigned slot);
uint64_t sy__slub_nodes_anew(struct sy__slub_cache *);
uint64_t sy__slub_shrink_nodes(struct sy__slub_cache *);

/* slub_geometry.c */
bool sy__slub_cache_init(struct sy_cache *);
bool sy__slub_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *);
struct sy_cache *sy__slub_merge(struct sy_heap *, const struct sy_cache *wanted);

/* slub_trim.c */
uint64_t sy__slub_trim(struct sy_cache *);
void sy__slub_refill_emptied(struct sy__slub_cache *, struct sy_page *);
bool sy__slub_is_emptied(const struct sy__slub_cache *, const struct sy_page *, uint32_t object);
uint32_t sy__slub_emptied_objects(const struct sy__slub_cache *, const struct sy_page *);

/* A slab of a node's list that is about to be a slot's: all that is free in it is on its list. With the node's lock held. */
static inline void sy__slub_refill_pages(struct sy__slub_cache *cache, struct sy_page *page)
{
	if (sy__unlikely(sy__slub_slab(page)->emptied_pages))
		sy__slub_refill_emptied(cache, page);
}

/* slub_check.c */
bool sy__slub_in_slab(const struct sy__slub_cache *, struct sy_page *, const void *object);
void sy__slub_counts(struct sy_cache *, struct sy_cache_counts *);
const char *sy__slub_check(struct sy_heap *);

/* slub_walk.c */
void sy__slub_walk(struct sy__walk *, struct sy_page *);

#endif
