/* What the files of yard share. The theory and the locks are in yard.c. */
#ifndef SY_YARD_H
#define SY_YARD_H

#include "../../backend/page_map.h"
#include "../../backend/run_cache.h"
#include "../../kmalloc.h"
#include "../node.h"

enum sy__yard_tunable {
	YARD_MIN_ORDER,
	YARD_MAX_ORDER,
	YARD_MIN_OBJECTS,
	YARD_MERGE,
	YARD_REMOTE,
	YARD_CLASSES,
	YARD_HARDEN
};

/* What the slot that owns a slab keeps in it (owned.c); the owner's own. Owned slabs are frozen (../node.h). */
struct sy__yard_local {
	void *freelist;      /* objects that the owner freed */
	uint32_t next, prev; /* slabs on the owner's list, by number; next of the last: 0; prev of the first means nothing */
};
#define sy__yard_local(slab) ((struct sy__yard_local *)(void *)(slab)->own)

_Static_assert(sizeof(struct sy__yard_local) <= SY__NODE_OWN_BYTES, "a slab has room for it");

#define SY__YARD_NOBODY 0u
#define SY__YARD_FULL 4u
#define SY__YARD_EMPTY 2u        /* slabs without an object in use that a slot keeps in any case, */
#define SY__YARD_MOST_SPARE 200u /* and so many more at most because it needs them again and again; */
#define SY__YARD_FEW_SLOTS 16u   /* where threads have had more slots, none in any case: those of idle threads would be too many */

/* What a slot has of a cache, on a cache line of its own. All zero: nothing yet, as of the dummy for ever. */
struct sy__yard_slot {
	_Alignas(SY_CACHE_LINE) void *freelist; /* objects of the active slab, to be handed out next */
	struct sy_page *slab;         /* the active slab, or NULL */
	void *remote;                 /* free objects of slabs that others own */
	struct sy__yard_cache *cache; /* NULL until the slot first allocates by a slow call */
	uint32_t first, last;         /* of the owned slabs that wait for their turn, by number; first 0: there are none */
	uint32_t empty;               /* the newest owned slab without an object in use, by number; 0: there is none */
	uint8_t empty_slabs;          /* how many there are of these; */
	uint8_t spare;                /* how many may be, beyond SY__YARD_EMPTY; */
	uint8_t missed;               /* how many went for want of such, and have not been taken again */
	uint16_t uncarved;            /* objects at the end of the active slab that are on no list yet */
	uint16_t remote_room;         /* objects that `remote` takes until it goes home, and one */
	int16_t node;                 /* of the active slab */
	uint32_t bottom;              /* what was last on the freelist when it was filled: the lower half of its address; 0: unknown */
	uint32_t seen;                /* tells what it was when the slot was last scavenged, see give_active */
#ifdef SY_HARDENED
	struct sy__ring ring;
#endif
};
_Static_assert(sizeof(struct sy__yard_slot) % SY_CACHE_LINE == 0, "slots are found by their distance in bytes");

struct sy__yard_cache {
	struct sy__node_cache base;
	uint16_t remote_limit; /* objects that a slot gathers of others' slabs, at least one */
	uint8_t first_order;   /* of the first slabs; of later ones up to base.order */
};

struct sy__yard_heap {
	struct sy_heap heap;
	struct sy__kmalloc kmalloc;
	/* With threads: */
	struct sy__page_map page_map;
	struct sy__yard_slot *small[]; /* slots of the normal class for sizes up to 8, 16, 24, … bytes, to SY__KMALLOC_SMALL */
};

_Static_assert(sizeof(struct sy__yard_heap) <= 4096, "a heap is one page: replays count it");

static inline struct sy__yard_heap *sy__yard_heap(struct sy_heap *heap)
{
	return (struct sy__yard_heap *)(void *)heap;
}

static inline const struct sy__kmalloc *sy__yard_sizes(struct sy_heap *heap)
{
	return &sy__yard_heap(heap)->kmalloc;
}

static inline struct sy__yard_cache *sy__yard_cache(struct sy_cache *cache)
{
	return (struct sy__yard_cache *)(void *)cache;
}

static inline struct sy__yard_cache *sy__yard_cache_of(struct sy_page *page)
{
	return sy__yard_cache(sy__node_slab(page)->cache);
}

