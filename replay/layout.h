/* A script of allocations, and what memory looks like after it. See layout.c. */
#ifndef REPLAY_LAYOUT_H
#define REPLAY_LAYOUT_H

#include "programs/spec.h"

#define LAYOUT_NAME_BYTES 16 /* of an object, with the end */
#define LAYOUT_CACHES 32
#define LAYOUT_OBJECTS 4096

struct layout_cache {
	char name[SY_NAME_BYTES];
	struct sy_cache *cache;
	size_t object_bytes;
};

/* An object that the script named. */
struct layout_object {
	char name[LAYOUT_NAME_BYTES];
	char *memory;
	size_t bytes; /* asked for */
	const struct layout_cache *cache; /* NULL: kmalloc */
	bool live;
};

/* The machine of a script, as far as the script has run. */
struct layout {
	const struct spec *spec;
	unsigned cpus, nodes;
	struct sy_pages *pages; /* NULL: no line has needed it yet */
	struct sy_heap *heap;
	struct layout_cache caches[LAYOUT_CACHES];
	unsigned cache_count;
	struct layout_object objects[LAYOUT_OBJECTS];
	unsigned object_count;
	struct json json; /* snapshots so far */
	unsigned line;
	bool shown; /* nothing has happened since the last snapshot */
};

/* Runs the script under the allocator and prints its snapshots as JSON. `-`: standard input. False: see fault; nothing
 * was printed. */
bool layout_print(const struct spec *, const char *allocator, const char *script, FILE *out, struct fault *);

/* Appends a snapshot: the layout's machine as it is now. See layout_write.c. */
void layout_snapshot(struct layout *, const char *title);

#endif
