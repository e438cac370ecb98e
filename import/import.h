/*
 * slabyard-import: kmem events as text on standard input (or several inputs, of text or perf.data), a resolved trace as binary blocks on
 * standard output. lab/slabyard/capture/importer.py starts it and writes the Parquet file.
 *
 * It works in passes over a temporary file of fixed-size records. So memory grows with the number of live objects, and never with
 * the length of the capture:
 *
 *   1. scan     (scan.c, wrapping.c, forms.c, remarks.c, stacks.c, tasks.c, spool.c)   turns each line into a struct record and interns its texts (intern.c).
 *                                Of perf.data each sample (perf.c). One thread for each input. Inputs are parts of one capture, merged by
 *                                time from then on (capture.c).
 *   2. base     (base.c)         pointers are virtual, pages are frame numbers: finds the direct map's base by a vote.
 *   3. resolve  (resolve.c)      follows pages (pages.c) and live objects (live.c). It learns which page runs are slabs, which
 *                                objects share a cache (caches.c), and which events happened unseen: the implied events.
 *   4. emit     (emit.c, rows.c) follows them again with the implied events merged in, and writes the rows.
 *
 * A line that cannot be read is counted and never fatal. Fatal are a lack of memory, a full disk, and a capture without a kmem
 * event. They end in die(): one line on standard error and exit status 2. The lab cannot mistake what is on standard output by
 * then for a trace, because the closing block is missing.
 */
#ifndef SLABYARD_IMPORT_H
#define SLABYARD_IMPORT_H

#define _POSIX_C_SOURCE 200809L

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "programs/likely.h"
#include "words.h"

#define NONE UINT32_MAX
#define NO_CACHE UINT16_MAX
#define NO_TEXT UINT16_MAX
#define PAGE_SHIFT 12 /* where nothing tells another one */
#define MAX_PAGE_SHIFT 16
#define LAST_POINTER_OF_NOTHING 16 /* NULL and ZERO_SIZE_PTR are no objects */
#define MOVABLE 1 /* migrate types, as Linux numbers them since 4.4 */
#define RECLAIMABLE 2
#define MAX_PFN ((uint64_t)1 << 44)
#define MOST_HEADINGS 256
#define MAX_ORDER 19 /* page orders above it are misread lines */

enum kind { KMALLOC, KFREE, CACHE_ALLOC, CACHE_FREE, PAGE_ALLOC, PAGE_FREE, EXTFRAG, SNAPSHOT, KINDS };
enum origin { RECORDED, IMPLIED, OLDER };
enum owner { OWNER_NOT_A_PAGE, OWNER_SLAB, OWNER_LARGE, OWNER_ENVIRONMENT, OWNER_UNKNOWN };

/* One event of the capture. A record's ordinal is its place in the spools, from 0. */
struct record {
	uint64_t time;      /* ns, as recorded; never decreasing once in the spool */
	uint64_t address;   /* object: pointer; page: frame number; snapshot: the name's number in struct texts.marks */
	uint32_t size;      /* bytes_req */
	uint32_t allocated; /* bytes_alloc */
	uint32_t call_site; /* in struct texts.call_sites; NONE for pages */
	uint32_t stack;     /* in struct texts.stacks, or NONE */
	uint16_t gfp;       /* in struct texts.gfp */
	uint16_t name;      /* in struct texts.names, or NO_TEXT where the event prints none */
	uint16_t cpu;
	uint8_t kind;
	uint8_t order;
	int8_t migrate;
	uint8_t accounted;
	int16_t node;
	uint32_t task;      /* in struct texts.tasks, or NONE */
};
_Static_assert(sizeof(struct record) == 48, "records have no padding");

static inline bool is_object(uint8_t kind) { return kind <= CACHE_FREE; }
static inline bool is_alloc(uint8_t kind) { return kind == KMALLOC || kind == CACHE_ALLOC; }

