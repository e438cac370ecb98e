/*
 * What Linux has asked of its allocator since 6.1: large allocations, which were the kernel's own; sets of caches for general allocation
 * (kmem_buckets); and a word on merging, sysfs and control groups.
 *
 * A set has a cache for each power of two up to KMALLOC_MAX_CACHE_SIZE, at the places where the kernel has those of its own sets. The
 * policy does not merge them with others: that is what sets are for.
 *
 * Control groups. Objects are not charged to one, as with the kernel's parameter cgroup.memory=nokmem: a policy's slabs have no room
 * for the owner of each object.
 */
#include "adapter.h"

#include <linux/error-injection.h>
#include <linux/fault-inject.h>
#include <linux/kmemleak.h>
#include <linux/module.h>
#include <linux/vmstat.h>
#include <trace/events/kmem.h>

void sy__linux_large_free(struct page *head)
{
	unsigned order = compound_order(head);

	mod_node_page_state(page_pgdat(head), NR_SLAB_UNRECLAIMABLE_B, -((long)PAGE_SIZE << order));
	__free_pages(head, order);
}

#if !SY__SINCE_6_12

/* Of a <linux/slab.h> in which kmalloc takes a cache from here under SLOB, too. */
struct kmem_cache *kmalloc_caches[NR_KMALLOC_TYPES][KMALLOC_SHIFT_HIGH + 1];

void *sy__linux_large_alloc(size_t size, gfp_t gfp, int node, unsigned long caller)
{
	return kmalloc_large_node(size, gfp, node);
}

#else

void *sy__linux_large_alloc(size_t size, gfp_t gfp, int node, unsigned long caller)
{
	unsigned order = get_order(size);
	struct page *page = node == NUMA_NO_NODE ? alloc_pages(gfp | __GFP_COMP, order) : alloc_pages_node(node, gfp | __GFP_COMP, order);
	void *object = page ? page_address(page) : NULL;

	if (page)
		mod_node_page_state(page_pgdat(page), NR_SLAB_UNRECLAIMABLE_B, (long)PAGE_SIZE << order);
	kmemleak_alloc(object, size, 1, gfp);
	trace_kmalloc(caller, object, size, PAGE_SIZE << order, gfp, node);
	return object;
}

void *__kmalloc_large_noprof(size_t size, gfp_t gfp)
{
	return sy__linux_large_alloc(size, gfp, NUMA_NO_NODE, _RET_IP_);
}
EXPORT_SYMBOL(__kmalloc_large_noprof);

void *__kmalloc_large_node_noprof(size_t size, gfp_t gfp, int node)
{
	return sy__linux_large_alloc(size, gfp, node, _RET_IP_);
}
EXPORT_SYMBOL(__kmalloc_large_node_noprof);

/* ---- Sets of caches ---------------------------------------------------------------------------------------------- */

#define SMALLEST order_base_2(KMALLOC_MIN_SIZE)

static void destroy_set(kmem_buckets *buckets, unsigned order)
{
	while (order-- > SMALLEST)
		kmem_cache_destroy((*buckets)[order]);
	kfree(buckets);
}

static struct kmem_cache *create_bucket(const char *name, unsigned size, slab_flags_t flags, unsigned useroffset, unsigned usersize,
                                        void (*ctor)(void *))
{
	char *whole = kasprintf(GFP_KERNEL, "%s-%u", name, size);
	struct kmem_cache *s = NULL;

	if (whole)
		s = kmem_cache_create_usercopy(whole, size, KMALLOC_MIN_SIZE, flags | SLAB_NO_MERGE, useroffset,
		                               useroffset < size ? min(usersize, size - useroffset) : 0, ctor);
	kfree(whole);
	return s;
}

/* In place of slab_common.c's, whose sets are copies of the kernel's own caches. */
kmem_buckets *kmem_buckets_create(const char *name, slab_flags_t flags, unsigned int useroffset, unsigned int usersize,
                                  void (*ctor)(void *))
{
	kmem_buckets *buckets;

	if (!IS_ENABLED(CONFIG_SLAB_BUCKETS))
		return ZERO_SIZE_PTR; /* an allocation from that is one of general kmalloc */
	buckets = kzalloc(sizeof(*buckets), GFP_KERNEL);
	for (unsigned order = SMALLEST; buckets && order <= KMALLOC_SHIFT_HIGH; order++) {
		(*buckets)[order] = create_bucket(name, 1u << order, flags, useroffset, usersize, ctor);
		if (!(*buckets)[order]) {
			destroy_set(buckets, order);
			return NULL;
		}
	}
	return buckets;
}

/* ---- What the kernel asks of its own allocator ------------------------------------------------------------------- */

/* In place of slab_common.c's: merging is the core's. */
int slab_unmergeable(struct kmem_cache *s)
{
	return true;
}

slab_flags_t kmem_cache_flags(slab_flags_t flags, const char *name)
{
	return flags;
}

#ifdef SLAB_SUPPORTS_SYSFS
/* Caches have no folders in /sys/kernel/slab. */
int sysfs_slab_alias(struct kmem_cache *s, const char *name)
{
	return 0;
}

void sysfs_slab_unlink(struct kmem_cache *s)
{
}

void sysfs_slab_release(struct kmem_cache *s)
{
	slab_kmem_cache_release(s);
}
#endif

/* True: there is nothing to charge. */
bool kmem_cache_charge(void *object, gfp_t gfp)
{
	return true;
}
EXPORT_SYMBOL(kmem_cache_charge);

#ifdef CONFIG_FAILSLAB
noinline int should_failslab(struct kmem_cache *s, gfp_t gfp)
{
	return __should_failslab(s, gfp) ? -ENOMEM : 0;
}
ALLOW_ERROR_INJECTION(should_failslab, ERRNO);
#endif

#ifdef CONFIG_SLAB_OBJ_EXT
/* Nor room for what would be charged. */
int alloc_slab_obj_exts(struct slab *slab, struct kmem_cache *s, gfp_t gfp, bool new_slab)
{
	return -ENOMEM;
}
#endif

#endif
