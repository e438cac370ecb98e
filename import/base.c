/*
 * Pass 2: where the direct map begins, so that a pointer tells its page frame: frame = (pointer - base) / page size.
 *
 * The trace itself knows. An allocator that runs out of slabs asks for pages and hands out an object of them at once, so
 * an object that a CPU allocates just after it got pages often lies in those pages, and pointer - frame number * page size
 * is the base. Page allocations for other purposes give wrong candidates, but each a different one, while the right one
 * repeats. Two facts make the vote sharp: the base is a multiple of 2 MiB on every architecture (direct maps are made of
 * large pages, and KASLR moves them by more), so that of the pages of a run at most one gives a candidate at all, and only
 * one run in 512 does by chance; and candidates count only within a few objects of their pages.
 *
 * The winner must have two votes and four times those of the next one. Hashed pointers (%p in tracefs text without
 * `nohash-ptr`) spread their votes evenly and have no winner. What a winner is worth shows in pass 3, which counts the
 * objects that it puts into pages that the trace saw freed.
 *
 * Votes are kept in a table of fixed size; when it fills up, every count goes down by one and those at zero leave
 * (Misra and Gries): a candidate with a real share of the votes survives that.
 */
#include "import.h"

#include <stdlib.h>

enum {
	TABLE = 1 << 14,
	REMEMBERED = 4, /* page allocations of each CPU */
	FRESH = 8,      /* object allocations after which a page allocation is forgotten */
	ALIGN_PAGES = (2 << 20) >> PAGE_SHIFT,
	VOTES = 2,
	LEAD = 4,
};

struct candidate {
	uint64_t pages; /* base / page size, modulo 2^52 */
	uint32_t votes;
};

struct recent {
	struct {
		uint64_t pfn;
		uint8_t order, age;
	} runs[REMEMBERED];
	unsigned next;
};

struct ballot {
	struct candidate *table; /* votes 0: empty */
	unsigned used;
};

static unsigned slot_of(const struct candidate *table, uint64_t pages)
{
	unsigned slot = (unsigned)((pages / ALIGN_PAGES * 0x9e3779b97f4a7c15u) >> 50);
	while (table[slot].votes && table[slot].pages != pages)
		slot = (slot + 1) % TABLE;
	return slot;
}

static void thin_out(struct ballot *ballot)
{
	struct candidate *old = ballot->table;
	ballot->table = zeroed(TABLE, sizeof *ballot->table);
	ballot->used = 0;
	for (unsigned i = 0; i < TABLE; i++)
		if (old[i].votes > 1) {
			ballot->table[slot_of(ballot->table, old[i].pages)] = (struct candidate){old[i].pages, old[i].votes - 1};
			ballot->used++;
		}
	free(old);
}

static void vote(struct ballot *ballot, uint64_t pages)
{
	while (ballot->used > TABLE / 4 * 3)
		thin_out(ballot);
	struct candidate *candidate = &ballot->table[slot_of(ballot->table, pages)];
	ballot->used += !candidate->votes;
	candidate->pages = pages;
	candidate->votes++;
}

static void consider(struct ballot *ballot, struct recent *recent, uint64_t address)
{
	uint64_t page = address >> PAGE_SHIFT;
	for (unsigned i = 0; i < REMEMBERED; i++) {
		if (!recent->runs[i].age)
			continue;
		recent->runs[i].age--;
		uint64_t distance = page - recent->runs[i].pfn, inside = distance % ALIGN_PAGES;
		if (inside < (uint64_t)1 << recent->runs[i].order)
			vote(ballot, (distance - inside) & (UINT64_MAX >> PAGE_SHIFT));
	}
}

static void remember(struct recent *recent, const struct record *record)
{
	recent->next = (recent->next + 1) % REMEMBERED;
	recent->runs[recent->next].pfn = record->address;
	recent->runs[recent->next].order = record->order;
	recent->runs[recent->next].age = FRESH;
}

static void elect(const struct ballot *ballot, struct base *base)
{
	struct candidate first = {0, 0}, second = {0, 0};
	for (unsigned i = 0; i < TABLE; i++) {
		if (ballot->table[i].votes > first.votes) {
			second = first;
			first = ballot->table[i];
		} else if (ballot->table[i].votes > second.votes) {
			second = ballot->table[i];
		}
	}
	base->known = first.votes >= VOTES && first.votes >= LEAD * second.votes;
	base->address = first.pages << PAGE_SHIFT;
}

void base_find(struct capture *capture, struct base *base)
{
	uint32_t cpus = 1;
	for (uint32_t i = 0; i < capture->scan_count; i++)
		if (capture->scans[i].cpus > cpus)
			cpus = capture->scans[i].cpus;
	struct recent *recent = zeroed(cpus, sizeof *recent);
	struct ballot ballot = {.table = zeroed(TABLE, sizeof *ballot.table)};
	capture_rewind(capture);
	for (const struct record *record; (record = capture_next(capture)) != NULL;) {
		if (record->kind == PAGE_ALLOC)
			remember(&recent[record->cpu], record);
		else if (is_alloc(record->kind))
			consider(&ballot, &recent[record->cpu], record->address);
	}
	elect(&ballot, base);
	free(ballot.table);
	free(recent);
}