/* ---- fatal.c: fatal errors, and memory or death-------------------------------------------------------------------- */

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *grow(void *memory, size_t count, size_t bytes); /* realloc(memory, count * bytes) or die */
void *zeroed(size_t count, size_t bytes);

/* Makes room for one more element of an array, by doubling it. */
#define RESERVE(array, count, room) \
	do { \
		if ((count) == (room)) { \
			(room) = (room) ? 2 * (room) : 64; \
			(array) = grow((array), (room), sizeof *(array)); \
		} \
	} while (0)

#define APPEND(array, count, room, ...) \
	do { \
		RESERVE(array, count, room); \
		(array)[(count)++] = __VA_ARGS__; \
	} while (0)

/* ---- intern.c: texts as numbers --------------------------------------------------------------------------------- */

struct interner {
	char **texts; /* each ends with NUL */
	size_t *lengths;
	uint32_t *hashes;
	uint32_t count, room;
	uint32_t limit;  /* numbers stay below it */
	uint32_t *slots; /* text number + 1, 0: empty; a power of two of them */
	uint32_t mask;
	uint32_t recent[256]; /* text number + 1 by hash: most texts repeat at once */
};

void intern_init(struct interner *, uint32_t limit);
void intern_free(struct interner *);
uint32_t intern(struct interner *, const char *text, size_t length); /* NONE when the limit is reached */

struct texts {
	struct interner call_sites, stacks, tasks, gfp, names, marks;
};

void texts_init(struct texts *);
void texts_free(struct texts *);

/* ---- spool.c: records in an unlinked temporary file -------------------------------------------------------------- */

struct spool {
	int fd;
	uint64_t records;    /* put so far */
	struct record *buffer;
	uint32_t held;       /* records in buffer, not yet written */
	uint64_t floor_time; /* of the last record written */
	uint64_t last_time;  /* of the last record put */
	uint64_t reordered;  /* records that were not in order of time */
	uint64_t descents;   /* records with an earlier time than the one just before */
	uint64_t late;       /* records that came too late to be put in their place */
};

void spool_open(struct spool *);
void spool_put(struct spool *, const struct record *);
void spool_finish(struct spool *); /* writes what is held */
void spool_close(struct spool *);

/* ---- scan.c: pass 1 ---------------------------------------------------------------------------------------------- */

enum event_name { /* as the kernel names them; see kinds_of_names in scan.c */
	EVENT_KMALLOC,
	EVENT_KMALLOC_NODE,
	EVENT_KFREE,
	EVENT_CACHE_ALLOC,
	EVENT_CACHE_ALLOC_NODE,
	EVENT_CACHE_FREE,
	EVENT_PAGE_ALLOC,
	EVENT_PAGE_FREE,
	EVENT_PAGE_FREE_DIRECT, /* what mm_page_free was called before Linux 3.3 */
	EVENT_EXTFRAG,
	EVENT_MARK,
	EVENT_NAMES
};

/* The fields of an event, beside those that go into its record at once. */
enum field {
	HAS_PTR = 1u << 0,
	HAS_REQ = 1u << 1,
	HAS_PFN = 1u << 2,
	HAS_ORDER = 1u << 3,
	IS_WRONG = 1u << 4,
	IS_HIDDEN = 1u << 5,
	HAS_ACCOUNTED = 1u << 6,
};

enum { MOST_FIELDS = 16 /* more than any event has */, LEAST_FLAGS = 4 /* letters of tracefs's word of flags */ };

struct fields {
	unsigned has, count;
	uint64_t req, alloc;
	struct word call_site, module, symbol, gfp, name;
};

