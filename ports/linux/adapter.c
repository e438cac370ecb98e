/*
 * The slab interface of a Linux kernel on slabyard: its calls. The life of caches is in caches.c.
 *
 * Whose place. In 6.1 it is SLOB's: with CONFIG_SLOB the kernel leaves everything to an allocator of one file. It compiles neither
 * kmalloc caches nor merging nor /proc/slabinfo, and its struct kmem_cache has nothing of an allocator in it. 6.12 has no such place,
 * so it is SLUB's, whose fields of struct kmem_cache stay unused; what SLUB does there that the kernel does itself in 6.1 is in
 * since.c. The core has kmalloc's classes and merging, slabinfo.c the third. A struct kmem is the kernel's structure followed by
 * ours; the boot cache of caches makes objects of that size. How the two versions differ is in version.h.
 *
 * Calls. A call of the core is made with interrupts off, on a slot of its CPU, and does not sleep. If it fails for lack of pages and
 * the caller may sleep, the pages are allocated outside and the call is made again (pages.c).
 *
 * Quick calls. Nine calls in ten can be served by a CPU's slot alone (struct sy_quick in core/types.h). They run with interrupts on.
 * The CPU sets a flag (sy__within) meanwhile. An interrupt that finds the flag set uses the CPU's second slot, with interrupts off.
 * Slot and flag cost three plain instructions each. Turning interrupts off and on, or a compare-and-exchange that notices an
 * interruption, would cost more than all the rest of a quick call (README.md has the figures). Work on a whole slot never runs in
 * an interrupt: it is a task of that CPU, or all CPUs wait for it.
 *
 * Allocations beyond the largest class are pages without the policy, as are large ones whose size the compiler knows. The kernel
 * does not know them as slabs, and kfree finds them by that.
 *
 * Written from the declarations in include/linux/slab.h and mm/slab.h.
 */
#include "adapter.h"

#include "core/kmalloc.h"

#include <linux/fault-inject.h>
#include <linux/kmemleak.h>
#include <linux/module.h>
#include <trace/events/kmem.h>

/* What struct kmem has for a cache, for general allocation. */
static struct {
	struct sy_heap *heap;
	void *(*alloc)(struct sy_heap *, unsigned slot, size_t size, unsigned flags, int node);
	void (*free)(struct sy_heap *, unsigned slot, void *object);
	void *(*quick_alloc)(struct sy_heap *, unsigned slot, size_t size, unsigned flags);
	bool (*quick_free)(struct sy_heap *, unsigned slot, struct sy_page *head, void *object);
	size_t most;      /* bytes: larger requests are pages, without the policy */
	bool no_dma;      /* the policy has no classes of DMA memory: such requests are pages too */
} general __ro_after_init;

/* ---- Calls that log ---------------------------------------------------------------------------------------------- */

/* They replace the policy's functions, so that kernels without a log check nothing. */
static void *logged_alloc(struct sy_cache *target, unsigned slot, unsigned flags, int node)
{
	struct kmem *kmem = (struct kmem *)target;
	void *object = kmem->cache->policy->cache_alloc(kmem->cache, slot, flags, node);

	sy__log_write(SY__LOG_ALLOC, object, (uintptr_t)kmem, __this_cpu_read(sy__call.gfp), node);
	return object;
}

static void logged_free(struct sy_cache *target, unsigned slot, void *object)
{
	struct kmem *kmem = (struct kmem *)target;

	sy__log_write(SY__LOG_FREE, object, (uintptr_t)kmem, 0, NUMA_NO_NODE);
	kmem->cache->policy->cache_free(kmem->cache, slot, object);
}

static void *logged_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	void *object = heap->policy->kmalloc(heap, slot, size, flags, node);

	sy__log_write(SY__LOG_KMALLOC, object, size, __this_cpu_read(sy__call.gfp), node);
	return object;
}

static void logged_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	sy__log_write(SY__LOG_KFREE, object, 0, 0, NUMA_NO_NODE);
	heap->policy->kfree(heap, slot, object);
}

