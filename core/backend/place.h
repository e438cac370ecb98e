/* Blocks at chosen places. See place.c. */
#ifndef SY_PLACE_H
#define SY_PLACE_H

#include "backend.h"

/* Sets who serves page requests of heaps, by sy__block_take or sy__block_take_at; NULL: the zones. Before the first heap is
 * created, or while no call is in progress. */
void sy__pages_set_placer(struct sy_pages *, const struct sy__placer *);

/* Takes the block of 2^order pages that begins with this frame. NULL: some of it is in use or in no zone, or the frame is no
 * multiple of the block's size. Ignores watermarks. For page allocators without per-CPU lists whose zones were never
 * populated. */
struct sy_page *sy__block_take_at(struct sy_pages *, uint64_t frame, unsigned order, enum sy_page_use use);

#endif
