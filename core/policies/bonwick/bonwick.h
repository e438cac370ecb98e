/* What the files of Bonwick's policy share. The theory and the locks are in bonwick.c. */
#ifndef SY_BONWICK_H
#define SY_BONWICK_H

#include "../../kmalloc.h"
#include "../../backend/slot_areas.h"
#include "../../list.h"
#include "../../page_interface.h"

enum sy__bonwick_tunable { BONWICK_WORKING_SET_SECONDS, BONWICK_COLOUR, BONWICK_PERCPU, BONWICK_MAGAZINE };

#define SY__BONWICK_SLAB_BYTES 32u /* that slab data takes of a page with small objects, as in section 4.3 */
#define SY__BONWICK_SMALL_BELOW (SY_PAGE_SIZE / 8) /* bytes; from there on objects are large */
#define SY__BONWICK_WAITING UINT16_MAX /* references to a slab that waits for a grace period */
#define SY__BONWICK_CLASSES 37
#define SY__BONWICK_LARGEST 9216u /* bytes; larger requests go straight to pages */
#define SY__BONWICK_LEAST_BUCKETS 16u
#define SY__BONWICK_KINDS 9 /* of magazines */

struct sy__bonwick_cache;
struct sy__walk;

/* Paper: kmem_slab. Of small objects it is the end of the slab's page. */
struct sy__bonwick_slab {
	union {
		struct sy_list link; /* in sy__bonwick_cache.slabs */
		struct sy_deferred deferred; /* while it waits for a grace period */
	};
	union {
		void *free; /* first free buffer, or of large objects its bufctl; NULL: none */
		struct sy__bonwick_cache *cache; /* while it waits for a grace period */
	};
	uint16_t refs;      /* buffers that left the slab: paper's reference count */
	uint16_t colour;    /* where the first buffer starts, in units of the alignment */
	uint32_t completed; /* when refs last became 0; sy__bonwick_time() */
};
_Static_assert(sizeof(struct sy__bonwick_slab) <= SY__BONWICK_SLAB_BYTES, "slab data fits where small slabs have it");

struct sy__bonwick_large_slab {
	struct sy__bonwick_slab slab;
	char *memory; /* of its pages */
};

/* Paper: kmem_bufctl, of a large object. */
struct sy__bonwick_bufctl {
	struct sy__bonwick_bufctl *next; /* in the slab's freelist; in a hash chain while the buffer is out */
	char *buffer;
	struct sy__bonwick_slab *slab;
};

/* In the descriptor of a slab's first page: all that leads from an address to cache and slab. */
struct sy__bonwick_page {
	struct sy__bonwick_cache *cache;
	struct sy__bonwick_slab *slab;
};
SY_ASSERT_SLAB_STATE(struct sy__bonwick_page, cache);

/* Buffers of large objects that are out. See hash.c. */
struct sy__bonwick_hash {
	struct sy__bonwick_bufctl **buckets; /* chains; the first ones below, or metadata */
	uint32_t size;  /* buckets: a power of two */
	uint32_t shift; /* bits of an address that tell nothing */
	struct sy__bonwick_bufctl *least[SY__BONWICK_LEAST_BUCKETS];
};

/* What percpu.c keeps of each CPU slot: lists linked through the ends of the buffers. On a cache line of its own, touched by the
 * slot alone. */
struct sy__bonwick_lists {
	_Alignas(SY_CACHE_LINE) void *main; /* where the slot allocates and frees */
	void *aux; /* empty or full: main's reserve */
	uint32_t main_count, aux_count;
	uint64_t allocations; /* that main served */
};

/* Pointers to free buffers; in a slot or in the depot. */
struct sy__bonwick_magazine {
	struct sy__bonwick_magazine *next; /* in the depot */
	uint32_t kind;   /* its capacity, and the cache that it comes from */
	uint32_t rounds; /* unless it is loaded: pointers that it has */
	void *objects[];
};

