/*
 * yard in heaps of threads, at all interleavings. Slots fill slabs of two or four objects, leave them, take them back, find
 * them emptied, give them up, have them drained, and get them from their node. Objects that slots free of each other's slabs
 * go home or serve the freeing slot. See schedule.h; core/policies/yard/yard.c and core/policies/node.h say what the code
 * means.
 */
#include "core/policies/yard/yard.h"
#include "world.h"

extern const struct sy_policy sy__yard;

/* Slabs of two objects, and of four. On each slot's remote list one object may wait for the next, or more. */
static const struct setting small_slabs[] = { { "min_order", 0 }, { "max_order", 0 }, { "remote", 1 }, { NULL, 0 } };
static const struct setting large_slabs[] = { { "min_order", 1 }, { "max_order", 1 }, { "remote", 8 }, { NULL, 0 } };

#define THIRD 3u /* a slot beside the first and the second one */

static void fill_from(unsigned slot, unsigned first, unsigned end)
{
	model_on_slot(slot);
	for (unsigned i = first; i < end; i++)
		take(i);
}

/* `own` objects of the first slot's, then `others` of the second's. */
static void fill(const struct setting *settings, unsigned own, unsigned others)
{
	world_open(&sy__yard, true, settings);
	fill_from(1, 0, own);
	fill_from(2, own, own + others);
}

/* Sends home what the slot has of other slots' slabs. */
static void send_home(void)
{
	unsigned slot;

	if (sy__call_enter(&slot)) {
		sy__yard_flush_remote(sy__yard_cache(world.cache), slot);
		sy__call_leave();
	}
}

static void drain(void)
{
	unsigned slot;

	if (sy__call_enter(&slot)) {
		sy__yard_drain(world.heap, slot);
		sy__call_leave();
	}
}

/* ---- Two full slabs of the first slot's: it takes them back, or they go to the node, whoever frees first ---------------- */

static void two_slabs(void)
{
	fill(small_slabs, 4, 0);
}

static void frees_and_takes(void)
{
	give(0);
	give(2);
	take(4);
	take(5);
	give(4);
}

static void frees_the_others(void)
{
	give(1);
	take(6);
	give(3);
	take(7);
}

/* ---- The second of three slabs becomes empty on the first slot's list --------------------------------------------------- */

static void three_slabs(void)
{
	fill(small_slabs, 8, 0);
}

static void frees_between(void)
{
	give(0);
	give(2);
	give(4);
	give(3);
}

static void frees_into_the_last(void)
{
	give(5);
	send_home();
	take(8);
}

/* ---- The first slot has as many empty slabs as it keeps, and one more becomes empty -------------------------------------- */

static void two_empty(void)
{
	fill(small_slabs, 8, 0);
	model_on_slot(1);
	for (unsigned i = 0; i < 4; i++)
		give(i);
}

static void empties_one_more(void)
{
	give(4);
	give(6);
	take(8);
}

static void empties_it_too(void)
{
	give(5);
	give(7);
	send_home();
}

/* ---- Slabs go to the node's list, come from it, and become empty there --------------------------------------------------- */

static void full_slabs(void)
{
	fill(small_slabs, 5, 0);
}

static void frees_to_node(void)
{
	give(0);
	send_home();
	give(3);
	send_home();
}

static void takes_from_node(void)
{
	give(1);
	send_home();
	take(6);
	take(7);
}

/* ---- A slot's end, while others free into its slabs ----------------------------------------------------------------------- */

static void slab_of_four(void)
{
	fill(large_slabs, 5, 0);
	model_on_slot(1);
	give(2);
}

static void ends_slot(void)
{
	give(0);
	drain();
}

static void frees_all(void)
{
	give(1);
	give(3);
	send_home();
	take(5);
}

static void frees_one(void)
{
	give(1);
	send_home();
	take(5);
}

/* ---- Two push at once onto the list of a third one's slab, who takes it --------------------------------------------------- */

static void one_slab(void)
{
	fill(large_slabs, 4, 0);
	model_on_slot(2);
	give(0);
	model_on_slot(THIRD);
	give(1);
}

static void takes(void)
{
	take(5);
}

/* Or onto a slab that the first slot has filled, and takes back. */
static void full_slab(void)
{
	fill(large_slabs, 5, 0);
	model_on_slot(2);
	give(0);
	model_on_slot(THIRD);
	give(1);
}

static void takes_back(void)
{
	give(2);
}

/* ---- A slot looks for slabs that others have emptied -------------------------------------------------------------------- */

static void two_wait(void)
{
	fill(small_slabs, 6, 0);
	model_on_slot(1);
	give(0);
	give(2);
}

static void looks(void)
{
	unsigned slot;

	if (sy__call_enter(&slot)) {
		sy__yard_release_retained(world.heap, slot);
		sy__call_leave();
	}
	take(6);
}

static void empties_both(void)
{
	give(3);
	send_home();
	give(1);
	send_home();
}

