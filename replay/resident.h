/* Which pages of this process a run of the trace uses, and having them there before the next. See resident.c. */
#ifndef REPLAY_RESIDENT_H
#define REPLAY_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Consecutive pages of the system. */
struct resident_run {
	uintptr_t start; /* address */
	size_t bytes;
	bool written; /* the process has them for itself */
};

/* Shared between a process and its children: what one notes, all know. */
struct resident {
	size_t count;
	struct resident_run runs[];
};

/* NULL: no address space. */
struct resident *resident_create(void);
void resident_destroy(struct resident *);

/* Notes every page that this process has, and which of them are its own, no longer those of its parent. Notes nothing where
 * the system doesn't tell. */
void resident_note(struct resident *);

/* Makes the pages that were noted resident, and private to this process if written is set. Pages that aren't there
 * to be had are left out. */
void resident_bring(const struct resident *);

#endif
