/*
 * What slabyard-inspect finds in a process or core file: where the heaps of threads are, and which build of the library made them. It
 * searches the writable data of the program and its libraries for the mark. See anchor.c, inspect/.
 */
#ifndef SY_ANCHOR_H
#define SY_ANCHOR_H

#include "core/types.h"

#define SY__ANCHOR_MARK "slabyard's heaps" /* 16 bytes; no program's own text, as the anchor's address has to stand behind it */
#define SY__ANCHOR_POLICIES 16u

struct sy__anchor {
	_Alignas(64) char mark[16];
	const struct sy__anchor *self; /* NULL: no heap was made yet */
	uint32_t bytes;                /* of this structure */
	char build[60];                /* of the library: its version and a hash of its sources */
	unsigned *sample_rate;         /* malloc's slabyard_sample_rate; NULL: it has none. So far the anchors of all builds are the same */
	const struct sy_list *heaps;   /* through sy_heap.threads_link */
	const void *slots;             /* sy__slots_table */
	const size_t *mappings;        /* malloc's objects outside of the heap: their number, and their bytes; NULL: it has none */
	struct {
		char name[16];
		const struct sy_policy *policy, *hardened; /* NULL: it can't be */
	} policies[SY__ANCHOR_POLICIES]; /* a core file has no constants, so names stand here */
};

extern struct sy__anchor sy__anchor;

/* The beginning of the header in front of an object that is a mapping of its own (malloc/mapping_header.h). */
struct sy__mapping {
	uint64_t mark; /* sy__mapping_mark of its address, so that a copy is none */
	char *start;   /* of the mapping */
	size_t bytes;  /* of the mapping */
};
#define SY__MAPPING_HEADER_BYTES 64u

static inline uint64_t sy__mapping_mark(const void *header)
{
	return 0x736c616279617264u ^ (uintptr_t)header; /* "slabyard" */
}

/* When a heap was made. */
void sy__anchor_drop(void);

#endif
