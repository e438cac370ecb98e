/*
 * The slab interface of a Linux kernel on slabyard: the life of caches, and the beginning of all.
 *
 * All slots. Counting and destroying a cache look at every CPU's slots. They are rare, so they run while the other CPUs wait
 * (stop_machine). Shrinking runs on each CPU for its own slots.
 *
 * Grace periods. A SLAB_TYPESAFE_BY_RCU cache without objects that is shut down gives its slabs to RCU at once. slab_common.c waits
 * for all callbacks and then releases the cache, which has no slab left by then. If slabs went to RCU only at the release, they
 * would come back to a cache that is gone.
 *
 * Written from the declarations in include/linux/slab.h and mm/slab.h.
 */
#include "adapter.h"

#include <linux/cpu.h>
#include <linux/init.h>
#include <linux/rcupdate.h>
#include <linux/stop_machine.h>

static_assert(offsetof(struct slab, __page_refcount) >= offsetof(struct sy_page, kernel), "what is behind a slab's state is the kernel's");

static struct kmem first_cache = {
	.common = {
		.name = "kmem_cache",
		.object_size = sizeof(struct kmem),
		.size = sizeof(struct kmem),
		.align = ARCH_KMALLOC_MINALIGN,
		.flags = SLAB_HWCACHE_ALIGN | SLAB_PANIC,
		.refcount = 1,
	},
};

/* slab_nomerge, as for Linux's allocators. slab_common.c has its own, which is private to it. */
static bool no_merging;

static int __init set_no_merging(char *text)
{
	no_merging = true;
	return 0;
}
early_param("slab_nomerge", set_no_merging);

static unsigned cache_flags_of(const struct kmem_cache *s)
{
	unsigned flags = SY__SINCE_6_12 ? SY_CACHE_KFREE : 0;

	if (s->flags & SLAB_HWCACHE_ALIGN)
		flags |= SY_CACHE_HWCACHE_ALIGN;
	if (s->flags & SLAB_TYPESAFE_BY_RCU)
		flags |= SY_CACHE_TYPESAFE_BY_RCU;
	if (s->flags & SLAB_RECLAIM_ACCOUNT)
		flags |= SY_CACHE_RECLAIMABLE;
	if (s->flags & SLAB_ACCOUNT)
		flags |= SY_CACHE_ACCOUNT;
	if (s->flags & SLAB_CACHE_DMA)
		flags |= SY_CACHE_DMA;
	if (s->flags & SLAB_CACHE_DMA32)
		flags |= SY_CACHE_DMA32;
	if (no_merging || SY__IS_KEPT_APART(s))
		flags |= SY_CACHE_NO_MERGE;
	return flags;
}

int sy__cache_begin(struct kmem_cache *s)
{
	const struct sy_cache_config creation = {
		.name = s->name,
		.size = s->object_size,
		.align = s->align,
		.flags = cache_flags_of(s),
		/* Called as what it is, see sy__construct in platform.h. */
		.constructor = (void (*)(void *, size_t))(void *)s->ctor,
	};
	struct kmem *kmem = kmem_of(s);
	struct sy_cache *cache;

	sy__log_creation(&creation, (uintptr_t)s);
	cache = sy__create_cache(&creation);
	if (!cache)
		return -ENOMEM;
	kmem->cache = cache;
	sy__aim_calls(kmem);
	s->size = cache->size;
	s->align = cache->align;
	return 0;
}

#if SY__SINCE_6_12
int do_kmem_cache_create(struct kmem_cache *s, const char *name, unsigned int size, struct kmem_cache_args *args, slab_flags_t flags)
{
	s->name = name;
	s->object_size = size;
	s->align = args->align;
	s->flags = flags;
	s->ctor = args->ctor;
	return sy__cache_begin(s);
}
#else
int __kmem_cache_create(struct kmem_cache *s, slab_flags_t flags)
{
	s->flags = flags;
	return sy__cache_begin(s);
}
#endif

struct ending {
	struct kmem *kmem;
	uint64_t alive; /* objects in use */
	struct page *kept;
};

