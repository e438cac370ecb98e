/* Which pages of a zone are free. See free_page_map.c. All with the zone's lock held. */
#ifndef SY_FREE_PAGE_MAP_H
#define SY_FREE_PAGE_MAP_H

#include "backend.h"

#define SY__FREE_PAGE_MAP_LEAST 32u /* pages; a search may miss shorter extents */

/* Whether the page allocator's zone gets a map: it places large runs by best fit. */
static inline bool sy__free_page_map_applies(const struct sy_pages *pages)
{
	return sy__backend_of(pages)->commits_growth && pages->zone_count == 1 && !pages->zones[0].populated;
}

/* Gives the map memory for all pages below this one. False: the system has none. */
bool sy__free_page_map_cover(struct sy_pages *, uint64_t end);

/* Builds the zone's map. False: there is no memory for it. */
bool sy__free_page_map_start(struct sy__zone *);

/* The zone grew by this maximal block; a block became free, or in use. */
void sy__free_page_map_grown(struct sy__zone *);
void sy__free_page_map_note(struct sy__zone *, uint64_t number, unsigned order, bool is_free);

/* For checks: NULL if the map has the whole block as free, or in use; else what is wrong. */
const char *sy__free_page_map_agrees(const struct sy__zone *, uint64_t number, unsigned order, bool is_free);

/* Finds an extent within a range that begins with a maximal block: the one around a page; the first long one from page `at` on.
 * Returns its length in pages and sets *start; 0: none. */
uint64_t sy__free_page_map_around(const struct sy__zone *, uint64_t from, uint64_t to, uint64_t number, uint64_t *start);
uint64_t sy__free_page_map_next(const struct sy__zone *, uint64_t from, uint64_t to, uint64_t at, uint64_t *start);

#endif
