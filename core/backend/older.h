/* Older pages: in use since before the trace began. See older.c. */
#ifndef SY_OLDER_H
#define SY_OLDER_H

#include "../pages/pages.h"

/* These pages are not older (any more). With the zone's lock held. */
void sy__older_remove(struct sy__zone *, uint64_t number, uint64_t count);

#endif
