/* A malloc in place of a policy: the C library's own, or that of a shared library. See malloc_target.c. */
#ifndef REPLAY_MALLOC_TARGET_H
#define REPLAY_MALLOC_TARGET_H

#include <string.h>

#include "programs/scratch.h"

/* How a cache of the trace is replayed under a malloc. */
struct malloc_shape {
	size_t size;  /* bytes; a multiple of align where that is given */
	size_t align; /* 0: what malloc gives */
	void (*constructor)(void *object, size_t object_size);
	size_t object_size;
};

struct malloc_target {
	void *library; /* of dlopen; NULL: the system's own */
	void *(*alloc)(size_t size);
	void (*free)(void *object);
	void *(*aligned)(size_t align, size_t size);
	struct malloc_shape *shapes; /* by number of the cache */
};

/* Starts the program anew (with these words), unless it has been done, such that any library can be loaded. */
void malloc_target_make_room(char *const *words);

/* library: a path, or NULL for the system's own. False: see fault; nothing is kept. */
bool malloc_target_open(struct malloc_target *, const char *library, const struct scratch *, struct fault *);
void malloc_target_close(struct malloc_target *);

/* Pages of memory of its own that this process has; 0: the system doesn't tell. */
uint64_t malloc_memory_now(void);

/* Whether the library can be loaded and has what is needed. False: see fault. */
bool malloc_target_check(const char *library, struct fault *);

/* cache: its number, or -1 for a kmalloc of `size` bytes; flags: enum sy_flags. */
static inline void *malloc_target_alloc(const struct malloc_target *target, int cache, size_t size, unsigned flags)
{
	const struct malloc_shape *shape = cache < 0 ? NULL : &target->shapes[cache];
	void *object;

	if (!shape)
		object = target->alloc(size);
	else if (!shape->align)
		object = target->alloc(size = shape->size);
	else
		object = target->aligned(shape->align, size = shape->size);
	if ((flags & SY_ZERO) && object)
		memset(object, 0, size);
	if (shape && shape->constructor && object)
		shape->constructor(object, shape->object_size);
	return object;
}

/* The constructor of every cache that has one: writes a pattern where a kernel's would set up locks and lists. */
void replay_constructor(void *object, size_t object_size);

#endif
