/* What the files of the model have in common; see schedule.h. */
#ifndef MODEL_INSIDE_H
#define MODEL_INSIDE_H

#include "schedule.h"

/* The next step of a thread. */
enum kind {
	BEGIN,    /* its first step */
	ACCESS,   /* to a word */
	LOCK,     /* exchange a word that is 0; waits until it is */
	AWAIT,    /* wait until a word is not 0 */
	CALL,     /* begin a call of the library: waits for a thread that stops the slots, */
	TRY_CALL, /* or finds that a thread does */
	STOP,     /* stop: wait for the end of all other threads' calls */
	RESUME,
};

/* schedule.c. A thread's next step, which it makes when this returns. Does nothing outside of threads. */
void step(enum kind, const volatile void *address, bool writes);
int running(void);          /* number of the thread from 0; -1: none */
unsigned thread_count(void);
bool has_stops(void);
bool steps_plainly(void);   /* its plain accesses are steps, too */
_Noreturn void model_try_one(const struct model *); /* ends the process */

/* races.c. */
struct range {
	char *start;
	size_t bytes;
};
void races_add(struct range);
void races_begin(void);     /* an execution */
const char *race(unsigned thread, const volatile void *address, size_t bytes, bool writes, bool atomic); /* NULL: none */
void joined(unsigned thread, unsigned other); /* the thread sees all that the other did */
void atomic_read(unsigned thread, const volatile void *address, int order);
void atomic_written(unsigned thread, const volatile void *address, int order, bool exchanged);

/* accesses.c. */
void accesses_begin(void);  /* an execution */

/* symbols.c. */
#define MODEL_FUNCTIONS 16 /* that have one name, at most */
struct functions {
	struct range of[MODEL_FUNCTIONS];
	unsigned count;
};
void functions_find(struct functions *, const char *name);
bool functions_have(const struct functions *, const void *returns_to);

/* mutants.c. */
int mutants_try(const struct mutant *, const struct model *, int count, char **names);
void mutants_begin(void);                 /* an execution */
void mutants_enter(const void *caller);   /* a function has been entered, in which this address is; */
bool mutants_leave(const void *caller);   /* it is left; true: and so is the one in which something is broken */
void mutants_exchange_failed(void);
enum fault fault_of(enum operation, const void *caller); /* the calling thread's next operation */
uint64_t as_read(enum fault, uint64_t value);
uint64_t as_written(enum fault, uint64_t value);

/* platform.c. */
void platform_begin(void);            /* an execution */
void platform_switch(int from, int to); /* -1: none */
bool may_call(unsigned thread);       /* no other thread stops the slots */
bool may_stop(unsigned thread);
char *arena(size_t *bytes);           /* all memory that the library gets */
bool is_own_word(const volatile void *address); /* of struct sy__thread */
void says_busy(const volatile void *address, uint64_t value, int order);
void asks_slot_offset(const volatile void *address, int order);

#endif
