/* Mappings that ended of which hardly a page is in memory, kept for the next of their size. See thin.c. */
#ifndef SLABYARD_MALLOC_THIN_H
#define SLABYARD_MALLOC_THIN_H

#include <stdbool.h>
#include <stddef.h>

struct sy_heap;

/* Whether ranges of so many bytes are kept here. */
bool sy__thin_serves(size_t bytes);

/* Whether hardly a page of a range that is served here is in memory, as far as is known; behind so many bytes nobody has
 * written. The heap serves such sizes again if that is often not so. */
bool sy__thin_is(struct sy_heap *, const char *start, size_t used);

/* sy_heap.comes and leaves: large objects of a heap go elsewhere once they are found to be thin. */
void sy__thin_watch(struct sy_heap *, const void *pages, size_t bytes);
void sy__thin_learn(struct sy_heap *, const void *pages, size_t bytes);

/* Whether that has happened: then what is not thin is better had from the heap than kept. */
bool sy__thin_was_mistaken(const struct sy_heap *);

/* The heap serves them again; whether it didn't. */
bool sy__thin_is_over(struct sy_heap *);

/* Whole pages with anything in them: *bytes, or somewhat more; *bytes then says so. NULL: there are none. */
char *sy__thin_take(size_t *bytes);

/* Keeps whole pages, which can be read and written, are a size that is served and hardly in memory; false: there is no room. */
bool sy__thin_give(char *start, size_t bytes);

/* Gives back what has been here for a while; cheap when called often. */
void sy__thin_age(void);

/* Gives back everything; bytes. */
size_t sy__thin_end(void);

#endif
