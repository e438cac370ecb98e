/* Kernel code, in a program: compiled as it would be in a kernel, but for main. */
#include <linux/slab.h>

#include <stdio.h>
#include <string.h>

struct session {
	int id;
	char name[60];
};

int main(void)
{
	struct sy_policy_description policy;
	struct kmem_cache *cache = KMEM_CACHE(session, SLAB_HWCACHE_ALIGN);
	struct session *session = cache ? kmem_cache_zalloc(cache, GFP_KERNEL) : NULL;
	char *name = kasprintf(GFP_KERNEL, "session %d", 7);

	if (!session || session->id || !name || strcmp(name, "session 7") || ksize(name) < 10)
		return 1;
	sy_policy_describe(sy_heap_policy(sy_kmem_heap()), &policy);
	if (strcmp(policy.name, "slab"))
		return 2;
	kfree(name);
	kmem_cache_free(cache, session);
	kmem_cache_destroy(cache);
	puts("served");
	return 0;
}
