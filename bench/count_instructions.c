/*
 * count-instructions: how many instructions an allocation and a free take inside an allocator's shared library.
 *
 *   count-instructions [--preload LIB] [--fill COUNT [--foreign] --order in|reverse|shuffled] [--at-most LIMIT]
 *                      [--places FILE] kmem|kmalloc|malloc|resize
 *
 * Times of a few nanoseconds depend on the machine, its clock and its neighbours; instructions don't, so they can be counted in
 * CI. The program runs itself again with the library preloaded, one thread, objects of 64 bytes, and single-steps that process
 * by ptrace. It counts from the first instruction of each of the two functions to its return, that included: neither the caller's
 * call nor its jump through the procedure linkage table. Whatever the functions call is counted.
 *
 *   kmem      kmem_cache_alloc and kmem_cache_free (slabyard/kmem.h)
 *   kmalloc   kmalloc and kfree
 *   malloc    malloc and free: of whatever library, or of the system without --preload
 *   resize    realloc and malloc_usable_size of one object all the time, which stays where it is
 *
 * Without --fill: one object, allocated and freed again and again; after a thousand pairs unwatched, a hundred are counted.
 * Printed are the medians of both functions and their sum, the pair. With --fill: so many objects are allocated, then freed in
 * the order of allocation, in reverse, or shuffled; once unwatched, then watched: every eleventh call, as each instruction
 * costs microseconds. Eleven divides no number of objects that slabs or arrays usually hold, nor of calls from one look at the
 * clock to the next (core/here.h), so calls that fill or empty one, or look, are watched as often as they occur. Printed are
 * the means of both functions, and their sum. With --foreign it is another thread that allocates them, unwatched, and then
 * waits; this one, which allocates nothing, frees them.
 *
 * With --places, which is for pairs: FILE gets a line for each instruction that ran in those calls that took the printed number
 * of them: "alloc" or "free", how many bytes the instruction lies behind the first one of the function that allocates, and how
 * often it ran in a call.
 *
 * The environment passes on to the library: SLABYARD=slab:batchcount=16 count-instructions --preload libslabyard.so kmalloc.
 * Status: 0; 1 when the sum is more than --at-most allows; 2 wrong usage, no such function in the library, or FILE can't be
 * written; 77 when this machine lets nobody trace.
 *
 * Time. The traced process is a thousand times slower than one that nobody steps through, so what a library does once a second
 * would come far too often. So while it fills and drains, each look at its clock finds that LOOK_NS later than the one before.
 *
 * The traced process stops itself before each call that is to be watched, and tells by a pipe where the functions are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE ((size_t)64)
#define WARM_PAIRS 1000
#define PAIRS 100
#define MOST_OBJECTS 1000000
#define EVERY 11
#define GFP_KERNEL_IN_KMEM_H 0x10000u /* GFP_KERNEL asks for nothing; any bit that no request looks at */
#define MOST_STEPS (PAIRS * 100000) /* of each function, whose places are noted */
#define LOOK_NS 1000
#define CANNOT_TRACE 77

/* ---- The traced process ----------------------------------------------------------------------------------------- */

static bool slow; /* so much is watched that the clock would run away */

