/*
 * count-instructions: how many instructions an allocation and a free take inside an allocator's shared library.
 *
 *   count-instructions [--preload LIB] [--fill COUNT [--remote] --order in|reverse|shuffled] [--at-most LIMIT]
 *                      [--places FILE] kmem|kmalloc|malloc|resize
 *
 * Times of a few nanoseconds depend on the machine, its clock and its neighbours. Instructions don't, so they can be counted in
 * CI. The program runs itself again with the library preloaded, one thread and objects of 64 bytes, and single-steps that
 * process by ptrace. It counts from the first instruction of a function to its return, whatever the function calls included. The
 * caller's call and its jump through the procedure linkage table are not counted.
 *
 *   kmem      kmem_cache_alloc and kmem_cache_free (slabyard/kmem.h)
 *   kmalloc   kmalloc and kfree
 *   malloc    malloc and free: the library's, or the system's without --preload
 *   resize    realloc and malloc_usable_size, of one object that stays where it is
 *
 * Pairs, without --fill: one object is allocated and freed again and again, a thousand times unwatched, then a hundred times
 * counted. Printed are the medians of both functions and their sum.
 *
 * --fill: COUNT objects are allocated, then freed in the order of allocation, in reverse, or shuffled: once unwatched, then
 * watched. A step takes microseconds, so only every eleventh call is watched. Eleven divides no usual number of objects in a
 * slab or an array, nor of calls from one look at the clock to the next (core/this_slot.h). So calls that fill or empty a slab, or
 * look at the clock, are watched as often as they occur. Printed are the means of both functions and their sum. With --remote
 * another thread allocates the objects, unwatched, and then waits; the watched thread only frees.
 *
 * --places, with pairs: FILE gets a line for each instruction in the calls that took the printed number of them: "alloc" or
 * "free", the instruction's distance in bytes from the start of the allocating function, and how often it ran in a call.
 *
 * The library sees the environment: SLABYARD=slab:batchcount=16 count-instructions --preload libslabyard.so kmalloc.
 * Exit status: 0; 1 the sum is above --at-most; 2 wrong usage, no such function in the library, or FILE cannot be written;
 * 77 this machine allows no tracing.
 *
 * Time. The traced process is a thousand times slower than usual, so work that a library does once a second would come far too
 * often. While it fills and drains, each look at the clock therefore finds it LOOK_NS later than the look before,
 * whether by the C library or by the one that the kernel maps.
 *
 * Protocol. The traced process writes the addresses of both functions into a pipe, and stops itself before each watched call.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "programs/options.h"

#define SIZE ((size_t)64)
#define WARM_PAIRS 1000
#define PAIRS 100
#define MOST_OBJECTS 1000000
#define EVERY 11
#define GFP_KERNEL_IN_KMEM_H 0x10000u /* GFP_KERNEL asks for nothing; any bit that no request looks at */
#define MOST_STEPS (PAIRS * 100000) /* of each function, whose places are noted */
#define LOOK_NS 1000
#define CANNOT_TRACE 77
#define KMEM 0 /* in kinds */
#define RESIZE 3

/* ---- The traced process ----------------------------------------------------------------------------------------- */

static bool slow; /* so many calls are watched that the clock must be slowed down */

/* For the library too. */
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

#if defined(__x86_64__)
#define KERNELS_CLOCK "__vdso_clock_gettime"
#else
#define KERNELS_CLOCK "__kernel_clock_gettime"
#endif

/* A library such as the kernel maps into each process, whose clock is ours. */
static uintptr_t kernels_library(void)
{
	static struct {
		ElfW(Ehdr) file;
		ElfW(Phdr) segments[2];
		ElfW(Dyn) entries[3];
		ElfW(Sym) symbol;
		char names[sizeof(KERNELS_CLOCK) + 1]; /* the first is empty */
	} image;
	const uintptr_t start = (uintptr_t)&image;

	image.file.e_phoff = (uintptr_t)image.segments - start;
	image.file.e_phnum = 2;
	image.segments[0] = (ElfW(Phdr)){ .p_type = PT_LOAD };
	image.segments[1] = (ElfW(Phdr)){ .p_type = PT_DYNAMIC, .p_offset = (uintptr_t)image.entries - start };
	image.entries[0] = (ElfW(Dyn)){ .d_tag = DT_SYMTAB, .d_un = { .d_ptr = (uintptr_t)&image.symbol - start } };
	image.entries[1] = (ElfW(Dyn)){ .d_tag = DT_STRTAB, .d_un = { .d_ptr = (uintptr_t)image.names - start } };
	image.symbol = (ElfW(Sym)){ .st_name = 1, .st_shndx = 1, .st_value = (uintptr_t)clock_gettime - start };
	memcpy(image.names + 1, KERNELS_CLOCK, sizeof(KERNELS_CLOCK));
	return start;
}

