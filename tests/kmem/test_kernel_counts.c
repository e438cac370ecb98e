/*
 * Counters, lists in the order of use, intervals, notifications and other small things that kernel code finds in its headers.
 * Against models where there is something to get wrong. Run under some policies.
 */
#include <linux/bit_spinlock.h>
#include <linux/bitfield.h>
#include <linux/delay.h>
#include <linux/hex.h>
#include <linux/highmem.h>
#include <linux/interval_tree.h>
#include <linux/kthread.h>
#include <linux/list_lru.h>
#include <linux/local_lock.h>
#include <linux/lockref.h>
#include <linux/mempool.h>
#include <linux/min_heap.h>
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/once.h>
#include <linux/percpu-refcount.h>
#include <linux/percpu_counter.h>
#include <linux/ratelimit.h>
#include <linux/sched/clock.h>
#include <linux/timekeeping.h>

#include "check.h"

#define THREADS 4
#define STEPS 5000

static struct rnd_state state;

static unsigned below(unsigned limit)
{
	return prandom_u32_state(&state) % limit;
}

/* ---- Counts ------------------------------------------------------------------------------------------------------ */

static struct percpu_counter counter;
static struct percpu_ref ref;
static struct lockref locked;
static unsigned long word;
static unsigned under_bit;
static int released;
static atomic_t counted = ATOMIC_INIT(0);

static void release(struct percpu_ref *of)
{
	CHECK(percpu_ref_is_zero(of) && percpu_ref_is_dying(of));
	released++;
}

static int count_along(void *data)
{
	for (int i = 0; i < STEPS; i++) {
		percpu_counter_add(&counter, 3);
		percpu_counter_dec(&counter);
		CHECK(percpu_ref_tryget_live(&ref));
		percpu_ref_put(&ref);
		lockref_get(&locked);
		bit_spin_lock(5, &word);
		under_bit++;
		bit_spin_unlock(5, &word);
	}
	atomic_inc(&counted);
	while (!kthread_should_stop())
		msleep(1);
	return data != NULL;
}

static void counts(void)
{
	struct task_struct *threads[THREADS];

	CHECK(!percpu_counter_init(&counter, 7, GFP_KERNEL));
	CHECK(!percpu_ref_init(&ref, release, 0, GFP_KERNEL));
	lockref_init(&locked);
	word = 1;
	for (int i = 0; i < THREADS; i++)
		threads[i] = kthread_run(count_along, NULL, "counts/%d", i);
	while (atomic_read(&counted) < THREADS)
		msleep(1);
	for (int i = 0; i < THREADS; i++)
		CHECK(!kthread_stop(threads[i]));
	percpu_counter_sub(&counter, 7);
	CHECK(under_bit == THREADS * STEPS && locked.count == 1 + THREADS * STEPS && percpu_counter_sum(&counter) == 2 * THREADS * STEPS);
	CHECK(word == 1 && !bit_spin_is_locked(5, &word));
	percpu_counter_set(&counter, 8);
	CHECK(percpu_counter_limited_add(&counter, 10, 2) && !percpu_counter_limited_add(&counter, 10, 1));
	CHECK(percpu_counter_limited_add(&counter, 9, -1) && !percpu_counter_limited_add(&counter, 9, -1));
	CHECK(percpu_counter_read(&counter) == 9 && percpu_counter_compare(&counter, 10) == -1);
	percpu_counter_add_batch(&counter, -10, 32);
	CHECK(percpu_counter_read_positive(&counter) == 0 && percpu_counter_sum(&counter) == -1);
	percpu_counter_destroy(&counter);

	percpu_ref_get_many(&ref, 2);
	percpu_ref_kill(&ref);
	CHECK(!released && !percpu_ref_tryget_live(&ref) && percpu_ref_tryget(&ref));
	percpu_ref_put(&ref);
	percpu_ref_put_many(&ref, 2);
	CHECK(released == 1 && !percpu_ref_tryget(&ref));
	percpu_ref_reinit(&ref);
	CHECK(percpu_ref_tryget_live(&ref));
	percpu_ref_put(&ref);
	percpu_ref_exit(&ref);

	locked.count = 2;
	CHECK(lockref_put_not_zero(&locked) && !lockref_put_not_zero(&locked) && locked.count == 1);
	CHECK(!lockref_put_or_lock(&locked) && spin_is_locked(&locked.lock));
	lockref_mark_dead(&locked);
	spin_unlock(&locked.lock);
	CHECK(__lockref_is_dead(&locked) && !lockref_get_not_dead(&locked) && !lockref_get_not_zero(&locked));
	CHECK(lockref_put_return(&locked) < 0 && !spin_is_locked(&locked.lock));
}

