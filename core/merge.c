/*
 * Merging: caches whose objects cannot be told apart become one cache.
 *
 * Each cache has partly full slabs of its own, so fewer caches waste less. As in Linux 6.1 (mm/slab_common.c, for SLAB and SLUB
 * alike), two caches merge when
 *
 *   - their pages are of one kind (reclaimable, DMA, charged);
 *   - an object of either fits the other's place exactly: the sizes are equal, rounded up to words and to the alignment;
 *   - nobody sees the difference: no constructor, no destructor, no grace period, no request for a cache of one's own.
 *
 * The classes of kmalloc stay apart, as in Linux 6.1, which checks copies from and to user space by them. Since 6.2 they serve
 * other caches too in a kernel that does not check (no CONFIG_HARDENED_USERCOPY).
 *
 * The oldest matching cache wins. heap.c counts its users and destroys it with the last of them.
 */
#include "merge.h"

#include "geometry.h"
#include "list.h"

#define NEVER_MERGED (SY_CACHE_TYPESAFE_BY_RCU | SY_CACHE_NO_MERGE)
#define SAME_WHEN_MERGED (SY_CACHE_RECLAIMABLE | SY_CACHE_DMA | SY_CACHE_DMA32 | SY_CACHE_ACCOUNT)

static bool mergeable(const struct sy_cache *cache, unsigned classes)
{
	if (cache->flags & SY_CACHE_KMALLOC)
		return cache->flags & classes;
	return !cache->constructor && !cache->destructor && !(cache->flags & NEVER_MERGED);
}

struct sy_cache *sy__merge_find(struct sy_heap *heap, const struct sy_cache *wanted, struct sy__merge_rules rules)
{
	size_t size = sy__align_up(sy__align_up(wanted->object_size, sizeof(void *)), wanted->align);

	if (!mergeable(wanted, 0))
		return NULL;
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy_cache *cache = sy__entry(at, struct sy_cache, link);

		if (mergeable(cache, rules.classes) && !((cache->flags ^ wanted->flags) & SAME_WHEN_MERGED & ~rules.indifferent) &&
		    size == cache->size && cache->align >= rules.least_align)
			return cache;
	}
	return NULL;
}
