/*
 * Decay: free memory goes back to the system after a while.
 *
 * Heaps give pages to the free lists, where memory still backs them. Memory that stays there for the time of decay (decay_ns of
 * the configuration) is not needed soon, so the source gets it back. No thread of ours does that. A thread that frees blocks to a
 * zone calls in (a visit), if much more is free than at the last visit; so do slow calls of a heap of threads now and then.
 *
 * How much. Programs breathe: pages that are free now may be needed soon, and returning a page in vain costs two system calls.
 * So we return no more than the program did without for all of decay_ns: the minimum of free and backed pages in that time.
 * The time is cut into SY__DECAY_STEPS steps, each with its own minimum.
 *
 * Which. While a block is free, sy_page.bytes holds the time when its youngest part became free; 0: the source has all of it
 * back. Joining keeps the later time, splitting copies it. A block goes when it was free for all of the steps.
 *
 * Clock. sy_pages.clock follows sy__now(), but advances at most decay_ns / PAUSE between two visits: a program that slept or
 * computed has neither used memory nor done without it. The clock is 0 where nothing decays.
 *
 * Refaults. If a step sees REFAULT_PAGES returned pages taken again, soon after memory went back, decay_ns doubles, at most
 * MOST_DOUBLINGS times. QUIET_STEPS steps without that halve it again.
 *
 * Fast decay. A program that frees nearly everything may never call again, and should not keep its peak. So blocks go after
 * decay_ns / FAST already while more than FAST_PAGES are free and backed, and FAST_SHARE times what is held. Once begun, fast
 * decay goes on down to FAST_LEAST_PAGES and 1/FAST_LEAST_SHARE of what is held. That figure includes descriptors: a few
 * scattered pages keep many of them. Fast decay is a bet; a program that refaults after it MOST_LOST_BETS times gets no more.
 * What was freed last is too young, so for decay_ns / RECHECK a visit asks slow calls to come again soon (core/this_slot.c).
 *
 * Growth elsewhere. Where the program gets fresh memory from the system elsewhere, as mappings of its own, twice as many free pages go at
 * once, whatever their age: a program that goes on to other sizes needs one or the other. FAST_LEAST_PAGES and 1/KEPT_SHARE of what is
 * held stay.
 *
 * Limits. A visit returns at most PAGES_AT_ONCE pages, so that no caller waits for long. Blocks below LARGE_ORDER go last, at
 * most SMALL_BATCHES batches in a visit, as each costs a system call for little memory. But they do go: where the survivors
 * are scattered there are no others.
 *
 * Finding blocks. A free list has the latest free in front, nearly, and discarded blocks at its end. A search starts in front
 * and stops after CLEAN_IN_A_ROW blocks with nothing to discard. A block leaves its list while its memory is discarded, so
 * that the zone's lock is free meanwhile. It then looks like a block on a per-CPU list, so no buddy joins it.
 */
#include "decay.h"

#define LARGE_ORDER 4u
#define PAUSE 4u
#define REFAULT_PAGES 64u
#define MOST_DOUBLINGS 2u
#define QUIET_STEPS (8 * SY__DECAY_STEPS)
#define FAST 256u
#define FAST_PAGES (((size_t)24 << 20) / SY_PAGE_SIZE)
#define FAST_LEAST_PAGES (((size_t)8 << 20) / SY_PAGE_SIZE)
#define FAST_SHARE 4u
#define FAST_LEAST_SHARE 2u
#define FAST_SEARCHES 8u /* in decay_ns / FAST */
#define MOST_LOST_BETS 2u
#define RECHECK 16u
#define KEPT_SHARE 4u /* of what is held: so much more stays when the program grows elsewhere */
#define PAGES_AT_ONCE (((size_t)64 << 20) / SY_PAGE_SIZE)
#define CLEAN_IN_A_ROW 16u
#define BLOCKS 32u /* off their lists at once */
#define SMALL_BATCHES 32u