/* ---- Of processors ------------------------------------------------------------------------------------------------ */

struct wide {
	u64 first, between[20], last;
};

static DEFINE_PER_CPU(unsigned, hits);
static DEFINE_PER_CPU(struct wide, of_each) = { .first = 5, .last = 7 };
DEFINE_PER_CPU_ALIGNED(char, aligned_one);
static struct wide __percpu *given;
static atomic_t hit = ATOMIC_INIT(0);

static int hit_along(void *data)
{
	for (int i = 0; i < STEPS; i++) {
		this_cpu_inc(hits);
		this_cpu_add(of_each.last, 2);
		this_cpu_dec(given->first);
		this_cpu_inc(given->last);
	}
	atomic_inc(&hit);
	while (!kthread_should_stop())
		msleep(1);
	return data != NULL;
}

static void of_processors(void)
{
	struct task_struct *threads[THREADS];
	struct { u8 *bytes; size_t size; } some[200] = { { NULL, 0 } };
	unsigned cpu, sum = 0;

	given = alloc_percpu(struct wide);
	CHECK(given != NULL);
	for (int i = 0; given && i < THREADS; i++)
		threads[i] = kthread_run(hit_along, NULL, "hits/%d", i);
	while (given && atomic_read(&hit) < THREADS)
		msleep(1);
	for (int i = 0; given && i < THREADS; i++)
		CHECK(!kthread_stop(threads[i]));
	for_each_possible_cpu(cpu) {
		const struct wide *mine = per_cpu_ptr(given, cpu);

		sum += per_cpu(hits, cpu);
		CHECK(per_cpu(of_each, cpu).first == 5 && per_cpu(of_each, cpu).last == 7 + 2ULL * per_cpu(hits, cpu));
		CHECK(mine->last == per_cpu(hits, cpu) && mine->first + mine->last == 0 && !memchr_inv(mine->between, 0, sizeof(mine->between)));
		CHECK((uintptr_t)per_cpu_ptr(&aligned_one, cpu) % 64 == 0);
	}
	CHECK(sum == THREADS * STEPS);
	free_percpu(given);
	free_percpu(NULL);

	CHECK(!__alloc_percpu(SY__PERCPU_UNIT + 1, 8));
	for (int step = 0; step < 2000; step++) {
		unsigned at = below(ARRAY_SIZE(some));

		if (some[at].bytes) {
			for_each_possible_cpu(cpu)
				CHECK(!memchr_inv(per_cpu_ptr(some[at].bytes, cpu), (int)(at + cpu), some[at].size));
			free_percpu(some[at].bytes);
			some[at].bytes = NULL;
			continue;
		}
		some[at].size = 1 + below(below(20) ? 200 : 9000);
		some[at].bytes = __alloc_percpu(some[at].size, 8u << below(8));
		for (cpu = 0; some[at].bytes && cpu < NR_CPUS; cpu++) {
			CHECK(!memchr_inv(per_cpu_ptr(some[at].bytes, cpu), 0, some[at].size));
			memset(per_cpu_ptr(some[at].bytes, cpu), (int)(at + cpu), some[at].size);
		}
	}
	for (unsigned at = 0; at < ARRAY_SIZE(some); at++)
		free_percpu(some[at].bytes);
}

