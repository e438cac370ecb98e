/*
 * slabyard: the kernel slab-allocator family as a library.
 *
 * A page allocator (sy_pages) hands out pages of a reserved range; heaps run one policy each on it; caches hold objects of
 * one kind. Nothing here prints, aborts or parses: errors are values, out of memory is NULL.
 *
 * Thread safety: nobody may create or destroy a page allocator, heap or cache while another thread uses it. Calls that take a slot
 * may run concurrently for different slots. One slot belongs to one caller at a time.
 */
#ifndef SLABYARD_H
#define SLABYARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- Limits ----------------------------------------------------------------------------------------------------- */

#ifndef SY_PAGE_SHIFT
#define SY_PAGE_SHIFT 12
#endif
#define SY_PAGE_SIZE ((size_t)1 << SY_PAGE_SHIFT)
#define SY_MAX_ORDER 10 /* largest block: 2^10 pages */
#define SY_ORDERS (SY_MAX_ORDER + 1)
#define SY_MAX_SLOTS 512
#define SY_MAX_NODES 16
#define SY_MAX_TUNABLES 16
#define SY_CACHE_LINE 64
#define SY_ANY_NODE (-1)
#define SY_NAME_BYTES 48 /* of a cache, with the end */

/* ---- Requests ------------------------------------------------------------------------------------------------- */

/* Flags of an allocation, after the GFP flags of Linux that matter to an allocator. */
enum sy_flags {
	SY_ZERO = 1u << 0,        /* the memory returned is all zero (__GFP_ZERO) */
	SY_RECLAIMABLE = 1u << 1, /* counted and grouped as reclaimable (__GFP_RECLAIMABLE) */
	SY_MOVABLE = 1u << 2,     /* environment pages only (__GFP_MOVABLE) */
	SY_HIGHATOMIC = 1u << 3,  /* may use the HighAtomic reserve (__GFP_HIGH and atomic) */
	SY_ACCOUNT = 1u << 4,     /* charged to a memory cgroup: its own kmalloc classes (__GFP_ACCOUNT) */
	SY_DMA = 1u << 5,         /* from zone DMA (__GFP_DMA) */
	SY_DMA32 = 1u << 6,       /* from zone DMA32 or below (__GFP_DMA32) */
	SY_THISNODE = 1u << 7,    /* the requested node or none (__GFP_THISNODE) */
	SY_NO_RECLAIM = 1u << 8,  /* fail rather than ask heaps to give memory back */
	/* Bonwick 1994, section 2.3: whether the caller can wait until memory is there. With neither, caches that can spare memory
	 * give it back, and nobody waits. */
	SY_KM_SLEEP = 1u << 9,    /* without memory, wait until another thread frees some: see "Waiting for memory" */
	SY_KM_NOSLEEP = SY_NO_RECLAIM,
};

/* Flags of a cache, after Linux's SLAB_ flags. */
enum sy_cache_flags {
	SY_CACHE_HWCACHE_ALIGN = 1u << 0,   /* align objects to cache lines (SLAB_HWCACHE_ALIGN) */
	SY_CACHE_TYPESAFE_BY_RCU = 1u << 1, /* a slab's memory outlives a grace period (SLAB_TYPESAFE_BY_RCU) */
	SY_CACHE_RECLAIMABLE = 1u << 2,     /* its pages are of migrate type reclaimable (SLAB_RECLAIM_ACCOUNT) */
	SY_CACHE_ACCOUNT = 1u << 3,         /* SLAB_ACCOUNT */
	SY_CACHE_DMA = 1u << 4,             /* SLAB_CACHE_DMA */
	SY_CACHE_DMA32 = 1u << 5,           /* SLAB_CACHE_DMA32 */
	SY_CACHE_NO_MERGE = 1u << 6,        /* never shared with another cache */
	SY_CACHE_KMALLOC = 1u << 7,         /* a size class, made by the heap itself */
	SY_CACHE_LINK_INSIDE = 1u << 8,     /* with the grace period: a free object may hold a pointer (kmem_cache_args.use_freeptr_offset) */
	SY_CACHE_KFREE = 1u << 9,           /* kfree may free its objects, too, as in Linux since 6.4; where all caches share their
	                                     * pages, it then does not know the cache, whose count of objects keeps them */
};

/* ---- What there is, opaque -------------------------------------------------------------------------------------- */

struct sy_pages;  /* a page allocator */
struct sy_page;   /* one of its pages */
struct sy_policy; /* an allocation algorithm */
struct sy_heap;   /* a policy at work on a page allocator */
struct sy_cache;  /* objects of one kind in a heap */

/* ---- Time ------------------------------------------------------------------------------------------------------- */

/* Replaces the clock that decides when free memory goes back and grace periods end, in nanoseconds. NULL: CLOCK_MONOTONIC again. Not
 * while another thread uses the library. */