/* By a distance from slot 0's, as sy__call_begin tells, or by number. */
static inline struct sy__yard_slot *sy__yard_slot_at(void *slots, ptrdiff_t slot_offset)
{
	return (struct sy__yard_slot *)(void *)((char *)slots + slot_offset);
}

static inline struct sy__yard_slot *sy__yard_own_at(const struct sy__yard_cache *cache, ptrdiff_t slot_offset)
{
	return sy__yard_slot_at(cache->base.slots, slot_offset);
}

static inline struct sy__yard_slot *sy__yard_slot(const struct sy__yard_cache *cache, unsigned slot)
{
	return sy__yard_own_at(cache, (ptrdiff_t)(slot * cache->base.stride));
}

/* The word's number of objects in use alone. Relaxed: it leads to no more than a place among the slot's empty slabs. Before such
 * a slab goes, an exchange of the word acquires what others did to the objects that they freed. */
static inline uint16_t sy__yard_in_use_now(const struct sy__node_slab *slab)
{
	typedef uint16_t __attribute__((may_alias)) part;

	return __atomic_load_n((const part *)(const void *)&slab->word + SY__WORD_IN_USE_PART, __ATOMIC_RELAXED);
}

/* ---- Owners ----------------------------------------------------------------------------------------------------- */

/* Tells a slot from all others, and from nobody: the distance of what it has from slot 0's, which the fast path has at hand. And
 * where links are: a path that expects them at the start of objects so takes all other slabs for somebody else's. */
static inline uint32_t sy__yard_mark_at(ptrdiff_t slot_offset, size_t offset)
{
	return (uint32_t)slot_offset + (offset ? 3u : 1u);
}

/* As sy__call_begin has it. */
static inline ptrdiff_t sy__yard_slot_offset(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	return (const char *)own - cache->base.slots;
}

static inline uint32_t sy__yard_mark(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	return sy__yard_mark_at(sy__yard_slot_offset(cache, own), cache->base.offset);
}

/* Relaxed: nobody but a slot itself sets or takes away that slot's mark, so nobody finds the own one by mistake. */
static inline uint32_t sy__yard_owner(const struct sy__node_slab *slab)
{
	return __atomic_load_n(&slab->owner, __ATOMIC_RELAXED);
}

static inline void sy__yard_set_owner(struct sy__node_slab *slab, uint32_t mark)
{
	__atomic_store_n(&slab->owner, mark, __ATOMIC_RELAXED);
}

/* The slot has something that sy__yard_release_retained may find. */
static inline void sy__yard_has_idle(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	if (sy__retains(cache->base.cache.heap))
		sy__retained_note(cache->base.cache.heap, sy__yard_slot_offset(cache, own));
}

/* How many empty slabs a slot keeps now. */
static inline uint32_t sy__yard_most_empty(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	const struct sy_heap *heap = cache->base.cache.heap;
	bool spares = own->spare && sy__retained_wanted(heap, sy__yard_slot_offset(cache, own));

	return (heap->threads && sy__slots_high() > SY__YARD_FEW_SLOTS ? 0u : SY__YARD_EMPTY) + (spares ? own->spare : 0u);
}

/* The next object of a list of the slot's that has one: its freelist, or `remote`. Hardened, NULL if the program has written into it: the
 * list is lost. */
static inline void *sy__yard_pop(const struct sy__yard_cache *cache, void **list, size_t offset)
{
	void *object = *list, *next = sy__link_take(&cache->base, object, offset);

	if (sy__link_is_wrong(next))
		return *list = sy__node_damaged(&cache->base, object);
	*list = next;
	return object;
}

/* Frees an object of a slab that is the slot's, active or not. Whether nothing of the slab is in use any more, as far as the word
 * says: it may be about to say so, which is then noticed later. Counts in memory, and only then reads that: a processor hands what
 * was stored a moment ago on to the load behind it, but not to one that widens it. */
static inline bool sy__yard_push_local(const struct sy__yard_cache *cache, struct sy_page *page, void *object, size_t offset)
{
	struct sy__node_slab *slab = sy__node_slab(page);

	sy__link_set(&cache->base, object, offset, sy__yard_local(slab)->freelist);
	sy__yard_local(slab)->freelist = object;
	++slab->local_objects;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return slab->local_objects == sy__yard_in_use_now(slab);
}

