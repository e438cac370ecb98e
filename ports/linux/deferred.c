/*
 * The deferred queue (core/deferred.h) by the kernel's RCU.
 *
 * An entry of the core has the size of a kernel's rcu_head and lies where one may lie. So to wait for a grace period is call_rcu on
 * the entry itself, and the end is a callback in a softirq.
 *
 * The queue can't be searched, and needn't be. A SLAB_TYPESAFE_BY_RCU cache gives up all its slabs, then waits for all callbacks,
 * and is then destroyed (caches.c). So its destruction finds no entries of it, and adds none.
 */
#include "core/deferred.h"

#include "port.h"

#include <linux/irqflags.h>
#include <linux/rcupdate.h>

static_assert(sizeof(struct sy_deferred) == sizeof(struct rcu_head), "an entry is as long as a kernel's");

/* The address that the log has for an entry: its own, if it lies in an object. Else it lies in a slab's descriptor, in each policy
 * behind the first word of the slab's state, and this is the slab's address. */
static const void *place_of(const struct rcu_head *head)
{
	struct sy_page *page = (struct sy_page *)((char *)head - offsetof(struct sy_page, second));

	if (virt_addr_valid(head) && sy__page_is_ours(sy__head_of(sy__linux_heap, head)))
		return head;
	return sy__page_address(sy__linux_heap, page);
}

static void grace_passed(struct rcu_head *head)
{
	struct sy_heap *heap = sy__linux_heap;
	unsigned long flags;

	local_irq_save(flags);
	__this_cpu_write(sy__call.gfp, GFP_ATOMIC);
	sy__log(SY__LOG_GRACE, place_of(head), 0, 0, NUMA_NO_NODE);
	heap->policy->grace_passed(heap, (struct sy_deferred *)head);
	__atomic_fetch_sub(&heap->counters.deferred, 1, __ATOMIC_RELAXED);
	local_irq_restore(flags);
}

/* The counter is relaxed, and orders nothing: RCU does. */
void sy__defer(struct sy_heap *heap, struct sy_deferred *entry)
{
	__atomic_fetch_add(&heap->counters.deferred, 1, __ATOMIC_RELAXED);
	call_rcu((struct rcu_head *)entry, grace_passed);
}

void sy__deferred_run(struct sy_heap *heap)
{
}

struct sy_deferred *sy__deferred_extract(struct sy_heap *heap,
                                         bool (*wanted)(const struct sy_deferred *, const void *context),
                                         const void *context)
{
	return NULL;
}

void sy__deferred_finish(struct sy_heap *heap, bool (*wanted)(const struct sy_deferred *, const void *context),
                         const void *context)
{
}

const char *sy__deferred_check(struct sy_heap *heap)
{
	return NULL;
}