/* ---- The order of use --------------------------------------------------------------------------------------------- */

struct used {
	struct list_head lru;
	int number;
};

static struct list_lru lru;

/* Every third stays, of the others those below 50 go to the young end once. */
static enum lru_status pick(struct list_head *item, struct list_lru_one *list, spinlock_t *lock, void *gone)
{
	struct used *used = container_of(item, struct used, lru);

	CHECK(spin_is_locked(lock));
	if (used->number % 3 == 0)
		return LRU_SKIP;
	if (used->number < 50) {
		used->number += 300;
		return LRU_ROTATE;
	}
	if (used->number == 100) {
		list_lru_isolate(list, item);
		spin_unlock(lock);
		kfree(used);
		spin_lock(lock);
		return LRU_REMOVED_RETRY;
	}
	list_lru_isolate_move(list, item, gone);
	return LRU_REMOVED;
}

static void in_order_of_use(void)
{
	struct kmem_cache *cache = KMEM_CACHE(used, SLAB_RECLAIM_ACCOUNT);
	struct shrink_control control = { .nr_to_scan = 40 };
	struct used *used, *spare, *last = NULL;
	LIST_HEAD(gone);

	CHECK(cache && !list_lru_init(&lru));
	for (int i = 0; i < 120; i++) {
		used = i == 100 ? kmalloc(sizeof(*used), GFP_KERNEL) : kmem_cache_alloc_lru(cache, &lru, GFP_KERNEL);
		if (!used)
			break;
		used->number = i;
		INIT_LIST_HEAD(&used->lru);
		CHECK(list_lru_add(&lru, &used->lru) && !list_lru_add_obj(&lru, &used->lru));
		last = used;
	}
	CHECK(list_lru_del(&lru, &last->lru) && !list_lru_del(&lru, &last->lru, 0, NULL) && list_lru_count(&lru) == 119);
	CHECK(list_lru_add(&lru, &last->lru, 0, NULL));
	CHECK(list_lru_shrink_walk(&lru, &control, pick, &gone) == 0 && control.nr_to_scan == 0 && list_empty(&gone));
	/* 14 of the first 40 were skipped, 26 went behind the rest. */
	CHECK(list_lru_walk(&lru, pick, &gone, 14 + 10) == 0);
	CHECK(list_lru_shrink_count(&lru, &control) == 120);
	/* After the one that let the lock go the walk begins anew. */
	CHECK(list_lru_walk(&lru, pick, &gone, 1000) == 80 && list_lru_count(&lru) == 40);
	list_for_each_entry_safe(used, spare, &gone, lru) {
		CHECK(used->number % 3);
		kmem_cache_free(cache, used);
	}
	while (list_lru_count(&lru)) {
		used = list_first_entry(&lru.sy__one.list, struct used, lru);
		CHECK(used->number % 3 == 0 && list_lru_del(&lru, &used->lru));
		kmem_cache_free(cache, used);
	}
	list_lru_destroy(&lru);
	kmem_cache_destroy(cache);
}

/* ---- Intervals ---------------------------------------------------------------------------------------------------- */

static struct interval_tree_node intervals[200];

static void overlaps(void)
{
	struct rb_root_cached root = RB_ROOT_CACHED;
	bool in[ARRAY_SIZE(intervals)] = { false };

	for (int step = 0; step < 4000; step++) {
		unsigned at = below(ARRAY_SIZE(intervals));
		unsigned long begin = below(1000), end = begin + below(60), before = 0;
		struct interval_tree_node *found;
		int count = 0, expected = 0;

		if (in[at]) {
			interval_tree_remove(&intervals[at], &root);
		} else {
			intervals[at].start = below(1000);
			intervals[at].last = intervals[at].start + below(below(10) ? 20 : 400);
			interval_tree_insert(&intervals[at], &root);
		}
		in[at] = !in[at];
		for (found = interval_tree_iter_first(&root, begin, end); found; found = interval_tree_iter_next(found, begin, end)) {
			CHECK(found->start <= end && found->last >= begin && found->start >= before);
			before = found->start;
			count++;
		}
		for (size_t i = 0; i < ARRAY_SIZE(intervals); i++)
			expected += in[i] && intervals[i].start <= end && intervals[i].last >= begin;
		CHECK(count == expected);
	}
}

