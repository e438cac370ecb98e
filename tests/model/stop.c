/*
 * How a thread stops others' slots (core/platform/stop.c), at all its interleavings.
 *
 * The protocol's steps are written as little programs for an owner and for stoppers, with the same names and in the same order
 * as in the code. A search visits every state that they can reach together. Stores don't take effect when they are made: they
 * go to a buffer of the thread, and reach memory by steps of their own, later, at any time. Two machines are tried:
 *
 *   ordered   stores leave the buffer in the order in which they were made: x86 (TSO)
 *   weak      in any order but for those to one place, except that a release waits for all before it
 *
 * Compare-and-exchange waits for an empty buffer, as it releases. Loads are not moved; what an acquire prevents is shown
 * by programs whose loads have changed places. membarrier empties the stopper's buffer and then each owner's, one step for each.
 *
 * What may not happen. `slot` stands for all of a slot's state: a thread that works on it reads the count of all work so far,
 * and writes one more. If it reads a smaller count than that of all work done, two threads have worked at once, or one did not
 * see the other's work. `locks` is the same for what slow calls and a fork work on. A slow call must find itself on the dummy
 * slot. No state may be without a next step before all threads have ended.
 *
 * Then the protocol is broken in one place after another, and each time the search must find out.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUSY, HERE, NOTE, STATE, LOCK, SLOT, LOCKS, VARIABLES };
enum { OUTSIDE, INSIDE, STOPPING, STOPPED };
enum { DUMMY, OWN }; /* of HERE */

#define THREADS 3
#define OWNER 0
#define BUFFER 8
#define CALLS 3 /* of the owner; stoppers stop once each */

enum operation {
	STORE,   /* variable = value */
	RELEASE, /* the same, after all earlier stores */
	LOAD,    /* register = variable */
	WORK,    /* register = variable, which counts all work; */
	WRITE,   /* and one more is stored: register + 1 */
	GUARD,   /* to target if variable is not value */
	EXPECT,  /* variable is value */
	SWAP,    /* variable from `from` to value, or else to target */
	TAKE,    /* LOCK from 0 to 1, when it is 0 */
	WAIT,    /* until variable is value */
	FENCE,   /* own buffer, then the owner's, are empty */
	MAYBE,   /* goes on, or to target */
	JUMP,
	LOOP,    /* to target until all calls are made */
	END,
};

struct step {
	enum operation operation;
	uint8_t variable, value, from, target;
};

#define MOST_STEPS 40

struct program {
	struct step steps[MOST_STEPS];
};

struct store {
	uint8_t variable, value, releases;
};

struct thread {
	uint8_t at, reg, calls, stores;
	struct store buffer[BUFFER];
};

struct state {
	uint8_t memory[VARIABLES], done[VARIABLES];
	struct thread threads[THREADS];
};

/* ---- The protocol ------------------------------------------------------------------------------------------------- */

/* sy__call_begin, the fast path with a note at its end, sy__call_end; the same by sy__call_begin_with, where the note is still
 * there; and sy__call_enter to sy__call_leave where the first misses. */
enum {
	FAST_BUSY, FAST_THIS_SLOT, FAST_WORK, FAST_WRITE, FAST_NOTE, FAST_END,
	NOTED_BUSY, NOTED_GUARD, NOTED_WORK, NOTED_WRITE, NOTED_END, FAST_LOOP, FAST_DONE,
	SLOW_ENTER, SLOW_FORGET, SLOW_HIDE, SLOW_EXPECT, SLOW_WORK, SLOW_WRITE, SLOW_LOCKS, SLOW_LOCKS_WRITE, SLOW_SHOW, SLOW_LEAVE, SLOW_END,
	SLOW_NEXT,
	ANSWER, ANSWER_NEXT,
	WAIT_END, WAIT_TAKE, WAIT_GIVE, WAIT_AGAIN,
};

