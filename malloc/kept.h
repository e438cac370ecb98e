/* Mappings that ended, kept for a while for the next to come. */
#ifndef SLABYARD_MALLOC_KEPT_H
#define SLABYARD_MALLOC_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "core/platform.h"

#define KEPT_MOST ((size_t)64 << 20) /* bytes: larger ones are not kept */
#define KEPT_MS 200u

#define KEPT_JOINED 7u

/* Of what was joined from several mappings of the kernel's: the sizes of all but the first, in order of address. */
struct kept_joints {
	uint32_t count;
	uint32_t bytes[KEPT_JOINED];
};

static inline size_t sy__milliseconds(void)
{
	return (size_t)(sy__now() / 1000000);
}

/* Bytes of each of the machine's pages; see mapping.c. */
size_t sy__system_page_bytes(void);

/* Whole pages from mappings that ended, with anything in them: *bytes, or somewhat more, or much more that is hardly in memory;
 * *bytes then says so. Without joints, of one mapping only, which is to grow. NULL: there are none. */
char *sy__kept_take(size_t *bytes, struct kept_joints *);

/* So many bytes, or somewhat more, or fewer, that are kept where a range ends and become part of it; how many. */
size_t sy__kept_take_behind(char *end, size_t bytes);

/* Gives so many bytes back to the operating system, if they are there and in memory: the program has got as many from it. */
void sy__kept_make_up(size_t bytes);

/* Keeps whole pages, which can be read and written, or gives them back to the operating system. `used` of the bytes may be in
 * memory; behind them nobody has written since sy__kept_take() handed them out, with these joints. */
void sy__kept_give(char *start, size_t bytes, size_t used);
void sy__kept_give_joined(char *start, size_t bytes, size_t used, const struct kept_joints *);

/* Gives back what has been here for KEPT_MS; cheap when called often. */
void sy__kept_age(void);

/* Gives back everything; bytes. */
size_t sy__kept_end(void);

/* In the child of a fork, while it has one thread: what other threads were about to keep or take is lost. */
void sy__kept_forked(void);

#endif
