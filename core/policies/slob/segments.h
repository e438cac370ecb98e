/*
 * Segments: the pages of a SLOB list in groups of neighbours, so that best fit passes whole groups.
 *
 * Best fit needs the first page of a list that has a block of one size, and such a page may be rare among thousands. Each segment
 * knows of all its pages what lets a search pass them:
 *
 *   may_have   a set of block sizes, as each page has one (slob.h)
 *   known      of some requests, a lower bound of the blocks that can serve them
 *
 * Both may promise too much, but never too little. A page that gets a block says so to its segment, and a search that has looked at all
 * pages of a segment notes what it found. So the search finds what a walk over all pages would find.
 *
 *     list       -> page page page page page page page page page ->
 *     segments   [ front        ] [             ] [             ]
 *
 * Pages come at the front of a list, so they join its front segment until that has `room` pages; then another one begins. Pages leave
 * from anywhere. A heap has a fixed number of segments. When none is left, all lists are divided anew, into about half of them. Many pages
 * join before that happens again, so the walk costs little for each.
 *
 * The other fits have no segments: next fit turns its lists round, and neither looks for a size.
 */
#ifndef SY_SLOB_SEGMENTS_H
#define SY_SLOB_SEGMENTS_H

#include "blocks.h"

enum { SY__SLOB_SMALL, SY__SLOB_MEDIUM, SY__SLOB_LARGE, SY__SLOB_LISTS };

#define SY__SLOB_SEGMENTS 120u /* number 0 is none; with 4 KiB pages, what the heap's eight pages have room for */
#define SY__SLOB_KNOWN 4u

struct sy__slob_segment {
	uint64_t may_have;
	struct sy_list *first; /* the first page's link; without pages: nothing */
	uint32_t pages;
	uint32_t known_want[SY__SLOB_KNOWN]; /* sy__slob_want_key of requests; 0: none */
	uint16_t known_least[SY__SLOB_KNOWN]; /* units: no smaller block serves that request */
	uint8_t next; /* the segment behind it, or the next one that is free */
};

struct sy__slob_segments {
	struct sy__slob_segment all[SY__SLOB_SEGMENTS];
	uint32_t room; /* pages that a segment takes */
	uint8_t free;  /* the first one */
	uint8_t front[SY__SLOB_LISTS];
};

/* Key of a request: equal for requests that fit the same places. Its units are in the low bits. */
static inline uint32_t sy__slob_want_key(const struct sy__slob_want *want)
{
	return want->units | (uint32_t)__builtin_ctz(want->align) << 16 | (want->offset ? 1u << 31 : 0);
}

/* Where a segment notes what it knows of a request. */
static inline uint32_t sy__slob_known_at(uint32_t key)
{
	return (key / SY__SLOB_WORD_UNITS + (key >> 16)) % SY__SLOB_KNOWN;
}

/* One of the segment's pages gets a block of `units`; 0: none. */
static inline void sy__slob_segment_gets(struct sy__slob_segment *segment, uint32_t units)
{
	if (!units)
		return;
	segment->may_have |= sy__slob_size_bit(units);
	for (unsigned i = 0; i < SY__SLOB_KNOWN; i++)
		if (units < segment->known_least[i] && units >= (segment->known_want[i] & 0xffff))
			segment->known_least[i] = (uint16_t)units;
}

#endif
