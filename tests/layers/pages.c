/* The page allocator, linked with its platform and nothing else: blocks come, go, and join again. */
#include <slabyard/slabyard.h>

#include "core/pages/pages.h"

#include <stdio.h>

int main(void)
{
	struct sy_pages_config config = { .zone_count = 1, .slots = 1, .pageblock_order = 9, .cpu_lists = true,
	                                  .zones = { { .name = "Normal", .pages = 8192 } } };
	struct sy_pages *pages = sy__pages_create(&config, NULL);
	struct sy_page *blocks[SY_ORDERS];
	const char *wrong = NULL;

	if (!pages)
		return 1;
	for (unsigned order = 0; order < SY_ORDERS; order++)
		if (!(blocks[order] = sy_pages_alloc(pages, 0, order, 0, SY_ANY_NODE)))
			return 1;
	wrong = sy_pages_check(pages);
	for (unsigned order = 0; order < SY_ORDERS; order++)
		sy_pages_free(pages, 0, blocks[order]);
	sy_pages_drain(pages, 0);
	if (!wrong)
		wrong = sy_pages_check(pages);
	if (wrong)
		printf("%s\n", wrong);
	sy_pages_destroy(pages);
	return wrong != NULL;
}
