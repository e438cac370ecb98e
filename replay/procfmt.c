/*
 * Memory at the end of a replay, as a Linux kernel prints it: /proc/buddyinfo, /proc/pagetypeinfo and /proc/slabinfo
 * (Documentation/filesystems/proc.rst; slabinfo(5), version 2.1), to the column. So every tool for these files reads ours, and a
 * diff against a recorded file shows the memory alone.
 *
 *   buddyinfo      per zone, free blocks by order
 *   pagetypeinfo   the same by migrate type, and pageblocks by migrate type at its end
 *   slabinfo       per cache, the newest first: its objects, its slabs, and how its per-CPU queues are tuned
 *   slabs          per cache, in that order: how slabs are laid out and how much is kept, as files of /sys/kernel/slab say it
 *
 * slabinfo. As in a kernel, free objects in per-CPU state count as active. Active slabs are all but the unused ones that a policy
 * keeps on a list of their own (SLAB's free list). Tunables are zero under allocators without queues of limited length, as under
 * SLUB. The columns about slabs are zero where caches share pages; a SLOB kernel has no slabinfo at all. Large allocations are in
 * no line.
 *
 * pagetypeinfo. The rows are those of a kernel without CMA and memory isolation, which our page allocator does not have. A kernel
 * stops counting a free list at 100,000 blocks, so that it does not hold the zone's lock for too long. So does this file, and
 * marks the figure with ">".
 *
 * Zones without managed pages are not shown, as in a kernel. This is formatted outside the core, which prints nothing.
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

static void print_cache(FILE *out, struct sy_cache *cache)
{
	struct sy_cache_description is;
	struct sy_cache_counts counts;

	sy_cache_describe(cache, &is);
	sy_cache_count(cache, &counts);
	fprintf(out, "%-17s %6" PRIu64 " %6" PRIu64 " %6" PRIu32 " %4" PRIu32 " %4" PRIu32, is.name,
	        counts.objects_in_use + counts.objects_cached, counts.objects, is.size, counts.slab_objects,
	        counts.slab_pages);
	fprintf(out, " : tunables %4" PRIu32 " %4" PRIu32 " %4" PRIu32, counts.limit, counts.batchcount, counts.shared);
	fprintf(out, " : slabdata %6" PRIu64 " %6" PRIu64 " %6" PRIu64 "\n", counts.slabs - counts.idle_slabs, counts.slabs,
	        counts.objects_shared);
}

void proc_slabinfo(FILE *out, struct sy_heap *heap)
{
	fputs("slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>"
	      " : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n", out);
	for (struct sy_cache *cache = NULL; (cache = sy_lab_cache_before(heap, cache));)
		print_cache(out, cache);
}

static void print_slabs(FILE *out, struct sy_heap *heap)
{
	fputs("name slab_size objs_per_slab pages min_partial cpu_partial sheaf_capacity\n", out);
	for (struct sy_cache *cache = NULL; (cache = sy_lab_cache_before(heap, cache));) {
		struct sy_cache_description is;
		struct sy_cache_counts counts;

		sy_cache_describe(cache, &is);
		sy_cache_count(cache, &counts);
		fprintf(out, "%s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n", is.name, is.size, counts.slab_objects,
		        counts.slab_pages, counts.min_partial, counts.cpu_partial, counts.sheaf_capacity);
	}
}

static void print_file(FILE *out, enum pass pass, const struct exact *exact)
{
	const struct driver *driver = exact->driver;
	struct sy_pages_counts counts;

	if (pass == PASS_SLABINFO) {
		proc_slabinfo(out, driver->heap);
		return;
	}
	if (pass == PASS_SLABS) {
		print_slabs(out, driver->heap);
		return;
	}
	exact_count_pages(exact, &counts);
	if (pass == PASS_BUDDYINFO)
		proc_buddyinfo(out, &counts);
	else
		proc_pagetypeinfo(out, &counts, driver->scratch->run->pageblock_order);
}

bool proc_pass(FILE *out, enum pass pass, struct stage *stage, struct fault *fault)
{
	struct exact exact;

	if (!stage->driver.pages)
		return refuse(fault, "a malloc has no pages and caches that could be printed as a kernel prints its own");
	if (!exact_run(&exact, stage, false, fault))
		return false;
	print_file(out, pass, &exact);
	exact_release(&exact);
	return true;
}
