/*
 * Pass 2: where the kernel's direct map begins. With it a pointer gives its page frame: frame = (pointer - base) / page size.
 *
 * The trace itself tells. An allocator that runs out of slabs asks for pages and at once hands out an object of them. So an
 * object that a CPU allocates just after it got pages often lies in those pages, and pointer - frame number * page size is the
 * base. The same holds backwards: pages that a CPU frees just after it freed an object often held the object. Each such pair
 * votes for a candidate. Pages for other purposes give wrong candidates, each a different one, while the right one repeats.
 *
 * Three facts make the vote sharp. The base is a multiple of 2 MiB on every architecture, because direct maps are made of large
 * pages, and KASLR moves them by more. So at most one page of a run gives a candidate, and a wrong page does so only once in 512.
 * Candidates count only within a few objects of their pages. Movable pages, which are most of the rest, never hold objects.
 *
 * A candidate that is a multiple of 512 MiB counts sixteenfold. One wrong candidate in 256 is such a multiple, and nearly every
 * right one (x86-64 moves the map by GiB). So a short capture needs one such vote. The winner must have a weight of four, and four
 * times the weight of the next one. A pair that agrees by chance may be used again hundreds of times, and have many objects, so each
 * page of objects has one vote for a candidate. Pass 3 verifies the winner: it counts the objects in pages that cannot hold any.
 *
 * Where the capture does not tell the page size it is guessed too: 4 KiB, and if that has no winner, 16 and 64 KiB (main.c). With
 * a wrong size a candidate depends on the frame number, so the votes spread. But the fewer pages 2 MiB have, the more pairs
 * agree by chance. So such a winner must have four votes and be a multiple of 512 MiB (as those of 64-bit Arm and PowerPC are).
 *
 * Votes are in a table of fixed size. When it fills up, every count goes down by one, and candidates with none leave (Misra and
 * Gries). A candidate with a real share of the votes survives that.
 *
 * Where the recorder has asked the kernel which page frames are slabs, objects tell at once: the base puts nearly all of them
 * into slabs, and a wrong one few. Then nobody votes.
 *
 * A short capture in which few slabs came or went has no winner, or a wrong one. Hashed pointers (%p in tracefs text without
 * `nohash-ptr`) are told from others by their last bits: hashing makes them random, and every allocator aligns its objects.
 */
#include "import.h"

#include <stdlib.h>

enum {
	TABLE_BITS = 14,
	TABLE = 1 << TABLE_BITS,
	REMEMBERED = 4, /* page allocations of each CPU, and as many object frees */
	FRESH = 8,      /* they are forgotten after this number of events of the other kind */
	ALIGN = 2 << 20, /* bytes */
	ALIGN_LIKELY = 512 << 20,
	LIKELY = 16,
	WEIGHT = 4,
	LEAD = 4,
	MANY_PLACES = 48,
	OBJECT_ALIGN = 4, /* bytes: no allocator of any kernel aligns less */
	WEIGHT_OF_OTHER_SIZES = 4 * LIKELY,
	SAMPLES = 256, /* pages of objects that are looked for among slabs */
	FEW_SAMPLES = 16,
};

struct candidate {
	uint64_t pages;  /* base / page size, modulo 2^64 / page size */
	uint64_t places; /* a bit for each page that voted, by its hash */
	uint32_t votes;
};

struct recent {
	struct {
		uint64_t place; /* frame number of a run, or an object's address */
		uint8_t order, age;
	} entries[REMEMBERED];
	unsigned next;
};

struct cpu {
	struct recent runs, objects;
};

struct ballot {
	struct candidate *table; /* votes 0: empty */
	unsigned used;
	unsigned shift; /* of the page size */
};

static unsigned slot_of(const struct candidate *table, uint64_t pages)
{
	unsigned slot = (unsigned)((pages * 0x9e3779b97f4a7c15u) >> (64 - TABLE_BITS));
	while (table[slot].votes && table[slot].pages != pages)
		slot = (slot + 1) % TABLE;
	return slot;
}