void sy_platform_set_clock(uint64_t (*clock)(void));

/* How often the calling thread has found a lock of the library taken, since the thread began. */
uint64_t sy_platform_lock_waits(void);

/* For how many nanoseconds it has slept, or yielded its processor, until a lock was free or another thread had left a call. */
uint64_t sy_platform_lock_wait_time(void);

/* ---- Page allocator ------------------------------------------------------------------------------------------- */

enum sy_migrate { SY_UNMOVABLE, SY_MOVABLE_TYPE, SY_RECLAIMABLE_TYPE, SY_HIGHATOMIC_TYPE, SY_MIGRATE_TYPES };

/* What a page is used for. A descriptor that was never written reads SY_USE_PRETRACE: the page is ungrown, or the environment has
 * used it since before the trace began. The zone's counters tell how many there are of each. */
enum sy_page_use {
	SY_USE_PRETRACE,
	SY_USE_FREE,        /* on a free list of its zone */
	SY_USE_CPU_LIST,    /* free, on a per-CPU list */
	SY_USE_SLAB,        /* in a slab of a heap */
	SY_USE_LARGE,       /* in an allocation that went straight to pages */
	SY_USE_ENVIRONMENT, /* used by something other than heaps */
	SY_USE_METADATA,    /* holds heaps, caches and other bookkeeping */
	SY_USES
};

#define SY_MAX_ZONES 24
#define SY_ZONE_NAME_BYTES 16
#define SY_CPU_LIST_ORDERS 4 /* per-CPU lists hold blocks of orders 0 to 3 */

/* A zone as the caller describes it. Zones are in ascending order of start and don't overlap; gaps are never used. */
struct sy_zone_config {
	char name[SY_ZONE_NAME_BYTES]; /* "DMA", "DMA32", "Normal", "Movable" */
	unsigned node;
	uint64_t start_page; /* page frame number of the first page; a multiple of 2^SY_MAX_ORDER */
	uint64_t pages;      /* spanned */
	uint64_t managed;    /* pages that may be allocated, at most `pages`; 0: all. The rest is in use from the start. */
	uint64_t min, low, high; /* watermarks in free pages; 0: computed as Linux does from managed pages */
};

struct sy_pages_config {
	unsigned zone_count;
	struct sy_zone_config zones[SY_MAX_ZONES];
	unsigned slots;          /* CPU slots with per-CPU lists, 1 to SY_MAX_SLOTS */
	unsigned pageblock_order;/* 1 to SY_MAX_ORDER; Linux on x86-64: 9 */
	unsigned cpu_list_batch; /* pages moved at once between a per-CPU list and its zone; 0: Linux 6.1's rule */
	unsigned cpu_list_high;  /* pages on the per-CPU lists of one zone and slot at most; 0: Linux 6.1's rule */
	bool cpu_lists;          /* false: no per-CPU lists */
	bool huge_pages;         /* ask the source for the machine's large pages */
	void *buffer;            /* all memory is from here, not from the source. There is one zone, which ends with the buffer. */
	size_t buffer_bytes;
	bool commit_growth;      /* memory is made usable when a zone grows; for heaps only, which give memory back before a request is refused */
	size_t addresses;        /* with commit_growth: bytes of addresses to reserve for one zone's pages; 0, or more than they are: for all */
	uint64_t decay_ns;       /* nanoseconds after which free memory goes back to its source; 0: only by sy_pages_release */
};

/* mm_page_alloc_extfrag: an allocation took a block of another migrate type. */
struct sy_fallback_event {
	uint64_t page; /* frame number */
	uint8_t alloc_order, fallback_order;
	uint8_t alloc_migrate, fallback_migrate; /* enum sy_migrate */
	uint8_t change_ownership; /* the whole pageblock now belongs to alloc_migrate */
	uint8_t zone;
};

struct sy_zone_counts {
	char name[SY_ZONE_NAME_BYTES];
	unsigned node;
	uint64_t pages, managed, ungrown; /* ungrown: managed pages never touched yet; free, in blocks of SY_MAX_ORDER */
	uint64_t used[SY_USES];           /* pages by use; with ungrown they add up to pages */
	uint64_t free_blocks[SY_MIGRATE_TYPES][SY_ORDERS]; /* ungrown blocks included, as movable of SY_MAX_ORDER */
	uint64_t pageblocks[SY_MIGRATE_TYPES];
	uint64_t min, low, high;
};

struct sy_pages_counts {
	unsigned zone_count;
	struct sy_zone_counts zones[SY_MAX_ZONES];
	uint64_t fallbacks;       /* fallback events since creation */
	uint64_t fallbacks_changing_ownership;
	uint64_t requests, failures; /* of blocks */
	uint64_t rescued;         /* requests that succeeded only because heaps gave memory back when they were asked */
	uint64_t committed_pages; /* memory taken from the source */
};

