/* What the files of the SLUB policy share. The theory and the locks are in slub.c. */
#ifndef SY_SLUB_H
#define SY_SLUB_H

#include "../../kmalloc.h"
#include "../node.h"

enum sy__slub_tunable {
	SLUB_MIN_ORDER,
	SLUB_MAX_ORDER,
	SLUB_MIN_OBJECTS,
	SLUB_CPU_PARTIAL,
	SLUB_MIN_PARTIAL,
	SLUB_MERGE,
	SLUB_CLASSES,
	SLUB_HARDEN,
	SLUB_LINUX,
	SLUB_TINY,
	SLUB_USERCOPY,
	SLUB_SHEAF_CAPACITY,
	SLUB_BARN_FULL
};

/* Values of SLUB_LINUX, in order. */
enum sy__slub_version { SLUB_6_1, SLUB_6_12, SLUB_6_18, SLUB_7_0, SLUB_VERSIONS };

/* Whose rules hold in a heap. */
struct sy__slub_rules {
	uint8_t version; /* enum sy__slub_version */
	bool tiny, checks_copies;
};

/* What one CPU slot has of a cache; on a cache line of its own, touched by the slot alone. All zero: nothing yet. */
struct sy__slub_slot {
	_Alignas(SY_CACHE_LINE) void *freelist; /* objects of the active slab, to be handed out next */
	char *start;             /* of the active slab */
	uint32_t bytes;          /* of the active slab; 0: there is none */
	int16_t node;            /* of the active slab */
	bool pushes;             /* fast calls may free into other slots' slabs; never set in the dummy */
	bool ends_marked;        /* the freelist may end with SY__SLUB_END rightly */
	struct sy_page *slab;    /* the active slab, or NULL */
	struct sy_page *partial; /* frozen slabs with free objects, newest first */
	uint32_t partial_slabs;  /* in partial */
#ifdef SY_HARDENED
	struct sy__ring ring;
#endif
};
_Static_assert(sizeof(struct sy__slub_slot) % SY_CACHE_LINE == 0, "slots are found by their distance in bytes");

/* Free objects of one slab, linked. */
struct sy__slub_chain {
	void *first, *last; /* NULL: there are none */
	uint32_t count;
};

/* Free objects of a cache, see sheaves.c. An object of kmalloc, with as large a header as Linux's struct slab_sheaf. */
struct sy__slub_sheaf {
	struct sy__slub_cache *cache;
	struct sy_list link; /* in a barn; under its lock */
	uint32_t size;       /* objects in it */
	void *objects[];
};

#define SY__SLUB_MOST_IN_SHEAF 1020 /* objects: with 8 bytes for each, a sheaf is in kmalloc's largest class at most */

/* A slot's sheaves; NULL: it has none such. main: NULL while the classes of kmalloc are made. */
struct sy__slub_slot_sheaves {
	struct sy__slub_sheaf *main, *spare;
};

/* Sheaves of a memory node. */
struct sy__slub_barn {
	sy__lock_t lock;
	struct sy_list full, empty; /* the last one that came first */
	uint32_t fulls, empties;    /* how many */
};

struct sy__slub_sheaves {
	uint32_t capacity;  /* objects in a full one */
	uint32_t most_full; /* in a barn */
	struct sy__slub_slot_sheaves *slots;
	struct sy__slub_barn *barns;
	size_t bytes; /* of the block that all this is in */
};

struct sy__slub_cache {
	struct sy__node_cache base;
	uint32_t slot_limit; /* slabs on a slot's partial list at most; 0: slots have none */
	bool by_node;        /* slots have no slabs at all, see bulk.c */
	struct sy__slub_sheaves *sheaves; /* NULL: it has none */
	uint64_t own_objects; /* of a class of kmalloc: in use as sheaves */
};

struct sy__slub_heap {
	struct sy_heap heap;
	struct sy__kmalloc kmalloc;
	struct sy__slub_rules rules;
	struct sy_policy sheafed; /* of caches with sheaves: as the heap's, but for what allocates and frees an object */
	bool classes_end;         /* the heap ends, and what is in kmalloc's slabs goes with their pages */
};

_Static_assert(sizeof(struct sy__slub_heap) <= 4096, "a heap is one page: replays count it");

static inline struct sy__slub_heap *sy__slub_heap(struct sy_heap *heap)
{
	return (struct sy__slub_heap *)(void *)heap;
}

static inline struct sy__slub_rules sy__slub_rules(const struct sy_heap *heap)
{
	return ((const struct sy__slub_heap *)(const void *)heap)->rules;
}

static inline struct sy__slub_cache *sy__slub_cache(struct sy_cache *cache)
{
	return (struct sy__slub_cache *)(void *)cache;
}

static inline struct sy__slub_cache *sy__slub_cache_of(struct sy_page *page)
{
	return sy__slub_cache(sy__node_slab(page)->cache);
}

static inline struct sy__slub_slot *sy__slub_slot(const struct sy__slub_cache *cache, unsigned slot)
{
	return (struct sy__slub_slot *)(void *)(cache->base.slots + slot * cache->base.stride);
}

/* Behind the last object of a list in a slab's word, unless a slot has put a list of its own there; and in a slot that has taken a long
 * one, whose end was not looked for. */
#define SY__SLUB_END (SY__IS_HARDENED ? NULL : SY__LIST_END)

static inline bool sy__slub_is_end(const void *object)
{
	return (uintptr_t)object <= (uintptr_t)SY__SLUB_END;
}

/* The slot gives up its active slab. */
static inline void sy__slub_forget(struct sy__slub_slot *own)
{
	own->slab = NULL;
	own->start = NULL;
	own->bytes = 0;
	own->freelist = NULL;
}

