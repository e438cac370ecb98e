/* What the client of the simulated machine knows, and its complaints. See conformance.h for the promises. */
#ifndef SY_CONFORMANCE_MODEL_H
#define SY_CONFORMANCE_MODEL_H

#include "conformance.h"

#define MAX_HEAPS 2
#define MAX_CACHES 64
#define MAX_OBJECTS 32768
#define MAX_BLOCKS 256
#define NO_CACHE UINT32_MAX
#define SHADOW_HELD 1 /* by an object of the client */

/* One creation of a cache. Creations that the policy merged share `cache`. */
struct model_cache {
	struct sy_cache *cache;
	uint32_t size, align, flags;
	uint32_t heap;
	uint64_t live; /* objects of this creation */
	bool constructed, exists;
};

struct model_object {
	unsigned char *memory;
	size_t bytes;    /* that the client wrote */
	uint32_t cache;  /* index, or NO_CACHE: kmalloc */
	uint32_t heap;
	unsigned char pattern;
};

/* A freed object of an RCU-typesafe cache, whose memory must last. */
struct model_waiting {
	const unsigned char *memory;
	uint64_t due;
	uint32_t cache;
};

struct machine {
	const struct conformance_config *config;
	struct conformance_result *result;
	struct sy_pages *pages;
	const struct sy_policy *policy;
	struct sy_heap *heaps[MAX_HEAPS];
	int64_t constructed[MAX_HEAPS]; /* objects of each heap that are */
	struct model_cache caches[MAX_CACHES];
	uint32_t cache_count;
	struct model_object *objects;
	uint32_t object_count;
	struct model_waiting *waiting;
	uint32_t waiting_count;
	struct sy_page *blocks[MAX_BLOCKS];
	uint32_t block_count;
	unsigned char *shadow; /* for each byte of memory: SHADOW_HELD, or the constructed state that it was last in */
	size_t shadow_bytes;
	uint32_t serial;
	const char *complaint; /* of a constructor or destructor */
	bool armed; /* a page request is to fail */
};

/* Each returns NULL, or what is wrong. */
typedef const char *verdict;

verdict machine_start(struct machine *, const struct sy_policy *);
verdict machine_end(struct machine *); /* frees, destroys, and checks that all memory is back */
void machine_free(struct machine *);   /* whatever state the machine is in */

verdict model_create(struct machine *, uint32_t heap, uint32_t size, uint32_t align, uint32_t flags, bool constructed);
verdict model_destroy(struct machine *, uint32_t cache);
verdict model_alloc(struct machine *, uint32_t cache, unsigned slot, unsigned flags, int node, bool *refused);
verdict model_kmalloc(struct machine *, uint32_t heap, size_t size, unsigned slot, unsigned flags, int node, bool *refused);
verdict model_free(struct machine *, uint32_t object, unsigned slot);
verdict model_renew_heap(struct machine *, uint32_t heap);
verdict model_tick(struct machine *, uint64_t nanoseconds);
verdict model_check(struct machine *); /* everything; check.c */

/* What model.c and check.c share. */
size_t model_place(const struct machine *, const void *); /* byte from the start of memory; beyond its end: elsewhere */
bool model_in_heap(const struct machine *, uint32_t heap, const unsigned char *); /* in a page that holds the heap's objects */
verdict model_contents(const struct model_object *);
/* Objects of all creations that share a cache, and how many creations there are. */
uint64_t model_shared_live(const struct machine *, const struct sy_cache *, unsigned *creations);

#endif
