/*
 * Variables of processors (linux/percpu.h).
 *
 * What alloc_percpu gives lies in chunks: a unit of SY__PERCPU_UNIT bytes for each processor, one after the other, in which
 * things have the same place. So a pointer to a part of a thing, whatever the thing's size, is as far from that of the next
 * processor. Places are taken first fit by granules of a line of the processor's cache; each chunk notes how many granules a
 * thing has that begins at one.
 *
 * Variables that a program defines stand in a section of their own, and are those of processor 0. The first who asks for one
 * makes copies of the whole section for the others, before anybody can have written to it.
 */
#include <slabyard/kernel/linux/mutex.h>
#include <slabyard/kernel/linux/percpu.h>

#include "forks.h"

#include <string.h>

#define GRANULE 64
#define GRANULES (SY__PERCPU_UNIT / GRANULE)

struct chunk {
	struct chunk *next;
	char *memory, *units; /* aligned to a page */
	unsigned short length[GRANULES]; /* of what begins here */
	bool taken[GRANULES];
};

struct section {
	struct section *next;
	char *start, *copies;
	size_t distance;
};

static DEFINE_MUTEX(lock);
static struct chunk *chunks;
static struct section *sections;

/* Where so many free granules are, from a multiple of step; GRANULES: nowhere. */
static unsigned room_in(const struct chunk *chunk, unsigned count, unsigned step)
{
	for (unsigned at = 0; at + count <= GRANULES; at += step) {
		unsigned free = 0;

		while (free < count && !chunk->taken[at + free])
			free++;
		if (free == count)
			return at;
	}
	return GRANULES;
}

static struct chunk *new_chunk(gfp_t flags)
{
	struct chunk *chunk = kvzalloc(sizeof(*chunk), flags);

	if (!chunk)
		return NULL;
	chunk->memory = kvmalloc((size_t)SY__PERCPU_UNIT * NR_CPUS + PAGE_SIZE, flags);
	if (!chunk->memory) {
		kvfree(chunk);
		return NULL;
	}
	chunk->units = (char *)PAGE_ALIGN((uintptr_t)chunk->memory);
	chunk->next = chunks;
	chunks = chunk;
	return chunk;
}

void sy__percpu_fork(enum sy__fork where)
{
	if (where == SY__FORK_BEFORE)
		mutex_lock(&lock);
	else
		mutex_unlock(&lock);
}

void *sy__percpu_alloc(size_t size, size_t align, gfp_t flags)
{
	unsigned count = (unsigned)((size + GRANULE - 1) / GRANULE), step = align > GRANULE ? (unsigned)(align / GRANULE) : 1, at = GRANULES;
	struct chunk *chunk;
	char *given = NULL;

	if (!size || size > SY__PERCPU_UNIT || align > PAGE_SIZE)
		return NULL;
	flags &= ~__GFP_ZERO;
	sy__prepare_forks();
	mutex_lock(&lock);
	for (chunk = chunks; chunk; chunk = chunk->next) {
		at = room_in(chunk, count, step);
		if (at < GRANULES)
			break;
	}
	if (!chunk) {
		chunk = new_chunk(flags);
		at = 0;
	}
	if (chunk) {
		chunk->length[at] = (unsigned short)count;
		memset(chunk->taken + at, 1, count);
		given = chunk->units + (size_t)at * GRANULE;
	}
	mutex_unlock(&lock);
	for (size_t cpu = 0; given && cpu < NR_CPUS; cpu++)
		memset(given + cpu * SY__PERCPU_UNIT, 0, (size_t)count * GRANULE);
	return given;
}

void sy__percpu_free(const void *pointer)
{
	mutex_lock(&lock);
	for (struct chunk **place = &chunks; pointer && *place; place = &(*place)->next) {
		struct chunk *chunk = *place;
		uintptr_t at = ((uintptr_t)pointer - (uintptr_t)chunk->units) / GRANULE;

		if (at >= GRANULES)
			continue;
		memset(chunk->taken + at, 0, chunk->length[at]);
		if (!memchr(chunk->taken, 1, sizeof(chunk->taken))) {
			*place = chunk->next;
			kvfree(chunk->memory);
			kvfree(chunk);
		}
		break;
	}
	mutex_unlock(&lock);
}

static const struct section *find(const char *start)
{
	const struct section *section = __atomic_load_n(&sections, __ATOMIC_ACQUIRE);

	while (section && section->start != start)
		section = section->next;
	return section;
}

static const struct section *copied(char *start, size_t size)
{
	const struct section *there;
	struct section *section;

	sy__prepare_forks();
	mutex_lock(&lock);
	there = find(start);
	if (!there) {
		section = kmalloc(sizeof(*section), GFP_KERNEL | __GFP_NOFAIL);
		section->start = start;
		section->distance = (size + GRANULE - 1) & ~(size_t)(GRANULE - 1);
		section->copies = kvmalloc(section->distance * (NR_CPUS - 1) + GRANULE, GFP_KERNEL | __GFP_NOFAIL);
		section->copies = (char *)(((uintptr_t)section->copies + GRANULE - 1) & ~(uintptr_t)(GRANULE - 1));
		for (size_t cpu = 1; cpu < NR_CPUS; cpu++)
			memcpy(section->copies + (cpu - 1) * section->distance, start, size);
		section->next = sections;
		__atomic_store_n(&sections, section, __ATOMIC_RELEASE);
		there = section;
	}
	mutex_unlock(&lock);
	return there;
}

void *sy__percpu_variable(char *start, size_t size, uintptr_t offset, unsigned cpu)
{
	const struct section *section = find(start);

	if (!section)
		section = copied(start, size);
	return cpu ? section->copies + (cpu - 1) * section->distance + offset : start + offset;
}
