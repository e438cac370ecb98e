/*
 * The free lists at the end of a replay, as a Linux kernel would print them: /proc/buddyinfo and /proc/pagetypeinfo
 * (Documentation/filesystems/proc.rst), to the column. So every tool and eye that reads a real kernel's reads these,
 * and a diff against a recorded file shows the memory alone.
 *
 *   buddyinfo      per zone, free blocks by order
 *   pagetypeinfo   the same by migrate type, and pageblocks by migrate type at its end
 *
 * The rows are those of a kernel without CMA and memory isolation, both of which the page allocator does not have. As
 * the kernel stops counting a free list at 100,000 blocks, so that it doesn't hold the zone's lock for too long, so
 * does pagetypeinfo here, and marks the figure with ">".
 *
 * Zones without managed pages are not shown, there as here. This is formatted outside the core, which prints nothing.
 */
#include "exact.h"

#include <inttypes.h>

#define MOST_COUNTED 100000u

static const char *const type_names[SY_MIGRATE_TYPES] = {
	[SY_UNMOVABLE] = "Unmovable",
	[SY_MOVABLE_TYPE] = "Movable",
	[SY_RECLAIMABLE_TYPE] = "Reclaimable",
	[SY_HIGHATOMIC_TYPE] = "HighAtomic",
};

static void print_zone(FILE *out, const struct sy_zone_counts *zone)
{
	fprintf(out, "Node %u, zone %8s ", zone->node, zone->name);
}

void proc_buddyinfo(FILE *out, const struct sy_pages_counts *counts)
{
	for (unsigned i = 0; i < counts->zone_count; i++) {
		const struct sy_zone_counts *zone = &counts->zones[i];

		if (!zone->managed)
			continue;
		print_zone(out, zone);
		for (unsigned order = 0; order < SY_ORDERS; order++) {
			uint64_t blocks = 0;

			for (unsigned type = 0; type < SY_MIGRATE_TYPES; type++)
				blocks += zone->free_blocks[type][order];
			fprintf(out, "%6" PRIu64 " ", blocks);
		}
		putc('\n', out);
	}
}

static void print_free(FILE *out, const struct sy_zone_counts *zone)
{
	for (unsigned type = 0; type < SY_MIGRATE_TYPES; type++) {
		fprintf(out, "Node %4u, zone %8s, type %12s ", zone->node, zone->name, type_names[type]);
		for (unsigned order = 0; order < SY_ORDERS; order++) {
			uint64_t blocks = zone->free_blocks[type][order];
			bool more = blocks >= MOST_COUNTED;

			fprintf(out, "%s%6" PRIu64 " ", more ? ">" : "", more ? MOST_COUNTED : blocks);
		}
		putc('\n', out);
	}
}

static void print_pageblocks(FILE *out, const struct sy_zone_counts *zone)
{
	print_zone(out, zone);
	for (unsigned type = 0; type < SY_MIGRATE_TYPES; type++)
		fprintf(out, "%12" PRIu64 " ", zone->pageblocks[type]);
	putc('\n', out);
}

void proc_pagetypeinfo(FILE *out, const struct sy_pages_counts *counts, unsigned pageblock_order)
{
	fprintf(out, "Page block order: %u\nPages per block:  %u\n\n", pageblock_order, 1u << pageblock_order);
	fprintf(out, "%-43s ", "Free pages count per migrate type at order");
	for (unsigned order = 0; order < SY_ORDERS; order++)
		fprintf(out, "%6u ", order);
	putc('\n', out);
	for (unsigned i = 0; i < counts->zone_count; i++)
		if (counts->zones[i].managed)
			print_free(out, &counts->zones[i]);

	fprintf(out, "\n%-23s", "Number of blocks type ");
	for (unsigned type = 0; type < SY_MIGRATE_TYPES; type++)
		fprintf(out, "%12s ", type_names[type]);
	putc('\n', out);
	for (unsigned i = 0; i < counts->zone_count; i++)
		if (counts->zones[i].managed)
			print_pageblocks(out, &counts->zones[i]);
}

bool proc_pass(FILE *out, enum pass pass, struct stage *stage, struct fault *fault)
{
	struct sy_pages_counts counts;
	struct exact exact;

	if (!stage->driver.pages)
		return refuse(fault, "a malloc has no free lists that --proc could print");
	if (!exact_run(&exact, stage, fault))
		return false;
	exact_count_pages(&exact, &counts);
	if (pass == PASS_BUDDYINFO)
		proc_buddyinfo(out, &counts);
	else
		proc_pagetypeinfo(out, &counts, stage->driver.scratch->run->pageblock_order);
	exact_release(&exact);
	return true;
}