/* One input and all that was found in it. */
struct scan {
	int fd;
	bool is_perf; /* a perf.data file, which `layout` describes, a descriptor; otherwise text */
	int layout;
	const char *const *wanted; /* marks asked for by name */
	uint32_t wanted_count, marks_taken;
	struct spool spool;
	struct record waiting; /* for its stack, where has_waiting */
	bool has_waiting;
	char stack[8192]; /* of the record that waits; from stack_at on */
	size_t stack_at;
	struct texts texts;
	struct flags {
		bool reclaimable, movable, accounted;
	} *flags; /* by number in texts.gfp */
	uint32_t flag_count, flag_room;
	uint64_t events[EVENT_NAMES];
	uint64_t by_fields[EVENT_NAMES][MOST_FIELDS]; /* lines of an event, by how many fields they have */
	struct interner unknown;     /* names of other events */
	uint64_t unknown_counts[64]; /* by number in unknown */
	uint64_t lines, unparsed, lost, lost_in_all; /* lost_in_all: perf's own sum, reported losses included */
	uint64_t kept, written; /* events that tracefs's last heading counts: still in the buffer, and all */
	uint64_t headed, placed, last_placed; /* events that the headings count; lines with a CPU and a time, and the last one's number */
	bool other_tracer; /* than `nop`, or in latency format: one of its lines need not be one event */
	char sample[100];  /* how the first line begins that has an event which cannot be read, where none can */
	uint64_t raw;      /* lines with the number of an event's type in place of its name and fields */
	uint64_t hidden; /* events whose pointer is not printed at all */
	uint64_t timed, time_changes, latest; /* events with a time, how often it differed from the one before, and that one */
	bool fine, finer_than_ms; /* some time is no whole number of microseconds, of milliseconds */
	bool counted;    /* times have no fraction: they are a clock's counts */
	uint64_t tick_ns; /* of such a time's unit */
	struct interner headings; /* what perf script --header tells of the recording */
	uint64_t null_frees, failed_allocs;
	uint64_t first_time, last_time; /* of all events, null frees and failed allocations included */
	uint32_t cpus, nodes;  /* largest seen + 1 */
	uint32_t pageblock_order; /* NONE: no extfrag event */
	uint64_t least_pfn, most_pfn;
	bool before_4_4; /* migrate types are numbered as they were then */
	bool tracefs;   /* text of tracefs or trace-cmd rather than perf script's */
	bool truncated; /* the last line has no end, and could not be read */
	bool foreign;   /* looks binary: not text at all */
	bool trace_dat; /* and is trace-cmd's */
};

void scan_input(struct scan *);
void scan_line(struct scan *, const char *line, const char *end); /* end: where the newline is */
struct record empty_record(uint16_t cpu);
bool take_kmem(struct scan *, struct record *, enum event_name, const char *fields, const char *end); /* false: it cannot be read */
bool take_decoded(struct scan *, struct record *, enum event_name, const struct fields *); /* likewise */
void count_unknown(struct scan *, struct word event);
enum event_name event_of(struct word name);
extern const char *const event_names[EVENT_NAMES];

/* ---- perf.c: samples of perf.data ----------------------------------------------------------------------------------- */

void scan_perf(struct scan *);

/* ---- wrapping.c: what other programs put around a line ------------------------------------------------------------------ */

char *without_escapes(char *line, char *end); /* moves the rest of the line over them; its new end */
const char *without_wrapping(const char *fields, const char *end); /* the end of the fields */

/* ---- forms.c: other forms of a line ---------------------------------------------------------------------------------- */

enum event_name find_event(const char *line, const char *end, struct word *name);
bool take_other_form(struct scan *, enum event_name, const char *line, struct word name, const char *end); /* false: it is none of them */

/* ---- remarks.c: what stands between the events ------------------------------------------------------------------- */

bool take_record(struct scan *, const char *line, const char *end); /* from PERF_RECORD_ on */
bool take_remark(struct scan *, const char *line, const char *end); /* false: the line is none that a recorder writes */

/* ---- stacks.c: what stands behind an event where the capture has stacks --------------------------------------------- */