/* Which blocks to return: their orders, free since before when, and at most how many pages. */
struct wanted {
	unsigned most_order, least_order;
	uint64_t before;
	size_t pages;
	unsigned batches;
};

struct batch {
	unsigned count;
	size_t pages;
	struct sy_page *blocks[BLOCKS];
};

static struct sy__decay *decay_of(const struct sy_pages *pages)
{
	return &sy__backend_of(pages)->decay;
}

/* ---- Giving back -------------------------------------------------------------------------------------------------- */

/* Moves old blocks from one free list to the batch, up to `most` pages. With the zone's lock held. */
static void gather(struct sy__zone *zone, unsigned order, unsigned type, uint64_t before, size_t most, struct batch *batch)
{
	struct sy_page *next;
	unsigned clean = 0;

	for (struct sy_page *page = zone->free[order][type].first; page && clean < CLEAN_IN_A_ROW; page = next) {
		next = page->free.next;
		clean = page->bytes ? 0 : clean + 1;
		if (!page->bytes || page->bytes > before)
			continue;
		if (batch->count == BLOCKS || batch->pages + ((size_t)1 << order) > most)
			return;
		sy__blocks_remove(&zone->free[order][type], page);
		sy__zone_loses(zone, page, order);
		sy__set_use(page, SY_USE_CPU_LIST);
		page->order = (uint8_t)order;
		batch->blocks[batch->count++] = page;
		batch->pages += (size_t)1 << order;
	}
}

/* Discards the descriptors of the maximal block around a page, if all of that block is free and discarded. With the zone's lock
 * held. */
static void discard_descriptors(struct sy_pages *pages, const struct sy_page *page)
{
	struct sy_page *head = sy__page(pages, sy__number(pages, page) & ~(SY__MAX_BLOCK - 1));

	if (sy__use(head) == SY_USE_FREE && head->order == SY_MAX_ORDER && !head->bytes)
		sy__descriptors_discard(pages, head);
}

static size_t discard(struct sy__zone *zone, const struct batch *batch)
{
	struct sy_pages *pages = zone->pages;
	size_t count = 0;

	for (unsigned i = 0; i < batch->count; i++)
		count += (size_t)sy__block_discard(pages, batch->blocks[i], batch->blocks[i]->order);
	sy__count_discarded(pages, count);
	sy__lock(&zone->lock);
	for (unsigned i = 0; i < batch->count; i++) {
		struct sy_page *page = batch->blocks[i];

		sy__zone_free_aged(zone, page, page->order, sy__pageblock_type(pages, sy__number(pages, page)), 0);
		discard_descriptors(pages, page);
	}
	sy__unlock(&zone->lock);
	return count;
}

static void gather_orders(struct sy__zone *zone, const struct wanted *wanted, size_t most, struct batch *batch)
{
	batch->count = 0;
	batch->pages = 0;
	for (unsigned order = wanted->most_order + 1; order-- > wanted->least_order && batch->count < BLOCKS;)
		for (unsigned type = 0; type < SY__CPU_TYPES && batch->count < BLOCKS; type++)
			gather(zone, order, type, wanted->before, most, batch);
}

/* Returns memory of a zone; how many pages. */
static size_t decay_zone(struct sy__zone *zone, const struct wanted *wanted)
{
	unsigned batches = 0;
	struct batch batch;
	size_t given = 0;

	do {
		sy__lock(&zone->lock);
		gather_orders(zone, wanted, wanted->pages - given, &batch);
		sy__unlock(&zone->lock);
		given += discard(zone, &batch);
	} while (batch.count == BLOCKS && given < wanted->pages && ++batches < wanted->batches);
	return given;
}

static size_t less(size_t from, size_t amount)
{
	return from > amount ? from - amount : 0;
}

/* Lowers all minima by what went back: it was free at each of those times. */
static void lower_minima(struct sy_pages *pages, size_t given)
{
	struct sy__decay *decay = decay_of(pages);

	for (unsigned i = 0; i < SY__DECAY_STEPS; i++)
		decay->lows[i] = less(decay->lows[i], given);
	sy__lock(&pages->account_lock);
	__atomic_store_n(&decay->lowest, less(decay->lowest, given), __ATOMIC_RELAXED);
	sy__unlock(&pages->account_lock);
}