/* Libraries that take the kernel's clock, and not the C library's, find it by this. */
unsigned long getauxval(unsigned long type)
{
	static unsigned long (*systems)(unsigned long);

	if (!systems) {
		void *address = dlsym(RTLD_NEXT, "getauxval");

		memcpy(&systems, &address, sizeof(address));
	}
	return type == AT_SYSINFO_EHDR ? kernels_library() : systems(type);
}

static const struct kind {
	const char *name, *alloc, *free;
} kinds[] = {
	{ "kmem", "kmem_cache_alloc", "kmem_cache_free" },
	{ "kmalloc", "kmalloc", "kfree" },
	{ "malloc", "malloc", "free" },
	{ "resize", "realloc", "malloc_usable_size" },
};

/* All of these functions take one or two words. In both processors' calling conventions a function of one argument may be called
 * with two. */
typedef uintptr_t library_function(uintptr_t first, uintptr_t second);

/* What is traced; the thread of --remote fills it. */
static struct {
	const struct kind *kind;
	size_t count; /* 0: pairs */
	enum order { IN_ORDER, REVERSE, SHUFFLED } order;
	bool remote;
	int filled; /* the pipe into which the thread says that it is done */
	library_function *alloc, *free;
	uintptr_t cache;  /* of kmem, or 0 */
	uintptr_t object; /* the last one */
	uintptr_t all[MOST_OBJECTS];
} traced;

/* The library's function of this name. Ends the process where it has none. */
static library_function *find(const char *name)
{
	void *address = dlsym(RTLD_DEFAULT, name);
	library_function *found;

	if (!address) {
		fprintf(stderr, "count-instructions: the library has no function %s; preload one that has\n", name);
		_exit(2);
	}
	memcpy(&found, &address, sizeof(address)); /* as POSIX allows */
	return found;
}

static uintptr_t get(void)
{
	if (traced.cache)
		traced.object = traced.alloc(traced.cache, GFP_KERNEL_IN_KMEM_H);
	else if (traced.kind == &kinds[RESIZE])
		traced.object = traced.alloc(traced.object, SIZE);
	else
		traced.object = traced.alloc(SIZE, GFP_KERNEL_IN_KMEM_H);
	return traced.object;
}

static void put(uintptr_t object)
{
	if (traced.cache)
		traced.free(traced.cache, object);
	else
		traced.free(object, 0);
}

static void create_cache(void)
{
	uintptr_t (*create)(const char *, unsigned, unsigned, unsigned, void (*)(void *));
	library_function *found = find("kmem_cache_create");

	memcpy(&create, &found, sizeof(found));
	traced.cache = create("counted", SIZE, 0, 0, NULL);
}

static void swap(size_t one, size_t other)
{
	uintptr_t object = traced.all[one];

	traced.all[one] = traced.all[other];
	traced.all[other] = object;
}

static void arrange(void)
{
	uint64_t state = 1;

	for (size_t i = 0; traced.order == REVERSE && i < traced.count / 2; i++)
		swap(i, traced.count - 1 - i);
	for (size_t i = traced.count; traced.order == SHUFFLED && i > 1; i--) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		swap(i - 1, (size_t)(state >> 33) % i);
	}
}

static long self;

/* Has the tracer, if there is one, watch the next call of one of the two functions. */
static void watch(bool watched)
{
	if (watched)
		syscall(SYS_kill, self, SIGSTOP);
}

static void fill(bool watched)
{
	for (size_t i = 0; i < traced.count; i++) {
		watch(watched && i % EVERY == 0);
		traced.all[i] = get();
	}
}

static void *fill_elsewhere(void *unused)
{
	fill(false);
	if (write(traced.filled, "", 1) != 1)
		_exit(2);
	for (;;)
		pause(); /* the thread keeps what it owns */
	return unused;
}

static bool fill_by_thread(void)
{
	int channel[2];
	pthread_t thread;
	char done;

	if (pipe(channel) != 0)
		return false;
	traced.filled = channel[1];
	return pthread_create(&thread, NULL, fill_elsewhere, NULL) == 0 && read(channel[0], &done, 1) == 1;
}

static void fill_and_drain(bool watched)
{
	if (traced.remote && !fill_by_thread())
		_exit(2);
	if (!traced.remote)
		fill(watched);
	arrange();
	for (size_t i = 0; i < traced.count; i++) {
		watch(watched && i % EVERY == 0);
		put(traced.all[i]);
	}
}

static void run_pairs(unsigned count, bool watched)
{
	while (count--) {
		watch(watched);
		get();
		watch(watched);
		put(traced.object);
	}
}