/* What magazine.c keeps of each CPU slot; on a cache line of its own, touched by the slot alone. */
struct sy__bonwick_loaded {
	_Alignas(SY_CACHE_LINE) struct sy__bonwick_magazine *loaded, *previous; /* NULL: none yet */
	uint32_t rounds, capacity; /* of loaded */
	uint64_t allocations;      /* that loaded served */
};

/* Full or empty magazines of a depot. */
struct sy__bonwick_magazines {
	struct sy__bonwick_magazine *first;
	uint64_t count, least; /* least: the minimum since the working set began */
};

struct sy__bonwick_depot {
	sy__lock_t lock;
	uint8_t kind;        /* of new magazines; written under the lock and read without, as any kind will do */
	uint8_t failures;    /* times in a row that there was no memory for a new one; like skip, any thread may set it */
	uint16_t skip;       /* frees that do not try again */
	uint32_t contention; /* how often slots found the lock taken since the working set began */
	uint32_t since;      /* when that was; sy__bonwick_time() */
	struct sy__bonwick_magazines full, empty;
};

/* A CPU layer stands between clients and the slabs of a cache. It has the cache's entries, and what becomes of the buffers that
 * slots keep. In a layer that keeps none, slot_bytes is 0 and all functions from init on are NULL. Functions named `shared` deal
 * with buffers that belong to no slot (the depot), or are NULL. */
struct sy__bonwick_layer {
	size_t slot_bytes; /* of per-slot state */
	bool linked;       /* slots keep buffers in linked lists, so large buffers need a link too */
	void *(*alloc)(struct sy_cache *, unsigned slot, unsigned flags, int node);
	void (*free)(struct sy_cache *, unsigned slot, void *object);
	void *(*alloc_this_slot)(struct sy_cache *, unsigned flags); /* of a heap of threads, as the next */
	void (*free_this_slot)(struct sy_cache *, void *object);
	void (*init)(struct sy__bonwick_cache *); /* for a new cache; NULL: zero will do */
	void (*close_slot)(void *slot); /* makes a slot serve nothing, ever; NULL: zero will do */
	void (*drain)(struct sy__bonwick_cache *, unsigned slot); /* gives back all that the slot keeps */
	void (*reap)(struct sy__bonwick_cache *, uint32_t least_age); /* gives back what was unused for so long; 0: all */
	void (*counts)(const struct sy__bonwick_cache *, unsigned slot, struct sy_cache_counts *); /* adds what the slot has */
	void (*shared_counts)(struct sy__bonwick_cache *, struct sy_cache_counts *);
	const char *(*check)(const struct sy__bonwick_cache *, unsigned slot);
	const char *(*check_shared)(const struct sy__bonwick_cache *);
	void (*walk)(struct sy__walk *, const struct sy__bonwick_cache *, unsigned slot);
	void (*walk_shared)(struct sy__walk *, const struct sy__bonwick_cache *);
};

struct sy__bonwick_cache {
	struct sy_cache cache;
	bool large;         /* buffers have bufctls of their own, found by hash */
	uint8_t order;      /* of a slab */
	uint32_t objects;   /* in a slab */
	uint32_t linkage;   /* bytes from a free buffer's start to its link, at its end */
	uint32_t colours;   /* a slab has a colour from 0 to colours - 1 */
	const struct sy__bonwick_layer *layer; /* in front of the slabs */
	uint32_t percpu;    /* objects in each of a slot's two lists at most */
	uint32_t page_flags;/* enum sy_flags for its pages */
	void *slots;        /* the layer's state of slot 0; NULL: it has none. Other slots' follow */
	size_t stride;      /* bytes from one slot's to the next; in heaps of threads by core/backend/slot_areas.h, with the dummy's in front */

	_Alignas(SY_CACHE_LINE) struct sy__bonwick_depot depot; /* of magazines, where there are such */

