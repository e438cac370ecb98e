/* What the files of the model have in common; see schedule.h. */
#ifndef MODEL_INSIDE_H
#define MODEL_INSIDE_H

#include "schedule.h"

/* What a thread is about to do. */
enum kind {
	BEGIN,    /* its first step */
	ACCESS,   /* to a word */
	LOCK,     /* exchange a word that is 0: until then it waits */
	AWAIT,    /* until a word is not 0 */
	CALL,     /* begin a call of the library: waits for whoever claims the slots, */
	TRY_CALL, /* or finds that somebody does */
	CLAIM,    /* waits for the end of all calls of others */
	UNCLAIM,
};

/* schedule.c. A thread's next step, which it makes when this returns. Does nothing outside of threads. */
void step(enum kind, const volatile void *address, bool writes);
int running(void);          /* number of the thread from 0; -1: none */
unsigned thread_count(void);
bool has_claims(void);
bool steps_plainly(void);   /* its plain accesses are steps, too */

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

/* platform.c. */
void platform_begin(void);            /* an execution */
void platform_switch(int from, int to); /* -1: none */
bool may_call(unsigned thread);       /* nobody else claims the slots */
bool may_claim(unsigned thread);
char *arena(size_t *bytes);           /* all memory that the library gets */
bool is_own_word(const volatile void *address); /* of struct sy__thread */
void says_busy(const volatile void *address, uint64_t value, int order);
void asks_here(const volatile void *address, int order);

#endif