/* Gathers an object of a slab that isn't the slot's. False: nothing has been done, as `remote` is to go home first, the slot has
 * none yet, or is the dummy; or the object came last already. Reads nothing of the object before, whose line may be long in coming. */
static inline bool sy__yard_push_remote(const struct sy__yard_cache *cache, struct sy__yard_slot *own, void *object, size_t offset)
{
	if (sy__unlikely(own->remote_room <= 1) || sy__unlikely(own->remote == object))
		return false;
	sy__link_set(&cache->base, object, offset, own->remote);
	own->remote = object;
	own->remote_room--;
	return true;
}

/* Whether the slot's remote objects may be handed out: see owned.c. */
static inline bool sy__yard_remote_serves(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	return own->remote && own->slab && cache->base.cache.size >= SY_CACHE_LINE && cache->base.cache.heap->nodes == 1;
}

/* A slab by a number, as two pointers to others are more than a descriptor has room for. */
static inline uint32_t sy__yard_number(const struct sy__yard_cache *cache, const struct sy_page *page)
{
	return sy__page_to_number(cache->base.table, page);
}

static inline struct sy_page *sy__yard_numbered(const struct sy__yard_cache *cache, uint32_t number)
{
	return number ? sy__page_of_number(cache->base.table, number) : NULL;
}

/* Behind a slab on a slot's list. */
static inline struct sy_page *sy__yard_behind(const struct sy__yard_cache *cache, struct sy_page *page)
{
	return sy__yard_numbered(cache, sy__yard_local(sy__node_slab(page))->next);
}

/* yard.c; with threads a cache's entries */
void sy__yard_choose_entries(struct sy__yard_cache *);

/* this_slot.c, with threads: entries. */
extern const struct sy_this_slot sy__yard_this_slot;

/* owned.c: what a slot has. In its local section, or a call. */
void *sy__yard_refill(struct sy__yard_cache *, unsigned slot, struct sy__yard_slot *, int node);
void sy__yard_activate(const struct sy__yard_cache *, struct sy__yard_slot *, struct sy_page *);
void sy__yard_end_carving(const struct sy__yard_cache *, struct sy__yard_slot *);
void sy__yard_append(const struct sy__yard_cache *, struct sy__yard_slot *, struct sy_page *);
struct sy_page *sy__yard_next_owned(const struct sy__yard_cache *, struct sy__yard_slot *);
struct sy_page *sy__yard_next_empty(const struct sy__yard_cache *, struct sy__yard_slot *);
void sy__yard_emptied(const struct sy__yard_cache *, struct sy__yard_slot *, struct sy_page *);
bool sy__yard_fill(const struct sy__yard_cache *, struct sy__yard_slot *, void *list, uint32_t count);
bool sy__yard_put_own(struct sy__yard_cache *, struct sy__yard_slot *, struct sy_page *, void *first, void *last, uint32_t count);

/* remote.c: frees that are not the fast path's; the slot's remote objects go home. Pages that went back. */
void sy__yard_free_slow(struct sy__yard_cache *, unsigned slot, void *object);
uint64_t sy__yard_flush_remote(struct sy__yard_cache *, unsigned slot);

/* slabs.c. Functions that return pages say how many went back to the page allocator. */
bool sy__yard_found_by(struct sy_heap *, struct sy_page *);
struct sy_page *sy__yard_new_slab(struct sy__yard_cache *, unsigned slot, unsigned flags, int node);
uint64_t sy__yard_deactivate(struct sy__yard_cache *, unsigned slot, struct sy__yard_slot *);
uint64_t sy__yard_give_empties(struct sy__yard_cache *, unsigned slot, uint32_t keep);
void sy__yard_release_retained(struct sy_heap *, unsigned slot);
uint64_t sy__yard_scavenge(struct sy_cache *);
void sy__yard_drain(struct sy_heap *, unsigned slot);
uint64_t sy__yard_shrink(struct sy_cache *);
void sy__yard_cache_fini(struct sy_cache *);

/* geometry.c */
bool sy__yard_cache_init(struct sy_cache *);
bool sy__yard_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *);
struct sy_cache *sy__yard_merge(struct sy_heap *, const struct sy_cache *wanted);

/* check.c */
void sy__yard_counts(struct sy_cache *, struct sy_cache_counts *);
const char *sy__yard_check(struct sy_heap *);

/* walk.c */
void sy__yard_walk(struct sy__walk *, struct sy_page *);

#endif
