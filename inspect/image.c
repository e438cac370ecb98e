/*
 * The other program's memory, at its own addresses.
 *
 * All its writable memory is reserved here without access, so that nothing of ours comes to lie there. The first touch of a
 * place faults, and the fault's handler brings the chunk (CHUNK bytes, aligned) around it. So only what is looked at is copied,
 * and nothing has to know beforehand what that is. Of a process, what will be needed is noted and brought while the process is
 * stopped; a chunk that is touched when it goes on already comes late, and is counted as such.
 *
 * The system loads this program to addresses that it chooses at random. If the other program has memory at one of them, this
 * program begins again (main.c), and finds itself elsewhere.
 */
#define _GNU_SOURCE
#include "inspect.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#define PIECE ((size_t)1 << 20) /* bytes between two looks at the clock */
#define MOST_THREADS 8u
#define MOST_GROWTH ((size_t)256 << 20) /* bytes of addresses that are only reserved */

enum { BROUGHT = 1, WANTED = 2, FIRST = 4, FRESH = 8 };

/* A region's chunks, and the state of each. */
struct part {
	uintptr_t start, end;
	uintptr_t first; /* of its first chunk */
	unsigned char *chunks;
	size_t count;
};

struct image_counts image_counts;

static struct target *target;
static struct part *parts;
static size_t part_count;

/* ---- Addresses ------------------------------------------------------------------------------------------------ */

/* Mappings that a heap may be in: writable ones, and those that may be writable by the time we look. Not the main thread's stack: no heap
 * is there, and our own stack is at those addresses. */
static bool is_needed(const struct region *region)
{
	const char *path = region->path ? region->path : "";
	bool of_file = *path == '/', of_kernel = strcmp(path, "[stack]") == 0 || strncmp(path, "[v", 2) == 0; /* [vdso], [vvar] */

	return !region->shared && !of_kernel && (region->writable || (!of_file && !region->executable));
}

static bool take(const struct region *region, struct fault *fault)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
	struct part *part = &parts[part_count];
	size_t bytes = region->end - region->start;

	if (!region->writable && bytes > MOST_GROWTH)
		bytes = MOST_GROWTH;
	if (mmap((void *)region->start, bytes, PROT_NONE, flags, -1, 0) != (void *)region->start)
		return !region->writable ||
		       refuse(fault, "the addresses from %#lx on cannot be had here; try again", (unsigned long)region->start);
	part->start = region->start;
	part->end = region->start + bytes;
	part->first = region->start & ~(CHUNK - 1);
	part->count = (part->end - part->first + CHUNK - 1) / CHUNK;
	part->chunks = calloc(part->count, 1);
	part_count++;
	return part->chunks || refuse(fault, "out of memory");
}

bool image_prepare(struct target *of, struct fault *fault)
{
	target = of;
	parts = calloc(of->regions.count + 1, sizeof(*parts));
	if (!parts)
		return refuse(fault, "out of memory");
	for (size_t i = 0; i < of->regions.count; i++)
		if (is_needed(&of->regions.list[i]) && !take(&of->regions.list[i], fault))
			return false;
	return true;
}

