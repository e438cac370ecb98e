/* What the files of the malloc library share. How they work together is in entries.c. */
#ifndef SLABYARD_MALLOC_PARTS_H
#define SLABYARD_MALLOC_PARTS_H

#include "core/types.h"

#define ALIGNMENT 16u /* of objects that are as large: what any type needs, and what compilers count on */

/* ---- process.c: the heap behind malloc -------------------------------------------------------------------------- */

/* The program's heap, made by the first call. NULL: no memory for it. A wrong spec ends the program. */
struct sy_heap *sy__process_heap(void);

/* The spec of the heap's policy. */
const char *sy__process_spec(void);

/* To be called when the program has set a limit to its addresses or data, RLIMIT_AS or RLIMIT_DATA, in bytes; SIZE_MAX: none. */
void sy__process_limited(int resource, size_t bytes);

/* Makes room for a mapping of this size: under a limit to addresses by cutting the heap's reservation, under one to data by
 * giving up free memory that the heap has used. Outside of calls of the heap. False: nothing was gained. */
bool sy__process_make_room(size_t bytes);

/* Lets the reservation grow by half of what a limit leaves, because the heap is full. Outside of calls. False: nothing was gained. */
bool sy__process_extend_reservation(void);

/* After a trim, under a limit to data: lets the program have the free memory at the end of what the heap has used. */
void sy__process_trimmed(void);

void sy__process_forked(void); /* in the child */

/* Whether the calling thread is just making the heap. */
bool sy__process_is_making(void);

/* Whether the heap belongs to this process: not in the child of a vfork. */
bool sy__process_is_own(void);

/* SLABYARD_HUGE_PAGES is off. */
extern bool sy__process_small_pages;

/* Whether the user's limit allows this many bytes more in mappings. */
bool sy__process_may_hold(size_t more);

/* What mlockall does. 0, or the number of an error. */
int sy__process_lock_memory(int flags);

/* ---- settings.c -------------------------------------------------------------------------------------------------- */

/* A variable of the environment. NULL: unset or empty, or the program is set-user-ID. */
const char *sy__setting(const char *name);

/* The same as a number of bytes, 0: unset; or whether it is "on" or "off". A wrong value ends the program. */
size_t sy__setting_bytes(const char *name);
bool sy__setting_on(const char *name, bool usually);

/* Says why a value is wrong, and ends the program or not. */
void sy__setting_tell(const char *name, const char *value, const char *why);
_Noreturn void sy__setting_refuse(const char *name, const char *value, const char *why);

/* ---- preload/runtime.c, in the library for LD_PRELOAD alone ------------------------------------------------------ */

/* A symbol of a C++ runtime that the program has opened by dlopen; NULL: there is none. */
void *sy__runtime_symbol(const char *name) __attribute__((weak));

/* ---- mapping.c: objects that are mappings of their own ------------------------------------------------------------ */

/* A new object: zeroed, aligned to a power of two. NULL: no memory; errno is not set. */
void *sy__mapping_create(size_t size, size_t align);

/* An object in a cached mapping, with anything in it, aligned to ALIGNMENT. NULL: there is none. */
void *sy__mapping_reuse(size_t size);
void *sy__mapping_reuse_to_grow(size_t size); /* one that resizes */
void *sy__mapping_reuse_zeroed(size_t size);

/* Frees an object. */
void sy__mapping_end(void *object);

/* Bytes that may be written to an object. */
size_t sy__mapping_usable(const void *object);

/* Whether sy__mapping_resize can be used. If not, the caller copies the object. */
bool sy__mapping_resizes(const void *object);

/* Gives an object another size, perhaps at another address. NULL: no memory, and the object is as it was. */
void *sy__mapping_resize(void *object, size_t size);

struct mapping_counts {
	size_t live; /* objects */
	size_t bytes, peak_bytes; /* of the objects; a mapping may have more, which is hardly in memory */
};

void sy__mapping_count(struct mapping_counts *);
const size_t *sy__mapping_figures(void); /* the first two of them, for slabyard-inspect */

