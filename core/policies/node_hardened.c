/* What yard and SLUB have in common, compiled for hardened heaps: see links.h. */
#include "hardened.h"

#if UINTPTR_MAX > UINT32_MAX
#include "node.c"
#endif
