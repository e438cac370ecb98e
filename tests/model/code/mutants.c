/*
 * Which operations a mutant breaks, and whether the search notices. See mutants.h.
 *
 * Each mutant runs in a process of its own, which writes the model's verdict to a pipe. The mutant is noticed if the process
 * broke off with the verdict that its line asks for.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct mutant *mutant; /* NULL: nothing is broken */
static struct functions within, by;
static bool *was_met; /* shared with the process that waits */

static struct {
	unsigned depth, operations; /* calls of `within`; operations of that kind in the outermost one */
	bool failed;                /* an exchange in it has */
} threads[MODEL_THREADS];

void mutants_begin(void)
{
	memset(threads, 0, sizeof(threads));
}

void mutants_enter(const void *caller)
{
	if (!mutant || running() < 0 || !functions_have(&within, caller))
		return;
	if (!threads[running()].depth++) {
		threads[running()].operations = 0;
		threads[running()].failed = false;
	}
}

bool mutants_leave(const void *caller)
{
	return mutant && running() >= 0 && functions_have(&within, caller) && !--threads[running()].depth;
}

void mutants_exchange_failed(void)
{
	if (running() >= 0)
		threads[running()].failed = true;
}

enum fault fault_of(enum operation operation, const void *caller)
{
	if (!mutant || running() < 0 || operation != mutant->what || !threads[running()].depth)
		return SOUND;
	if (mutant->by && !functions_have(&by, caller))
		return SOUND;
	if (mutant->which && ++threads[running()].operations != mutant->which)
		return SOUND;
	if (mutant->fault == STALE && !threads[running()].failed)
		return SOUND;
	*was_met = true;
	return mutant->fault == STALE ? NOT_DONE : mutant->fault;
}

uint64_t as_read(enum fault fault, uint64_t value)
{
	return fault == READS ? mutant->value : fault == READS_MORE ? value + mutant->value : value;
}

uint64_t as_written(enum fault fault, uint64_t value)
{
	return fault == WRITES_MORE ? value + mutant->value : value;
}

/* ---- Running them --------------------------------------------------------------------------------------------------- */

static bool find(struct functions *found, const char *name, const char *of)
{
	functions_find(found, name);
	if (!found->count)
		printf("%s: there is no function %s any more: say in the table of mutants what it is called now\n", of, name);
	return found->count;
}

/* The process's output, up to a size. */
static size_t read_all(int from, char *text, size_t size)
{
	size_t length = 0;
	ssize_t got;

	while (length < size - 1 && (got = read(from, text + length, size - 1 - length)) > 0)
		length += (size_t)got;
	text[length] = '\0';
	return length;
}

static _Noreturn void run(const struct mutant *wanted, const struct model *model, int to)
{
	dup2(to, STDOUT_FILENO);
	mutant = wanted;
	model_try_one(model);
}

static bool is_noticed(const struct mutant *wanted, const struct model *model)
{
	static char said[1 << 16];
	int ends[2], status;
	bool noticed;
	pid_t child;

	*was_met = false;
	fflush(stdout);
	if (pipe(ends) || (child = fork()) < 0)
		abort();
	if (!child) {
		close(ends[0]);
		run(wanted, model, ends[1]);
	}
	close(ends[1]);
	read_all(ends[0], said, sizeof(said));
	close(ends[0]);
	if (waitpid(child, &status, 0) != child)
		abort();
	noticed = *was_met && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE && strstr(said, " in execution ") &&
	          strstr(said, wanted->verdict);
	said[strcspn(said, ";\n")] = '\0';
	printf("%s: %s%s\n", wanted->name, noticed ? "" : *was_met ? "NOT NOTICED: " : "NEVER MET: ", said);
	return noticed;
}

static bool try_mutant(const struct mutant *wanted, const struct model *models)
{
	if (!find(&within, wanted->within, wanted->name) || (wanted->by && !find(&by, wanted->by, wanted->name)))
		return false;
	for (; models->name; models++)
		if (!strcmp(models->name, wanted->model))
			return is_noticed(wanted, models);
	printf("%s: there is no model \"%s\"\n", wanted->name, wanted->model);
	return false;
}

static bool is_wanted(const struct mutant *one, int count, char **names)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(one->name, names[i]))
			return true;
	return !count;
}

int mutants_try(const struct mutant *list, const struct model *models, int count, char **names)
{
	int failures = 0;

	was_met = mmap(NULL, sizeof(*was_met), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (was_met == MAP_FAILED)
		abort();
	for (; list->name; list++)
		if (is_wanted(list, count, names))
			failures += !try_mutant(list, models);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
