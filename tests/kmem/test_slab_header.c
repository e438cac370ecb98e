/* What code gets that includes <linux/slab.h> alone: like the kernel's own, it brings along most of what its users rely on. */
#include <linux/slab.h>

#include "check.h"

struct thing {
	unsigned long flags;
	struct list_head link;
	struct rcu_head rcu;
};

static LIST_HEAD(things);
static DEFINE_SPINLOCK(lock);

static void release(struct rcu_head *head)
{
	kfree(container_of(head, struct thing, rcu));
}

int main(void)
{
	struct thing *thing = kzalloc(sizeof(*thing), GFP_KERNEL), *next;
	u32 count = 0;

	CHECK(!IS_ERR_OR_NULL(thing));
	thing->flags = 4;
	spin_lock(&lock);
	list_add(&thing->link, &things);
	list_for_each_entry_safe(thing, next, &things, link) {
		list_del(&thing->link);
		count += (u32)thing->flags;
		call_rcu(&thing->rcu, release);
	}
	spin_unlock(&lock);
	CHECK_EQUAL(count, 4);
	CHECK(list_empty(&things));
	rcu_barrier();
	return check_result();
}