void stack_wait(struct scan *, const struct record *); /* the record of the event that comes now */
void stack_end(struct scan *); /* no more lines of its stack come: it goes to the spool */
bool take_frame(struct scan *, const char *line, const char *end); /* false: the line is none of a stack */

/* ---- tasks.c: who did it ------------------------------------------------------------------------------------------ */

uint32_t task_of(struct scan *, const char *line, const char *end); /* that stands before `end`; NONE: nobody is named */

/* ---- capture.c: all inputs as one sequence ----------------------------------------------------------------------- */

struct capture {
	struct scan *scans;
	uint32_t scan_count;
	struct texts texts; /* merged */
	struct numbers {
		uint32_t *call_sites, *stacks, *tasks, *marks, *gfp, *names;
	} *numbers; /* of each input: number in its own texts -> number in the merged ones */
	uint32_t first_mark, last_mark; /* in texts.marks, or NONE */
	uint32_t records;               /* with the two marks */
	uint64_t first_time, last_time;
	/* Where capture_next() stands. */
	struct reader {
		struct record *buffer;
		uint32_t buffered, next;
		uint64_t at; /* records of the spool read so far */
	} *readers;
	struct record current;
	uint32_t taken;
	uint32_t repeats; /* records that are the same as the one before */
	uint64_t last;
};

/* Merges the texts of all inputs. The marks, unless NULL, become snapshots before the first and after the last event. */
void capture_join(struct capture *, const char *first_mark, const char *last_mark);
void capture_close(struct capture *);
void capture_rewind(struct capture *);
struct record *capture_next(struct capture *); /* NULL at the end; valid until the next call */

/* ---- base.c: pass 2 ---------------------------------------------------------------------------------------------- */

struct base {
	bool known;
	bool hashed;      /* the pointers are hashed: there is no base */
	unsigned shift;   /* the page size is 1 << shift */
	uint64_t address; /* of page frame 0, modulo 2^64 */
};

/* What the slabs of a cache are made of. Sizes in bytes. */
struct slab_shape {
	uint16_t name; /* in texts.names */
	uint8_t order;
	uint32_t size, stride, objects;
};

/* Page frames that were slabs when the capture began, where the recorder has asked the kernel: ascending. */
struct slab_frames {
	uint64_t *frames;
	size_t count; /* 0: not known */
	struct slab_shape *shapes; /* of all caches, where no frame is missing */
	size_t shape_count;
};

void base_find(struct capture *, const struct slab_frames *, struct base *, unsigned shift);

/* ---- pages.c: which run a page is in ------------------------------------------------------------------------------ */

enum { PAGE_UNSEEN, PAGE_FREED, PAGE_SLAB, PAGE_FIRST_RUN }; /* values of a page's entry: PAGE_FIRST_RUN + run */

struct chunk;
struct page_map {
	struct chunk **slots; /* hash by frame number / pages of a chunk */
	uint32_t mask, count;
	struct chunk *recent;
};

void page_map_init(struct page_map *);
void page_map_free(struct page_map *);
uint32_t page_get(struct page_map *, uint64_t pfn);
void page_fill(struct page_map *, uint64_t pfn, uint64_t count, uint32_t entry);

/* ---- live.c: what is live at an address --------------------------------------------------------------------------- */

/* The number of an entry is the `object` column: small, and reused. Objects and pages are in two maps over one pool. */
struct live {
	uint64_t key;       /* address, or page frame number */
	uint32_t chain;     /* next in the hash chain, or in the free list */
	uint32_t size, allocated;
	uint32_t class;     /* resolve: its class, or NONE for a kmalloc; emit: its cache */
	uint32_t run;       /* resolve: the live run that it is in, or NONE */
	uint32_t next, prev;/* resolve: objects of that run */
	uint32_t since;     /* resolve: ordinal of the record that allocated it; of a tombstone: that freed it */
	uint32_t serial;    /* resolve: how many cache allocations came before it */
	uint8_t kind, order, owner;
	bool tombstone;     /* resolve: freed, and kept until its run ends */
	bool implied;       /* emit: its allocation is implied */
};

