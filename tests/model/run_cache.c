/*
 * A place where a slot keeps a run, at all interleavings, with store buffers: core/backend/run_cache.c. code/run_cache.c runs
 * the code itself. This model adds what that leaves out: the word and the mark that tells whether a look is worth it
 * (run_cache_filled) are two variables, and accesses to the mark are relaxed.
 *
 * The owner puts a run there, and sets the mark unless it is set. Then it takes the run back, or finds that another thread
 * has. It does so with one run after another. Two other threads end what is kept while the mark is set: they clear it, and
 * take what is there. A store goes to a buffer of its thread and reaches memory by a step of its own. Stores to one place keep
 * their order, and the store of the word comes after all before it, as it releases; others come in any order. An exchange
 * waits only for earlier stores to its own place, as a processor with weak order allows. In the end every thread is done and
 * all stores have reached memory, as they have when the clock ends what is left, a tenth of a second later.
 *
 * What may not happen: a run is taken twice, or never. So the clock may not go by the mark. The owner may find it set while
 * the run is still in its buffer, or the store that clears it may reach memory late: then the mark is clear, and the run is
 * there. This is the first fault that is tried here; the search must find it like the others.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 3 /* runs that the owner puts; the first is 1 */
#define THREADS 3
#define BUFFER 4

enum { WORD, MARK, VARIABLES };
enum { PUT, LOOK, SET, TAKE, OWNER_DONE, ASK, CLEAR, PEEK, GRAB, DROP, DONE };

struct model {
	const char *name;
	bool clock_asks, by_store, not_cleared, sound;
};

struct thread {
	uint8_t at, run, stores, variables[BUFFER], values[BUFFER];
};

struct state {
	uint8_t memory[VARIABLES], taken[RUNS + 1];
	struct thread threads[THREADS];
};

#include "states.h"

/* ---- Stores --------------------------------------------------------------------------------------------------------- */

static void store(struct thread *thread, uint8_t variable, uint8_t value)
{
	thread->variables[thread->stores] = variable;
	thread->values[thread->stores++] = value;
}

static bool stored(const struct thread *thread, uint8_t variable, uint8_t *value)
{
	bool found = false;

	for (unsigned i = 0; i < thread->stores; i++)
		if (thread->variables[i] == variable) {
			found = true;
			*value = thread->values[i];
		}
	return found;
}

static uint8_t load(const struct state *state, const struct thread *thread, uint8_t variable)
{
	uint8_t value = state->memory[variable];

	stored(thread, variable, &value);
	return value;
}

/* Whether one of the stores may reach memory before those in front of it. */
static bool may_go(const struct thread *thread, unsigned which)
{
	for (unsigned i = 0; i < which; i++)
		if (thread->variables[which] == WORD || thread->variables[i] == thread->variables[which])
			return false;
	return true;
}

static void reach_memory(const struct state *from, unsigned index)
{
	for (unsigned which = 0; which < from->threads[index].stores; which++) {
		struct state state = *from;
		struct thread *thread = &state.threads[index];

		if (!may_go(thread, which))
			continue;
		state.memory[thread->variables[which]] = thread->values[which];
		thread->stores--;
		for (unsigned i = which; i < thread->stores; i++) {
			thread->variables[i] = thread->variables[i + 1];
			thread->values[i] = thread->values[i + 1];
		}
		thread->variables[thread->stores] = thread->values[thread->stores] = 0;
		visit(&state);
	}
}

/* ---- Steps ---------------------------------------------------------------------------------------------------------- */

/* Exchanges the word for 0; false: an earlier store of the thread to it has not reached memory. */
static bool exchange(struct state *state, const struct thread *thread)
{
	uint8_t run;

	if (stored(thread, WORD, &run))
		return false;
	state->taken[state->memory[WORD]]++;
	state->taken[0] = 0;
	state->memory[WORD] = 0;
	return true;
}

static void grab(const struct model *model, struct state *state, struct thread *thread)
{
	thread->at = DONE;
	if (!model->by_store && !model->not_cleared) {
		exchange(state, thread);
		return;
	}
	state->taken[thread->run]++;
	thread->at = model->by_store ? DROP : DONE;
}

/* False: none is possible now. */
static bool step(const struct model *model, struct state *state, struct thread *thread)
{
	switch (thread->at) {
	case PUT:
		store(thread, WORD, ++thread->run);
		thread->at = LOOK;
		return true;
	case LOOK:
		thread->at = load(state, thread, MARK) ? TAKE : SET;
		return true;
	case SET:
		store(thread, MARK, 1);
		thread->at = TAKE;
		return true;
	case TAKE: /* not the last one, which stays */
		thread->at = thread->run < RUNS ? PUT : OWNER_DONE;
		return thread->run == RUNS || exchange(state, thread);
	case ASK:
		thread->at = load(state, thread, MARK) ? CLEAR : DONE;
		return true;
	case CLEAR:
		store(thread, MARK, 0);
		thread->at = PEEK;
		return true;
	case PEEK:
		thread->run = load(state, thread, WORD);
		thread->at = thread->run ? GRAB : DONE;
		return true;
	case GRAB:
		grab(model, state, thread);
		return true;
	case DROP:
		store(thread, WORD, 0);
		thread->at = DONE;
		return true;
	default:
		return false;
	}
}

/* ---- The search ----------------------------------------------------------------------------------------------------- */

static bool is_over(const struct state *state)
{
	for (unsigned i = 0; i < THREADS; i++)
		if (state->threads[i].stores || (state->threads[i].at != OWNER_DONE && state->threads[i].at != DONE))
			return false;
	return true;
}

/* NULL, or what is wrong when the clock has come by. */
static const char *verdict(const struct model *model, struct state state)
{
	for (unsigned run = 1; run <= RUNS; run++)
		if (state.taken[run] > 1)
			return "a run is taken twice";
	if (!is_over(&state))
		return NULL;
	if (state.memory[MARK] || !model->clock_asks)
		state.taken[state.memory[WORD]]++;
	for (unsigned run = 1; run <= RUNS; run++)
		if (state.taken[run] != 1)
			return state.taken[run] ? "a run is taken twice" : "a run stays for ever";
	return NULL;
}

static const char *search(const struct model *model)
{
	struct state first = { .threads = { { .at = PUT }, { .at = ASK }, { .at = ASK } } };
	const char *wrong = NULL;

	visit(&first);
	for (size_t i = 0; i < seen.count && !wrong; i++) {
		const struct state from = seen.states[i];

		wrong = verdict(model, from);
		for (unsigned index = 0; index < THREADS; index++) {
			struct state state = from;

			reach_memory(&from, index);
			if (step(model, &state, &state.threads[index]))
				visit(&state);
		}
	}
	return wrong;
}

int main(void)
{
	static const struct model models[] = {
		{ .name = "as in the code", .sound = true },
		{ .name = "the clock asks for the mark", .clock_asks = true },
		{ .name = "others take by a load and a store", .by_store = true },
		{ .name = "others leave what they take", .not_cleared = true },
	};
	int failures = 0;

	for (unsigned i = 0; i < sizeof(models) / sizeof(*models); i++) {
		const char *wrong = search(&models[i]);

		printf("%s: %s, %zu states\n", models[i].name, wrong ? wrong : "sound", seen.count);
		failures += models[i].sound != !wrong;
		forget();
	}
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
