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
#define SY__YARD_EMPTY 2u        /* empty slabs that a slot always keeps, */
#define SY__YARD_MOST_SPARE 200u /* and most further ones that it keeps because it needs them again and again; */
#define SY__YARD_FEW_SLOTS 16u   /* if threads have had more slots, none is always kept: idle threads would hold too many */

/* What a slot has of a cache, on a cache line of its own. All zero: nothing yet. The dummy's stays so. */
struct sy__yard_slot {
	_Alignas(SY_CACHE_LINE) void *freelist; /* objects of the active slab, to be handed out next */
	struct sy_page *slab;         /* the active slab, or NULL */
	void *remote;                 /* free objects of slabs that others own */
	struct sy__yard_cache *cache; /* NULL until the slot first allocates by a slow call */
	uint32_t first, last;         /* of the owned slabs that wait for their turn, by number; first 0: there are none */
	uint32_t empty;               /* the newest owned slab without an object in use, by number; 0: there is none */
	uint8_t empty_slabs;          /* how many there are of these; */
	uint8_t spare;                /* how many may be, beyond SY__YARD_EMPTY; */
	uint8_t missed;               /* empty slabs given up for want of `spare`, less new slabs taken since */
	uint16_t uncarved;            /* objects at the end of the active slab that are on no list yet */
	uint16_t remote_room;         /* 1 + objects that may still join `remote` before it goes home */
	int16_t node;                 /* of the active slab */
	uint32_t bottom;              /* lower half of the address of the freelist's last object when it was filled; 0: unknown */
	uint32_t seen;                /* freelist and objects out at the last scavenge, see give_active */
#ifdef SY_HARDENED
	struct sy__ring ring;
#endif
};
_Static_assert(sizeof(struct sy__yard_slot) % SY_CACHE_LINE == 0, "slots are found by their distance in bytes");

struct sy__yard_cache {
	struct sy__node_cache base;
	uint16_t remote_limit; /* remote objects that a slot gathers, at least one */
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

/* A slot's state, by its offset from slot 0's, as sy__call_begin returns it; below, by the slot's number. */
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

/* Only the number of objects in use in the word. Relaxed: it only decides whether the slab joins the slot's empty ones. Before an empty
 * slab goes, an exchange of the word acquires what others did to the objects that they freed. */
static inline uint16_t sy__yard_in_use_now(const struct sy__node_slab *slab)
{
	typedef uint16_t __attribute__((may_alias)) part;

	return __atomic_load_n((const part *)(const void *)&slab->word + SY__WORD_IN_USE_PART, __ATOMIC_RELAXED);
}

/* ---- Owners ----------------------------------------------------------------------------------------------------- */

/* A slot's mark: its state's distance from slot 0's, which the fast path has in a register. It also says where links are. So a path that
 * expects links at the start of objects sees every other slab as foreign. */
static inline uint32_t sy__yard_mark_at(ptrdiff_t slot_offset, size_t offset)
{
	return (uint32_t)slot_offset + (offset ? 3u : 1u);
}

/* The slot's offset, as sy__call_begin returns it. */
static inline ptrdiff_t sy__yard_slot_offset(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	return (const char *)own - cache->base.slots;
}

static inline uint32_t sy__yard_mark(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	return sy__yard_mark_at(sy__yard_slot_offset(cache, own), cache->base.offset);
}

/* Relaxed: only the slot itself sets or removes its mark, so it never finds its own mark by mistake. */
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

/* Takes the first object of the slot's freelist or of `remote`, which is not empty. Hardened, NULL if the program has written into the
 * object: the list is lost. */
static inline void *sy__yard_pop(const struct sy__yard_cache *cache, void **list, size_t offset)
{
	void *object = *list, *next = sy__link_take(&cache->base, object, offset);

	if (sy__link_is_wrong(next))
		return *list = sy__node_damaged(&cache->base, object);
	*list = next;
	return object;
}

/* Frees an object into a slab that the slot owns, active or not. True: the slab is empty, as far as its word says; if the word is just
 * changing, that is noticed later. The count is stored and then loaded with the same width, as processors forward a store to a load that is
 * no wider. */
static inline bool sy__yard_push_local(const struct sy__yard_cache *cache, struct sy_page *page, void *object, size_t offset)
{
	struct sy__node_slab *slab = sy__node_slab(page);

	sy__link_set(&cache->base, object, offset, sy__yard_local(slab)->freelist);
	sy__yard_local(slab)->freelist = object;
	++slab->local_objects;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return slab->local_objects == sy__yard_in_use_now(slab);
}

/* Puts an object of another owner's slab on the remote list. False, and nothing done: the list must go home first, the slot is new or the
 * dummy, or the object is already first on the list. It does not read the object, whose cache line may take long to arrive. */
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

/* Slabs link to each other by number: a descriptor has no room for two pointers. */
static inline uint32_t sy__yard_number(const struct sy__yard_cache *cache, const struct sy_page *page)
{
	return sy__page_to_number(cache->base.table, page);
}

static inline struct sy_page *sy__yard_numbered(const struct sy__yard_cache *cache, uint32_t number)
{
	return number ? sy__page_of_number(cache->base.table, number) : NULL;
}

/* The next slab on a slot's list. */
static inline struct sy_page *sy__yard_behind(const struct sy__yard_cache *cache, struct sy_page *page)
{
	return sy__yard_numbered(cache, sy__yard_local(sy__node_slab(page))->next);
}

/* yard.c: chooses a cache's entries, with threads. */
void sy__yard_choose_entries(struct sy__yard_cache *);

/* this_slot.c, with threads: entries. */
extern const struct sy_this_slot sy__yard_this_slot;

/* owned.c: what a slot has. In its local section, or a call. */
void *sy__yard_refill(struct sy__yard_cache *, unsigned slot, struct sy__yard_slot *, int node);
void sy__yard_activate(const struct sy__yard_cache *, struct sy__yard_slot *, struct sy_page *);
void sy__yard_carve(const struct sy__yard_cache *, struct sy__yard_slot *, bool all);
void sy__yard_append(const struct sy__yard_cache *, struct sy__yard_slot *, struct sy_page *);
struct sy_page *sy__yard_next_owned(const struct sy__yard_cache *, struct sy__yard_slot *);
struct sy_page *sy__yard_next_empty(const struct sy__yard_cache *, struct sy__yard_slot *);
void sy__yard_emptied(const struct sy__yard_cache *, struct sy__yard_slot *, struct sy_page *);
bool sy__yard_fill(const struct sy__yard_cache *, struct sy__yard_slot *, void *list, uint32_t count);
bool sy__yard_put_own(struct sy__yard_cache *, struct sy__yard_slot *, struct sy_page *, void *first, void *last, uint32_t count);

/* remote.c: frees that the fast path can't serve; sends the slot's remote objects home, and returns the pages that went back. */
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