/* The library's, too. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int (*system_clock)(clockid_t, struct timespec *);
	static uint64_t looks;

	if (!system_clock) {
		void *address = dlsym(RTLD_NEXT, "clock_gettime");

		memcpy(&system_clock, &address, sizeof(address));
	}
	if (!slow)
		return system_clock(clock, now);
	looks += LOOK_NS;
	now->tv_sec = 1 + (time_t)(looks / 1000000000u);
	now->tv_nsec = (long)(looks % 1000000000u);
	return 0;
}

struct kmem_cache;

static struct kmem_cache *cache;
static void *(*kmem_cache_alloc_at)(struct kmem_cache *, unsigned);
static void (*kmem_cache_free_at)(struct kmem_cache *, void *);
static void *(*kmalloc_at)(size_t, unsigned);
static void (*kfree_at)(const void *);
static void *(*malloc_at)(size_t);
static void (*free_at)(void *);
static void *(*realloc_at)(void *, size_t);
static size_t (*usable_at)(void *);

static void *kmem_get(void)
{
	return kmem_cache_alloc_at(cache, GFP_KERNEL_IN_KMEM_H);
}

static void kmem_put(void *object)
{
	kmem_cache_free_at(cache, object);
}

static void *kmalloc_get(void)
{
	return kmalloc_at(SIZE, GFP_KERNEL_IN_KMEM_H);
}

static void kmalloc_put(void *object)
{
	kfree_at(object);
}

static void *malloc_get(void)
{
	return malloc_at(SIZE);
}

static void malloc_put(void *object)
{
	free_at(object);
}

static void *resize_get(void)
{
	static void *object;

	object = realloc_at(object, SIZE);
	return object;
}

static void resize_put(void *object)
{
	usable_at(object);
}

struct kind {
	const char *name, *alloc, *free;
	void *alloc_at, *free_at; /* where the pointers to both functions are */
	void *(*get)(void);
	void (*put)(void *);
};

static const struct kind kinds[] = {
	{ "kmem", "kmem_cache_alloc", "kmem_cache_free", &kmem_cache_alloc_at, &kmem_cache_free_at, kmem_get, kmem_put },
	{ "kmalloc", "kmalloc", "kfree", &kmalloc_at, &kfree_at, kmalloc_get, kmalloc_put },
	{ "malloc", "malloc", "free", &malloc_at, &free_at, malloc_get, malloc_put },
	{ "resize", "realloc", "malloc_usable_size", &realloc_at, &usable_at, resize_get, resize_put },
};

