/*
 * What an allocator costs inside a kernel: a benchmark at boot, where the parameter slabyard.bench=1 asks for it.
 *
 * The file is built into every kernel of the lab, those on Linux's own allocators too, so all are measured by the same
 * instructions. It knows an allocator by the kernel's interface alone. Two interfaces are measured, a cache of objects of one
 * size (kmem_cache_alloc and kmem_cache_free) and kmalloc with a size that the compiler doesn't know, in four patterns:
 *
 *     pair      an object is allocated and freed at once, PAIRS times: the hot path, nothing else
 *     order     OBJECTS objects are allocated, then freed in the order of their allocation
 *     reverse   the same, the last one freed first
 *     shuffled  the same, in an order drawn once, the same in every kernel
 *
 * One round runs a pattern between two readings of the processor's time stamp counter. Rounds repeat until they have taken BUDGET
 * cycles, at least FEWEST and at most MOST times, so that an allocator with long searches is measured in bounded time too. WARM
 * rounds before them bring the slabs and are not counted. An interrupt or a busy host spoils few rounds, and not the median.
 *
 * On arm64 the counter is the generic timer's, which is slower than the processor; its ticks stand for cycles then.
 *
 * It runs as the last initcall, with interrupts on, on one CPU, before any program runs. Each measurement is a line of the
 * kernel's log, in tenths of a cycle for one allocation and its free:
 *
 *     slabyard.bench: INTERFACE PATTERN SIZE MEDIAN TENTH NINETIETH ALLOCATION ROUNDS
 *
 * These are the median, the 10% and 90% quantiles over the rounds, and the median of the allocation's part (0 for pairs, which
 * are not divided). Boot with slab_nomerge: otherwise the caches here are merged with those of kmalloc, whose slabs have other
 * people's objects. A measurement without memory is a line that says so. "slabyard.bench: done" is the last line.
 *
 * At the end a cache of type SLAB_TYPESAFE_BY_RCU is used, destroyed and waited for. An allocator that gets this wrong crashes
 * the kernel here.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/workqueue.h>

enum { PAIRS = 1000, OBJECTS = 512, WARM = 3, FEWEST = 11, MOST = 201 };
#define BUDGET 40000000ull

/* What is measured: objects of a cache, or of kmalloc where there is none. */
struct subject {
	struct kmem_cache *cache;
	size_t size;
};

/* One round; false where there was no memory. `allocation` and `whole` are cycles. */
typedef bool round_fn(const struct subject *subject, const u16 *order, u64 *allocation, u64 *whole);

struct pattern {
	const char *name;
	u32 operations;
	round_fn *of_cache, *of_kmalloc;
	const u16 *order;
};

static const size_t sizes[] = { 8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096 };
static void *objects[OBJECTS];
static u16 forward[OBJECTS], backward[OBJECTS], drawn[OBJECTS];
static u64 wholes[MOST], allocations[MOST];
static bool wanted;

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "slabyard."
module_param_named(bench, wanted, bool, 0444);

/* Reads the counter itself, because get_cycles() is zero in a user-mode kernel. The fences let earlier instructions end first. */
static __always_inline u64 now(void)
{
#ifdef CONFIG_ARM64
	u64 count;

	asm volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(count) : : "memory");
	return count;
#else
	u32 low, high;

	asm volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
	return (u64)high << 32 | low;
#endif
}

/* Objects of the subject. Inlined into each of the rounds below, where the compiler knows whether there is a cache. */
static __always_inline void *get(const struct subject *subject, bool of_cache)
{
	return of_cache ? kmem_cache_alloc(subject->cache, GFP_KERNEL) : kmalloc(subject->size, GFP_KERNEL);
}

static __always_inline void put(const struct subject *subject, bool of_cache, void *object)
{
	if (of_cache)
		kmem_cache_free(subject->cache, object);
	else
		kfree(object);
}

static __always_inline bool pairs(const struct subject *subject, bool of_cache, u64 *allocation, u64 *whole)
{
	u64 start = now();

	for (u32 i = 0; i < PAIRS; i++) {
		void *object = get(subject, of_cache);

		if (unlikely(!object))
			return false;
		put(subject, of_cache, object);
	}
	*whole = now() - start;
	*allocation = 0;
	return true;
}

static __always_inline bool batch(const struct subject *subject, bool of_cache, const u16 *order, u64 *allocation, u64 *whole)
{
	u64 start = now(), between;
	u32 count = 0;

	while (count < OBJECTS && (objects[count] = get(subject, of_cache)))
		count++;
	between = now();
	if (unlikely(count < OBJECTS)) {
		while (count)
			put(subject, of_cache, objects[--count]);
		return false;
	}
	for (u32 i = 0; i < OBJECTS; i++)
		put(subject, of_cache, objects[order[i]]);
	*whole = now() - start;
	*allocation = between - start;
	return true;
}

static noinline bool pairs_of_cache(const struct subject *subject, const u16 *order, u64 *allocation, u64 *whole)
{
	return pairs(subject, true, allocation, whole);
}

