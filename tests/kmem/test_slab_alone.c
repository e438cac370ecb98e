/* A program with types, lists and macros of its own, which has the allocator's names alone. */
#define SLABYARD_SLAB_ALONE
#include <linux/slab.h>

#include "check.h"

#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

typedef uint64_t u64;

struct list_head {
	struct list_head *next;
};

struct own {
	u64 number;
	struct list_head link;
};

static int min(int one, int other)
{
	return one < other ? one : other;
}

int main(void)
{
	struct own *own = kcalloc((size_t)min(2, 1), sizeof(*own), GFP_KERNEL);

	CHECK(own && container_of(&own->link, struct own, link) == own);
	kfree(own);
	return check_result();
}
