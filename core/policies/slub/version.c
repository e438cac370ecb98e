/*
 * SLUB: what depends on the version of Linux.
 *
 * The tunable `linux` names a version, and a version stands for itself and those after it up to the next one here. What differs, by
 * documentation, commit messages and behaviour:
 *
 *   6.1     the base, which the other files describe.
 *   6.12    Orders (6.7, "mm/slub: remove min_objects loop from calculate_order()" and "attempt to find layouts up to 1/2 waste"):
 *           the number of wanted objects gives the least order and is not lowered any more; a slab may waste a half before SLUB is
 *           content with whatever holds one object.
 *           Merging (6.2, "mm, slab: ignore hardened usercopy parameters when disabled"): in a kernel that does not check copies
 *           to user space, kmalloc's classes serve caches too. They are the oldest caches, so each cache of such a size becomes
 *           one of them: dentries live in kmalloc-rcl-192. The tunable `usercopy` says whether the kernel checks.
 *           Free pointers (6.11, "slab: add support for freeptr_offset"): those of a cache with a grace period may lie in the object where
 *           the cache says so.
 *           With `tiny` it is CONFIG_SLUB_TINY, which took SLOB's place for small systems: slabs of two pages at most; no slabs of
 *           CPUs, and no empty ones kept; reclaimable objects among the others, in caches and in kmalloc, which so has one set of
 *           classes; copies unchecked, as is usual there. Each object is taken from the first slab of the node's list under
 *           its lock (bulk.c).
 *   6.18    Sheaves (sheaves.c) on caches that ask for them: vm_area_struct and maple_node, 32 objects each. They merge with no
 *           other. /sys/kernel/slab/CACHE/sheaf_capacity of a live kernel shows so.
 *   7.0     Sheaves on all caches but those that SLUB boots with. The capacity goes by the object's size: 60 objects below 256 bytes,
 *           26 below 1024, 12 below a page, 4 from there on, and as many more as the kmalloc class of the sheaf has room for, which
 *           makes 28 of the 26; a larger request of the cache wins. No slabs of CPUs any more: below the sheaves all is as with
 *           `tiny`, but that empty slabs are kept as ever and a sheaf is filled in one go.
 *
 * What stayed the same in all of them, by the same sources: the wanted objects by number of CPUs, the limits of partial lists of
 * CPUs, as long as there are such (120, 52, 24, 6 objects by size), and of nodes (5 to 10 slabs), the least size and alignment of
 * objects, a word.
 */
#include "slub.h"

#define TINY_ORDER 1u
#define MOST_ORDER 3u

const char *const sy__slub_version_names[] = { [SLUB_6_1] = "6.1", [SLUB_6_12] = "6.12", [SLUB_6_18] = "6.18", [SLUB_7_0] = "7.0" };

/* Its first version that counts as this one: 256 times the major number, and the minor one. */
static const uint16_t since[] = { [SLUB_6_1] = 0, [SLUB_6_12] = 6 * 256 + 7, [SLUB_6_18] = 6 * 256 + 18, [SLUB_7_0] = 7 * 256 };

static int64_t version_of(uint16_t kernel)
{
	int64_t version = SLUB_VERSIONS - 1;

	while (since[version] > kernel)
		version--;
	return version;
}

struct sy__slub_rules sy__slub_rules_by(const int64_t *tunables, struct sy_kernel kernel)
{
	int64_t version = tunables[SLUB_LINUX] == SY_TUNABLE_AUTO ? version_of(kernel.version) : tunables[SLUB_LINUX];
	bool tiny = tunables[SLUB_TINY], checks = !tiny && !kernel.merges_classes;

	if (tunables[SLUB_USERCOPY] != SY_TUNABLE_AUTO)
		checks = tunables[SLUB_USERCOPY];
	if (tiny && version < SLUB_6_12) /* the workload's kernel is older than it */
		version = SLUB_6_12;
	return (struct sy__slub_rules){ (uint8_t)version, tiny, checks };
}

