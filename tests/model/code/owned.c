/*
 * SLUB in heaps of threads, at all interleavings: slabs of two objects, of which threads own some, adopt others, find them
 * emptied, give them up and have them drained. See schedule.h; what the code means is in core/policies/yard/owned.c and
 * yard/word.h.
 */
#include "core/policies/yard/yard.h"
#include "world.h"

extern const struct sy_policy sy__yard;

static const struct setting small_slabs[] = { { "min_order", 0 }, { "max_order", 0 }, { "min_partial", 0 }, { "cpu_partial", 1 }, { "strays", 0 }, { NULL, 0 } };
static const struct setting keeps_one[] = { { "min_order", 0 }, { "max_order", 0 }, { "min_partial", 1 }, { "cpu_partial", 1 }, { "strays", 0 }, { NULL, 0 } };
static const struct setting defaults[] = { { "min_order", 0 }, { "max_order", 0 }, { "min_partial", 0 }, { NULL, 0 } }; /* of what slots own and keep */
static const struct setting adopts_none[] = { { "min_order", 0 }, { "max_order", 0 }, { "min_partial", 0 }, { "cpu_partial", 0 }, { "strays", 0 }, { NULL, 0 } };

/* `own` objects of the first slot's, then `others` of the second's: two are a slab. */
static void fill(const struct setting *settings, unsigned own, unsigned others, unsigned empty_limit)
{
	world_open(&sy__yard, true, settings);
	sy__yard_cache(world.cache)->empty_limit = empty_limit;
	model_on_slot(1);
	for (unsigned i = 0; i < own; i++)
		take(i);
	model_on_slot(2);
	for (unsigned i = 0; i < others; i++)
		take(own + i);
}

/* ---- Two full slabs of the first slot's: each is adopted by whoever frees into it first ------------------------ */

static void two_slabs(void)
{
	fill(small_slabs, 4, 0, 1);
}