/* Creates a page allocator over a reserved range; no memory is touched before it is needed. NULL: impossible
 * configuration (sy_pages_config_error tells) or no address space. */
struct sy_pages *sy_pages_create(const struct sy_pages_config *);

/* NULL, or in one line what is impossible in a configuration and what would be possible. */
const char *sy_pages_config_error(const struct sy_pages_config *);

/* Gives everything back. All heaps on it must have been destroyed. */
void sy_pages_destroy(struct sy_pages *);

/* Takes 2^order pages for the environment, that is, all that is neither slab nor large allocation: page cache, stacks, user
 * memory. node: SY_ANY_NODE or a node. slot: 0 to slots - 1. NULL when there is no memory. Linux: alloc_pages(). */
struct sy_page *sy_pages_alloc(struct sy_pages *, unsigned slot, unsigned order, unsigned flags, int node);

/* Gives back a block that sy_pages_alloc returned. Linux: __free_pages(). */
void sy_pages_free(struct sy_pages *, unsigned slot, struct sy_page *);

/* Puts a pristine zone into the state that a kernel reported: free_blocks as in /proc/pagetypeinfo, pageblocks as at the end of
 * that file. The environment uses all other pages, since before the trace. Pages beyond that many pageblocks are a hole at the
 * zone's end. Only on a page allocator that has served no request. False: the counts don't fit the zone, which stays pristine. */
bool sy_pages_populate(struct sy_pages *, unsigned zone, const uint64_t free_blocks[SY_MIGRATE_TYPES][SY_ORDERS],
                       const uint64_t pageblocks[SY_MIGRATE_TYPES]);

/* Frees 2^order environment pages from before the trace (see sy_pages_populate): the block in use that is nearest to page frame
 * near_page, or two halves where no whole block is left. False: no zone has that many. */
bool sy_pages_free_pretrace(struct sy_pages *, unsigned slot, unsigned order, uint64_t near_page);

/* Empties the per-CPU lists of a slot. Linux: drain_local_pages(). */
void sy_pages_drain(struct sy_pages *, unsigned slot);

/* Returns the memory of whole free blocks of at least min_order to the source; pages returned. The blocks stay free. */
uint64_t sy_pages_release(struct sy_pages *, unsigned min_order);

/* Tells the state of each zone, and what was requested since creation. At any time, from any thread. The figures of one zone are of
 * one moment; different zones may be of different moments. Costs a look at each free list. Linux: /proc/buddyinfo, pagetypeinfo,
 * zoneinfo. */
void sy_pages_count(struct sy_pages *, struct sy_pages_counts *);

/* Has a function called at every fallback event, without a lock that it could need. NULL: none. */
void sy_pages_on_fallback(struct sy_pages *, void (*fn)(void *context, const struct sy_fallback_event *), void *context);

/* Checks all invariants. NULL, or the first one that does not hold. Walks every grown page. */
const char *sy_pages_check(struct sy_pages *);

/* The page frame number of a page: one subtraction. Cannot fail. Linux: page_to_pfn(). */
uint64_t sy_page_number(const struct sy_pages *, const struct sy_page *);

/* ---- Policies ------------------------------------------------------------------------------------------------- */

/* One tunable of a policy. Values are integers: with choices the index of a name, or what the names' bits are together. */
struct sy_tunable {
	const char *name;
	int64_t default_value; /* SY_TUNABLE_AUTO where the policy computes it */
	int64_t min, max;      /* inclusive */
	const char *const *choices; /* NULL, or as many names as sy_tunable_choices says */
	bool combines;         /* the names are "off", one for each bit of max, and "all", and a spec joins them by + */
	const char *meaning;   /* one line, with the unit */
};
#define SY_TUNABLE_AUTO INT64_MIN

/* How many choices a tunable has: max + 1, or what `combines` says; 0: it is a number. */
unsigned sy_tunable_choices(const struct sy_tunable *);

/* Settings of a policy under one name. In a spec it stands where the first tunable would: slub:paper, slub:paper,min_partial=5. */
struct sy_preset {
	const char *name;
	const char *settings; /* tunable=value, separated by commas */
	const char *meaning;  /* one line */
};

/* When a policy gives unused memory back. */
enum sy_giving { SY_GIVES_AT_ONCE, SY_GIVES_WHEN_ASKED, SY_GIVES_NEVER };

struct sy_policy_description {
	const char *name, *summary, *paper;
	const struct sy_tunable *tunables;
	unsigned tunable_count;
	const struct sy_preset *presets;
	unsigned preset_count;
	enum sy_giving gives; /* of heaps whose calls have slots, with the default tunables */
};

/* All policies, NULL-terminated. */
extern const struct sy_policy *const sy_policies[];

