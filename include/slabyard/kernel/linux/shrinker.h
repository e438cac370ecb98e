/* <linux/shrinker.h> for kernel code that is compiled into a program: caches that give up objects when an allocation finds no memory
 * and may wait. */
#ifndef SLABYARD_KERNEL_LINUX_SHRINKER_H
#define SLABYARD_KERNEL_LINUX_SHRINKER_H

#pragma GCC system_header

#include "list.h"
#include "types.h"

#define SHRINK_STOP (~0UL)
#define SHRINK_EMPTY (~0UL - 1)
#define DEFAULT_SEEKS 2
#define SHRINKER_REGISTERED 1U
#define SHRINKER_NUMA_AWARE 2U
#define SHRINKER_MEMCG_AWARE 4U

struct mem_cgroup;

struct shrink_control {
	gfp_t gfp_mask;
	int nid;
	unsigned long nr_to_scan, nr_scanned;
	struct mem_cgroup *memcg;
};

/* count_objects returns how many objects could be given up. scan_objects gives up some of nr_to_scan and returns how many. */
struct shrinker {
	unsigned long (*count_objects)(struct shrinker *, struct shrink_control *);
	unsigned long (*scan_objects)(struct shrinker *, struct shrink_control *);
	long batch;
	int seeks;
	unsigned flags;
	void *private_data;
	struct list_head list;
};

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

void sy__shrinker_add(struct shrinker *);
void sy__shrinker_remove(struct shrinker *);
struct shrinker *sy__shrinker_new(unsigned flags);
void sy__shrinker_free(struct shrinker *);
unsigned long sy__shrink(gfp_t);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/* With the name that Linux 6.0 and later take, or without one. */
#define register_shrinker(...) SY__REGISTER_SHRINKER(__VA_ARGS__, "")
#define SY__REGISTER_SHRINKER(shrinker, ...) (sy__shrinker_add(shrinker), 0)

/* When this has returned, nobody runs the shrinker. */
#define unregister_shrinker(shrinker) sy__shrinker_remove(shrinker)

/* Linux 6.7 and later. NULL: no memory. */
#define shrinker_alloc(flags, ...) sy__shrinker_new(flags)
#define shrinker_register(shrinker) sy__shrinker_add(shrinker)
#define shrinker_free(shrinker) sy__shrinker_free(shrinker)

#endif
