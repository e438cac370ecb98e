/*
 * Giving memory back after a while.
 *
 * What heaps give up goes to the free lists, still backed by memory of the source. If it stays there for a while it is not
 * going to be needed soon, and goes back to the source. There is no thread for that: whoever gives blocks of some size back to
 * a zone comes by here, if nothing is due already only with so much more free than at the last visit, or the least since then,
 * that it is worth a look at the clock; and so do slow calls of a heap of threads now and then.
 *
 * How much. A program breathes: what is free now may be taken again before long, and each page that goes back needlessly
 * costs two calls of the kernel. So what counts is never how much is free at some moment, but the least that was free and backed
 * at any moment of the last decay_ns: the program did without that much all the time. The time is cut into SY__DECAY_STEPS
 * steps; a heap that takes pages lowers the least of the step, and the least of the last steps may go back.
 *
 * Which. A free block carries in sy_page.bytes, which means nothing else while it is free, the time at which the youngest part
 * of it became free, or 0 if the source has all of it back. Joining takes the later time, splitting passes it on. Only blocks
 * that have been free for all of the steps go.
 *
 * The clock is sy_pages.clock. It runs with sy__now(), but while nobody comes by it stands still after decay_ns / PAUSE: a
 * program that lost its processor, waited or computed has neither used memory nor done without. It is 0 where there is no
 * decay.
 *
 * Regret. Pages that went back and are soon taken again should have stayed. If REGRET_PAGES are in one step, and memory went
 * back in the steps before, the time doubles, at most MOST_DOUBLINGS times; after QUIET_STEPS without it halves again.
 *
 * Hurry. A program that gives up nearly all it has may never come by here again, and should not keep the peak. So while more
 * than HURRY_PAGES are free and backed, and HURRY_SHARE times what is held, blocks go after decay_ns / HURRY already; once
 * begun, down to HURRIED_PAGES and a HURRIED_SHARE-th of what is held, descriptors included that go when the last page of their
 * maximal block does: a few scattered pages keep many times as much. That is a bet; a program by which it was lost MOST_REGRETS
 * times is not hurried any more. What was freed last is too young for that; so for decay_ns / HOPE from the beginning of a
 * hurry, or the last that went, slow calls are told that they should come by again soon (core/here.c).
 *
 * How much at once. At most PAGES_AT_ONCE go in one visit, so that no caller waits for long; the next one goes on. Blocks of
 * less than LARGE_ORDER, of which so little comes that a call of the kernel for each is dear, go last, in a hurry too, and at
 * most SMALL_BATCHES batches of them in one visit. But they do go: where what lives on is scattered there are no others.
 *
 * How to find them. A free list has what became free last in front, near enough, and blocks that were discarded behind. A look
 * starts in front and ends where it has met CLEAN_IN_A_ROW blocks with nothing to discard.
 *
 * A block leaves its list while its memory is discarded, so that the zone's lock is not held meanwhile. It then looks as if
 * it were on a per-CPU list, hence no buddy joins with it.
 */
#include "decay.h"

#define LARGE_ORDER 4u
#define PAUSE 4u
#define REGRET_PAGES 64u
#define MOST_DOUBLINGS 2u
#define QUIET_STEPS (8 * SY__DECAY_STEPS)
#define HURRY 256u
#define HURRY_PAGES (((size_t)24 << 20) / SY_PAGE_SIZE)
#define HURRIED_PAGES (((size_t)8 << 20) / SY_PAGE_SIZE)
#define HURRY_SHARE 4u
#define HURRIED_SHARE 2u
#define HURRIED_LOOKS 8u /* in that time */
#define MOST_REGRETS 2u
#define HOPE 16u
#define PAGES_AT_ONCE (((size_t)64 << 20) / SY_PAGE_SIZE)
#define CLEAN_IN_A_ROW 16u
#define BLOCKS 32u /* off their lists at once */
#define SMALL_BATCHES 32u

/* Blocks to look for: of which orders, free since when, how many pages of them at most. */
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

/* ---- Giving back -------------------------------------------------------------------------------------------------- */

/* Takes old blocks off one list, as long as there is room for them among the pages to go. With the zone's lock held. */
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

/* The descriptors of the maximal block that this one is in, if all of that is free and discarded. With the zone's lock held. */
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

/* Pages given back. */
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