struct live_map {
	uint32_t *buckets;
	uint32_t mask, count;
};

struct live_pool {
	struct live *entries;
	uint32_t count, room, free;
};

void live_map_init(struct live_map *);
void live_map_free(struct live_map *);
void live_pool_free(struct live_pool *);
uint32_t live_find(const struct live_map *, const struct live_pool *, uint64_t key); /* NONE: not there */
uint32_t live_add(struct live_map *, struct live_pool *, uint64_t key);              /* the key must not be there */
void live_remove(struct live_map *, struct live_pool *, uint32_t entry);

/* ---- caches.c: which allocations are of one cache ------------------------------------------------------------------- */

/* Allocations that print alike: same sizes, same call site, same name. */
struct class {
	uint32_t parent; /* union-find: classes of one cache */
	uint32_t size, allocated, call_site;
	uint32_t beside;    /* a class with objects of the same stride and another size in one page run, or NONE */
	uint32_t free_votes;
	uint64_t address_bits; /* all addresses, or'ed */
	uint64_t places;    /* a bit for each address, by its hash: a rough count of different ones */
	uint16_t name;      /* printed on the allocation, or NO_TEXT */
	uint16_t free_name; /* majority vote of the names that its objects' frees print */
	uint16_t cache;     /* once resolved */
};

struct cache {
	uint16_t name;      /* in texts.names, or NO_TEXT: none known */
	uint32_t size;      /* largest bytes_req */
	uint32_t allocated; /* largest bytes_alloc */
	uint64_t address_bits, places; /* as in struct class */
	uint64_t allocs, frees; /* recorded; filled in by emit */
};

/* What a call site freed last: a guess for its frees of objects whose allocation was not seen. */
struct free_site {
	uint32_t class;             /* or NONE */
	uint32_t size, allocated;   /* of a kmalloc; 0: none */
};

struct caches {
	struct class *classes;
	uint32_t class_count, class_room;
	uint32_t *slots, mask; /* hash: class + 1 */
	struct free_site *free_sites; /* by number of the call site */
	uint32_t free_site_count;
	struct cache *list;
	uint32_t count, room;
	uint16_t *by_name; /* number of the name -> cache, or NO_CACHE */
	uint32_t name_count;
};

void caches_init(struct caches *, const struct texts *);
void caches_free(struct caches *);
uint32_t class_of(struct caches *, const struct record *);      /* the class of a cache allocation */
void class_seen(struct caches *, uint32_t class, uint64_t address); /* an object of it is at the address */
void class_join(struct caches *, uint32_t a, uint32_t b);       /* they are of one cache if their sizes are equal */
void class_beside(struct caches *, uint32_t a, uint32_t b);     /* they share a page run */
void class_named(struct caches *, uint32_t class, uint16_t name); /* a free printed it */
void caches_join_equal_sizes(struct caches *);                  /* where pages are shared: a size is one cache */
void caches_join_grown(struct caches *);                        /* where they are not: classes that share a page run are one cache */
void caches_resolve(struct caches *);                            /* once joined: fills list and class.cache */
void cache_holds(struct cache *, const struct class *);         /* its sizes are at least those of the class */
uint16_t cache_named(struct caches *, uint16_t name);           /* made when it is not there */
uint32_t cache_alignment(const struct cache *);                 /* that its addresses prove, in bytes; 0: nothing */

/* ---- resolve.c: pass 3 ----------------------------------------------------------------------------------------------- */

enum implied_kind { IMPLIED_OBJECT_FREE, IMPLIED_OBJECT_ALLOC, IMPLIED_PAGE_FREE, IMPLIED_PAGE_ALLOC };