static size_t give(struct sy_pages *pages, struct wanted wanted)
{
	size_t given = 0;

	for (unsigned i = 0; i < pages->zone_count && wanted.pages; i++) {
		size_t zone = decay_zone(&pages->zones[i], &wanted);

		given += zone;
		wanted.pages -= zone;
	}
	if (given)
		lower_minima(pages, given);
	return given;
}

static size_t give_wanted(struct sy_pages *pages, uint64_t now, struct wanted wanted)
{
	size_t given = give(pages, wanted);

	if (given)
		decay_of(pages)->given = now;
	return given;
}

static size_t give_large(struct sy_pages *pages, uint64_t now, uint64_t age, size_t most)
{
	const struct wanted wanted = { SY_MAX_ORDER, LARGE_ORDER, now - age, most, UINT_MAX };

	return now > age ? give_wanted(pages, now, wanted) : 0;
}

static size_t give_small(struct sy_pages *pages, uint64_t now, uint64_t age, size_t most)
{
	const struct wanted wanted = { LARGE_ORDER - 1, 0, now - age, most, SMALL_BATCHES };

	return now > age ? give_wanted(pages, now, wanted) : 0;
}

/* ---- Normal decay -------------------------------------------------------------------------------------------------- */

/* How long memory must stay free. */
static uint64_t decay_time(struct sy_pages *pages)
{
	return decay_of(pages)->time << decay_of(pages)->doublings;
}

/* Whether the step refaulted too much. With the account lock held. */
static bool has_refaulted(struct sy_pages *pages, uint64_t now)
{
	struct sy__decay *decay = decay_of(pages);
	bool much = decay->refaulted >= REFAULT_PAGES && decay->given && now - decay->given <= decay_time(pages);

	__atomic_store_n(&decay->refaulted, 0, __ATOMIC_RELAXED);
	return much;
}

/* Adapts the time that memory must stay free, or counts a lost bet. */
static void adapt(struct sy__decay *decay, bool refaulted)
{
	if (!refaulted) {
		if (++decay->quiet >= QUIET_STEPS && decay->doublings) {
			decay->doublings--;
			decay->quiet = 0;
		}
		return;
	}
	decay->quiet = 0;
	if (decay->fast)
		decay->lost_bets++;
	else if (decay->doublings < MOST_DOUBLINGS)
		decay->doublings++;
	decay->fast = false;
}

static size_t least_of_steps(const struct sy__decay *decay)
{
	size_t least = decay->lows[0];

	for (unsigned i = 1; i < SY__DECAY_STEPS; i++)
		if (decay->lows[i] < least)
			least = decay->lows[i];
	return least;
}

/* Ends a number of steps, in which the minimum was the same, and begins the next. */
static void step(struct sy_pages *pages, uint64_t now, unsigned steps)
{
	struct sy__decay *decay = decay_of(pages);
	bool refaulted;

	sy__lock(&pages->account_lock);
	for (; steps; steps--, decay->step = (decay->step + 1) % SY__DECAY_STEPS)
		decay->lows[decay->step] = decay->lowest;
	__atomic_store_n(&decay->lowest, sy__free_and_backed(pages), __ATOMIC_RELAXED);
	refaulted = has_refaulted(pages, now);
	sy__unlock(&pages->account_lock);
	decay->stepped = now;
	decay->due = least_of_steps(decay);
	adapt(decay, refaulted);
}

/* Pages of descriptors that would not be needed if the pages in use lay side by side. */
static size_t idle_descriptors(const struct sy_pages *pages, size_t used)
{
	size_t described = sy__read(&pages->described), needed = used / SY__MAX_BLOCK + 1;

	return less(described, needed) * (SY__MAX_BLOCK * sizeof(struct sy_page) / SY_PAGE_SIZE);
}

