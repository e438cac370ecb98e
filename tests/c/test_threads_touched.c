/*
 * What a new heap of threads touches: its own structure, its caches, a slab, and one or two pages of its state for slots,
 * whatever the number of size classes. A thread adds little more than the slabs that it allocates from.
 *
 * The system counts it, as anonymous memory of the process. A heap was opened and closed before, so that the library's own
 * data are there already. Nothing is checked where the system doesn't count, nor under a sanitizer, whose shadow memory would
 * be counted too.
 */
#include "threads_support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAP_KIB 104
#define THREAD_KIB 48 /* mostly the C library's, for the thread's stack */
#define THREADS 16

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHADOWED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHADOWED true
#endif
#endif
#ifndef SHADOWED
#define SHADOWED false
#endif

/* KiB; 0: unknown. */
static size_t anonymous(void)
{
	static char text[4096];
	int file = open("/proc/self/smaps_rollup", O_RDONLY);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	const char *line;

	if (file >= 0)
		close(file);
	text[length > 0 ? length : 0] = '\0';
	line = strstr(text, "Anonymous:");
	return line && !SHADOWED ? (size_t)strtoul(line + strlen("Anonymous:"), NULL, 10) : 0;
}

static struct sy_heap *open_fine(const char *policy)
{
	const struct sy_heap_options options = { .sizing = { .classes = SY_CLASSES_FINE, .align = 16, .exact_runs = true } };
	const char *error = NULL;
	struct sy_heap *heap = sy_heap_open(policy, &options, &error);

	CHECK(heap != NULL);
	return heap;
}

static void touch_little(const char *policy)
{
	struct sy_heap *heap = open_fine(policy);
	size_t before;

	sy_mfree(heap, sy_malloc(heap, 40, 0));
	sy_heap_close(heap);
	before = anonymous();
	heap = open_fine(policy);
	sy_mfree(heap, sy_malloc(heap, 40, 0));
	CHECK(anonymous() <= before + HEAP_KIB);
	sy_heap_close(heap);
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

static pthread_barrier_t all_there, all_counted;
static struct sy_heap *shared;

/* Takes an object from each of twelve classes; none of them has large slabs. */
static void *use(void *unused)
{
	void *objects[12];

	(void)unused;
	for (unsigned i = 0; i < 12; i++)
		objects[i] = sy_malloc(shared, 16 * (i + 1), 0);
	pthread_barrier_wait(&all_there);
	pthread_barrier_wait(&all_counted);
	for (unsigned i = 0; i < 12; i++)
		sy_mfree(shared, objects[i]);
	return NULL;
}

static void slots_touch_little(void)
{
	pthread_t threads[THREADS];
	size_t before, slabs;

	shared = open_fine("slqb");
	before = anonymous();
	pthread_barrier_init(&all_there, NULL, THREADS + 1);
	pthread_barrier_init(&all_counted, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, use, NULL));
	pthread_barrier_wait(&all_there);
	slabs = (size_t)shared->counters.slab_pages * (SY_PAGE_SIZE / 1024);
	CHECK(!before || anonymous() <= before + slabs + (size_t)THREADS * THREAD_KIB);
	pthread_barrier_wait(&all_counted);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	sy_heap_close(shared);
}

int main(void)
{
	static const char *const policies[] = { "yard", "slub", "slab", "slqb", "bonwick", "bonwick:percpu=16", "bonwick:magazine=on",
		"slob", "bsd44", "svr4", "sunos4" };

	if (check_emulated("pages touched by heaps"))
		return check_result();
	for (unsigned i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
		touch_little(policies[i]);
	slots_touch_little();
	return check_result();
}
