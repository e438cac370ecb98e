/*
 * One slab of a heap of threads, at all interleavings of the threads that use it: core/policies/yard/owned.c, remote.c and
 * slabs.c, and core/policies/node.h.
 *
 * Threads take objects of the slab and give them back, each on a slot of its own; any thread may free any object. They look
 * whether what they own has become empty. They drain a slot, also another's, as a stopper does. An object on a thread's remote
 * list is here one that the thread holds; it frees it later, or never, where the list would hand it out to that thread again.
 * Every access to what they share is a step: the word, the mark of the owner, the node's lock. Objects are linked by memory,
 * not kept as sets, so that a push onto a list that has changed meanwhile goes as wrong as it would. The search visits every
 * state that a bounded number of calls can reach, from a slab in each of its places. Where the code depends on what was handed
 * out last, both ways are tried.
 *
 * Plain stores go to a buffer of their thread and reach memory by steps of their own, in any order but for those to one place.
 * An exchange of the word, and taking or giving the lock, wait for an empty buffer: they release. A thread that frees an
 * object got it from the thread that took it, and sees what that one did before. stop.c models the stops themselves: here a
 * slot is stopped while its thread is in no call, the stopper sees all that was done, and the thread waits.
 *
 * What may not happen. An object is handed out that a thread has already. A slab goes to the page allocator while a thread
 * still uses it. And when no thread is in a call, each object must be in one place, the word must be true, a frozen slab must
 * be one slot's and marked so, and a slab with free objects and no owner must be on its node's list.
 *
 * Then the code is broken in one place after another, and each time the search must find out.
 */
#include "owned_steps.h"

/* ---- Calls ---------------------------------------------------------------------------------------------------------- */

static bool make_step(struct model *model, struct state *state, unsigned index, bool choice)
{
	struct thread *thread = &state->threads[index];

	if (thread->at == IDLE)
		return false;
	if (thread->at < TAKE)
		return free_step(model, state, index, choice);
	if (thread->at < LOOK)
		return take_step(model, state, index);
	if (thread->at == LOOK) {
		look_step(model, state, index);
		return true;
	}
	if (thread->at < UNLOCK)
		return drain_step(model, state, index);
	if (thread->stores)
		return false;
	state->locked = false;
	state->slots[thread->victim].stopped = false;
	finish(thread);
	return true;
}

/* Whether the step depends on what was handed out last. */
static bool has_choice(const struct thread *thread)
{
	return thread->at == FREE;
}

static void begin(const struct state *from, unsigned index, enum at at, unsigned object, unsigned victim)
{
	struct state state = *from;
	struct thread *thread = &state.threads[index];

	thread->at = (uint8_t)at;
	thread->object = (uint8_t)object;
	thread->victim = (uint8_t)victim;
	state.calls--;
	if (at == FREE) {
		empty(&state, &state.threads[state.live[object] - 1]);
		state.live[object] = 0;
	} else if (at == DRAIN) {
		state.slots[victim].stopped = true;
		empty(&state, &state.threads[victim]);
	}
	visit(&state);
}

static void begin_all(const struct model *model, const struct state *from, unsigned index)
{
	if (!from->calls || from->gone || from->threads[index].at != IDLE || from->slots[index].stopped)
		return;
	begin(from, index, TAKE, 0, index);
	if (from->slots[index].list == WAITING)
		begin(from, index, LOOK, 0, index);
	for (unsigned object = 0; object < OBJECTS; object++)
		if (from->live[object])
			begin(from, index, FREE, object, index);
	for (unsigned victim = 0; victim < THREADS; victim++)
		if ((from->threads[victim].at == IDLE || model->fault == NO_STOP) && !from->slots[victim].stopped)
			begin(from, index, DRAIN, 0, victim);
}

static bool next_states(struct model *model, const struct state *from)
{
	size_t before = seen.count;
	bool any = false;

	for (unsigned i = 0; i < THREADS; i++) {
		begin_all(model, from, i);
		for (unsigned choice = 0; choice <= has_choice(&from->threads[i]); choice++) {
			struct state state = *from;

			if (!make_step(model, &state, i, choice))
				continue;
			visit(&state);
			any = true;
		}
		for (unsigned at = 0; at < from->threads[i].stores; at++) {
			struct state state = *from;

			if (!may_overtake(&from->threads[i], at))
				continue;
			take_effect(&state, &state.threads[i], at);
			visit(&state);
			any = true;
		}
	}
	return any || seen.count > before;
}

/* ---- Verdicts on a state -------------------------------------------------------------------------------------------- */

/* Counts the objects of a list; false: it leads astray, or to an object that is somewhere else. */
static bool count_list(const struct state *state, unsigned first, uint8_t *places, unsigned *count)
{
	for (*count = 0; first != NONE; first = state->memory[NEXT + first], ++*count)
		if (first >= OBJECTS || places[first]++)
			return false;
	return true;
}