static bool decays_fast(struct sy_pages *pages)
{
	size_t backed = sy__free_and_backed(pages), held = sy__read(&pages->held_pages), idle;

	if (decay_of(pages)->lost_bets >= MOST_LOST_BETS)
		return false;
	if (!decay_of(pages)->fast)
		return backed > FAST_PAGES && backed > FAST_SHARE * held;
	idle = backed + idle_descriptors(pages, backed + held);
	return backed > REFAULT_PAGES && idle > FAST_LEAST_PAGES && idle > held / FAST_LEAST_SHARE;
}

static void give_due(struct sy_pages *pages, uint64_t now)
{
	struct sy__decay *decay = decay_of(pages);
	size_t most = decay->due < PAGES_AT_ONCE ? decay->due : PAGES_AT_ONCE, given;

	if (most < SY__DECAY_LEAST)
		return;
	given = give_large(pages, now, decay_time(pages), most);
	given += give_small(pages, now, decay_time(pages), less(most, given));
	decay->due = given ? less(decay->due, given) : 0;
	if (given && !decays_fast(pages))
		decay->fast = false;
}

/* ---- Fast decay --------------------------------------------------------------------------------------------------- */

/* Whether fast decay began, or last returned memory, at least so long ago. */
static bool is_late(struct sy_pages *pages, uint64_t now, uint64_t late)
{
	return decay_of(pages)->fast_since && now - decay_of(pages)->fast_since >= late;
}

/* Returns small blocks, when no large ones came for a while. The age limit spares those that were freed during the wait. */
static size_t give_rest(struct sy_pages *pages, uint64_t now)
{
	return is_late(pages, now, decay_of(pages)->time / RECHECK) ? give_small(pages, now, decay_of(pages)->time / RECHECK / 2, PAGES_AT_ONCE) : 0;
}

static void give_fast(struct sy_pages *pages, uint64_t now)
{
	struct sy__decay *decay = decay_of(pages);
	uint64_t age = decay_of(pages)->time / FAST;

	if (now < decay->searched + age / FAST_SEARCHES)
		return;
	decay->searched = now;
	if (give_large(pages, now, age, PAGES_AT_ONCE))
		decay->fast_since = now;
	else if (give_rest(pages, now))
		decay->fast_since = now - decay_of(pages)->time / RECHECK + age;
	else
		return;
	decay->fast = true;
}

/* ---- Visits ------------------------------------------------------------------------------------------------------- */

/* Advances the clock, by so much at most, and returns it. */
static uint64_t advance(struct sy_pages *pages, uint64_t most)
{
	uint64_t now = sy__now(), passed = now - decay_of(pages)->seen, clock;

	if (passed > most)
		passed = most;
	decay_of(pages)->seen = now;
	clock = sy__time(&pages->clock) + passed;
	sy__time_set(&pages->clock, clock);
	return clock;
}

/* A step ends early when a bet is lost: else the program would go on losing until the step's end. */
static bool step_ends(struct sy_pages *pages, uint64_t now)
{
	const struct sy__decay *decay = decay_of(pages);

	return now - decay->stepped >= decay_time(pages) / SY__DECAY_STEPS ||
	       (decay->fast && sy__read(&decay->refaulted) >= REFAULT_PAGES);
}

/* Whether another visit soon may return more. */
static bool wants_recheck(struct sy_pages *pages, uint64_t now)
{
	struct sy__decay *decay = decay_of(pages);
	bool recheck;

	if (!decays_fast(pages))
		decay->fast_since = 0;
	else if (!decay->fast_since)
		decay->fast_since = now;
	recheck = decay->fast_since && !is_late(pages, now, decay_of(pages)->time / RECHECK + decay_of(pages)->time / FAST);
	__atomic_store_n(&decay->recheck, recheck, __ATOMIC_RELAXED);
	return recheck;
}

/* A free makes a visit when more than this many pages are free and backed. 0, so that each free does, while memory is due; and where no
 * heap of threads owns the zones, as no slow calls make visits there. */
