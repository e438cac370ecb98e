/* SLUB, compiled for hardened heaps: see ../links.h. */
#include "../hardened.h"

#if __SIZEOF_POINTER__ > 4
#include "geometry.c" /* first: tables of slub.c have names that its parameters have too */

#include "slub.c"

#include "bulk.c"
#include "check.c"
#include "slabs.c"
#include "walk.c"
#endif
