/* What the exact pass collects (exact.c) and what is written of it (exact_write.c, procfmt.c). */
#ifndef REPLAY_EXACT_H
#define REPLAY_EXACT_H

#include "library/lab/replay.h"
#include "replay.h"

/* Who asks: a cache, a size class, a call site. */
struct tally {
	uint64_t requests; /* recorded */
	uint64_t live, live_bytes, peak_bytes;
	uint64_t operations, slow, locks; /* where locks are counted: what left the fast path, and locks taken */
};

/* What is known of a live object, by handle. */
struct note {
	uint32_t size;  /* bytes asked for */
	uint32_t given; /* bytes that it occupies, of a slab or in pages */
	uint32_t call_site; /* NO_SITE: older than the trace */
	uint32_t row;
	bool large; /* in pages of its own */
	uint8_t node; /* of its memory */
};
#define NO_SITE UINT32_MAX

/* The state at one moment. */
struct point {
	uint64_t time; /* ns */
	uint64_t slab_pages, large_pages, held_pages; /* held: slab and large pages */
	uint64_t metadata_pages, requested_bytes, fragmentation_events;
	uint64_t taken_pages; /* for slabs and large allocations, since the first event */
	uint64_t free_blocks[SY_ORDERS];
};

struct snapshot {
	uint32_t number;
	struct point at;
};

/* A sum of products beyond 64 bits: high * 2^32 + low. */
struct wide {
	uint64_t high, low;
};

/* Where objects were, seen from the CPU that asked or freed. */
struct locality {
	uint64_t local_allocations, remote_allocations; /* of the node of that CPU; of another one */
	uint64_t local_frees, remote_frees;
	uint64_t node_requests_met, node_requests_missed; /* requests for a node: of that node; of another one */
};

/* How the heap gave memory back when the page allocator asked for it. */
struct pressure {
	struct sy_heap_counters before; /* when the first event came */
	uint64_t rescued_before;
	uint64_t event, time;  /* of the first asking */
	uint64_t wait_events, wait_ns; /* from there to the first page that was given back */
	bool asked, given;
};

/* A size class of the heap's. */
struct class {
	struct sy_cache *cache;
	struct sy_cache_description is;
};

/* The row of the kmallocs with that usable size and of that kind of memory. */
struct row_of_class {
	uint32_t usable, kind, row;
};
#define CLASSES_AT_HAND 256u

/* Pages by row: before the first event, now, and when most was held. See exact_growth.c. */
struct growth {
	uint32_t *owners; /* the row whose slabs a row's objects are in */
	int64_t *start, *now, *peak;
	struct page_change *changes; /* since the first event */
	size_t count, room, at_peak; /* at_peak: how many there were then */
	uint64_t slab_pages, reclaimed_pages; /* of the heap, when it was last looked at */
	bool incomplete;
};
#define NO_ROW UINT32_MAX

struct exact {
	struct driver *driver; /* populated; its trace is run to the end */
	bool scalars_alone; /* nothing is counted that only curves, caches or call sites tell */
	bool one_node;      /* of memory */
	const struct sy_heap_counters *counters; /* the heap's; zeros without one */
	const uint64_t *locks; /* that its policy has taken; NULL: they are not counted */
	uint64_t other_locks;  /* of these, taken before the first event, and by our looking at caches */
	uint8_t slot_nodes[UINT8_MAX + 1];

	/* Events. */
	uint64_t requests, frees, failures;
	uint64_t oversized_failures; /* of these: larger than any block of pages */
	uint64_t implied_allocations, implied_frees, unknown_frees, unknown_page_frees;
	uint64_t environment_requests, environment_frees, environment_failures, environment_pages;
	uint64_t implied_page_allocations, implied_page_frees, older_page_frees, older_page_frees_missed;
	uint64_t older_objects;
	uint64_t operations; /* allocations and frees of objects that were served */
	bool failed, short_of_memory;
	uint64_t first_failed; /* number of the event */
	uint64_t first_short;

	/* Memory now. */
	uint64_t requested_bytes, given_slab_bytes, given_large_bytes;
	uint64_t requested_large_bytes; /* of those requested, in pages of their own */
	struct locality locality;
	struct pressure pressure;