	/* Protects what follows, and all of the slabs but what their clients hold. */
	_Alignas(SY_CACHE_LINE) sy__lock_t lock;
	uint32_t next_colour;
	struct sy_list *freelist; /* link of the first slab with a free buffer; the list itself: there is none */
	struct sy_list slabs;     /* empty (no free buffer), partial, complete (all free), in this order */
	uint64_t divider;         /* of the size, see sy__divider; never changes */
	uint64_t slab_count, complete; /* in slabs; of these, complete */
	uint64_t waiting;         /* slabs in their grace period */
	uint64_t allocated;       /* buffers that left the slabs */
	uint64_t allocations;     /* that no slot served */
	struct sy__bonwick_hash hash;
	uint64_t seen; /* scratch of check */
};
_Static_assert(sizeof(struct sy__bonwick_cache) <= 512, "the metadata allocator rounds to a power of two");

struct sy__bonwick_heap {
	struct sy_heap heap;
	struct sy_cache *large_slabs, *bufctls; /* caches of these structures */
	struct sy_cache *magazines[SY__BONWICK_KINDS]; /* caches of them; NULL: magazine=off */
	bool layered; /* these are made: caches from now on have a layer */
	struct sy_cache *general[SY__BONWICK_CLASSES];
	uint8_t class_of[SY__BONWICK_LARGEST / 8 + 1]; /* by ceil(size / 8) */
};

static inline struct sy__bonwick_cache *sy__bonwick_cache(struct sy_cache *cache)
{
	return (struct sy__bonwick_cache *)(void *)cache;
}

static inline struct sy__bonwick_heap *sy__bonwick_heap(struct sy_heap *heap)
{
	return (struct sy__bonwick_heap *)(void *)heap;
}

/* What the cache's layer keeps of a slot. */
static inline void *sy__bonwick_slot(const struct sy__bonwick_cache *cache, unsigned slot)
{
	return (char *)cache->slots + slot * cache->stride;
}

/* Whether threads without a slot share this one. No layer keeps anything there: several threads may free on it at once, when grace
 * periods end or slabs do. */
static inline bool sy__bonwick_is_shared(const struct sy__bonwick_cache *cache, unsigned slot)
{
	return !slot && cache->stride == SY_SLOT_STRIDE;
}

static inline struct sy__bonwick_page *sy__bonwick_page(struct sy_page *page)
{
	return SY_SLAB_STATE(struct sy__bonwick_page, page);
}

static inline struct sy__bonwick_slab *sy__bonwick_linked(struct sy_list *link)
{
	return sy__entry(link, struct sy__bonwick_slab, link);
}

/* The slab data in the page of a small object. */
static inline struct sy__bonwick_slab *sy__bonwick_slab_at(void *address)
{
	size_t offset = (uintptr_t)address & (SY_PAGE_SIZE - 1);

	return (struct sy__bonwick_slab *)(void *)((char *)address + (SY_PAGE_SIZE - SY__BONWICK_SLAB_BYTES - offset));
}

/* The link of a buffer that is free or in a slot's list. */
static inline void **sy__bonwick_next(const struct sy__bonwick_cache *cache, void *buffer)
{
	return (void **)(void *)((char *)buffer + cache->linkage);
}

/* Nanoseconds in units of 2^20, about a millisecond. */
static inline uint32_t sy__bonwick_units(uint64_t nanoseconds)
{
	return (uint32_t)(nanoseconds >> 20);
}

/* In these units it wraps around after 52 days: a slab that old may then pass for a new one until it ages again. */
static inline uint32_t sy__bonwick_time(void)
{
	return sy__bonwick_units(sy__now());
}

/* bonwick.c. Between layers and slabs: take up to `most` buffers as a chain, put a chain; take one (NULL: none is free), put one or
 * an array. */
void *sy__bonwick_take_list(struct sy__bonwick_cache *, uint32_t most, uint32_t *count);
void sy__bonwick_put_list(struct sy__bonwick_cache *, void *buffers);
void *sy__bonwick_take_shared(struct sy__bonwick_cache *, unsigned slot);
void sy__bonwick_put_shared(struct sy__bonwick_cache *, void *buffer);
void sy__bonwick_put_many(struct sy__bonwick_cache *, void *const *buffers, uint32_t count);

