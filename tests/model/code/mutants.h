/*
 * Mutants: what the search must notice.
 *
 * A search that finds nothing proves something only if it would find a fault. So each program breaks the code that it runs in
 * many ways, one at a time, and must notice each. No source is changed for that: a mutant is an instruction about operations
 * that the code makes as it runs. accesses.c sees them all. A mutant names
 *
 *   model    the model that is to notice it, and a part of the verdict ("": any verdict but "sound");
 *   within   a function of the code: operations count if a call of it makes them, itself or in a function that it calls;
 *   by       if not NULL: only those that this function itself makes;
 *   what     the kind of operation, and which one in that call, from 1 on (0: each);
 *   fault    what is wrong with it.
 *
 * Functions are found by their names in the program's symbol table; code under test is compiled without inlining, so that each
 * is there. So a mutant outlives new lines, new comments, and a move to another file. If you rename a function, a message says
 * that it is missing: change its name in the table. If you change what it does, it may no longer make that operation, or the
 * fault may no longer be one.
 *
 * Each program has its table of mutants at its end, one line for each.
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
	NOT_DONE,    /* nothing is written, but the program is told that it was; of a lock or stop: nothing is taken */
	LATE,        /* a store: done as `within` returns */
	STALE,       /* stores: left out in a call after an exchange in it has failed, so the retry uses an old value */
	BY_STORE,    /* an exchange: becomes a load and a store, whatever the word was */
	NO_RELEASE,
	NO_ACQUIRE,
	PLAIN,       /* no atomic access */
	READS,       /* the value that is read is `value`; of an exchange, after it was done */
	READS_MORE,  /* the value that is read is larger by `value` */
	WRITES_MORE, /* the value that is written is larger by `value`; of exchanges */
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
