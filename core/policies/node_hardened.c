/* What yard and SLUB have in common, compiled for hardened heaps: see links.h. */
#include "hardened.h"

#if __SIZEOF_POINTER__ > 4
#include "node.c"
#endif
