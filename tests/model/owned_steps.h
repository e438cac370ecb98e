/*
 * What the threads of owned.c do to one slab: the steps of the code, one function for each kind of call, on a state that is a value.
 * Comments name the functions of core/policies/yard/ (owned.c, remote.c, slabs.c).
 */
#ifndef MODEL_OWNED_STEPS_H
#define MODEL_OWNED_STEPS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTS 2
#define NONE OBJECTS /* no object: the end of a list */
#define GARBAGE 9    /* a link to the node's list, as seen by a thread that takes it for a list of objects */
#define THREADS 2
#define NOBODY 0     /* of OWNER; else thread + 1, */
#define FULL 4u      /* with this: the thread that filled the slab and left it */
#define BUFFER 8
#define CALLS 8 /* of all threads together */

/* What plain stores write to; HELD and COUNT are the slab's local list. */
enum { NEXT, HELD = NEXT + OBJECTS, COUNT, OWNER, VARIABLES };

enum list { NO_LIST, WAITING, EMPTY };

struct word {
	uint8_t frozen, first, in_use;
};

/* Where a thread is in a call. */
enum at {
	IDLE,
	FREE, FREE_OWNER, FREE_LOCAL, FREE_BACK, FREE_BACK_SWAP, FREE_WORD, FREE_PUSH, FREE_SWAP, FREE_LOCK, FREE_LOCKED, FREE_MOVING, FREE_PLACE,
	TAKE, TAKE_ACTIVATE, MORE, MORE_WORD, MORE_OLD, MORE_SWAP, MORE_LEFT, NODE_LOCK, NODE_SWAP,
	LOOK,
	DRAIN, DRAIN_LOCK, DRAIN_RELEASE, DRAIN_SWAP, DRAIN_PLACE,
	UNLOCK,
};

struct store {
	uint8_t variable, value;
};

struct thread {
	uint8_t at, object, victim, stores;
	uint8_t chain, last, count; /* to be released */
	struct word old, new;
	struct store buffer[BUFFER];
};

struct slot {
	uint8_t freelist, active, list, stopped;
};

struct state {
	uint8_t memory[VARIABLES];
	struct word word;
	uint8_t listed, gone, locked, calls;
	uint8_t live[OBJECTS]; /* thread + 1 that took it; 0: nobody has it */
	struct slot slots[THREADS];
	struct thread threads[THREADS];
};

#include "states.h"

enum fault {
	SOUND, NO_MARK, MARK_STAYS, MARK_LATE, MARK_LISTED, LEFT_BY_STORE, BACK_BY_STORE, BACK_UNASKED, TAKEN_BY_STORE,
	EMPTY_EARLY, LOOK_EARLY, ENDS_EARLY,
	DRAIN_FORGETS, DRAIN_KEEPS_MARK, NO_STOP, LIST_UNLOCKED, STALE_FIRST, ACTIVE_LISTED, FAULTS
};

struct model {
	enum fault fault;
	const char *wrong;
};

/* ---- Memory --------------------------------------------------------------------------------------------------------- */

static unsigned load(const struct state *state, const struct thread *thread, unsigned variable)
{
	for (unsigned i = thread->stores; i; i--)
		if (thread->buffer[i - 1].variable == variable)
			return thread->buffer[i - 1].value;
	return state->memory[variable];
}

static void take_effect(struct state *state, struct thread *thread, unsigned index)
{
	state->memory[thread->buffer[index].variable] = thread->buffer[index].value;
	memmove(&thread->buffer[index], &thread->buffer[index + 1], (--thread->stores - index) * sizeof(struct store));
	memset(&thread->buffer[thread->stores], 0, sizeof(struct store));
}

static void empty(struct state *state, struct thread *thread)
{
	while (thread->stores)
		take_effect(state, thread, 0);
}

static void store(struct state *state, struct thread *thread, unsigned variable, unsigned value)
{
	if (thread->stores == BUFFER)
		take_effect(state, thread, 0);
	thread->buffer[thread->stores++] = (struct store){ (uint8_t)variable, (uint8_t)value };
}

static bool may_overtake(const struct thread *thread, unsigned index)
{
	for (unsigned i = 0; i < index; i++)
		if (thread->buffer[i].variable == thread->buffer[index].variable)
			return false;
	return true;
}

static bool same(struct word a, struct word b)
{
	return a.frozen == b.frozen && a.first == b.first && a.in_use == b.in_use;
}