void sy__aim_calls(struct kmem *kmem)
{
	const struct sy_policy *policy = kmem->cache->policy;

	kmem->target = sy__log_is_on ? (struct sy_cache *)kmem : kmem->cache;
	kmem->alloc = sy__log_is_on ? logged_alloc : policy->cache_alloc;
	kmem->free = sy__log_is_on ? logged_free : policy->cache_free;
	kmem->quick_alloc = sy__quick_calls(policy) ? policy->quick->cache_alloc : NULL;
	kmem->quick_free = sy__quick_calls(policy) ? policy->quick->cache_free : NULL;
}

/* ---- Calls of the core ------------------------------------------------------------------------------------------ */

struct request {
	struct kmem *kmem;      /* whose object is wanted; NULL: a kmalloc of `size` bytes */
	size_t size;
	gfp_t gfp;
	unsigned flags;         /* enum sy_flags */
	int node;
	const struct sy_cache_config *creation; /* else NULL: the request is for a cache */
};

DEFINE_PER_CPU(bool, sy__within);

static __always_inline void *ask(const struct request *request, unsigned slot)
{
	if (request->creation)
		return sy_cache_create(general.heap, request->creation);
	if (request->kmem)
		return request->kmem->alloc(request->kmem->target, slot, request->flags, request->node);
	return general.alloc(general.heap, slot, request->size, request->flags, request->node);
}

static void *attempt(const struct request *request, struct sy__stash *stash, struct sy__call *lacking)
{
	unsigned long flags;
	unsigned slot = sy__begin(&flags, request->gfp);
	struct sy__call *call = this_cpu_ptr(&sy__call);
	void *result;

	call->stash = stash;
	call->lacks = false;
	result = ask(request, slot);
	*lacking = *call;
	call->stash = NULL;
	sy__end(flags);
	return result;
}

/* Repeats a request that could not be served at once, with pages that its caller may sleep for. */
static noinline void *wait_for(const struct request *request)
{
	struct sy__stash stash = { 0 };
	struct sy__call lacking;
	void *result;

	/* The creation of a cache comes here at once. Elsewhere the page allocator applies the mask of early boot. */
	if (!request->creation && !gfpflags_allow_blocking(request->gfp & gfp_allowed_mask))
		return NULL;
	do
		result = attempt(request, &stash, &lacking);
	while (!result && lacking.lacks && sy__stash_fill(&stash, &lacking));
	sy__stash_empty(&stash);
	return result;
}

static inline unsigned flags_of(gfp_t gfp)
{
	return gfp & __GFP_THISNODE ? SY_THISNODE : 0;
}

/* The flags that choose kmalloc's class, and SY_ZERO. All of the object is zeroed: who enlarges it later relies on that. */
static inline unsigned kmalloc_flags_of(gfp_t gfp)
{
	unsigned flags = flags_of(gfp);

	if (unlikely(gfp & (__GFP_RECLAIMABLE | __GFP_DMA))) {
		if (gfp & __GFP_RECLAIMABLE)
			flags |= SY_RECLAIMABLE;
		if (IS_ENABLED(CONFIG_ZONE_DMA) && gfp & __GFP_DMA)
			flags |= SY_DMA;
	}
	return flags | (want_init_on_alloc(gfp) ? SY_ZERO : 0);
}

/* The node, or none if it has no memory or is the only one: there would be no slabs of it to look for. As in Linux's allocators. */
static inline int node_with_memory(int node)
{
	return IS_ENABLED(CONFIG_NUMA) && node != NUMA_NO_NODE && node_state(node, N_NORMAL_MEMORY) ? node : NUMA_NO_NODE;
}

static inline bool wanted(struct kmem_cache *s, gfp_t gfp)
{
	might_alloc(gfp & gfp_allowed_mask);
	return !IS_ENABLED(CONFIG_FUNCTION_ERROR_INJECTION) || !should_failslab(s, gfp);
}

/* ---- Caches ----------------------------------------------------------------------------------------------------- */