/* An event that the capture proves but does not show. It happens just before record number `before`. */
struct implied {
	uint64_t address;  /* object: pointer; page: frame number */
	uint32_t before;
	uint32_t sequence; /* keeps the order of those before one record */
	uint32_t history;  /* allocations: of the run */
	uint32_t call_site;/* object allocation: of the free that proves it */
	uint32_t size, allocated; /* object allocation, once resolved */
	uint16_t cache;    /* object allocation, once resolved: NO_CACHE for a kmalloc */
	uint16_t name;     /* object allocation: as its free prints it, or NO_TEXT */
	uint8_t kind;      /* enum implied_kind */
	uint8_t free_kind; /* object allocation: KFREE or CACHE_FREE */
	uint8_t order;
	int8_t migrate;
	bool dropped;      /* the object's size is not known: its free counts as one of an object older than the trace */
};

/* What is known of a page run in the end. */
struct history {
	uint32_t class;   /* of a cache that has objects in it, or NONE */
	uint32_t kmalloc_size, kmalloc_allocated; /* bytes_req and bytes_alloc of the kmalloc last seen in it, or 0 */
	uint16_t name;    /* printed by frees of its objects, or NO_TEXT */
	uint8_t owner;    /* enum owner */
};

/* What later events tell of a cache allocation. */
struct cache_alloc {
	uint32_t history; /* of its page run, or NONE */
	uint32_t class;
	uint16_t name;    /* printed by its free, or NO_TEXT */
	uint16_t cache;   /* once resolved */
};

struct resolution {
	struct implied *implied; /* in the order in which they happen */
	uint32_t implied_count, implied_room;
	struct history *histories;
	uint32_t history_count, history_room;
	uint32_t *page_events;   /* by number of the page event: its run's history */
	uint32_t page_event_count, page_event_room;
	struct cache_alloc *cache_allocs; /* by number of the recorded cache allocation */
	uint32_t cache_alloc_count, cache_alloc_room;
	uint32_t *unmatched_frees; /* by number of the object free whose allocation is not recorded: history of its page, or NONE */
	uint32_t unmatched_free_count, unmatched_free_room;
	uint64_t explained, older_objects, unexplained; /* object events, see trace/file.py DirectMap */
	uint64_t page_contradictions; /* pages taken while they were held; blocks of several given back twice */
	uint32_t numbers;        /* of objects and runs that ever lived at one time, at most */
	bool shared_pages;       /* objects of different sizes share page runs, as SLOB's do */
	struct caches caches;
};

void resolve(struct capture *, const struct base *, const struct slab_frames *, struct resolution *);
void resolution_free(struct resolution *);
uint16_t cache_of_run(const struct resolution *, uint32_t history); /* NO_CACHE when nothing tells */

/* ---- emit.c, rows.c: pass 4 ------------------------------------------------------------------------------------------- */

struct row {
	uint64_t time, address;
	uint32_t object, size, allocated, call_site, stack, task;
	uint16_t cpu, cache, gfp;
	uint8_t kind, origin, order, owner;
	int8_t migrate;
	int16_t node;
	uint8_t accounted;
};

struct counts {
	uint64_t rows, unknown_frees, implied_frees, implied_allocs, implied_page_frees, implied_page_allocs;
	uint64_t pages_of_unknown_owner;
	struct snapshot_mark {
		uint64_t time;
		uint32_t mark; /* in texts.marks */
	} *snapshot_marks;
	uint32_t snapshots, snapshot_room;
};

/* One stream at a time: the program has one standard output. */
void rows_begin(FILE *);
void rows_put(const struct row *);
void rows_end(void);

void emit(struct capture *, const struct base *, struct resolution *, struct counts *, FILE *); /* fills in the counts, of caches too */

/* ---- header.c: JSON before and after the rows ------------------------------------------------------------------------- */

void header_write(const struct capture *, const struct base *, const struct resolution *, FILE *);
void trailer_write(const struct resolution *, const struct counts *, uint32_t repeats, FILE *);

#endif