/* Shrinks an unused cache until it has no slabs; these wait for a grace period. */
static int empty(void *context)
{
	struct ending *ending = context;
	struct sy_cache *cache = ending->kmem->cache;
	struct sy_cache_counts counts = { 0 };
	unsigned long flags;

	sy__begin(&flags, SY__GFP_NONE);
	WRITE_ONCE(sy__everybody_waits, true);
	sy__keep_begin();
	cache->policy->counts(cache, &counts);
	ending->alive = counts.objects_in_use;
	if (!ending->alive && cache->policy->shrink) {
		sy__log(SY__LOG_SHRINK, NULL, (uintptr_t)ending->kmem, 0, NUMA_NO_NODE);
		cache->policy->shrink(cache);
	}
	ending->kept = sy__keep_end();
	WRITE_ONCE(sy__everybody_waits, false);
	sy__end(flags);
	return 0;
}

static int destroy(void *context)
{
	struct ending *ending = context;
	unsigned long flags;

	sy__begin(&flags, SY__GFP_NONE);
	WRITE_ONCE(sy__everybody_waits, true);
	sy__keep_begin();
	if (sy_cache_destroy(ending->kmem->cache, &ending->alive))
		sy__log(SY__LOG_DESTROY, NULL, (uintptr_t)ending->kmem, 0, NUMA_NO_NODE);
	ending->kept = sy__keep_end();
	WRITE_ONCE(sy__everybody_waits, false);
	sy__end(flags);
	return 0;
}

/* The kernel holds the lock that keeps CPUs from coming and going. */
int __kmem_cache_shutdown(struct kmem_cache *s)
{
	struct ending ending = { .kmem = kmem_of(s) };

	stop_machine_cpuslocked(s->flags & SLAB_TYPESAFE_BY_RCU ? empty : destroy, &ending, NULL);
	sy__let_go(ending.kept);
	return ending.alive != 0;
}

void __kmem_cache_release(struct kmem_cache *s)
{
	struct ending ending = { .kmem = kmem_of(s) };

	if (s->flags & SLAB_TYPESAFE_BY_RCU)
		stop_machine(destroy, &ending, NULL);
	sy__let_go(ending.kept);
}

/* Runs as a task of the CPU, hence not in the middle of a quick call. */
static int shrink_here(void *context)
{
	struct kmem *kmem = context;
	struct page *kept;
	unsigned long flags;

	sy__begin(&flags, SY__GFP_NONE);
	sy__keep_begin();
	sy__log(SY__LOG_SHRINK, NULL, (uintptr_t)kmem, 0, NUMA_NO_NODE);
	kmem->cache->policy->shrink(kmem->cache);
	kept = sy__keep_end();
	sy__end(flags);
	sy__let_go(kept);
	return 0;
}

int __kmem_cache_shrink(struct kmem_cache *s)
{
	struct sy_cache *cache = kmem_of(s)->cache;
	struct sy_cache_counts counts = { 0 };
	unsigned long flags;
	unsigned cpu;

	cpus_read_lock();
	for_each_online_cpu(cpu)
		if (cache->policy->shrink)
			smp_call_on_cpu(cpu, shrink_here, kmem_of(s), false);
	cpus_read_unlock();
	sy__begin(&flags, SY__GFP_NONE);
	cache->policy->counts(cache, &counts);
	sy__end(flags);
	return counts.slabs != 0;
}

/* ---- The rest of the interface ---------------------------------------------------------------------------------- */

#ifdef CONFIG_PRINTK
void __kmem_obj_info(struct kmem_obj_info *info, void *object, struct slab *slab)
{
	info->kp_ptr = object;
	info->kp_slab = slab;
}
#endif

void __init kmem_cache_init(void)
{
	unsigned long flags;

	sy__begin(&flags, GFP_NOWAIT);
	sy__general_start(sy__linux_boot());
	sy__end(flags);
	kmem_cache = &first_cache.common;
	BUG_ON(sy__cache_begin(kmem_cache));
	slab_state = UP;
}

void __init kmem_cache_init_late(void)
{
	slab_state = FULL;
}
