/*
 * Which thread goes on: the search through all interleavings. See schedule.h.
 *
 * `path` has a node for each step of the execution: what every thread was about to do, which threads could go on, which one
 * did, which have been tried in that place before, and which are to be tried. The next execution repeats the path up to its
 * last node where a thread is left to be tried, and lets that one go on there.
 *
 * Which threads are to be tried. A thread is about to make a step that depends on an earlier step of another thread, and need
 * not follow it: then the two might have come in the other order. The last such earlier step counts. The thread is to be tried
 * at that step's node; if it could not go on there, all threads that could are (Flanagan and Godefroid, "Dynamic Partial-Order
 * Reduction for Model Checking Software", 2005). Clocks tell what must follow what: for each thread, the last node whose step
 * must have come before.
 *
 * Which threads sleep. A thread that was tried at a node, or sleeps there, sleeps at the next one too, unless the step made
 * depends on its step. If all threads that could go on sleep, all that would come has been seen, and the execution is broken
 * off.
 */
#define _GNU_SOURCE /* sigaltstack */
#include "inside.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define MOST_STEPS 20000
#define STACK_BYTES ((size_t)256 << 10)

struct next {
	const volatile void *address;
	uint8_t kind;
	bool writes;
};

struct node {
	uint8_t who, could, wanted, tried, sleeps; /* bits, but for who */
	struct next next[MODEL_THREADS];
	uint16_t before[MODEL_THREADS]; /* for each thread: the last of its nodes that had to come before this one, plus 1 */
};

static const struct model *model;
static unsigned count; /* threads */
static struct node path[MOST_STEPS];
static size_t length, depth;
static uint64_t executions, seen_before;

static struct thread {
	struct next next;
	bool ended, begun, uninterrupted;
	uint16_t before[MODEL_THREADS]; /* as in its last node */
	ucontext_t first;
	jmp_buf goes_on;
} threads[MODEL_THREADS];

static int current = -1;
static jmp_buf main_goes_on;
static char stacks[MODEL_THREADS][STACK_BYTES];

int running(void)
{
	return current;
}

unsigned thread_count(void)
{
	return count;
}

bool has_stops(void)
{
	return model && model->stops;
}

bool steps_plainly(void)
{
	for (unsigned i = 0; i < count; i++)
		if (model->interrupts[i] == current + 1)
			return true;
	return false;
}

/* ---- Verdicts ------------------------------------------------------------------------------------------------------- */

_Noreturn void model_wrong(const char *what)
{
	printf("%s: %s, in execution %llu, at step %zu of thread %d; threads as they went:", model ? model->name : "", what,
	       (unsigned long long)executions + 1, depth, current + 1);
	for (size_t i = 0; i < depth && i < MOST_STEPS; i++)
		printf("%s%d", i && path[i].who == path[i - 1].who ? "" : " ", path[i].who + 1);
	printf("\n");
	exit(EXIT_FAILURE);
}

static void crashed(int signal)
{
	(void)signal;
	model_wrong("a crash");
}