static const struct program owner = { {
	[FAST_BUSY] = { STORE, BUSY, 1, 0, 0 },
	[FAST_THIS_SLOT] = { GUARD, HERE, OWN, 0, SLOW_ENTER },
	[FAST_WORK] = { WORK, SLOT, 0, 0, 0 },
	[FAST_WRITE] = { WRITE, SLOT, 0, 0, 0 },
	[FAST_NOTE] = { STORE, NOTE, 1, 0, 0 },
	[FAST_END] = { RELEASE, BUSY, 0, 0, 0 },
	[NOTED_BUSY] = { STORE, BUSY, 1, 0, 0 },
	[NOTED_GUARD] = { GUARD, NOTE, 1, 0, NOTED_END },
	[NOTED_WORK] = { WORK, SLOT, 0, 0, 0 },
	[NOTED_WRITE] = { WRITE, SLOT, 0, 0, 0 },
	[NOTED_END] = { RELEASE, BUSY, 0, 0, 0 },
	[FAST_LOOP] = { LOOP, 0, 0, 0, FAST_BUSY },
	[FAST_DONE] = { END, 0, 0, 0, 0 },
	[SLOW_ENTER] = { SWAP, STATE, INSIDE, OUTSIDE, WAIT_END },
	[SLOW_FORGET] = { STORE, NOTE, 0, 0, 0 },
	[SLOW_HIDE] = { STORE, HERE, DUMMY, 0, 0 },
	[SLOW_EXPECT] = { EXPECT, HERE, DUMMY, 0, 0 },
	[SLOW_WORK] = { WORK, SLOT, 0, 0, 0 },
	[SLOW_WRITE] = { WRITE, SLOT, 0, 0, 0 },
	[SLOW_LOCKS] = { WORK, LOCKS, 0, 0, 0 },
	[SLOW_LOCKS_WRITE] = { WRITE, LOCKS, 0, 0, 0 },
	[SLOW_SHOW] = { RELEASE, HERE, OWN, 0, 0 },
	[SLOW_LEAVE] = { SWAP, STATE, OUTSIDE, INSIDE, ANSWER },
	[SLOW_END] = { RELEASE, BUSY, 0, 0, 0 },
	[SLOW_NEXT] = { JUMP, 0, 0, 0, FAST_LOOP },
	[ANSWER] = { RELEASE, STATE, STOPPED, 0, 0 },
	[ANSWER_NEXT] = { JUMP, 0, 0, 0, SLOW_END },
	[WAIT_END] = { RELEASE, BUSY, 0, 0, 0 },
	[WAIT_TAKE] = { TAKE, LOCK, 0, 0, 0 },
	[WAIT_GIVE] = { RELEASE, LOCK, 0, 0, 0 },
	[WAIT_AGAIN] = { JUMP, 0, 0, 0, SLOW_ENTER },
} };

/* Stops all, works, resumes all. With MAYBE the stopper runs out of patience, as under memory pressure, and works on the
 * slots that it got. */
enum {
	STOP_TAKE, STOP_CALLS, STOP_STOPPED,
	STOP_WANT, STOP_PATIENCE, STOP_ANSWERED, STOP_FORGET, STOP_HIDE, STOP_FENCE, STOP_HURRY, STOP_BUSY,
	STOP_NOTED, STOP_ONCE_MORE, STOP_WORK,
	STOP_WRITE, STOP_LOCKS, STOP_LOCKS_WRITE, STOP_SHOW, STOP_RELEASE, STOP_GIVE, STOP_DONE,
	STOP_GIVE_UP, STOP_GIVEN_UP,
};

static const struct program stopper = { {
	[STOP_TAKE] = { TAKE, LOCK, 0, 0, 0 },
	[STOP_CALLS] = { SWAP, STATE, STOPPED, OUTSIDE, STOP_WANT },
	[STOP_STOPPED] = { JUMP, 0, 0, 0, STOP_FORGET },
	[STOP_WANT] = { SWAP, STATE, STOPPING, INSIDE, STOP_CALLS },
	[STOP_PATIENCE] = { MAYBE, 0, 0, 0, STOP_GIVE_UP },
	[STOP_ANSWERED] = { WAIT, STATE, STOPPED, 0, 0 },
	[STOP_FORGET] = { RELEASE, NOTE, 0, 0, 0 },
	[STOP_HIDE] = { RELEASE, HERE, DUMMY, 0, 0 },
	[STOP_FENCE] = { FENCE, 0, 0, 0, 0 },
	[STOP_HURRY] = { MAYBE, 0, 0, 0, STOP_SHOW },
	[STOP_BUSY] = { WAIT, BUSY, 0, 0, 0 },
	[STOP_NOTED] = { GUARD, NOTE, 1, 0, STOP_WORK },
	[STOP_ONCE_MORE] = { JUMP, 0, 0, 0, STOP_FORGET },
	[STOP_WORK] = { WORK, SLOT, 0, 0, 0 },
	[STOP_WRITE] = { WRITE, SLOT, 0, 0, 0 },
	[STOP_LOCKS] = { WORK, LOCKS, 0, 0, 0 },
	[STOP_LOCKS_WRITE] = { WRITE, LOCKS, 0, 0, 0 },
	[STOP_SHOW] = { RELEASE, HERE, OWN, 0, 0 },
	[STOP_RELEASE] = { RELEASE, STATE, OUTSIDE, 0, 0 },
	[STOP_GIVE] = { RELEASE, LOCK, 0, 0, 0 },
	[STOP_DONE] = { END, 0, 0, 0, 0 },
	[STOP_GIVE_UP] = { SWAP, STATE, INSIDE, STOPPING, STOP_ANSWERED },
	[STOP_GIVEN_UP] = { JUMP, 0, 0, 0, STOP_GIVE },
} };