static void run(unsigned pairs, bool watched)
{
	if (traced.count)
		fill_and_drain(watched);
	else
		run_pairs(pairs, watched);
}

static int be_traced(int report)
{
	uint64_t addresses[2];

	traced.alloc = find(traced.kind->alloc);
	traced.free = find(traced.kind->free);
	addresses[0] = (uint64_t)(uintptr_t)traced.alloc;
	addresses[1] = (uint64_t)(uintptr_t)traced.free;
	self = (long)getpid();
	if (traced.kind == &kinds[KMEM])
		create_cache();
	slow = traced.count > 0;
	run(WARM_PAIRS, false);
	if (write(report, addresses, sizeof(addresses)) != sizeof(addresses) || ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		return CANNOT_TRACE;
	run(PAIRS, true);
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

/* Where a function returns to. Asked at its first instruction. */
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
	uint64_t *trail; /* of pairs: the addresses of all executed instructions, one call behind the other */
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

/* Moves the instructions of all calls of this length to the front of the trail. Returns the number of these calls. */
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

/* False: not all of it is in the file. */
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

/* Steps from the first instruction of a function to its return. */
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

/* Follows the process from its first stop until it ends. */
static void follow(pid_t child, struct counted functions[2])
{
	int status;

	do
		follow_one(child, functions);
	while (ptrace(PTRACE_CONT, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status));
}

struct request {
	const char *preload, *fill, *order, *at_most, *places, *traced;
	bool remote;
};

/* Keeps both processes on one CPU: a step is then a switch between them, and no other CPU has to be woken. It only saves time. */
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
	char channel[16];

	snprintf(channel, sizeof(channel), "%d", report);
	if (request->preload)
		setenv("LD_PRELOAD", request->preload, 1);
	setenv("LD_BIND_NOW", "1", 1);
	execl("/proc/self/exe", "count-instructions", "--traced", channel, "--fill", request->fill, "--order", request->order,
	      request->remote ? "--remote" : traced.kind->name, request->remote ? traced.kind->name : NULL, (char *)NULL);
	_exit(2);
}

static int trace(const struct request *request)
{
	static uint64_t each[2][MOST_OBJECTS], trail[2][MOST_STEPS];
	struct counted functions[2] = { { .each = each[0] }, { .each = each[1] } };
	uint64_t addresses[2];
	int channel[2], status;
	double alloc, release, most = request->at_most ? strtod(request->at_most, NULL) : 0;
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

	alloc = figure(&functions[0], traced.count > 0);
	release = figure(&functions[1], traced.count > 0);
	printf("%s %.1f %s %.1f sum %.1f\n", traced.kind->alloc, alloc, traced.kind->free, release, alloc + release);
	if ((!functions[0].calls && !request->remote) || !functions[1].calls) {
		fprintf(stderr, "count-instructions: a function was never called\n");
		return 2;
	}
	if (request->places && !write_places(request->places, functions))
		return 2;
	if (most > 0 && alloc + release > most) {
		fprintf(stderr, "count-instructions: %.1f instructions are more than %.1f\n", alloc + release, most);
		return 1;
	}
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: count-instructions [--preload LIB] [--fill COUNT [--remote] --order in|reverse|shuffled] [--at-most LIMIT] "
	                "[--places FILE] kmem|kmalloc|malloc|resize\n");
	return 2;
}

/* Sets up what is traced. */
static bool understand(const struct request *request, const char *kind)
{
	static const char *const orders[] = { "in", "reverse", "shuffled" };
	unsigned order = 0;
	uint64_t count;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, kind))
			traced.kind = &kinds[i];
	while (order < 3 && strcmp(orders[order], request->order) != 0)
		order++;
	if (!traced.kind || order == 3 || !number_whole(request->fill, 0, MOST_OBJECTS, &count))
		return false;
	traced.count = (size_t)count;
	traced.order = (enum order)order;
	traced.remote = request->remote;
	return count ? !request->places : !request->remote;
}

int main(int argc, char **argv)
{
	struct request request = { .fill = "0", .order = "in" };
	const struct option options[] = {
		{ "--preload", &request.preload, NULL },
		{ "--fill", &request.fill, NULL },
		{ "--remote", NULL, &request.remote },
		{ "--order", &request.order, NULL },
		{ "--at-most", &request.at_most, NULL },
		{ "--places", &request.places, NULL },
		{ "--traced", &request.traced, NULL },
		{ 0 },
	};
	struct fault fault;
	int first = options_read(options, argc, argv, &fault);

	if (!first || first != argc - 1 || !understand(&request, argv[first]))
		return usage();
	return request.traced ? be_traced(atoi(request.traced)) : trace(&request);
}