static noinline void *cache_wait(struct kmem *kmem, gfp_t gfp, int node)
{
	const struct request request = { .kmem = kmem, .gfp = gfp, .flags = flags_of(gfp), .node = node };

	return wait_for(&request);
}

/* With interrupts off. Policies without quick calls have it inline, the others a call away. */
static __always_inline void *cache_alloc_shut(struct kmem *kmem, gfp_t gfp, int node)
{
	unsigned long flags;
	unsigned slot = sy__begin(&flags, gfp);
	void *object = kmem->alloc(kmem->target, slot, flags_of(gfp), node);

	sy__end(flags);
	return likely(object) ? object : cache_wait(kmem, gfp, node);
}

static noinline void *cache_alloc_slow(struct kmem *kmem, gfp_t gfp)
{
	return cache_alloc_shut(kmem, gfp, NUMA_NO_NODE);
}

static __always_inline void *cache_alloc(struct kmem_cache *s, gfp_t gfp, int node)
{
	struct kmem *kmem = kmem_of(s);
	void *object = NULL;

	if (unlikely(!wanted(s, gfp)))
		return NULL;
	if (node != NUMA_NO_NODE || !kmem->quick_alloc) {
		object = cache_alloc_shut(kmem, gfp, node);
	} else {
		if (sy__enter()) {
			object = kmem->quick_alloc(kmem->target, smp_processor_id());
			sy__leave();
		}
		if (unlikely(!object))
			object = cache_alloc_slow(kmem, gfp);
	}
	if (unlikely(!object))
		return NULL;
	if (unlikely(slab_want_init_on_alloc(gfp, s)))
		memset(object, 0, s->object_size);
	kmemleak_alloc_recursive(object, s->object_size, 1, s->flags, gfp);
	return object;
}

void *SY__NAMED(kmem_cache_alloc)(struct kmem_cache *s, gfp_t gfp)
{
	void *object = cache_alloc(s, gfp, NUMA_NO_NODE);

	trace_kmem_cache_alloc(_RET_IP_, object, s, gfp, NUMA_NO_NODE);
	return object;
}
EXPORT_SYMBOL(SY__NAMED(kmem_cache_alloc));

void *SY__NAMED(kmem_cache_alloc_lru)(struct kmem_cache *s, struct list_lru *lru, gfp_t gfp)
{
	void *object = cache_alloc(s, gfp, NUMA_NO_NODE);

	trace_kmem_cache_alloc(_RET_IP_, object, s, gfp, NUMA_NO_NODE);
	return object;
}
EXPORT_SYMBOL(SY__NAMED(kmem_cache_alloc_lru));

void *SY__NAMED(kmem_cache_alloc_node)(struct kmem_cache *s, gfp_t gfp, int node)
{
	void *object = cache_alloc(s, gfp, node_with_memory(node));

	trace_kmem_cache_alloc(_RET_IP_, object, s, gfp, node);
	return object;
}
EXPORT_SYMBOL(SY__NAMED(kmem_cache_alloc_node));

static __always_inline void cache_free_shut(struct kmem *kmem, void *object)
{
	unsigned long flags;
	unsigned slot = sy__begin(&flags, SY__GFP_NONE);

	kmem->free(kmem->target, slot, object);
	sy__end(flags);
}

static noinline void cache_free_slow(struct kmem *kmem, void *object)
{
	cache_free_shut(kmem, object);
}

static __always_inline void cache_free(struct kmem_cache *s, void *object)
{
	struct kmem *kmem = kmem_of(s);
	bool done = false;

	kmemleak_free_recursive(object, s->flags);
	if (!kmem->quick_free) {
		cache_free_shut(kmem, object);
		return;
	}
	if (sy__enter()) {
		done = kmem->quick_free(kmem->target, smp_processor_id(), object);
		sy__leave();
	}
	if (unlikely(!done))
		cache_free_slow(kmem, object);
}

void kmem_cache_free(struct kmem_cache *s, void *object)
{
	trace_kmem_cache_free(_RET_IP_, object, s);
	cache_free(s, object);
}
EXPORT_SYMBOL(kmem_cache_free);

