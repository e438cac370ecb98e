/* What the files of the Linux port share. The theory is in adapter.c. */
#ifndef SY_LINUX_PORT_H
#define SY_LINUX_PORT_H

#include "core/page_interface.h"

#include <linux/percpu.h>

#define SY__STASH_BLOCKS 6u

/* Blocks of pages for a call that must not sleep, allocated before it where sleeping is allowed. */
struct sy__stash {
	unsigned count;
	struct {
		struct page *page;
		unsigned order;
		gfp_t gfp;
	} blocks[SY__STASH_BLOCKS];
};

/* The state of a CPU's present call; valid from its beginning to its end, with interrupts off. */
struct sy__call {
	gfp_t gfp;               /* of the caller */
	struct sy__stash *stash; /* or NULL */
	/* The block that could not be had without sleeping: */
	bool lacks;
	gfp_t lacks_gfp;
	unsigned lacks_order;
	int lacks_node;
	bool keeps;         /* the call may give many pages back, which are freed when interrupts are on again */
	struct page *kept;  /* these pages, linked by the first words of their states */
};

DECLARE_PER_CPU(struct sy__call, sy__call);
DECLARE_PER_CPU(bool, sy__within); /* a quick call on the CPU's first slot has begun and not ended */

/* The flags of calls that take no memory, or can do without. */
#define SY__GFP_NONE (GFP_NOWAIT | __GFP_NOWARN)

/* Begins a call: turns interrupts off until sy__end. Returns its slot: the CPU's second one if a quick call was interrupted. Not
 * local_irq_save: in user-mode kernels, where these are functions, the two are quicker and need a register less. */
static inline unsigned sy__begin(unsigned long *flags, gfp_t gfp)
{
	local_save_flags(*flags);
	local_irq_disable();
	__this_cpu_write(sy__call.gfp, gfp);
	return smp_processor_id() + (__this_cpu_read(sy__within) ? nr_cpu_ids : 0);
}

static inline void sy__end(unsigned long flags)
{
	local_irq_restore(flags);
}

/* Begins a quick call. False: it would interrupt another one. A compiler barrier suffices: a CPU sees its own stores in order, in an
 * interrupt too. */
static inline bool sy__enter(void)
{
	preempt_disable();
	if (unlikely(__this_cpu_read(sy__within))) {
		preempt_enable();
		return false;
	}
	__this_cpu_write(sy__within, true);
	barrier();
	return true;
}

static inline void sy__leave(void)
{
	barrier();
	__this_cpu_write(sy__within, false);
	preempt_enable();
}

/* pages.c */
extern struct sy_pages sy__linux_pages;
void sy__linux_pages_init(void);
void sy__linux_pages_count(void); /* updates the heap's counters of pages; inexact while other CPUs work */
/* Allocates the block that the last call lacked; may sleep. False: there is none, or no room in the stash. */
bool sy__stash_fill(struct sy__stash *, const struct sy__call *lacking);
void sy__stash_empty(struct sy__stash *);

/* Between begin and end, with interrupts off, pages that are given back are only linked. sy__let_go frees them, with interrupts on; it
 * may sleep. */
void sy__keep_begin(void);
struct page *sy__keep_end(void);
void sy__let_go(struct page *kept);

/* boot.c: the heap that the command line asks for. */
struct sy_heap *sy__linux_boot(void);

/* debug.c: reads what is behind `debug=` on the command line, and tells what it asks for. */
void sy__linux_debug_read(char *text);
void sy__linux_debug(struct sy_debug_config *);

/* check.c; the same declaration stands in fill.c */
bool sy__linux_unused(u64 *pages, u64 *bytes);

/* log.c: logs every call from the first on, if the command line says slabyard.log=1. */
enum sy__log_operation {
	SY__LOG_CREATE,  /* a cache: see sy__log_creation */
	SY__LOG_DESTROY, /* a cache, with no object left */
	SY__LOG_SHRINK,  /* a cache, by each CPU: a record for each */
	SY__LOG_ALLOC,   /* cache, object, gfp, node */
	SY__LOG_FREE,    /* cache, object */
	SY__LOG_KMALLOC, /* bytes, object, gfp, node */
	SY__LOG_KFREE,   /* object */
	SY__LOG_GRACE,   /* the slab that was waiting, or a place in the object */
	SY__LOG_TICK,
	SY__LOG_GIVE,    /* memory is short */
	SY__LOG_PAGES    /* the block that a call got for objects, or NULL; its order, its node */
};

extern bool sy__log_is_on;

/* Whether there are quick calls (adapter.c). There are none with a log: it has all calls in their order, and quick calls can be
 * interrupted. */
static inline bool sy__quick_calls(const struct sy_policy *policy)
{
	return policy->quick && !sy__log_is_on;
}

/* To be called inside a call, right before or behind what the record is about. */
void sy__log_write(enum sy__log_operation, const void *object, uint64_t cache_or_bytes, gfp_t, int node);
void sy__log_creation(const struct sy_cache_config *, uint64_t cache); /* before the call */

static inline void sy__log(enum sy__log_operation operation, const void *object, uint64_t cache_or_bytes, gfp_t gfp, int node)
{
	if (unlikely(sy__log_is_on))
		sy__log_write(operation, object, cache_or_bytes, gfp, node);
}

#endif
