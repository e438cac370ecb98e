/* The header in front of an object that is a mapping of its own, and which addresses are such objects. See mapping_check.c. */
#ifndef SLABYARD_MALLOC_MAPPING_HEADER_H
#define SLABYARD_MALLOC_MAPPING_HEADER_H

#include "library/debug/anchor.h"
#include "mapping_cache.h"
#include "parts.h"

#include <stdint.h>

struct mapping_header {
	_Alignas(64) uint64_t mark; /* sy__mapping_mark while the object is in use, and sy__mapping_end_mark once it is freed */
	char *start;  /* of the mapping */
	size_t bytes; /* of the mapping */
	size_t used;  /* of them: the object's, and what is before it */
	struct mapping_parts parts;
};
_Static_assert(sizeof(struct mapping_header) == SY__MAPPING_HEADER_BYTES, "a cache line");
_Static_assert(offsetof(struct mapping_header, start) == offsetof(struct sy__mapping, start) &&
               offsetof(struct mapping_header, bytes) == offsetof(struct sy__mapping, bytes), "slabyard-inspect reads them so");

static inline uint64_t sy__mapping_end_mark(const void *header)
{
	return ~sy__mapping_mark(header);
}

/* Of an object in use. */
static inline struct mapping_header *sy__mapping_header(const void *object)
{
	return (struct mapping_header *)((uintptr_t)object - sizeof(struct mapping_header));
}

/* For any address; if it is no object in use, the program ends with a report. */
struct mapping_header *sy__mapping_header_checked(const void *address);

/* The object ends; its header may soon be unmapped. */
void sy__mapping_note_end(const void *object);

#endif
