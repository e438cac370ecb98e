/*
 * The laboratory's interface for slabyard-inspect: what is in the heaps of another program.
 *
 * The other program's memory stands in this process at the same addresses, brought by the caller. A heap is the same as there, except for
 * its pointers to code, which sy_inspect_adopt sets to this program's. Then slabyard.h's walk works on it. All types stay opaque; results
 * are plain structures of this header.
 *
 * The order of calls: find anchors, list their heaps, want and bring memory, adopt slots, adopt heaps, ask. The calling process has one
 * thread that asks, and no heap of its own. Nothing here takes a lock, as a stopped thread may hold it. Pointers into the other program's
 * memory may lead nowhere, as it may be damaged; the caller handles the fault.
 */
#ifndef SY_LAB_INSPECT_H
#define SY_LAB_INSPECT_H

#include <slabyard/slabyard.h>

/* ---- Anchors: where the library's data lead to its heaps --------------------------------------------------------- */

struct sy__anchor;

enum sy_inspect_anchor {
	SY_INSPECT_NO_ANCHOR,
	SY_INSPECT_UNUSED,      /* the library is there, and has made no heap */
	SY_INSPECT_OTHER_BUILD, /* of whose structures nothing is known */
	SY_INSPECT_ANCHOR
};

#define SY_INSPECT_BUILD_BYTES 60u

extern const size_t sy_inspect_anchor_bytes, sy_inspect_anchor_align;

/* This program's build of the library. */
const char *sy_inspect_build(void);

/* Says what a copy of sy_inspect_anchor_bytes from this address in the other program is. For OTHER_BUILD it fills in which build, and for
 * that and ANCHOR the place of malloc's sampling rate, if there is one. */
enum sy_inspect_anchor sy_inspect_anchor(const void *copy, uintptr_t address, char build[SY_INSPECT_BUILD_BYTES], const void **sample_rate);

/* The heaps of threads of an anchor: the first one (of NULL), and the next; NULL: that was the last. */
struct sy_heap *sy_inspect_next_heap(const struct sy__anchor *, const struct sy_heap *);

/* Number and bytes of malloc's objects that are mappings of their own. False: that library is not malloc's. */
bool sy_inspect_mappings(const struct sy__anchor *, size_t *objects, size_t *bytes);

/* The mapping of malloc's that has its header at the start of this page. False: there is no header. */
struct sy_inspect_mapping {
	const char *start;
	size_t bytes;
	const void *object;
};
bool sy_inspect_mapping_at(const void *page, struct sy_inspect_mapping *);

/* ---- Memory and code ---------------------------------------------------------------------------------------------- */

/* Takes over which slots had owners; is_there: whether the other program has memory there. Returns how many threads were inside calls. */
unsigned sy_inspect_adopt_slots(const struct sy__anchor *, bool (*is_there)(const void *, size_t));

/* Calls `want` for all memory of a heap that the functions below read; not all: for its bookkeeping alone. */
void sy_inspect_want(const struct sy_heap *, bool all, void (*want)(const void *from, size_t bytes));

/* Makes a heap usable here. False: its policy is none that the anchors know. */
bool sy_inspect_adopt(struct sy_heap *, const struct sy__anchor *const *anchors, unsigned count);

/* ---- A heap ------------------------------------------------------------------------------------------------------- */

struct sy_inspect_heap {
	const char *policy; /* its own, whether or not there are checks */
	const struct sy_tunable *tunables; /* of the policy */
	const int64_t *values;             /* theirs */
	unsigned tunable_count;
	const struct sy_heap_counters *counters;
	char checks[8]; /* letters of the checks for the whole heap */
	uint64_t free_backed_bytes; /* of free pages that have memory */
	/* Of debugging: */
	bool records;   /* there are records */
	bool stacks;    /* and stacks in them */
	size_t records_count;
	bool log;       /* there is a log; its transactions have the numbers `oldest` to `youngest`, which is below if it is empty */
	uint64_t oldest, youngest;
	uint32_t one_in;           /* of a heap of samples: allocations that each object stands for; else 0 */
	size_t missed;             /* more that were due, but not sampled */
	uint32_t stacks_lost;
};
void sy_inspect_heap(const struct sy_heap *, struct sy_inspect_heap *);