#include "states.h"

/* ---- Steps -------------------------------------------------------------------------------------------------------- */

struct model {
	const struct program *programs[THREADS];
	bool weak, patient; /* patient: stops wait without a bound, MAYBE always goes on */
	const char *wrong;
};

static uint8_t *load(struct state *state, struct thread *thread, unsigned variable)
{
	for (unsigned i = thread->stores; i; i--)
		if (thread->buffer[i - 1].variable == variable)
			return &thread->buffer[i - 1].value;
	return &state->memory[variable];
}

static void put(struct thread *thread, unsigned variable, unsigned value, bool releases)
{
	thread->buffer[thread->stores++] = (struct store){ (uint8_t)variable, (uint8_t)value, releases };
}

/* Lets one store of a thread's buffer reach memory. */
static void take_effect(struct state *state, struct thread *thread, unsigned index)
{
	state->memory[thread->buffer[index].variable] = thread->buffer[index].value;
	memmove(&thread->buffer[index], &thread->buffer[index + 1], (--thread->stores - index) * sizeof(struct store));
	memset(&thread->buffer[thread->stores], 0, sizeof(struct store));
}

static bool may_overtake(const struct thread *thread, unsigned index)
{
	for (unsigned i = 0; i < index; i++)
		if (thread->buffer[i].variable == thread->buffer[index].variable || thread->buffer[index].releases)
			return false;
	return true;
}

static void empty(struct state *state, struct thread *thread)
{
	while (thread->stores)
		take_effect(state, thread, 0);
}

/* Makes the thread's next step, from a copy of the state; false: it can't be made now. */
static bool make_step(struct model *model, struct state *state, unsigned index)
{
	struct thread *thread = &state->threads[index];
	const struct step *step = &model->programs[index]->steps[thread->at];

	thread->at++;
	switch (step->operation) {
	case STORE:
	case RELEASE:
		if (thread->stores == BUFFER)
			return false;
		put(thread, step->variable, step->value, step->operation == RELEASE);
		return true;
	case LOAD:
		thread->reg = *load(state, thread, step->variable);
		return true;
	case WORK:
		thread->reg = *load(state, thread, step->variable);
		if (thread->reg != state->done[step->variable])
			model->wrong = step->variable == SLOT ? "two work on a slot" : "two are in slow calls";
		return true;
	case WRITE:
		if (thread->stores == BUFFER)
			return false;
		put(thread, step->variable, thread->reg + 1u, false);
		if (state->done[step->variable]++ != thread->reg)
			model->wrong = step->variable == SLOT ? "two work on a slot" : "two are in slow calls";
		thread->reg = 0;
		return true;
	case GUARD:
		if (*load(state, thread, step->variable) != step->value) {
			thread->at = step->target;
			thread->reg = 0;
		}
		return true;
	case EXPECT:
		if (*load(state, thread, step->variable) != step->value)
			model->wrong = "a slow call shows itself its own slot";
		return true;
	case SWAP:
		if (thread->stores)
			return false;
		if (state->memory[step->variable] == step->from)
			state->memory[step->variable] = step->value;
		else
			thread->at = step->target;
		return true;
	case TAKE:
		if (thread->stores || state->memory[LOCK])
			return false;
		state->memory[LOCK] = 1;
		return true;
	case WAIT:
		return *load(state, thread, step->variable) == step->value;
	case FENCE:
		if (thread->stores)
			return false;
		empty(state, &state->threads[OWNER]);
		return true;
	case JUMP:
		thread->at = step->target;
		return true;
	case LOOP:
		if (--thread->calls)
			thread->at = step->target;
		return true;
	case MAYBE: /* the step's other half: see next_states */
		return true;
	case END:
		break;
	}
	return false;
}