/* What has gone back was among what was free all the time. */
static void forget(struct sy_pages *pages, size_t given)
{
	struct sy__decay *decay = sy__decay_of(pages);

	for (unsigned i = 0; i < SY__DECAY_STEPS; i++)
		decay->lows[i] = less(decay->lows[i], given);
	sy__lock(&pages->account_lock);
	__atomic_store_n(&pages->backed.lowest, less(pages->backed.lowest, given), __ATOMIC_RELAXED);
	sy__unlock(&pages->account_lock);
}

static size_t give_wanted(struct sy_pages *pages, uint64_t now, struct wanted wanted)
{
	size_t given = 0;

	for (unsigned i = 0; i < pages->zone_count && wanted.pages; i++) {
		size_t zone = decay_zone(&pages->zones[i], &wanted);

		given += zone;
		wanted.pages -= zone;
	}
	if (!given)
		return 0;
	forget(pages, given);
	sy__decay_of(pages)->given = now;
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

/* ---- In due time -------------------------------------------------------------------------------------------------- */

/* How long memory must stay free. */
static uint64_t patience(struct sy_pages *pages)
{
	return pages->decay_ns << sy__decay_of(pages)->doublings;
}

/* With the account lock held. */
static bool regret(struct sy_pages *pages, uint64_t now)
{
	struct sy__decay *decay = sy__decay_of(pages);
	bool much = pages->backed.regretted >= REGRET_PAGES && decay->given && now - decay->given <= patience(pages);

	__atomic_store_n(&pages->backed.regretted, 0, __ATOMIC_RELAXED);
	return much;
}

static void learn(struct sy__decay *decay, bool regretted)
{
	if (!regretted) {
		if (++decay->quiet >= QUIET_STEPS && decay->doublings) {
			decay->doublings--;
			decay->quiet = 0;
		}
		return;
	}
	decay->quiet = 0;
	if (decay->hurried)
		decay->regrets++;
	else if (decay->doublings < MOST_DOUBLINGS)
		decay->doublings++;
	decay->hurried = false;
}

static size_t least_of_steps(const struct sy__decay *decay)
{
	size_t least = decay->lows[0];

	for (unsigned i = 1; i < SY__DECAY_STEPS; i++)
		if (decay->lows[i] < least)
			least = decay->lows[i];
	return least;
}

/* A step ends, and the next begins. */
static void step(struct sy_pages *pages, uint64_t now)
{
	struct sy__decay *decay = sy__decay_of(pages);
	bool regretted;

	sy__lock(&pages->account_lock);
	decay->lows[decay->step] = pages->backed.lowest;
	__atomic_store_n(&pages->backed.lowest, sy__free_and_backed(pages), __ATOMIC_RELAXED);
	regretted = regret(pages, now);
	sy__unlock(&pages->account_lock);
	decay->step = (decay->step + 1) % SY__DECAY_STEPS;
	decay->stepped = now;
	decay->due = least_of_steps(decay);
	learn(decay, regretted);
}

/* Pages that the descriptors of maximal blocks take of which little, or nothing, is used: all but of as many as would do. */
static size_t idle_descriptors(const struct sy_pages *pages, size_t used)
{
	size_t described = sy__read(&pages->described), needed = used / SY__MAX_BLOCK + 1;

	return less(described, needed) * (SY__MAX_BLOCK * sizeof(struct sy_page) / SY_PAGE_SIZE);
}

static bool in_a_hurry(struct sy_pages *pages)
{
	size_t backed = sy__free_and_backed(pages), held = sy__read(&pages->held_pages), idle;

	if (sy__decay_of(pages)->regrets >= MOST_REGRETS)
		return false;
	if (!sy__decay_of(pages)->hurried)
		return backed > HURRY_PAGES && backed > HURRY_SHARE * held;
	idle = backed + idle_descriptors(pages, backed + held);
	return backed > REGRET_PAGES && idle > HURRIED_PAGES && idle > held / HURRIED_SHARE;
}

static void give_due(struct sy_pages *pages, uint64_t now)
{
	struct sy__decay *decay = sy__decay_of(pages);
	size_t most = decay->due < PAGES_AT_ONCE ? decay->due : PAGES_AT_ONCE, given;

	if (most < SY__WORTH_A_VISIT)
		return;
	given = give_large(pages, now, patience(pages), most);
	given += give_small(pages, now, patience(pages), less(most, given));
	decay->due = given ? less(decay->due, given) : 0;
	if (given && !in_a_hurry(pages))
		decay->hurried = false;
}

/* ---- In a hurry --------------------------------------------------------------------------------------------------- */

/* Whether the last that went, or the beginning, is so long ago. */
static bool is_late(struct sy_pages *pages, uint64_t now, uint64_t late)
{
	return sy__decay_of(pages)->hurry_since && now - sy__decay_of(pages)->hurry_since >= late;
}

/* What small blocks there are, when no others come; those that became free during the wait are many times younger. */
static size_t give_last(struct sy_pages *pages, uint64_t now)
{
	return is_late(pages, now, pages->decay_ns / HOPE) ? give_small(pages, now, pages->decay_ns / HOPE / 2, PAGES_AT_ONCE) : 0;
}

static void give_hurried(struct sy_pages *pages, uint64_t now)
{
	struct sy__decay *decay = sy__decay_of(pages);
	uint64_t age = pages->decay_ns / HURRY;

	if (now < decay->looked + age / HURRIED_LOOKS)
		return;
	decay->looked = now;
	if (give_large(pages, now, age, PAGES_AT_ONCE))
		decay->hurry_since = now;
	else if (give_last(pages, now))
		decay->hurry_since = now - pages->decay_ns / HOPE + age;
	else
		return;
	decay->hurried = true;
}

/* ---- Visits ------------------------------------------------------------------------------------------------------- */

/* The clock, brought up to date. */
static uint64_t advance(struct sy_pages *pages)
{
	uint64_t now = sy__now(), passed = now - sy__decay_of(pages)->seen, clock;

	if (passed > pages->decay_ns / PAUSE)
		passed = pages->decay_ns / PAUSE;
	sy__decay_of(pages)->seen = now;
	clock = sy__time(&pages->clock) + passed;
	sy__time_set(&pages->clock, clock);
	return clock;
}

/* A step ends early where a bet is lost, or the program would go on losing until then. */
static bool step_ends(struct sy_pages *pages, uint64_t now)
{
	const struct sy__decay *decay = sy__decay_of(pages);

	return now - decay->stepped >= patience(pages) / SY__DECAY_STEPS ||
	       (decay->hurried && sy__read(&pages->backed.regretted) >= REGRET_PAGES);
}

/* Whether it is worth coming by again soon. */
static bool hope(struct sy_pages *pages, uint64_t now)
{
	struct sy__decay *decay = sy__decay_of(pages);
	bool hopes;

	if (!in_a_hurry(pages))
		decay->hurry_since = 0;
	else if (!decay->hurry_since)
		decay->hurry_since = now;
	hopes = decay->hurry_since && !is_late(pages, now, pages->decay_ns / HOPE + pages->decay_ns / HURRY);
	__atomic_store_n(&decay->hopes, hopes, __ATOMIC_RELAXED);
	return hopes;
}

/* Pages that should be free and backed when the next blocks that are given back have their giver come by: any, while there is
 * something to do, and where no heap of threads has the zones to itself, whose slow calls come by besides. */
static size_t worth(struct sy_pages *pages)
{
	if (!pages->commits_growth)
		return 0;
	return sy__decay_of(pages)->due >= SY__WORTH_A_VISIT || sy__decay_of(pages)->hurry_since ? 0 : sy__free_and_backed(pages) + SY__WORTH_A_VISIT;
}

bool sy__pages_decay(struct sy_pages *pages)
{
	uint64_t now;
	bool hopes;

	if (!pages->decay_ns || !sy__free_and_backed(pages))
		return false;
	if (!sy__lock_try(&sy__decay_of(pages)->lock))
		return __atomic_load_n(&sy__decay_of(pages)->hopes, __ATOMIC_RELAXED);
	now = advance(pages);
	if (step_ends(pages, now))
		step(pages, now);
	if (sy__decay_of(pages)->due)
		give_due(pages, now);
	if (in_a_hurry(pages))
		give_hurried(pages, now);
	hopes = hope(pages, now);
	__atomic_store_n(&pages->backed.worth, worth(pages), __ATOMIC_RELAXED);
	sy__unlock(&sy__decay_of(pages)->lock);
	return hopes;
}

/* Blocks on their way back to the memory source are free, but on no list until they are there. */
void sy__decay_await(struct sy_pages *pages)
{
	sy__lock(&sy__decay_of(pages)->lock);
	sy__unlock(&sy__decay_of(pages)->lock);
}
