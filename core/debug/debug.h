/*
 * Debugging: a layer over any policy that names bugs of the program (Bonwick 1994, section 6).
 *
 * The layer is a policy of its own (struct sy_policy), a copy of the one below whose functions for objects are the layer's. A heap or
 * cache with debugging has that copy as its policy. Without debugging nothing here runs, and no call has one instruction more.
 *
 * An object. The layer asks the policy below for more than the client did, and places the client's object inside:
 *
 *     base            object               object + size            base + room
 *      | front zone     | what the client has | back zone ........ [state] |
 *
 * Both zones hold a pattern (6.4); the back zone begins with the very byte behind what was asked for. `state` is a copy of a
 * constructed object, where its cache has a constructor and the check is on.
 *
 * Records. Every object has a record apart from the heap's memory, in a tree by address (record.c). So any address can be judged,
 * whatever the program wrote (6.2). A record has three states:
 *
 *     live          the client has the object
 *     quarantined   freed, destructed and filled with 0xdeadbeef; the policy below still counts it as in use
 *     gone          given back to the policy below; the record stays until the memory is used again, or until there are
 *                   SY__DEBUG_GONE younger ones
 *
 * An object that leaves the quarantine, oldest first, must still hold the pattern (6.3). So must all in it when the heap is checked,
 * trimmed or destroyed. Policies write links into free objects, so the pattern can't be verified after that: the quarantine is what stands for
 * the time between a free and the next allocation of the same memory. With the poison check off nothing is quarantined.
 *
 * Constructed state. Objects are constructed by the layer when they are allocated and destructed when they are freed, as Bonwick's are
 * where freed memory is filled.
 *
 * Guarded objects (6.6) do not come from the policy: each has pages of its own between two pages that cannot be touched
 * (guard.c). They are addresses outside of the heap.
 *
 * Audit (6.1): a ring of transactions, and a table of the stacks that occur in them (log.c).
 *
 * Memory, all of it the heap's metadata: 128 bytes for each record, and 4 MiB for the ring and the stacks together with audit.
 *
 * Lock: sy__debug.lock, level 2 of the lock order, protects records, quarantine, ring and stacks. A report is made without it.
 */
#ifndef SY_DEBUG_H
#define SY_DEBUG_H

#include "../types.h"

#define SY__DEBUG_FREED 0xdeadbeefu
#define SY__DEBUG_FRESH 0xbaddcafeu
#define SY__DEBUG_ZONE 0xfeedfaceu
#define SY__DEBUG_QUARANTINE ((size_t)16 << 20) /* usual settings of struct sy_debug_config */
#define SY__DEBUG_RING 16384u
#define SY__DEBUG_STACKS 15360u
#define SY__DEBUG_FRONT ((size_t)16) /* bytes of the zone before an object, at least */
#define SY__DEBUG_BACK ((size_t)8)   /* and of the one behind it */
#define SY__DEBUG_GONE 16384u /* records of objects that are given back, at most */
#define SY__DEBUG_FRAMES 16u  /* of a stack, at most */
#define SY__DEBUG_DEPTH 100u /* of the tree of records: more than twice what a million have */
#define SY__DEBUG_CLASSES 14u /* of general allocation, as far as a pattern may name them */
#define SY__DEBUG_CONTENTS 32u /* bytes of a freed object in the log */

/* Where an object came from, for frees by another interface. */
enum sy__debug_interface { SY__BY_ANY, SY__BY_CACHE, SY__BY_KMALLOC, SY__BY_NEW, SY__BY_NEW_ARRAY };

/* An interface with the alignment that the caller named, a power of two below 2^32; 1: none. */
#define SY__BY_ALIGNED(interface, align) ((unsigned)(interface) | (unsigned)__builtin_ctzl(align) << 3)
#define SY__BY_INTERFACE(by) ((by) & 7u)
#define SY__BY_ALIGN(by) ((size_t)1 << ((by) >> 3))

/* ENDING: freed, and not filled yet; others may meet it so. */
enum sy__record_state { SY__RECORD_LIVE, SY__RECORD_ENDING, SY__RECORD_QUARANTINED, SY__RECORD_GONE };