/* ---- Told, and not too often -------------------------------------------------------------------------------------- */

static char told[16];
static size_t tellings;

static int tell(struct notifier_block *block, unsigned long action, void *data)
{
	told[tellings++ % sizeof(told)] = (char)('a' + block->priority);
	return action && block->priority == *(int *)data ? notifier_from_errno(-EBUSY) : NOTIFY_OK;
}

static RAW_NOTIFIER_HEAD(raw_chain);
static ATOMIC_NOTIFIER_HEAD(atomic_chain);
static BLOCKING_NOTIFIER_HEAD(blocking_chain);

#define TELL(kind) \
	do { \
		struct notifier_block blocks[3] = { { tell, NULL, 1 }, { tell, NULL, 2 }, { tell, NULL, 0 } }; \
		int stop = 1; \
		for (int i = 0; i < 3; i++) \
			CHECK(!kind##_notifier_chain_register(&kind##_chain, &blocks[i])); \
		CHECK(kind##_notifier_chain_register(&kind##_chain, &blocks[2]) == -EEXIST); \
		tellings = 0; \
		CHECK(kind##_notifier_call_chain(&kind##_chain, 0, &stop) == NOTIFY_OK && tellings == 3 && !memcmp(told, "cba", 3)); \
		CHECK(notifier_to_errno(kind##_notifier_call_chain(&kind##_chain, 1, &stop)) == -EBUSY && tellings == 5); \
		CHECK(!kind##_notifier_chain_unregister(&kind##_chain, &blocks[0])); \
		CHECK(kind##_notifier_chain_unregister(&kind##_chain, &blocks[0]) == -ENOENT); \
		CHECK(kind##_notifier_call_chain(&kind##_chain, 1, &stop) == NOTIFY_OK && tellings == 7); \
		for (int i = 1; i < 3; i++) \
			CHECK(!kind##_notifier_chain_unregister(&kind##_chain, &blocks[i])); \
		CHECK(kind##_notifier_call_chain(&kind##_chain, 1, &stop) == NOTIFY_DONE); \
	} while (0)

static int done;

static void do_it(int by)
{
	done += by;
}

static void notifications(void)
{
	static DEFINE_RATELIMIT_STATE(none, 0, 1);
	struct ratelimit_state few;
	int granted = 0;

	TELL(raw);
	TELL(atomic);
	TELL(blocking);
	ratelimit_state_init(&few, 3600 * HZ, 3);
	for (int i = 0; i < 10; i++)
		granted += __ratelimit(&few);
	CHECK(granted == 3 && few.missed == 7);
	few.begin = (jiffies - 3601UL * HZ) | 1;
	CHECK(__ratelimit(&few) && __ratelimit(&none) && __ratelimit(&none));
	for (int i = 0; i < 3; i++) {
		CHECK(DO_ONCE(do_it, 10) == !i);
		CHECK(DO_ONCE_LITE_IF(i, do_it, 1) == !!i);
	}
	CHECK(done == 11);
}

/* ---- Numbers and bytes --------------------------------------------------------------------------------------------- */

static bool int_less(const void *left, const void *right)
{
	return *(const int *)left < *(const int *)right;
}

static void int_swap(void *left, void *right)
{
	swap(*(int *)left, *(int *)right);
}

static void least_in_front(void)
{
	static const struct min_heap_callbacks ints = { sizeof(int), int_less, int_swap };
	int data[64], before = INT_MIN, more = 500;
	struct min_heap heap = { data, 40, ARRAY_SIZE(data) };

	for (int i = 0; i < 40; i++)
		data[i] = (int)below(1000);
	min_heapify_all(&heap, &ints);
	while (heap.nr < heap.size) {
		int number = (int)below(1000);

		min_heap_push(&heap, &number, &ints);
	}
	while (heap.nr) {
		CHECK(data[0] >= before);
		before = data[0];
		if (more > before) {
			min_heap_pop_push(&heap, &more, &ints);
			more = 0;
		} else {
			min_heap_pop(&heap, &ints);
		}
	}
}

static void bytes(void)
{
	mempool_t *pool = mempool_create_page_pool(2, 1);
	struct page *page = alloc_page(GFP_KERNEL), *other = alloc_page(GFP_KERNEL), *kept = pool ? mempool_alloc(pool, GFP_KERNEL) : NULL;
	char text[8] = "";
	u8 raw[3];
	u32 set = 0;

	BUILD_BUG_ON(FIELD_GET(GENMASK(7, 4), 0xa5) != 10);
	CHECK(FIELD_PREP(GENMASK(11, 8), 5U) == 0x500 && FIELD_FIT(GENMASK(1, 0), 3) && !FIELD_FIT(GENMASK(1, 0), 4));
	CHECK(FIELD_MAX(GENMASK(11, 8)) == 15 && u8_get_bits(0xa5, 0xf0) == 10 && u32_replace_bits(~0U, 0, 0xff00) == 0xffff00ff);
	u32p_replace_bits(&set, 3, 0x30);
	CHECK(set == 0x30 && u64_encode_bits(1, 1ULL << 63) == 1ULL << 63);

	CHECK(!hex2bin(raw, "00fFa9", 3) && raw[0] == 0 && raw[1] == 255 && raw[2] == 0xa9 && bin2hex(text, raw, 3) == text + 6);
	CHECK_TEXT(text, "00ffa9");
	CHECK(hex2bin(raw, "0g", 1) == -EINVAL && hex2bin(raw, "@0", 1) == -EINVAL && hex_to_bin('/') < 0 && hex_to_bin('G') < 0);

	if (page && other) {
		clear_highpage(page);
		memcpy_to_page(page, 100, "abc", 4);
		copy_highpage(other, page);
		memzero_page(page, 0, PAGE_SIZE);
		memcpy_from_page(text, other, 100, 4);
		CHECK_TEXT(text, "abc");
		CHECK(!memchr_inv(kmap_local_page(page), 0, PAGE_SIZE));
	}
	__free_page(page);
	__free_page(other);

	CHECK(kept && !offset_in_page(page_address(kept)) && ksize(page_address(kept)) >= 2 * PAGE_SIZE);
	if (kept)
		mempool_free(kept, pool);
	mempool_destroy(pool);
}

static void times(void)
{
	struct timespec64 before, after, year = ns_to_timespec64(-1);

	ktime_get_ts64(&before);
	ktime_get_ts64(&after);
	CHECK(timespec64_compare(&before, &after) <= 0 && year.tv_sec == -1 && year.tv_nsec == NSEC_PER_SEC - 1);
	after = timespec64_add(year, ns_to_timespec64(NSEC_PER_SEC + 1));
	CHECK(after.tv_sec == 1 && after.tv_nsec == 0 && timespec64_to_ns(&year) == -1);
	after = timespec64_sub(after, year);
	CHECK(after.tv_sec == 1 && after.tv_nsec == 1 && local_clock() <= ktime_get_ns());
}

static DECLARE_RWSEM(of_module);

int main(void)
{
	guard(rwsem_read)(&of_module);
	prandom_seed_state(&state, 2026);
	counts();
	of_processors();
	in_order_of_use();
	overlaps();
	notifications();
	least_in_front();
	bytes();
	times();
	rcu_barrier();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