/* Takes one vote from every candidate. */
static void decrement_all(struct ballot *ballot)
{
	struct candidate *old = ballot->table;
	ballot->table = zeroed(TABLE, sizeof *ballot->table);
	ballot->used = 0;
	for (unsigned i = 0; i < TABLE; i++)
		if (old[i].votes > 1) {
			ballot->table[slot_of(ballot->table, old[i].pages)] = (struct candidate){old[i].pages, old[i].places, old[i].votes - 1};
			ballot->used++;
		}
	free(old);
}

/* One page with objects has one vote for a candidate, however often they are used again, until most bits of `places` are set. */
static void vote(struct ballot *ballot, uint64_t pages, uint64_t page)
{
	while (ballot->used > TABLE / 4 * 3)
		decrement_all(ballot);
	struct candidate *candidate = &ballot->table[slot_of(ballot->table, pages)];
	uint64_t place = UINT64_C(1) << ((page * 0x9e3779b97f4a7c15u) >> 58);
	if (!candidate->votes) {
		ballot->used++;
		*candidate = (struct candidate){.pages = pages};
	}
	candidate->votes += !(candidate->places & place) || __builtin_popcountll(candidate->places) >= MANY_PLACES;
	candidate->places |= place;
}

/* Votes for the candidate of an object and a run of 2^order pages that may hold it, if there is one. */
static void consider(struct ballot *ballot, uint64_t address, uint64_t pfn, uint8_t order)
{
	uint64_t align = (uint64_t)ALIGN >> ballot->shift, distance = (address >> ballot->shift) - pfn, inside = distance % align;
	uint64_t run = (uint64_t)1 << order;
	if (inside < run && run < align) /* a larger run fits any object, which proves nothing */
		vote(ballot, (distance - inside) & (UINT64_MAX >> ballot->shift), address >> ballot->shift);
}

static void object_of_runs(struct ballot *ballot, struct recent *runs, uint64_t address)
{
	for (unsigned i = 0; i < REMEMBERED; i++)
		if (runs->entries[i].age) {
			runs->entries[i].age--;
			consider(ballot, address, runs->entries[i].place, runs->entries[i].order);
		}
}

static void run_of_objects(struct ballot *ballot, struct recent *objects, uint64_t pfn, uint8_t order)
{
	for (unsigned i = 0; i < REMEMBERED; i++)
		if (objects->entries[i].age) {
			objects->entries[i].age--;
			consider(ballot, objects->entries[i].place, pfn, order);
		}
}

static void remember(struct recent *recent, uint64_t place, uint8_t order)
{
	recent->next = (recent->next + 1) % REMEMBERED;
	recent->entries[recent->next].place = place;
	recent->entries[recent->next].order = order;
	recent->entries[recent->next].age = FRESH;
}

static bool is_likely(const struct candidate *candidate, unsigned shift)
{
	return candidate->pages % ((uint64_t)ALIGN_LIKELY >> shift) == 0;
}

static uint64_t weight(const struct candidate *candidate, unsigned shift)
{
	return (uint64_t)candidate->votes * (is_likely(candidate, shift) ? LIKELY : 1);
}

static void elect(const struct ballot *ballot, struct base *base)
{
	struct candidate best = {0};
	uint64_t first = 0, second = 0; /* weights */
	for (unsigned i = 0; i < TABLE; i++) {
		uint64_t one = weight(&ballot->table[i], ballot->shift);
		if (one > first) {
			second = first;
			first = one;
			best = ballot->table[i];
		} else if (one > second) {
			second = one;
		}
	}
	base->known = first >= WEIGHT && first >= LEAD * second;
	if (ballot->shift != PAGE_SHIFT && (first < WEIGHT_OF_OTHER_SIZES || !is_likely(&best, ballot->shift)))
		base->known = false;
	base->address = best.pages << ballot->shift;
}

static int by_value(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
	return (one > other) - (one < other);
}