struct sy__record {
	struct sy__record *left, *right; /* in the tree */
	struct sy__record *next;         /* in the quarantine, or in the list of those gone; NULL at the end */
	char *base, *object;
	size_t size, room; /* bytes: asked for; from base to the end of what the layer has */
	struct sy_cache *cache; /* NULL: general allocation */
	uint64_t allocated, freed; /* time */
	uint64_t allocator, freer; /* threads */
	uint32_t allocation_stack, free_stack; /* numbers of stacks; 0: unknown */
	uint32_t priority; /* in the tree */
	uint16_t checks;   /* enum sy_debug */
	uint8_t state;     /* enum sy__record_state */
	uint8_t interface; /* SY__BY_ALIGNED of enum sy__debug_interface */
	uint8_t guarded;   /* in pages of its own; `base` is the start of its mapping */
	uint8_t adopted;   /* its memory is the caller's, see sy__debug_adopt */
};
_Static_assert(sizeof(struct sy__record) <= 128, "two lines; the metadata allocator rounds to a power of two");

/* One transaction of the log. */
struct sy__transaction {
	const char *object;
	size_t size;
	struct sy_cache *cache;
	uint64_t time, thread;
	uint32_t stack;
	bool free;
	unsigned char contents[SY__DEBUG_CONTENTS]; /* of a free: the object's first bytes */
};

struct sy__stack {
	uint32_t depth; /* 0: a free place in the table */
	uint32_t hash;
	uintptr_t frames[SY__DEBUG_FRAMES];
};

/* What was found. Records and transactions are copies. */
struct sy__finding {
	enum sy_bug kind;
	const void *address;   /* freed, or the first byte damaged */
	bool known;            /* `record` is the object that the address is in or next to */
	struct sy__record record;
	uint32_t expected, found; /* the word at `address` rounded down to four bytes: of writes and states */
	const struct sy_cache *other; /* wrong cache: the one that it was freed to */
	size_t size;                  /* wrong size: the one that was given */
	uint8_t interface;            /* of the free */
	bool possible;                /* a leak that is told for its age alone */
};

struct sy__debug_hooks {
	unsigned (*stack)(uintptr_t *frames, unsigned most); /* return addresses of the caller, innermost first; how many */
	uint64_t (*thread)(void);
	void (*report)(struct sy_heap *, const struct sy__finding *); /* the process may go on behind it */
	uint32_t (*checks_of)(const char *text, const char *name); /* the checks of a cache by sy_debug_config.text */
	void (*attached)(struct sy_heap *); /* a heap without checks has got its first cache with any; NULL: nobody wants to know */
};

struct sy__debug {
	struct sy_policy policy; /* the layer's */
	const struct sy_policy *below;
	struct sy_debug_config config;
	const struct sy__debug_hooks *hooks;
	sy__lock_t lock;
	struct sy__record *root;
	size_t records; /* in the tree */
	struct sy__record *quarantine, **quarantine_end;
	size_t quarantined; /* bytes */
	struct sy__record *gone, **gone_end;
	unsigned gone_count;
	struct sy__transaction *ring; /* NULL: no audit, or no memory for it */
	uint64_t transactions;        /* ever */
	struct sy__stack *stacks;
	uint32_t stacks_used, stacks_lost;
	uint32_t kmalloc_checks[SY__DEBUG_CLASSES]; /* of general allocation, by Linux's class; see layer.c */
	bool knows_all; /* every object of the heap has a record */
	/* Of a heap of samples (malloc/sample.c): how many allocations each of its objects stands for, and how many more were due but not
	 * sampled, as there were too many. 0: each object stands for itself. */
	uint32_t one_in;
	size_t missed;
};

static inline struct sy_debug_config sy__debug_usual(const struct sy__debug_hooks *hooks)
{
	return (struct sy_debug_config){ .quarantine = SY__DEBUG_QUARANTINE, .ring = SY__DEBUG_RING, .stacks = SY__DEBUG_STACKS, .hooks = hooks };
}

/* ---- layer.c, objects.c, verify.c ------------------------------------------------------------------------------------------------------ */

/* Puts the layer over a heap that is being created, or over one that gets its first cache with checks. False: no memory. */
bool sy__debug_attach(struct sy_heap *, const struct sy_debug_config *, bool whole);

/* Before a cache with these checks is made; 0: without. False: no memory. */
bool sy__debug_ready(struct sy_heap *, uint32_t checks);

/* The heap's own policy, whether or not the layer is over it. */
static inline const struct sy_policy *sy__debug_below(const struct sy_heap *heap)
{
	return heap->debug ? heap->debug->below : heap->policy;
}

/* Bytes of an object that its client may use: of each object of a cache, and of any object. */
uint32_t sy__debug_object_size(const struct sy_cache *);
size_t sy__debug_usable_size(struct sy_heap *, const void *object);

/* Before the heap ends. */
void sy__debug_detach(struct sy_heap *);

/* The checks of a new cache: what its creator and the heap's configuration ask for. */
uint32_t sy__debug_checks(const struct sy_heap *, const struct sy_cache_config *, const char *name);