/* The policy of this name, or NULL. */
const struct sy_policy *sy_policy_find(const char *name);

/* Describes a policy and its tunables. All texts and tables stay valid. */
void sy_policy_describe(const struct sy_policy *, struct sy_policy_description *);

struct sy_geometry {
	uint32_t size;    /* bytes from one object to the next */
	uint32_t objects; /* in one slab */
	uint32_t order;   /* pages of a slab: 2^order */
	uint32_t wasted;  /* bytes of a slab that no object uses */
	uint32_t sheaf_capacity; /* objects of a sheaf (SLUB of Linux 7.0) */
};

/* ---- Bugs of programs ----------------------------------------------------------------------------------------- */

/* What a heap can find wrong with how it is used (Bonwick 1994, section 6). */
enum sy_bug {
	SY_BUG_DOUBLE_FREE,
	SY_BUG_WRITE_AFTER_FREE,
	SY_BUG_WRITE_PAST_THE_END,
	SY_BUG_WRITE_BEFORE_THE_START,
	SY_BUG_INTERIOR_FREE,
	SY_BUG_FOREIGN_FREE,
	SY_BUG_WRONG_SIZE,
	SY_BUG_WRONG_CACHE,
	SY_BUG_CHANGED_STATE,
	SY_BUG_LEAK, SY_BUG_READ_AFTER_FREE, SY_BUG_READ_PAST_THE_END, SY_BUG_READ_BEFORE_THE_START, /* faults of guarded objects */
	SY_BUGS
};

/* The name of a kind in reports: "double free". It stays valid. */
const char *sy_bug_name(enum sy_bug);

/* Checks of objects, each with the letter that turns it on in a spec (docs/debugging.md). As in Linux's slab_debug=, where it has them. */
enum sy_debug {
	SY_DEBUG_FREES = 1u << 0,     /* F: freed addresses are verified (6.2; SLAB_CONSISTENCY_CHECKS). All others include it */
	SY_DEBUG_RED_ZONES = 1u << 1, /* Z: what is before and behind an object stays as it is (6.4; SLAB_RED_ZONE) */
	SY_DEBUG_POISON = 1u << 2,    /* P: so does a freed object, for a while; what is new is filled (6.3; SLAB_POISON) */
	SY_DEBUG_AUDIT = 1u << 3,     /* U: who allocated and freed, with stacks (6.1; SLAB_STORE_USER) */
	SY_DEBUG_STATE = 1u << 4,     /* C: objects are given back in the state in which they were constructed */
	SY_DEBUG_LEAKS = 1u << 5,     /* L: a program tells at its end what it can no longer reach (6.7) */
	SY_DEBUG_PAGES = 1u << 6,     /* G: each object has pages of its own between pages that can't be touched (6.5, 6.6) */
	SY_DEBUG_ALL = (1u << 6) - 1, /* every check; G is a place, not a check */
};

struct sy__debug_hooks;

/* How a heap is debugged. All zero: not at all. sy_spec_parse fills it in. */
struct sy_debug_config {
	uint32_t checks;     /* enum sy_debug: of all caches together */
	char text[160];      /* which cache has which, see docs/debugging.md */
	size_t quarantine;   /* bytes that freed objects may hold before the oldest is used again */
	size_t guard_least;  /* bytes: smaller objects get no pages of their own */
	bool guard_low;      /* objects stand at the start of their pages, to find writes before the start; else at the end */
	bool json;           /* reports are one line of JSON each */
	bool mixed;          /* what malloc gave may be deleted, and what new gave freed: a library may have a new or delete of its own */
	uint32_t ring, stacks; /* transactions, and different stacks, that are remembered */
	const struct sy__debug_hooks *hooks; /* what the platform has for it; NULL: reports tell kind and address, and end the program */
};

/* ---- Heaps ---------------------------------------------------------------------------------------------------- */

/* The size classes of kmalloc: Linux's, or eight to fourteen to a doubling. Policies with sizes of their own ignore it. */
enum sy_classes { SY_CLASSES_LINUX, SY_CLASSES_FINE };

/* How kmalloc rounds requests. All zero: as Linux does. */
struct sy_sizing {
	enum sy_classes classes;
	uint32_t align;  /* of every object at least: a power of two up to a page; 0: 8 */
	bool small_less; /* except objects smaller than that: they have the largest power of two that they have room for, as C asks */
	bool exact_runs; /* large allocations take only the pages that they need, if the whole block has more than 64 KiB */
	size_t most;     /* larger requests are refused; 0: the largest block's bytes. In calls with slots it holds only for requests that
	                  * go straight to pages */
};

/* The kernel that a workload comes from, where its version or build makes a difference to a policy. All zero: nothing is known. */
struct sy_kernel {
	uint16_t version;    /* of Linux: 256 times the major number, and the minor one */
	bool merges_classes; /* its caches share slabs with kmalloc's: since 6.2, where copies to user space are not checked */
};

