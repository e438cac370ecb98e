/* What runs a trace's requests against one allocator; shared by the exact, the timed and the latency pass. See driver.c. */
#ifndef REPLAY_DRIVER_H
#define REPLAY_DRIVER_H

#include "malloc_target.h"
#include "programs/scratch.h"
#include "programs/spec.h"

/* One step of the replay: an event without the fields that only the exact pass needs, or time that passes. 16 bytes, half a record of the
 * trace, so that the timed loop reads less. */
struct step {
	uint32_t handle;
	uint32_t size;  /* bytes, of a free those that were asked for; of a tick: the low 32 bits of its time */
	uint16_t flags; /* enum sy_flags; of a tick: bits 32 to 47 */
	uint16_t cache; /* of a tick: bits 48 to 63 */
	uint8_t slot, kind;
	uint8_t order; /* of pages; of an object: 1, if the event is implied */
	int8_t node;
};
_Static_assert(sizeof(struct step) == 16, "two steps in the room of one event");

#define NOT_KEPT (UINT16_MAX - 1) /* no cache has this number */
enum { STEP_TICK = EVENT_KINDS }; /* beyond enum event_kind */
#define STEPS_AHEAD 16u /* steps behind the last one that may be read */
#define PREFETCH_AHEAD 8u /* how far a pass looks ahead for what it needs of a handle */
_Static_assert(PREFETCH_AHEAD <= STEPS_AHEAD, "the steps that are looked at ahead exist");

static inline uint64_t step_time(const struct step *step)
{
	return step->size | (uint64_t)step->flags << 32 | (uint64_t)step->cache << 48;
}

/* An allocator, ready to serve the first event, and the steps that it is to serve. */
struct driver {
	const struct scratch *scratch;
	const struct spec *spec;
	struct sy_pages *pages; /* of a policy; NULL for a malloc */
	struct sy_heap *heap;   /* likewise */
	const struct scratch_older *laid; /* the older objects of this allocator: laid_count */
	uint64_t laid_count;
	bool as_recorded; /* it follows the rules of the recorded kernel */
	struct malloc_target malloc;
	struct sy_cache **caches; /* by number in the trace; NULL for a malloc */
	void **live;              /* by handle: object or struct sy_page; NULL: none */
	void **older;             /* by their place in laid, those that no event frees; otherwise NULL */
	struct step *steps; /* step_count, then STEPS_AHEAD empty ones */
	uint64_t step_count, snapshot_count;
	uint16_t *kept; /* by handle: the cache of the object that lives there behind the last event, NO_CACHE: of kmalloc; or NOT_KEPT */
	uint64_t memory_pages; /* simulated */
	uint64_t pages_before; /* that this process had when a malloc had served nothing; 0: unknown, or no malloc */
	uint64_t span_ns;      /* length of the trace, at least the time of its last event */
	uint64_t ask_ns, next_ask; /* of the trace's time: between two askings for memory, 0: none; when the next one is due */
};

/* Options that the command line may give beside the allocator. */
struct driver_options {
	uint64_t memory; /* bytes of simulated memory where the trace has no zones; 0: the default */
	uint64_t ask_ns; /* the heap is asked for memory whenever so much of the trace's time has passed; 0: never */
	void (*log)(void *, const char *event, const uint64_t *values, unsigned count); /* of the policy; or NULL */
	void *log_context;
};

/* Sets up what no allocator has a part in: the steps, and with `pages` the machine's memory. False: see fault; nothing is left. */
bool driver_prepare(struct driver *, const struct scratch *, bool pages, const struct driver_options *, struct fault *);

/* Sets up the allocator and its caches: a policy, if there are pages, or else a malloc; the trace's time begins. False: see fault. The
 * driver is still to be destroyed. */
bool driver_open(struct driver *, const struct spec *, const struct driver_options *, struct fault *);
void driver_destroy(struct driver *);

/* Forgets a policy's heap, as it is, with all its objects; the caller sets the pages back (rewind.h). Another one may be opened then. */
void driver_forget(struct driver *);

/* Allocates what is older than the trace: the state before the first event. False: see fault; the driver is still to be
 * destroyed. */
bool driver_populate(struct driver *, struct fault *);

/* Calls watch with each of these objects, in order of allocation, as long as no event has run. */
void driver_each_older(const struct driver *, void (*watch)(void *context, const struct scratch_older *, void *object),
                       void *context);

/* Frees whatever lives in a malloc. */
void driver_empty(struct driver *);

/* The longest wait for a grace period: nanoseconds of the trace's time. */
uint64_t driver_longest_grace(const struct driver *);

/* Lets the trace's time pass. */
void driver_tick(struct driver *, uint64_t time);

/* An environment page step, kinds EVENT_PAGE_ALLOC, EVENT_PAGE_FREE and EVENT_OLDER_PAGE_FREE. False: it failed. */
bool driver_pages(struct driver *, const struct step *);

/* The number of the event that a step belongs to. */
uint64_t driver_event_of(const struct driver *, const struct step *);

/* The line that says that the simulated memory is too small. Always false. */
bool driver_refuse_memory(const struct driver *, uint64_t event, struct fault *);

/* ---- Object steps --------------------------------------------------------------------------------------------- */

static inline bool step_allocates(const struct step *step)
{
	return step->kind == EVENT_KMALLOC || step->kind == EVENT_CACHE_ALLOC;
}

static inline bool step_frees(const struct step *step)
{
	return step->kind == EVENT_KFREE || step->kind == EVENT_CACHE_FREE;
}

static inline bool step_of_object(const struct step *step)
{
	return step_allocates(step) || step_frees(step);
}

/* Whether it is one of driver_pages. */
static inline bool step_of_pages(const struct step *step)
{
	return step->kind == EVENT_PAGE_ALLOC || step->kind == EVENT_PAGE_FREE || step->kind == EVENT_OLDER_PAGE_FREE;
}

/* Whether no memory would do: no block of pages is so large. */
static inline bool step_oversized(const struct step *step)
{
	return step->kind == EVENT_KMALLOC && step->size > SY_PAGE_SIZE << SY_MAX_ORDER;
}

/* Serves an allocation of an object; NULL: no memory. */
static inline void *driver_alloc(struct driver *driver, const struct step *step)
{
	if (!driver->heap)
		return malloc_target_alloc(&driver->malloc, step->kind == EVENT_CACHE_ALLOC ? (int)step->cache : -1, step->size,
		                           step->flags);
	if (step->kind == EVENT_KMALLOC)
		return sy_kmalloc(driver->heap, step->slot, step->size, step->flags, step->node);
	return sy_cache_alloc(driver->caches[step->cache], step->slot, step->flags, step->node);
}

/* Serves the free of an object. */
static inline void driver_free(struct driver *driver, const struct step *step, void *object)
{
	if (!driver->heap)
		driver->malloc.free(object);
	else if (step->kind == EVENT_KFREE)
		sy_kfree(driver->heap, step->slot, object);
	else
		sy_cache_free(driver->caches[step->cache], step->slot, object);
}

#endif