/* Exchanges the word if it is what the thread takes it for; else the thread learns the new value. */
static bool swap(struct state *state, struct thread *thread, struct word new)
{
	bool done = same(state->word, thread->old);

	thread->new = new;
	if (done)
		state->word = new;
	else
		thread->old = state->word;
	return done;
}

static struct word taken(struct word word)
{
	return (struct word){ word.frozen, NONE, OBJECTS };
}

/* ---- Freeing -------------------------------------------------------------------------------------------------------- */

static void finish(struct thread *thread)
{
	struct thread idle = { .stores = thread->stores };

	memcpy(idle.buffer, thread->buffer, sizeof(idle.buffer));
	*thread = idle;
}

static void set_local(struct state *state, struct thread *thread, unsigned first, unsigned count)
{
	store(state, thread, HELD, first);
	store(state, thread, COUNT, count);
}

static void push_active(struct state *state, struct thread *thread, struct slot *slot)
{
	store(state, thread, NEXT + thread->object, slot->freelist);
	slot->freelist = thread->object;
}

/* sy__yard_emptied, if that many objects are all that are in use. */
static void empty_if(const struct model *model, const struct state *state, struct slot *slot, unsigned count)
{
	if (count == state->word.in_use && (!slot->active || model->fault == ACTIVE_LISTED))
		slot->list = EMPTY;
}

/* sy__yard_push_local, or sy__yard_put_own. */
static void push_local(const struct model *model, struct state *state, struct thread *thread, struct slot *slot)
{
	unsigned count = load(state, thread, COUNT) + 1;

	store(state, thread, NEXT + thread->object, load(state, thread, HELD));
	set_local(state, thread, thread->object, count);
	empty_if(model, state, slot, count + (model->fault == EMPTY_EARLY));
	finish(thread);
}

static void discard(struct model *model, struct state *state)
{
	state->gone = true;
	for (unsigned i = 0; i < OBJECTS; i++)
		if (state->live[i])
			model->wrong = "a slab goes that is in use";
}

/* Each of these makes one step of a call. `choice` stands for what depends on the object handed out last. False: the step
 * can't be made now. */
static bool free_step(struct model *model, struct state *state, unsigned index, bool choice)
{
	struct thread *thread = &state->threads[index];
	struct slot *slot = &state->slots[index];
	struct word new;

	switch (thread->at) {
	case FREE:
		thread->at = FREE_OWNER;
		if (!slot->active || !choice)
			return true;
		push_active(state, thread, slot);
		finish(thread);
		return true;
	case FREE_OWNER:
		thread->at = FREE_WORD;
		if (model->fault == NO_MARK || load(state, thread, OWNER) == index + 1)
			thread->at = FREE_LOCAL;
		else if (load(state, thread, OWNER) == ((index + 1) | FULL))
			thread->at = FREE_BACK;
		return true;
	case FREE_LOCAL:
		push_local(model, state, thread, slot);
		return true;
	case FREE_BACK: /* take_back */
		thread->old = state->word;
		thread->at = FREE_BACK_SWAP;
		return true;
	case FREE_BACK_SWAP:
		if (thread->stores)
			return false;
		thread->at = FREE_WORD;
		if (model->fault != BACK_UNASKED &&
		    (load(state, thread, OWNER) != ((index + 1) | FULL) || thread->old.frozen || thread->old.first != NONE))
			return true;
		if (model->fault == BACK_BY_STORE)
			thread->old = state->word;
		if (!swap(state, thread, (struct word){ true, thread->old.first, thread->old.in_use }))
			return true;
		store(state, thread, OWNER, index + 1);
		store(state, thread, NEXT + thread->object, NONE);
		set_local(state, thread, thread->object, 1);
		slot->list = WAITING;
		empty_if(model, state, slot, 1 + (model->fault == EMPTY_EARLY));
		finish(thread);
		return true;
	case FREE_WORD:
		thread->old = state->word;
		thread->at = FREE_PUSH;
		return true;
	case FREE_PUSH:
		if (thread->old.frozen || (thread->old.first != NONE && thread->old.in_use > 1)) {
			store(state, thread, NEXT + thread->object, thread->old.first);
			thread->at = FREE_SWAP;
		} else {
			thread->at = FREE_LOCK;
		}
		return true;
	case FREE_SWAP:
		if (thread->stores)
			return false;
		new = (struct word){ thread->old.frozen, thread->object, (uint8_t)(thread->old.in_use - 1) };
		if (swap(state, thread, new))
			finish(thread);
		else
			thread->at = model->fault == STALE_FIRST ? FREE_SWAP : FREE_PUSH;
		return true;
	case FREE_LOCK: /* push_moving */
		if (thread->stores || state->locked)
			return false;
		state->locked = true;
		thread->at = FREE_LOCKED;
		return true;
	case FREE_LOCKED:
		thread->old = state->word;
		thread->at = FREE_MOVING;
		return true;
	case FREE_MOVING:
		store(state, thread, NEXT + thread->object, thread->old.first);
		thread->at = FREE_PLACE;
		return true;
	default: /* FREE_PLACE */
		if (thread->stores)
			return false;
		new = (struct word){ thread->old.frozen, thread->object, (uint8_t)(thread->old.in_use - 1) };
		if (!swap(state, thread, new)) {
			thread->at = FREE_MOVING;
			return true;
		}
		thread->at = UNLOCK;
		if (new.frozen)
			return true;
		if (model->fault != MARK_LISTED)
			store(state, thread, OWNER, NOBODY);
		if (thread->old.first == NONE)
			store(state, thread, HELD, GARBAGE);
		state->listed = true;
		if (!new.in_use) {
			state->listed = false;
			discard(model, state);
		}
		return true;
	}
}

