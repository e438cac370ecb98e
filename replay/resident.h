/* Which pages of this process a run of the trace uses, to have them resident before the next run. See resident.c. */
#ifndef REPLAY_RESIDENT_H
#define REPLAY_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Consecutive pages of the system. */
struct resident_run {
	uintptr_t start; /* address */
	size_t bytes;
	bool written; /* they are private to the process */
};

/* Shared between a process and its children. */
struct resident {
	size_t count;
	struct resident_run runs[];
};

/* NULL: no address space. */
struct resident *resident_create(void);
void resident_destroy(struct resident *);

/* Notes every page that this process has and its parent has not, or that it has written to. Notes nothing where the system doesn't
 * tell. */
void resident_note(struct resident *);

/* Makes the noted pages resident, and private to this process where `written` is set. Pages that cannot be had are left out. */
void resident_bring(const struct resident *);

#endif