static size_t next_visit(struct sy_pages *pages)
{
	if (!sy__backend_of(pages)->commits_growth)
		return 0;
	return decay_of(pages)->due >= SY__DECAY_LEAST || decay_of(pages)->fast_since ? 0 : sy__free_and_backed(pages) + SY__DECAY_LEAST;
}

bool sy__pages_decay(struct sy_pages *pages)
{
	uint64_t now;
	bool recheck;

	if (!decay_of(pages)->time || !sy__free_and_backed(pages))
		return false;
	if (!sy__lock_try(&decay_of(pages)->lock))
		return __atomic_load_n(&decay_of(pages)->recheck, __ATOMIC_RELAXED);
	now = advance(pages, decay_of(pages)->time / PAUSE);
	if (step_ends(pages, now))
		step(pages, now, 1);
	if (decay_of(pages)->due)
		give_due(pages, now);
	if (decays_fast(pages))
		give_fast(pages, now);
	recheck = wants_recheck(pages, now);
	__atomic_store_n(&decay_of(pages)->next_visit, next_visit(pages), __ATOMIC_RELAXED);
	sy__unlock(&decay_of(pages)->lock);
	return recheck;
}

/* A program that sleeps does without its free memory after all: what was free since the last visit goes back. */
void sy__pages_decay_idle(struct sy_pages *pages)
{
	struct sy__decay *decay = decay_of(pages);
	uint64_t now;
	size_t before;

	if (!decay_of(pages)->time || !sy__lock_try(&decay->lock))
		return;
	now = advance(pages, UINT64_MAX);
	if (now - decay->stepped >= decay_time(pages))
		step(pages, now, SY__DECAY_STEPS);
	do {
		before = sy__pages_backed(pages);
		give_due(pages, now);
	} while (sy__pages_backed(pages) < before);
	__atomic_store_n(&decay_of(pages)->next_visit, next_visit(pages), __ATOMIC_RELAXED);
	sy__unlock(&decay->lock);
}

void sy__pages_offset_growth(struct sy_pages *pages, size_t count)
{
	size_t spare = less(sy__free_and_backed(pages), FAST_LEAST_PAGES + sy__read(&pages->held_pages) / KEPT_SHARE);
	const struct wanted wanted = { SY_MAX_ORDER, LARGE_ORDER, UINT64_MAX, 2 * count < spare ? 2 * count : spare, UINT_MAX };
	unsigned slot;

	if (!decay_of(pages)->time || !wanted.pages || !sy__call_enter(&slot))
		return;
	if (sy__lock_try(&decay_of(pages)->lock)) {
		give(pages, wanted);
		sy__unlock(&decay_of(pages)->lock);
	}
	sy__call_leave();
}

size_t sy__pages_backed(const struct sy_pages *pages)
{
	return sy__read(&pages->committed_pages);
}

/* A heap took pages. */
void sy__decay_taken(struct sy_pages *pages, unsigned discarded)
{
	struct sy__decay *decay = decay_of(pages);
	size_t backed = sy__free_and_backed(pages);

	if (backed < decay->lowest)
		__atomic_store_n(&decay->lowest, backed, __ATOMIC_RELAXED);
	if (backed + SY__DECAY_LEAST < sy__read(&decay->next_visit))
		__atomic_store_n(&decay->next_visit, backed + SY__DECAY_LEAST, __ATOMIC_RELAXED);
	if (sy__unlikely(discarded))
		sy__add(&decay->refaulted, discarded);
}

/* Pages were freed: a visit, if enough is free. */
void sy__decay_given(struct sy_pages *pages)
{
	if (sy__free_and_backed(pages) >= sy__read(&decay_of(pages)->next_visit))
		sy__pages_decay(pages);
}

/* A thread that returns memory holds the lock while free blocks are off their lists. */
void sy__decay_await(struct sy_pages *pages)
{
	sy__lock(&decay_of(pages)->lock);
	sy__unlock(&decay_of(pages)->lock);
}
