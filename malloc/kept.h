/* Mappings that ended, kept for a while for the next to come. */
#ifndef SLABYARD_MALLOC_KEPT_H
#define SLABYARD_MALLOC_KEPT_H

#include <stddef.h>

#define KEPT_MOST ((size_t)32 << 20) /* bytes: larger ones are not kept */
#define KEPT_MS 200u

/* Whole pages from a mapping that ended, with anything in them: *bytes, or somewhat more, which *bytes then says. NULL: there
 * are none. */
char *kept_take(size_t *bytes);

/* Keeps whole pages, or gives them back to the operating system. */
void kept_give(char *start, size_t bytes);

/* Gives back what has been here for KEPT_MS; cheap when called often. */
void kept_age(void);

/* Gives back everything; bytes. */
size_t kept_end(void);

#endif