/* ---- A stopper drains slots that are at work ------------------------------------------------------------------------------ */

static void stops(void)
{
	sy_cache_shrink(world.cache);
}

static void works(void)
{
	give(0);
	take(4);
}

static void works_too(void)
{
	give(1);
}

/* ---- What a slot has freed of another one's slab goes home, or is handed out again ----------------------------------------- */

static void others(void)
{
	fill(large_slabs, 4, 1);
}

static void allocates(void)
{
	give(3);
	take(5);
	take(6);
}

static void gives_many(void)
{
	give(0);
	give(1);
	give(2);
	send_home();
	take(7);
}

static void takes_remote(void)
{
	give(0);
	take(7);
	take(8);
	take(9);
	take(10);
	give(1);
	give(7);
	send_home();
}

static void sends_one(void)
{
	give(1);
	send_home();
}

static void takes_a_remote(void)
{
	give(0);
	take(7);
}

static void ends_with_remote(void)
{
	give(0);
	give(1);
	drain();
}

/* ---- Objects of two slabs go home, those of each by one exchange ----------------------------------------------------------- */

static void slabs_of_two_slots(void)
{
	fill(large_slabs, 4, 0);
	fill_from(THIRD, 4, 6);
}

static void leaves(void)
{
	take(8);
	give(3);
}

static void gives_of_two(void)
{
	give(0);
	give(4);
	give(5);
	give(1);
	give(2);
	send_home();
}

/* ---- By the time that an object goes home, its slab has become the slot's own, or one that the slot has filled ------------- */

static void left_full(void)
{
	fill(large_slabs, 0, 0);
	fill_from(THIRD, 0, 5);
}

static void comes_to_own(void)
{
	give(0);
	take(6);
	take(7);
	give(6);
	send_home();
}

static void frees_two(void)
{
	give(1);
	send_home();
	give(2);
	send_home();
}

/* ---- One makes what the other frees ----------------------------------------------------------------------------------------- */

static void nothing(void)
{
	fill(small_slabs, 0, 0);
}

static void makes(void)
{
	take(0);
	take(1);
	hand_over(0);
	take(2);
}

static void ends_them(void)
{
	give_when_there(0);
	give(1);
	send_home();
}

/* ---- A trim gives back pages of slabs into which others free --------------------------------------------------------------- */

static void slab_of_two_pages(void)
{
	fill(large_slabs, 9, 0);
	model_on_slot(2);
	give(0);
	give(1);
	give(4);
	send_home();
}

static void trims(void)
{
	unsigned slot;

	if (sy__call_enter(&slot)) {
		sy__node_trim(world.cache);
		sy__call_leave();
	}
}

static void frees_into_them(void)
{
	give(2);
	give(5);
	send_home();
	take(9);
	take(10);
}

