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
 *
 * The lock protects the chunks and sections. Memory comes and goes without it: whoever is asked to give some up for that
 * (linux/shrinker.h) may have variables of processors too.
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
	char *start, *memory, *copies; /* the copies are aligned */
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

/* Of nobody yet. */
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
	return chunk;
}

static void free_chunk(struct chunk *chunk)
{
	if (!chunk)
		return;
	kvfree(chunk->memory);
	kvfree(chunk);
}

void sy__percpu_fork(enum sy__fork where)
{
	if (where == SY__FORK_BEFORE)
		mutex_lock(&lock);
	else
		mutex_unlock(&lock);
}

/* NULL: no chunk has room. */
static char *take(unsigned count, unsigned step)
{
	for (struct chunk *chunk = chunks; chunk; chunk = chunk->next) {
		unsigned at = room_in(chunk, count, step);

		if (at == GRANULES)
			continue;
		chunk->length[at] = (unsigned short)count;
		memset(chunk->taken + at, 1, count);
		return chunk->units + (size_t)at * GRANULE;
	}
	return NULL;
}

static char *take_of_new(unsigned count, unsigned step, gfp_t flags)
{
	struct chunk *fresh = new_chunk(flags);
	char *given;

	mutex_lock(&lock);
	given = take(count, step); /* as somebody may have freed or made some meanwhile */
	if (!given && fresh) {
		fresh->next = chunks;
		chunks = fresh;
		fresh = NULL;
		given = take(count, step);
	}
	mutex_unlock(&lock);
	free_chunk(fresh);
	return given;
}

void *sy__percpu_alloc(size_t size, size_t align, gfp_t flags)
{
	unsigned count = (unsigned)((size + GRANULE - 1) / GRANULE), step = align > GRANULE ? (unsigned)(align / GRANULE) : 1;
	char *given;

	if (!size || size > SY__PERCPU_UNIT || align > PAGE_SIZE)
		return NULL;
	sy__prepare_forks();
	mutex_lock(&lock);
	given = take(count, step);
	mutex_unlock(&lock);
	if (!given)
		given = take_of_new(count, step, flags & ~__GFP_ZERO);
	for (size_t cpu = 0; given && cpu < NR_CPUS; cpu++)
		memset(given + cpu * SY__PERCPU_UNIT, 0, (size_t)count * GRANULE);
	return given;
}

void sy__percpu_free(const void *pointer)
{
	struct chunk *empty = NULL;

	mutex_lock(&lock);
	for (struct chunk **place = &chunks; pointer && *place; place = &(*place)->next) {
		struct chunk *chunk = *place;
		uintptr_t at = ((uintptr_t)pointer - (uintptr_t)chunk->units) / GRANULE;

		if (at >= GRANULES)
			continue;
		memset(chunk->taken + at, 0, chunk->length[at]);
		if (!memchr(chunk->taken, 1, sizeof(chunk->taken))) {
			*place = chunk->next;
			empty = chunk;
		}
		break;
	}
	mutex_unlock(&lock);
	free_chunk(empty);
}

static const struct section *find(const char *start)
{
	const struct section *section = __atomic_load_n(&sections, __ATOMIC_ACQUIRE);

	while (section && section->start != start)
		section = section->next;
	return section;
}

static struct section *new_section(char *start, size_t size)
{
	struct section *section = kmalloc(sizeof(*section), GFP_KERNEL | __GFP_NOFAIL);

	section->start = start;
	section->distance = (size + GRANULE - 1) & ~(size_t)(GRANULE - 1);
	section->memory = kvmalloc(section->distance * (NR_CPUS - 1) + GRANULE, GFP_KERNEL | __GFP_NOFAIL);
	section->copies = (char *)(((uintptr_t)section->memory + GRANULE - 1) & ~(uintptr_t)(GRANULE - 1));
	return section;
}

static const struct section *copied(char *start, size_t size)
{
	struct section *fresh = new_section(start, size);
	const struct section *there;

	sy__prepare_forks();
	mutex_lock(&lock);
	there = find(start);
	if (!there) {
		for (size_t cpu = 1; cpu < NR_CPUS; cpu++)
			memcpy(fresh->copies + (cpu - 1) * fresh->distance, start, size);
		fresh->next = sections;
		__atomic_store_n(&sections, fresh, __ATOMIC_RELEASE);
		there = fresh;
		fresh = NULL;
	}
	mutex_unlock(&lock);
	if (fresh) {
		kvfree(fresh->memory);
		kfree(fresh);
	}
	return there;
}

void *sy__percpu_variable(char *start, size_t size, uintptr_t offset, unsigned cpu)
{
	const struct section *section = find(start);

	if (!section)
		section = copied(start, size);
	return cpu ? section->copies + (cpu - 1) * section->distance + offset : start + offset;
}
