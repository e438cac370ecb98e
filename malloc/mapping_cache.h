/* The mapping cache: freed mappings, kept for a while for the next requests. See mapping_cache.c. */
#ifndef SLABYARD_MALLOC_MAPPING_CACHE_H
#define SLABYARD_MALLOC_MAPPING_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/platform.h"

#define MAPPING_CACHE_MOST ((size_t)64 << 20) /* bytes: larger mappings are not cached */
#define MAPPING_CACHE_MS 200u

#ifndef MAPPING_BINS /* a model has fewer */
#define MAPPING_BIN_LEAST 64u /* pages of the smallest range that has a bin */
#define MAPPING_BINS 1041u
#endif

#define MAPPING_JOINED 7u

/* The parts of a range that was joined of several of the kernel's mappings: the sizes of all but the first, in order of address. */
struct mapping_parts {
	uint32_t count;
	uint32_t bytes[MAPPING_JOINED];
};

static inline size_t sy__milliseconds(void)
{
	return (size_t)(sy__now() / 1000000);
}

/* Bytes of each of the machine's pages; see mapping.c. */
size_t sy__system_page_bytes(void);

/* Takes a range of whole pages, with anything in them. *bytes: how many are wanted, then how many there are: somewhat more, or much
 * more that is hardly in memory. parts: receives the range's parts; NULL: the range is for an object that will grow, and has
 * none. NULL: there is no such range. */
char *sy__mapping_cache_take(size_t *bytes, struct mapping_parts *);

/* Takes a cached range that begins where the caller's ends, of about this many bytes. Returns its bytes; 0: there is none. */
size_t sy__mapping_cache_take_behind(char *end, size_t bytes);

/* Gives up to this many bytes in memory back to the operating system, because the program has got as many fresh ones from it. */
void sy__mapping_cache_offset_growth(size_t bytes);

/* Caches a range of whole pages that can be read and written, or unmaps it. The first `used` bytes may be in memory; the bytes behind them
 * have not been written since sy__mapping_cache_take() handed them out. parts: as from there; NULL: none. */
void sy__mapping_cache_give(char *start, size_t bytes, size_t used, const struct mapping_parts *);

/* Whether there is a bin for ranges of this size. */
bool sy__mapping_cache_has_bin(size_t bytes);

/* Puts a range of one mapping, hardly in memory, into its bin. False: there is no room, and the caller still has it. */
bool sy__mapping_cache_give_bin(char *start, size_t bytes);

/* Unmaps ranges that have been cached for MAPPING_CACHE_MS. Cheap when called often. */
void sy__mapping_cache_age(void);

/* Unmaps all cached ranges; returns their bytes. */
size_t sy__mapping_cache_end(void);

/* In the child of a fork, while it has one thread. Ranges that other threads were about to cache or take are lost. */
void sy__mapping_cache_forked(void);

#endif