/* bonwick.c. An allocation that left the fast path: by `take`, growing the cache until that finds a buffer. */
SY__COLD void *sy__bonwick_alloc_slow(struct sy__bonwick_cache *, unsigned slot, unsigned flags, int node,
                                      void *(*take)(struct sy__bonwick_cache *, unsigned slot));

/* The layers of percpu.c and magazine.c; and of bonwick.c, where every slot takes and puts under the cache's lock. */
extern const struct sy__bonwick_layer sy__bonwick_unlayered, sy__bonwick_percpu, sy__bonwick_magazine_layer;

/* magazine.c: rounds that a magazine of this kind has room for, and that this one has; none: 0. */
uint32_t sy__bonwick_rounds(unsigned kind);
uint32_t sy__bonwick_capacity(const struct sy__bonwick_magazine *);

/* magazine_check.c: functions of sy__bonwick_magazine_layer. */
void sy__bonwick_magazine_counts(const struct sy__bonwick_cache *, unsigned slot, struct sy_cache_counts *);
void sy__bonwick_depot_counts(struct sy__bonwick_cache *, struct sy_cache_counts *);
const char *sy__bonwick_magazine_check(const struct sy__bonwick_cache *, unsigned slot);
const char *sy__bonwick_depot_check(const struct sy__bonwick_cache *);
void sy__bonwick_magazine_walk(struct sy__walk *, const struct sy__bonwick_cache *, unsigned slot);
void sy__bonwick_depot_walk(struct sy__walk *, const struct sy__bonwick_cache *);

/* hash.c. With the cache's lock held but for the last two. */
void sy__bonwick_hash_init(struct sy__bonwick_hash *, uint32_t object_size);
void sy__bonwick_hash_insert(struct sy__bonwick_hash *, struct sy__bonwick_bufctl *);
struct sy__bonwick_bufctl *sy__bonwick_hash_find(const struct sy__bonwick_hash *, const void *buffer);
struct sy__bonwick_bufctl *sy__bonwick_hash_remove(struct sy__bonwick_hash *, const void *buffer);
void sy__bonwick_hash_scale(struct sy__bonwick_cache *);
void sy__bonwick_hash_least(struct sy__bonwick_cache *);

/* slabs.c. Without locks. Functions that return pages say how many went back to the page allocator. */
char *sy__bonwick_memory(const struct sy__bonwick_cache *, struct sy__bonwick_slab *);
char *sy__bonwick_first(const struct sy__bonwick_cache *, struct sy__bonwick_slab *);
bool sy__bonwick_grow(struct sy__bonwick_cache *, unsigned slot, unsigned flags, int node);
uint64_t sy__bonwick_shrink(struct sy_cache *);
uint64_t sy__bonwick_reap(struct sy_cache *);
void sy__bonwick_drain_slots(struct sy__bonwick_cache *);
void sy__bonwick_drain(struct sy_heap *, unsigned slot);
void sy__bonwick_grace_passed(struct sy_heap *, struct sy_deferred *);
void sy__bonwick_cache_fini(struct sy_cache *);

/* geometry.c */
void sy__bonwick_give_slots(struct sy__bonwick_cache *);
const struct sy__bonwick_layer *sy__bonwick_layer_of(struct sy_heap *); /* what caches that are made now get */
bool sy__bonwick_heap_init(struct sy_heap *);
bool sy__bonwick_cache_init(struct sy_cache *);
bool sy__bonwick_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *);

/* check.c */
void sy__bonwick_counts(struct sy_cache *, struct sy_cache_counts *);
const char *sy__bonwick_check(struct sy_heap *);
bool sy__bonwick_is_buffer(const struct sy__bonwick_cache *, char *address);
bool sy__bonwick_slot_counts(const struct sy__bonwick_cache *, unsigned slot);

/* walk.c */
void sy__bonwick_walk(struct sy__walk *, struct sy_page *);
void sy__bonwick_walk_supplied(struct sy__walk *, struct sy_cache *);

#endif