static void notice_crashes(void)
{
	static char stack[1 << 16];
	const stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = crashed, .sa_flags = SA_ONSTACK };

	sigaltstack(&own, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

/* ---- What may come -------------------------------------------------------------------------------------------------- */

static int interrupted_by(unsigned thread)
{
	return model->interrupts[thread] - 1;
}

static bool is_interrupted(unsigned thread)
{
	for (unsigned i = 0; i < count; i++)
		if (interrupted_by(i) == (int)thread && threads[i].begun && !threads[i].ended)
			return true;
	return false;
}

static bool can(unsigned thread)
{
	const struct next *next = &threads[thread].next;

	if (threads[thread].ended || is_interrupted(thread))
		return false;
	switch ((enum kind)next->kind) {
	case BEGIN:
		return interrupted_by(thread) < 0 || !threads[interrupted_by(thread)].uninterrupted;
	case LOCK:
		return *(const volatile unsigned *)next->address == 0;
	case AWAIT:
		return *(const volatile unsigned *)next->address != 0;
	case CALL:
		return may_call(thread);
	case STOP:
		return may_stop(thread);
	case ACCESS:
	case TRY_CALL:
	case RESUME:
		break;
	}
	return true;
}

static bool about_calls(const struct next *next)
{
	return next->kind >= CALL;
}

static bool stops(const struct next *next)
{
	return next->kind == STOP || next->kind == RESUME;
}

/* Whether the order of two threads' steps may make a difference. */
static bool depend(unsigned a, const struct next *one, unsigned b, const struct next *other)
{
	if (a == b || interrupted_by(a) == (int)b || interrupted_by(b) == (int)a)
		return true;
	if (about_calls(one) || about_calls(other))
		return about_calls(one) && about_calls(other) && (stops(one) || stops(other));
	return (uintptr_t)one->address >> 3 == (uintptr_t)other->address >> 3 && (one->writes || other->writes);
}

static uint8_t still_asleep(const struct node *before)
{
	uint8_t asleep = 0;

	for (unsigned i = 0; i < count; i++)
		if ((before->sleeps | before->tried) >> i & 1 && !depend(i, &before->next[i], before->who, &before->next[before->who]))
			asleep |= (uint8_t)(1u << i);
	return asleep;
}

static bool depends_on_node(unsigned thread, const struct next *next, const struct node *node)
{
	return depend(thread, next, node->who, &node->next[node->who]);
}

/* The thread's next step might have come before one of the nodes from here back. */
static void want_earlier(unsigned thread, const struct node *from, unsigned nodes)
{
	for (; nodes; nodes--, from--) {
		struct node *node = &path[from - path];

		if (node->who == thread || !depends_on_node(thread, &threads[thread].next, node) ||
		    threads[thread].before[node->who] > node - path)
			continue;
		node->wanted |= node->could >> thread & 1 ? (uint8_t)(1u << thread) : node->could;
		return;
	}
}

/* If the thread did not make the last step, only that one is new. */
static void want_all(void)
{
	if (!depth)
		return;
	for (unsigned i = 0; i < count; i++)
		if (!threads[i].ended)
			want_earlier(i, &path[depth - 1], path[depth - 1].who == i ? (unsigned)depth : 1);
}

static void note_what_came_before(struct node *node)
{
	struct thread *self = &threads[node->who];

	for (const struct node *at = path; at < node; at++)
		if (depends_on_node(node->who, &node->next[node->who], at))
			for (unsigned i = 0; i < count; i++)
				if (self->before[i] < at->before[i])
					self->before[i] = at->before[i];
	self->before[node->who] = (uint16_t)(node - path + 1);
	memcpy(node->before, self->before, sizeof(node->before));
}

/* One of them; preferably the one that runs. */
static uint8_t one_of(unsigned bits)
{
	return (uint8_t)(current >= 0 && bits >> current & 1 ? current : __builtin_ctz(bits));
}

enum { ALL_ENDED = -1, SEEN_BEFORE = -2 };

/* The thread that makes the next step, or one of the above. */
static int choose(void)
{
	struct node *node = &path[depth];
	unsigned could = 0, left = 0;

	for (unsigned i = 0; i < count; i++) {
		could |= (unsigned)can(i) << i;
		left |= (unsigned)!threads[i].ended << i;
	}
	if (!left)
		return ALL_ENDED;
	if (!could)
		model_wrong("everybody waits");
	if (depth == MOST_STEPS - 1)
		model_wrong("no end");
	if (depth < length) {
		if (node->could != could)
			model_wrong("the same steps led elsewhere before");
		depth++;
		note_what_came_before(node);
		return node->who;
	}
	want_all();
	*node = (struct node){ .could = (uint8_t)could, .sleeps = depth ? still_asleep(node - 1) : 0 };
	for (unsigned i = 0; i < count; i++)
		node->next[i] = threads[i].next;
	if (!(could & ~(unsigned)node->sleeps))
		return SEEN_BEFORE;
	node->who = one_of(could & ~(unsigned)node->sleeps);
	node->wanted = (uint8_t)(1u << node->who);
	length = ++depth;
	note_what_came_before(node);
	return node->who;
}

/* Whether there is another execution to be made. */
static bool next_path(void)
{
	for (; length; length--) {
		struct node *node = &path[length - 1];
		unsigned left;

		node->tried |= (uint8_t)(1u << node->who);
		left = node->could & node->wanted & ~(unsigned)(node->sleeps | node->tried);
		if (left) {
			node->who = (uint8_t)__builtin_ctz(left);
			return true;
		}
	}
	return false;
}

/* ---- Threads -------------------------------------------------------------------------------------------------------- */

static int outcome;

static _Noreturn void go_on(int who)
{
	struct thread *thread;

	platform_switch(current, who < 0 ? -1 : who);
	current = who < 0 ? -1 : who;
	if (who < 0) {
		outcome = who;
		_longjmp(main_goes_on, 1);
	}
	thread = &threads[who];
	if (thread->begun)
		_longjmp(thread->goes_on, 1);
	thread->begun = true;
	if (interrupted_by((unsigned)who) >= 0)
		joined((unsigned)who, (unsigned)interrupted_by((unsigned)who));
	setcontext(&thread->first);
	abort();
}

void step(enum kind kind, const volatile void *address, bool writes)
{
	struct thread *self = &threads[current];
	int who;

	if (current < 0)
		return;
	self->next = (struct next){ address, (uint8_t)kind, writes };
	who = choose();
	if (who != current && !_setjmp(self->goes_on))
		go_on(who);
}

static void run_thread(void)
{
	int interrupted;

	model->threads[current]();
	threads[current].ended = true;
	interrupted = interrupted_by((unsigned)current);
	if (interrupted >= 0)
		joined((unsigned)interrupted, (unsigned)current);
	go_on(choose());
}

static void make_threads(void)
{
	for (unsigned i = 0; i < count; i++) {
		struct thread *thread = &threads[i];

		thread->next = (struct next){ .kind = BEGIN };
		thread->ended = thread->begun = thread->uninterrupted = false;
		memset(thread->before, 0, sizeof(thread->before));
		getcontext(&thread->first);
		thread->first.uc_stack.ss_sp = stacks[i];
		thread->first.uc_stack.ss_size = STACK_BYTES;
		thread->first.uc_link = NULL;
		makecontext(&thread->first, run_thread, 0);
	}
}

static void execute(void)
{
	const char *wrong;

	depth = 0;
	current = -1;
	races_begin();
	accesses_begin();
	mutants_begin();
	platform_begin();
	make_threads();
	if (!_setjmp(main_goes_on))
		go_on(choose());
	seen_before += outcome == SEEN_BEFORE;
	wrong = outcome == ALL_ENDED ? model->verify() : NULL;
	if (wrong)
		model_wrong(wrong);
	executions++;
}

_Noreturn void model_try_one(const struct model *wanted)
{
	size_t bytes;
	char *start = arena(&bytes);

	races_add((struct range){ start, bytes });
	notice_crashes();
	model = wanted;
	for (count = 0; model->threads[count]; count++)
		;
	model->set_up();
	do
		execute();
	while (next_path());
	printf("%s: sound in all %llu executions (%llu begun)\n", model->name, (unsigned long long)(executions - seen_before),
	       (unsigned long long)executions);
	exit(EXIT_SUCCESS);
}

static bool is_wanted(const struct model *wanted, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(wanted->name, argv[i]))
			return true;
	return argc < 2;
}

int model_try(const struct model *list, const struct mutant *mutants, int argc, char **argv)
{
	int status, failures = 0;

	if (argc > 1 && !strcmp(argv[1], "mutants"))
		return mutants_try(mutants, list, argc - 2, argv + 2);
	for (; list->name; list++) {
		pid_t child = is_wanted(list, argc, argv) ? fork() : 0;

		if (!child && is_wanted(list, argc, argv))
			model_try_one(list);
		if (child > 0)
			failures += waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status);
	}
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- What threads say ----------------------------------------------------------------------------------------------- */

void model_wait_for(const unsigned *word)
{
	step(AWAIT, word, false);
	atomic_read((unsigned)current, word, __ATOMIC_ACQUIRE);
}

void model_interrupts(bool on)
{
	threads[current].uninterrupted = !on;
}