struct sy_heap_config {
	const struct sy_policy *policy;
	bool threads;              /* for calls without slots (sy_alloc, sy_malloc, …) from any thread; `slots` is not used */
	bool concurrent;           /* slots are processors that run at once, and reach each other's state as the platform defines */
	unsigned cpus;             /* 0: one for each slot; else slot S belongs to CPU S modulo cpus, so a CPU may have several slots */
	unsigned slots, nodes;     /* 0: one slot; nodes: never fewer than the page allocator has */
	const uint8_t *slot_nodes; /* memory node of each slot (of threads, modulo SY_MAX_SLOTS); NULL: slots spread evenly over the nodes */
	int64_t tunables[SY_MAX_TUNABLES]; /* in the order of the policy's; start from sy_heap_defaults */
	struct sy_sizing sizing;   /* how kmalloc rounds */
	uint64_t grace_ns;         /* length of an RCU grace period in nanoseconds; 0: until the next tick */
	struct sy_debug_config debug;
	struct sy_kernel kernel;
};

/* Fills a configuration with the policy's defaults, one slot, one node. */
void sy_heap_defaults(const struct sy_policy *, struct sy_heap_config *);

/* What is wrong, in one line for the user. */
struct sy_fault {
	char text[400];
};

/* Fills a configuration from a spec: a policy's name, and tunables if any, as in slub:cpu_partial=8,min_partial=2. The others get
 * their defaults. False: see fault. Needs a C library. */
bool sy_spec_parse(struct sy_heap_config *, const char *spec, struct sy_fault *);

/* Counters that the core keeps on slow paths only. */
struct sy_heap_counters {
	uint64_t slab_pages, large_pages, metadata_pages; /* held now */
	uint64_t held_peak;      /* most slab_pages + large_pages at any time */
	uint64_t slab_pages_peak;
	uint64_t taken_pages;    /* for slabs and large allocations, ever */
	uint64_t page_requests;  /* asked of the page allocator */
	uint64_t page_failures;  /* of these, refused */
	uint64_t asked, asked_urgently; /* times the page allocator asked for memory; of these, before a request would fail */
	uint64_t reclaimed_pages, reclaimed_urgently; /* given back when it asked; of these, when it asked urgently */
	/* Words: any slot adds to them atomically, and small machines have atomic operations for words only. */
	size_t slow_allocs;      /* allocations that left the fast path; not counted in heaps of threads */
	size_t slow_frees;       /* frees that left the fast path; the same */
	size_t large_live_bytes; /* bytes asked for in large allocations that live now; heaps of threads don't count them here */
	size_t waiting;          /* requests that wait for memory now (SY_KM_SLEEP) */
	uint64_t deferred;       /* objects or slabs that wait for a grace period */
};

/* NULL when out of memory, or when a tunable is out of its range. */
struct sy_heap *sy_heap_create(struct sy_pages *, const struct sy_heap_config *);

/*
 * Reports, on standard error, the objects of a heap with the check for leaks (L) that no root leads to: no word in the program's data,
 * in a thread's stack or registers, or in another object that is reached. Reports come by call stack, the largest first. With age_ns
 * also objects that are older, as possible leaks (Bonwick 1994, section 6.7). Returns how many are lost; 0 without the check, or
 * /proc/self/maps (a line then says so). Stops all threads meanwhile, by signal SIGRTMAX - 1. Not from inside a constructor or a
 * signal handler. Programs with the check on do this at exit by themselves.
 */
size_t sy_findleaks(struct sy_heap *, uint64_t age_ns);

/* Destroys the heap, its caches and every object in them. False: refused, and nothing changed. A heap of threads refuses it inside a
 * constructor, a destructor or a visitor of its walk. */
bool sy_heap_destroy(struct sy_heap *);

/* A heap's policy, when it gives unused memory back (by its tunables too), and how its general allocation rounds. */
const struct sy_policy *sy_heap_policy(const struct sy_heap *);
enum sy_giving sy_heap_gives(const struct sy_heap *);
const struct sy_sizing *sy_heap_sizing(const struct sy_heap *);

/* General allocation. NULL: no memory, or larger than the largest block. A size of 0 gives a unique smallest object. */
void *sy_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node);

/* Frees what sy_kmalloc returned, on any slot; NULL does nothing. */
void sy_kfree(struct sy_heap *heap, unsigned slot, void *object);

/* Bytes that may be written to what sy_kmalloc returned (Linux: ksize). */
size_t sy_usable_size(struct sy_heap *, const void *object);

/* To be called periodically: frees what waited for a grace period that has ended, and does the policy's periodic work. Two loads when
 * there is nothing to do. A heap of threads does so by itself, now and then when it is used. */
