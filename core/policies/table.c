/*
 * The policies of this build, in the order in which users see them; the first one is the default.
 *
 * A new allocator is a file beside this one that defines a struct sy_policy, with its declaration and its entry here. Nothing else
 * in the tree names a policy.
 */
#include "../types.h"

extern const struct sy_policy sy__yard, sy__slub, sy__slob, sy__slab, sy__slqb, sy__bonwick, sy__bsd44, sy__svr4, sy__sunos4;

const struct sy_policy *const sy_policies[] = {
	&sy__yard,
	&sy__slub,
	&sy__slob,
	&sy__slab,
	&sy__slqb,
	&sy__bonwick,
	&sy__bsd44,
	&sy__svr4,
	&sy__sunos4,
	NULL,
};

static bool same_name(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

const struct sy_policy *sy_policy_find(const char *name)
{
	for (const struct sy_policy *const *at = sy_policies; *at; at++)
		if (same_name((*at)->name, name))
			return *at;
	return NULL;
}