/* ---- Taking --------------------------------------------------------------------------------------------------------- */

static void carve(struct state *state, struct thread *thread, struct slot *slot)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		store(state, thread, NEXT + i, i + 1);
	slot->freelist = 0;
}

static void pop(struct model *model, struct state *state, unsigned index)
{
	struct thread *thread = &state->threads[index];
	struct slot *slot = &state->slots[index];
	unsigned object = slot->freelist;

	if (object >= OBJECTS || state->live[object]) {
		model->wrong = "an object is handed out twice";
		return;
	}
	slot->freelist = (uint8_t)load(state, thread, NEXT + object);
	state->live[object] = (uint8_t)(index + 1);
	finish(thread);
}

static bool take_step(struct model *model, struct state *state, unsigned index)
{
	struct thread *thread = &state->threads[index];
	struct slot *slot = &state->slots[index];
	unsigned first;

	switch (thread->at) {
	case TAKE:
		if (slot->active && slot->freelist != NONE)
			pop(model, state, index);
		else
			thread->at = slot->active ? MORE : slot->list != NO_LIST ? TAKE_ACTIVATE : NODE_LOCK;
		return true;
	case TAKE_ACTIVATE: /* activate_next */
		slot->active = true;
		slot->freelist = NONE;
		store(state, thread, OWNER, index + 1);
		if (slot->list == EMPTY && load(state, thread, COUNT) == OBJECTS) {
			set_local(state, thread, NONE, 0);
			carve(state, thread, slot);
		}
		slot->list = NO_LIST;
		thread->at = TAKE;
		return true;
	case MORE: /* fill_from_active */
		slot->freelist = (uint8_t)load(state, thread, HELD);
		thread->at = MORE_WORD;
		if (slot->freelist == NONE)
			return true;
		set_local(state, thread, NONE, 0);
		thread->at = TAKE;
		return true;
	case MORE_WORD: /* more_of_active */
		thread->old = state->word;
		thread->at = MORE_OLD;
		return true;
	case MORE_OLD:
		thread->at = thread->old.first == NONE ? MORE_LEFT : MORE_SWAP;
		if (thread->at == MORE_LEFT && model->fault != MARK_LATE)
			store(state, thread, OWNER, model->fault == MARK_STAYS ? index + 1 : (index + 1) | FULL);
		return true;
	case MORE_SWAP:
		if (thread->stores)
			return false;
		first = thread->old.first;
		if (model->fault == TAKEN_BY_STORE)
			thread->old = state->word;
		thread->at = MORE_OLD;
		if (swap(state, thread, taken(thread->old))) {
			slot->freelist = (uint8_t)first;
			thread->at = TAKE;
		}
		return true;
	case MORE_LEFT: /* leave */
		if (thread->stores)
			return false;
		if (model->fault == LEFT_BY_STORE)
			thread->old = state->word;
		thread->at = MORE_OLD;
		if (swap(state, thread, (struct word){ false, NONE, OBJECTS })) {
			slot->active = false;
			thread->at = TAKE;
			if (model->fault == MARK_LATE)
				store(state, thread, OWNER, (index + 1) | FULL);
		} else {
			store(state, thread, OWNER, index + 1);
		}
		return true;
	case NODE_LOCK: /* take_partial */
		if (thread->stores || state->locked)
			return false;
		state->locked = true;
		thread->old = state->word;
		thread->at = state->listed ? NODE_SWAP : UNLOCK;
		state->listed = false;
		return true;
	default: /* NODE_SWAP: own_partial */
		if (thread->stores)
			return false;
		first = thread->old.first;
		if (!swap(state, thread, (struct word){ true, NONE, OBJECTS }))
			return true;
		slot->active = true;
		slot->freelist = (uint8_t)first;
		set_local(state, thread, NONE, 0);
		store(state, thread, OWNER, index + 1);
		thread->at = UNLOCK;
		return true;
	}
}

