/*
 * Mutants: what the search must notice.
 *
 * A search that finds nothing proves something only if it would find a fault. So each program breaks the code that it runs in many
 * ways, one at a time, and every one must be noticed. No source is changed for that: a mutant is an instruction about operations
 * that the code makes when it runs, all of which come by in accesses.c. It names
 *
 *   model    in which it is to be noticed, and a part of what is to be said of it ("": anything but that the model is sound);
 *   within   a function of the code: operations count that are made in a call of it, by it or by what it calls;
 *   by       if not NULL: only those that this function itself makes;
 *   what     the kind of operation, and which one in that call, from 1 on (0: each);
 *   fault    what is wrong with it.
 *
 * Functions are found by their names in the program's symbol table; code under test is compiled without inlining, so that each is
 * there. So a mutant outlives new lines, new comments, and a move to another file. Whoever renames a function finds the message
 * that there is no such one, and changes its name in a table; whoever changes what it does may find that it makes no such
 * operation any more, or that the fault is none now.
 *
 * Tables of mutants are in the programs, at the end, a line each.
 */
#ifndef MODEL_MUTANTS_H
#define MODEL_MUTANTS_H

#include <stdint.h>

enum operation {
	LOADS = 1, /* plain or atomic, as */
	STORES,
	SWAPS,     /* compare-and-exchange, and exchange */
	ADDS,      /* fetch-and-add, and kin */
	LOCKS,     /* takes a lock */
};

enum fault {
	SOUND,
	NOT_DONE,    /* nothing is written, and the program is told that it was; of a lock or stop: nothing is taken */
	LATE,        /* a store: done as `within` returns */
	STALE,       /* stores: not done any more in a call in which an exchange has failed, so what is tried again is old */
	BY_STORE,    /* an exchange: a load, perhaps, and a store, whatever was there */
	NO_RELEASE,
	NO_ACQUIRE,
	PLAIN,       /* no atomic access */
	READS,       /* the value that is read is `value`; of an exchange after that was done */
	READS_MORE,  /* it is by `value` more */
	WRITES_MORE, /* what is written is by `value` more; of exchanges */
};

struct mutant {
	const char *name, *model, *verdict;
	const char *within, *by;
	enum operation what;
	unsigned which;
	enum fault fault;
	uint64_t value;
};

#endif