void sy_heap_tick(struct sy_heap *heap);

/* Gives back every slab that holds no object, those in per-CPU state included. Returns the pages given back. */
uint64_t sy_heap_shrink(struct sy_heap *);

/* Frees what waited for a grace period that has ended, shrinks the heap, and gives all free memory back to the operating system at
 * once. Returns the bytes given back. */
uint64_t sy_heap_trim(struct sy_heap *);

/* Checks all invariants of the heap and its page accounting. NULL, or the first one that does not hold. */
const char *sy_heap_check(struct sy_heap *);

/*
 * Writes the figures of heaps and of their caches as Prometheus's text format 0.0.4, under the names that `slabyard inspect --format
 * prometheus` has for them. Labels are `heap`, its place in the array, `spec` and `cache`. Returns the bytes of all the text, without
 * the 0 at its end; no more than `room` are written, so room 0 asks how many they are. Each metric of caches or of memory in use stops the
 * heaps' other threads once. A heap that the caller is in a call of is left out.
 */
size_t sy_heaps_metrics(struct sy_heap *const *heaps, size_t count, char *text, size_t room);

/* ---- Caches --------------------------------------------------------------------------------------------------- */

/*
 * Where a cache's slabs get their memory instead of the page allocator: device memory, memory that survives power cuts, …
 * (Bonwick 1994, section 7.1). Called with no lock held; neither may call into the heap. Bytes are a power of two of pages.
 */
struct sy_page_supplier {
	void *(*get_pages)(void *context, size_t bytes, unsigned flags); /* aligned to a page; enum sy_flags; NULL: there is none */
	void (*free_pages)(void *context, void *memory, size_t bytes);
	void *context;
};

struct sy_cache_config {
	const char *name;    /* copied, at most SY_NAME_BYTES - 1 bytes of it */
	size_t size, align;  /* bytes; align 0: the machine's word, else a power of two up to a page */
	unsigned flags;      /* enum sy_cache_flags */
	void (*constructor)(void *object, size_t size); /* or NULL. Neither may call into a heap. */
	void (*destructor)(void *object, size_t size);  /* or NULL */
	uint32_t debug;      /* enum sy_debug: checks of this cache, besides those that the heap has */
	const struct sy_page_supplier *supplier; /* NULL: the page allocator. A supplier outlives the cache. Its objects are freed by
	                                          * sy_cache_free only. */
	uint16_t sheaf_capacity; /* objects that a sheaf should hold at least, where the policy has sheaves (Linux since 6.18:
	                          * kmem_cache_args.sheaf_capacity); 0: the policy decides; or SY_NO_SHEAVES */
};
#define SY_NO_SHEAVES UINT16_MAX /* the cache has none, as those that Linux boots with */

struct sy_cache_counts {
	uint64_t slabs, partial_slabs, full_slabs, empty_slabs; /* partial, full and empty add up to slabs */
	uint64_t pages;           /* in slabs */
	uint64_t objects;         /* room in all slabs */
	uint64_t objects_in_use;  /* held by the client */
	uint64_t objects_cached;  /* free, kept in per-CPU state */
	uint64_t allocations;     /* since creation; 0: the policy keeps no count */
	uint64_t idle_slabs;      /* empty slabs on a list of their own; /proc/slabinfo counts all other slabs as active */
	uint64_t objects_shared;  /* cached objects in the arrays that the CPUs of a node share (<sharedavail>) */
	/* Fixed at creation; 0: the policy has none. A slab may be smaller than this where memory is short. */
	uint32_t slab_objects, slab_pages; /* of a slab; 0: caches share their pages */
	uint32_t limit, batchcount, shared; /* of per-CPU queues, in the sense of slabinfo's tunables */
	uint32_t min_partial;    /* partial slabs that a node keeps though they are empty */
	uint32_t cpu_partial;    /* free objects that a CPU keeps in partial slabs, each of which is taken to be half free */
	uint32_t sheaf_capacity; /* objects of a CPU's array */
};

/* A description of a cache. A merged cache has the name of its first creation. */
struct sy_cache_description {
	const char *name;     /* there as long as the cache is */
	uint32_t object_size; /* bytes that the client may use */
	uint32_t size;        /* bytes from one object to the next */
	uint32_t align;       /* bytes */
	uint32_t flags;       /* enum sy_cache_flags */
	uint32_t users;       /* creations that share it by merging */
};

/* NULL: no memory or impossible (size 0, size beyond the largest block, align no power of two or beyond a page, a supplier
 * that the policy does not take). May return an existing cache that the policy merges it with. Bonwick 1994, section 2.3;
 * Linux: kmem_cache_create(). */
struct sy_cache *sy_cache_create(struct sy_heap *, const struct sy_cache_config *);

