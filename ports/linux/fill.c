/*
 * The test program of Kyritsis et al. inside a kernel: how much of SLOB's pages is unused while many objects come and go.
 *
 * With the boot parameter slabyard.fill=1, after everything else has started, OBJECTS objects of random size are allocated by kmalloc,
 * then freed in the order of their allocation; for sizes up to 256 bytes, 4 KiB and 16 KiB. Sizes are drawn as in
 * lab/slabyard/study/filling.py, so a replay makes the same calls. Every STEP calls the kernel's log gets a line:
 *
 *     slabyard.fill: MOST CALLS PAGES UNUSED
 *
 * the greatest size, the calls so far, the pages that SLOB has for objects, and the bytes in them that are free. Requests of a page or
 * more are none of these pages. The last line is "slabyard.fill: done".
 *
 * Linux's SLOB keeps a page's free units in the page's descriptor, so all pages are looked at. A kernel on slabyard adds up the
 * same by its heap (check.c). Other allocators have no pages that all sizes share: there the line is "slabyard.fill: not here".
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "slab.h"

enum { OBJECTS = 20000, STEP = 500, UNIT = 2 }; /* UNIT: bytes of SLOB's */

static const u32 greatest[] = { 256, 4096, 16384 };
static bool wanted;

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "slabyard."
module_param_named(fill, wanted, bool, 0444);

/* Of a kernel on slabyard; in others there is none. False: its policy has no such pages. */
bool __weak sy__linux_unused(u64 *pages, u64 *bytes);

#ifdef CONFIG_SLOB
static bool __init look_at_pages(u64 *pages, u64 *bytes)
{
	struct zone *zone;

	*pages = *bytes = 0;
	for_each_populated_zone(zone)
		for (unsigned long number = zone->zone_start_pfn; number < zone_end_pfn(zone); number++) {
			struct page *page = pfn_to_online_page(number);

			if (!page || !PageSlab(page))
				continue;
			++*pages;
			*bytes += (u64)((struct slab *)page)->units * UNIT;
		}
	return true;
}
#else
static bool __init look_at_pages(u64 *pages, u64 *bytes)
{
	return false;
}
#endif

static bool __init look(u32 most, u32 calls)
{
	u64 pages, bytes;

	if (!(sy__linux_unused ? sy__linux_unused : look_at_pages)(&pages, &bytes))
		return false;
	pr_info("slabyard.fill: %u %u %llu %llu\n", most, calls, pages, bytes);
	return true;
}

static void __init run(void **objects, u32 most)
{
	u32 drawn = 1, calls = 0;

	while (calls < OBJECTS) {
		drawn = drawn * 1664525 + 1013904223;
		objects[calls++] = kmalloc(1 + ((u64)drawn * most >> 32), GFP_KERNEL);
		if (calls % STEP == 0)
			look(most, calls);
		cond_resched();
	}
	while (calls < 2 * OBJECTS) {
		kfree(objects[calls++ - OBJECTS]);
		if (calls % STEP == 0)
			look(most, calls);
		cond_resched();
	}
}

static int __init fill(void)
{
	void **objects;

	if (!wanted)
		return 0;
	objects = vmalloc(OBJECTS * sizeof(*objects));
	for (u32 i = 0; objects && i < ARRAY_SIZE(greatest); i++) {
		if (!look(greatest[i], 0)) {
			pr_info("slabyard.fill: not here\n");
			break;
		}
		run(objects, greatest[i]);
	}
	vfree(objects);
	pr_info("slabyard.fill: done\n");
	return 0;
}
late_initcall(fill);
