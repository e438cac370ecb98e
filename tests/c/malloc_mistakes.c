/*
 * Which mistakes of a program malloc reports in its default mode. Each mistake is made in a child of its own, with objects of
 * several sizes, under the policy that SLABYARD names. docs/debugging.md has this table.
 *
 * A reported mistake ends the child by SIGABRT, and the first line on standard error says its kind. A mistake that is not
 * reported may do anything. The child's handler of SIGABRT allocates an object of the same size, so a report must hold no
 * lock.
 */
#define _GNU_SOURCE /* barriers */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAD 100u
#define LATER 3000u /* objects that are allocated behind a mistake */
#define POLICIES "yard    slub    slab    slqb    bonwick slob    bsd44   svr4    sunos4"

static size_t size;

/* The compiler must not know what these do. */
static char *get(size_t bytes)
{
	char *volatile object = malloc(bytes);

	return object;
}

static void put(void *volatile object)
{
	free(object);
}

static void grow(void *volatile object)
{
	void *volatile grown = realloc(object, size * 10);

	put(grown);
}

/* ---- The mistakes -------------------------------------------------------------------------------------------------- */

static void frees_twice(void)
{
	char *object = get(size);

	put(object);
	put(object);
}

/* Reported at once, not by a later call. */
static void frees_twice_and_ends(void)
{
	frees_twice();
	_exit(0);
}

static void frees_another_between(void)
{
	char *object = get(size), *other = get(size);

	put(object);
	put(other);
	put(object);
}

static pthread_barrier_t freed;

static void *frees_too(void *object)
{
	pthread_barrier_wait(&freed);
	put(object);
	return NULL;
}

static void frees_in_two_threads(void)
{
	char *object = get(size);
	pthread_t thread;

	pthread_barrier_init(&freed, NULL, 2);
	pthread_create(&thread, NULL, frees_too, object);
	put(object);
	pthread_barrier_wait(&freed);
	pthread_join(thread, NULL);
}

static void resizes_freed(void)
{
	char *object = get(size);

	put(object);
	grow(object);
}

static void frees_large_twice(void)
{
	char *object = get(200000);

	put(object);
	put(object);
}

static void frees_mapping_twice(void)
{
	char *object = get((size_t)8 << 20);

	object[0] = 1;
	put(object);
	put(object);
}

static void frees_inside(void)
{
	put(get(size) + 16);
}

static void frees_beside(void)
{
	put(get(size) + 1);
}

static void resizes_inside(void)
{
	grow(get(size) + 16);
}

static void frees_inside_mapping(void)
{
	put(get((size_t)8 << 20) + 4096);
}

static void frees_stack(void)
{
	char there[256];

	put((void *)(((uintptr_t)there + 31) & ~(uintptr_t)15));
}

static void frees_static(void)
{
	static _Alignas(16) char there[256];

	put(there + 16);
}

static void frees_wild(void)
{
	put((void *)(UINTPTR_MAX / 0xff * 0x41 - 1));
}

static void frees_unmapped(void)
{
	put((void *)0x10000);
}

/* Values that programs pass where a pointer should be: the smallest numbers, and -1. */
static void frees_one(void)
{
	put((void *)1);
}

static void frees_eight(void)
{
	put((void *)8);
}

static void frees_first_page(void)
{
	put((void *)64);
}

static void frees_minus_one(void)
{
	put((void *)UINTPTR_MAX);
}

static void resizes_number(void)
{
	grow((void *)32);
}

static void frees_never_used(void)
{
	put((void *)((uintptr_t)get(size) + ((size_t)512 << 20)));
}

static void writes_link(void)
{
	static char target[256];
	char *object = get(size), *other = get(size);

	put(other);
	put(object);
	*(void *volatile *)(void *)object = target;
}

static void writes_freed(void)
{
	char *volatile object = get(size);

	put(object);
	memset(object, 0x41, 16);
}

static void writes_into_free_neighbours(void)
{
	static char *objects[200];

	for (unsigned i = 0; i < 200; i++)
		objects[i] = get(size);
	for (unsigned i = 1; i < 200; i += 2)
		put(objects[i]);
	for (unsigned i = 0; i < 200; i += 2)
		memset(objects[i] + malloc_usable_size(objects[i]), 0x41, 16);
}

/* ---- What is told of them: D double, I interior, F foreign free; W write after free; d: D or W; -: nothing ------------ */

