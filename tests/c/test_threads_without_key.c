/*
 * Without thread-specific data a thread's end would go unnoticed, so the thread gets no slot: its calls share slot 0, one at a
 * time, and work all the same. The C library's functions for that data fail here when the test says so. First the key of all
 * threads fails, which the library makes before main, once in a process. So a child goes on, in which setting a thread's value
 * fails.
 */
#define _GNU_SOURCE /* RTLD_NEXT, dladdr */
#include "threads_support.h"

#include <dlfcn.h>
#include <errno.h>

#define THREADS 4
#define OBJECTS 2000

static bool no_key = true;
static _Thread_local bool no_value; /* of this thread's */
static atomic_uint failed;

/* The thread sanitizer calls these two before it can follow what is done in them. */
#define UNFOLLOWED __attribute__((no_sanitize("thread")))

/* Not a sanitizer's call. */
static UNFOLLOWED bool is_from_here(const void *address)
{
	Dl_info caller, here;

	return dladdr(address, &caller) && dladdr(&no_key, &here) && caller.dli_fbase == here.dli_fbase;
}

UNFOLLOWED int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	int (*real)(pthread_key_t *, void (*)(void *));

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_key_create");
	if (!no_key || !is_from_here(__builtin_return_address(0)))
		return real(key, destructor);
	failed++;
	return EAGAIN;
}

UNFOLLOWED int pthread_setspecific(pthread_key_t key, const void *value)
{
	int (*real)(pthread_key_t, const void *);

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_setspecific");
	if (!no_value || !is_from_here(__builtin_return_address(0)))
		return real(key, value);
	failed++;
	return ENOMEM;
}

static struct sy_heap *heap;
static void *left[THREADS];

static bool has_slot(void)
{
	return sy__self.slot != ~0u;
}

/* Takes objects that a slot of its own would have served, and frees all but one, while others check it. */
static void *work(void *at)
{
	static _Thread_local unsigned char *objects[OBJECTS];
	unsigned char fill = (unsigned char)(1 + ((void **)at - left));

	no_value = true;
	for (unsigned i = 0; i < OBJECTS; i++) {
		objects[i] = sy_malloc(heap, 1 + i % 600, 0);
		if (!objects[i] || has_slot())
			return NULL;
		memset(objects[i], fill, 1 + i % 600);
	}
	CHECK_FINE(sy_heap_check(heap));
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (!filled(objects[i], 1 + i % 600, fill))
			return NULL;
		if (i)
			sy_mfree(heap, objects[i]);
	}
	*(void **)at = objects[0];
	return NULL;
}

static void run(const char *policy)
{
	pthread_t threads[THREADS];

	heap = sy_heap_open(policy, NULL, NULL);
	CHECK(heap != NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		left[i] = NULL;
		CHECK(pthread_create(&threads[i], NULL, work, &left[i]) == 0);
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		sy_mfree(heap, sy_malloc(heap, 1 + i % 600, 0));
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CHECK(left[i] != NULL);
		sy_mfree(heap, left[i]);
	}
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

/* What one size leaves in caches goes back for the next one, in a call that has the shared slot. */
static void run_short(const char *policy)
{
	static const size_t sizes[] = { 900, 100, 2000, 48, 900 };
	const struct sy_heap_options options = { .limit = 2u << 20 };
	static void *objects[(2u << 20) / 48];

	heap = sy_heap_open(policy, &options, NULL);
	CHECK(heap != NULL);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		unsigned count = 0;

		while (count < sizeof(objects) / sizeof(*objects) && (objects[count] = sy_malloc(heap, sizes[i], 0)))
			memset(objects[count++], 1, sizes[i]);
		CHECK(i || count); /* some policies keep what a size had */
		CHECK_FINE(sy_heap_check(heap));
		while (count)
			sy_mfree(heap, objects[--count]);
	}
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

static void run_all(void)
{
	for (unsigned i = 0; sy_policies[i]; i++) {
		run(sy_policies[i]->name);
		run_short(sy_policies[i]->name);
	}
	CHECK(failed);
}

static int with_key(void)
{
	failed = 0;
	no_key = false;
	run_all();
	CHECK(has_slot());
	CHECK(sy__slots_high() <= 2 + THREADS); /* what the threads got for a moment was given back each time */
	return check_result();
}

int main(void)
{
	pid_t child;
	int status;

	run_all();
	CHECK(!has_slot());
	CHECK_EQUAL(sy__slots_high(), 1);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(with_key());
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return check_result();
}
