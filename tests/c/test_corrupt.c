/*
 * Heaps in which a program has done wrong: it freed an object twice, or wrote to free ones. For every policy, on heaps of one
 * slot and of threads: either the policy has noticed or the check reports it; and the check, a walk and a count come to an
 * end, whatever stands where links were.
 *
 * A link in a free object may then lead anywhere: nowhere, into memory that the heap has reserved but not made usable, between
 * two objects, or to the object itself. The heaps are left as they are.
 */
#include "bug_support.h"
#include "policy_support.h"

#include <sys/wait.h>
#include <unistd.h>

#define OBJECTS 300u
#define SIZE 64u
#define RESERVE ((size_t)16 << 20) /* of a heap; small, as there are many heaps */

struct damaged {
	struct sy_heap *heap;
	struct sy_cache *cache;
	char *objects[OBJECTS];
};

struct told {
	size_t slabs, parts; /* bytes */
	unsigned twice;      /* objects that are on lists more than once */
};

static bool see_slab(void *context, const struct sy_slab *slab)
{
	((struct told *)context)->slabs += slab->bytes;
	return true;
}

static bool see_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct told *told = context;

	(void)slab;
	told->parts += part->bytes;
	told->twice += part->lists > 1;
	return true;
}

/* Every other object is free. */
static struct damaged make(struct sy_heap *heap)
{
	struct damaged made = { .heap = there(heap, "heap") };

	made.cache = there(sy_cache_create(heap, &(struct sy_cache_config){ .name = "victims", .size = SIZE }), "cache");
	for (unsigned i = 0; i < OBJECTS; i++)
		made.objects[i] = there(sy_alloc(made.cache, 0), "object");
	for (unsigned i = 0; i < OBJECTS; i += 2)
		sy_free(made.cache, made.objects[i]);
	CHECK_FINE(sy_heap_check(heap));
	return made;
}

static struct sy_heap *driven(const char *policy)
{
	const struct sy_pages_config machine = machine_of(1, 1, RESERVE / SY_PAGE_SIZE);
	const struct sy_heap_config config = config_of(policy, 1, 1);

	return make_on(&machine, &config).heap;
}

static struct sy_heap *of_threads(const char *policy)
{
	return sy_heap_open(policy, &(struct sy_heap_options){ .reserve = RESERVE }, NULL);
}

static struct told look(const struct damaged *damaged, bool shows)
{
	struct told told = { 0 };
	struct sy_cache_counts counts;
	const struct sy_visitor visitor = { .slab = see_slab, .part = see_part, .context = &told };

	CHECK(!shows || sy_heap_check(damaged->heap));
	CHECK(sy_heap_walk(damaged->heap, &visitor));
	CHECK_EQUAL(told.parts, told.slabs);
	sy_cache_count(damaged->cache, &counts); /* the count may be anything, but it ends */
	CHECK(!sy_cache_destroy(damaged->cache, NULL));
	return told;
}

/* Policies that keep blocks of any size have each block on one list or on none, whatever was done. */
static bool keeps_lists(const char *policy)
{
	return strcmp(policy, "slob") != 0 && strcmp(policy, "svr4") != 0 && strcmp(policy, "sunos4") != 0;
}

/* A policy that notices leaves the object alone. */
static void test_freed_twice(const char *policy, struct sy_heap *heap, unsigned between)
{
	struct damaged damaged = make(heap);
	struct told told;

	count_double_frees(heap);
	sy_free(damaged.cache, damaged.objects[151]);
	for (unsigned i = 1; i <= between; i++)
		sy_free(damaged.cache, damaged.objects[151 - 2 * i]);
	sy_free(damaged.cache, damaged.objects[151]);
	CHECK(between || double_frees); /* a second free of the object freed last is always noticed */
	told = look(&damaged, !double_frees);
	CHECK_EQUAL(told.twice > 0, keeps_lists(policy) && !double_frees); /* a list that runs in a circle holds several objects twice */
	CHECK(!double_frees || !sy_heap_check(heap));
}

/* slab keeps the numbers of free objects outside of them. */
static void test_written_to(const char *policy, struct sy_heap *heap, uintptr_t word)
{
	struct damaged damaged = make(heap);

	for (unsigned i = 0; i < OBJECTS; i += 2)
		for (unsigned byte = 0; byte < SIZE; byte += sizeof(word))
			memcpy(damaged.objects[i] + byte, &word, sizeof(word));
	look(&damaged, strcmp(policy, "slab") != 0);
}

static void test_written_to_itself(const char *policy, struct sy_heap *heap, size_t beside)
{
	struct damaged damaged = make(heap);

	for (unsigned i = 0; i < OBJECTS; i += 2) {
		char *word = damaged.objects[i] + beside;

		for (unsigned byte = 0; byte < SIZE; byte += sizeof(word))
			memcpy(damaged.objects[i] + byte, &word, sizeof(word));
	}
	look(&damaged, strcmp(policy, "slab") != 0);
}

/* An address that the heap has reserved, with no memory behind it. */
static uintptr_t reserved(const struct sy_heap *heap)
{
	return (uintptr_t)sy__page_address(heap, sy__pages_base(heap)->table + sy__pages_base(heap)->page_count - 8);
}

static void test_policy(const char *policy, struct sy_heap *(*open)(const char *policy))
{
	unsigned before = check_failures;
	struct sy_heap *heap = open(policy);

	test_freed_twice(policy, open(policy), 0);
	test_freed_twice(policy, open(policy), 10);
	test_written_to(policy, heap, reserved(heap));
	test_written_to(policy, open(policy), (uintptr_t)0x4141414141414141u);
	test_written_to(policy, open(policy), 16);
	test_written_to_itself(policy, open(policy), 0);
	test_written_to_itself(policy, open(policy), 1);
	test_written_to_itself(policy, open(policy), 24);
	if (check_failures != before)
		fprintf(stderr, "that was %s\n", policy);
}

/* In a process of its own, as these heaps can't be destroyed, and a 32-bit machine has no room for all. */
static void test_concurrent(const char *policy, struct sy_heap *(*open)(const char *policy))
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		test_policy(policy, open);
		_exit(check_result());
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

int main(void)
{
	for (const struct sy_policy *const *at = sy_policies; *at; at++) {
		test_concurrent((*at)->name, driven);
		test_concurrent((*at)->name, of_threads);
	}
	return check_result();
}