void kmem_cache_free_bulk(struct kmem_cache *s, size_t count, void **objects)
{
	for (size_t i = 0; i < count; i++)
		if (s)
			kmem_cache_free(s, objects[i]);
		else
			kfree(objects[i]);
}
EXPORT_SYMBOL(kmem_cache_free_bulk);

int SY__NAMED(kmem_cache_alloc_bulk)(struct kmem_cache *s, gfp_t gfp, size_t count, void **objects)
{
	for (size_t i = 0; i < count; i++) {
		objects[i] = SY__NAMED(kmem_cache_alloc)(s, gfp);
		if (!objects[i]) {
			kmem_cache_free_bulk(s, i, objects);
			return 0;
		}
	}
	return count;
}
EXPORT_SYMBOL(SY__NAMED(kmem_cache_alloc_bulk));

/* ---- General allocation ----------------------------------------------------------------------------------------- */

static noinline void *general_wait(size_t size, gfp_t gfp, int node)
{
	const struct request request = { .size = size, .gfp = gfp, .flags = kmalloc_flags_of(gfp), .node = node };

	return wait_for(&request);
}

static __always_inline void *general_alloc_shut(size_t size, gfp_t gfp, unsigned flags, int node)
{
	unsigned long interrupts;
	unsigned slot = sy__begin(&interrupts, gfp);
	void *object = general.alloc(general.heap, slot, size, flags, node);

	sy__end(interrupts);
	return likely(object) ? object : general_wait(size, gfp, node);
}

static noinline void *general_alloc_slow(size_t size, gfp_t gfp)
{
	return general_alloc_shut(size, gfp, kmalloc_flags_of(gfp), NUMA_NO_NODE);
}

static __always_inline void *general_alloc(size_t size, gfp_t gfp, int node, unsigned long caller)
{
	unsigned flags = kmalloc_flags_of(gfp);
	void *object = NULL;

	if (unlikely(!size))
		return ZERO_SIZE_PTR;
	if (unlikely(size > general.most || (flags & SY_DMA && general.no_dma)))
		return sy__linux_large_alloc(size, gfp, node, caller);
	if (unlikely(!wanted(NULL, gfp)))
		return NULL;
	if (node != NUMA_NO_NODE || !general.quick_alloc) {
		object = general_alloc_shut(size, gfp, flags, node);
	} else {
		if (sy__enter()) {
			object = general.quick_alloc(general.heap, smp_processor_id(), size, flags);
			sy__leave();
		}
		if (unlikely(!object))
			object = general_alloc_slow(size, gfp);
	}
	kmemleak_alloc(object, size, 1, gfp);
	if (trace_kmalloc_enabled())
		trace_kmalloc(caller, object, size, object ? __ksize(object) : 0, gfp, node);
	return object;
}

void *SY__NAMED(__kmalloc)(size_t size, gfp_t gfp)
{
	return general_alloc(size, gfp, NUMA_NO_NODE, _RET_IP_);
}
EXPORT_SYMBOL(SY__NAMED(__kmalloc));

/* Of a set of caches, or in general where there is none. */
static __always_inline void *bucket_alloc(kmem_buckets *buckets, size_t size, gfp_t gfp, int node, unsigned long caller)
{
	struct kmem_cache *s = sy__bucket(buckets, size);
	void *object;

	if (likely(!s))
		return general_alloc(size, gfp, node, caller);
	object = cache_alloc(s, gfp, node);
	trace_kmalloc(caller, object, size, s->size, gfp, node);
	return object;
}

void *SY__NAMED(__kmalloc_node)(SY__KMALLOC_SIZE(size), gfp_t gfp, int node)
{
	return bucket_alloc(SY__BUCKETS, size, gfp, node_with_memory(node), _RET_IP_);
}
EXPORT_SYMBOL(SY__NAMED(__kmalloc_node));