static struct part *part_of(uintptr_t address)
{
	size_t low = 0, high = part_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (parts[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < part_count && parts[low].start <= address ? &parts[low] : NULL;
}

/* ---- Bringing ------------------------------------------------------------------------------------------------- */

/* Where chunk `index` begins and ends, within its region. */
static uintptr_t start_of(const struct part *part, size_t index)
{
	uintptr_t start = part->first + index * CHUNK;

	return start < part->start ? part->start : start;
}

static uintptr_t end_of(const struct part *part, size_t index)
{
	uintptr_t end = part->first + (index + 1) * CHUNK;

	return end > part->end ? part->end : end;
}

/* Brings chunks that lie side by side. False: the memory is not ours to write. */
static bool bring(struct part *part, size_t index, size_t count)
{
	uintptr_t start = start_of(part, index), end = end_of(part, index + count - 1);
	size_t bytes = end - start;

	if (mprotect((void *)start, bytes, PROT_READ | PROT_WRITE))
		return false;
	target_read(target, start, (void *)start, bytes);
	__atomic_fetch_add(&image_counts.copied, bytes, __ATOMIC_RELAXED);
	if (!target->stopped && target->pid)
		__atomic_fetch_add(&image_counts.late, bytes, __ATOMIC_RELAXED);
	for (size_t i = 0; i < count; i++)
		part->chunks[index + i] = (unsigned char)((part->chunks[index + i] & ~WANTED) | BROUGHT | FRESH);
	return true;
}

static void fault_handler(int number, siginfo_t *information, void *registers)
{
	uintptr_t address = (uintptr_t)information->si_addr;
	struct part *part = part_of(address);
	static const char told[] = "slabyard-inspect: the heap is damaged, or its memory is missing: a pointer in it leads to "
	                           "where there is nothing. Of a process that was just growing, try again\n";

	(void)number;
	(void)registers;
	if (part) {
		size_t index = (address - part->first) / CHUNK;

		if (!(part->chunks[index] & BROUGHT) && bring(part, index, 1))
			return;
	}
	if (write(STDERR_FILENO, told, sizeof(told) - 1) < 0)
		_exit(3);
	_exit(2);
}

void image_use(void)
{
	struct sigaction action = { .sa_sigaction = fault_handler, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

void image_want(const void *from, size_t bytes)
{
	uintptr_t at = (uintptr_t)from, end = at + bytes;

	while (at < end) {
		struct part *part = part_of(at);
		unsigned char *chunk = part ? &part->chunks[(at - part->first) / CHUNK] : NULL;

		if (chunk && !(*chunk & FRESH))
			*chunk |= WANTED;
		at = (at & ~(CHUNK - 1)) + CHUNK;
	}
}

void image_note_first(void)
{
	for (size_t i = 0; i < part_count; i++)
		for (size_t j = 0; j < parts[i].count; j++)
			parts[i].chunks[j] |= parts[i].chunks[j] & BROUGHT ? FIRST : 0;
}

void image_renew(void)
{
	for (size_t i = 0; i < part_count; i++)
		for (size_t j = 0; j < parts[i].count; j++) {
			unsigned char *chunk = &parts[i].chunks[j];

			*chunk &= (unsigned char)~FRESH;
			*chunk |= *chunk & FIRST ? WANTED : 0;
		}
}

/* ---- By several threads --------------------------------------------------------------------------------------- */

struct span {
	struct part *part;
	size_t index, count;
};

static struct {
	struct span *spans;
	size_t count, next; /* next: that nobody has begun yet; atomic */
	uint64_t deadline;
} work;

static bool add_span(struct part *part, size_t index, size_t count)
{
	static size_t room;

	if (work.count == room) {
		struct span *more = realloc(work.spans, (room + 1024) * sizeof(*more));

		if (!more)
			return false;
		work.spans = more;
		room += 1024;
	}
	work.spans[work.count++] = (struct span){ part, index, count };
	return true;
}

/* Rows of wanted chunks. If a large region was never touched, its map is read as zeroes. */
static bool find_spans(void)
{
	work.count = work.next = 0;
	for (size_t i = 0; i < part_count; i++) {
		struct part *part = &parts[i];
		size_t count;

		for (size_t j = 0; j < part->count; j += count + !count) {
			for (count = 0; count < PIECE / CHUNK && j + count < part->count && part->chunks[j + count] & WANTED;)
				count++;
			if (count && !add_span(part, j, count))
				return false;
		}
	}
	return true;
}

/* Relaxed: each span belongs to one thread, and joining the threads makes their work visible. */
static void *bring_spans(void *nothing)
{
	while (!work.deadline || now_ns() < work.deadline) {
		size_t at = __atomic_fetch_add(&work.next, 1, __ATOMIC_RELAXED);

		if (at >= work.count)
			break;
		bring(work.spans[at].part, work.spans[at].index, work.spans[at].count);
	}
	return nothing;
}

void image_fetch(uint64_t deadline)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t others[MOST_THREADS];
	unsigned count = 0;

	if (!find_spans())
		return; /* what is needed comes when it is touched */
	work.deadline = deadline;
	while (count + 1 < (unsigned long)processors && count + 1 < MOST_THREADS && count + 1 < work.count &&
	       !pthread_create(&others[count], NULL, bring_spans, NULL))
		count++;
	bring_spans(NULL);
	while (count)
		pthread_join(others[--count], NULL);
}

bool image_has(const void *from, size_t bytes)
{
	struct part *part = part_of((uintptr_t)from);

	return part && bytes <= part->end - (uintptr_t)from;
}

/* ---- Regions -------------------------------------------------------------------------------------------------- */

bool regions_add(struct regions *regions, const struct region *region, struct fault *fault)
{
	if (regions->count == regions->room) {
		size_t room = regions->room ? 2 * regions->room : 256;
		struct region *list = realloc(regions->list, room * sizeof(*list));

		if (!list)
			return refuse(fault, "out of memory");
		regions->list = list;
		regions->room = room;
	}
	regions->list[regions->count++] = *region;
	return true;
}

const struct region *region_of(const struct regions *regions, uintptr_t address)
{
	for (size_t i = 0; i < regions->count; i++)
		if (address >= regions->list[i].start && address < regions->list[i].end)
			return &regions->list[i];
	return NULL;
}

/* ---- Reading -------------------------------------------------------------------------------------------------- */

static size_t read_core(const struct target *of, uintptr_t address, char *to, size_t bytes)
{
	const struct region *region = region_of(&of->regions, address);
	uint64_t from = region ? address - region->start : 0;
	size_t there;
	ssize_t got;

	if (!region)
		return 0;
	if (bytes > region->end - address)
		bytes = region->end - address;
	there = from >= region->stored ? 0 : region->stored - from < bytes ? (size_t)(region->stored - from) : bytes;
	got = there ? pread(of->memory, to, there, (off_t)(region->offset + from)) : 0;
	if (got < (ssize_t)there)
		return got < 0 ? 0 : (size_t)got;
	memset(to + there, 0, bytes - there);
	return bytes;
}

/* At once where the system lets us, else through the file. Pages that can't be read stay zero. */
size_t target_read(const struct target *of, uintptr_t address, void *to, size_t bytes)
{
	size_t done = 0;

	if (!of->pid)
		return read_core(of, address, to, bytes);
	while (done < bytes) {
		struct iovec here = { (char *)to + done, bytes - done }, there = { (void *)(address + done), bytes - done };
		ssize_t got = of->direct ? process_vm_readv(of->pid, &here, 1, &there, 1, 0) : -1;

		if (got <= 0)
			got = pread(of->memory, (char *)to + done, bytes - done, (off_t)(address + done));
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}