static bool ended(const struct model *model, const struct state *state)
{
	for (unsigned i = 0; i < THREADS; i++)
		if (model->programs[i]->steps[state->threads[i].at].operation != END || state->threads[i].stores)
			return false;
	return true;
}

/* Visits all states that can come next; returns how many. */
static unsigned next_states(struct model *model, const struct state *from)
{
	unsigned count = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		const struct step *step = &model->programs[i]->steps[from->threads[i].at];
		struct state state = *from;

		if (make_step(model, &state, i))
			visit(&state), count++;
		if (step->operation == MAYBE && !model->patient) {
			state = *from;
			state.threads[i].at = step->target;
			visit(&state), count++;
		}
		for (unsigned at = 0; at < from->threads[i].stores; at++) {
			if (at && (!model->weak || !may_overtake(&from->threads[i], at)))
				continue;
			state = *from;
			take_effect(&state, &state.threads[i], at);
			visit(&state), count++;
		}
	}
	return count;
}

/* What is wrong with the programs, or NULL. */
static const char *search(struct model *model, size_t *states)
{
	struct state first = { .memory = { [HERE] = OWN } };

	first.threads[OWNER].calls = CALLS;
	forget();
	visit(&first);
	for (size_t i = 0; i < seen.count && !model->wrong; i++) {
		struct state state = seen.states[i];

		if (!next_states(model, &state) && !ended(model, &state))
			model->wrong = "everybody waits";
	}
	*states = seen.count;
	return model->wrong;
}

/* ---- Broken protocols --------------------------------------------------------------------------------------------- */

struct broken {
	const char *how;
	const char *wrong; /* what the search must find */
	bool weak;         /* only the weak machine shows it */
	struct program owner, stopper;
};

static void exchange(struct program *program, unsigned a, unsigned b)
{
	struct step step = program->steps[a];

	program->steps[a] = program->steps[b];
	program->steps[b] = step;
}

static void leave_out(struct program *program, unsigned at)
{
	program->steps[at] = (struct step){ JUMP, 0, 0, 0, (uint8_t)(at + 1) };
}

static struct broken intact(const char *how, const char *wrong, bool weak)
{
	return (struct broken){ how, wrong, weak, owner, stopper };
}

static unsigned break_all(struct broken *list)
{
	unsigned n = 0;

	list[n] = intact("no membarrier", "two work on a slot", false);
	leave_out(&list[n++].stopper, STOP_FENCE);
	list[n] = intact("membarrier before the dummy is shown", "two work on a slot", false);
	exchange(&list[n++].stopper, STOP_HIDE, STOP_FENCE);
	list[n] = intact("the end of the fast call is waited for before membarrier", "two work on a slot", false);
	list[n].stopper.steps[STOP_FENCE] = stopper.steps[STOP_BUSY];
	list[n].stopper.steps[STOP_HURRY] = stopper.steps[STOP_FENCE];
	leave_out(&list[n++].stopper, STOP_BUSY);
	list[n] = intact("nobody waits for the end of the fast call", "two work on a slot", false);
	leave_out(&list[n++].stopper, STOP_BUSY);
	list[n] = intact("the dummy is not shown", "two work on a slot", false);
	leave_out(&list[n++].stopper, STOP_HIDE);
	list[n] = intact("slow calls are not stopped", "two work on a slot", false);
	list[n++].stopper.steps[STOP_CALLS] = (struct step){ JUMP, 0, 0, 0, STOP_FORGET };
	list[n] = intact("the note stays", "two work on a slot", false);
	leave_out(&list[n].stopper, STOP_FORGET);
	list[n++].stopper.steps[STOP_NOTED] = (struct step){ JUMP, 0, 0, 0, STOP_WORK };
	list[n] = intact("a note that comes late stays", "two work on a slot", false);
	list[n++].stopper.steps[STOP_NOTED] = (struct step){ JUMP, 0, 0, 0, STOP_WORK };
	list[n] = intact("a note is made behind the call's end", "two work on a slot", false);
	exchange(&list[n++].owner, FAST_NOTE, FAST_END);
	list[n] = intact("the owner asks for the note, then stores busy", "two work on a slot", false);
	exchange(&list[n++].owner, NOTED_BUSY, NOTED_GUARD);
	list[n] = intact("the owner loads slot_offset, then stores busy", "two work on a slot", false);
	exchange(&list[n++].owner, FAST_BUSY, FAST_THIS_SLOT);
	list[n] = intact("the owner reads its slot before it loads slot_offset", "two work on a slot", false);
	list[n].owner.steps[FAST_THIS_SLOT] = (struct step){ LOAD, SLOT, 0, 0, 0 };
	list[n++].owner.steps[FAST_WORK] = owner.steps[FAST_THIS_SLOT];
	list[n] = intact("the stopper reads the slot before it has seen busy", "two work on a slot", false);
	list[n].stopper.steps[STOP_BUSY] = (struct step){ LOAD, SLOT, 0, 0, 0 };
	list[n++].stopper.steps[STOP_WORK] = stopper.steps[STOP_BUSY];
	list[n] = intact("a slow call stays on its own slot", "a slow call shows itself its own slot", false);
	leave_out(&list[n++].owner, SLOW_HIDE);
	list[n] = intact("the slot is shown after the stop is over", "a slow call shows itself its own slot", false);
	exchange(&list[n++].stopper, STOP_SHOW, STOP_RELEASE);
	list[n] = intact("a slow call does not answer", "everybody waits", false);
	list[n++].owner.steps[SLOW_LEAVE] = (struct step){ RELEASE, STATE, OUTSIDE, 0, 0 };
	list[n] = intact("a fast call's end is no release", "two work on a slot", true);
	list[n].owner.steps[FAST_END].operation = STORE;
	list[n++].owner.steps[NOTED_END].operation = STORE;
	list[n] = intact("the slot is shown again without a release", "two work on a slot", true);
	list[n++].stopper.steps[STOP_SHOW].operation = STORE;
	return n;
}