	/* Memory over time. */
	uint64_t now; /* in a replay of scalars alone the time of the last step that was looked at */
	uint64_t page_requests, pages; /* of the heap, when it was last looked at */
	uint64_t held, held_since;     /* likewise, and since when */
	bool at_peak;                  /* held is the peak */
	struct wide held_by_time; /* held pages times nanoseconds, until held_since */
	uint64_t held_peak, slab_peak, large_peak, metadata_peak, requested_peak;
	uint64_t requested_at_held_peak, large_at_held_peak;

	/* Pages of slabs and large allocations that were there before and stay: no part of what is held (exact_beside.c). */
	uint64_t beside_slab, beside_large;

	/* Counters before the first event. */
	uint64_t slow_before, fallbacks_before, taken_before, held_before, large_before;
	uint64_t free_blocks_before[SY_ORDERS];

	/* Rows: the trace's caches, then the heap's size classes, then kmalloc without a class, then kmalloc in pages. */
	struct tally *rows;
	struct class *classes;
	struct row_of_class classes_at_hand[CLASSES_AT_HAND]; /* what was looked up; usable 0: nothing */
	uint32_t *cache_bytes; /* by number in the trace */
	unsigned class_count;
	struct tally *call_sites;
	struct note *notes;
	struct growth growth;
	uint32_t row; /* of the step that runs; NO_ROW: it is of no object */

	struct point *points;
	unsigned point_count, points_taken;
	uint64_t next_point; /* when the next one is due */
	struct snapshot *snapshots;
	uint64_t snapshot_count;
};

static inline uint32_t exact_class_row(const struct exact *exact, unsigned class)
{
	return (uint32_t)exact->driver->scratch->cache_count + class;
}

static inline uint32_t exact_kmalloc_row(const struct exact *exact)
{
	return exact_class_row(exact, exact->class_count);
}

static inline uint32_t exact_large_row(const struct exact *exact)
{
	return exact_class_row(exact, exact->class_count + 1);
}

static inline uint64_t exact_slab_pages(const struct exact *exact)
{
	return exact->counters->slab_pages - exact->beside_slab;
}

static inline uint64_t exact_large_pages(const struct exact *exact)
{
	return exact->counters->large_pages - exact->beside_large;
}

static inline uint64_t exact_beside(const struct exact *exact)
{
	return exact->beside_slab + exact->beside_large;
}

/* Finds what is beside; for a populated heap, before its first event. False: no memory. */
bool exact_find_beside(struct exact *, struct fault *);

/* Runs the whole trace on what is populated. False: see fault; nothing is kept. scalars_alone: in two thirds of the time. */
bool exact_run(struct exact *, struct stage *, bool scalars_alone, struct fault *);
void exact_release(struct exact *);

/* Makes all tables, empty; for scalars alone only what these need. False: see fault; what there is is to be released. */
bool exact_make_tables(struct exact *, unsigned points, struct fault *);

/* The state at the end; zones without a page allocator: none. */
void exact_look(struct exact *, struct point *);
void exact_count_pages(const struct exact *, struct sy_pages_counts *);

/* Growth by row. False: no memory. The next functions are called after each step that changed the heap's pages, at a peak, and at the
 * end. */
bool exact_growth_begin(struct exact *);
static inline bool exact_growth_due(const struct exact *exact)
{
	return exact->counters->slab_pages != exact->growth.slab_pages ||
	       exact->counters->reclaimed_pages != exact->growth.reclaimed_pages;
}
void exact_growth_note(struct exact *);
void exact_growth_peak(struct exact *);
void exact_growth_end(struct exact *);
void exact_growth_release(struct exact *);

/* How memory was given back under pressure. */
void exact_write_pressure(struct json *, const struct exact *);

/* Shrinks the heap, destroys the trace's caches, and writes what that brought and which of them it was refused for. The
 * last thing that is done to the allocator. */
void exact_write_end(struct json *, struct exact *);

/* Writes an object whose member "exact" has all measures, and ends with exact_write_end; or the scalar measures alone, as it was run. */
void exact_write(struct json *, struct exact *);

/* Memory as /proc/buddyinfo, /proc/pagetypeinfo and /proc/slabinfo have it. */
void proc_buddyinfo(FILE *out, const struct sy_pages_counts *);
void proc_pagetypeinfo(FILE *out, const struct sy_pages_counts *, unsigned pageblock_order);
void proc_slabinfo(FILE *out, struct sy_heap *);

#endif
