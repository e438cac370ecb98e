/* The mapping cache: mappings that ended, kept for a while for the next to come. See mapping_cache.c. */
#ifndef SLABYARD_MALLOC_MAPPING_CACHE_H
#define SLABYARD_MALLOC_MAPPING_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/platform.h"

#define MAPPING_CACHE_MOST ((size_t)64 << 20) /* bytes: larger ones are not kept */
#define MAPPING_CACHE_MS 200u

#ifndef MAPPING_BINS /* a model has fewer */
#define MAPPING_BIN_LEAST 64u /* pages of the smallest range that has a bin */
#define MAPPING_BINS 1041u
#endif

#define MAPPING_JOINED 7u

/* Of what was joined from several mappings of the kernel's: the sizes of all but the first, in order of address. */
struct mapping_joints {
	uint32_t count;
	uint32_t bytes[MAPPING_JOINED];
};

static inline size_t sy__milliseconds(void)
{
	return (size_t)(sy__now() / 1000000);
}

/* Bytes of each of the machine's pages; see mapping.c. */
size_t sy__system_page_bytes(void);

/* Whole pages from mappings that ended, with anything in them: *bytes, or somewhat more, or much more that is hardly in memory;
 * *bytes then says so. Without joints, of one mapping only, which is to grow. NULL: there are none. */
char *sy__mapping_cache_take(size_t *bytes, struct mapping_joints *);

/* So many bytes, or somewhat more, or fewer, that are kept where a range ends and become part of it; how many. */
size_t sy__mapping_cache_take_behind(char *end, size_t bytes);

/* Gives so many bytes back to the operating system, if they are there and in memory: the program has got as many from it. */
void sy__mapping_cache_make_up(size_t bytes);

/* Keeps whole pages, which can be read and written, or gives them back to the operating system. `used` of the bytes may be in
 * memory; behind them nobody has written since sy__mapping_cache_take() handed them out, with these joints, or NULL. */
void sy__mapping_cache_give(char *start, size_t bytes, size_t used, const struct mapping_joints *);

/* Whether there is a bin for ranges of so many bytes; puts one there, of one mapping and hardly in memory. False: there is no
 * room, and it is still the caller's. */
bool sy__mapping_cache_has_bin(size_t bytes);
bool sy__mapping_cache_give_bin(char *start, size_t bytes);

/* Gives back what has been here for MAPPING_CACHE_MS; cheap when called often. */
void sy__mapping_cache_age(void);

/* Gives back everything; bytes. */
size_t sy__mapping_cache_end(void);

/* In the child of a fork, while it has one thread: what other threads were about to keep or take is lost. */
void sy__mapping_cache_forked(void);

#endif