static const struct mistake {
	const char *name, *told; /* by policy */
	void (*make)(void);
} mistakes[] = {
	/*                                                 yard    slub    slab    slqb    bonwick slob    bsd44   svr4    sunos4 */
	{ "free twice",                                   "D       D       D       D       D       D       D       D       D", frees_twice },
	{ "free twice, and the program ends",             "D       D       D       D       D       D       D       D       D", frees_twice_and_ends },
	{ "free twice, another object between",           "D       D       D       D       D       D       D       D       D", frees_another_between },
	{ "free twice, by two threads",                   "D       D       -       W       D       D       D       D       D", frees_in_two_threads },
	{ "realloc of a freed object",                    "d       D       D       D       D       D       D       D       D", resizes_freed },
	{ "free twice, 200 kB",                           "D       D       D       D       D       D       D       D       D", frees_large_twice },
	{ "free twice, 8 MB",                             "D       D       D       D       D       D       D       D       D", frees_mapping_twice },
	{ "free of an address inside",                    "I       I       I       I       I       I       I       I       I", frees_inside },
	{ "free of a misaligned address",                 "I       I       I       I       I       I       I       I       I", frees_beside },
	{ "realloc of an address inside",                 "I       I       I       I       I       I       I       I       I", resizes_inside },
	{ "free of an address inside 8 MB",               "I       I       I       I       I       I       I       I       I", frees_inside_mapping },
	{ "free of an address on the stack",              "F       F       F       F       F       F       F       F       F", frees_stack },
	{ "free of a static object",                      "F       F       F       F       F       F       F       F       F", frees_static },
	{ "free of a wild address",                       "F       F       F       F       F       F       F       F       F", frees_wild },
	{ "free of an address without memory",            "F       F       F       F       F       F       F       F       F", frees_unmapped },
	{ "free of an address not used yet",              "F       F       F       F       F       F       F       F       F", frees_never_used },
	{ "free of 1",                                    "F       F       F       F       F       F       F       F       F", frees_one },
	{ "free of 8",                                    "F       F       F       F       F       F       F       F       F", frees_eight },
	{ "free of 64",                                   "F       F       F       F       F       F       F       F       F", frees_first_page },
	{ "free of -1",                                   "F       F       F       F       F       F       F       F       F", frees_minus_one },
	{ "realloc of 32",                                "F       F       F       F       F       F       F       F       F", resizes_number },
	{ "pointer written into a freed object",          "d       -       -       W       -       -       W       W       W", writes_link },
	{ "freed object overwritten",                     "-       -       -       W       -       -       W       W       W", writes_freed },
	{ "write past the end into free neighbours",      "-       -       -       -       -       W       W       W       W", writes_into_free_neighbours },
};

static const char *kind_of(char told)
{
	static const struct {
		char told;
		const char *kind;
	} kinds[] = { { 'D', "double free" }, { 'I', "interior free" }, { 'F', "foreign free" }, { 'W', "write after free" } };

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].told == told)
			return kinds[i].kind;
	return "";
}

/* Whether a report is of that kind: then its first line is "slabyard: KIND: 0x…". */
static bool is_told(const char *report, char told)
{
	const char *kind = kind_of(told);
	size_t length = strlen(kind);

	if (told == 'd')
		return is_told(report, 'D') || is_told(report, 'W');
	return !strncmp(report, "slabyard: ", 10) && !strncmp(report + 10, kind, length) && !strncmp(report + 10 + length, ": 0x", 4);
}

static void allocates(int signal)
{
	(void)signal;
	put(get(size));
}

/* Makes a mistake among other objects, and then uses memory as programs do. */
static void make(const struct mistake *mistake, int report)
{
	static char *objects[LATER];

	dup2(report, STDERR_FILENO);
	sigaction(SIGABRT, &(struct sigaction){ .sa_handler = allocates, .sa_flags = (int)SA_RESETHAND }, NULL);
	alarm(60);
	for (unsigned i = 0; i < PAD; i++)
		objects[i] = get(size);
	for (unsigned i = 0; i < PAD; i += 2)
		put(objects[i]);
	mistake->make();
	for (unsigned i = 0; i < LATER; i++) {
		objects[i] = get(size);
		memset(objects[i], (int)i, size);
	}
	for (unsigned i = 0; i < LATER; i++)
		put(objects[i]);
	_exit(0);
}

static bool is_as_expected(const struct mistake *mistake, char told)
{
	char report[512] = "";
	int ends[2], status = 0;
	ssize_t length;
	pid_t child;

	if (pipe(ends) || (child = fork()) < 0)
		return false;
	if (!child)
		make(mistake, ends[1]);
	close(ends[1]);
	length = read(ends[0], report, sizeof(report) - 1);
	report[length > 0 ? length : 0] = '\0';
	waitpid(child, &status, 0);
	close(ends[0]);
	if (told == '-' || (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && is_told(report, told)))
		return true;
	printf("%s, %zu bytes: status %#x, and it said: %s\n", mistake->name, size, (unsigned)status, report);
	return false;
}

int main(void)
{
	static const size_t sizes[] = { 48, 100, 1000 };
	const char *spec = getenv("SLABYARD"), *place;
	char policy[32] = "yard";
	bool fine = true;

	if (spec)
		snprintf(policy, sizeof(policy), "%.*s", (int)strcspn(spec, ":"), spec);
	place = strstr(POLICIES, policy);
	if (!place)
		return 1;
	for (unsigned i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		char told = mistakes[i].told[place - POLICIES];

		printf("%-44s %s\n", mistakes[i].name, told == '-' ? "-" : told == 'd' ? "double or write after free" : kind_of(told));
		fflush(stdout);
		for (unsigned j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
			size = sizes[j];
			fine &= is_as_expected(&mistakes[i], told);
		}
	}
	return fine ? 0 : 1;
}