/* ---- Draining ------------------------------------------------------------------------------------------------------- */

/* The last object of a chain; NONE: it runs in a circle. */
static unsigned last_of(const struct state *state, const struct thread *thread, unsigned object, unsigned *count)
{
	for (*count = 1; object < OBJECTS && *count <= OBJECTS; ++*count) {
		unsigned next = load(state, thread, NEXT + object);

		if (next == NONE)
			return object;
		object = next;
	}
	return NONE;
}

/* give_empty, of the caller's own slot: others may have freed the last object. */
static void look_step(const struct model *model, struct state *state, unsigned index)
{
	struct thread *thread = &state->threads[index];
	struct slot *slot = &state->slots[index];

	if (slot->list == WAITING)
		empty_if(model, state, slot, load(state, thread, COUNT) + (model->fault == LOOK_EARLY));
	finish(thread);
}

/* The objects that the slot has of the slab. */
static unsigned free_in(const struct state *state, const struct thread *thread, const struct slot *slot)
{
	unsigned count = 0;

	if (slot->active && slot->freelist != NONE)
		last_of(state, thread, slot->freelist, &count);
	return count + load(state, thread, COUNT);
}

static bool drain_step(struct model *model, struct state *state, unsigned index)
{
	struct thread *thread = &state->threads[index];
	struct slot *slot = &state->slots[thread->victim];
	unsigned count;

	switch (thread->at) {
	case DRAIN:
		thread->at = DRAIN_LOCK;
		if (slot->active || slot->list != NO_LIST)
			return true;
		slot->stopped = false;
		finish(thread);
		return true;
	case DRAIN_LOCK: /* sy__yard_deactivate, give_up */
		if (thread->stores || (state->locked && model->fault != LIST_UNLOCKED))
			return false;
		state->locked = true;
		thread->at = DRAIN_RELEASE;
		return true;
	case DRAIN_RELEASE:
		if (free_in(state, thread, slot) + (model->fault == ENDS_EARLY) == state->word.in_use) {
			*slot = (struct slot){ .freelist = NONE, .stopped = slot->stopped };
			discard(model, state);
			thread->at = UNLOCK;
			return true;
		}
		thread->chain = model->fault == DRAIN_FORGETS ? NONE : (uint8_t)load(state, thread, HELD);
		if (slot->active && slot->freelist != NONE) {
			store(state, thread, NEXT + last_of(state, thread, slot->freelist, &count), thread->chain);
			thread->chain = slot->freelist;
		}
		if (thread->chain != NONE) {
			thread->last = (uint8_t)last_of(state, thread, thread->chain, &count);
			thread->count = (uint8_t)count;
			if (thread->last == NONE)
				model->wrong = "a list leads astray";
		}
		if (model->fault != DRAIN_KEEPS_MARK)
			store(state, thread, OWNER, NOBODY);
		thread->old = state->word;
		thread->at = DRAIN_SWAP;
		return true;
	case DRAIN_SWAP:
		if (thread->count)
			store(state, thread, NEXT + thread->last, thread->old.first);
		thread->at = DRAIN_PLACE;
		return true;
	default: /* DRAIN_PLACE */
		if (thread->stores)
			return false;
		count = thread->count;
		if (!swap(state, thread, (struct word){ false, count ? thread->chain : thread->old.first,
		                                        (uint8_t)(thread->old.in_use - count) })) {
			thread->at = DRAIN_SWAP;
			return true;
		}
		*slot = (struct slot){ .freelist = NONE, .stopped = slot->stopped };
		thread->at = UNLOCK;
		if (!thread->new.in_use) {
			discard(model, state);
		} else if (thread->new.first != NONE) {
			store(state, thread, HELD, GARBAGE);
			state->listed = true;
		}
		return true;
	}
}

#endif