static const struct kind *kind_named(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

/* Stores the address of a function of this name at *to, as POSIX says it is to be done. */
static uint64_t find(const char *name, void *to)
{
	void *address = dlsym(RTLD_DEFAULT, name);

	if (!address) {
		fprintf(stderr, "count-instructions: the library has no function %s; preload one that has\n", name);
		_exit(2);
	}
	memcpy(to, &address, sizeof(address));
	return (uint64_t)(uintptr_t)address;
}

static void create_cache(void)
{
	struct kmem_cache *(*create)(const char *, unsigned, unsigned, unsigned, void (*)(void *));

	find("kmem_cache_create", &create);
	cache = create("counted", SIZE, 0, 0, NULL);
}

enum order { IN_ORDER, REVERSE, SHUFFLED };

static void arrange(void **objects, size_t count, enum order order)
{
	uint64_t state = 1;

	for (size_t i = 0; order == REVERSE && i < count / 2; i++) {
		void *object = objects[i];

		objects[i] = objects[count - 1 - i];
		objects[count - 1 - i] = object;
	}
	for (size_t i = count; order == SHUFFLED && i > 1; i--) {
		void *object = objects[i - 1];
		size_t other;

		state = state * 6364136223846793005u + 1442695040888963407u;
		other = (size_t)(state >> 33) % i;
		objects[i - 1] = objects[other];
		objects[other] = object;
	}
}

static long self;

/* The next call of one of the two functions is watched, if there is a tracer. */
static void watch(void)
{
	syscall(SYS_kill, self, SIGSTOP);
}

static void fill(const struct kind *kind, void **objects, size_t count, bool watched)
{
	for (size_t i = 0; i < count; i++) {
		if (watched && i % EVERY == 0)
			watch();
		objects[i] = kind->get();
	}
}

static void drain(const struct kind *kind, void **objects, size_t count, bool watched)
{
	for (size_t i = 0; i < count; i++) {
		if (watched && i % EVERY == 0)
			watch();
		kind->put(objects[i]);
	}
}

/* What is traced, and what the thread of --foreign fills. */
struct objects {
	const struct kind *kind;
	size_t count; /* 0: pairs */
	enum order order;
	bool foreign;
	int filled; /* where the thread says that it is done */
	void *all[MOST_OBJECTS];
};

static void *fill_elsewhere(void *of)
{
	struct objects *objects = of;

	fill(objects->kind, objects->all, objects->count, false);
	if (write(objects->filled, "", 1) != 1)
		_exit(2);
	for (;;)
		pause(); /* what it owns stays its own */
	return NULL;
}

/* False: no thread. */
static bool fill_by_thread(struct objects *objects)
{
	int channel[2];
	pthread_t thread;
	char done;

	if (pipe(channel) != 0)
		return false;
	objects->filled = channel[1];
	return pthread_create(&thread, NULL, fill_elsewhere, objects) == 0 && read(channel[0], &done, 1) == 1;
}

static void fill_and_drain(struct objects *objects, bool watched)
{
	if (objects->foreign && !fill_by_thread(objects))
		_exit(2);
	if (!objects->foreign)
		fill(objects->kind, objects->all, objects->count, watched);
	arrange(objects->all, objects->count, objects->order);
	drain(objects->kind, objects->all, objects->count, watched);
}

static void pairs(const struct kind *kind, unsigned count, bool watched)
{
	for (unsigned i = 0; i < count; i++) {
		void *object;

		if (watched)
			watch();
		object = kind->get();
		if (watched)
			watch();
		kind->put(object);
	}
}

static int be_traced(struct objects *objects, int report)
{
	const struct kind *kind = objects->kind;
	uint64_t addresses[2] = { find(kind->alloc, kind->alloc_at), find(kind->free, kind->free_at) };

	self = (long)getpid();
	if (kind->get == kmem_get)
		create_cache();
	slow = objects->count > 0;
	if (objects->count)
		fill_and_drain(objects, false);
	else
		pairs(kind, WARM_PAIRS, false);
	if (write(report, addresses, sizeof(addresses)) != sizeof(addresses) || ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		return CANNOT_TRACE;
	if (objects->count)
		fill_and_drain(objects, true);
	else
		pairs(kind, PAIRS, true);
	_exit(0);
}

/* ---- The tracer ------------------------------------------------------------------------------------------------- */

struct place {
	uint64_t ip, sp;
};

static bool registers(pid_t child, struct user_regs_struct *all)
{
	struct iovec vector = { all, sizeof(*all) };

	return ptrace(PTRACE_GETREGSET, child, (void *)(uintptr_t)NT_PRSTATUS, &vector) == 0;
}

#if defined(__x86_64__)
static struct place place_of(const struct user_regs_struct *all)
{
	return (struct place){ all->rip, all->rsp };
}

/* Where a function will return to, asked at its first instruction. */
static struct place return_place(pid_t child, struct place entry)
{
	return (struct place){ (uint64_t)ptrace(PTRACE_PEEKDATA, child, (void *)(uintptr_t)entry.sp, NULL), entry.sp + 8 };
}
#elif defined(__aarch64__)
static struct place place_of(const struct user_regs_struct *all)
{
	return (struct place){ all->pc, all->sp };
}

static struct place return_place(pid_t child, struct place entry)
{
	struct user_regs_struct all;

	registers(child, &all);
	return (struct place){ all.regs[30], entry.sp };
}
#else
#error "count-instructions knows the registers of x86-64 and arm64 only"
#endif

static bool where(pid_t child, struct place *place)
{
	struct user_regs_struct all;

	if (!registers(child, &all))
		return false;
	*place = place_of(&all);
	return true;
}

/* What was counted of one function. */
struct counted {
	uint64_t at, calls, total;
	uint64_t *each;
	uint64_t *trail; /* of pairs: where the instructions of all calls were, one call behind the other */
};

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double figure(const struct counted *counted, bool mean)
{
	static uint64_t sorted[PAIRS];

	if (!counted->calls)
		return 0;
	if (mean)
		return (double)counted->total / (double)counted->calls;
	memcpy(sorted, counted->each, (size_t)counted->calls * sizeof(*sorted));
	qsort(sorted, (size_t)counted->calls, sizeof(*sorted), ascending);
	return (double)sorted[counted->calls / 2];
}

/* Moves the instructions of calls of that length to the front of the trail; how many calls these are. */
static uint64_t calls_as_long(struct counted *counted, uint64_t length)
{
	uint64_t calls = 0, from = 0;

	for (uint64_t call = 0; call < counted->calls; from += counted->each[call++])
		if (counted->each[call] == length)
			memmove(counted->trail + calls++ * length, counted->trail + from, (size_t)length * sizeof(uint64_t));
	return calls;
}

static void write_places_of(FILE *file, const char *name, struct counted *counted, uint64_t alloc_at)
{
	uint64_t length = (uint64_t)figure(counted, false), calls = calls_as_long(counted, length), times;

	qsort(counted->trail, (size_t)(calls * length), sizeof(uint64_t), ascending);
	for (uint64_t at = 0; at < calls * length; at += times) {
		times = 1;
		while (at + times < calls * length && counted->trail[at + times] == counted->trail[at])
			times++;
		fprintf(file, "%s %lld %.4f\n", name, (long long)(int64_t)(counted->trail[at] - alloc_at), (double)times / (double)calls);
	}
}

/* Whether all of it is in the file. */
static bool write_places(const char *name, struct counted functions[2])
{
	FILE *file = NULL;
	bool written = false;

	if (functions[0].total > MOST_STEPS || functions[1].total > MOST_STEPS)
		errno = EFBIG;
	else
		file = fopen(name, "w");
	if (file) {
		write_places_of(file, "alloc", &functions[0], functions[0].at);
		write_places_of(file, "free", &functions[1], functions[0].at);
		written = !ferror(file);
		written = fclose(file) == 0 && written;
	}
	if (!written)
		perror(name);
	return written;
}

/* One step; false: the process has ended. */
static bool step(pid_t child)
{
	int status;

	return ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status);
}

/* From the first instruction of a function to its return. */
static uint64_t count_call(pid_t child, struct place entry, struct counted *function)
{
	struct place end = return_place(child, entry), now;
	uint64_t count = 0, ip = entry.ip;

	for (; step(child) && where(child, &now); ip = now.ip) {
		if (function->trail && function->total + count < MOST_STEPS)
			function->trail[function->total + count] = ip;
		count++;
		if (now.ip == end.ip && now.sp == end.sp)
			break;
	}
	return count;
}

/* Counts the next call of one of the functions. */
static void follow_one(pid_t child, struct counted functions[2])
{
	struct place now;

	while (step(child) && where(child, &now)) {
		struct counted *function = now.ip == functions[0].at ? &functions[0] : now.ip == functions[1].at ? &functions[1] : NULL;

		if (!function || function->calls == MOST_OBJECTS)
			continue;
		function->each[function->calls] = count_call(child, now, function);
		function->total += function->each[function->calls++];
		return;
	}
}

/* From the first stop on, until the process ends. */
static void follow(pid_t child, struct counted functions[2])
{
	int status;

	do
		follow_one(child, functions);
	while (ptrace(PTRACE_CONT, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status));
}

struct request {
	const struct kind *kind;
	const char *preload, *order, *places;
	size_t fill;
	bool foreign;
	double at_most;
};

/* Both processes on one CPU: a step is then a switch between them, with no other CPU to be woken. Slower without, else the
 * same. */
static void stay_here(void)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	CPU_ZERO(&one);
	CPU_SET(cpu < 0 ? 0 : (size_t)cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void run_again(const struct request *request, int report)
{
	char fill[32], channel[16];

	snprintf(fill, sizeof(fill), "%zu", request->fill);
	snprintf(channel, sizeof(channel), "%d", report);
	if (request->preload)
		setenv("LD_PRELOAD", request->preload, 1);
	setenv("LD_BIND_NOW", "1", 1);
	execl("/proc/self/exe", "count-instructions", "--traced", channel, "--fill", fill, "--order", request->order,
	      request->kind->name, request->foreign ? "--foreign" : NULL, (char *)NULL);
	_exit(2);
}

static int trace(const struct request *request)
{
	static uint64_t each[2][MOST_OBJECTS], trail[2][MOST_STEPS];
	struct counted functions[2] = { { .each = each[0] }, { .each = each[1] } };
	uint64_t addresses[2];
	int channel[2], status;
	double alloc, release;
	pid_t child;

	stay_here();
	if (pipe(channel) != 0 || (child = fork()) < 0) {
		perror("count-instructions");
		return 2;
	}
	if (!child)
		run_again(request, channel[1]);
	close(channel[1]);
	if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) {
		if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_TRACE)
			fprintf(stderr, "count-instructions: this machine lets no process trace another\n");
		return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
	}
	if (read(channel[0], addresses, sizeof(addresses)) != sizeof(addresses))
		return 2;
	functions[0].at = addresses[0];
	functions[1].at = addresses[1];
	for (unsigned i = 0; i < 2 && request->places; i++)
		functions[i].trail = trail[i];
	follow(child, functions);

	alloc = figure(&functions[0], request->fill > 0);
	release = figure(&functions[1], request->fill > 0);
	printf("%s %.1f %s %.1f sum %.1f\n", request->kind->alloc, alloc, request->kind->free, release, alloc + release);
	if ((!functions[0].calls && !request->foreign) || !functions[1].calls) {
		fprintf(stderr, "count-instructions: a function was never called\n");
		return 2;
	}
	if (request->places && !write_places(request->places, functions))
		return 2;
	if (request->at_most > 0 && alloc + release > request->at_most) {
		fprintf(stderr, "count-instructions: %.1f instructions are more than %.1f\n", alloc + release, request->at_most);
		return 1;
	}
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: count-instructions [--preload LIB] [--fill COUNT [--foreign] --order in|reverse|shuffled] [--at-most LIMIT] "
	                "[--places FILE] kmem|kmalloc|malloc|resize\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "preload", required_argument, NULL, 'p' },
		                                     { "fill", required_argument, NULL, 'f' },
		                                     { "foreign", no_argument, NULL, 'e' },
		                                     { "order", required_argument, NULL, 'o' },
		                                     { "at-most", required_argument, NULL, 'm' },
		                                     { "places", required_argument, NULL, 'l' },
		                                     { "traced", required_argument, NULL, 't' },
		                                     { NULL, 0, NULL, 0 } };
	static const char *const orders[] = { "in", "reverse", "shuffled" };
	static struct objects objects;
	struct request request = { .order = "in" };
	int report = -1, option;
	unsigned order = 0;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'p':
			request.preload = optarg;
			break;
		case 'f':
			request.fill = (size_t)strtoull(optarg, NULL, 10);
			break;
		case 'e':
			request.foreign = true;
			break;
		case 'o':
			request.order = optarg;
			break;
		case 'm':
			request.at_most = strtod(optarg, NULL);
			break;
		case 'l':
			request.places = optarg;
			break;
		case 't':
			report = atoi(optarg);
			break;
		default:
			return usage();
		}
	}
	while (order < 3 && strcmp(orders[order], request.order) != 0)
		order++;
	if (optind != argc - 1 || order == 3 || request.fill > MOST_OBJECTS || (request.foreign && !request.fill) ||
	    (request.places && request.fill))
		return usage();
	request.kind = kind_named(argv[optind]);
	if (!request.kind)
		return usage();
	objects.kind = request.kind;
	objects.count = request.fill;
	objects.order = (enum order)order;
	objects.foreign = request.foreign;
	return report >= 0 ? be_traced(&objects, report) : trace(&request);
}