/* Destroys a cache without objects. False: objects are in use, and nothing changed; *alive, if not NULL, is their number. A cache that
 * several creations share loses one of them, whether or not objects are in use. */
bool sy_cache_destroy(struct sy_cache *, uint64_t *alive);

/* Allocates an object, constructed if the cache has a constructor. node: SY_ANY_NODE or a memory node. NULL: no memory. Costs two
 * jumps and what the policy costs. Linux: kmem_cache_alloc_node(). */
void *sy_cache_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node);

/* Frees an object, not NULL, to the cache that it was allocated from, on any slot. If the cache has a constructor, the object must be
 * in constructed state. Costs what the policy costs. Linux: kmem_cache_free(). */
void sy_cache_free(struct sy_cache *cache, unsigned slot, void *object);

/* Gives back every slab of the cache that holds no object, those in per-CPU state included. Returns the pages given back. Linux:
 * kmem_cache_shrink(). */
uint64_t sy_cache_shrink(struct sy_cache *);

/* Describes a cache. */
void sy_cache_describe(const struct sy_cache *, struct sy_cache_description *);

/* Counts a cache's slabs and objects. Linux: a line of /proc/slabinfo. */
void sy_cache_count(struct sy_cache *, struct sy_cache_counts *);

/* ---- Heaps of threads ----------------------------------------------------------------------------------------- */

/* A heap has fewer bytes of address space than this, because its pages have 32-bit numbers. */
#define SY_HEAP_ADDRESSES (sizeof(void *) > 4 ? (uint64_t)1 << 44 : (uint64_t)1 << 30)

/* All zero, or NULL in place of them, suits most programs. */
struct sy_heap_options {
	size_t reserve;     /* bytes of address space, less than SY_HEAP_ADDRESSES. They cost nothing. 0: twice the machine's memory, or
	                     * less if that is refused, but no less than the limit */
	size_t limit;       /* bytes that the heap may hold at most, its own bookkeeping included; 0, or more than `reserve`: all that is
	                     * reserved */
	void *buffer;       /* all memory for objects is from here, not from the operating system. The buffer outlives the heap. Threads'
	                     * parts of caches (a page of each thread, in 2 MiB of addresses) and yard's table of pages (8 bytes a page) are
	                     * still the operating system's. */
	size_t buffer_bytes;
	bool huge_pages;    /* take and give back memory in large pages; false: only take them, for growth beyond 32 MiB */
	bool keep;          /* free memory goes back to the operating system only by sy_heap_trim */
	uint64_t decay_ns;  /* nanoseconds after which free memory goes back by itself; 0: a tenth of a second */
	uint64_t grace_ns;  /* length of an RCU grace period in nanoseconds; 0: until the next tick; UINT64_MAX: for ever */
	uint64_t wait_ns;   /* nanoseconds that a request with SY_KM_SLEEP waits at most; 0: a minute; UINT64_MAX: until it is served */
	struct sy_sizing sizing; /* how general allocation rounds */
};

/*
 * Opens a heap that every thread of the program may use, by the calls without slots. It has a page allocator of its own. spec: as
 * for sy_spec_parse, "slub" or "slub:cpu_partial=8"; NULL: the default policy, sy_policies[0]. NULL is returned where the request
 * is impossible or there is no memory. *error (unless error is NULL) is then a line for the user, which the next refused
 * sy_heap_open overwrites.
 *
 * Thread safety: any thread may call any function without a slot on such a heap and its caches at any time, but nobody may destroy
 * what others still use. sy_cache_destroy, sy_cache_shrink, sy_cache_count, sy_heap_shrink, sy_heap_trim and sy_heap_check
 * delay all other threads' calls while they run. Threads may come and go, and fork. The functions that take a slot are not for
 * such heaps.
 */
struct sy_heap *sy_heap_open(const char *spec, const struct sy_heap_options *, const char **error);

/* Destroys the heap, its caches and every object in them, and gives all its memory back. NULL does nothing. A call from inside a
 * constructor, a destructor or a visitor of its walk does nothing either. */
void sy_heap_close(struct sy_heap *);

/* ---- Calls without slots -------------------------------------------------------------------------------------- */

/*
 * On a heap of threads (sy_heap_open, or sy_heap_config.threads) any thread may call these at any time. On any other heap they are
 * calls on slot 0. Any thread may free an object, whichever thread allocated it. NULL: no memory; freeing NULL does nothing. Costs
 * by policy: docs/cost.md. A hot pair under yard takes a few instructions on the thread's own slot, without a lock or an atomic
 * read-modify-write. Not from signal handlers. In constructors and destructors these calls return NULL, or leave the object alone.
 */
void *sy_alloc(struct sy_cache *, unsigned flags);
void sy_free(struct sy_cache *, void *object);
void *sy_malloc(struct sy_heap *, size_t size, unsigned flags);
void sy_mfree(struct sy_heap *, void *object);