/* Of a state in which nobody is in a call. */
static const char *verify(const struct state *state)
{
	uint8_t places[OBJECTS];
	unsigned count, free, owners = 0;

	memcpy(places, state->live, sizeof(places));
	for (unsigned i = 0; i < OBJECTS; i++)
		places[i] = places[i] != 0;
	if (!count_list(state, state->word.first, places, &free) || free + state->word.in_use != OBJECTS)
		return "the word tells no truth";
	for (unsigned i = 0; i < THREADS; i++) {
		const struct slot *slot = &state->slots[i];

		if (!slot->active && slot->list == NO_LIST)
			continue;
		owners++;
		if (slot->active && slot->list != NO_LIST)
			return "a slot's slab is active and on a list";
		if (!count_list(state, slot->active ? slot->freelist : NONE, places, &count) ||
		    !count_list(state, state->memory[HELD], places, &count))
			return "an object is in two places";
		if (state->memory[OWNER] != i + 1 || count != state->memory[COUNT])
			return "a slot's slab is not marked as such";
		if (slot->list == EMPTY && count != state->word.in_use)
			return "a slab counts as empty that is in use";
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		if (!places[i])
			return "an object is lost";
	if (owners != state->word.frozen)
		return "a frozen slab is not one slot's";
	if (!owners && state->memory[OWNER] != NOBODY && !(state->memory[OWNER] & FULL && state->word.first == NONE))
		return "nobody's slab is marked, though it is not full";
	if (state->listed != (!state->word.frozen && state->word.first != NONE))
		return "a slab with free objects is not on its node's list";
	return NULL;
}

static bool at_rest(const struct state *state)
{
	for (unsigned i = 0; i < THREADS; i++)
		if (state->threads[i].at != IDLE || state->threads[i].stores)
			return false;
	return !state->gone;
}

static bool in_call(const struct state *state)
{
	for (unsigned i = 0; i < THREADS; i++)
		if (state->threads[i].at != IDLE && !state->gone)
			return true;
	return false;
}

/* What is wrong with the code, or NULL. The slab begins as nobody's, with all objects in use, or as the first slot's active
 * slab, with all objects on its freelist. */
static const char *search(struct model *model, unsigned calls, size_t *states)
{
	struct state full = { .word = { false, NONE, OBJECTS }, .calls = (uint8_t)calls }, active;

	for (unsigned i = 0; i < THREADS; i++)
		full.slots[i].freelist = NONE;
	for (unsigned i = 0; i < OBJECTS; i++) {
		full.live[i] = 1;
		full.memory[NEXT + i] = (uint8_t)(i + 1);
	}
	full.memory[HELD] = GARBAGE;
	active = full;
	memset(active.live, 0, sizeof(active.live));
	active.word.frozen = true;
	active.memory[HELD] = NONE;
	active.memory[OWNER] = 1;
	active.slots[0] = (struct slot){ .freelist = 0, .active = true };
	forget();
	visit(&full);
	visit(&active);
	for (size_t i = 0; i < seen.count && !model->wrong; i++) {
		struct state state = seen.states[i];

		if (at_rest(&state))
			model->wrong = verify(&state);
		if (!model->wrong && !next_states(model, &state) && in_call(&state))
			model->wrong = "everybody waits";
	}
	*states = seen.count;
	return model->wrong;
}

static const struct {
	const char *how, *wrong;
} faults[FAULTS] = {
	[SOUND] = { "owned slabs", NULL },
	[NO_MARK] = { "whoever frees takes the slab for its own", "an object is lost" },
	[MARK_STAYS] = { "a slot that leaves a full slab keeps it marked as its own", "nobody's slab is marked, though it is not full" },
	[MARK_LATE] = { "the mark changes after the slab was left", "a slot's slab is not marked as such" },
	[MARK_LISTED] = { "a full slab that becomes partial keeps its mark", "nobody's slab is marked, though it is not full" },
	[LEFT_BY_STORE] = { "a full slab is left by a store", "an object is lost" },
	[BACK_BY_STORE] = { "a full slab is taken back by a store", "an object is handed out twice" },
	[BACK_UNASKED] = { "a slab is taken back without a look whether it is full", "an object is handed out twice" },
	[TAKEN_BY_STORE] = { "the word's list is taken by a store", "an object is lost" },
	[EMPTY_EARLY] = { "a slab counts as empty with one object in use", "a slab counts as empty that is in use" },
	[LOOK_EARLY] = { "a slab is found empty with one object in use", "a slab counts as empty that is in use" },
	[ENDS_EARLY] = { "a slab is given back with one object in use", "a slab goes that is in use" },
	[DRAIN_FORGETS] = { "draining forgets the local list", "an object is lost" },
	[DRAIN_KEEPS_MARK] = { "draining leaves the mark", "nobody's slab is marked, though it is not full" },
	[NO_STOP] = { "a slot is drained while its thread is in a call", "a slab goes that is in use" },
	[LIST_UNLOCKED] = { "a slab comes onto the node's list without the lock", "an object is in two places" },
	[STALE_FIRST] = { "a push is tried again with the old link", "the word tells no truth" },
	[ACTIVE_LISTED] = { "an active slab is listed as empty", "a slot's slab is active and on a list" },
};

int main(void)
{
	unsigned failures = 0;

	for (unsigned fault = SOUND; fault < FAULTS; fault++) {
		struct model model = { .fault = (enum fault)fault };
		size_t states;
		const char *wrong = search(&model, CALLS, &states);
		bool expected = wrong == faults[fault].wrong || (wrong && faults[fault].wrong && !strcmp(wrong, faults[fault].wrong));

		printf("%s: %s after %zu states%s\n", faults[fault].how, wrong ? wrong : "sound", states,
		       expected ? "" : ": not what was expected");
		failures += !expected;
	}
	forget();
	if (failures)
		fprintf(stderr, "%u verdicts are not as they must be\n", failures);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