void *SY__NAMED(__kmalloc_node_track_caller)(SY__KMALLOC_SIZE(size), gfp_t gfp, int node, unsigned long caller)
{
	return bucket_alloc(SY__BUCKETS, size, gfp, node_with_memory(node), caller);
}
EXPORT_SYMBOL(SY__NAMED(__kmalloc_node_track_caller));

/* By kmalloc of a size that the compiler knows, with the kernel's own cache for it, of which there are none. */
void *SY__KMALLOC_CACHE(struct kmem_cache *s, gfp_t gfp, size_t size)
{
	return general_alloc(size, gfp, NUMA_NO_NODE, _RET_IP_);
}
EXPORT_SYMBOL(SY__KMALLOC_CACHE);

void *SY__KMALLOC_CACHE_NODE(struct kmem_cache *s, gfp_t gfp, int node, size_t size)
{
	return general_alloc(size, gfp, node_with_memory(node), _RET_IP_);
}
EXPORT_SYMBOL(SY__KMALLOC_CACHE_NODE);

static __always_inline void general_free_shut(void *object)
{
	unsigned long flags;
	unsigned slot = sy__begin(&flags, SY__GFP_NONE);

	general.free(general.heap, slot, object);
	sy__end(flags);
}

static noinline void general_free_slow(void *object)
{
	general_free_shut(object);
}

void kfree(const void *object)
{
	struct page *page;
	bool done = false;

	trace_kfree(_RET_IP_, object);
	if (unlikely(ZERO_OR_NULL_PTR(object)))
		return;
	kmemleak_free(object);
	page = virt_to_head_page(object);
	if (unlikely(!sy__page_is_ours(sy__page_of_linux(page)))) {
		sy__linux_large_free(page);
		return;
	}
	if (!general.quick_free) {
		general_free_shut((void *)object);
		return;
	}
	if (sy__enter()) {
		done = general.quick_free(general.heap, smp_processor_id(), sy__page_of_linux(page), (void *)object);
		sy__leave();
	}
	if (unlikely(!done))
		general_free_slow((void *)object);
}
EXPORT_SYMBOL(kfree);

size_t __ksize(const void *object)
{
	struct sy_heap *heap = general.heap;
	struct page *page;
	unsigned long flags;
	size_t bytes;

	if (unlikely(ZERO_OR_NULL_PTR(object)))
		return 0;
	page = virt_to_head_page(object);
	if (!sy__page_is_ours(sy__page_of_linux(page)))
		return page_size(page);
	sy__begin(&flags, SY__GFP_NONE);
	bytes = heap->policy->usable_size(heap, object);
	sy__end(flags);
	return bytes;
}

size_t kmalloc_size_roundup(size_t size)
{
	const struct sy_heap *heap = general.heap;

	if (!size || size > KMALLOC_MAX_SIZE || !heap->policy->serves_classes || heap->sizing.classes != SY_CLASSES_LINUX)
		return size;
	return sy__kmalloc_linux_size(size) ?: PAGE_SIZE << get_order(size);
}
#if !SY__SINCE_6_12
EXPORT_SYMBOL(kmalloc_size_roundup); /* since then slab_common.c exports it */
#endif

/* ---- Beginning -------------------------------------------------------------------------------------------------- */

struct sy_cache *sy__create_cache(const struct sy_cache_config *creation)
{
	const struct request request = { .gfp = GFP_KERNEL, .creation = creation };

	return wait_for(&request);
}

void __init sy__general_start(struct sy_heap *heap)
{
	general.heap = heap;
	general.alloc = sy__log_is_on ? logged_kmalloc : heap->policy->kmalloc;
	general.free = sy__log_is_on ? logged_kfree : heap->policy->kfree;
	general.quick_alloc = sy__quick_calls(heap->policy) ? heap->policy->quick->kmalloc : NULL;
	general.quick_free = sy__quick_calls(heap->policy) ? heap->policy->quick->kfree : NULL;
	general.most = heap->policy->serves_classes ? 2 * PAGE_SIZE : SIZE_MAX;
	general.no_dma = !heap->policy->serves_classes || heap->sizing.classes != SY_CLASSES_LINUX;
}
