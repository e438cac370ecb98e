/*
 * Whole stacks, and CPUs side by side: what the plugin does besides with stacks=FILE and turn=N.
 *
 * Stacks. Every stack of functions is a node of a tree: a function and the node that called it. The instructions that a CPU executes
 * count for the node where it is, so a flame graph comes out that nothing was sampled for. A function that another one ends in by
 * a jump takes that one's place. A task that sleeps keeps its stack, and has it back when it goes on: the kernel's switch of tasks
 * first stores the old task's stack pointer in that task, then loads the new one's from the new task, so the two addresses tell who
 * goes and who comes.
 *
 * Side by side. In QEMU's one thread a CPU runs until 100 ms are over or until it pauses (the instruction with which a kernel waits
 * for a lock), then the next has its turn. So whoever waits for a lock gives the holder all the time that it needs, which no real CPU
 * does, and is seldom in its way at all. With turn=N each CPU has N instructions a turn, and a CPU that pauses has waited for
 * the rest of its turn. These instructions that it did not execute are its waiting time; the node where it paused has them apart.
 * N instructions are the least time that two CPUs of this machine can be apart.
 */
#ifndef SLABYARD_PLUGIN_TREE_H
#define SLABYARD_PLUGIN_TREE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT 0u /* of all stacks: nothing runs in it */
#define NO_FUNCTION UINT32_MAX

struct node {
	uint32_t function, caller;
	uint32_t callees, next; /* the first that it called, and the next that its caller called; ROOT: none */
	uint64_t executed, waited;
};

static struct node *tree;
static size_t tree_count, tree_room;

static uint32_t tree_add(uint32_t caller, uint32_t function)
{
	if (tree_count == tree_room) {
		struct node *more = realloc(tree, (tree_room = 2 * tree_room + 4096) * sizeof(*tree));

		if (!more)
			abort();
		tree = more;
	}
	tree[tree_count] = (struct node){ .function = function, .caller = caller };
	return (uint32_t)tree_count++;
}

static void tree_begin(void)
{
	tree_add(ROOT, NO_FUNCTION);
}

/* The node of a function that the caller's calls. The one that was asked for last is found first. */
static uint32_t tree_call(uint32_t caller, uint32_t function)
{
	uint32_t before = ROOT, at = tree[caller].callees;

	while (at != ROOT && tree[at].function != function) {
		before = at;
		at = tree[at].next;
	}
	if (at != ROOT && before == ROOT)
		return at;
	if (at == ROOT)
		at = tree_add(caller, function);
	else
		tree[before].next = tree[at].next;
	tree[at].next = tree[caller].callees;
	tree[caller].callees = at;
	return at;
}

/* The node of a function that goes on in the place of the node's own. */
static uint32_t tree_jump(uint32_t node, uint32_t function)
{
	return node != ROOT && tree[node].function == function ? node : tree_call(tree[node].caller, function);
}

/* A line for each node that was in use: caller's line (from 1; 0: none), function, executed, waited. */
static void tree_write(FILE *file)
{
	for (size_t node = 1; node < tree_count; node++)
		fprintf(file, "%u %u %llu %llu\n", tree[node].caller, tree[node].function, (unsigned long long)tree[node].executed,
		        (unsigned long long)tree[node].waited);
}

#endif
