/* yard, compiled for hardened heaps: see ../links.h. */
#include "../hardened.h"

#if __SIZEOF_POINTER__ > 4
#include "geometry.c" /* first: tables of yard.c have names that its parameters have too */
#include "yard.c"
#include "check.c"
#include "owned.c"
#include "remote.c"
#include "slabs.c"
#include "this_slot.c"
#include "walk.c"
#endif