/* ---- The verdict -------------------------------------------------------------------------------------------------- */

static const char *verdict(const struct program *own, const struct program *stops, bool weak, bool patient, size_t *states)
{
	struct model model = { { own, stops, stops }, weak, patient, NULL };

	return search(&model, states);
}

/* The protocol without membarrier: its stoppers work on what slow calls work on, and leave the slot alone. */
static struct program without_membarrier(void)
{
	struct program program = stopper;

	leave_out(&program, STOP_FENCE);
	leave_out(&program, STOP_HURRY);
	leave_out(&program, STOP_BUSY);
	leave_out(&program, STOP_NOTED);
	leave_out(&program, STOP_ONCE_MORE);
	leave_out(&program, STOP_WORK);
	leave_out(&program, STOP_WRITE);
	return program;
}

/* A thread all of whose calls are slow (sy__watch): its slot is not shown after a call, nor after a stop. */
static struct program hidden(const struct program *from, unsigned show)
{
	struct program program = *from;

	leave_out(&program, show);
	return program;
}

static unsigned must_hold(const char *name, const struct program *own, const struct program *stops)
{
	unsigned failures = 0;
	size_t states;

	for (unsigned way = 0; way < 4; way++) {
		const char *wrong = verdict(own, stops, way & 1, way & 2, &states);

		printf("%s, %s, %s: %zu states, %s\n", name, way & 1 ? "weak" : "ordered", way & 2 ? "patient" : "impatient",
		       states, wrong ? wrong : "sound");
		failures += wrong != NULL;
	}
	return failures;
}

static unsigned must_break(const struct broken *broken)
{
	size_t states;
	const char *wrong = verdict(&broken->owner, &broken->stopper, broken->weak, true, &states);
	bool found = wrong && !strcmp(wrong, broken->wrong);

	printf("%s: %s after %zu states%s\n", broken->how, wrong ? wrong : "NOT FOUND", states, found ? "" : ": not what was expected");
	return !found;
}

int main(void)
{
	static struct broken list[20];
	struct program slow_only = without_membarrier(), watching = hidden(&owner, SLOW_SHOW), makes_watch = hidden(&stopper, STOP_SHOW);
	unsigned failures = must_hold("protocol", &owner, &stopper) + must_hold("without membarrier", &owner, &slow_only) +
	                    must_hold("watching", &watching, &stopper) + must_hold("made to watch", &owner, &makes_watch);
	unsigned count = break_all(list);

	for (unsigned i = 0; i < count; i++)
		failures += must_break(&list[i]);
	forget();
	if (failures)
		fprintf(stderr, "%u verdicts are not as they must be\n", failures);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