/* Makes a cache with checks of what a client wants, before the policy below sees it. */
void sy__debug_cache(struct sy_cache *, uint32_t checks);

/* Whether an object with this address has a record, which guarded ones have outside of the heap's pages. Records of those that are gone
 * do not count: their memory may be another object's, which has none. */
bool sy__debug_knows(struct sy_heap *, const void *object);

/* Gives the policy below what is quarantined, of one cache or (NULL) of all. Outside of calls. */
void sy__debug_flush(struct sy_heap *, const struct sy_cache *);

/* Looks at every zone and at every quarantined object. NULL, or what is wrong. */
const char *sy__debug_verify(struct sy_heap *);

/* The same; false: nothing is wrong. And which object a fault at an address is about; false: none. Neither waits for the lock. */
bool sy__debug_find_damage(struct sy_heap *, struct sy__finding *);
bool sy__debug_find_fault(struct sy_heap *, const void *address, bool read, struct sy__finding *);

/*
 * For malloc, outside of calls.
 *
 * sy__debug_aligned   allocates with an alignment, a power of two.
 * sy__debug_adopt     makes an object of `bytes` bytes of the caller's memory, at least sy__debug_adopted_bytes. It is freed as any
 *                     other; the memory then goes to sy_heap.on_foreign_free. NULL: no memory for a record.
 * sy__debug_guarded   makes an object in guarded pages, of a size that the heap refuses. NULL: it is to have none, or there is no memory.
 * sy__debug_tag       tells the interface that an object comes from, if it is not malloc.
 * sy__debug_expect    before a free: reports if it comes from another interface or has another size (0: unknown).
 */
void *sy__debug_aligned(struct sy_heap *, size_t align, size_t size, unsigned flags);
size_t sy__debug_adopted_bytes(size_t align, size_t size);
void *sy__debug_adopt(struct sy_heap *, void *memory, size_t bytes, size_t align, size_t size, unsigned flags);
void *sy__debug_guarded(struct sy_heap *, size_t align, size_t size, unsigned flags);
void sy__debug_tag(struct sy_heap *, void *object, unsigned by);
bool sy__debug_expect(struct sy_heap *, const void *object, size_t size, unsigned by);

/* ---- record.c: the lock is held ----------------------------------------------------------------------------------- */

void sy__record_insert(struct sy__debug *, struct sy__record *);
void sy__record_remove(struct sy__debug *, struct sy__record *);

/* The record with the highest base that is not above an address. */
struct sy__record *sy__record_below(const struct sy__debug *, const void *address);

/* All records in order of address: the first call with a walk of zeroes returns the first one, further calls the next; NULL: that was
 * the last. The tree may not change meanwhile. */
struct sy__record_walk {
	struct sy__record *above[SY__DEBUG_DEPTH], *last;
	unsigned depth;
};
struct sy__record *sy__record_next(const struct sy__debug *, struct sy__record_walk *);

/* NULL, or which invariant does not hold. */
const char *sy__record_check(const struct sy__debug *);

/* ---- log.c: the lock is held -------------------------------------------------------------------------------------- */

uint32_t sy__stack_number(struct sy__debug *, const uintptr_t *frames, unsigned depth);
void sy__transaction_add(struct sy__debug *, const struct sy__record *, bool free);

/* The transaction before number `before` on memory that overlaps the record's object; its number, or 0: there is none in the ring.
 * Numbers begin with 1. */
uint64_t sy__transaction_before(const struct sy__debug *, const struct sy__record *, uint64_t before);

/* ---- pattern.c ---------------------------------------------------------------------------------------------------- */

/* Fills memory with a word. Its bytes stand as they would at addresses that are multiples of four. */
void sy__pattern_fill(char *from, const char *to, uint32_t word);

/* Whether a byte is what the pattern has at an address. */
bool sy__pattern_has(const char *at, char byte, uint32_t word);

/* The first byte that does not hold the pattern; NULL: all do. */
const char *sy__pattern_broken(const char *from, const char *to, uint32_t word);

/* ---- guard.c ------------------------------------------------------------------------------------------------------ */

/* Memory for an object of `size` bytes between pages that can't be touched, flush with the end of its last page as far as the
 * alignment allows (low: with the start of its first). Fills in base, object, size, room. False: no memory. */
bool sy__guard_create(struct sy__record *, size_t align, size_t size, bool low);
void sy__guard_close(const struct sy__record *);   /* from now on a touch is a fault */
void sy__guard_release(const struct sy__record *); /* the addresses go back */

#endif