/*
 * Waiting for memory. With SY_KM_SLEEP, sy_alloc, sy_malloc and sy_alloc_bulk on a heap of sy_heap_open wait when the heap has no
 * memory, until another thread frees what serves them. They look at least every hundredth of a second, so no free is missed, and a free
 * costs no more than without waiters. They return NULL
 *
 *   after sy_heap_options.wait_ns, as nobody can tell threads that all wait for each other from those that free later;
 *   at once in a process with a single thread, if the C library knows that (glibc 2.32), and if no heap could ever serve the
 *   request (more than the largest block, or than sizing.most); in constructors and destructors; and on heaps whose calls have
 *   slots, which one thread may drive alone.
 *
 * A thread that waits must hold nothing that the others need in order to free. What a policy keeps for the thread that freed it
 * serves others only when its slab is empty, or when that thread ends.
 */

/* Many objects in one call. Returns how many there was memory for: objects[0] and so on. The free ignores NULLs. */
unsigned sy_alloc_bulk(struct sy_cache *, unsigned flags, unsigned count, void **objects);
void sy_free_bulk(struct sy_cache *, unsigned count, void **objects);

/* ---- Looking inside a heap ------------------------------------------------------------------------------------ */

/* The state of a part of a slab. A free part is in exactly one of the states FREE, SLOT and NODE. */
enum sy_part_state {
	SY_PART_USED,        /* held by the client; or freed and waiting for a grace period, where the slab does not show that */
	SY_PART_FREE,        /* free, on its slab's own list */
	SY_PART_SLOT,        /* free, on a list of a CPU slot */
	SY_PART_NODE,        /* free, on a list of objects of a memory node */
	SY_PART_WAITING,     /* free after a grace period, with all of its slab */
	SY_PART_BOOKKEEPING, /* the policy's own */
	SY_PART_COLOUR,      /* left out at the start, so that the objects of different slabs fall on different cache lines */
	SY_PART_UNUSED,      /* room that no object uses; in a large allocation, what was not asked for (its client may use it) */
	SY_PART_STATES
};

/* The owner of a list. */
enum sy_owner { SY_OWNER_NONE, SY_OWNER_SLOT, SY_OWNER_NODE };

/* A slab or large allocation, as a walk sees it. */
struct sy_slab {
	const struct sy_page *page; /* the first one's descriptor; NULL: its memory is a supplier's */
	char *address;
	size_t bytes;          /* of all its pages */
	unsigned node;         /* memory node; 0 of a supplier's */
	bool large;            /* a large allocation */
	const struct sy_cache *cache; /* NULL: a large allocation, or the policy's slabs hold objects of any cache */
	const char *list;      /* the list that it is on, in the policy's words ("partial"); never NULL */
	enum sy_owner owner_kind; /* of that list */
	unsigned owner;        /* slot or node */
	uint64_t place;        /* on that list, from 0; 0 where the order means nothing */
};

/* A piece of a slab: an object, a block, or what lies between them. */
struct sy_part {
	size_t offset, bytes;  /* from the slab's start */
	enum sy_part_state state;
	bool is_object;        /* one object or block, used or free; false: no object, or used memory with an unknown number of objects */
	const char *list;      /* of a free part: the list that it is on, in the policy's words; NULL: none, or not free */
	unsigned owner;        /* SY_PART_SLOT: which slot's; SY_PART_NODE: which node's */
	uint64_t place;        /* on that list: 0 is handed out first; in a tree, how far below the root */
	unsigned lists;        /* how often it is on lists; above 1 the heap is corrupt (freed twice, or written to after its free) */
};

struct sy_visitor {
	/* A slab; its parts follow. False ends the walk. */
	bool (*slab)(void *context, const struct sy_slab *);
	/* Its next part. They come in order of offset, and cover the slab without a gap. False ends the walk. */
	bool (*part)(void *context, const struct sy_slab *, const struct sy_part *);
	void *context;
	/* Each cache in order of creation, those without slabs too, before all slabs. False ends the walk; NULL: caches are not
	 * shown. */
	bool (*cache)(void *context, const struct sy_cache *);
};

/* Shows a visitor all slabs and large allocations of a heap and their parts, in order of address. Slabs of suppliers come last, in
 * the order of their caches' lists. False: the visitor ended the walk. It takes no memory, but 3 KiB of stack. Nobody else may use
 * the heap meanwhile; a heap of threads ensures that itself. The visitor may read all of the heap except the links of free
 * objects, and must not change anything. The walk of a corrupt heap ends too. It costs a look at all pages, and for each slab a look
 * at its cache's lists. Linux: what slabinfo, crash and drgn show. */
bool sy_heap_walk(struct sy_heap *, const struct sy_visitor *);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
