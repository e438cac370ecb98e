/*
 * Readers, and memory that waits for them (library/rcu.c), at all interleavings of threads that read an item, replace it and
 * leave the old one behind, and look whether the wait is over.
 *
 * An item that went is written over, by a plain store. A thread that reads it then, or has not finished with it in an order
 * that both threads know, makes a race. The argument that a reader which is counted late sees what was unlinked is in rcu.c:
 * in this model every look at a word sees its last value.
 */
#define _GNU_SOURCE /* nanosleep */
#include "schedule.h"

#include "library/rcu.c"

#define ITEMS 3u
#define ALIVE 1u

struct item {
	struct rcu_head rcu;
	unsigned state;
};

static struct {
	struct item items[ITEMS];
	struct item *current;
	unsigned gone;
	uint64_t number; /* of the grace period that the slab waits for */
} world;

/* ---- What is beneath ------------------------------------------------------------------------------------------------ */

struct sy_heap *sy_kmem_heap(void)
{
	return NULL;
}

void kvfree(const void *address)
{
	(void)address;
	model_wrong("what has a function is freed without it");
}

/* ---- Threads -------------------------------------------------------------------------------------------------------- */

static void go(struct item *item)
{
	item->state = !ALIVE;
	world.gone++;
}

static void item_goes(struct rcu_head *head)
{
	if (sy__rcu_reads())
		model_wrong("a callback runs in somebody who reads");
	go((struct item *)(void *)head);
}

static void set_up(void)
{
	model_share(&world, sizeof(world));
	model_share(&rcu, sizeof(rcu));
	model_own(&depth, sizeof(depth));
	model_own(&reader_index, sizeof(reader_index));
	model_own(&spin_locks, sizeof(spin_locks));
	for (unsigned i = 0; i < ITEMS; i++)
		world.items[i].state = ALIVE;
	world.current = &world.items[0];
}

static void look(void)
{
	if (__atomic_load_n(&world.current, __ATOMIC_ACQUIRE)->state != ALIVE)
		model_wrong("a reader meets what has gone");
}

static void reads(void)
{
	sy__rcu_read_lock();
	look();
	sy__rcu_read_unlock();
}

static void reads_twice(void)
{
	reads();
	reads();
}

static void reads_within(void)
{
	sy__rcu_read_lock();
	reads();
	look();
	sy__rcu_read_unlock();
}

static struct item *replace(unsigned by)
{
	return __atomic_exchange_n(&world.current, &world.items[by], __ATOMIC_ACQ_REL);
}

static void replaces(void)
{
	sy__call_rcu(&replace(1)->rcu, item_goes);
}

static void replaces_two(void)
{
	replaces();
	sy__call_rcu(&replace(2)->rcu, item_goes);
}

static void comes_by(void)
{
	advance_and_call();
}

/* A slab that waits by number, and a thread that asks whether it is time. */
static void replaces_in_slab(void)
{
	struct item *old = replace(1);
	uint64_t number = next_to_begin();

	if (last_passed() >= number || last_passed() >= number)
		go(old);
}

static void asks(void)
{
	last_passed();
}

/* Nobody reads: one look ends all grace periods. */
static const char *all_went(unsigned items)
{
	for (unsigned i = 0; i < ITEMS; i++)
		advance_and_call();
	if (rcu.readers[0] || rcu.readers[1])
		return "a reader is counted who has done";
	if (rcu.pending || rcu.begun != rcu.passed)
		return "something waits for nobody";
	return world.gone == items ? NULL : "an entry was not called, or twice";
}

static const char *one_went(void)
{
	return all_went(1);
}

static const char *two_went(void)
{
	return all_went(2);
}

static const char *none_reads(void)
{
	return rcu.readers[0] || rcu.readers[1] ? "a reader is counted who has done" : NULL;
}

int main(int argc, char **argv)
{
	static const struct model models[] = {
		{ .name = "replaced", .set_up = set_up, .threads = { reads, replaces, comes_by }, .verify = one_went },
		{ .name = "read by two", .set_up = set_up, .threads = { reads, reads, replaces }, .verify = one_went },
		{ .name = "nested", .set_up = set_up, .threads = { reads_within, replaces }, .verify = one_went },
		{ .name = "two periods", .set_up = set_up, .threads = { reads_twice, replaces_two }, .verify = two_went },
		{ .name = "three periods", .set_up = set_up, .threads = { reads, replaces_two, comes_by }, .verify = two_went },
		{ .name = "slab", .set_up = set_up, .threads = { reads, replaces_in_slab, asks }, .verify = none_reads },
		{ .name = NULL },
	};
	static const struct mutant mutants[] = {
		/* A grace period flips the index once; a reader ends without a release; a slab waits for a grace period that
		 * has begun. The search can't */
		/* see other faults: it gives every look the word's last value, and three that wait for each other are too
		 * much for it. */
		{ "rcu_turned_once", "two periods", "", "advance", "flip_index", STORES, 2, NOT_DONE, 0 },
		{ "rcu_done_relaxed", "replaced", "a race", "sy__rcu_read_unlock", NULL, ADDS, 1, NO_RELEASE, 0 },
		{ "rcu_begun_already", "slab", "", "next_to_begin", NULL, SWAPS, 0, READS_MORE, UINT64_MAX },
		{ .name = NULL },
	};

	return model_try(models, mutants, argc, argv);
}
