/*
 * The backend's state in a page allocator and in its zones. Private to core/backend/; what it is for stands in the file of each part.
 *
 * core/pages/ leaves room for it, and calls the hooks that create.c registers. Fields marked [r] as in pages.h.
 */
#ifndef SY_BACKEND_H
#define SY_BACKEND_H

#include "../pages/pages.h"

/* Serves page requests of heaps in place of sy__block_take, with the blocks that another page allocator gave; NULL: it fails. */
struct sy__placer {
	struct sy_page *(*take)(void *context, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use use);
	void *context;
};

#define SY__DECAY_LEAST (((size_t)256 << 10) / SY_PAGE_SIZE) /* pages; fewer are not worth a visit */
#define SY__DECAY_STEPS 8u /* in the time that memory must stay free */

/* decay.c */
struct sy__decay {
	uint64_t time;            /* nanoseconds that memory must stay free; fixed at creation; 0: for ever */
	sy__lock_t lock;          /* everything below but the next three; held while memory goes back */
	size_t lowest;            /* [r] account_lock: the minimum of free and backed pages since the last step */
	size_t refaulted;         /* [r] account_lock: discarded pages taken again since then */
	size_t next_visit;        /* [r] a hint: a free that leaves so much should visit */
	uint64_t seen;            /* sy__now() of the last visit */
	uint64_t stepped, searched; /* the clock at the last step, and at the last search of fast decay */
	uint64_t given;           /* the clock when memory last went back; 0: never */
	size_t lows[SY__DECAY_STEPS]; /* minimum of free and backed pages in each of the last steps */
	unsigned step;            /* the next of them */
	size_t due;               /* pages that may go back now */
	unsigned doublings;       /* of the time that memory must stay free */
	unsigned quiet;           /* steps without many refaults */
	unsigned lost_bets;       /* refaults after fast decay */
	bool fast;                /* the last memory that went back did so by fast decay */
	uint64_t fast_since;      /* the clock when fast decay began, or last returned memory; 0: it is off */
	bool recheck;             /* [r] what the last visit told its caller */
};

struct sy__backend {
	bool commits_growth; /* memory is committed when a zone grows; fixed at creation */
	uint64_t mapped;     /* zone's lock: pages below have bits in the map of free pages (free_page_map.c) */
	const struct sy__placer *placer; /* place.c: chooses blocks for heaps; NULL: the zones do */
	/* huge_pages.c */
	size_t huge_from;    /* committed_pages from which on the heap may grow by huge pages; fixed at creation */
	size_t sample_from;  /* source_lock: committed_pages when the sample was taken */
	uint64_t sample;     /* source_lock: first page of the sample, the last maximal block with small pages */
	struct sy__decay decay;
};
_Static_assert(sizeof(struct sy__backend) <= SY__ABOVE_BYTES, "a page allocator has room for it");

/* With the zone's lock held. */
struct sy__backend_zone {
	uint64_t recent;        /* pages from the zone's start to the large block that was freed last, see best_fit.c */
	/* pretrace.c */
	uint64_t pretrace;      /* pretrace pages that may still be freed */
	uint32_t pretrace_none; /* bit k: no aligned block of order k is left */
};
_Static_assert(sizeof(struct sy__backend_zone) <= SY__ABOVE_ZONE_BYTES, "a zone has room for it");

static inline struct sy__backend *sy__backend_of(const struct sy_pages *pages)
{
	return (struct sy__backend *)(uintptr_t)pages->above;
}

static inline struct sy__backend_zone *sy__backend_zone_of(const struct sy__zone *zone)
{
	return (struct sy__backend_zone *)(uintptr_t)zone->above;
}

#endif