/* ---- entries.c ------------------------------------------------------------------------------------------------------ */

/* What serves the next call of malloc or free. */
struct service {
	struct sy_heap *fast; /* the heap, if fast.c has its policy's fast paths; else NULL */
	size_t small;         /* bytes of the largest request that malloc's fast path serves; 0: it serves none */
	bool frees;           /* whether free's fast path serves */
	struct sy_heap *heap; /* the argument of the functions; NULL: there is no heap yet */
	void *(*malloc)(size_t size, struct sy_heap *);
	void *(*other)(size_t size, struct sy_heap *); /* for sizes that malloc's fast path does not serve */
	void (*free)(void *object, struct sy_heap *);
};

extern struct service sy__service __attribute__((visibility("hidden"))); /* hidden: read without the global offset table */

/* Has the heap serve from now on. Called once. alone: this is the program's first request, so there are no other threads. */
void sy__serve(struct sy_heap *, bool alone);

/* Has another function serve malloc, while there may be other threads. */
void sy__serve_malloc(void *(*)(size_t size, struct sy_heap *));

void *sy__allocate_aligned(size_t align, size_t size); /* align: a power of two */
size_t sy__usable_bytes(const void *object);           /* of any object */

/* ---- fast.c --------------------------------------------------------------------------------------------------------- */

/* Sets `fast`, `small`, `frees` and `other` of a service whose other members are set. */
void sy__fast_path_set(struct service *);

/* malloc and free under other names. Compilers assume things of malloc and free that are not true inside of them. */
void *sy__allocate(size_t size);
void sy__release(void *object);

/* ---- report.c --------------------------------------------------------------------------------------------------------- */

/* Starts counting for a report into the file at the program's end: puts counting functions in front of the service's. */
void sy__report_start(struct service *, const char *file);

/* Counts an object that was allocated other than by sy__service.malloc (NULL: none). An object that changes its size is removed before
 * and added afterwards. The check is inline because there is usually no report. */
extern bool sy__report_counts;
void sy__report_added(const void *object);
void sy__report_removed(const void *object);

static inline void report_add(const void *object)
{
	if (sy__unlikely(sy__report_counts) && object)
		sy__report_added(object);
}

static inline void report_remove(const void *object)
{
	if (sy__unlikely(sy__report_counts))
		sy__report_removed(object);
}

/* ---- sample.c --------------------------------------------------------------------------------------------------------- */

/* One allocation in N is sampled, with this N; 0: none. Exported, for the program and others to write. */
extern unsigned slabyard_sample_rate;

/* Puts the function that samples in front of the service's, if the user wants it. */
void sy__sample_start(struct service *);

/* Looks whether sampling was switched on or off. Inside of calls, too. */
void sy__sample_notice(void);

#define SAMPLES_SHARE 16u /* of a limit to addresses samples may have that part */

/* Frees a sampled object (false: it is none), or tells whether an address is one's. The heap of samples is NULL before the first. */
extern struct sy_heap *sy__sampled;
bool sy__sample_free_known(void *object);
bool sy__sample_has_known(const void *object);

static inline bool sy__sample_free(void *object)
{
	return sy__unlikely(__atomic_load_n(&sy__sampled, __ATOMIC_ACQUIRE)) && sy__sample_free_known(object);
}

static inline bool sy__sample_has(const void *object)
{
	return sy__unlikely(__atomic_load_n(&sy__sampled, __ATOMIC_ACQUIRE)) && sy__sample_has_known(object);
}

/* ---- background.c ------------------------------------------------------------------------------------------------------ */

/* If the user wants a thread in the background, it may start from now on. */
void sy__background_start(struct sy_heap *);

void sy__background_end(void);    /* it ends for good; outside of calls */
void sy__background_forked(void); /* in the child */

/* ---- statistics.c ----------------------------------------------------------------------------------------------------- */

/* The cache behind this one in the heap's list; NULL: the first, or none is left. All are size classes, which are never destroyed, so
 * the list may be walked without its lock. */
struct sy_cache *sy__next_cache(struct sy_heap *, const struct sy_cache *);

#endif