static void two_slabs_of_the_first(void)
{
	fill(defaults, 4, 0, 1);
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

/* ---- The second of three slabs becomes empty on the first slot's list ------------------------------------------ */

static void three_slabs(void)
{
	fill(small_slabs, 8, 0, 1);
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
	take(8);
}

/* ---- Both slots empty slabs that the other has objects of, and keep none --------------------------------------- */

static void slab_each(void)
{
	fill(small_slabs, 4, 4, 0);
}

static void empties_first(void)
{
	give(0);
	give(4);
	give(2);
	take(8);
}

static void empties_second(void)
{
	give(5);
	give(1);
	give(3);
	take(9);
}

/* ---- No slot adopts what others filled: slabs go to the node's list, come from it, and become empty there ------ */

static void node_list(void)
{
	fill(adopts_none, 4, 0, 0);
	give(2);
}

static void frees_to_node(void)
{
	give(0);
	give(3);
}

static void takes_from_node(void)
{
	give(1);
	take(5);
	take(6);
}

/* ---- A slot's end, while others free into its slabs, which have more than two objects -------------------------- */

static const struct setting large_slabs[] = { { "min_order", 1 }, { "max_order", 1 }, { "min_partial", 2 }, { "cpu_partial", 0 }, { "strays", 0 }, { NULL, 0 } };
static const struct setting large_adopted[] = { { "min_order", 1 }, { "max_order", 1 }, { "min_partial", 0 }, { "strays", 0 }, { "cpu_partial", 2 }, { NULL, 0 } };

static void slab_of_four(void)
{
	fill(large_adopted, 5, 0, 1);
	model_on_slot(1);
	give(2);
}

static void ends(void)
{
	unsigned slot;

	give(0);
	if (sy__call_enter(&slot)) {
		sy__yard_drain(world.heap, slot);
		sy__call_leave();
	}
}

static void frees_all(void)
{
	give(1);
	give(3);
	take(5);
}

static void frees_one(void)
{
	give(1);
	take(5);
}

/* ---- Two push at once onto the list of a third one's slab, who takes it ---------------------------------------- */

static void one_slab(void)
{
	fill(large_adopted, 4, 0, 1);
}

static void takes(void)
{
	take(5);
}

static void pushes(void)
{
	give(0);
}

static void pushes_too(void)
{
	give(1);
}

/* ---- A claimer drains slots that are at work ------------------------------------------------------------------- */

static void claims(void)
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

/* ---- Strays: objects that a slot keeps of another one's slab, go home, or are handed out again ----------------- */

static const struct setting strays_go[] = { { "min_order", 1 }, { "max_order", 1 }, { "min_partial", 0 }, { "strays", 1 }, { "cpu_partial", 2 }, { NULL, 0 } };
static const struct setting strays_kept[] = { { "min_order", 1 }, { "max_order", 1 }, { "min_partial", 0 }, { "strays", 2 }, { "cpu_partial", 2 }, { NULL, 0 } };

static void others_go(void)
{
	fill(strays_go, 4, 1, 1);
}

static void others_kept(void)
{
	fill(strays_kept, 4, 1, 1);
}

static void allocates(void)
{
	give(3);
	take(5);
	take(6);
}

static void gives_strays(void)
{
	give(0);
	give(1);
	give(2);
	take(7);
}

static void takes_strays(void)
{
	give(0);
	take(7);
	give(1);
	give(7);
	take(8);
}

static void takes_strays_again(void)
{
	give(0);
	take(7);
}

static void ends_with_strays(void)
{
	unsigned slot;

	give(0);
	give(1);
	if (sy__call_enter(&slot)) {
		sy__yard_drain(world.heap, slot);
		sy__call_leave();
	}
}

/* ---- A row: what a slot without a slab of its own keeps of another one's goes home by one exchange --------------- */

#define ROWS 2u  /* the slot that keeps it */
#define THIRD 3u /* one with a slab of its own */

static const struct setting rows_go[] = { { "min_order", 1 }, { "max_order", 1 }, { "min_partial", 0 }, { "cpu_partial", 0 }, { NULL, 0 } };

/* Of the first slot's slab one object was freed by somebody else. */
static void a_row(void)
{
	fill(rows_go, 4, 0, 1);
	sy__yard_cache(world.cache)->row = 3;
	model_on_slot(THIRD);
	take(4);
	take(5);
	sy__yard_slot(sy__yard_cache(world.cache), THIRD)->came = SY__YARD_STRAYS_TO_ONE - 1; /* the next goes home */
	give(3);
}

static void leaves(void)
{
	take(8);
	take(9);
	take(10);
}

static void takes_one(void)
{
	take(8);
}

/* The fourth is one more than the row may have. */
static void only_gives(void)
{
	give(0);
	give(1);
	give(2);
	give(4);
	give(5);
}

static void gives_a_row(void)
{
	give(0);
	give(1);
	give(2);
}

/* ---- Two come at once upon the slabs of a third one, who has ended ---------------------------------------------- */

#define LEFT 3u /* the slot of the ended thread */

static const struct setting strays_many[] = { { "min_order", 1 }, { "max_order", 1 }, { "min_partial", 0 }, { "strays", 8 }, { "cpu_partial", 2 }, { NULL, 0 } };

/* The next stray of either is looked at. Of the ended thread there are a partial slab, a full one, and an active one. */
static void slabs_of_one_who_ended(void)
{
	fill(strays_many, 1, 1, 1);
	model_on_slot(LEFT);
	for (unsigned i = 2; i < 11; i++)
		take(i);
	give(5);
	for (unsigned slot = 1; slot <= 2; slot++)
		sy__yard_slot(sy__yard_cache(world.cache), slot)->came = SY__YARD_STRAYS_TO_ONE - 1;
}

static void inherits(void)
{
	give(2);
	take(11);
	give(3);
}

static void inherits_too(void)
{
	give(4);
	give(6);
}

/* ---- One makes what the other frees ---------------------------------------------------------------------------- */

static void nothing(void)
{
	fill(keeps_one, 0, 0, 0);
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
}

/* ---- A trim gives back pages of slabs into which others free --------------------------------------------------- */

static void slab_of_two_pages(void)
{
	fill(large_slabs, 8, 0, 0);
	give(0);
	give(1);
	give(4);
}

static void trims(void)
{
	unsigned slot;

	if (sy__call_enter(&slot)) {
		sy__yard_trim(world.cache);
		sy__call_leave();
	}
}

static void frees_into_them(void)
{
	give(2);
	take(8);
	take(9);
}

int main(int argc, char **argv)
{
	static const struct model models[] = {
		{ .name = "two slabs", .set_up = two_slabs, .threads = { frees_and_takes, frees_the_others }, .verify = world_verify },
		{ .name = "two slabs, by default", .set_up = two_slabs_of_the_first, .threads = { frees_and_takes, frees_the_others }, .verify = world_verify },
		{ .name = "three slabs", .set_up = three_slabs, .threads = { frees_between, frees_into_the_last }, .verify = world_verify },
		{ .name = "emptied", .set_up = slab_each, .threads = { empties_first, empties_second }, .verify = world_verify },
		{ .name = "node", .set_up = node_list, .threads = { frees_to_node, takes_from_node }, .verify = world_verify },
		{ .name = "end", .set_up = slab_of_four, .threads = { ends, frees_all }, .verify = world_verify },
		{ .name = "end, one left", .set_up = slab_of_four, .threads = { ends, frees_one }, .verify = world_verify },
		{ .name = "pushes", .set_up = one_slab, .threads = { takes, pushes, pushes_too }, .verify = world_verify },
		{ .name = "claim", .set_up = two_slabs, .threads = { works, works_too, claims }, .claims = true, .verify = world_verify },
		{ .name = "strays", .set_up = others_go, .threads = { allocates, gives_strays }, .verify = world_verify },
		{ .name = "strays, taken", .set_up = others_kept, .threads = { allocates, takes_strays }, .verify = world_verify },
		{ .name = "strays, end", .set_up = others_kept, .threads = { allocates, ends_with_strays }, .verify = world_verify },
		{ .name = "strays, claim", .set_up = others_kept, .threads = { pushes_too, takes_strays_again, claims }, .claims = true, .verify = world_verify },
		{ .name = "row", .set_up = a_row, .threads = { leaves, only_gives }, .verify = world_verify },
		{ .name = "row, claim", .set_up = a_row, .threads = { takes_one, gives_a_row, claims }, .claims = true, .verify = world_verify },
		{ .name = "inherited", .set_up = slabs_of_one_who_ended, .threads = { inherits, inherits_too }, .verify = world_verify },
		{ .name = "hand over", .set_up = nothing, .threads = { makes, ends_them }, .verify = world_verify },
		{ .name = "trim", .set_up = slab_of_two_pages, .threads = { trims, frees_into_them }, .verify = world_verify },
		{ .name = NULL },
	};
	static const struct mutant mutants[] = {
		/* The word is exchanged without a release, and without an acquire. */
		{ "no_release", "hand over", "a race", "sy__swap64", NULL, SWAPS, 0, NO_RELEASE, 0 },
		{ "no_acquire", "hand over", "a race", "more", NULL, SWAPS, 0, NO_ACQUIRE, 0 },
		/* A full slab that is given up keeps its mark. */
		{ "mark_stays", "two slabs", "a race", "leave", "sy__yard_set_owner", STORES, 1, NOT_DONE, 0 },
		/* What an ended thread has left is taken over without a claim; and bears that thread's mark. */
		{ "inherited_unclaimed", "inherited", "", "sy__yard_take_over", NULL, CLAIMS, 0, NOT_DONE, 0 },
		{ "inherited_with_mark", "inherited", "", "inherit", "sy__yard_set_owner", STORES, 1, NOT_DONE, 0 },
		/* A row that could not be given by one exchange leads on to what others freed. */
		{ "row_leads_on", "row", "", "sy__yard_give_rows", "sy__yard_give_rows", STORES, 0, NOT_DONE, 0 },
		/* A slab is given up by a store, not by an exchange; likewise what others gave back is taken. */
		{ "left_by_store", "hand over", "a slab is left", "leave", NULL, SWAPS, 0, BY_STORE, 0 },
		{ "taken_by_store", "hand over", "", "more", NULL, SWAPS, 0, BY_STORE, 0 },
		/* A slot takes a slab that it has filled back by a store; an object of another slot's slab is pushed by one. */
		{ "adopted_by_store", "two slabs", "", "take_back", NULL, SWAPS, 0, BY_STORE, 0 },
		{ "pushed_by_store", "pushes", "", "push_at_once", NULL, SWAPS, 0, BY_STORE, 0 },
		/* A slab leaves the slot's list, and the next one still links to it. */
		{ "next_unlinked", "three slabs", "list is broken", "take_out", "take_out", STORES, 2, NOT_DONE, 0 },
		/* A slab counts as empty with another object in use. */
		{ "emptied_early", "two slabs", "", "take_back", "sy__yard_in_use_now", LOADS, 0, READS_MORE, UINT64_MAX },
		/* A push is tried again with the old link; likewise what a slot gives up. */
		{ "stale_link", "pushes", "", "sy__yard_free_foreign", "sy__yard_free_foreign", STORES, 0, STALE, 0 },
		{ "stale_join", "end, one left", "", "release", "join", STORES, 0, STALE, 0 },
		/* What others gave back to such a slab is taken by a store. */
		{ "in_front_by_store", "end", "", "take_in_front", NULL, SWAPS, 0, BY_STORE, 0 },
		/* A slot's end leaves the mark, or forgets what the slab holds. */
		{ "drain_keeps_mark", "claim", "a crash", "release", "sy__yard_set_owner", STORES, 1, NOT_DONE, 0 },
		{ "drain_forgets", "end", "", "held_chain", "held_chain", LOADS, 0, READS, 0 },
		/* A slab becomes nobody's, or finds its place, without its node's lock. */
		{ "listed_unlocked", "end", "", "sy__yard_deactivate", NULL, LOCKS, 0, NOT_DONE, 0 },
		{ "settled_unlocked", "node", "a race", "sy__yard_free_moving", NULL, LOCKS, 0, NOT_DONE, 0 },
		/* A row of strays goes home as fewer than it has; or still leads to the next one; and a slot's end keeps them. */
		{ "row_as_fewer", "strays", "", "give_row", "sy__swap64", SWAPS, 0, WRITES_MORE, UINT64_C(1) << 32 },
		{ "row_uncut", "row", "", "give_foreign_row", "sy__yard_free_foreign", STORES, 0, NOT_DONE, 0 },
		{ "strays_stay", "strays, end", "", "sy__yard_give_strays", "sy__yard_give_strays", LOADS, 1, READS, 0 },
		/* A trim puts a list back in front of what was free before. */
		{ "trim_stale", "trim", "", "put_back", "put_back", STORES, 0, STALE, 0 },
		{ .name = NULL },
	};

	return model_try(models, mutants, argc, argv);
}