/* How often the most frequent value of an ascending array occurs, and which it is; and how often the next one does. */
static size_t most_frequent(const uint64_t *values, size_t count, uint64_t *which, size_t *second)
{
	size_t most = 0;
	*second = 0;
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i; next < count && values[next] == values[i]; next++)
			;
		if (next - i > most) {
			*second = most;
			most = next - i;
			*which = values[i];
		} else if (next - i > *second) {
			*second = next - i;
		}
	}
	return most;
}

/* Distinct pages of objects from the beginning of the capture, where nearly all objects lie in slabs that were there before. */
static size_t first_pages(struct capture *capture, unsigned shift, uint64_t pages[SAMPLES])
{
	size_t count = 0;
	capture_rewind(capture);
	for (const struct record *record; count < SAMPLES && (record = capture_next(capture)) != NULL;) {
		uint64_t page = record->address >> shift;
		bool is_new = is_object(record->kind);
		for (size_t i = 0; is_new && i < count; i++)
			is_new = pages[i] != page;
		if (is_new)
			pages[count++] = page;
	}
	return count;
}

/* The base that puts most objects into slabs, and twice as many as any other does. */
static void base_of_slabs(struct capture *capture, const struct slab_frames *slabs, struct base *base, unsigned shift)
{
	uint64_t pages[SAMPLES], *candidates = NULL, within = ((uint64_t)ALIGN >> shift) - 1;
	size_t sampled = first_pages(capture, shift, pages), count = 0, room = 0;
	for (size_t i = 0; i < sampled; i++)
		for (size_t j = 0; j < slabs->count; j++)
			if (!((pages[i] - slabs->frames[j]) & within))
				APPEND(candidates, count, room, (pages[i] - slabs->frames[j]) & (UINT64_MAX >> shift));
	if (count)
		qsort(candidates, count, sizeof *candidates, by_value);
	uint64_t best = 0;
	size_t second, most = most_frequent(candidates, count, &best, &second);
	base->known = most >= FEW_SAMPLES && most > sampled / 2 && most > 2 * second;
	base->address = best << shift;
	base->shift = shift;
	free(candidates);
}

void base_find(struct capture *capture, const struct slab_frames *slabs, struct base *base, unsigned shift)
{
	base->hashed = false;
	if (slabs->count)
		base_of_slabs(capture, slabs, base, shift);
	if (slabs->count && base->known)
		return;
	uint32_t cpus = 1;
	uint64_t objects = 0, unaligned = 0, upper = 0;
	for (uint32_t i = 0; i < capture->scan_count; i++)
		if (capture->scans[i].cpus > cpus)
			cpus = capture->scans[i].cpus;
	struct cpu *recent = zeroed(cpus, sizeof *recent);
	struct ballot ballot = {.table = zeroed(TABLE, sizeof *ballot.table), .shift = shift};
	capture_rewind(capture);
	for (const struct record *record; (record = capture_next(capture)) != NULL;) {
		struct cpu *cpu = &recent[record->cpu];
		if (is_object(record->kind)) {
			objects++;
			unaligned += record->address % OBJECT_ALIGN != 0;
			upper += record->address >> 63;
		}
		if (record->kind == PAGE_ALLOC && record->migrate != MOVABLE)
			remember(&cpu->runs, record->address, record->order);
		else if (record->kind == PAGE_FREE)
			run_of_objects(&ballot, &cpu->objects, record->address, record->order);
		else if (is_alloc(record->kind))
			object_of_runs(&ballot, &cpu->runs, record->address);
		else if (is_object(record->kind))
			remember(&cpu->objects, record->address, 0);
	}
	elect(&ballot, base);
	base->shift = shift;
	base->hashed = unaligned > objects / 4;
	/* The direct map of a kernel in the upper half of the addresses is there too. */
	if (base->hashed || (upper > objects / 2 && !(base->address >> 63)))
		base->known = false;
	free(ballot.table);
	free(recent);
}