/* The slot gets an active slab; its freelist is empty at first. */
static inline void sy__slub_activate(const struct sy__slub_cache *cache, struct sy__slub_slot *own, struct sy_page *page)
{
	own->slab = page;
	own->start = sy__page_address(cache->base.cache.heap, page);
	own->bytes = (uint32_t)(SY_PAGE_SIZE << sy__page_order(page));
	own->node = (int16_t)sy__page_node(page);
	own->freelist = NULL;
	own->ends_marked = false;
}

/* Whether an object is in the slot's active slab. */
static inline bool sy__slub_is_active(const struct sy__slub_slot *own, const void *object)
{
	return (uintptr_t)object - (uintptr_t)own->start < own->bytes;
}

/* The next slab on a slot's partial list. */
static inline struct sy_page **sy__slub_next(struct sy_page *page)
{
	return (struct sy_page **)(void *)sy__node_slab(page)->own;
}

/* Puts a frozen slab on the slot's partial list. In its local section. */
static inline void sy__slub_hold(struct sy__slub_slot *own, struct sy_page *page)
{
	*sy__slub_next(page) = own->partial;
	own->partial = page;
	own->partial_slabs++;
}

/* slub.c: without a look at sheaves. */
void *sy__slub_alloc_of_slabs(struct sy__slub_cache *, unsigned slot, unsigned flags, int node);
void sy__slub_free_to_slab(struct sy__slub_cache *, unsigned slot, void *object);

/* sheaves.c: of a cache that has sheaves. The first two: NULL or false, slabs must serve. */
void *sy__slub_sheaf_alloc(struct sy__slub_cache *, unsigned slot, unsigned flags, int node);
bool sy__slub_sheaf_free(struct sy__slub_cache *, unsigned slot, void *object);
void sy__slub_sheaves_policy(struct sy_heap *);
bool sy__slub_sheaves_init(struct sy__slub_cache *, uint32_t capacity);
bool sy__slub_sheaves_begin(struct sy__slub_cache *); /* gives each slot its main sheaf; false: no memory */
bool sy__slub_classes_begin(struct sy_heap *);        /* the same of kmalloc's classes, now that all are there */
void sy__slub_sheaves_drain(struct sy__slub_cache *, unsigned slot);
void sy__slub_sheaves_shrink(struct sy__slub_cache *); /* empties the barns */
struct sy__slub_cache *sy__slub_sheaves_class(const struct sy__slub_cache *); /* of kmalloc, where its sheaves are; NULL: not yet */
void sy__slub_sheaves_fini(struct sy__slub_cache *);
uint64_t sy__slub_sheaves_objects(const struct sy__slub_cache *);
const char *sy__slub_sheaves_check(const struct sy__slub_cache *);
void sy__slub_sheaves_mark(struct sy__walk *, const struct sy__slub_cache *);

/* slabs.c. Functions that return pages say how many went back to the page allocator. */
struct sy_page *sy__slub_new_slab(struct sy__slub_cache *, unsigned slot, unsigned flags, int node, void **first);
uint64_t sy__slub_deactivate(struct sy__slub_cache *, unsigned slot, struct sy__slub_slot *);
void sy__slub_put_cpu_partial(struct sy__slub_cache *, unsigned slot, struct sy_page *);
void sy__slub_drain(struct sy_heap *, unsigned slot);
uint64_t sy__slub_shrink(struct sy_cache *);
uint64_t sy__slub_scavenge(struct sy_cache *); /* hardened */
void sy__slub_cache_fini(struct sy_cache *);

/* bulk.c: allocates objects as they lie on nodes' lists, then in new slabs. How many it got. */
uint32_t sy__slub_take(struct sy__slub_cache *, unsigned slot, unsigned flags, int node, void **objects, uint32_t count);

/* version.c: what depends on Linux's version and build. */
extern const char *const sy__slub_version_names[];
struct sy__slub_rules sy__slub_rules_by(const int64_t *tunables, struct sy_kernel);
bool sy__slub_is_recorded(const struct sy_heap *); /* whether its rules are those of the workload's kernel, 6.18 or later */
const char *sy__slub_refuses(const struct sy_heap_config *);
bool sy__slub_idle(const struct sy_heap_config *, unsigned tunable);
bool sy__slub_may_waste_half(struct sy__slub_rules); /* whether a slab may waste a half; if not, a quarter */
bool sy__slub_merges_classes(struct sy__slub_rules); /* whether kmalloc's classes serve caches */
bool sy__slub_serves_by_node(struct sy__slub_rules); /* sy__slub_cache.by_node */
unsigned sy__slub_most_order(struct sy__slub_rules); /* of slabs, where an object fits in them */
unsigned sy__slub_ignored_flags(struct sy__slub_rules); /* enum sy_cache_flags */
unsigned sy__slub_kmalloc_types(struct sy__slub_rules); /* as sy__kmalloc_create takes them */
bool sy__slub_has_sheaves(struct sy__slub_rules); /* whether any cache has */
/* Objects of a sheaf of a cache whose objects have so many bytes, and that asks for so many; 0: it has none. */
uint32_t sy__slub_capacity_by(const int64_t *tunables, struct sy__slub_rules, size_t size, uint32_t asked);

/* geometry.c */
bool sy__slub_cache_init(struct sy_cache *);
uint32_t sy__slub_slot_objects(const struct sy__slub_cache *); /* free ones that a slot may keep in partial slabs, each half full */
bool sy__slub_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *);
struct sy_cache *sy__slub_merge(struct sy_heap *, const struct sy_cache *wanted);

/* check.c */
void sy__slub_counts(struct sy_cache *, struct sy_cache_counts *);
const char *sy__slub_check(struct sy_heap *);

/* walk.c */
void sy__slub_walk(struct sy__walk *, struct sy_page *);

#endif