int main(int argc, char **argv)
{
	static const struct model models[] = {
		{ .name = "two slabs", .set_up = two_slabs, .threads = { frees_and_takes, frees_the_others }, .verify = world_verify },
		{ .name = "three slabs", .set_up = three_slabs, .threads = { frees_between, frees_into_the_last }, .verify = world_verify },
		{ .name = "emptied", .set_up = two_empty, .threads = { empties_one_more, empties_it_too }, .verify = world_verify },
		{ .name = "node", .set_up = full_slabs, .threads = { takes_from_node, frees_to_node }, .verify = world_verify },
		{ .name = "end", .set_up = slab_of_four, .threads = { ends_slot, frees_all }, .verify = world_verify },
		{ .name = "end, one left", .set_up = slab_of_four, .threads = { ends_slot, frees_one }, .verify = world_verify },
		{ .name = "pushes", .set_up = one_slab, .threads = { takes, send_home, send_home }, .verify = world_verify },
		{ .name = "pushes, full", .set_up = full_slab, .threads = { takes_back, send_home, send_home }, .verify = world_verify },
		{ .name = "found empty", .set_up = two_wait, .threads = { looks, empties_both }, .verify = world_verify },
		{ .name = "stop", .set_up = two_slabs, .threads = { works, works_too, stops }, .stops = true, .verify = world_verify },
		{ .name = "remote", .set_up = others, .threads = { allocates, gives_many }, .verify = world_verify },
		{ .name = "remote, taken", .set_up = others, .threads = { allocates, takes_remote }, .verify = world_verify },
		{ .name = "remote, end", .set_up = others, .threads = { allocates, ends_with_remote }, .verify = world_verify },
		{ .name = "remote, stop", .set_up = others, .threads = { sends_one, takes_a_remote, stops }, .stops = true, .verify = world_verify },
		{ .name = "rows", .set_up = slabs_of_two_slots, .threads = { leaves, gives_of_two }, .verify = world_verify },
		{ .name = "own again", .set_up = left_full, .threads = { frees_two, comes_to_own }, .verify = world_verify },
		{ .name = "hand over", .set_up = nothing, .threads = { makes, ends_them }, .verify = world_verify },
		{ .name = "trim", .set_up = slab_of_two_pages, .threads = { trims, frees_into_them }, .verify = world_verify },
		{ .name = NULL },
	};

	static const struct mutant mutants[] = {
		/* The word is exchanged without a release, and without an acquire. */
		{ "no_release", "hand over", "a race", "sy__swap64", NULL, SWAPS, 0, NO_RELEASE, 0 },
		{ "no_acquire", "hand over", "a race", "more_of_active", NULL, SWAPS, 0, NO_ACQUIRE, 0 },
		/* A full slab that its slot leaves keeps the owner's mark, or is left by a store, not by an exchange. */
		{ "mark_stays", "two slabs", "", "leave", "sy__yard_set_owner", STORES, 1, NOT_DONE, 0 },
		{ "left_by_store", "hand over", "", "leave", NULL, SWAPS, 0, BY_STORE, 0 },
		/* A store takes what others gave back; a store takes back a slab that the slot has filled; a store pushes. */
		{ "taken_by_store", "hand over", "", "more_of_active", NULL, SWAPS, 0, BY_STORE, 0 },
		{ "taken_back_by_store", "two slabs", "", "take_back", NULL, SWAPS, 0, BY_STORE, 0 },
		{ "pushed_by_store", "pushes", "", "push_row", NULL, SWAPS, 0, BY_STORE, 0 },
		/* A slab that was taken back has no mark of its owner. */
		{ "taken_back_unmarked", "two slabs", "", "take_back", "sy__yard_set_owner", STORES, 1, NOT_DONE, 0 },
		/* A slab leaves the slot's list, and the next one still links to it. */
		{ "next_unlinked", "three slabs", "list of slabs is broken", "take_out", "take_out", STORES, 2, NOT_DONE, 0 },
		/* A slab that was last becomes so again, and links on to where it was before. */
		{ "last_linked", "found empty", "", "sy__yard_append", "sy__yard_append", STORES, 1, NOT_DONE, 0 },
		/* A slab counts as empty, and ends, with another object in use. */
		{ "emptied_early", "two slabs", "", "sy__yard_put_own", "sy__yard_in_use_now", LOADS, 0, READS_MORE, UINT64_MAX },
		{ "ended_early", "end, one left", "", "give_up", "sy__yard_in_use_now", LOADS, 0, READS_MORE, UINT64_MAX },
		/* A push is tried again with the old link; likewise what a slot gives up. */
		{ "stale_link", "pushes", "", "push_row", "sy__link_set", STORES, 0, STALE, 0 },
		{ "stale_link_moving", "pushes, full", "", "push_moving", "sy__link_set", STORES, 0, STALE, 0 },
		{ "stale_join", "end, one left", "", "give_up", "sy__link_set", STORES, 0, STALE, 0 },
		/* A slot's end leaves the mark, or forgets what the slab's local list has, or what the slot has freed of
		 * others' slabs. */
		{ "drain_keeps_mark", "stop", "", "give_up", "sy__yard_set_owner", STORES, 1, NOT_DONE, 0 },
		{ "drain_forgets", "end", "", "give_up", "give_up", LOADS, 0, READS, 0 },
		{ "remote_stays", "remote, end", "", "sy__yard_flush_remote", "sy__yard_flush_remote", LOADS, 1, READS, 0 },
		/* A slab loses its owner, or comes onto its node's list, without the lock; or a store takes it off. */
		{ "given_up_unlocked", "end", "", "give_up", NULL, LOCKS, 0, NOT_DONE, 0 },
		{ "moved_unlocked", "node", "", "push_moving", NULL, LOCKS, 0, NOT_DONE, 0 },
		{ "owned_unlocked", "node", "", "take_partial", NULL, LOCKS, 0, NOT_DONE, 0 },
		{ "owned_by_store", "own again", "", "own_partial", NULL, SWAPS, 0, BY_STORE, 0 },
		/* The objects that go home to a slab count as fewer than they are, or lead on to those of another slab. */
		{ "row_as_fewer", "end, one left", "", "push_row", "sy__swap64", SWAPS, 0, WRITES_MORE, UINT64_C(1) << 32 },
		{ "row_leads_on", "rows", "", "push_row", "sy__link_set", STORES, 0, NOT_DONE, 0 },
		/* Objects go home to a slab that is the slot's own by now: they forget what is there already, or are not
		 * counted. */
		{ "own_row_forgets", "own again", "", "sy__yard_put_own", "sy__link_set", STORES, 1, NOT_DONE, 0 },
		{ "own_row_uncounted", "own again", "", "sy__yard_put_own", "sy__yard_put_own", STORES, 2, NOT_DONE, 0 },
		/* A trim puts a list back in front of what was free before. */
		{ "trim_stale", "trim", "", "put_back", "sy__link_set", STORES, 0, STALE, 0 },
		{ .name = NULL },
	};

	return model_try(models, mutants, argc, argv);
}