/* A tunable's value in words, and the bytes that takes at most. */
#define SY_INSPECT_VALUE_BYTES 104u
void sy_inspect_value(char *text, const struct sy_tunable *, int64_t value);

const char *sy_inspect_cache_name(const struct sy_cache *);
uint32_t sy_inspect_cache_size(const struct sy_cache *, uint32_t *object_size); /* bytes from object to object, and those of the client's */

/* ---- Pages -------------------------------------------------------------------------------------------------------- */

enum sy_inspect_place {
	SY_INSPECT_OUTSIDE,
	SY_INSPECT_FREE_PAGE,
	SY_INSPECT_UNUSED_PAGE, /* which was never used */
	SY_INSPECT_BOOKKEEPING,
	SY_INSPECT_SLAB,
	SY_INSPECT_LARGE
};
enum sy_inspect_place sy_inspect_place_of(const struct sy_heap *, const void *address);

/* As sy_heap_walk, but of the slab alone that an address is in, and with the places on lists. */
void sy_inspect_walk_slab(struct sy_heap *, const void *address, const struct sy_visitor *);

/* From here on sy_heap_walk leaves out the places of slabs on their lists, which take long to count. */
void sy_inspect_skip_places(void);

/* Whether this block of a large allocation is its first one, which alone knows its size. */
bool sy_inspect_is_first_block(const struct sy_slab *);

/* ---- What debugging recorded ------------------------------------------------------------------------------------------ */

enum sy_inspect_state { SY_INSPECT_LIVE, SY_INSPECT_QUARANTINED, SY_INSPECT_GONE };

struct sy_inspect_call { /* an allocation or a free */
	uint64_t thread, time; /* time: nanoseconds of that program's clock */
	uint32_t stack;        /* number for sy_inspect_stack; 0: unknown */
};

struct sy_inspect_record {
	const char *object;
	size_t size;
	enum sy_inspect_state state;
	const struct sy_cache *cache; /* NULL: general allocation */
	bool guarded; /* in pages of its own */
	struct sy_inspect_call allocated, freed;
};

/* Calls `see` for every record. */
void sy_inspect_records(const struct sy_heap *, void (*see)(void *context, const struct sy_inspect_record *), void *context);

/* The record for the memory at an address, which may be any part of a slab, an object or not. False: there is none. */
bool sy_inspect_record_of(const struct sy_heap *, const void *address, struct sy_inspect_record *);
bool sy_inspect_record_of_part(const struct sy_heap *, const struct sy_slab *, const struct sy_part *, struct sy_inspect_record *);

struct sy_inspect_transaction {
	bool free;
	const char *object;
	size_t size;
	const struct sy_cache *cache;
	struct sy_inspect_call call;
};
void sy_inspect_transaction(const struct sy_heap *, uint64_t number, struct sy_inspect_transaction *);

/* The addresses of a stack, innermost call first. Returns how many; 0: the stack is unknown. */
#define SY_INSPECT_FRAMES 16u
unsigned sy_inspect_stack(const struct sy_heap *, uint32_t number, uintptr_t frames[SY_INSPECT_FRAMES]);

/* ---- Names of code ------------------------------------------------------------------------------------------------ */

/* Looks up many addresses at once; locate: in which file an address is, and where there, as addr2line takes it; false: in none. */
void sy_inspect_look_up(const uintptr_t *addresses, size_t count, bool (*locate)(uintptr_t address, const char **module, uintptr_t *offset));

/* "function (file.c:34)", or NULL. Valid until the next call. */
const char *sy_inspect_name_of(uintptr_t address);

/* Whether the address is in the library itself, as far as is known. */
bool sy_inspect_is_own(uintptr_t address);

#endif
