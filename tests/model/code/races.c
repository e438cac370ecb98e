/*
 * Races, by vector clocks.
 *
 * Each thread has a clock, which goes on at each release. It also knows for each other thread up to which time of that
 * thread's clock it has seen its work. An atomic word written with release carries what its writer knew; a thread that reads
 * it with acquire knows that from then on. An exchange without release leaves what the word carries (it continues the release
 * sequence); an atomic store without release takes that away. For every byte the model knows when each thread last read and
 * wrote it, atomically and not. Two accesses race if one of them writes, not both are atomic, they are of different threads,
 * and the later thread does not know of the earlier access.
 */
#define _GNU_SOURCE /* MAP_NORESERVE */
#include "inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RANGES 8
#define WORDS 1024u /* atomic words of one execution, at most; a power of two */

enum { PLAIN_READ, PLAIN_WRITE, ATOMIC_READ, ATOMIC_WRITE, WAYS };

struct byte {
	uint32_t execution; /* of an earlier execution: it no longer counts */
	uint16_t last[WAYS][MODEL_THREADS];
};

struct knowledge {
	uint16_t of[MODEL_THREADS];
};

struct word {
	uint32_t execution;
	uintptr_t address;
	struct knowledge released;
};

static struct {
	struct range range;
	struct byte *bytes;
} ranges[RANGES];

static unsigned range_count;
static uint32_t execution;
static struct knowledge threads[MODEL_THREADS];
static struct word words[WORDS];

void races_add(struct range range)
{
	void *bytes = mmap(NULL, range.bytes * sizeof(struct byte), PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bytes == MAP_FAILED || range_count == RANGES)
		abort();
	ranges[range_count].range = range;
	ranges[range_count++].bytes = bytes;
}

void races_begin(void)
{
	execution++;
	memset(threads, 0, sizeof(threads));
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		threads[i].of[i] = 1;
}

/* NULL: of memory that nobody shares. */
static struct byte *byte_at(uintptr_t address)
{
	for (unsigned i = 0; i < range_count; i++)
		if (address - (uintptr_t)ranges[i].range.start < ranges[i].range.bytes)
			return &ranges[i].bytes[address - (uintptr_t)ranges[i].range.start];
	return NULL;
}

/* Whether the thread does not know of another's access of this kind to the byte. */
static bool unknown(unsigned thread, const struct byte *byte, unsigned way)
{
	for (unsigned other = 0; other < MODEL_THREADS; other++)
		if (other != thread && byte->last[way][other] > threads[thread].of[other])
			return true;
	return false;
}

static const char *race_on(unsigned thread, struct byte *byte, bool writes, bool atomic)
{
	if (byte->execution != execution)
		*byte = (struct byte){ .execution = execution };
	byte->last[2 * atomic + writes][thread] = threads[thread].of[thread];
	if (unknown(thread, byte, PLAIN_WRITE))
		return "a race with a plain write";
	if (!atomic && unknown(thread, byte, ATOMIC_WRITE))
		return "a race with an atomic write";
	if (writes && unknown(thread, byte, PLAIN_READ))
		return "a race with a plain read";
	return writes && !atomic && unknown(thread, byte, ATOMIC_READ) ? "a race with an atomic read" : NULL;
}

const char *race(unsigned thread, const volatile void *address, size_t bytes, bool writes, bool atomic)
{
	struct byte *byte = byte_at((uintptr_t)address);
	const char *wrong = NULL;

	for (size_t i = 0; byte && i < bytes && !wrong; i++)
		wrong = race_on(thread, byte + i, writes, atomic);
	return wrong;
}

/* ---- What threads know of each other ------------------------------------------------------------------------------- */

static void learn(struct knowledge *to, const struct knowledge *from)
{
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		if (to->of[i] < from->of[i])
			to->of[i] = from->of[i];
}

void joined(unsigned thread, unsigned other)
{
	learn(&threads[thread], &threads[other]);
	threads[other].of[other]++;
}

static struct word *word_at(const volatile void *address)
{
	uintptr_t at = (uintptr_t)address;
	unsigned i = (unsigned)((at >> 3 ^ at >> 13) % WORDS), looks = 0;

	while (words[i].execution == execution && words[i].address != at) {
		i = (i + 1) % WORDS;
		if (++looks == WORDS)
			abort();
	}
	if (words[i].execution != execution)
		words[i] = (struct word){ .execution = execution, .address = at };
	return &words[i];
}

static bool acquires(int order)
{
	return order == __ATOMIC_ACQUIRE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static bool releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

void atomic_read(unsigned thread, const volatile void *address, int order)
{
	if (acquires(order))
		learn(&threads[thread], &word_at(address)->released);
}

void atomic_written(unsigned thread, const volatile void *address, int order, bool exchanged)
{
	struct word *word = word_at(address);

	if (!exchanged)
		memset(&word->released, 0, sizeof(word->released));
	if (!releases(order))
		return;
	learn(&word->released, &threads[thread]);
	threads[thread].of[thread]++;
}
