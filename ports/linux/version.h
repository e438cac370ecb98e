/*
 * What differs between the versions of Linux that the port is for: 6.1 and 6.12. Everything else in this folder is the same for both.
 *
 *                                 6.1                              6.12
 *   whose place we take           SLOB's (CONFIG_SLOB)             SLUB's; there is no other one left
 *   names of what allocates       kmem_cache_alloc                 kmem_cache_alloc_noprof: macros of the plain name count by caller
 *   kmalloc of a known size       __kmalloc; kmalloc_trace where   __kmalloc_cache
 *                                 <linux/slab.h> is changed
 *   arguments of kmalloc          size                             size and a set of caches (kmem_buckets) or NULL
 *   a page of slabs               the flag PG_slab                 the type PGTY_slab, in the word of the mapcount
 *   a cache's creation            all is in the structure          all is in arguments
 *   large allocations             slab_common.c                    the allocator (since.c)
 *   merging of caches             not with SLOB                    slab_common.c, unless we refuse (since.c)
 */
#ifndef SY_LINUX_VERSION_H
#define SY_LINUX_VERSION_H

#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/version.h>

#define SY__SINCE_6_12 (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0))

#if SY__SINCE_6_12

#if defined(CONFIG_SLUB_DEBUG) || defined(CONFIG_SLUB_TINY) || defined(CONFIG_KASAN) || defined(CONFIG_HARDENED_USERCOPY)
#error "slabyard takes the kernel's own allocator's place: turn its DEBUG and TINY off, and KASAN and HARDENED_USERCOPY"
#endif

#define SY__NAMED(name) name##_noprof
#define SY__KMALLOC_SIZE(size) DECL_BUCKET_PARAMS(size, buckets)
#define SY__BUCKETS PASS_BUCKET_PARAM(buckets)
#define SY__KMALLOC_CACHE __kmalloc_cache_noprof
#define SY__KMALLOC_CACHE_NODE __kmalloc_cache_node_noprof

#define __GFP_ATOMIC ((__force gfp_t)0) /* is gone: __GFP_HIGH says it */

/* The word of a page that says that it is ours, and its use (descriptor.h): its type, in the highest byte, the rest is its owner's. */
typedef unsigned int sy__mark_t;
#define SY__MARK type
#define SY__MARK_KIND 0xff000000u
#define SY__MARK_OURS ((unsigned)PGTY_slab << 24)
#define SY__MARK_NO_OBJECTS 1u
#define SY__MARK_OTHER 2u
#define SY__MARK_NONE UINT_MAX
#define SY__MARK_KEPT 0u

static inline void sy__tell_reclaimed(unsigned long pages)
{
	mm_account_reclaimed_pages(pages);
}

#define SY__IS_KEPT_APART(s) ((s)->flags & (SLAB_NO_MERGE | SLAB_NOLEAKTRACE))

static inline bool sy__shrinker_start(unsigned long (*count)(struct shrinker *, struct shrink_control *),
                                      unsigned long (*scan)(struct shrinker *, struct shrink_control *))
{
	struct shrinker *shrinker = shrinker_alloc(0, "slabyard");

	if (!shrinker)
		return false;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker_register(shrinker);
	return true;
}

#else

#define SY__NAMED(name) name
#define SY__KMALLOC_SIZE(size) size_t size
#define SY__BUCKETS NULL
#define SY__KMALLOC_CACHE kmalloc_trace
#define SY__KMALLOC_CACHE_NODE kmalloc_node_trace

typedef void *kmem_buckets; /* nobody has one */

/* That word is its flags. */
typedef unsigned long sy__mark_t;
#define SY__MARK flags
#define SY__MARK_KIND (1UL << PG_slab)
#define SY__MARK_OURS (1UL << PG_slab)
#define SY__MARK_NO_OBJECTS (1UL << PG_owner_priv_1)
#define SY__MARK_OTHER (1UL << PG_private)
#define SY__MARK_NONE 0UL
#define SY__MARK_KEPT (~(SY__MARK_OURS | SY__MARK_NO_OBJECTS | SY__MARK_OTHER)) /* what is the kernel's in it */

static inline void sy__tell_reclaimed(unsigned long pages)
{
	if (unlikely(current->reclaim_state))
		current->reclaim_state->reclaimed_slab += pages;
}

#define SY__IS_KEPT_APART(s) ((s)->usersize || (s)->flags & SLAB_NOLEAKTRACE)

static inline bool sy__shrinker_start(unsigned long (*count)(struct shrinker *, struct shrink_control *),
                                      unsigned long (*scan)(struct shrinker *, struct shrink_control *))
{
	static struct shrinker shrinker = { .seeks = DEFAULT_SEEKS };

	shrinker.count_objects = count;
	shrinker.scan_objects = scan;
	return !register_shrinker(&shrinker, "slabyard");
}

#endif

#endif
