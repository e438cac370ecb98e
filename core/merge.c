/*
 * Merging: caches whose objects can't be told apart are one cache.
 *
 * Each cache has slabs of its own that are only partly full, so the fewer caches, the fewer such slabs. As in Linux
 * 6.1 (mm/slab_common.c, for SLAB and SLUB alike), two caches become one when their pages are of the same kind
 * (reclaimable, DMA, charged), when an object of either fits the other's place exactly (the same size once it is
 * rounded up to words and to its alignment), and when nobody sees the difference: no constructor or destructor, no
 * grace period, and nobody asked for a cache of his own. The classes of kmalloc stay apart, as Linux 6.1 keeps them
 * for its checks on copies from and to user space.
 *
 * The oldest such cache wins. heap.c counts its users and destroys it with the last of them.
 */
#include "merge.h"

#include "geometry.h"
#include "list.h"

#define NEVER_MERGED (SY_CACHE_TYPESAFE_BY_RCU | SY_CACHE_NO_MERGE | SY_CACHE_KMALLOC)
#define SAME_WHEN_MERGED (SY_CACHE_RECLAIMABLE | SY_CACHE_DMA | SY_CACHE_DMA32 | SY_CACHE_ACCOUNT)

static bool mergeable(const struct sy_cache *cache)
{
	return !cache->constructor && !cache->destructor && !(cache->flags & NEVER_MERGED);
}

struct sy_cache *sy__merge_find(struct sy_heap *heap, const struct sy_cache *wanted, uint32_t least_align)
{
	size_t size = sy__align_up(sy__align_up(wanted->object_size, sizeof(void *)), wanted->align);

	if (!mergeable(wanted))
		return NULL;
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy_cache *cache = sy__entry(at, struct sy_cache, link);

		if (mergeable(cache) && !((cache->flags ^ wanted->flags) & SAME_WHEN_MERGED) && size == cache->size &&
		    cache->align >= least_align)
			return cache;
	}
	return NULL;
}