static noinline bool pairs_of_kmalloc(const struct subject *subject, const u16 *order, u64 *allocation, u64 *whole)
{
	return pairs(subject, false, allocation, whole);
}

static noinline bool batch_of_cache(const struct subject *subject, const u16 *order, u64 *allocation, u64 *whole)
{
	return batch(subject, true, order, allocation, whole);
}

static noinline bool batch_of_kmalloc(const struct subject *subject, const u16 *order, u64 *allocation, u64 *whole)
{
	return batch(subject, false, order, allocation, whole);
}

static const struct pattern patterns[] = {
	{ "pair", PAIRS, pairs_of_cache, pairs_of_kmalloc, forward },
	{ "order", OBJECTS, batch_of_cache, batch_of_kmalloc, forward },
	{ "reverse", OBJECTS, batch_of_cache, batch_of_kmalloc, backward },
	{ "shuffled", OBJECTS, batch_of_cache, batch_of_kmalloc, drawn },
};

static int __init compare(const void *left, const void *right)
{
	u64 a = *(const u64 *)left, b = *(const u64 *)right;

	return a < b ? -1 : a > b;
}

/* Tenths of a cycle for one operation: a quantile, in tenths too, of sorted rounds. */
static u64 __init quantile(const u64 *sorted, u32 rounds, u32 tenths, u32 operations)
{
	return div_u64(sorted[(rounds - 1) * tenths / 10] * 10 + operations / 2, operations);
}

static void __init measure(const struct subject *subject, const struct pattern *pattern)
{
	round_fn *run = subject->cache ? pattern->of_cache : pattern->of_kmalloc;
	const char *interface = subject->cache ? "cache" : "kmalloc";
	u64 spent = 0, unused;
	u32 rounds = 0;
	bool there = true;

	for (u32 i = 0; there && i < WARM; i++)
		there = run(subject, pattern->order, &unused, &unused);
	while (there && rounds < MOST && (rounds < FEWEST || spent < BUDGET)) {
		there = run(subject, pattern->order, &allocations[rounds], &wholes[rounds]);
		spent += wholes[rounds++];
		cond_resched();
	}
	if (!there) {
		pr_warn("slabyard.bench: no memory for %s %s %zu\n", interface, pattern->name, subject->size);
		return;
	}
	sort(wholes, rounds, sizeof(*wholes), compare, NULL);
	sort(allocations, rounds, sizeof(*allocations), compare, NULL);
	pr_info("slabyard.bench: %s %s %zu %llu %llu %llu %llu %u\n", interface, pattern->name, subject->size,
		quantile(wholes, rounds, 5, pattern->operations), quantile(wholes, rounds, 1, pattern->operations),
		quantile(wholes, rounds, 9, pattern->operations), quantile(allocations, rounds, 5, pattern->operations), rounds);
}

static void __init draw_orders(void)
{
	u32 random = 1;

	for (u32 i = 0; i < OBJECTS; i++) {
		forward[i] = drawn[i] = (u16)i;
		backward[i] = (u16)(OBJECTS - 1 - i);
	}
	for (u32 i = OBJECTS - 1; i > 0; i--) {
		u32 other;

		random = random * 1664525 + 1013904223;
		other = (random >> 16) % (i + 1);
		swap(drawn[i], drawn[other]);
	}
}

/* The kernel releases the cache in a work item, a grace period after its destruction. So this waits for the work item, and then
 * for the callbacks that it leaves to RCU. */
static void __init end_typesafe_cache(void)
{
	struct kmem_cache *cache = kmem_cache_create("slabyard-bench-typesafe", 192, 0, SLAB_TYPESAFE_BY_RCU, NULL);
	const struct subject subject = { cache, 192 };
	u64 unused;

	if (!cache || !batch_of_cache(&subject, drawn, &unused, &unused))
		pr_warn("slabyard.bench: no memory for a cache that waits for grace periods\n");
	kmem_cache_destroy(cache);
	__flush_workqueue(system_wq);
	rcu_barrier();
}

static int __init bench(void)
{
	if (!wanted)
		return 0;
	draw_orders();
	migrate_disable();
	for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct subject of_kmalloc = { NULL, sizes[i] }, of_cache = { NULL, sizes[i] };
		char name[32];

		snprintf(name, sizeof(name), "slabyard-bench-%zu", sizes[i]);
		of_cache.cache = kmem_cache_create(name, sizes[i], 0, 0, NULL);
		if (!of_cache.cache) {
			pr_warn("slabyard.bench: no memory for a cache of %zu\n", sizes[i]);
			continue;
		}
		for (u32 j = 0; j < ARRAY_SIZE(patterns); j++) {
			measure(&of_cache, &patterns[j]);
			measure(&of_kmalloc, &patterns[j]);
		}
		kmem_cache_destroy(of_cache.cache);
	}
	migrate_enable();
	end_typesafe_cache();
	pr_info("slabyard.bench: done\n");
	return 0;
}
late_initcall(bench);
