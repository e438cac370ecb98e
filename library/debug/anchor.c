/*
 * The anchor (anchor.h). It is written when the first heap is made, because a core file has only data that the program has written.
 */
#include "anchor.h"

#include "core/this_slot.h"

#include "build.h" /* SY__BUILD, made of the sources (cmake/build.cmake) */

#include <string.h>

_Static_assert(sizeof(SY__ANCHOR_MARK) - 1 == sizeof(sy__anchor.mark), "the mark fills its place");
_Static_assert(sizeof(SY__BUILD) <= sizeof(sy__anchor.build), "the build's name fits");

struct sy__anchor sy__anchor = { .mark = SY__ANCHOR_MARK, .bytes = sizeof(sy__anchor), .build = SY__BUILD };

/* Threads that make heaps at once write the same; `self` last, as it says that the rest is there. */
void sy__anchor_drop(void)
{
	for (unsigned i = 0; i < SY__ANCHOR_POLICIES && sy_policies[i]; i++) {
		strncpy(sy__anchor.policies[i].name, sy_policies[i]->name, sizeof(sy__anchor.policies[i].name) - 1);
		sy__anchor.policies[i].policy = sy_policies[i];
		sy__anchor.policies[i].hardened = sy_policies[i]->hardened;
	}
	sy__anchor.heaps = &sy__heaps_of_threads.list;
	sy__anchor.slots = sy__slots_table;
	__atomic_store_n(&sy__anchor.self, &sy__anchor, __ATOMIC_RELEASE);
}
