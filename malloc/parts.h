/* What the files of the malloc library share. How they work together is in entries.c. */
#ifndef SLABYARD_MALLOC_PARTS_H
#define SLABYARD_MALLOC_PARTS_H

#include "core/types.h"

#define ALIGNMENT 16u /* of every object: what any type needs, and what compilers count on */

/* ---- process.c: the heap behind malloc -------------------------------------------------------------------------- */

/* The one heap of the program, made by the first call; NULL: there is no memory for it. A spec that is wrong ends the
 * program. */
struct sy_heap *sy__process_heap(void);

/* The spec of its policy. */
const char *sy__process_spec(void);

/* The program has set a limit to its addresses while it ran, of so many bytes; SIZE_MAX: none. */
void sy__process_limited(size_t bytes);

/* Under such a limit, outside of a call: has the heap's range end so much earlier that a mapping of so many bytes finds room, or
 * under one to data what the heap has used, if it is free; has the range reach for its share again, as the heap is full. False:
 * nothing has been gained. */
bool sy__process_make_room(size_t bytes);
bool sy__process_extend_reservation(void);

/* Under a limit to data: what the trimmed heap does without at its end can be had by the program. */
void sy__process_trimmed(void);

void sy__process_forked(void); /* in the child */

/* What the environment sets; NULL: nothing, or the program is another user's. */
const char *sy__process_setting(const char *name);

/* ---- preload/runtime.c, in the library for LD_PRELOAD alone ------------------------------------------------------ */

/* A symbol of a C++ runtime that the program has opened itself; NULL: there is none. */
void *sy__runtime_symbol(const char *name) __attribute__((weak));

/* ---- mapping.c: objects that are mappings of their own ------------------------------------------------------------ */

/* Zeroed, aligned to a power of two; NULL: no memory (errno is not set). */
void *sy__mapping_create(size_t size, size_t align);

/* The same with anything in it, aligned to ALIGNMENT, from mappings that ended a moment ago; NULL: there are none. */
void *sy__mapping_reuse(size_t size);
void *sy__mapping_reuse_to_grow(size_t size); /* so that it resizes */
void *sy__mapping_reuse_zeroed(size_t size);

void sy__mapping_end(void *object);
size_t sy__mapping_usable(const void *object);

/* The object with another size, perhaps elsewhere; NULL: no memory, and it is as it was. Only of an object that resizes: of
 * others that is for the caller to do, by copying. */
bool sy__mapping_resizes(const void *object);
void *sy__mapping_resize(void *object, size_t size);

struct mapping_counts {
	size_t live, bytes, peak_bytes; /* objects; bytes that are theirs, now and at most: a mapping may have more, hardly in memory */
};

void sy__mapping_count(struct mapping_counts *);

/* ---- entries.c ------------------------------------------------------------------------------------------------------ */

/* What serves the next call of malloc or free. */
struct service {
	struct sy_heap *fast; /* the heap, where both are what fast.c has; or NULL */
	size_t small;         /* then bytes of the largest size that malloc has a fast path for; else 0 */
	struct sy_heap *heap; /* what the other two want to be told; NULL: there is none yet */
	void *(*malloc)(size_t size, struct sy_heap *);
	void (*free)(void *object, struct sy_heap *);
};

extern struct service sy__service __attribute__((visibility("hidden"))); /* so that calls read it where it is */

/* Has the heap serve from now on; once. Alone: nobody has asked for memory before, so there are no threads. */
void sy__serve(struct sy_heap *, bool alone);

void *sy__allocate_aligned(size_t align, size_t size); /* align: a power of two */
size_t sy__usable_bytes(const void *object);           /* of any object */

/* ---- fast.c --------------------------------------------------------------------------------------------------------- */

/* What goes by fast.c, of a service whose other parts are set. */
void sy__fast_path_set(struct service *);
/* malloc and free under other names, as compilers believe to know things of them that are not true inside of them. */
void *sy__allocate(size_t size);
void sy__release(void *object);

/* ---- report.c --------------------------------------------------------------------------------------------------------- */

/* For a report into that file at the end: puts functions that count between callers and what serves them. */
void sy__report_start(struct service *, const char *file);

/* An object that came into being other than by sy__service.malloc, or that is about to change its size. NULL is none. Nothing
 * where there is no report, which is asked out here: that code is set apart, and many calls come by. */
extern bool sy__report_counts;
void sy__report_came(const void *object);
void sy__report_went(const void *object);

static inline void report_add(const void *object)
{
	if (sy__unlikely(sy__report_counts) && object)
		sy__report_came(object);
}

static inline void report_remove(const void *object)
{
	if (sy__unlikely(sy__report_counts))
		sy__report_went(object);
}

/* ---- statistics.c ----------------------------------------------------------------------------------------------------- */

/* The cache behind this one in the heap's list, or its first; NULL: there is none. They are size classes, which are never
 * destroyed: the list may be walked without its lock. */
struct sy_cache *sy__next_cache(struct sy_heap *, const struct sy_cache *);

#endif