bool sy__slub_is_recorded(const struct sy_heap *heap)
{
	struct sy__slub_rules rules = sy__slub_rules(heap);

	return rules.version >= SLUB_6_18 && rules.version == version_of(heap->kernel.version) && !rules.tiny && !heap->tunables[SLUB_HARDEN];
}

bool sy__slub_may_waste_half(struct sy__slub_rules rules)
{
	return rules.version >= SLUB_6_12;
}

bool sy__slub_merges_classes(struct sy__slub_rules rules)
{
	return rules.version >= SLUB_6_12 && !rules.checks_copies;
}

unsigned sy__slub_most_order(struct sy__slub_rules rules)
{
	return rules.tiny ? TINY_ORDER : MOST_ORDER;
}

bool sy__slub_serves_by_node(struct sy__slub_rules rules)
{
	return rules.tiny || rules.version >= SLUB_7_0;
}

unsigned sy__slub_ignored_flags(struct sy__slub_rules rules)
{
	return rules.tiny ? SY_CACHE_RECLAIMABLE : 0;
}

unsigned sy__slub_kmalloc_types(struct sy__slub_rules rules)
{
	return rules.tiny ? 1u << SY__KMALLOC_NORMAL | 1u << SY__KMALLOC_DMA : SY__KMALLOC_ALL_TYPES;
}

bool sy__slub_idle(const struct sy_heap_config *config, unsigned tunable)
{
	struct sy__slub_rules rules = sy__slub_rules_by(config->tunables, config->kernel);
	bool sheaves = sy__slub_has_sheaves(rules) && !config->tunables[SLUB_HARDEN];

	switch (tunable) {
	case SLUB_CPU_PARTIAL:
		return sy__slub_serves_by_node(rules);
	case SLUB_LINUX: /* from 6.2 on all have the same */
		return rules.tiny;
	case SLUB_USERCOPY:
		return rules.version < SLUB_6_12 || !config->tunables[SLUB_MERGE];
	case SLUB_SHEAF_CAPACITY:
		return !sheaves;
	case SLUB_BARN_FULL:
		return !sheaves || config->tunables[SLUB_SHEAF_CAPACITY] == 0;
	default:
		return false;
	}
}

/* ---- Sheaves ------------------------------------------------------------------------------------------------------ */

bool sy__slub_has_sheaves(struct sy__slub_rules rules)
{
	return rules.version >= SLUB_6_18 && !rules.tiny;
}

const char *sy__slub_refuses(const struct sy_heap_config *config)
{
	if (config->tunables[SLUB_TINY] && config->tunables[SLUB_LINUX] == SLUB_6_1)
		return "slub: Linux 6.1 has no SLUB_TINY, which came in 6.2: leave out linux=6.1, or choose 6.12 or later with tiny=on";
	if ((!config->threads && !config->concurrent) || !sy__slub_has_sheaves(sy__slub_rules_by(config->tunables, config->kernel)))
		return NULL;
	return "slub: linux=6.18 and 7.0 have sheaves, which only replays have: choose 6.1 or 6.12";
}

/* The capacity that fills up the kmalloc class which a sheaf of `capacity` takes. */
static uint32_t filled_up(uint32_t capacity)
{
	size_t header = sizeof(struct sy__slub_sheaf), class = sy__kmalloc_linux_size(header + capacity * sizeof(void *));

	return (uint32_t)((class - header) / sizeof(void *));
}

static uint32_t by_size(size_t size)
{
	return filled_up(size >= SY_PAGE_SIZE ? 4 : size >= 1024 ? 12 : size >= 256 ? 26 : 60);
}

uint32_t sy__slub_capacity_by(const int64_t *tunables, struct sy__slub_rules rules, size_t size, uint32_t asked)
{
	int64_t wanted = tunables[SLUB_SHEAF_CAPACITY];
	uint32_t capacity = rules.version >= SLUB_7_0 ? by_size(size) : 0;

	if (!sy__slub_has_sheaves(rules) || asked == SY_NO_SHEAVES || (!capacity && !asked) || tunables[SLUB_HARDEN])
		return 0;
	if (wanted != SY_TUNABLE_AUTO)
		return (uint32_t)wanted;
	return capacity > asked ? capacity : asked;
}
