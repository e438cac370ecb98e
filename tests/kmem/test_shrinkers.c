/* Caches that give something up when an allocation finds no memory (linux/shrinker.h): which thread asks them, when, and for
 * how much. */
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "core/types.h"

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

/* From core/pages/pages.h, which is not for kernel code. */
void sy_pages_fail_after(struct sy_pages *, uint64_t requests);

static unsigned kept = 1000;

static unsigned long count_kept(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker;
	(void)control;
	return kept ? kept : SHRINK_EMPTY;
}

static unsigned long give_up(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker;
	CHECK(control->nr_to_scan && control->nr_to_scan <= 128 && control->nr_scanned == control->nr_to_scan && control->gfp_mask & __GFP_FS);
	kept -= (unsigned)control->nr_to_scan;
	return control->nr_to_scan;
}

static unsigned asked;

/* Says that it has much, gives up one thing, and then stops. */
static unsigned long count_much(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker;
	(void)control;
	return 1000;
}

static unsigned long give_up_one(struct shrinker *shrinker, struct shrink_control *control)
{
	CHECK_EQUAL(control->nr_to_scan, (unsigned long)shrinker->batch);
	return asked++ ? SHRINK_STOP : 1;
}

static unsigned long count_nothing(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker;
	(void)control;
	return SHRINK_STOP;
}

static void shrinkers_that_stop(void)
{
	struct shrinker shrinker = { .count_objects = count_much, .scan_objects = give_up_one, .seeks = DEFAULT_SEEKS, .batch = 10 };
	struct sy_heap *heap = sy_kmem_heap();
	void *object;

	CHECK_EQUAL(register_shrinker(&shrinker, "stops"), 0);
	for (unsigned i = 1; i <= 2; i++) { /* a thread that has asked once asks again */
		asked = 0;
		sy_heap_trim(heap); /* the policy keeps what was freed last */
		sy_pages_fail_after(heap->pages, 1);
		object = kmalloc(70000, GFP_KERNEL);
		CHECK(object != NULL);
		CHECK_EQUAL(asked, 2);
		kfree(object);
	}
	asked = 1;
	sy_heap_trim(heap);
	shrinker.count_objects = count_nothing;
	sy_pages_fail_after(heap->pages, 1);
	CHECK(kmalloc(70000, GFP_KERNEL) == NULL);
	CHECK_EQUAL(asked, 1);
	sy_pages_fail_after(heap->pages, 0);
	unregister_shrinker(&shrinker);
}

static void shrinkers(void)
{
	struct shrinker shrinker = { .count_objects = count_kept, .scan_objects = give_up, .seeks = DEFAULT_SEEKS };
	struct shrinker *later = shrinker_alloc(0, "later-%d", 1);
	struct sy_heap *heap = sy_kmem_heap();
	void *object;

	CHECK_EQUAL(register_shrinker(&shrinker, "kept-%d", 1), 0);
	sy_pages_fail_after(heap->pages, 1);
	CHECK(kmalloc(70000, GFP_ATOMIC) == NULL && kept == 1000);
	sy_pages_fail_after(heap->pages, 1);
	object = kmalloc(70000, GFP_KERNEL);
	CHECK(object != NULL && kept == 0);
	kfree(object);
	sy_heap_trim(heap);
	kept = 256; /* whole portions, and none where there is nothing */
	sy_pages_fail_after(heap->pages, 1);
	object = kmalloc(70000, GFP_KERNEL);
	CHECK(object != NULL && kept == 0);
	kfree(object);
	unregister_shrinker(&shrinker);
	later->count_objects = count_kept;
	later->scan_objects = give_up;
	shrinker_register(later);
	sy_pages_fail_after(heap->pages, 1);
	CHECK(kmalloc(700000, GFP_KERNEL) == NULL);
	shrinker_free(later);
	kept = 7; /* of a shrinker that is not asked any more */
	sy_pages_fail_after(heap->pages, 1);
	CHECK(kmalloc(700000, GFP_KERNEL) == NULL && kept == 7);
	sy_pages_fail_after(heap->pages, 0);
}

static void *spare;
static unsigned times;

static unsigned long count_spare(struct shrinker *shrinker, struct shrink_control *control)
{
	(void)shrinker, (void)control;
	return spare ? 1 : SHRINK_EMPTY;
}

/* A shrinker may free memory, and may start a program, although the lock of the shrinkers is held. */
static unsigned long give_spare_up(struct shrinker *shrinker, struct shrink_control *control)
{
	pid_t child = fork();
	int status = -1;

	(void)shrinker, (void)control;
	if (!child)
		_exit(0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	times++;
	kfree(spare);
	spare = NULL;
	return 1;
}

static void shrinkers_that_fork(void)
{
	struct shrinker shrinker = { .count_objects = count_spare, .scan_objects = give_spare_up, .seeks = DEFAULT_SEEKS };
	struct sy_heap *heap = sy_kmem_heap();
	void *object;

	CHECK_EQUAL(register_shrinker(&shrinker, "spare"), 0);
	spare = kmalloc(100, GFP_KERNEL);
	CHECK(spare != NULL);
	sy_heap_trim(heap);
	sy_pages_fail_after(heap->pages, 1);
	object = kmalloc(70000, GFP_KERNEL);
	sy_pages_fail_after(heap->pages, 0);
	CHECK(object != NULL && times == 1 && !spare);
	unregister_shrinker(&shrinker);
	kfree(object);
}

int main(void)
{
	shrinkers();
	shrinkers_that_stop();
	shrinkers_that_fork();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
