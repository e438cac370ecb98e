/* Which pages of a zone are free. See free_page_map.c. All with the zone's lock held. */
#ifndef SY_FREE_PAGE_MAP_H
#define SY_FREE_PAGE_MAP_H

#include "../pages/pages.h"

#define SY__FREE_PAGE_MAP_LEAST 32u /* pages; shorter extents are not found for sure */

void sy__free_page_map_start(struct sy__zone *); /* the zone is mapped from now on */
void sy__free_page_map_grown(struct sy__zone *, uint64_t number); /* by that maximal block */
void sy__free_page_map_note(struct sy__zone *, uint64_t number, unsigned order, bool is_free);
bool sy__free_page_map_agrees(const struct sy__zone *, uint64_t number, unsigned order, bool is_free); /* all of a block */

/* Pages of the extent of free pages within a range, which begins with a maximal block, where *start says: around that page, or the
 * first one that has a row from that page on; 0: none. */
uint64_t sy__free_page_map_around(const struct sy__zone *, uint64_t from, uint64_t to, uint64_t number, uint64_t *start);
uint64_t sy__free_page_map_next(const struct sy__zone *, uint64_t from, uint64_t to, uint64_t at, uint64_t *start);

#endif
